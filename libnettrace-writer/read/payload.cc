#include "nettrace/payload.h"

#include <algorithm>

#include "absl/time/civil_time.h"
#include "libnettrace-writer/core/byte_reader.h"
#include "libnettrace-writer/core/date_time.h"
#include "libnettrace-writer/core/types.h"

namespace nettrace {
namespace {

using internal::ByteReader;

constexpr std::size_t kTextPerValue = 16;  // bytes of text that count as one value

class Walker {
 public:
  Walker(std::span<const std::byte> payload, PayloadVisitor* visitor, PayloadEncoding encoding)
      : payload_(payload), visitor_(visitor), encoding_(encoding) {}

  bool Fields(const std::vector<Field>& fields, ByteReader* reader) {
    for (const Field& field : fields) {
      visitor_->OnName(field.name);
      if (!Value(field.type, reader)) return false;
    }
    return true;
  }

  const char* error() const { return error_; }

 private:
  bool Fail(const char* error) {
    error_ = error;
    return false;
  }

  bool Value(const Type& type, ByteReader* reader) {
    if (++values_ > kMaxPayloadValues) return Placeholder("it has too many values");
    switch (type.code) {
      case TypeCode::kObject: {
        visitor_->OnBeginObject();
        const bool ok = Fields(type.fields, reader);
        visitor_->OnEndObject();
        return ok;
      }
      case TypeCode::kArray:
        return Elements(type, reader->Number<std::uint16_t>(), reader, /*ends_at_zero=*/false);
      case TypeCode::kFixedLengthArray:
        return Elements(type, type.count, reader, /*ends_at_zero=*/true);
      case TypeCode::kRelLoc:
      case TypeCode::kDataLoc:
        return Located(type, reader);
      case TypeCode::kNullTerminatedUtf16String:
        return NullTerminated(reader);
      case TypeCode::kUtf8CodeUnit:
        return Text(reader->Bytes(1), 1, *reader);
      case TypeCode::kUtf16CodeUnit:
        return Text(reader->Bytes(2), 2, *reader);
      default:
        return Scalar(type.code, reader);
    }
  }

  // Passes an empty value for a field whose name was already passed, then fails.
  bool Placeholder(const char* error) {
    visitor_->OnUtf8({});
    return Fail(error);
  }

  template <typename T>
  bool Take(ByteReader* reader, T* value) {
    *value = reader->Number<T>();
    return reader->ok() || Placeholder("it ends within a field");
  }

  template <typename T>
  bool Integer(ByteReader* reader) {
    T value;
    if (!Take(reader, &value)) return false;
    if constexpr (std::is_signed_v<T>) {
      visitor_->OnInt(value);
    } else {
      visitor_->OnUInt(value);
    }
    return true;
  }

  bool Scalar(TypeCode code, ByteReader* reader) {
    switch (code) {
      case TypeCode::kSByte:
        return Integer<std::int8_t>(reader);
      case TypeCode::kByte:
        return Integer<std::uint8_t>(reader);
      case TypeCode::kInt16:
        return Integer<std::int16_t>(reader);
      case TypeCode::kUInt16:
        return Integer<std::uint16_t>(reader);
      case TypeCode::kInt32:
        return Integer<std::int32_t>(reader);
      case TypeCode::kUInt32:
        return Integer<std::uint32_t>(reader);
      case TypeCode::kInt64:
        return Integer<std::int64_t>(reader);
      case TypeCode::kUInt64:
        return Integer<std::uint64_t>(reader);
      case TypeCode::kBoolean8: {
        std::uint8_t value;
        if (!Take(reader, &value)) return false;
        visitor_->OnBool(value != 0);
        return true;
      }
      case TypeCode::kBoolean32: {
        std::uint32_t value;
        if (!Take(reader, &value)) return false;
        visitor_->OnBool(value != 0);
        return true;
      }
      case TypeCode::kSingle: {
        float value;
        if (!Take(reader, &value)) return false;
        visitor_->OnSingle(value);
        return true;
      }
      case TypeCode::kDouble: {
        double value;
        if (!Take(reader, &value)) return false;
        visitor_->OnDouble(value);
        return true;
      }
      case TypeCode::kVarInt: {
        const std::int64_t value = reader->VarInt64();
        if (!reader->ok()) return Placeholder("it ends within a field");
        visitor_->OnInt(value);
        return true;
      }
      case TypeCode::kVarUInt: {
        const std::uint64_t value = reader->VarUInt64();
        if (!reader->ok()) return Placeholder("it ends within a field");
        visitor_->OnUInt(value);
        return true;
      }
      case TypeCode::kGuid: {
        const auto bytes = reader->Bytes(16);
        if (!reader->ok()) return Placeholder("it ends within a field");
        Guid guid;
        std::copy(bytes.begin(), bytes.end(), guid.begin());
        visitor_->OnGuid(guid);
        return true;
      }
      case TypeCode::kDateTime:
        return DateTime(reader);
      case TypeCode::kDecimal: {
        const auto bytes = reader->Bytes(16);
        if (!reader->ok()) return Placeholder("it ends within a field");
        visitor_->OnDecimal(bytes);
        return true;
      }
      default:
        return Placeholder("the size of a field's type is not known");
    }
  }

