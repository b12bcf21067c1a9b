// What the metadata of a CTF trace declares, made ready to be read: names are resolved, and what an
// event, thread or label takes its value from is known.
#ifndef TOOLS_NETTRACE_IMPORT_CTF_LAYOUT_H_
#define TOOLS_NETTRACE_IMPORT_CTF_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "tools/nettrace/import/ctf/metadata.h"

namespace tools::importing::ctf {

// What a value is beside, or instead of, a field of an event.
enum class Role : std::uint8_t {
  kNone,
  // In packet headers and contexts.
  kMagic,
  kUuidByte,
  kStreamId,
  kTimestampBegin,
  kTimestampEnd,
  kContentSize,
  kPacketSize,
  kPacketNumber,
  kDiscarded,
  kPacketCpu,
  // In event headers.
  kId,
  kTimestamp,
  // In contexts.
  kPid,
  kTid,
  kProcess,
  kThread,
  kCpu,
  kLevel,
  kOpcode,
  kVersion,
  kKeywords,
  kActivity,
  kRelatedActivity,
  kTraceId,
  kSpanId,
  kLabelName,
  kLabelValue,
  kFrame,
  kCount
};

inline constexpr std::uint32_t kNoSlot = std::numeric_limits<std::uint32_t>::max();
// Slots with this bit are those of packets and event headers: a stream keeps their values.
inline constexpr std::uint32_t kStreamSlot = std::uint32_t{1} << 31;
inline constexpr std::size_t kMaxStreamSlots = 256;
inline constexpr std::size_t kMaxNodes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxTagRanges = 4096;

// A type where it is used.
struct Node {
  Kind kind = Kind::kStruct;
  Role role = Role::kNone;
  bool is_signed = false;
  bool is_big = false;
  bool is_text = false;  // an integer that is a character; an array of those
  bool is_hex = false;
  bool is_bool = false;    // an enum of false and true
  bool is_hidden = false;  // no field: it has a role, or another field says it
  bool in_array = false;   // a variant in an array
  bool is_fixed = false;   // an array that V6 has as one of a fixed length
  std::uint8_t size = 0;   // bits
  std::int32_t clock = -1;
  std::uint32_t slot = kNoSlot;    // its value is kept here, for lengths and tags
  std::uint32_t source = kNoSlot;  // where a sequence's length, or a variant's tag, is kept
  std::uint64_t align = 1;         // bits
  std::uint64_t min_bits = 0;      // that any value takes, without padding
  std::uint64_t count = 0;
  std::string name;  // of the member that it is, without the '_' that readers leave out
  const std::vector<EnumRange>* ranges = nullptr;
  struct TagRange {
    std::uint64_t low;
    std::uint64_t high;
    std::uint32_t option;
  };
  std::vector<TagRange> tags;  // of a variant
  bool tag_is_signed = false;
  std::vector<Node> children;  // members, options, or the element
};

struct EventClass {
  std::string provider;
  std::string name;
  std::optional<std::uint8_t> level;
  std::optional<Node> context;
  std::optional<Node> fields;
  std::uint32_t number = 0;  // that no other class of the trace has
};

struct StreamClass {
  std::optional<Node> packet_context;
  std::optional<Node> event_header;
  std::optional<Node> event_context;
  absl::flat_hash_map<std::uint64_t, std::unique_ptr<EventClass>> events;
};

struct Layout {
  bool is_ours = false;  // nettrace export wrote it
  std::optional<Node> packet_header;
  absl::flat_hash_map<std::uint64_t, std::unique_ptr<StreamClass>> streams;
  std::size_t stream_slots = 0;
  std::size_t event_slots = 0;
};

// `metadata` must live as long as the layout. InvalidArgument: "line N: why".
absl::StatusOr<Layout> MakeLayout(const Metadata& metadata);

// The value of an environment's entry; empty if there is none.
std::string EnvironmentOf(const Metadata& metadata, std::string_view name);

}  // namespace tools::importing::ctf

#endif  // TOOLS_NETTRACE_IMPORT_CTF_LAYOUT_H_
