// JSON with text out of files, which may be anything.
#ifndef TOOLS_COMMON_JSON_TEXT_H_
#define TOOLS_COMMON_JSON_TEXT_H_

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <span>
#include <string>
#include <string_view>

#include "libnettrace-writer/core/utf.h"

namespace tools {

using JsonWriter = rapidjson::Writer<rapidjson::StringBuffer>;

// The same text, with U+FFFD for what is not UTF-8 in it.
inline std::string ValidUtf8(std::string_view text) {
  std::string valid;
  nettrace::internal::AppendUtf8AsValid(std::as_bytes(std::span(text)), &valid);
  return valid;
}

inline void PutString(JsonWriter* json, std::string_view text) {
  const std::string valid = ValidUtf8(text);
  json->String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
}

inline void PutKey(JsonWriter* json, std::string_view key) {
  const std::string valid = ValidUtf8(key);
  json->Key(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
}

}  // namespace tools

#endif  // TOOLS_COMMON_JSON_TEXT_H_
