// Visits the values in an event's payload, as described by the event's schema.
#ifndef NETTRACE_PAYLOAD_H_
#define NETTRACE_PAYLOAD_H_

#include "nettrace/need_cxx20.h"

#ifdef NETTRACE_CXX20

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "nettrace/schema.h"

namespace nettrace {

// How the values of a payload are encoded. A DateTime is 8 Int16s in V6, and an 8-byte FILETIME in
// V4 and V5. All other types have the same encoding in these versions.
enum class PayloadEncoding : std::uint8_t { kV6, kLegacy };

// Receives the values of a payload from VisitPayload, in the order of the fields. Views are valid
// only during the call. By default, all functions except OnBool32 and OnUnreadable do nothing.
class PayloadVisitor {
 public:
  virtual ~PayloadVisitor() = default;
  // Receives the name of the field whose value comes next. Array elements have no name.
  virtual void OnName(std::string_view /*name*/) {}
  virtual void OnBeginObject() {}
  virtual void OnEndObject() {}
  virtual void OnBeginArray() {}
  virtual void OnEndArray() {}
  virtual void OnInt(std::int64_t /*value*/) {}
  virtual void OnUInt(std::uint64_t /*value*/) {}
  virtual void OnSingle(float /*value*/) {}
  virtual void OnDouble(double /*value*/) {}
  virtual void OnBool(bool /*value*/) {}
  // Receives a Boolean32. By default, converts it to a bool and calls OnBool.
  virtual void OnBool32(std::uint32_t value) { OnBool(value != 0); }
  virtual void OnGuid(const Guid& /*value*/) {}
  virtual void OnDateTime(absl::Time /*utc*/) {}
  // Receives the 16 bytes of a .NET Decimal. The specification does not describe their layout.
  virtual void OnDecimal(std::span<const std::byte> /*bytes*/) {}
  // Receive the bytes of one code unit, an array of code units or a null-terminated string, as they
  // are in the file. They are not always valid UTF-8 or UTF-16LE. For a null-terminated string,
  // text of fixed length, or text in a RelLoc or DataLoc, `units` ends before the first zero unit.
  virtual void OnUtf8(std::span<const std::byte> /*units*/) {}
  virtual void OnUtf16(std::span<const std::byte> /*units*/) {}
  // Called instead of another function for a value whose bytes are missing or cannot be read. By
  // default, calls OnUtf8 with an empty text.
  virtual void OnUnreadable() { OnUtf8({}); }
};

// Maximum number of values in a payload. Some hostile schemas describe more values than fit in
// memory.
inline constexpr int kMaxPayloadValues = 1 << 20;
// A payload of n bytes may have at most n + kMaxEmptyValues values without bytes, such as objects
// without fields. Without the limit, a hostile schema of a few bytes could describe any number of
// such values.
inline constexpr int kMaxEmptyValues = 64;
// Maximum bytes that the locations (RelLoc, DataLoc) of a payload refer to in total:
// kMaxReadsOfByte times the size of the payload, plus kMaxSharedBytes. Several locations may refer
// to the same bytes, so a small payload could otherwise cause much work.
inline constexpr std::size_t kMaxReadsOfByte = 4;
inline constexpr std::size_t kMaxSharedBytes = 4096;

// Passes the values of `payload` to `visitor`. Returns DataLoss if the payload does not match the
// fields, or if a type code is unknown. The visitor then receives the values before the first
// missing byte. Of a text that is cut, it receives the part in the payload; for any other value
// that is cut, OnUnreadable() is called. An error in the location of a RelLoc or DataLoc does not
// end the visit: the visitor also receives the values of the fields after it. Returns
// ResourceExhausted if the payload exceeds one of the limits that this header defines; the visitor
// then receives the values before the limit. In all cases, an OnEndObject follows each
// OnBeginObject, and an OnEndArray each OnBeginArray. Ignores bytes after the last field. Allocates
// nothing, except for the message of an error.
absl::Status VisitPayload(const std::vector<Field>& fields, std::span<const std::byte> payload,
                          PayloadVisitor* visitor, PayloadEncoding encoding = PayloadEncoding::kV6);

}  // namespace nettrace

#endif  // NETTRACE_CXX20
#endif  // NETTRACE_PAYLOAD_H_
