#include "tools/nettrace/export/otlp/log_encoder.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "tools/base/byte_text.h"
#include "tools/base/json_text.h"
#include "tools/base/protobuf_writer.h"
#include "tools/base/text.h"

namespace tools::otlp {
namespace {

// Numbers of the protobuf fields that hold the attributes of a LogRecord, a Resource, an
// InstrumentationScope and a Span, and the members of a struct.
constexpr std::uint32_t kRecordAttributes = 6;
constexpr std::uint32_t kResourceAttributes = 1;
constexpr std::uint32_t kScopeAttributes = 3;
constexpr std::uint32_t kSpanAttributes = 9;
constexpr std::uint32_t kStructMembers = 1;  // values of a KeyValueList

constexpr std::uint8_t kInternal = 1;  // SPAN_KIND_INTERNAL

std::array<std::byte, 8> BigEndian(std::uint64_t number) {
  std::array<std::byte, 8> bytes;
  for (auto byte = bytes.rbegin(); byte != bytes.rend(); ++byte, number >>= 8) {
    *byte = static_cast<std::byte>(number);
  }
  return bytes;
}

// Writes the parts of messages in protobuf. The field numbers are those of
// opentelemetry/proto/{logs,trace,common,resource}/v1 of opentelemetry-proto 1.11.
class ProtobufSyntax {
 public:
  explicit ProtobufSyntax(std::string* out) : writer_(out) {}

  void BeginRecord(const RecordHead& head) {
    if (head.time != 0) writer_.Fixed64(1, head.time);
    if (head.severity != 0) writer_.Number(2, head.severity);
    if (!head.severity_text.empty()) writer_.Bytes(3, head.severity_text);
    if (head.flags != 0) writer_.Fixed32(8, head.flags);
    if (head.trace_id) writer_.Bytes(9, base::AsText(*head.trace_id));
    if (head.span_id) writer_.Bytes(10, base::AsText(BigEndian(*head.span_id)));
    if (head.observed != 0) writer_.Fixed64(11, head.observed);
    if (!head.event_name.empty()) writer_.Bytes(12, head.event_name);
  }
  void BeginResource() {}
  void BeginScope(std::string_view name) { writer_.Bytes(1, name); }
  void EndMessage(std::string_view body, bool has_body) {
    if (has_body) writer_.Bytes(5, body);
  }

  void BeginAttributes() {}
  void Span(const SpanHead& head, const std::vector<const EncodedAttribute*>& attributes,
            std::string* out) {
    writer_.Bytes(1, base::AsText(head.trace_id));
    writer_.Bytes(2, base::AsText(BigEndian(head.span_id)));
    if (head.parent) writer_.Bytes(4, base::AsText(BigEndian(*head.parent)));
    writer_.Bytes(5, head.name);
    writer_.Number(6, kInternal);
    writer_.Fixed64(7, head.start);
    writer_.Fixed64(8, head.end);
    for (const EncodedAttribute* const attribute : attributes) *out += attribute->bytes;
    for (const SpanLink& link : head.links) {
      const std::size_t begin = writer_.Begin(13);
      writer_.Bytes(1, base::AsText(link.trace_id));
      writer_.Bytes(2, base::AsText(BigEndian(link.span_id)));
      writer_.End(begin);
    }
  }

  // Begin and end a KeyValue in the field with the number `list`.
  std::size_t BeginMember(std::uint32_t list, std::string_view key) {
    const std::size_t begin = writer_.Begin(list);
    writer_.Bytes(1, key);
    return begin;
  }
  void EndMember(std::size_t begin) { writer_.End(begin); }
  // Begin and end the AnyValue of a KeyValue or an ArrayValue.
  std::size_t BeginValue(bool in_array) { return writer_.Begin(in_array ? 1 : 2); }
  void EndValue(std::size_t begin) { writer_.End(begin); }
  // Begin and end the ArrayValue or KeyValueList of an AnyValue.
  std::size_t BeginList(bool is_array) { return writer_.Begin(is_array ? 5 : 6); }
  void EndList(std::size_t begin) { writer_.End(begin); }
  // Write the content of an AnyValue.
  void Text(std::string_view utf8) { writer_.Bytes(1, utf8); }
  void Bool(bool value) { writer_.Number(2, value ? 1 : 0); }
  void Int(std::int64_t value) { writer_.Number(3, static_cast<std::uint64_t>(value)); }
  void Double(double value) { writer_.Double(4, value); }
  void Bytes(std::string_view bytes) { writer_.Bytes(7, bytes); }

