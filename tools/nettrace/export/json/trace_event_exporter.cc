#include "tools/nettrace/export/json/trace_event_exporter.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/trace/event_name.h"

namespace tools::json {
namespace {

constexpr char kLost[] = "lost events";

// Thread id that stands for all threads of a process. The kernel does not assign it to threads.
constexpr std::uint64_t kNoThread = 0;

// Appends a string of JSON that is Printable.
void AppendText(std::string_view text, std::string* out) {
  if (!base::IsPrintableAscii(text) || !base::IsPlainInJson(text)) {
    return base::AppendPrintable(base::JsonString(text), out);
  }
  *out += '"';
  *out += text;
  *out += '"';
}

void AppendInteger(std::uint64_t number, std::string* out) {
  const bool is_text = number > static_cast<std::uint64_t>(base::kMaxExactNumber);
  if (is_text) *out += '"';
  base::AppendNumber(number, out);
  if (is_text) *out += '"';
}

// `name` is the name of the member, up to the quote before the value.
void AppendGuidMember(std::string_view name, const std::optional<nettrace::Guid>& guid,
                      std::string* out) {
  if (!guid) return;
  *out += name;
  base::AppendGuid(*guid, out);
  *out += '"';
}

// Appends microseconds with three decimals.
void AppendMicroseconds(absl::Duration duration, std::string* out) {
  const std::int64_t nanoseconds = absl::ToInt64Nanoseconds(duration);
  const std::uint64_t size = nanoseconds < 0 ? 0 - static_cast<std::uint64_t>(nanoseconds)
                                             : static_cast<std::uint64_t>(nanoseconds);
  if (nanoseconds < 0) *out += '-';
  base::AppendNumber(size / 1000, out);
  const std::uint64_t rest = size % 1000;
  const char decimals[] = {'.', static_cast<char>('0' + rest / 100),
                           static_cast<char>('0' + rest / 10 % 10),
                           static_cast<char>('0' + rest % 10)};
  out->append(decimals, sizeof decimals);
}

// Begins the object of the arguments of an event that ends a slice.
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

// Appends the members for the payload and the properties.
void AppendProperties(const exporting::ExportedEvent& exported, std::string* out) {
  const nettrace::Event& event = *exported.event;
  *out += R"("payload":)";
  base::AppendPrintable(exported.payload_json, out);
  if (!exported.payload_error.empty()) {
    *out += R"(,"error":)";
    AppendText(exported.payload_error, out);
  }
  *out += R"(,"level":)";
  base::AppendNumber(event.level(), out);
  *out += R"(,"keywords":")";
  base::AppendHexNumber(event.keywords(), out);
  *out += '"';
  if (event.opcode() != 0) {
    *out += R"(,"opcode":)";
    base::AppendNumber(event.opcode(), out);
  }
  if (event.processor != nettrace::kNoProcessor) {
    *out += R"(,"cpu":)";
    base::AppendNumber(event.processor, out);
  }
  AppendGuidMember(R"(,"activityId":")", event.labels->activity_id, out);
  AppendGuidMember(R"(,"relatedActivityId":")", event.labels->related_activity_id, out);
}

}  // namespace

TraceEventExporter::TraceEventExporter(const nettrace::Reader& reader, Profile profile,
                                       nettrace::Sink* sink)
    : clock_start_(reader.TimeOf(0)), profile_(profile), output_(sink), json_(buffer_) {}

void TraceEventExporter::PutTime(const char* key, absl::Duration duration) {
  std::string digits;
  AppendMicroseconds(duration, &digits);
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
  // The difference is negative only if the file's ticks exceed the range of absl::Time.
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
  if (!names_.Changes(ids, name)) return absl::OkStatus();
  Begin(kind, "M", clock_start_, ids);
  json_.Key("args");
  json_.StartObject();
  base::PutText(&json_, "name", name);
  json_.EndObject();
  return End();
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

// Appends the object of the event to the output. It needs no JSON writer, which would take most of
// the time of an export.
absl::Status TraceEventExporter::PutEvent(const exporting::ExportedEvent& exported,
                                          const trace::Ids& ids) {
  const nettrace::Event& event = *exported.event;
  const nettrace::EventMetadata& metadata = *event.metadata;
  const bool begins = trace::BeginsActivity(event);
  std::optional<trace::OpenSlices::Slice> ended;
  if (begins) {
    slices_.Begin(event, exported.time);
  } else if (trace::EndsActivity(event)) {
    ended = slices_.End(event);
  }
  std::string& out = *output_.text();
  out += TakeSeparator();
  out += R"({"name":)";
  AppendText(ended ? ended->name : trace::EventName(metadata), &out);
  out += begins ? R"(,"ph":"b","ts":)" : ended ? R"(,"ph":"e","ts":)" : R"(,"ph":"i","ts":)";
  AppendMicroseconds(exported.time - clock_start_, &out);
  out += R"(,"pid":)";
  AppendInteger(ids.first, &out);
  out += R"(,"tid":)";
  AppendInteger(ids.second, &out);
  if (begins || ended) {
    AppendGuidMember(R"(,"id":")", event.labels->activity_id, &out);
  } else {
    out += R"(,"s":"t")";
  }
  out += R"(,"cat":)";
  AppendText(ended ? ended->provider : metadata.provider, &out);
  out += R"(,"args":{)";
  if (ended) AppendStop(metadata, *ended, &out);
  AppendProperties(exported, &out);
  out += ended ? "}}}" : "}}";
  return output_.Appended();
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
