#include "libnettrace-writer/core/event_ids.h"

#include <cstddef>

namespace nettrace::internal {
namespace {

// FNV-1a, 64 bits.
class Hash {
 public:
  void Number(std::uint64_t value, int bytes) {
    for (; bytes > 0; --bytes, value >>= 8) Byte(static_cast<std::uint8_t>(value));
  }
  // With its length, so that no two sequences of values are the same bytes.
  void Text(std::string_view text) {
    Number(text.size(), 4);
    for (const char c : text) Byte(static_cast<std::uint8_t>(c));
  }
  void Fields(const std::vector<Field>& fields) {
    Number(fields.size(), 4);
    for (const Field& field : fields) {
      Text(field.name);
      OneType(field.type);
    }
  }
  std::uint64_t value() const { return value_; }

 private:
  void Byte(std::uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3; }
  void OneType(const Type& type) {
    Number(static_cast<std::uint8_t>(type.code), 1);
    Number(type.count, 2);
    for (const Type& element : type.element) OneType(element);
    if (type.code == TypeCode::kObject) Fields(type.fields);
  }

  std::uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace

std::uint32_t HashedEventId(std::string_view name, const std::vector<Field>& fields,
                            std::uint8_t opcode) {
  Hash hash;
  hash.Text(name);
  hash.Fields(fields);
  hash.Number(opcode, 1);
  return 1 + static_cast<std::uint32_t>(hash.value() % kMaxGivenEventId);
}

}  // namespace nettrace::internal