  static std::string_view Finished(const std::string& message) { return message; }
  static void AppendRecord(std::string_view record, std::string* records) {
    base::ProtobufWriter(records).Bytes(2, record);
  }
  static void CopyRecord(std::string_view appended, std::string* records) { *records += appended; }
  // The two requests need no distinction, because their fields have the same numbers in protobuf.
  static void AppendRequest(Signal /*signal*/, const std::vector<ResourceGroup>& groups,
                            std::string* out) {
    base::ProtobufWriter writer(out);
    for (const ResourceGroup& group : groups) {
      const std::size_t resource = writer.Begin(1);
      writer.Bytes(1, group.resource);
      for (const ResourceGroup::Scope& each : group.scopes) {
        const std::size_t scope = writer.Begin(2);
        writer.Bytes(1, each.scope);
        out->append(each.records);
        writer.End(scope);
      }
      writer.End(resource);
    }
  }

 private:
  base::ProtobufWriter writer_;
};

// Writes the parts of messages in the JSON of protobuf, with the change that OTLP makes to it: ids
// are hexadecimal instead of base64.
class JsonSyntax {
 public:
  explicit JsonSyntax(std::string* out) : out_(*out) {}

  void BeginRecord(const RecordHead& head) {
    out_ += '{';
    if (head.time != 0) Add("timeUnixNano", std::to_string(head.time));
    if (head.observed != 0) Add("observedTimeUnixNano", std::to_string(head.observed));
    if (head.severity != 0) AddNumber("severityNumber", head.severity);
    if (!head.severity_text.empty()) Add("severityText", head.severity_text);
    if (!head.event_name.empty()) Add("eventName", head.event_name);
    if (head.flags != 0) AddNumber("flags", head.flags);
    if (head.trace_id) Add("traceId", base::FormatHex(*head.trace_id));
    if (head.span_id) Add("spanId", base::FormatHex(BigEndian(*head.span_id)));
    out_ += R"("attributes":[)";
  }
  void BeginResource() { out_ += R"({"attributes":[)"; }
  void BeginScope(std::string_view name) {
    out_ += '{';
    Add("name", name);
    out_ += R"("attributes":[)";
  }
  void EndMessage(std::string_view body, bool has_body) {
    out_ += ']';
    if (has_body) {
      out_ += R"(,"body":{)";
      out_ += body;
      out_ += '}';
    }
    out_ += '}';
  }

  void BeginAttributes() { out_ += '['; }
  void Span(const SpanHead& head, const std::vector<const EncodedAttribute*>& attributes,
            std::string* out) {
    out_ += '{';
    Add("traceId", base::FormatHex(head.trace_id));
    Add("spanId", base::FormatHex(BigEndian(head.span_id)));
    if (head.parent) Add("parentSpanId", base::FormatHex(BigEndian(*head.parent)));
    Add("name", head.name);
    AddNumber("kind", kInternal);
    Add("startTimeUnixNano", std::to_string(head.start));
    Add("endTimeUnixNano", std::to_string(head.end));
    out_ += R"("attributes":[)";
    for (const EncodedAttribute* const attribute : attributes) {
      Separate();
      *out += attribute->bytes;
    }
    out_ += R"(],"links":[)";
    for (const SpanLink& link : head.links) {
      Separate();
      out_ += '{';
      Add("traceId", base::FormatHex(link.trace_id));
      out_ += R"("spanId":")" + base::FormatHex(BigEndian(link.span_id)) + "\"}";
    }
    out_ += "]}";
  }

