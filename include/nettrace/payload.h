// Walking the payload of an event by its schema.
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

// A DateTime is 8 Int16s in V6, and an 8-byte FILETIME in V4 and V5. All else is the same.
enum class PayloadEncoding : std::uint8_t { kV6, kLegacy };

// Receives each value, in the order of the fields. Views are valid during the call only.
class PayloadVisitor {
 public:
  virtual ~PayloadVisitor() = default;
  // The name of the field whose value comes next; elements of arrays have none.
  virtual void OnName(std::string_view name) = 0;
  virtual void OnBeginObject() = 0;
  virtual void OnEndObject() = 0;
  virtual void OnBeginArray() = 0;
  virtual void OnEndArray() = 0;
  virtual void OnInt(std::int64_t value) = 0;
  virtual void OnUInt(std::uint64_t value) = 0;
  virtual void OnSingle(float value) = 0;
  virtual void OnDouble(double value) = 0;
  virtual void OnBool(bool value) = 0;
  virtual void OnGuid(const Guid& value) = 0;
  virtual void OnDateTime(absl::Time utc) = 0;
  // The 16 bytes of a .NET Decimal, whose layout the specification does not give.
  virtual void OnDecimal(std::span<const std::byte> bytes) = 0;
  // Code units, alone or in arrays, as the file has them: not always valid UTF-8 and UTF-16LE. Text
  // of fixed length, or at a location, ends at its first zero unit.
  virtual void OnUtf8(std::span<const std::byte> units) = 0;
  virtual void OnUtf16(std::span<const std::byte> units) = 0;
};

// A payload of this many values is refused: some hostile schemas describe more than fit in memory.
inline constexpr int kMaxPayloadValues = 1 << 20;

// Passes the values of `payload` to `visitor`. DataLoss if the payload does not fit its fields: the
// values before were passed on then, and each object and array that was begun was ended. Bytes
// after the last field are ignored. Allocates nothing.
absl::Status VisitPayload(const std::vector<Field>& fields, std::span<const std::byte> payload,
                          PayloadVisitor* visitor, PayloadEncoding encoding = PayloadEncoding::kV6);

}  // namespace nettrace

#endif  // NETTRACE_CXX20
#endif  // NETTRACE_PAYLOAD_H_
