#include "tools/nettrace/event_json.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libnettrace-writer/core/utf.h"
#include "nettrace/payload.h"
#include "tools/collector/convert/event_schema.h"
#include "tools/common/json_text.h"

namespace tools {
namespace {

std::string Hex(std::span<const std::byte> bytes) {
  std::string text;
  for (std::byte byte : bytes) absl::StrAppendFormat(&text, "%02x", static_cast<unsigned>(byte));
  return text;
}

class JsonVisitor : public nettrace::PayloadVisitor {
 public:
  explicit JsonVisitor(JsonWriter* json) : json_(json) {}

  void Name(std::string_view name) override { PutKey(json_, name); }
  void BeginObject() override { json_->StartObject(); }
  void EndObject() override { json_->EndObject(); }
  void BeginArray() override { json_->StartArray(); }
  void EndArray() override { json_->EndArray(); }
  void Int(std::int64_t value) override { json_->Int64(value); }
  void UInt(std::uint64_t value) override { json_->Uint64(value); }
  void Single(float value) override { Floating(value); }
  void Double(double value) override { Floating(value); }
  void Bool(bool value) override { json_->Bool(value); }
  void GuidValue(const nettrace::Guid& value) override { PutString(json_, FormatGuid(value)); }
  void DateTime(absl::Time utc) override { PutString(json_, FormatUtc(utc)); }
  void Decimal(std::span<const std::byte> bytes) override { PutString(json_, Hex(bytes)); }
  void Utf8(std::span<const std::byte> units) override {
    text_.clear();
    nettrace::internal::AppendUtf8AsValid(units, &text_);
    json_->String(text_.data(), static_cast<rapidjson::SizeType>(text_.size()));
  }
  void Utf16(std::span<const std::byte> units) override {
    text_.clear();
    nettrace::internal::AppendUtf16AsUtf8(units, &text_);
    json_->String(text_.data(), static_cast<rapidjson::SizeType>(text_.size()));
  }

 private:
  // The shortest text that reads back as the same value; JSON has none for those that are not
  // finite.
  template <typename T>
  void Floating(T value) {
    if (!std::isfinite(value)) {
      json_->String(std::isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
      return;
    }
    char text[40];
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    std::string_view number(text, static_cast<std::size_t>(end - text));
    // A whole one is to be seen to be no integer.
    if (number.find_first_of(".e") == std::string_view::npos) {
      std::memcpy(end, ".0", 2);
      number = std::string_view(text, number.size() + 2);
    }
    json_->RawValue(number.data(), number.size(), rapidjson::kNumberType);
  }

  JsonWriter* json_;
  std::string text_;
};

absl::Status PutPayload(JsonWriter* json, const nettrace::Event& event) {
  json->StartObject();
  JsonVisitor visitor(json);
  absl::Status status = nettrace::VisitPayload(event.metadata->fields, event.payload, &visitor,
                                               event.payload_encoding);
  json->EndObject();
  return status;
}

void PutOptionalGuid(JsonWriter* json, const char* key, const std::optional<nettrace::Guid>& guid) {
  json->Key(key);
  if (guid) {
    PutString(json, FormatGuid(*guid));
  } else {
    json->Null();
  }
}

void PutOptionalNumber(JsonWriter* json, const char* key,
                       const std::optional<std::uint64_t>& number) {
  json->Key(key);
  if (number) {
    json->Uint64(*number);
  } else {
    json->Null();
  }
}

void PutLabels(JsonWriter* json, const nettrace::Labels& labels) {
  json->StartObject();
  if (labels.trace_id) {
    json->Key("TraceId");
    PutString(json, Hex(*labels.trace_id));
  }
  if (labels.span_id) {
    json->Key("SpanId");
    PutString(json, absl::StrFormat("%016x", *labels.span_id));
  }
  if (labels.opcode) {
    json->Key("OpCode");
    json->Uint(*labels.opcode);
  }
  if (labels.keywords) {
    json->Key("Keywords");
    PutString(json, absl::StrFormat("0x%x", *labels.keywords));
  }
  if (labels.level) {
    json->Key("Level");
    json->Uint(*labels.level);
  }
  if (labels.version) {
    json->Key("Version");
    json->Uint(*labels.version);
  }
  for (const auto& [key, value] : labels.strings) {
    PutKey(json, key);
    PutString(json, value);
  }
  for (const auto& [key, value] : labels.integers) {
    PutKey(json, key);
    json->Int64(value);
  }
  json->EndObject();
}

void PutStack(JsonWriter* json, std::span<const std::byte> stack, std::int32_t pointer_size) {
  json->StartArray();
  const auto size = static_cast<std::size_t>(pointer_size);
  for (; stack.size() >= size; stack = stack.subspan(size)) {
    std::uint64_t frame = 0;
    std::memcpy(&frame, stack.data(), size);
    PutString(json, absl::StrFormat("0x%x", frame));
  }
  json->EndArray();
}

}  // namespace

std::string OneLine(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7F') c = '?';
  }
  return text;
}

std::string FormatUtc(absl::Time time) {
  return absl::FormatTime("%E4Y-%m-%dT%H:%M:%E9SZ", time, absl::UTCTimeZone());
}

std::string FormatGuid(const nettrace::Guid& guid) {
  const std::string hex = Hex(nettrace::GuidFromUuid(guid));
  return absl::StrCat(hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-",
                      hex.substr(16, 4), "-", hex.substr(20));
}

std::optional<std::uint64_t> ProcessorOf(const nettrace::Event& event) {
  if (event.processor == nettrace::kNoProcessor) return std::nullopt;
  return event.processor;
}

std::string AuthorsId(const nettrace::EventMetadata& metadata) {
  for (const auto& [key, value] : metadata.key_values) {
    std::uint16_t id = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), id);
    if (key == collector::kKeyId && error == std::errc() && end == value.data() + value.size()) {
      return absl::StrCat(id);
    }
  }
  return absl::StrCat(metadata.event_id);
}