  std::size_t BeginMember(std::uint32_t /*list*/, std::string_view key) {
    Separate();
    out_ += R"({"key":)";
    Quote(key);
    out_ += R"(,"value":)";
    return 0;
  }
  void EndMember(std::size_t /*begin*/) { out_ += '}'; }
  std::size_t BeginValue(bool in_array) {
    if (in_array) Separate();
    out_ += '{';
    return 0;
  }
  void EndValue(std::size_t /*begin*/) { out_ += '}'; }
  std::size_t BeginList(bool is_array) {
    out_ += is_array ? R"("arrayValue":{"values":[)" : R"("kvlistValue":{"values":[)";
    return 0;
  }
  void EndList(std::size_t /*begin*/) { out_ += "]}"; }
  void Text(std::string_view utf8) {
    out_ += R"("stringValue":)";
    Quote(utf8);
  }
  void Bool(bool value) { out_ += value ? R"("boolValue":true)" : R"("boolValue":false)"; }
  void Int(std::int64_t value) {
    out_ += R"("intValue":")";
    base::AppendNumber(value, &out_);
    out_ += '"';
  }
  void Double(double value) {
    out_ += R"("doubleValue":)";
    if (!std::isfinite(value)) {
      out_ += std::isnan(value) ? R"("NaN")" : value < 0 ? R"("-Infinity")" : R"("Infinity")";
      return;
    }
    char digits[40];
    out_.append(digits, std::to_chars(digits, std::end(digits), value).ptr);
  }
  void Bytes(std::string_view bytes) {
    out_ += R"("bytesValue":")";
    out_ += absl::Base64Escape(absl::string_view(bytes.data(), bytes.size()));
    out_ += '"';
  }

  // Returns the message. Escapes its characters that would change a terminal or end a line.
  std::string_view Finished(const std::string& message) {
    if (base::IsPrintableAscii(message)) return message;
    printable_.clear();
    base::AppendPrintable(message, &printable_);
    return printable_;
  }
  static void AppendRecord(std::string_view record, std::string* records) {
    if (!records->empty()) *records += ',';
    *records += record;
  }
  static void CopyRecord(std::string_view appended, std::string* records) {
    if (appended.starts_with(',')) appended.remove_prefix(1);
    AppendRecord(appended, records);
  }
  static void AppendRequest(Signal signal, const std::vector<ResourceGroup>& groups,
                            std::string* out) {
    const bool are_logs = signal == Signal::kLogs;
    *out += are_logs ? R"({"resourceLogs":[)" : R"({"resourceSpans":[)";
    for (const ResourceGroup& group : groups) {
      if (&group != &groups.front()) *out += ',';
      *out += R"({"resource":)";
      *out += group.resource;
      *out += are_logs ? R"(,"scopeLogs":[)" : R"(,"scopeSpans":[)";
      for (const ResourceGroup::Scope& scope : group.scopes) {
        if (&scope != &group.scopes.front()) *out += ',';
        *out += R"({"scope":)";
        *out += scope.scope;
        *out += are_logs ? R"(,"logRecords":[)" : R"(,"spans":[)";
        *out += scope.records;
        *out += "]}";
      }
      *out += "]}";
    }
    *out += "]}";
  }

 private:
  // Adds a comma, unless a list has just begun.
  void Separate() {
    if (out_.back() != '[') out_ += ',';
  }
  void Quote(std::string_view text) {
    if (!base::IsPlainInJson(text)) {
      out_ += base::JsonString(text);
      return;
    }
    out_ += '"';
    out_ += text;
    out_ += '"';
  }
  // Add a member to the message, and a comma, because another member always follows.
  void Add(std::string_view key, std::string_view text) {
    Quote(key);
    out_ += ':';
    Quote(text);
    out_ += ',';
  }
  void AddNumber(std::string_view key, std::uint64_t number) {
    Quote(key);
    out_ += ':';
    base::AppendNumber(number, &out_);
    out_ += ',';
  }

  std::string& out_;
  std::string printable_;
};

bool IsMessage(std::string_view name) {
  return name == "message" || name == "Message" || name == "_m";
}

