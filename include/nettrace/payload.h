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

// How payloads are encoded. A DateTime is 8 Int16s in V6, and an 8-byte FILETIME in V4 and V5. All
// other types are the same.
enum class PayloadEncoding : std::uint8_t { kV6, kLegacy };

// Receives each value, in the order of the fields. Views are valid only during the call. A function
// that is not overridden ignores its value.
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
  // Receives a Boolean32. By default, calls OnBool with whether it is not 0.
  virtual void OnBool32(std::uint32_t value) { OnBool(value != 0); }
  virtual void OnGuid(const Guid& /*value*/) {}
  virtual void OnDateTime(absl::Time /*utc*/) {}
  // Receives the 16 bytes of a .NET Decimal. The specification does not describe their layout.
  virtual void OnDecimal(std::span<const std::byte> /*bytes*/) {}
  // Receive single code units or arrays of code units, as they are in the file: not always valid
  // UTF-8 or UTF-16LE. For text of fixed length, or in a RelLoc or DataLoc, `units` ends before its
  // first zero unit.
  virtual void OnUtf8(std::span<const std::byte> /*units*/) {}
  virtual void OnUtf16(std::span<const std::byte> /*units*/) {}
  // Reports a value whose bytes are missing or cannot be read; no other function is called for it.
  // By default, calls OnUtf8 with an empty text.
  virtual void OnUnreadable() { OnUtf8({}); }
};

// Maximum number of values in a payload. Some hostile schemas describe more values than fit in
// memory.
inline constexpr int kMaxPayloadValues = 1 << 20;
// A payload may have this many values without bytes, such as objects without fields, plus one for
// each of its bytes. A hostile schema of a few bytes can describe any number of such values.
inline constexpr int kMaxEmptyValues = 64;
// The locations (RelLoc, DataLoc) of a payload may in total refer to kMaxReadsOfByte times its size
// plus kMaxSharedBytes. Several locations may refer to the same bytes.
inline constexpr std::size_t kMaxReadsOfByte = 4;
inline constexpr std::size_t kMaxSharedBytes = 4096;

// Passes the values of `payload` to `visitor`. Returns DataLoss if the payload does not match the
// fields. The visitor then receives what can be read: the values before the first missing byte,
// text up to the end of the payload, and the values after a location outside the payload. Returns
// ResourceExhausted if the payload exceeds one of the limits above; the visitor then receives the
// values before the limit. In all cases, each OnBeginObject and OnBeginArray is followed by its
// end. Ignores bytes after the last field. Allocates nothing.
absl::Status VisitPayload(const std::vector<Field>& fields, std::span<const std::byte> payload,
                          PayloadVisitor* visitor, PayloadEncoding encoding = PayloadEncoding::kV6);

}  // namespace nettrace

#endif  // NETTRACE_CXX20
#endif  // NETTRACE_PAYLOAD_H_
