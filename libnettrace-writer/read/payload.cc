#include "nettrace/payload.h"

#include <algorithm>

#include "absl/time/civil_time.h"
#include "libnettrace-writer/core/byte_reader.h"
#include "libnettrace-writer/core/date_time.h"
#include "libnettrace-writer/core/types.h"

namespace nettrace {
namespace {

using internal::ByteReader;

constexpr char kEnds[] = "the payload ends within a field";
constexpr char kTooManyValues[] =
    "the payload has more than 1048576 values, the limit of this reader";
constexpr char kTooManyEmptyValues[] =
    "the payload has more values without bytes than its size in bytes plus 64, the limit of this "
    "reader";
constexpr char kTooMuchLocated[] =
    "the payload's locations refer to more bytes than 4 times its size plus 4096, the limit of "
    "this reader";
static_assert(kMaxPayloadValues == 1'048'576 && kMaxEmptyValues == 64 && kMaxReadsOfByte == 4 &&
              kMaxSharedBytes == 4096);

class Walker {
 public:
  Walker(std::span<const std::byte> payload, PayloadVisitor* visitor, PayloadEncoding encoding)
      : payload_(payload), visitor_(visitor), encoding_(encoding) {}

  // Passes the values of the fields to the visitor. Returns false if later values cannot be read:
  // their position is unknown, or a limit is exceeded.
  bool Fields(const std::vector<Field>& fields, ByteReader* reader) {
    for (const Field& field : fields) {
      visitor_->OnName(field.name);
      if (!Value(field.type, reader)) return false;
    }
    return true;
  }

  absl::Status status() const {
    if (over_limit_) return absl::ResourceExhaustedError(error_);
    return error_ == nullptr ? absl::OkStatus() : absl::DataLossError(error_);
  }

 private:
  // Stores the error unless there was one before. Returns false, so that callers can return the
  // result.
  bool Fail(const char* error) {
    if (error_ == nullptr) error_ = error;
    return false;
  }

  bool Exceeds(const char* limit) {
    over_limit_ = true;
    error_ = limit;
    return false;
  }

  bool Value(const Type& type, ByteReader* reader) {
    if (++values_ > kMaxPayloadValues) {
      visitor_->OnUnreadable();
      return Exceeds(kTooManyValues);
    }
    const std::size_t before = reader->size();
    if (!ValueOf(type, reader)) return false;
    if (reader->size() == before && ++empty_values_ > payload_.size() + kMaxEmptyValues) {
      return Exceeds(kTooManyEmptyValues);
    }
    return true;
  }

  bool ValueOf(const Type& type, ByteReader* reader) {
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
        return Units(1, 1, reader, /*ends_at_zero=*/false);
      case TypeCode::kUtf16CodeUnit:
        return Units(1, 2, reader, /*ends_at_zero=*/false);
      default:
        return Scalar(type.code, reader);
    }
  }

  // Reports an unreadable value to the visitor, which has already received the field's name.
  // Returns false.
  bool Unreadable(const char* error) {
    visitor_->OnUnreadable();
    return Fail(error);
  }

