// Encodes the payload of an event value by value, and checks each value against the event's fields.
// TypeFor and MakeField describe fields by C++ types.
//
//   std::vector<Field> fields = {MakeField<std::uint32_t>("Status"),
//                                MakeField<std::u16string_view>("Path")};
//   PayloadEncoder encoder(&fields);
//   encoder.UInt(200).Utf16(u"/index.html");
//   absl::StatusOr<std::span<const std::byte>> payload = encoder.Finish();
#ifndef NETTRACE_PAYLOAD_ENCODER_H_
#define NETTRACE_PAYLOAD_ENCODER_H_

#include "nettrace/need_cxx20.h"

#ifdef NETTRACE_CXX20

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/schema.h"

namespace nettrace {

// Returns the type of a field that holds values of T: numbers, bool, Guid, std::string_view (UTF-8)
// or std::u16string_view (UTF-16). TraceEvent shows non-ASCII text correctly only in UTF-16.
template <typename T>
Type TypeFor() {
  if constexpr (std::same_as<T, bool>) {
    return Type::Simple(TypeCode::kBoolean8);
  } else if constexpr (std::same_as<T, float>) {
    return Type::Simple(TypeCode::kSingle);
  } else if constexpr (std::same_as<T, double>) {
    return Type::Simple(TypeCode::kDouble);
  } else if constexpr (std::same_as<T, Guid>) {
    return Type::Simple(TypeCode::kGuid);
  } else if constexpr (std::same_as<T, std::string_view>) {
    return Type::Array(Type::Simple(TypeCode::kUtf8CodeUnit));
  } else if constexpr (std::same_as<T, std::u16string_view>) {
    return Type::Array(Type::Simple(TypeCode::kUtf16CodeUnit));
  } else {
    static_assert(std::integral<T> && sizeof(T) <= 8,
                  "a field cannot hold values of this type: use an integer, bool, float, double, "
                  "Guid, std::string_view or std::u16string_view");
    constexpr bool kSigned = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1) {
      return Type::Simple(kSigned ? TypeCode::kSByte : TypeCode::kByte);
    } else if constexpr (sizeof(T) == 2) {
      return Type::Simple(kSigned ? TypeCode::kInt16 : TypeCode::kUInt16);
    } else if constexpr (sizeof(T) == 4) {
      return Type::Simple(kSigned ? TypeCode::kInt32 : TypeCode::kUInt32);
    } else {
      return Type::Simple(kSigned ? TypeCode::kInt64 : TypeCode::kUInt64);
    }
  }
}

template <typename T>
Field MakeField(std::string name) {
  return {std::move(name), TypeFor<T>()};
}

// An encoder for any number of payloads of one event. Not thread-safe. Allocates memory only while
// its buffers grow, and for the message of an error. Finish() returns the first error. Every error
// is InvalidArgument. Examples are too many or too few values, an end without a beginning, and a
// value that is too long, out of the field's range or of another type.
class PayloadEncoder {
 public:
  // Creates an encoder. Writer::AddMetadata must accept `fields`. They must outlive this object and
  // not change.
  explicit PayloadEncoder(const std::vector<Field>* fields);

  PayloadEncoder& Int(std::int64_t value);    // for SByte to Int64, VarInt
  PayloadEncoder& UInt(std::uint64_t value);  // for Byte to UInt64, VarUInt, single code units
  PayloadEncoder& Single(float value);
  PayloadEncoder& Double(double value);
  PayloadEncoder& Bool(bool value);  // for Boolean32, Boolean8
  PayloadEncoder& GuidValue(const Guid& value);
  // Append an array of at most 65,535 code units. A fixed-length array needs exactly its number of
  // code units. Utf16 also appends a NullTerminatedUTF16String, in which `text` must contain no NUL
  // and may have any length.
  PayloadEncoder& Utf8(std::string_view text);
  PayloadEncoder& Utf16(std::u16string_view text);
  // Begins an Array of at most 65,535 elements, or a FixedLengthArray, which needs the `count` of
  // its type. The caller must then append `count` elements and call EndArray().
  PayloadEncoder& BeginArray(std::size_t count);
  PayloadEncoder& EndArray();
  PayloadEncoder& BeginObject();
  PayloadEncoder& EndObject();
  // Appends the value of a RelLoc or DataLoc: at most 65,535 bytes, which are whole elements. The
  // field itself is a location: the size and the offset of the elements, which the payload contains
  // after all fields. The offset is relative to the start of the payload (DataLoc) or to the end of
  // the location (RelLoc), and must not exceed 65,535 bytes.
  PayloadEncoder& Located(std::span<const std::byte> elements);

  // Returns the payload, valid until the next value is appended, or the first error. In both cases,
  // the encoder is then ready for another payload.
  absl::StatusOr<std::span<const std::byte>> Finish();

 private:
  struct Level {
    const std::vector<Field>* fields;  // fields of an object; null for an array
    const Type* element;               // type of the elements of an array; null for an object
    std::size_t next;
    std::size_t count;
  };
  struct Location {
    std::size_t field_offset;
    std::size_t data_offset;  // offset in located_
    std::size_t size;
    bool relative;
  };

  void Start();
  void Fail(std::string_view what);
  const Type* Take();
  template <typename T>
  void Put(T value);
  void PutBytes(const void* bytes, std::size_t size);
  bool PutCount(const Type& type, std::size_t count);
  PayloadEncoder& End(bool of_array);

  const std::vector<Field>* fields_;
  absl::Status status_;
  std::vector<Level> levels_;
  std::vector<std::byte> payload_;
  std::vector<Location> locations_;
  std::vector<std::byte> located_;
  bool finished_ = false;
};

}  // namespace nettrace

#endif  // NETTRACE_CXX20
#endif  // NETTRACE_PAYLOAD_ENCODER_H_
