#include "tools/nettrace/export/json/trace_event_exporter.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/short_text.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/trace/event_name.h"

namespace tools::json {
namespace {

constexpr char kLost[] = "lost events";

// Thread id of the records that name a process. The names of threads with this id, which are the
// kernel's idle threads, are not written.
constexpr std::uint64_t kNoThread = 0;

// Appends the text as a string of JSON, with control characters escaped (base::Printable).
void AppendText(std::string_view text, std::string* out) {
  if (!base::IsPrintableAscii(text) || !base::IsPlainInJson(text)) {
    return base::AppendPrintable(base::JsonString(text), out);
  }
  *out += '"';
  *out += text;
  *out += '"';
}

// Holds successive members with numbers and ids. The maximum size is enough for all of them, but
// texts from the file may be longer and must not be added.
using Members = base::ShortText<512>;

void AddInteger(std::uint64_t number, Members* out) {
  const bool is_text = number > static_cast<std::uint64_t>(base::kMaxExactNumber);
  if (is_text) out->Add('"');
  out->AddNumber(number);
  if (is_text) out->Add('"');
}

// Adds microseconds with three decimals.
void AddMicroseconds(absl::Duration duration, Members* out) {
  const std::int64_t nanoseconds = absl::ToInt64Nanoseconds(duration);
  const std::uint64_t size = nanoseconds < 0 ? 0 - static_cast<std::uint64_t>(nanoseconds)
                                             : static_cast<std::uint64_t>(nanoseconds);
  if (nanoseconds < 0) out->Add('-');
  out->AddNumber(size / 1000);
  out->Add('.');
  for (const std::uint64_t unit : {100, 10, 1}) {
    out->Add(static_cast<char>('0' + size / unit % 10));
  }
}

// Adds the members for the properties of an event, each after a comma.
void AddProperties(const nettrace::Event& event, Members* out) {
  out->Add(R"(,"level":)");
  out->AddNumber(event.level());
  out->Add(R"(,"keywords":"0x)");
  out->AddNumber(event.keywords(), 16);
  out->Add('"');
  if (event.opcode() != 0) {
    out->Add(R"(,"opcode":)");
    out->AddNumber(event.opcode());
  }
  if (event.processor != nettrace::kNoProcessor) {
    out->Add(R"(,"cpu":)");
    out->AddNumber(event.processor);
  }
  if (event.labels->activity_id) {
    out->Add(R"(,"activityId":")");
    out->AddGuid(*event.labels->activity_id);
    out->Add('"');
  }
  if (event.labels->related_activity_id) {
    out->Add(R"(,"relatedActivityId":")");
    out->AddGuid(*event.labels->related_activity_id);
    out->Add('"');
  }
}

// Begins the object `stop` for the arguments of an event that ends a slice. Adds the event's
// name and provider if they differ from those of the event that began the slice.
void AppendStop(const nettrace::EventMetadata& metadata, const trace::OpenSlices::Slice& ended,
                std::string* out) {
  *out += R"("stop":{)";
  if (const std::string_view name = trace::EventName(metadata); name != ended.name) {
    *out += R"("event":)";
    AppendText(name, out);
    *out += ',';
  }
  if (metadata.provider != ended.provider) {
    *out += R"("provider":)";
    AppendText(metadata.provider, out);
    *out += ',';
  }
}

}  // namespace

TraceEventExporter::TraceEventExporter(const nettrace::Reader& reader, Profile profile,
                                       nettrace::Sink* sink)
    : clock_start_(reader.TimeOf(0)), profile_(profile), output_(sink), json_(buffer_) {}

void TraceEventExporter::PutTime(const char* key, absl::Duration duration) {
  Members digits;
  AddMicroseconds(duration, &digits);
  json_.PlainKey(key);
  json_.RawValue(digits.text().data(), digits.text().size(), rapidjson::kNumberType);
}

void TraceEventExporter::Begin(std::string_view name, const char* phase, absl::Time time,
                               const trace::Ids& ids) {
  buffer_.Clear();
  json_.Reset(buffer_);
  json_.StartObject();
  base::PutText(&json_, "name", name);
  base::PutText(&json_, "ph", phase);
  // The difference is negative only if the ticks in the file exceed the range of absl::Time.
  PutTime("ts", time - clock_start_);
  base::PutNumber(&json_, "pid", ids.first);
  base::PutNumber(&json_, "tid", ids.second);
}

std::string_view TraceEventExporter::TakeSeparator() {
  return std::exchange(is_first_, false) ? "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
                                         : ",\n";
}

absl::Status TraceEventExporter::End() {
  json_.EndObject();
  const std::string_view text(buffer_.GetString(), buffer_.GetSize());
  std::string& out = *output_.text();
  out += TakeSeparator();
  base::AppendPrintable(text, &out);
  return output_.Appended();
}

absl::Status TraceEventExporter::PutName(const char* kind, const trace::Ids& ids,
                                         std::string_view name) {
  Begin(kind, "M", clock_start_, ids);
  json_.Key("args");
  json_.StartObject();
  base::PutText(&json_, "name", name);
  json_.EndObject();
  return End();
}

absl::Status TraceEventExporter::OnEvent(const exporting::ExportedEvent& exported) {
  const nettrace::Event& event = *exported.event;
  const trace::Ids ids = host_ids_.IdsOf(*event.thread);
  const trace::Ids process = {ids.first, kNoThread};
  if (ids.first != 0 && names_.Changes(process, exported.process)) {
    const std::string name = host_ids_.NameOf(*event.thread, exported.process);
    RETURN_IF_ERROR(PutName("process_name", process, name));
  }
  if (ids.second != 0 && event.thread->name && names_.Changes(ids, *event.thread->name)) {
    RETURN_IF_ERROR(PutName("thread_name", ids, *event.thread->name));
  }
  if (profile_ == Profile::kSpeedscope) return PutCall(exported, ids);
  const auto& related = event.labels->related_activity_id;
  const trace::OpenSlices::Slice* const from = related ? slices_.Innermost(*related) : nullptr;
  if (from != nullptr) RETURN_IF_ERROR(PutArrow(*from, ids, exported));
  return PutEvent(exported, ids);
}

absl::Status TraceEventExporter::PutArrow(const trace::OpenSlices::Slice& from,
                                          const trace::Ids& to_ids,
                                          const exporting::ExportedEvent& to) {
  ++arrows_;
  const auto put_end = [&](std::string_view name, const char* flow, absl::Time time,
                           const trace::Ids& ids) -> absl::Status {
    for (const char* const phase : {"B", flow, "E"}) {
      // Readers find the two ends of an arrow by their id, name and category.
      Begin(phase == flow ? from.name : name, phase, time, ids);
      base::PutText(&json_, "cat", trace::kArrows);
      if (phase == flow) {
        base::PutNumber(&json_, "id", arrows_);
        base::PutText(&json_, "bp", "e");  // attaches the end to the duration around it
      }
      RETURN_IF_ERROR(End());
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(put_end(from.name, "s", from.begin, from.ids));
  return put_end(trace::EventName(*to.event->metadata), "f", to.time, to_ids);
}

// Appends the object of the event to the output. Does not use json_, because that would take most
// of the time of an export.
absl::Status TraceEventExporter::PutEvent(const exporting::ExportedEvent& exported,
                                          const trace::Ids& ids) {
  const nettrace::Event& event = *exported.event;
  const nettrace::EventMetadata& metadata = *event.metadata;
  const bool begins = trace::BeginsActivity(event);
  std::optional<trace::OpenSlices::Slice> ended;
  if (begins) {
    slices_.Begin(event, exported.time, ids);
  } else if (trace::EndsActivity(event)) {
    ended = slices_.End(event);
  }
  std::string& out = *output_.text();
  out += TakeSeparator();
  out += R"({"name":)";
  AppendText(ended ? ended->name : trace::EventName(metadata), &out);
  Members members;
  members.Add(R"(,"ph":")");
  members.Add(begins ? 'b' : ended ? 'e' : 'i');
  members.Add(R"(","ts":)");
  AddMicroseconds(exported.time - clock_start_, &members);
  members.Add(R"(,"pid":)");
  AddInteger(ids.first, &members);
  members.Add(R"(,"tid":)");
  AddInteger(ids.second, &members);
  if (begins || ended) {
    members.Add(R"(,"id":")");
    members.AddGuid(*event.labels->activity_id);
    members.Add(R"(","cat":)");
  } else {
    members.Add(R"(,"s":"t","cat":)");
  }
  out += members.text();
  AppendText(ended ? ended->provider : metadata.provider, &out);
  out += R"(,"args":{)";
  if (ended) AppendStop(metadata, *ended, &out);
  out += R"("payload":)";
  const absl::Status status = exported.payloads->Put(event, exported.payloads->StartJson());
  base::AppendPrintable(exported.payloads->json(), &out);
  if (!status.ok()) {
    out += R"(,"error":)";
    AppendText(std::string(status.message()), &out);
  }
  Members properties;
  AddProperties(event, &properties);
  properties.Add("}}");
  if (ended) properties.Add('}');
  out += properties.text();
  return output_.Appended();
}

absl::Status TraceEventExporter::PutCall(const exporting::ExportedEvent& exported,
                                         const trace::Ids& ids) {
  const nettrace::Event& event = *exported.event;
  if (trace::BeginsActivity(event)) slices_.Begin(event, exported.time, ids);
  if (!trace::EndsActivity(event)) return absl::OkStatus();
  const std::optional<trace::OpenSlices::Slice> slice = slices_.End(event);
  if (!slice) return absl::OkStatus();
  Begin(slice->name, "X", slice->begin, slice->ids);
  PutTime("dur", exported.time - slice->begin);
  base::PutText(&json_, "cat", event.metadata->provider);
  return End();
}

absl::Status TraceEventExporter::OnLoss(const trace::Loss& loss) {
  Begin(kLost, "i", loss.time, {0, 0});
  base::PutText(&json_, "s", "g");
  json_.Key("args");
  json_.StartObject();
  base::PutNumber(&json_, "count", loss.count);
  if (loss.capture_thread->name) base::PutText(&json_, "thread", *loss.capture_thread->name);
  json_.EndObject();
  RETURN_IF_ERROR(End());
  lost_ += loss.count;
  Begin(kLost, "C", loss.time, {0, 0});
  json_.Key("args");
  json_.StartObject();
  base::PutNumber(&json_, "events", lost_);
  json_.EndObject();
  return End();
}

absl::Status TraceEventExporter::Finish() {
  const char* const before = is_first_ ? "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[" : "\n";
  const std::string end = absl::StrCat(before, "],\"otherData\":{\"clockStart\":\"",
                                       base::FormatUtc(clock_start_), "\"}}\n");
  RETURN_IF_ERROR(output_.Write(end));
  return output_.Flush();
}

}  // namespace tools::json
