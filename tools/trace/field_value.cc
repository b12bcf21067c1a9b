#include "tools/trace/field_value.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "eventheader/decoder.h"
#include "eventheader/internal/field_rules.h"
#include "libnettrace-writer/core/little_endian.h"
#include "libnettrace-writer/core/utf.h"
#include "nettrace/schema.h"
#include "tools/base/text.h"
#include "tools/trace/value_output.h"

namespace trace {
namespace {

using eh::Encoding;
using eh::Format;

// Returns the low `size` bytes of `value`, sign-extended.
std::int64_t AsSigned(std::uint64_t value, std::size_t size) {
  const auto unused = static_cast<int>(64 - 8 * size);
  return static_cast<std::int64_t>(value << unused) >> unused;
}

template <typename Output>
void PutTime(std::int64_t seconds, Output* out) {
  constexpr std::int64_t kYear0 = -62'167'219'200;
  constexpr std::int64_t kYear10000 = 253'402'300'800;
  if (seconds < kYear0 || seconds >= kYear10000) {
    out->Whole(seconds);
  } else {
    out->Text(absl::FormatTime("%E4Y-%m-%dT%H:%M:%SZ", absl::FromUnixSeconds(seconds),
                               absl::UTCTimeZone()));
  }
}

// Writes the Unicode character with the number `value`. The first 256 characters of Unicode are
// those of Latin-1, so the function also accepts characters of string8.
template <typename Output>
void PutCharacter(std::uint64_t value, Output* out) {
  std::array<std::byte, sizeof(std::uint32_t)> unit;
  nettrace::internal::StoreLittleEndian(static_cast<std::uint32_t>(value), unit.data());
  std::vector<std::byte> utf16;
  nettrace::internal::AppendUtf32AsUtf16(unit, /*little_endian=*/true, &utf16);
  std::string text;
  nettrace::internal::AppendUtf16AsUtf8(utf16, &text);
  out->Text(text);
}

// Writes a number of `size` bytes in `format`, which must be valid for numbers of this size.
template <typename Output>
void PutNumberAs(Format format, std::uint64_t value, std::size_t size, Output* out) {
  switch (format) {
    case Format::kSignedInt:
    case Format::kPid:
      out->Whole(AsSigned(value, size));
      break;
    case Format::kHexInt:
      out->Text(base::FormatHexNumber(value));
      break;
    case Format::kErrno:
      out->Errno(AsSigned(value, size));
      break;
    case Format::kTime:
      PutTime(AsSigned(value, size), out);
      break;
    case Format::kBoolean:
      if (value > 1) {
        out->Whole(value);
      } else {
        out->Bool(value == 1);
      }
      break;
    case Format::kFloat:
      if (size == 8) {
        out->Double(std::bit_cast<double>(value));
      } else {
        out->Single(std::bit_cast<float>(static_cast<std::uint32_t>(value)));
      }
      break;
    case Format::kString8:
    case Format::kStringUtf:
      PutCharacter(value, out);
      break;
    default:
      out->Whole(value);
      break;
  }
}

}  // namespace

void PutWholeNumber(std::uint64_t value, ValueStyle style, base::JsonWriter* json) {
  if (style == ValueStyle::kForPeople) {
    json->Uint64(value);
  } else {
    base::PutInteger(json, value);
  }
}

void PutWholeNumber(std::int64_t value, ValueStyle style, base::JsonWriter* json) {
  if (style == ValueStyle::kForPeople) {
    json->Int64(value);
  } else {
    base::PutInteger(json, value);
  }
}

void PutUnreadable(ValueStyle style, base::JsonWriter* json) {
  constexpr std::string_view kUnreadable = "unreadable";
  if (style == ValueStyle::kForPeople) {
    json->RawValue(kUnreadable.data(), kUnreadable.size(), rapidjson::kStringType);
  } else {
    json->Null();
  }
}

const char* ErrnoName(std::uint64_t value) {
  const int number = static_cast<int>(value);
  const bool is_int = value <= 0x7FFF'FFFF;
  return is_int && number != 0 ? strerrorname_np(number) : nullptr;
}

void JsonValueOutput::Errno(std::int64_t value) {
  const char* name = ErrnoName(static_cast<std::uint64_t>(value));
  if (name != nullptr && style_ == ValueStyle::kForPeople) {
    Text(absl::StrCat(value, " (", name, ")"));
  } else {
    Whole(value);
  }
}

template <typename Output>
void PutFieldNumber(Encoding encoding, Format format, std::uint64_t value, Output* out) {
  const std::size_t size = eh::internal::FixedSize(encoding);
  if (size < 8) value &= (std::uint64_t{1} << 8 * size) - 1;
  PutNumberAs(eh::ValueFormat(encoding, format, size), value, size, out);
}

template <typename Output>
void PutFieldBytes(Encoding encoding, Format format, std::span<const std::byte> bytes,
                   Output* out) {
  format = eh::ValueFormat(encoding, format, bytes.size());
  // If the size does not fit the encoding, shows the bytes. The file may be cut, or the definition
  // of the field may contradict its type.
  const std::size_t size = eh::internal::FixedSize(encoding);
  if (size != 0 && bytes.size() != size) format = Format::kHexBytes;
  switch (format) {
    case Format::kDefault:
      out->Null();
      break;
    case Format::kUuid: {
      std::array<std::byte, 16> uuid;
      std::copy(bytes.begin(), bytes.end(), uuid.begin());
      out->Text(base::FormatGuid(nettrace::GuidFromUuid(uuid)));
      break;
    }
    case Format::kIpAddress: {
      char text[INET6_ADDRSTRLEN] = "";
      inet_ntop(bytes.size() == 4 ? AF_INET : AF_INET6, bytes.data(), text, sizeof text);
      out->Text(text);
      break;
    }
    case Format::kUnsignedInt:
    case Format::kSignedInt:
    case Format::kHexInt:
    case Format::kErrno:
    case Format::kPid:
    case Format::kTime:
    case Format::kBoolean:
    case Format::kFloat:
    case Format::kPort:
      PutNumberAs(format, eh::ReadUnsigned(bytes, /*little_endian=*/format != Format::kPort),
                  bytes.size(), out);
      break;
    case Format::kStringUtf: {
      std::string text;
      nettrace::internal::AppendUtf8AsValid(bytes, &text);
      out->Text(text);
      break;
    }
    default:
      out->Bytes(bytes);
      break;
  }
}

template void PutFieldNumber(Encoding, Format, std::uint64_t, JsonValueOutput*);
template void PutFieldNumber(Encoding, Format, std::uint64_t, ValueOutput*);
template void PutFieldBytes(Encoding, Format, std::span<const std::byte>, JsonValueOutput*);
template void PutFieldBytes(Encoding, Format, std::span<const std::byte>, ValueOutput*);

}  // namespace trace
