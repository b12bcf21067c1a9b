// Writes members of JSON objects. `list` and `watch` write the members that describe a tracepoint;
// `catalog` and `name` write only those for the parts of its name.
#ifndef TOOLS_EVENTHEADER_TRACEPOINT_JSON_H_
#define TOOLS_EVENTHEADER_TRACEPOINT_JSON_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "tools/base/json_text.h"
#include "tools/eventheader/tracepoints.h"

namespace tools {

inline void PutTextOrNull(base::JsonWriter* json, const char* key,
                          const std::optional<std::string_view>& text) {
  json->Key(key);
  if (text) {
    base::PutString(json, *text);
  } else {
    json->Null();
  }
}

// Writes the parts of an EventHeader name, or null for each part if `parts` has no value.
inline void PutName(base::JsonWriter* json, const std::optional<eh::TracepointName>& parts) {
  PutTextOrNull(json, "provider", parts ? std::optional(parts->provider) : std::nullopt);
  base::PutNumber(json, "level", parts ? std::optional<std::uint64_t>(parts->level) : std::nullopt);
  const std::string keyword = parts ? absl::StrFormat("0x%x", parts->keyword) : "";
  PutTextOrNull(json, "keyword", parts ? std::optional<std::string_view>(keyword) : std::nullopt);
  PutTextOrNull(json, "group", parts ? eh::FindOption(parts->options, 'G') : std::nullopt);
  PutTextOrNull(json, "options", parts ? std::optional(parts->options) : std::nullopt);
}

// Writes the members of the tracepoint's JSON object, which the caller has started.
inline void PutTracepoint(base::JsonWriter* json, const Tracepoint& tracepoint) {
  const auto parts = tracepoint.EventHeader();
  base::PutText(json, "name", tracepoint.name);
  json->Key("eventHeader");
  json->Bool(parts.has_value());
  PutName(json, parts);
  PutTextOrNull(
      json, "fields",
      tracepoint.fields ? std::optional<std::string_view>(*tracepoint.fields) : std::nullopt);
  base::PutText(json, "usedBy", tracepoint.used_by);
  base::PutNumber(json, "hits", tracepoint.hits);
  base::PutText(json, "transport", tracepoint.Transport());
  base::PutNumber(json, "services", tracepoint.services);
}

}  // namespace tools

#endif  // TOOLS_EVENTHEADER_TRACEPOINT_JSON_H_
