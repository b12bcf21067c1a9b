#include "tools/nettrace/export/json/trace_event_exporter.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/trace/event_name.h"

namespace tools::json {
namespace {

constexpr char kLost[] = "lost events";

// Stands for all threads of a process; the kernel does not assign this id.
constexpr std::uint64_t kNoThread = 0;

}  // namespace

TraceEventExporter::TraceEventExporter(const nettrace::Reader& reader, Profile profile,
                                       nettrace::Sink* sink)
    : clock_start_(reader.TimeOf(0)), profile_(profile), output_(sink), json_(buffer_) {}

// Writes microseconds with three decimals.
void TraceEventExporter::PutTime(const char* key, absl::Duration duration) {
  const std::int64_t nanoseconds = absl::ToInt64Nanoseconds(duration);
  const std::uint64_t size = nanoseconds < 0 ? 0 - static_cast<std::uint64_t>(nanoseconds)
                                             : static_cast<std::uint64_t>(nanoseconds);
  std::string digits = nanoseconds < 0 ? "-" : "";
  base::AppendNumber(size / 1000, &digits);
  digits += '.';
  for (std::uint64_t unit = 100; unit != 0; unit /= 10) {
    digits += static_cast<char>('0' + size / unit % 10);
  }
  json_.PlainKey(key);
  json_.RawValue(digits.data(), digits.size(), rapidjson::kNumberType);
}

void TraceEventExporter::Begin(std::string_view name, const char* phase, absl::Time time,
                               const trace::Ids& ids) {
  buffer_.Clear();
  json_.Reset(buffer_);
  json_.StartObject();
  base::PutText(&json_, "name", name);
  base::PutText(&json_, "ph", phase);
  // Negative only if the file's ticks exceed the range of absl::Time.
  PutTime("ts", time - clock_start_);
  base::PutNumber(&json_, "pid", ids.first);
  base::PutNumber(&json_, "tid", ids.second);
}

absl::Status TraceEventExporter::End() {
  json_.EndObject();
  const std::string_view text(buffer_.GetString(), buffer_.GetSize());
  const char* const before = is_first_ ? "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" : ",\n";
  is_first_ = false;
  line_ = before;
  base::AppendPrintable(text, &line_);
  return output_.Write(line_);
}

absl::Status TraceEventExporter::PutName(const char* kind, const trace::Ids& ids,
                                         std::string_view name) {
  if (!names_.Changes(ids, name)) return absl::OkStatus();
  Begin(kind, "M", clock_start_, ids);
  json_.Key("args");
  json_.StartObject();
  base::PutText(&json_, "name", name);
  json_.EndObject();
  return End();
}

void TraceEventExporter::PutArguments(const exporting::ExportedEvent& exported,
                                      const trace::OpenSlices::Slice* ended) {
  json_.PlainKey("args");
  json_.StartObject();
  if (ended == nullptr) {
    PutProperties(exported);
  } else {
    const nettrace::EventMetadata& metadata = *exported.event->metadata;
    json_.PlainKey("stop");
    json_.StartObject();
    if (const std::string_view name = trace::EventName(metadata); name != ended->name) {
      base::PutText(&json_, "event", name);
    }
    if (metadata.provider != ended->provider) {
      base::PutText(&json_, "provider", metadata.provider);
    }
    PutProperties(exported);
    json_.EndObject();
  }
  json_.EndObject();
}

void TraceEventExporter::PutProperties(const exporting::ExportedEvent& exported) {
  const nettrace::Event& event = *exported.event;
  json_.PlainKey("payload");
  json_.RawValue(exported.payload_json.data(), exported.payload_json.size(),
                 rapidjson::kObjectType);
  if (!exported.payload_error.empty()) base::PutText(&json_, "error", exported.payload_error);
  base::PutNumber(&json_, "level", event.level());
  base::PutText(&json_, "keywords", base::FormatHexNumber(event.keywords()));
  if (event.opcode() != 0) base::PutNumber(&json_, "opcode", event.opcode());
  if (event.processor != nettrace::kNoProcessor) base::PutNumber(&json_, "cpu", event.processor);
  if (event.labels->activity_id) {
    base::PutText(&json_, "activityId", base::FormatGuid(*event.labels->activity_id));
  }
  if (event.labels->related_activity_id) {
    base::PutText(&json_, "relatedActivityId",
                  base::FormatGuid(*event.labels->related_activity_id));
  }
}

absl::Status TraceEventExporter::OnEvent(const exporting::ExportedEvent& exported) {
  const nettrace::Event& event = *exported.event;
  const trace::Ids ids = trace::IdsOf(*event.thread);
  if (ids.first != 0) {
    RETURN_IF_ERROR(PutName("process_name", {ids.first, kNoThread}, exported.process));
  }
  if (ids.second != 0 && event.thread->name) {
    RETURN_IF_ERROR(PutName("thread_name", ids, *event.thread->name));
  }
  return profile_ == Profile::kSpeedscope ? PutCall(exported) : PutEvent(exported, ids);
}

absl::Status TraceEventExporter::PutEvent(const exporting::ExportedEvent& exported,
                                          const trace::Ids& ids) {
  const nettrace::Event& event = *exported.event;
  const std::string_view name = trace::EventName(*event.metadata);
  const bool begins = trace::BeginsActivity(event);
  std::optional<trace::OpenSlices::Slice> ended;
  if (begins) {
    slices_.Begin(event, exported.time);
  } else if (trace::EndsActivity(event)) {
    ended = slices_.End(event);
  }
  if (begins || ended) {
    Begin(ended ? ended->name : name, begins ? "b" : "e", exported.time, ids);
    base::PutText(&json_, "id", base::FormatGuid(*event.labels->activity_id));
  } else {
    Begin(name, "i", exported.time, ids);
    base::PutText(&json_, "s", "t");
  }
  base::PutText(&json_, "cat", ended ? ended->provider : event.metadata->provider);
  PutArguments(exported, ended ? &*ended : nullptr);
  return End();
}

absl::Status TraceEventExporter::PutCall(const exporting::ExportedEvent& exported) {
  const nettrace::Event& event = *exported.event;
  if (trace::BeginsActivity(event)) slices_.Begin(event, exported.time);
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
