#include "tools/nettrace/export/ctf/metadata_json.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <variant>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "tools/base/json_text.h"
#include "tools/base/text.h"

namespace tools::ctf {
namespace {

// Returns a JSON object with the member "type", whose value is `type`, and the members that `put`
// writes.
template <typename Put>
std::string ObjectOf(const char* type, const Put& put) {
  rapidjson::StringBuffer text;
  base::JsonWriter json(text);
  json.StartObject();
  base::PutText(&json, "type", type);
  put(&json);
  json.EndObject();
  return {text.GetString(), text.GetSize()};
}

void PutStruct(base::JsonWriter* json, const FieldClass& structure);

void PutFixedLength(base::JsonWriter* json, const char* type, const FieldClass& field) {
  base::PutText(json, "type", type);
  base::PutNumber(json, "length", field.bits);
  base::PutText(json, "byte-order", "little-endian");
  base::PutNumber(json, "alignment", 8);
}

void PutInteger(base::JsonWriter* json, const FieldClass& field) {
  PutFixedLength(json,
                 field.is_signed ? "fixed-length-signed-integer" : "fixed-length-unsigned-integer",
                 field);
  if (field.is_hex) base::PutNumber(json, "preferred-display-base", 16);
  if (field.names.empty()) return;
  json->Key("mappings");
  json->StartObject();
  for (const auto& [name, value] : field.names) {
    base::PutKey(json, name);
    // CTF 2 maps a name to a list of ranges of values. Here, the only range has one value. Raw JSON
    // keeps all 64 bits of the value.
    const std::string range = absl::StrCat("[[", value, ",", value, "]]");
    json->RawValue(range.data(), range.size(), rapidjson::kArrayType);
  }
  json->EndObject();
}

// Writes `type` with the prefix static-length- or dynamic-length-, and the length of the member
// `name`. If the length varies, writes the name of the member that holds the length instead. That
// member is in the same struct.
void PutLength(base::JsonWriter* json, const char* type, const FieldClass& field,
               const std::string& name) {
  base::PutText(json, "type", absl::StrCat(field.length ? "static" : "dynamic", "-length-", type));
  if (field.length) return base::PutNumber(json, "length", *field.length);
  json->Key("length-field-location");
  json->StartObject();
  json->Key("path");
  json->StartArray();
  base::PutString(json, MemberNames::LengthName(name));
  json->EndArray();
  json->EndObject();
}

// Writes the field class of the member `name`. The name is only used for fields with a length
// before them, so it may be "" for the elements of an array.
void PutFieldClass(base::JsonWriter* json, const FieldClass& field, const std::string& name) {
  if (field.kind == FieldClass::Kind::kStruct) return PutStruct(json, field);
  json->StartObject();
  switch (field.kind) {
    case FieldClass::Kind::kInteger:
      PutInteger(json, field);
      break;
    case FieldClass::Kind::kFloat:
      PutFixedLength(json, "fixed-length-floating-point-number", field);
      break;
    case FieldClass::Kind::kBoolean:
      PutFixedLength(json, "fixed-length-boolean", field);
      break;
    case FieldClass::Kind::kText:
      base::PutText(json, "type", "null-terminated-string");
      break;
    case FieldClass::Kind::kBytes:
      PutLength(json, "blob", field, name);
      break;
    case FieldClass::Kind::kArray:
    case FieldClass::Kind::kStruct:  // handled above
      PutLength(json, "array", field, name);
      json->Key("element-field-class");
      PutFieldClass(json, field.element[0], "");
      break;
  }
  if (field.role != nullptr) {
    json->Key("roles");
    json->StartArray();
    base::PutString(json, field.role);
    json->EndArray();
  }
  json->EndObject();
}

void PutMember(base::JsonWriter* json, const std::string& name, const FieldClass& field) {
  json->StartObject();
  base::PutText(json, "name", name);
  json->Key("field-class");
  PutFieldClass(json, field, name);
  json->EndObject();
}

void PutStruct(base::JsonWriter* json, const FieldClass& structure) {
  json->StartObject();
  base::PutText(json, "type", "structure");
  json->Key("member-classes");
  json->StartArray();
  MemberNames names;
  for (const Member& member : structure.members) {
    const std::string name = names.Add(base::ValidUtf8(member.name));
    if (member.field.HasLengthBefore()) {
      PutMember(json, MemberNames::LengthName(name), FieldClass::Unsigned(32));
    }
    PutMember(json, name, member.field);
  }
  json->EndArray();
  json->EndObject();
}

// Formats an element of a JSON text sequence (RFC 7464).
std::string Fragment(std::string_view json) {
  return absl::StrCat("\x1E", std::string(json), "\n");
}

std::string Preamble(const TraceClass& trace) {
  return ObjectOf("preamble", [&](base::JsonWriter* json) {
    base::PutNumber(json, "version", 2);
    json->Key("uuid");
    json->StartArray();
    for (const std::byte byte : trace.uuid) json->Uint(std::to_integer<unsigned>(byte));
    json->EndArray();
  });
}

std::string TraceFragment(const TraceClass& trace) {
  return ObjectOf("trace-class", [&](base::JsonWriter* json) {
    base::PutText(json, "uid", base::FormatGuid(nettrace::GuidFromUuid(trace.uuid)));
    json->Key("environment");
    json->StartObject();
    absl::flat_hash_set<std::string> names;
    for (const auto& [key, value] : trace.environment) {
      if (!names.insert(base::ValidUtf8(key)).second) continue;
      base::PutKey(json, key);
      if (const auto* const number = std::get_if<std::int64_t>(&value); number != nullptr) {
        json->Int64(*number);
      } else {
        base::PutString(json, std::get<std::string>(value));
      }
    }
    json->EndObject();
    json->Key("packet-header-field-class");
    PutStruct(json, PacketHeader());
  });
}

std::string ClockFragment(const TraceClass& trace) {
  return ObjectOf("clock-class", [&](base::JsonWriter* json) {
    base::PutText(json, "id", kClockName);
    base::PutText(json, "name", kClockName);
    if (!trace.clock_uuid.empty()) base::PutText(json, "uid", trace.clock_uuid);
    base::PutText(json, "description", kClockDescription);
    base::PutNumber(json, "frequency", kNanosecondsPerSecond);
    base::PutText(json, "origin", "unix-epoch");
    json->Key("offset-from-origin");
    json->StartObject();
    json->Key("seconds");
    json->Int64(trace.clock_start.seconds);
    json->Key("cycles");
    json->Int64(trace.clock_start.nanoseconds);
    json->EndObject();
  });
}

std::string StreamFragment(const TraceClass& trace, std::uint32_t stream_class) {
  return ObjectOf("data-stream-class", [&](base::JsonWriter* json) {
    base::PutNumber(json, "id", stream_class);
    base::PutText(json, "default-clock-class-id", kClockName);
    json->Key("packet-context-field-class");
    PutStruct(json, PacketContext(stream_class));
    json->Key("event-record-header-field-class");
    PutStruct(json, EventHeader());
    json->Key("event-record-common-context-field-class");
    PutStruct(json, trace.context);
  });
}

// Writes the name that babeltrace2 uses for a level.
void PutLogLevel(base::JsonWriter* json, std::uint8_t level) {
  constexpr std::array<const char*, 6> kLogLevels = {"",        "critical", "error",
                                                     "warning", "info",     "debug"};
  json->Key("attributes");
  json->StartObject();
  json->Key("babeltrace.org,2020");
  json->StartObject();
  base::PutText(json, "log-level", kLogLevels[level]);
  json->EndObject();
  json->EndObject();
}

}  // namespace

std::string JsonOf(const EventClass& event) {
  return ObjectOf("event-record-class", [&](base::JsonWriter* json) {
    base::PutText(json, "name", event.name);
    if (event.level) PutLogLevel(json, *event.level);
    json->Key("payload-field-class");
    PutStruct(json, event.fields);
  });
}

std::string JsonOf(const TraceClass& trace) {
  std::string text = absl::StrCat(Fragment(Preamble(trace)), Fragment(TraceFragment(trace)),
                                  Fragment(ClockFragment(trace)));
  for (std::uint32_t stream_class = 0; stream_class < kStreamClasses; ++stream_class) {
    absl::StrAppend(&text, Fragment(StreamFragment(trace, stream_class)));
    const std::vector<const std::string*>& events = trace.event_classes[stream_class];
    for (std::size_t id = 0; id < events.size(); ++id) {
      // JsonOf() has written the object without its ids. Inserts the ids before the closing brace.
      std::string_view object = *events[id];
      object.remove_suffix(1);
      absl::StrAppend(&text,
                      Fragment(absl::StrCat(std::string(object), R"(,"data-stream-class-id":)",
                                            stream_class, R"(,"id":)", id, "}")));
    }
  }
  return text;
}

}  // namespace tools::ctf
