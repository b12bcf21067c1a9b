#include "tools/trace/event_json.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/json_members.h"
#include "tools/base/json_text.h"
#include "tools/base/text.h"
#include "tools/base/text_width.h"
#include "tools/trace/common_schema.h"
#include "tools/trace/event_name.h"
#include "tools/trace/stack_weight.h"

namespace trace {
namespace {

void PutOptionalGuid(base::JsonWriter* json, const char* key,
                     const std::optional<nettrace::Guid>& guid) {
  json->PlainKey(key);
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

std::string FrameText(const nettrace::Event& event, std::span<const std::uint64_t> stack,
                      std::size_t index, const CodeMap& code) {
  std::string text;
  code.AppendCode(*event.thread, stack[index], IsReturnAddress(stack, index), &text);
  return text;
}

// Writes the members `stack` and, if `code` is not null, `frames`.
void PutStack(base::JsonWriter* json, const nettrace::Event& event, std::int32_t pointer_size,
              const CodeMap* code) {
  const std::vector<std::uint64_t> stack = StackAddresses(event, pointer_size);
  json->PlainKey("stack");
  json->StartArray();
  for (const std::uint64_t address : stack) base::PutString(json, base::FormatHexNumber(address));
  json->EndArray();
  if (code == nullptr) return;
  json->PlainKey("frames");
  json->StartArray();
  for (std::size_t i = 0; i < stack.size(); ++i) {
    base::PutString(json, FrameText(event, stack, i, *code));
  }
  json->EndArray();
}

void AppendOrUnknown(const std::optional<std::uint64_t>& number, std::string* out) {
  if (number) {
    base::AppendNumber(*number, out);
  } else {
    *out += '?';
  }
}

void AppendPayload(const nettrace::Event& event, PayloadJson* payloads, std::string* out) {
  const absl::Status status = payloads->Put(event, payloads->StartJson());
  out->append(payloads->json());
  if (!status.ok()) absl::StrAppend(out, " (", status.message(), ")");
}

// Appends a name, in quotes if it could be mistaken for another part of the line.
void AppendWord(std::string_view text, std::string* out) {
  const bool is_word = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
  });
  out->append(is_word ? std::string(text) : base::JsonString(text));
}

void AppendLogRecord(const LogRecord& record, const nettrace::Event& event, PayloadJson* payloads,
                     std::string* out) {
  out->append("severity=");
  AppendWord(record.severity_text.empty() ? SeverityName(record.severity) : record.severity_text,
             out);
  if (!record.name.empty() && record.name != EventName(*event.metadata)) {
    out->append(" name=");
    AppendWord(record.name, out);
  }
  if (record.trace_id) absl::StrAppend(out, " trace=", base::FormatHex(*record.trace_id));
  if (record.span_id) absl::StrAppendFormat(out, " span=%016x", *record.span_id);
  if (record.has_body) {
    JsonValueOutput body(ValueStyle::kForPeople, payloads->StartJson());
    PutLogBody(event, payloads, &body);
    out->append(" body=");
    out->append(payloads->json());
  }
  JsonValueOutput attributes(ValueStyle::kForPeople, payloads->StartJson());
  attributes.BeginObject(true);
  PutLogAttributes(event, payloads, &attributes);
  attributes.EndObject(true);
  if (payloads->json() == "{}") return;
  *out += ' ';
  out->append(payloads->json());
}

}  // namespace

std::optional<std::uint64_t> ProcessorOf(const nettrace::Event& event) {
  if (event.processor == nettrace::kNoProcessor) return std::nullopt;
  return event.processor;
}

std::string ExtrasToText(const nettrace::EventMetadata& metadata, PayloadJson* payloads) {
  std::string text;
  for (const auto& [name, value] : payloads->NotesOf(metadata).extras) {
    // Removes the quotes of text, because the values of `keywords` and `activity` in the same line
    // have no quotes either.
    const bool is_text = value.starts_with('"');
    absl::StrAppend(&text, " ", name, "=", is_text ? value.substr(1, value.size() - 2) : value);
  }
  return text;
}

void AppendEventJson(const nettrace::Reader& reader, const nettrace::Event& event,
                     PayloadJson* payloads, std::string* out, const CodeMap* code) {
  const nettrace::EventMetadata& metadata = *event.metadata;
  const RowNotes& row = payloads->NotesOf(metadata);
  base::JsonWriter& json = *payloads->StartJson();
  json.StartObject();
  base::PutNumber(&json, "timestamp", event.timestamp);
  base::PutText(&json, "time", payloads->times()->Format(reader.TimeOf(event.timestamp)));
  json.RawMembers(payloads->JsonOf(metadata));
  base::PutNumber(&json, "version", event.version());
  base::PutNumber(&json, "level", event.level());
  base::PutText(&json, "keywords", base::FormatHexNumber(event.keywords()));
  base::PutNumber(&json, "opcode", event.opcode());
  base::PutNumber(&json, "pid", event.thread->process_id);
  base::PutNumber(&json, "tid", event.thread->thread_id);
  json.PlainKey("thread");
  if (event.thread->name) {
    base::PutString(&json, *event.thread->name);
  } else {
    json.Null();
  }
  if (!event.thread->key_values.empty()) {
    json.PlainKey("threadInfo");
    base::JsonMembers members;
    for (const auto& [key, value] : event.thread->key_values) members.AddText(key, value);
    members.Put(&json);
  }
  base::PutNumber(&json, "cpu", ProcessorOf(event));
  PutOptionalGuid(&json, "activityId", event.labels->activity_id);
  PutOptionalGuid(&json, "relatedActivityId", event.labels->related_activity_id);
  json.PlainKey("labels");
  PutLabels(&json, *event.labels);
  for (const auto& [name, value] : row.extras) {
    base::PutKey(&json, name);
    json.RawValue(value.data(), value.size(), rapidjson::kObjectType);
  }
  if (!event.stack.empty()) PutStack(&json, event, reader.trace().pointer_size, code);
  json.PlainKey("payload");
  const absl::Status status = payloads->Put(event, &json);
  payloads->PutSymbols("symbols", &json);
  if (!status.ok()) base::PutText(&json, "error", std::string(status.message()));
  json.EndObject();
  base::AppendPrintable(payloads->json(), out);
}