  template <typename T>
  bool Take(ByteReader* reader, T* value) {
    *value = reader->Number<T>();
    return reader->ok() || Unreadable(kEnds);
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
        visitor_->OnBool32(value);
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
        if (!reader->ok()) return Unreadable(kEnds);
        visitor_->OnInt(value);
        return true;
      }
      case TypeCode::kVarUInt: {
        const std::uint64_t value = reader->VarUInt64();
        if (!reader->ok()) return Unreadable(kEnds);
        visitor_->OnUInt(value);
        return true;
      }
      case TypeCode::kGuid: {
        const auto bytes = reader->Bytes(16);
        if (!reader->ok()) return Unreadable(kEnds);
        Guid guid;
        std::copy(bytes.begin(), bytes.end(), guid.begin());
        visitor_->OnGuid(guid);
        return true;
      }
      case TypeCode::kDateTime:
        return DateTime(reader);
      case TypeCode::kDecimal: {
        const auto bytes = reader->Bytes(16);
        if (!reader->ok()) return Unreadable(kEnds);
        visitor_->OnDecimal(bytes);
        return true;
      }
      default:
        return Unreadable("the size of a field's type is not known");
    }
  }

  bool DateTime(ByteReader* reader) {
    absl::Time time;
    if (encoding_ == PayloadEncoding::kLegacy) {
      const auto ticks = reader->Number<std::int64_t>();  // in units of 100 ns since 1601
      constexpr std::int64_t kTicksPerSecond = 10'000'000;
      time = absl::FromCivil(absl::CivilYear(1601), absl::UTCTimeZone()) +
             absl::Seconds(ticks / kTicksPerSecond) +
             absl::Nanoseconds(ticks % kTicksPerSecond * 100);
    } else {
      time = internal::ToTime(internal::ReadDateTime(reader));
    }
    if (!reader->ok()) return Unreadable(kEnds);
    visitor_->OnDateTime(time);
    return true;
  }

  bool Text(std::span<const std::byte> units, std::size_t unit) {
    if (unit == 1) {
      visitor_->OnUtf8(units);
    } else {
      visitor_->OnUtf16(units);
    }
    return true;
  }

  // Passes `count` code units to the visitor, or only those before the first 0 if `ends_at_zero` is
  // true. If the payload has fewer than `count`, passes the code units that it has, and returns
  // false.
  bool Units(std::size_t count, std::size_t unit, ByteReader* reader, bool ends_at_zero) {
    const std::size_t present = std::min(count, reader->size() / unit);
    if (present == 0 && count != 0) return Unreadable(kEnds);
    const auto units = reader->Bytes(present * unit);
    Text(ends_at_zero ? UntilZero(units, unit) : units, unit);
    return present == count || Fail(kEnds);
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
    if (!reader->ok()) return Unreadable(kEnds);
    if (const std::size_t unit = internal::CodeUnitSize(type.element[0]); unit != 0) {
      return Units(count, unit, reader, ends_at_zero);
    }
    visitor_->OnBeginArray();
    bool ok = true;
    for (std::size_t i = 0; ok && i < count; ++i) ok = Value(type.element[0], reader);
    visitor_->OnEndArray();
    return ok;
  }

  bool Located(const Type& type, ByteReader* reader) {
    const auto location = reader->Number<std::uint32_t>();
    if (!reader->ok()) return Unreadable(kEnds);
    const std::size_t size = location >> 16;
    std::size_t position = location & 0xFFFF;
    if (type.code == TypeCode::kRelLoc) {
      position += static_cast<std::size_t>(reader->rest().data() - payload_.data());
    }
    if (position > payload_.size() || size > payload_.size() - position) {
      Unreadable("the location of a field is outside the payload");
      return true;  // later fields can be read: they follow the location, not the data
    }
    located_bytes_ += size;
    if (located_bytes_ > kMaxReadsOfByte * payload_.size() + kMaxSharedBytes) {
      visitor_->OnUnreadable();
      return Exceeds(kTooMuchLocated);
    }
    const auto bytes = payload_.subspan(position, size);
    if (const std::size_t unit = internal::CodeUnitSize(type.element[0]); unit != 0) {
      return Text(UntilZero(bytes, unit), unit);
    }
    ByteReader elements(bytes);
    visitor_->OnBeginArray();
    while (!elements.empty() && Value(type.element[0], &elements)) {
    }
    visitor_->OnEndArray();
    return !over_limit_;
  }

  // Passes UTF-16 text up to its terminator to the visitor. If the text has no terminator, passes
  // all whole code units of the payload's rest, and returns false.
  bool NullTerminated(ByteReader* reader) {
    constexpr std::size_t kUnit = 2;
    const auto rest = reader->rest();
    const auto units = UntilZero(rest.first(rest.size() - rest.size() % kUnit), kUnit);
    if (units.empty() && rest.size() < kUnit) return Unreadable("a string is not terminated");
    Text(units, kUnit);
    if (rest.size() - units.size() < kUnit) {
      reader->Bytes(rest.size());
      return Fail("a string is not terminated");
    }
    reader->Bytes(units.size() + kUnit);
    return true;
  }

  std::span<const std::byte> payload_;
  PayloadVisitor* visitor_;
  const PayloadEncoding encoding_;
  const char* error_ = nullptr;
  bool over_limit_ = false;
  int values_ = 0;
  std::size_t empty_values_ = 0;
  std::size_t located_bytes_ = 0;
};

}  // namespace

absl::Status VisitPayload(const std::vector<Field>& fields, std::span<const std::byte> payload,
                          PayloadVisitor* visitor, PayloadEncoding encoding) {
  Walker walker(payload, visitor, encoding);
  ByteReader reader(payload);
  walker.Fields(fields, &reader);
  return walker.status();
}

}  // namespace nettrace
