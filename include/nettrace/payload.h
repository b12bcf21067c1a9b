// Walking the payload of an event by its schema.
#ifndef NETTRACE_PAYLOAD_H_
#define NETTRACE_PAYLOAD_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "nettrace/schema.h"

namespace nettrace {

// V4 and V5 payloads differ from V6's in DateTime: an 8-byte FILETIME instead of 8 Int16s.
enum class PayloadEncoding : std::uint8_t { kV6, kLegacy };

// Is told each value in the order of the fields. Views are valid during the call only.
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
  // 16 bytes as the file has them: nothing says what they are but that .NET wrote a Decimal.
  virtual void OnDecimal(std::span<const std::byte> bytes) = 0;
  // Arrays of code units, and single ones, as text. The bytes are what the file has: UTF-8 and
  // UTF-16LE if all is well. Text of fixed length, or at a location, ends at its first zero unit.
  virtual void OnUtf8(std::span<const std::byte> units) = 0;
  virtual void OnUtf16(std::span<const std::byte> units) = 0;
};

// A payload of this many values is refused: some hostile schemas describe more than fit in memory.
inline constexpr int kMaxPayloadValues = 1 << 20;

// Tells `visitor` the values of `payload`. DataLoss if it does not fit its fields; the values
// before have been told then, and every object and array begun has been ended. Bytes behind the
// last field are passed over. Allocates nothing.
absl::Status VisitPayload(const std::vector<Field>& fields, std::span<const std::byte> payload,
                          PayloadVisitor* visitor, PayloadEncoding encoding = PayloadEncoding::kV6);

}  // namespace nettrace

#endif  // NETTRACE_PAYLOAD_H_
