#include "tests/support/nettrace/random_values.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "libnettrace-writer/core/traceevent.h"
#include "nettrace/payload_encoder.h"

namespace nettrace::testing {
namespace {

// Maximum number of values in an event. RandomValues returns nullopt if the fields hold more, as
// nested fixed arrays may.
constexpr std::uint64_t kMaxValues = 2000;
// Maximum number of elements without bytes in a fixed array. Readers refuse payloads with many
// such elements.
constexpr std::uint16_t kMaxEmptyElements = 2;

std::uint64_t MinValues(const std::vector<Field>& fields);

std::uint64_t MinValues(const Type& type) {
  if (type.code == TypeCode::kObject) return MinValues(type.fields);
  if (type.code != TypeCode::kFixedLengthArray) return 1;
  const bool is_empty = internal::FixedSize(type.element.front()) == 0;
  if (is_empty && type.count > kMaxEmptyElements) return kMaxValues + 1;
  return std::min(kMaxValues + 1, type.count * MinValues(type.element.front()));
}

std::uint64_t MinValues(const std::vector<Field>& fields) {
  std::uint64_t sum = 1;
  for (const Field& field : fields) sum = std::min(kMaxValues + 1, sum + MinValues(field.type));
  return sum;
}

template <typename Unit>
std::span<const std::byte> UnitBytes(const std::basic_string<Unit>& units, bool until_zero) {
  const auto end = until_zero ? std::min(units.size(), units.find(Unit{0})) : units.size();
  return std::as_bytes(std::span(units)).first(end * sizeof(Unit));
}

// Passes each value to an encoder and to a visitor.
class Values {
 public:
  Values(Randomly* random, PayloadVisitor* visitor) : random_(random), visitor_(visitor) {}

  void Fields(const std::vector<Field>& fields, PayloadEncoder* to) {
    for (const Field& field : fields) {
      visitor_->OnName(field.name);
      Value(field.type, to);
    }
  }

 private:
  static bool IsUnit(const Type& type) {
    return type.code == TypeCode::kUtf8CodeUnit || type.code == TypeCode::kUtf16CodeUnit;
  }

  void Value(const Type& type, PayloadEncoder* to) {
    switch (type.code) {
      case TypeCode::kObject:
        visitor_->OnBeginObject();
        to->BeginObject();
        Fields(type.fields, to);
        to->EndObject();
        visitor_->OnEndObject();
        break;
      case TypeCode::kArray:
      case TypeCode::kFixedLengthArray:
        Array(type, to);
        break;
      case TypeCode::kRelLoc:
      case TypeCode::kDataLoc:
        Located(type.element.front(), to);
        break;
      case TypeCode::kNullTerminatedUtf16String: {
        std::u16string text = random_->Text16();
        text.resize(std::min(text.size(), text.find(u'\0')));
        to->Utf16(text);
        visitor_->OnUtf16(UnitBytes(text, false));
        break;
      }
      default:
        Scalar(type.code, to);
    }
  }

  void Array(const Type& type, PayloadEncoder* to) {
    const Type& element = type.element.front();
    const bool fixed = type.code == TypeCode::kFixedLengthArray;
    if (element.code == TypeCode::kUtf8CodeUnit) {
      const std::string text = fixed ? FixedText<std::string>(type.count) : random_->Text();
      to->Utf8(text);
      visitor_->OnUtf8(UnitBytes(text, fixed));
    } else if (element.code == TypeCode::kUtf16CodeUnit) {
      const std::u16string text = fixed ? FixedText<std::u16string>(type.count) : random_->Text16();
      to->Utf16(text);
      visitor_->OnUtf16(UnitBytes(text, fixed));
    } else {
      const std::size_t count = fixed ? type.count : random_->CountBelow(5);
      to->BeginArray(count);
      visitor_->OnBeginArray();
      for (std::size_t i = 0; i < count; ++i) Value(element, to);
      visitor_->OnEndArray();
      to->EndArray();
    }
  }

  // Returns text that is padded with zeros, like most text of a fixed size.
  template <typename Text>
  Text FixedText(std::size_t count) {
    Text text(random_->CountBelow(count + 1), 'a');
    for (auto& unit : text) unit = static_cast<typename Text::value_type>(' ' + random_->Below(90));
    text.resize(count);
    return text;
  }

  void Located(const Type& element, PayloadEncoder* to) {
    if (element.code == TypeCode::kUtf8CodeUnit) {
      const std::string text = random_->Text();
      to->Located(UnitBytes(text, false));
      visitor_->OnUtf8(UnitBytes(text, true));
    } else if (element.code == TypeCode::kUtf16CodeUnit) {
      const std::u16string text = random_->Text16();
      to->Located(UnitBytes(text, false));
      visitor_->OnUtf16(UnitBytes(text, true));
    } else {
      const std::vector<Field> elements(random_->CountBelow(5), Field{"", element});
      PayloadEncoder encoder(&elements);
      visitor_->OnBeginArray();
      for (const Field& field : elements) Value(field.type, &encoder);
      visitor_->OnEndArray();
      to->Located(*encoder.Finish());
    }
  }

  std::int64_t Signed(unsigned bits) {
    const auto value = static_cast<std::int64_t>(random_->Number() >> (64 - bits) >> 1);
    return random_->OneIn(2) ? value : ~value;
  }

