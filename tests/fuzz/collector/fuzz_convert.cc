// Converts any event as a recorder does. A metadata row has a form that suits the values of one
// event, or those of several events (ValueForms); both are tested. In each form, the payload must
// fit its row, and nettrace dump must show what libeventheader's JSON shows. The same must hold for
// the events that SampleConverter makes, which chooses the form itself and keeps the schema for
// later events.
#include <rapidjson/document.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eventheader/decoder.h"
#include "eventheader/json_formatter.h"
#include "eventheader/tracepoint_name.h"
#include "tools/collector/convert/event_schema.h"
#include "tools/collector/convert/sample_converter.h"
#include "tools/collector/identity/task_tracker.h"
#include "tools/trace/payload_json.h"

namespace {

using collector::EventSchema;
using collector::PayloadProgram;
using collector::TextForm;
using collector::ValueForms;
using rapidjson::Value;

constexpr char kTracepoint[] = "P_L4K1";

void Require(bool promise) {
  if (!promise) std::abort();
}

bool IsSame(const Value& ours, const Value& theirs) {
  if (ours.IsObject() && theirs.IsObject()) {
    if (ours.MemberCount() != theirs.MemberCount()) return false;
    for (auto a = ours.MemberBegin(), b = theirs.MemberBegin(); a != ours.MemberEnd(); ++a, ++b) {
      if (a->name != b->name || !IsSame(a->value, b->value)) return false;
    }
    return true;
  }
  if (ours.IsArray() && theirs.IsArray()) {
    if (ours.Size() != theirs.Size()) return false;
    for (rapidjson::SizeType i = 0; i < ours.Size(); ++i) {
      if (!IsSame(ours[i], theirs[i])) return false;
    }
    return true;
  }
  // Accepted differences: a boolean that is neither 0 nor 1, the name of an errno, a number above
  // 2^53.
  const bool is_number = ours.IsNumber() || theirs.IsNumber();
  if (is_number && (ours.IsBool() || theirs.IsBool() || ours.IsString() || theirs.IsString())) {
    return true;
  }
  return ours == theirs;
}

// Replaces members with the same name by one member, whose value is an array of their values.
// PayloadJson shows such members in this form.
void MergeMembersOfOneName(Value* value, rapidjson::Document::AllocatorType& allocator) {
  if (value->IsArray()) {
    for (Value& element : value->GetArray()) MergeMembersOfOneName(&element, allocator);
  }
  if (!value->IsObject()) return;
  Value merged(rapidjson::kObjectType);
  // Not a range-based loop, because clang rejects the comparison of RapidJSON's iterators in C++20.
  for (auto it = value->MemberBegin(); it < value->MemberEnd(); ++it) {
    auto& member = *it;
    MergeMembersOfOneName(&member.value, allocator);
    if (!merged.HasMember(member.name)) {
      Value name(member.name, allocator);
      merged.AddMember(name, Value(rapidjson::kArrayType).Move(), allocator);
    }
    merged[member.name].PushBack(member.value, allocator);
  }
  for (auto it = merged.MemberBegin(); it < merged.MemberEnd(); ++it) {
    if (it->value.Size() == 1) it->value = Value(it->value[0], allocator).Move();
  }
  *value = merged;
}

void Parse(const std::string& json, rapidjson::Document* document) {
  document->Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseFullPrecisionFlag>(json.data(),
                                                                                       json.size());
  Require(!document->HasParseError() && document->IsObject());
}

// Compares what the reader shows for an event with `json`, the fields as libeventheader shows them.
void CheckShown(const nettrace::EventMetadata& metadata, std::span<const std::byte> payload,
                const Value& json) {
  nettrace::Event shown;
  shown.metadata = &metadata;
  shown.payload = payload;
  rapidjson::StringBuffer buffer;
  base::JsonWriter writer(buffer);
  const absl::Status status =
      trace::PayloadJson(trace::PayloadStyle::kForPrograms).Put(shown, &writer);
  rapidjson::Document ours;
  Parse(buffer.GetString(), &ours);
  // The reader may reject an event that the decoder accepts, because it counts values differently
  // against its limit.
  if (status.ok()) Require(IsSame(ours, json));
}

// Converts the event with a row of the form `forms`, and compares what the reader shows with
// `json`. `consumed` is the size of the event's payload in bytes.
void CheckForm(const eh::EventView& event, const eh::TracepointName& name, const ValueForms& forms,
               const Value& json, std::size_t consumed) {
  const absl::StatusOr<EventSchema> schema = CompileEventSchema(event, name, kTracepoint, forms);
  Require(schema.ok());
  std::vector<std::byte> payload;
  const PayloadProgram::Outcome outcome = schema->program.Run(event.data, &payload);
  Require(outcome.result == PayloadProgram::Result::kOk && outcome.consumed == consumed);
  CheckShown(schema->metadata, payload, json);
}

// Converts the event twice with one SampleConverter. The first time, it makes the schema. The
// second time, it may recognize the event by its first bytes. Compares what the reader shows with
// `json`; null if libeventheader cannot show all fields.
void CheckConverter(std::span<const std::byte> bytes, const Value* json) {
  static collector::TaskTracker no_tasks;  // not used for events of rings
  collector::SampleConverter converter(&no_tasks);
  Require(converter.AddRingTracepoint(0, kTracepoint).ok());
  collector::SampleRecord sample;
  sample.raw = bytes;
  std::vector<std::byte> first;
  collector::EventKind kind;
  for (std::uint64_t time = 1; time <= 2; ++time) {
    const collector::ConvertedEvent& event =
        converter.ConvertOfThread(0, collector::Slot(), sample, time);
    if (time == 1) {
      first.assign(event.payload.begin(), event.payload.end());
      kind = event.kind;
    }
    Require(event.kind == kind && std::ranges::equal(event.payload, first));
    const nettrace::EventMetadata metadata = event.source->MetadataFor(event);
    if (!event.undecoded && json != nullptr) CheckShown(metadata, event.payload, *json);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  eh::EventView event;
  if (eh::ParseEvent(bytes, &event) != eh::ParseError::kNone || event.metadata.empty()) {
    CheckConverter(bytes, nullptr);
    return 0;
  }
  const auto name = *eh::ParseTracepointName(kTracepoint);
  const absl::StatusOr<EventSchema> schema =
      CompileEventSchema(event, name, kTracepoint, ValueForms());
  std::string seen;
  PayloadProgram::Outcome outcome;
  outcome.result = PayloadProgram::Result::kTruncated;
  if (schema.ok()) {
    seen.assign(schema->nullable_fields, '\0');
    outcome = schema->program.Run(event.data, nullptr, seen);
  }
  std::string text;
  rapidjson::Document json;
  if (outcome.result == PayloadProgram::Result::kOk) {
    eh::AppendEventJson(event, "", &text);
    Parse(text, &json);
  }
  if (!json.IsObject() || json.HasMember("error")) {
    CheckConverter(bytes, nullptr);
    return 0;
  }
  MergeMembersOfOneName(&json["fields"], json.GetAllocator());
  CheckConverter(bytes, &json["fields"]);
  std::string maybe_null = seen;
  for (char& set : maybe_null) set = static_cast<char>(set | collector::kSeenNull);
  for (const std::string_view values :
       {std::string_view(), std::string_view(seen), std::string_view(maybe_null)}) {
    CheckForm(event, name, {TextForm::kUtf16, values}, json["fields"], outcome.consumed);
    if (outcome.non_ascii) continue;
    CheckForm(event, name, {TextForm::kBytes, values}, json["fields"], outcome.consumed);
  }
  return 0;
}