// Encodes messages. `Syntax` is ProtobufSyntax or JsonSyntax, and appends the parts of a message to
// text_.
template <typename Syntax>
class EncoderFor final : public LogEncoder {
 public:
  void BeginRecord(const RecordHead& head) override {
    Begin(kRecordAttributes);
    syntax_.BeginRecord(head);
  }
  void BeginResource() override {
    Begin(kResourceAttributes);
    syntax_.BeginResource();
  }
  void BeginScope(std::string_view name) override {
    Begin(kScopeAttributes);
    syntax_.BeginScope(name);
  }
  std::string_view Take() override {
    syntax_.EndMessage(body_, has_body_);
    return syntax_.Finished(text_);
  }
  void Attribute(std::string_view key) override {
    Level& top = levels_.back();
    top.begin = text_.size();
    top.member = syntax_.BeginMember(top.list, key);
    if (in_attributes_ && levels_.size() == 1) key_ = key;
  }
  void BeginAttributes() override {
    Begin(kSpanAttributes);
    syntax_.BeginAttributes();
    attributes_.clear();
    in_attributes_ = true;
  }
  std::vector<EncodedAttribute> TakeAttributes() override {
    in_attributes_ = false;
    return std::exchange(attributes_, {});
  }
  std::string_view EncodeSpan(const SpanHead& head,
                              const std::vector<EncodedAttribute>& attributes) override {
    absl::flat_hash_map<std::string_view, const EncodedAttribute*> last;
    for (const EncodedAttribute& attribute : attributes) last[attribute.key] = &attribute;
    std::vector<const EncodedAttribute*> used;
    for (const EncodedAttribute& attribute : attributes) {
      if (last[attribute.key] == &attribute) used.push_back(&attribute);
    }
    text_.clear();
    syntax_.Span(head, used, &text_);
    return syntax_.Finished(text_);
  }
  void BeginBody() override { levels_.back().captured = Captured::kBody; }
  void BeginFields(bool repeats_names) override {
    in_fields_ = true;
    if (repeats_names) BeginMerged();
  }
  void EndFields() override {
    if (levels_.back().captured == Captured::kMembers) EndMerged();
    in_fields_ = false;
  }
  void BeginMerged() override { levels_.back().captured = Captured::kMembers; }
  void EndMerged() override {
    EndMember();
    Level& top = levels_.back();
    const std::vector<std::pair<std::string, std::string>> members = std::exchange(top.merged, {});
    top.captured = Captured::kNone;
    PutMembers(members);
  }
  void AppendRecord(std::string_view record, std::string* records) const override {
    Syntax::AppendRecord(record, records);
  }
  void CopyRecord(std::string_view appended, std::string* records) const override {
    Syntax::CopyRecord(appended, records);
  }
  void AppendRequest(Signal signal, const std::vector<ResourceGroup>& groups,
                     std::string* out) const override {
    Syntax::AppendRequest(signal, groups, out);
  }

  void Key(std::string_view name) override {
    Level& top = levels_.back();
    const bool is_field = in_fields_ && levels_.size() == 1;
    if (is_field && IsMessage(name) && !has_body_ && !in_attributes_ &&
        top.captured == Captured::kNone) {
      top.begin = text_.size();
      top.captured = Captured::kBody;
      return;
    }
    std::string changed;
    if (is_field && IsReserved(name)) name = changed = std::string("field.").append(name);
    if (!base::IsPrintableAscii(name)) name = changed = base::ValidUtf8(name);
    if (top.captured != Captured::kMembers) return Attribute(name);
    EndMember();
    top.merged.push_back({std::string(name), {}});
    top.begin = text_.size();
  }
  void BeginObject(bool repeats_names) override {
    BeginValue();
    Level& members = levels_.emplace_back();
    members.list = kStructMembers;
    members.list_begin = syntax_.BeginList(/*is_array=*/false);
    if (repeats_names) BeginMerged();
  }
  void EndObject(bool /*repeats_names*/) override {
    if (levels_.back().captured == Captured::kMembers) EndMerged();
    EndList();
  }
  void BeginArray() override {
    BeginValue();
    Level& elements = levels_.emplace_back();
    elements.is_array = true;
    elements.list_begin = syntax_.BeginList(/*is_array=*/true);
  }
  void EndArray() override { EndList(); }
  void Null() override {
    Level& top = levels_.back();
    if (top.is_array) {
      BeginValue();
      EndValue();
    } else if (top.captured == Captured::kBody) {
      top.captured = Captured::kNone;
    } else if (top.captured == Captured::kNone) {
      text_.resize(top.begin);
    }
  }
  void Bool(bool value) override {
    BeginValue();
    syntax_.Bool(value);
    EndValue();
  }
  void Whole(std::int64_t value) override {
    BeginValue();
    syntax_.Int(value);
    EndValue();
  }
  void Whole(std::uint64_t value) override {
    // OTLP has no unsigned type, so a number above the maximum of int64 becomes text.
    if (value > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
      return Text(std::to_string(value));
    }
    Whole(static_cast<std::int64_t>(value));
  }
  void Double(double value) override {
    BeginValue();
    syntax_.Double(value);
    EndValue();
  }
  void Text(std::string_view utf8) override {
    BeginValue();
    syntax_.Text(utf8);
    EndValue();
  }
  void Bytes(std::span<const std::byte> bytes) override {
    BeginValue();
    syntax_.Bytes(base::AsText(bytes));
    EndValue();
  }