  void Scalar(TypeCode code, PayloadEncoder* to) {
    switch (code) {
      case TypeCode::kBoolean8:
      case TypeCode::kBoolean32: {
        const bool value = random_->OneIn(2);
        to->Bool(value);
        visitor_->OnBool(value);
        break;
      }
      case TypeCode::kUtf8CodeUnit: {
        const std::string unit(1, static_cast<char>(' ' + random_->Below(90)));
        to->UInt(static_cast<unsigned char>(unit[0]));
        visitor_->OnUtf8(UnitBytes(unit, false));
        break;
      }
      case TypeCode::kUtf16CodeUnit: {
        const std::u16string unit(1, static_cast<char16_t>(' ' + random_->Below(0xD000)));
        to->UInt(unit[0]);
        visitor_->OnUtf16(UnitBytes(unit, false));
        break;
      }
      case TypeCode::kSingle: {
        const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random_->Below(~0U)));
        to->Single(value);
        visitor_->OnSingle(value);
        break;
      }
      case TypeCode::kDouble: {
        const auto value = std::bit_cast<double>(random_->Below(~0ULL));
        to->Double(value);
        visitor_->OnDouble(value);
        break;
      }
      case TypeCode::kGuid: {
        const Guid value = random_->Sixteen();
        to->GuidValue(value);
        visitor_->OnGuid(value);
        break;
      }
      case TypeCode::kSByte:
        return SignedNumber(8, to);
      case TypeCode::kInt16:
        return SignedNumber(16, to);
      case TypeCode::kInt32:
        return SignedNumber(32, to);
      case TypeCode::kByte:
        return UnsignedNumber(8, to);
      case TypeCode::kUInt16:
        return UnsignedNumber(16, to);
      case TypeCode::kUInt32:
        return UnsignedNumber(32, to);
      case TypeCode::kUInt64:
      case TypeCode::kVarUInt:
        return UnsignedNumber(64, to);
      default:
        return SignedNumber(64, to);
    }
  }

  void SignedNumber(unsigned bits, PayloadEncoder* to) {
    const std::int64_t value = Signed(bits);
    to->Int(value);
    visitor_->OnInt(value);
  }

  void UnsignedNumber(unsigned bits, PayloadEncoder* to) {
    const std::uint64_t value = random_->Number() >> (64 - bits);
    to->UInt(value);
    visitor_->OnUInt(value);
  }

  Randomly* random_;
  PayloadVisitor* visitor_;
};

}  // namespace

std::string JsonString(std::string_view utf8) {
  std::string text = "\"";
  for (const char c : utf8) {
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ') {
      text += absl::StrFormat("\\u%04x", static_cast<unsigned char>(c));
    } else {
      text += c;
    }
  }
  return text + "\"";
}

std::string JsonGuid(const Guid& guid) {
  std::string text = "\"";
  const Guid uuid = GuidFromUuid(guid);
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += absl::StrFormat("%02x", static_cast<unsigned>(uuid[i]));
  }
  return text + "\"";
}

void JsonText::Put(std::string_view value) {
  const char last = text_.back();
  if (last != '{' && last != '[' && last != ':') text_ += ',';
  text_ += value;
}

void JsonText::OnName(std::string_view name) {
  Put(JsonString(name));
  text_ += ':';
}

void JsonText::Floating(double value) {
  if (std::isfinite(value)) {
    std::string number = absl::StrFormat("%.17g", value);
    // A floating-point number must not look like an integer.
    if (number.find_first_of(".e") == std::string::npos) number += ".0";
    Put(number);
  } else {
    Put(std::isnan(value) ? "\"NaN\"" : value < 0 ? "\"-Infinity\"" : "\"Infinity\"");
  }
}

void JsonText::OnDateTime(absl::Time utc) { Put(JsonString(absl::FormatTime(utc))); }

void JsonText::OnDecimal(std::span<const std::byte> bytes) {
  Put(std::to_string(bytes.size()) + " bytes");
}

void JsonText::OnUtf8(std::span<const std::byte> units) {
  Put(JsonString({reinterpret_cast<const char*>(units.data()), units.size()}));
}

void JsonText::OnUtf16(std::span<const std::byte> units) {
  std::string text = "\"";
  for (; units.size() >= 2; units = units.subspan(2)) {
    text += absl::StrFormat("\\u%02x%02x", static_cast<unsigned>(units[1]),
                            static_cast<unsigned>(units[0]));
  }
  Put(text + "\"");
}

std::optional<RandomPayload> RandomValues(Randomly* random, const std::vector<Field>& fields) {
  if (MinValues(fields) > kMaxValues) return std::nullopt;
  // A payload can be too large by chance; another one for the same fields may fit.
  for (int attempt = 0; attempt < 100; ++attempt) {
    JsonText json;
    PayloadEncoder encoder(&fields);
    Values(random, &json).Fields(fields, &encoder);
    const auto payload = encoder.Finish();
    if (!payload.ok() && !absl::StrContains(payload.status().message(), "64 KiB")) {
      return RandomPayload{{}, payload.status().ToString()};  // Not JSON, so the test fails.
    }
    if (!payload.ok() || payload->size() > internal::traceevent::kMaxPayloadSize) continue;
    return RandomPayload{{payload->begin(), payload->end()}, json.Finish()};
  }
  return std::nullopt;
}

}  // namespace nettrace::testing
