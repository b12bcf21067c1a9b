// Encodes messages in the wire format of Protocol Buffers, without generated code.
#ifndef TOOLS_BASE_PROTOBUF_WRITER_H_
#define TOOLS_BASE_PROTOBUF_WRITER_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace base {

// Appends fields of messages to a string. `field` is the number of the field in its message, at
// least 1. Also writes values that equal the defaults of proto3; callers may omit their fields. Not
// thread-safe.
class ProtobufWriter {
 public:
  // `out` must outlive this object.
  explicit ProtobufWriter(std::string* out) : out_(out) {}

  // Returns the number of bytes of a number that is encoded as a varint.
  static constexpr std::size_t VarintSize(std::uint64_t number) {
    return number == 0 ? 1 : (static_cast<std::size_t>(std::bit_width(number)) + 6) / 7;
  }
  // Appends a number as a varint without the number of a field. An element of a packed field has
  // this form.
  void Varint(std::uint64_t number) {
    for (; number >= 0x80; number >>= 7) *out_ += static_cast<char>(number | 0x80);
    *out_ += static_cast<char>(number);
  }

  // Writes a field of a type that varints represent: int32, int64, uint32, uint64, bool or an enum.
  // A negative number of int32 or int64 is passed as a 64-bit number in two's complement.
  void Number(std::uint32_t field, std::uint64_t number) {
    Tag(field, kVarint);
    Varint(number);
  }
  void Fixed32(std::uint32_t field, std::uint32_t bits) {
    Tag(field, kFixed32);
    Fixed(bits);
  }
  void Fixed64(std::uint32_t field, std::uint64_t bits) {
    Tag(field, kFixed64);
    Fixed(bits);
  }
  void Double(std::uint32_t field, double value) {
    Fixed64(field, std::bit_cast<std::uint64_t>(value));
  }
  // Writes a field of type string or bytes, or a field whose value is an encoded message. Programs
  // that decode the message refuse a string that is not UTF-8.
  void Bytes(std::uint32_t field, std::string_view bytes) {
    Tag(field, kLength);
    Varint(bytes.size());
    out_->append(bytes);
  }

  // Begins a field that is a message or a packed field. Returns the argument for End. End must be
  // called for fields within this field before it is called for this field.
  std::size_t Begin(std::uint32_t field) {
    Tag(field, kLength);
    *out_ += '\0';  // room for a length of up to 127; End makes more room if necessary
    return out_->size();
  }
  // Writes the length of the field that Begin began. Moves the bytes of the field if there are more
  // than 127, because the length then has more than one byte.
  void End(std::size_t begin) {
    std::uint64_t length = out_->size() - begin;
    if (const std::size_t more = VarintSize(length) - 1; more != 0) out_->insert(begin, more, '\0');
    char* to = out_->data() + begin - 1;
    for (; length >= 0x80; length >>= 7) *to++ = static_cast<char>(length | 0x80);
    *to = static_cast<char>(length);
  }

 private:
  static constexpr std::uint32_t kVarint = 0;
  static constexpr std::uint32_t kFixed64 = 1;
  static constexpr std::uint32_t kLength = 2;
  static constexpr std::uint32_t kFixed32 = 5;

  void Tag(std::uint32_t field, std::uint32_t type) { Varint(std::uint64_t{field} << 3 | type); }
  template <typename Bits>
  void Fixed(Bits bits) {
    char bytes[sizeof bits];
    for (char& byte : bytes) {
      byte = static_cast<char>(bits);
      bits = static_cast<Bits>(bits >> 8);
    }
    out_->append(bytes, sizeof bytes);
  }

  std::string* const out_;
};

}  // namespace base

#endif  // TOOLS_BASE_PROTOBUF_WRITER_H_