  bool DateTime(ByteReader* reader) {
    absl::Time time;
    if (encoding_ == PayloadEncoding::kLegacy) {
      const auto ticks = reader->Number<std::int64_t>();  // in units of 100 ns
      constexpr std::int64_t kTicksPerSecond = 10'000'000;
      time = absl::FromCivil(absl::CivilYear(1601), absl::UTCTimeZone()) +
             absl::Seconds(ticks / kTicksPerSecond) +
             absl::Nanoseconds(ticks % kTicksPerSecond * 100);
    } else {
      time = internal::ToTime(internal::ReadDateTime(reader));
    }
    if (!reader->ok()) return Placeholder("it ends within a field");
    visitor_->OnDateTime(time);
    return true;
  }

  bool Text(std::span<const std::byte> units, std::size_t unit, const ByteReader& reader) {
    if (!reader.ok()) return Placeholder("it ends within a field");
    // Limits the total text: many locations may refer to the same bytes.
    values_ += static_cast<int>(units.size() / kTextPerValue);
    if (unit == 1) {
      visitor_->OnUtf8(units);
    } else {
      visitor_->OnUtf16(units);
    }
    return true;
  }

  static std::span<const std::byte> UntilZero(std::span<const std::byte> units, std::size_t unit) {
    for (std::size_t at = 0; at + unit <= units.size(); at += unit) {
      const auto one = units.subspan(at, unit);
      if (std::all_of(one.begin(), one.end(), [](std::byte b) { return b == std::byte{0}; })) {
        return units.first(at);
      }
    }
    return units;
  }

  bool Elements(const Type& type, std::size_t count, ByteReader* reader, bool ends_at_zero) {
    if (!reader->ok()) return Placeholder("it ends within a field");
    if (const std::size_t unit = internal::CodeUnitSize(type.element[0]); unit != 0) {
      const auto units = reader->Bytes(count * unit);
      return Text(ends_at_zero ? UntilZero(units, unit) : units, unit, *reader);
    }
    visitor_->OnBeginArray();
    bool ok = true;
    for (std::size_t i = 0; ok && i < count; ++i) ok = Value(type.element[0], reader);
    visitor_->OnEndArray();
    return ok;
  }

  bool Located(const Type& type, ByteReader* reader) {
    const auto location = reader->Number<std::uint32_t>();
    if (!reader->ok()) return Placeholder("it ends within a field");
    const std::size_t size = location >> 16;
    std::size_t position = location & 0xFFFF;
    if (type.code == TypeCode::kRelLoc) {
      position += static_cast<std::size_t>(reader->rest().data() - payload_.data());
    }
    if (position > payload_.size() || size > payload_.size() - position) {
      return Placeholder("the location of a field is outside the payload");
    }
    const auto bytes = payload_.subspan(position, size);
    if (const std::size_t unit = internal::CodeUnitSize(type.element[0]); unit != 0) {
      return Text(UntilZero(bytes, unit), unit, *reader);
    }
    ByteReader elements(bytes);
    visitor_->OnBeginArray();
    bool ok = true;
    while (ok && !elements.empty()) ok = Value(type.element[0], &elements);
    visitor_->OnEndArray();
    return ok;
  }

  bool NullTerminated(ByteReader* reader) {
    const auto units = UntilZero(reader->rest(), 2);
    const auto rest = reader->rest();
    if (rest.size() - units.size() < 2) return Placeholder("a string is not terminated");
    reader->Bytes(units.size() + 2);
    return Text(units, 2, *reader);
  }

  std::span<const std::byte> payload_;
  PayloadVisitor* visitor_;
  const PayloadEncoding encoding_;
  const char* error_ = nullptr;
  int values_ = 0;
};

}  // namespace

absl::Status VisitPayload(const std::vector<Field>& fields, std::span<const std::byte> payload,
                          PayloadVisitor* visitor, PayloadEncoding encoding) {
  Walker walker(payload, visitor, encoding);
  ByteReader reader(payload);
  if (walker.Fields(fields, &reader)) return absl::OkStatus();
  return absl::DataLossError(walker.error());
}

}  // namespace nettrace