std::string PayloadToJson(const nettrace::Event& event) {
  rapidjson::StringBuffer buffer;
  JsonWriter json(buffer);
  const absl::Status status = PutPayload(&json, event);
  std::string text(buffer.GetString(), buffer.GetSize());
  if (!status.ok()) absl::StrAppend(&text, " (", status.message(), ")");
  return text;
}

std::string EventToJson(const nettrace::Reader& reader, const nettrace::Event& event) {
  const nettrace::EventMetadata& metadata = *event.metadata;
  rapidjson::StringBuffer buffer;
  JsonWriter json(buffer);
  json.StartObject();
  json.Key("timestamp");
  json.Uint64(event.timestamp);
  json.Key("time");
  PutString(&json, FormatUtc(reader.TimeOf(event.timestamp)));
  json.Key("provider");
  PutString(&json, metadata.provider);
  json.Key("name");
  PutString(&json, metadata.name);
  json.Key("id");
  const std::string id = AuthorsId(metadata);
  json.RawValue(id.data(), id.size(), rapidjson::kNumberType);
  json.Key("version");
  json.Uint(event.version());
  json.Key("level");
  json.Uint(event.level());
  json.Key("keywords");
  PutString(&json, absl::StrFormat("0x%x", event.keywords()));
  json.Key("opcode");
  json.Uint(event.opcode());
  PutOptionalNumber(&json, "pid", event.thread->process_id);
  PutOptionalNumber(&json, "tid", event.thread->thread_id);
  json.Key("thread");
  if (event.thread->name) {
    PutString(&json, *event.thread->name);
  } else {
    json.Null();
  }
  PutOptionalNumber(&json, "cpu", ProcessorOf(event));
  PutOptionalGuid(&json, "activityId", event.labels->activity_id);
  PutOptionalGuid(&json, "relatedActivityId", event.labels->related_activity_id);
  json.Key("labels");
  PutLabels(&json, *event.labels);
  if (!event.stack.empty()) {
    json.Key("stack");
    PutStack(&json, event.stack, reader.trace().pointer_size);
  }
  json.Key("payload");
  const absl::Status status = PutPayload(&json, event);
  if (!status.ok()) {
    json.Key("error");
    PutString(&json, std::string(status.message()));
  }
  json.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace tools