 private:
  // States which values of an open list are captured. The content of a captured value does not stay
  // in the list: when it is complete, the encoder moves it from text_ to body_ or Level::merged.
  enum class Captured : std::uint8_t {
    kNone,
    kBody,     // the next value becomes the body
    kMembers,  // all values are captured, because several members may share a name
  };
  // An open list: attributes, members of a struct, or elements of an array.
  struct Level {
    bool is_array = false;
    Captured captured = Captured::kNone;
    std::uint32_t list = 0;  // number of the field of each member
    std::size_t begin = 0;   // bytes of text_ before the current member, or before its content
    // Last results of BeginMember and BeginValue, and the result of BeginList for this list.
    std::size_t member = 0;
    std::size_t value = 0;
    std::size_t list_begin = 0;
    // With kMembers: the names and contents of the members. The last member gets its content when
    // the content is complete.
    std::vector<std::pair<std::string, std::string>> merged;
  };

  void Begin(std::uint32_t list) {
    text_.clear();
    has_body_ = false;
    levels_.resize(1);
    levels_.front() = {};
    levels_.front().list = list;
  }
  void BeginValue() {
    Level& top = levels_.back();
    if (top.captured == Captured::kNone) {
      top.value = syntax_.BeginValue(top.is_array);
    } else if (top.captured == Captured::kBody) {
      top.begin = text_.size();
    }
  }
  void EndValue() {
    Level& top = levels_.back();
    if (top.captured == Captured::kNone) {
      syntax_.EndValue(top.value);
      if (!top.is_array) syntax_.EndMember(top.member);
      if (in_attributes_ && levels_.size() == 1) KeepAttribute();
    } else if (top.captured == Captured::kBody) {
      body_.assign(text_, top.begin);
      has_body_ = true;
      text_.resize(top.begin);
      top.captured = Captured::kNone;
    }
  }
  void EndList() {
    syntax_.EndList(levels_.back().list_begin);
    levels_.pop_back();
    EndValue();
  }
  void KeepAttribute() {
    std::string_view bytes = std::string_view(text_).substr(levels_.front().begin);
    if (bytes.starts_with(',')) bytes.remove_prefix(1);  // separates members of JSON
    attributes_.push_back({key_, std::string(bytes)});
  }
  // Moves the content of the last member to Level::merged.
  void EndMember() {
    Level& top = levels_.back();
    if (top.merged.empty()) return;
    top.merged.back().second.assign(text_, top.begin);
    text_.resize(top.begin);
  }
  // Writes members. The values of members that share a name become one member with an array of
  // these values.
  void PutMembers(const std::vector<std::pair<std::string, std::string>>& members) {
    absl::flat_hash_map<std::string_view, std::vector<const std::string*>> values;
    for (const auto& [name, content] : members) values[name].push_back(&content);
    for (const auto& [name, content] : members) {
      const std::vector<const std::string*> contents = std::exchange(values[name], {});
      if (contents.empty() || (contents.size() == 1 && content.empty())) continue;
      Attribute(name);
      if (contents.size() > 1) BeginArray();
      for (const std::string* const each : contents) {
        BeginValue();
        text_ += *each;
        EndValue();
      }
      if (contents.size() > 1) EndArray();
    }
  }

  std::string text_;
  Syntax syntax_{&text_};
  std::string body_;  // content of an AnyValue
  bool has_body_ = false;
  bool in_fields_ = false;
  bool in_attributes_ = false;  // between BeginAttributes and TakeAttributes
  std::string key_;             // key of the last attribute, if in_attributes_ is set
  std::vector<EncodedAttribute> attributes_;
  std::vector<Level> levels_;
};

}  // namespace

std::unique_ptr<LogEncoder> LogEncoder::Create(Encoding encoding) {
  if (encoding == Encoding::kJson) return std::make_unique<EncoderFor<JsonSyntax>>();
  return std::make_unique<EncoderFor<ProtobufSyntax>>();
}

bool LogEncoder::IsReserved(std::string_view name) {
  if (name.find('.') == name.npos) return false;
  return name.starts_with("nettrace.") || name.starts_with("eventheader.") ||
         name == "log.record.uid" || name == "thread.id" || name == "thread.name" ||
         name == "cpu.logical_number";
}

}  // namespace tools::otlp
