#include "tools/trace/event_json.h"

#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libnettrace-writer/core/little_endian.h"
#include "tools/base/json_members.h"
#include "tools/base/json_text.h"
#include "tools/base/text.h"
#include "tools/trace/event_name.h"

namespace trace {
namespace {

void PutOptionalGuid(base::JsonWriter* json, const char* key,
                     const std::optional<nettrace::Guid>& guid) {
  json->Key(key);
  if (guid) {
    base::PutString(json, base::FormatGuid(*guid));
  } else {
    json->Null();
  }
}

void PutLabels(base::JsonWriter* json, const nettrace::Labels& labels) {
  base::JsonMembers members;
  const auto add_number = [&members](std::string_view key, auto number) {
    members.Add(key, [number](base::JsonWriter* value) { base::PutInteger(value, number); });
  };
  if (labels.trace_id) members.AddText("TraceId", base::FormatHex(*labels.trace_id));
  if (labels.span_id) members.AddText("SpanId", absl::StrFormat("%016x", *labels.span_id));
  if (labels.opcode) add_number("OpCode", std::uint64_t{*labels.opcode});
  if (labels.keywords) members.AddText("Keywords", absl::StrFormat("0x%x", *labels.keywords));
  if (labels.level) add_number("Level", std::uint64_t{*labels.level});
  if (labels.version) add_number("Version", std::uint64_t{*labels.version});
  for (const auto& [key, value] : labels.strings) members.AddText(key, value);
  for (const auto& [key, value] : labels.integers) add_number(key, value);
  members.Put(json);
}

void PutStack(base::JsonWriter* json, std::span<const std::byte> stack, std::int32_t pointer_size) {
  json->StartArray();
  const auto size = static_cast<std::size_t>(pointer_size);
  for (; stack.size() >= size; stack = stack.subspan(size)) {
    std::uint64_t frame = 0;
    std::memcpy(&frame, stack.data(), size);
    base::PutString(json, absl::StrFormat("0x%x", nettrace::internal::LittleEndian(frame)));
  }
  json->EndArray();
}

std::string OrUnknown(const std::optional<std::uint64_t>& number) {
  return number ? absl::StrCat(*number) : "?";
}

}  // namespace

std::optional<std::uint64_t> ProcessorOf(const nettrace::Event& event) {
  if (event.processor == nettrace::kNoProcessor) return std::nullopt;
  return event.processor;
}

std::string PayloadToText(const nettrace::Event& event, PayloadJson* payloads) {
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  const absl::Status status = payloads->Put(event, &json);
  std::string text(buffer.GetString(), buffer.GetSize());
  if (!status.ok()) absl::StrAppend(&text, " (", status.message(), ")");
  return text;
}

std::string ExtrasToText(const nettrace::EventMetadata& metadata, PayloadJson* payloads) {
  std::string text;
  for (const auto& [name, value] : payloads->NotesOf(metadata).extras) {
    // Removes the quotes of text; keywords and activities are shown without quotes too.
    const bool is_text = value.starts_with('"');
    absl::StrAppend(&text, " ", name, "=", is_text ? value.substr(1, value.size() - 2) : value);
  }
  return text;
}

std::string EventToJson(const nettrace::Reader& reader, const nettrace::Event& event,
                        PayloadJson* payloads) {
  const nettrace::EventMetadata& metadata = *event.metadata;
  const RowNotes& row = payloads->NotesOf(metadata);
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  json.StartObject();
  base::PutNumber(&json, "timestamp", event.timestamp);
  base::PutText(&json, "time", base::FormatUtc(reader.TimeOf(event.timestamp)));
  base::PutText(&json, "provider", metadata.provider);
  base::PutText(&json, "name", EventName(metadata));
  base::PutNumber(&json, "id", row.id);
  base::PutNumber(&json, "version", event.version());
  base::PutNumber(&json, "level", event.level());
  base::PutText(&json, "keywords", absl::StrFormat("0x%x", event.keywords()));
  base::PutNumber(&json, "opcode", event.opcode());
  base::PutNumber(&json, "pid", event.thread->process_id);
  base::PutNumber(&json, "tid", event.thread->thread_id);
  json.Key("thread");
  if (event.thread->name) {
    base::PutString(&json, *event.thread->name);
  } else {
    json.Null();
  }
  if (!event.thread->key_values.empty()) {
    json.Key("threadInfo");
    base::JsonMembers members;
    for (const auto& [key, value] : event.thread->key_values) members.AddText(key, value);
    members.Put(&json);
  }
  base::PutNumber(&json, "cpu", ProcessorOf(event));
  PutOptionalGuid(&json, "activityId", event.labels->activity_id);
  PutOptionalGuid(&json, "relatedActivityId", event.labels->related_activity_id);
  json.Key("labels");
  PutLabels(&json, *event.labels);
  for (const auto& [name, value] : row.extras) {
    base::PutKey(&json, name);
    json.RawValue(value.data(), value.size(), rapidjson::kObjectType);
  }
  if (!event.stack.empty()) {
    json.Key("stack");
    PutStack(&json, event.stack, reader.trace().pointer_size);
  }
  json.Key("payload");
  const absl::Status status = payloads->Put(event, &json);
  payloads->PutSymbols("symbols", &json);
  if (!status.ok()) {
    json.Key("error");
    base::PutString(&json, std::string(status.message()));
  }
  json.EndObject();
  return base::Printable(std::string_view(buffer.GetString(), buffer.GetSize()));
}

std::string EventToText(const nettrace::Reader& reader, const nettrace::Event& event, bool verbose,
                        PayloadJson* payloads) {
  const nettrace::EventMetadata& metadata = *event.metadata;
  std::string line = base::FormatUtc(reader.TimeOf(event.timestamp));
  absl::StrAppendFormat(&line, " cpu %s %s %s/%s %s %s level=%d keywords=0x%x",
                        OrUnknown(ProcessorOf(event)), event.thread->name.value_or("?"),
                        OrUnknown(event.thread->process_id), OrUnknown(event.thread->thread_id),
                        metadata.provider, EventName(metadata), event.level(), event.keywords());
  if (event.opcode() != 0) absl::StrAppendFormat(&line, " opcode=%d", event.opcode());
  if (event.labels->activity_id) {
    absl::StrAppend(&line, " activity=", base::FormatGuid(*event.labels->activity_id));
  }
  if (event.labels->related_activity_id) {
    absl::StrAppend(&line, " related=", base::FormatGuid(*event.labels->related_activity_id));
  }
  if (verbose) absl::StrAppend(&line, ExtrasToText(metadata, payloads));
  absl::StrAppend(&line, " ", PayloadToText(event, payloads));
  return base::Printable(line);
}

}  // namespace trace
