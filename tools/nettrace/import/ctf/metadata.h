// The declarations in the metadata of a CTF 1.8 trace, as they are written: references by name are
// not resolved yet (layout.h resolves them).
#ifndef TOOLS_NETTRACE_IMPORT_CTF_METADATA_H_
#define TOOLS_NETTRACE_IMPORT_CTF_METADATA_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tools::importing::ctf {

enum class ByteOrder : std::uint8_t { kNative, kLittle, kBig };

enum class Kind : std::uint8_t {
  kInteger,
  kFloat,
  kEnum,
  kString,
  kStruct,
  kVariant,
  kArray,
  kSequence
};

struct Type;

struct Member {
  std::string name;
  const Type* type = nullptr;
};

// The numbers from `low` to `high`, which have the same name. They are signed if the enum's integer
// is signed.
struct EnumRange {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::string name;
};

// A declared type. Metadata::types owns it, and everything that has this type points to it.
struct Type {
  Kind kind = Kind::kInteger;
  int depth = 1;            // levels of types within this type, including this type
  std::uint64_t align = 1;  // bits
  // The following members are for kInteger; size and byte order are also for kFloat.
  unsigned size = 0;  // bits
  bool is_signed = false;
  bool is_text = false;  // whether its declared encoding is that of a character, such as UTF8
  bool is_hex = false;
  ByteOrder byte_order = ByteOrder::kNative;
  std::string clock;  // name of the clock that it is mapped to; "" if there is none
  // The integer of a kEnum; the element type of a kArray or kSequence.
  const Type* element = nullptr;
  std::vector<EnumRange> ranges;
  std::vector<Member> members;         // for kStruct, kVariant
  std::uint64_t count = 0;             // for kArray
  std::vector<std::string> reference;  // path of a kSequence's length or a kVariant's tag
  std::size_t line = 0;                // line of its declaration
};

struct Clock {
  std::string name;
  std::uint64_t frequency = 1'000'000'000;
  std::int64_t offset_seconds = 0;
  std::int64_t offset = 0;  // cycles
};

struct EventDeclaration {
  std::uint64_t id = 0;
  std::uint64_t stream_id = 0;
  std::string name = {};
  std::optional<std::int64_t> loglevel = std::nullopt;
  const Type* context = nullptr;  // null if there is none
  const Type* fields = nullptr;
  std::size_t line = 0;
};

struct StreamDeclaration {
  std::uint64_t id = 0;
  const Type* packet_context = nullptr;
  const Type* event_header = nullptr;
  const Type* event_context = nullptr;
  std::size_t line = 0;
};

struct Metadata {
  ByteOrder byte_order = ByteOrder::kLittle;
  std::optional<std::array<std::byte, 16>> uuid;
  const Type* packet_header = nullptr;
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<Clock> clocks;
  std::vector<StreamDeclaration> streams;
  std::vector<EventDeclaration> events;
  std::vector<std::unique_ptr<Type>> types;
};

}  // namespace tools::importing::ctf

#endif  // TOOLS_NETTRACE_IMPORT_CTF_METADATA_H_
