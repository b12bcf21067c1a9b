// Writes JSON. Text from files may be any bytes: bytes that are not UTF-8 become U+FFFD. Keys that
// the programs define are in camelCase.
#ifndef TOOLS_BASE_JSON_TEXT_H_
#define TOOLS_BASE_JSON_TEXT_H_

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "libnettrace-writer/core/utf.h"
#include "tools/base/text.h"

namespace base {

// A rapidjson::Writer with faster functions for text that needs no escapes, and for values that are
// already JSON.
class JsonWriter : public rapidjson::Writer<rapidjson::StringBuffer> {
  using Base = rapidjson::Writer<rapidjson::StringBuffer>;

 public:
  JsonWriter() = default;
  explicit JsonWriter(rapidjson::StringBuffer& out) : Base(out) {}

  // Writes a string or key. IsPlainInJson must be true for `text`.
  void PlainString(std::string_view text) {
    Prefix(rapidjson::kStringType);
    char* const to = os_->Push(text.size() + 2);
    to[0] = '"';
    text.copy(to + 1, text.size());
    to[text.size() + 1] = '"';
  }
  void PlainKey(std::string_view key) { PlainString(key); }
  // Writes `json`, which must be a complete JSON value.
  bool RawValue(const char* json, std::size_t size, rapidjson::Type type) {
    Prefix(type);
    std::memcpy(os_->Push(size), json, size);
    return true;
  }
  // Writes members of the open object. `members` is the JSON of one or more members, with a comma
  // between two members.
  void RawMembers(std::string_view members) {
    Prefix(rapidjson::kStringType);
    members.copy(os_->Push(members.size()), members.size());
    ++level_stack_.Top<Level>()->valueCount;
  }
};

// Returns `text` with U+FFFD in place of bytes that are not UTF-8.
inline std::string ValidUtf8(std::string_view text) {
  std::string valid;
  nettrace::internal::AppendUtf8AsValid(std::as_bytes(std::span(text)), &valid);
  return valid;
}

inline void PutString(JsonWriter* json, std::string_view text) {
  if (IsPlainInJson(text)) return json->PlainString(text);
  const std::string valid = ValidUtf8(text);
  json->String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
}

inline void PutKey(JsonWriter* json, std::string_view key) {
  if (IsPlainInJson(key)) return json->PlainKey(key);
  const std::string valid = ValidUtf8(key);
  json->Key(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
}

// Returns `text` as a string of JSON.
inline std::string JsonString(std::string_view text) {
  rapidjson::StringBuffer buffer;
  JsonWriter json(buffer);
  PutString(&json, text);
  return std::string(buffer.GetString(), buffer.GetSize());
}

// Largest number up to which doubles represent all whole numbers. JavaScript and jq 1.6 have only
// doubles.
inline constexpr std::int64_t kMaxExactNumber = std::int64_t{1} << 53;

// Writes a whole number. A number beyond +-kMaxExactNumber becomes a string of digits, because
// readers with doubles would round the number.
inline void PutInteger(JsonWriter* json, std::uint64_t number) {
  if (number <= static_cast<std::uint64_t>(kMaxExactNumber)) {
    json->Uint64(number);
  } else {
    PutString(json, std::to_string(number));
  }
}
inline void PutInteger(JsonWriter* json, std::int64_t number) {
  if (number >= -kMaxExactNumber && number <= kMaxExactNumber) {
    json->Int64(number);
  } else {
    PutString(json, std::to_string(number));
  }
}

// The following two functions write a member of an object. IsPlainInJson must be true for `key`.
// PutNumber writes null if `number` has no value.
inline void PutText(JsonWriter* json, std::string_view key, std::string_view text) {
  json->PlainKey(key);
  PutString(json, text);
}
inline void PutNumber(JsonWriter* json, std::string_view key,
                      const std::optional<std::uint64_t>& number) {
  json->PlainKey(key);
  if (number) {
    PutInteger(json, *number);
  } else {
    json->Null();
  }
}

// Prints the JSON text on standard output, as a line.
inline void PrintJsonLine(const rapidjson::StringBuffer& json) {
  std::puts(Printable(std::string_view(json.GetString(), json.GetSize())).c_str());
}

// Writes the shortest text that reads back as the same value. It has a point or an exponent, so
// that readers see that it is not an integer. Infinities and NaN are strings, because JSON has no
// numbers for them. The text has an exponent if more than 18 digits would be before or after its
// point, because Perfetto reads these digits as a 64-bit integer.
template <typename Float>
void PutFloat(JsonWriter* json, Float value) {
  if (!std::isfinite(value)) {
    json->String(std::isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
    return;
  }
  constexpr std::ptrdiff_t kMaxDigits = 18;
  char text[40];
  char* end = std::to_chars(text, text + sizeof text - 2, value).ptr;
  const char* const digits = text + (text[0] == '-' ? 1 : 0);
  const char* const point = std::find_if(digits, static_cast<const char*>(end),
                                         [](char c) { return c == '.' || c == 'e'; });
  if (point == end && end - digits <= kMaxDigits) {
    *end++ = '.';
    *end++ = '0';
  } else if (point - digits > kMaxDigits || (*point == '.' && end - point - 1 > kMaxDigits)) {
    end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr;
  }
  json->RawValue(text, static_cast<std::size_t>(end - text), rapidjson::kNumberType);
}

}  // namespace base

#endif  // TOOLS_BASE_JSON_TEXT_H_
