// Converts the metadata of a CTF trace to a form for decoding. In this form, names are resolved,
// and each value that belongs to an event, thread or label has a role.
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

// The purpose of a value that belongs to a packet, event, thread or label. Values with a purpose
// are usually not fields of the NetTrace event. All other values have the role kNone.
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

// A slot is the index under which Decoder stores the length of a later sequence or the tag of a
// later variant. Values that are neither have kNoSlot.
inline constexpr std::uint32_t kNoSlot = std::numeric_limits<std::uint32_t>::max();
// This bit marks the slots of packets and event headers. Each stream keeps the values of these
// slots from one event to the next.
inline constexpr std::uint32_t kStreamSlot = std::uint32_t{1} << 31;
inline constexpr std::size_t kMaxStreamSlots = 256;             // slots with kStreamSlot of a trace
inline constexpr std::size_t kMaxNodes = std::size_t{1} << 20;  // nodes and tag ranges of a trace
inline constexpr std::size_t kMaxTagRanges = 4096;              // tag ranges of a variant

// A type at one place where it is used, for example a member of a struct.
struct Node {
  Kind kind = Kind::kStruct;
  Role role = Role::kNone;
  bool is_signed = false;
  bool is_big = false;
  bool is_text = false;  // an integer that is a character, or an array of them
  bool is_hex = false;
  bool is_bool = false;            // an enum with the values false and true
  bool is_hidden = false;          // not a field: it has a role, or another field contains it
  bool in_array = false;           // a variant within an array
  bool is_fixed = false;           // an array with a fixed length in V6
  std::uint8_t size = 0;           // bits
  std::int32_t clock = -1;         // index in Metadata::clocks; -1 if there is none
  std::uint32_t slot = kNoSlot;    // slot for its value, if it is a length or tag
  std::uint32_t source = kNoSlot;  // slot of a sequence's length or a variant's tag
  std::uint64_t align = 1;         // bits
  std::uint64_t min_bits = 0;      // minimum bits of a value of this type, without padding
  std::uint64_t count = 0;         // elements of an array with a fixed length
  std::string name;                // name of the member, without the '_' that readers remove
  const std::vector<EnumRange>* ranges = nullptr;
  struct TagRange {
    std::uint64_t low;
    std::uint64_t high;
    std::uint32_t option;
  };
  std::vector<TagRange> tags;  // tags of a variant
  bool tag_is_signed = false;
  std::vector<Node> children;  // members, options, or the array's element
};

struct EventClass {
  std::string provider;
  std::string name;
  std::optional<std::uint8_t> level;
  std::optional<Node> context;
  std::optional<Node> fields;
  std::uint32_t number = 0;  // differs from the numbers of all other classes of the trace
};

struct StreamClass {
  std::optional<Node> packet_context;
  std::optional<Node> event_header;
  std::optional<Node> event_context;
  absl::flat_hash_map<std::uint64_t, std::unique_ptr<EventClass>> events;
};

struct Layout {
  bool is_ours = false;  // whether `nettrace export` wrote the trace
  std::optional<Node> packet_header;
  absl::flat_hash_map<std::uint64_t, std::unique_ptr<StreamClass>> streams;
  std::size_t stream_slots = 0;
  std::size_t event_slots = 0;
};

// Returns the layout; `metadata` must outlive it. Fails with InvalidArgument, "line N: REASON".
absl::StatusOr<Layout> MakeLayout(const Metadata& metadata);

// Returns the value of an environment entry; empty if there is none.
std::string EnvironmentOf(const Metadata& metadata, std::string_view name);

}  // namespace tools::importing::ctf

#endif  // TOOLS_NETTRACE_IMPORT_CTF_LAYOUT_H_
