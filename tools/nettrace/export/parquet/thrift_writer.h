// Encodes structures in the compact protocol of Apache Thrift, without generated code. The metadata
// of Parquet files has this form.
#ifndef TOOLS_NETTRACE_EXPORT_PARQUET_THRIFT_WRITER_H_
#define TOOLS_NETTRACE_EXPORT_PARQUET_THRIFT_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"

namespace tools::parquet {

// Appends a number as a varint: 7 bits in each byte, the lowest bits first.
inline void AppendVarint(std::uint64_t number, std::string* out) {
  for (; number >= 0x80; number >>= 7) *out += static_cast<char>(number | 0x80);
  *out += static_cast<char>(number);
}

// The numbers that stand for types in the compact protocol.
enum class ThriftType : std::uint8_t {
  kTrue = 1,
  kFalse = 2,
  kI8 = 3,
  kI32 = 5,
  kI64 = 6,
  kBinary = 8,
  kList = 9,
  kStruct = 12,
};

// Appends one structure, which BeginStruct() begins and EndStruct() ends, to a string. `field` is
// the number of a field in its structure; the fields of a structure are written in ascending order.
// Not thread-safe.
class ThriftWriter {
 public:
  // `out` must outlive this object.
  explicit ThriftWriter(std::string* out) : out_(out) {}

  void Bool(std::int16_t field, bool value) {
    Field(field, value ? ThriftType::kTrue : ThriftType::kFalse);
  }
  void I8(std::int16_t field, std::int8_t value) {
    Field(field, ThriftType::kI8);
    *out_ += static_cast<char>(value);
  }
  void I32(std::int16_t field, std::int32_t value) {
    Field(field, ThriftType::kI32);
    ZigZag(value);
  }
  void I64(std::int16_t field, std::int64_t value) {
    Field(field, ThriftType::kI64);
    ZigZag(value);
  }
  void Binary(std::int16_t field, std::string_view bytes) {
    Field(field, ThriftType::kBinary);
    ElementBinary(bytes);
  }

  // Begins the outermost structure, or a structure that is an element of a list.
  void BeginStruct() { last_fields_.push_back(0); }
  // Begins a structure that is a field.
  void BeginStruct(std::int16_t field) {
    Field(field, ThriftType::kStruct);
    BeginStruct();
  }
  void EndStruct() {
    *out_ += '\0';
    last_fields_.pop_back();
  }
  void EmptyStruct(std::int16_t field) {
    BeginStruct(field);
    EndStruct();
  }

  // Writes the head of a list. The caller then writes `size` elements.
  void List(std::int16_t field, ThriftType element, std::size_t size) {
    Field(field, ThriftType::kList);
    constexpr std::size_t kMaxShort = 14;
    const std::size_t in_head = size <= kMaxShort ? size : 15;
    *out_ += static_cast<char>(in_head << 4 | static_cast<std::size_t>(element));
    if (size > kMaxShort) AppendVarint(size, out_);
  }
  void ElementI32(std::int32_t value) { ZigZag(value); }
  void ElementBinary(std::string_view bytes) {
    AppendVarint(bytes.size(), out_);
    *out_ += bytes;
  }

 private:
  void Field(std::int16_t field, ThriftType type) {
    const int step = field - last_fields_.back();
    last_fields_.back() = field;
    if (step > 0 && step <= 15) {
      *out_ += static_cast<char>(step << 4 | static_cast<int>(type));
      return;
    }
    *out_ += static_cast<char>(type);
    ZigZag(field);
  }
  void ZigZag(std::int64_t value) {
    AppendVarint(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63),
                 out_);
  }

  std::string* const out_;
  absl::InlinedVector<std::int16_t, 8> last_fields_;  // last field of each open structure
};

}  // namespace tools::parquet

#endif  // TOOLS_NETTRACE_EXPORT_PARQUET_THRIFT_WRITER_H_