std::string EventToJson(const nettrace::Reader& reader, const nettrace::Event& event,
                        PayloadJson* payloads) {
  std::string line;
  AppendEventJson(reader, event, payloads, &line);
  return line;
}

namespace {

// Appends the line of an event. Calls end_cell() at the end of each column. A column begins with
// the space that separates it from the previous column.
template <typename EndCell>
void AppendLine(std::string_view time, const nettrace::Event& event, bool verbose,
                PayloadJson* payloads, std::string* out, const EndCell& end_cell) {
  const nettrace::EventMetadata& metadata = *event.metadata;
  const std::size_t begin = out->size();
  out->append(time);
  end_cell();
  out->append(" cpu ");
  AppendOrUnknown(ProcessorOf(event), out);
  end_cell();
  *out += ' ';
  event.thread->name ? out->append(*event.thread->name) : out->append("?");
  end_cell();
  *out += ' ';
  AppendOrUnknown(event.thread->process_id, out);
  *out += '/';
  AppendOrUnknown(event.thread->thread_id, out);
  end_cell();
  *out += ' ';
  out->append(payloads->TextOf(metadata));
  end_cell();
  out->append(" level=");
  base::AppendNumber(event.level(), out);
  out->append(" keywords=");
  base::AppendHexNumber(event.keywords(), out);
  if (event.opcode() != 0) {
    out->append(" opcode=");
    base::AppendNumber(event.opcode(), out);
  }
  end_cell();
  if (event.labels->activity_id) {
    out->append(" activity=");
    base::AppendGuid(*event.labels->activity_id, out);
  }
  if (event.labels->related_activity_id) {
    out->append(" related=");
    base::AppendGuid(*event.labels->related_activity_id, out);
  }
  if (verbose) out->append(ExtrasToText(metadata, payloads));
  *out += ' ';
  if (const std::optional<LogRecord> record = ReadLogRecord(event, payloads)) {
    AppendLogRecord(*record, event, payloads, out);
  } else {
    AppendPayload(event, payloads, out);
  }
  if (!base::IsPrintableAscii(std::string_view(*out).substr(begin))) {
    const std::string line = out->substr(begin);
    out->resize(begin);
    base::AppendPrintable(line, out);
  }
}

}  // namespace

void AppendEventText(std::string_view time, const nettrace::Event& event, bool verbose,
                     PayloadJson* payloads, std::string* out) {
  AppendLine(time, event, verbose, payloads, out, [] {});
}

void AppendAlignedEventText(std::string_view time, const nettrace::Event& event, bool verbose,
                            PayloadJson* payloads, EventTextWidths* widths, std::string* out) {
  constexpr EventTextWidths kMaxWidths = {32, 9, 25, 25, 57, 41};
  std::size_t column = 0;
  std::size_t begin = out->size();
  const auto end_cell = [&] {
    const std::string cell = base::Printable(out->substr(begin));
    const std::size_t width = base::WidthOf(cell);
    std::size_t& all = (*widths)[column];
    all = std::max(all, std::min(width, kMaxWidths[column]));
    const std::string padding(all - std::min(all, width), ' ');
    out->resize(begin);
    // Aligns relative times by their decimal point.
    const bool is_right = column == 0 && (cell[0] == '+' || cell[0] == '-');
    absl::StrAppend(out, is_right ? padding : cell, is_right ? cell : padding);
    begin = out->size();
    ++column;
  };
  AppendLine(time, event, verbose, payloads, out, end_cell);
}

void AppendStackText(const nettrace::Reader& reader, const nettrace::Event& event,
                     const CodeMap& code, std::string* out) {
  const std::vector<std::uint64_t> stack = StackAddresses(event, reader.trace().pointer_size);
  for (std::size_t i = 0; i < stack.size(); ++i) {
    out->append("\n    ");
    base::AppendPrintable(FrameText(event, stack, i, code), out);
  }
  if (IsStackCut(event)) out->append("\n    ... callers may be missing");
}

std::string EventToText(const nettrace::Reader& reader, const nettrace::Event& event, bool verbose,
                        PayloadJson* payloads) {
  std::string line;
  AppendEventText(payloads->times()->Format(reader.TimeOf(event.timestamp)), event, verbose,
                  payloads, &line);
  return line;
}

}  // namespace trace
