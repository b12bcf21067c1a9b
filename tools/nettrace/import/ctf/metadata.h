// What the metadata of a CTF 1.8 trace declares, as it is written there.
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

// The numbers from `low` to `high`, as signed ones where the enum's integer is signed.
struct EnumRange {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::string name;
};

// A type is owned by its Metadata, and shared by all that name it.
struct Type {
  Kind kind = Kind::kInteger;
  int depth = 1;            // of types in types
  std::uint64_t align = 1;  // bits
  // kInteger; kFloat has size and byte order, too.
  unsigned size = 0;  // bits
  bool is_signed = false;
  bool is_text = false;  // its encoding is one of characters
  bool is_hex = false;
  ByteOrder byte_order = ByteOrder::kNative;
  std::string clock;  // the name of the one that it is mapped to
  // kEnum: its integer; kArray and kSequence: the element.
  const Type* element = nullptr;
  std::vector<EnumRange> ranges;
  std::vector<Member> members;         // kStruct, kVariant
  std::uint64_t count = 0;             // kArray
  std::vector<std::string> reference;  // the path of a kSequence's length, of a kVariant's tag
  std::size_t line = 0;                // where it is declared
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
  const Type* context = nullptr;  // null: it has none
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
