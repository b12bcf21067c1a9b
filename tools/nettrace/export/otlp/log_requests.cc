#include "tools/nettrace/export/otlp/log_requests.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nettrace/format.h"
#include "tools/base/json_text.h"
#include "tools/base/short_text.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/trace/account.h"
#include "tools/trace/account_summary.h"
#include "tools/trace/activity_matcher.h"
#include "tools/trace/code_map.h"
#include "tools/trace/event_name.h"
#include "tools/trace/eventheader_keys.h"
#include "tools/trace/key_values.h"
#include "tools/trace/levels.h"
#include "tools/trace/thread_keys.h"

namespace tools::otlp {
namespace {

constexpr std::string_view kService = ".service";
constexpr std::string_view kIncomplete = "nettrace.span.incomplete";

// Returns whether the value of this key of a thread row is written to the resource.
bool IsOfResource(std::string_view key) {
  return key == nettrace::kKeyHostName || key == nettrace::kKeyBootId ||
         key == trace::kExecutableKey || key == trace::kCgroupKey || key == trace::kUnitKey ||
         key == trace::kUserUnitKey || key == trace::kContainerKey;
}

// Returns the name of the service: the name of its user unit or unit without ".service", if one of
// them has this ending, and otherwise `executable`.
std::string_view ServiceName(std::string_view unit, std::string_view user_unit,
                             std::string_view executable) {
  for (std::string_view name : {user_unit, unit}) {
    if (name.ends_with(kService)) return name.substr(0, name.size() - kService.size());
  }
  return executable;
}

// Returns the SeverityNumber of OpenTelemetry for a level.
std::uint8_t SeverityOf(std::uint8_t level) {
  constexpr std::array<std::uint8_t, 6> kSeverities = {0, 21, 17, 13, 9, 5};
  return level < kSeverities.size() ? kSeverities[level] : 1;
}

// Returns nanoseconds since 1970. Returns 0, which means unknown, for earlier times.
std::uint64_t UnixNanoseconds(absl::Time time) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(absl::ToUnixNanos(time), 0));
}

// Replaces the members of `head` for which the log record has a value. `record` must outlive
// `head`.
void ReplaceHead(const trace::LogRecord& record, RecordHead* head) {
  if (record.time) head->time = UnixNanoseconds(*record.time);
  if (record.severity != 0) {
    head->severity = record.severity;
    head->severity_text = "";
  }
  if (!record.severity_text.empty()) head->severity_text = record.severity_text;
  if (!record.name.empty()) head->event_name = record.name;
  if (record.trace_id) {
    head->trace_id = record.trace_id;
    head->span_id = record.span_id;
  }
  head->flags = record.trace_flags;
}

// Clears the cache if it is full, to bound its memory. The cache has data of metadata rows or
// thread rows.
template <typename Cache>
void LimitCache(Cache* cache) {
  constexpr std::size_t kMaxEntries = 16384;
  if (cache->size() >= kMaxEntries) cache->clear();
}

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

LogRequests::LogRequests(Encoding encoding, const nettrace::TraceInfo& trace,
                         const RequestLimits& limits, Send send)
    : trace_(trace),
      encoder_(LogEncoder::Create(encoding)),
      logs_(encoder_.get(), Signal::kLogs, limits, std::move(send)),
      lost_scope_(EncodeScope("nettrace", "")) {}

absl::Status LogRequests::OnEvent(const exporting::ExportedEvent& exported) {
  if (are_losses_due_) RETURN_IF_ERROR(SettleLosses());
  const nettrace::Event& event = *exported.event;
  payloads_ = exported.payloads;
  // RowOf and SourceOf encode other messages, so they must be called before BeginRecord.
  const Row& row = RowOf(*event.metadata);
  if (row.is_account) OnOtherEvent(event);
  const std::optional<trace::LogRecord> record = trace::ReadLogRecord(event, payloads_);
  Source& source =
      SourceOf(*event.thread, exported.process,
               record ? Service{record->service, record->service_instance} : Service());
  const std::uint8_t level = event.level();
  RecordHead head;
  head.time = head.observed = UnixNanoseconds(exported.time);
  head.severity = SeverityOf(level);
  const std::string level_name = level == 0 ? "" : trace::LevelName(level);
  head.severity_text = level_name;
  head.event_name = row.name;
  const SpanIds ids = ids_.IdsOf(*event.labels);
  head.trace_id = ids.trace_id;
  head.span_id = ids.span_id;
  if (record) ReplaceHead(*record, &head);
  bool is_incomplete = false;
  if (row.has_spans && head.trace_id && head.span_id) {
    if (trace::BeginsActivity(event)) {
      RETURN_IF_ERROR(BeginSpan(exported, head, row, source, record));
    } else if (trace::EndsActivity(event)) {
      ASSIGN_OR_RETURN(const bool has_start, EndSpan(event, head, row, record));
      is_incomplete = !has_start;
    }
  }
  if (span_options_.without_logs) return absl::OkStatus();
  encoder_->BeginRecord(head);
  base::ShortText<32> number;
  number.AddNumber(event.sequence_number);
  PutUid(exported.time, OriginOf(event.capture_thread, event.capture_thread_index), number.text());
  PutProperties(event, row);
  if (is_incomplete) {
    encoder_->Attribute(kIncomplete);
    encoder_->Bool(true);
  }
  PutFields(event, record);
  return logs_.Add(encoder_->Take(), &source.resource, row.scope, 1);
}

absl::Status LogRequests::OnLoss(const trace::Loss& loss) {
  if (span_options_.without_logs) return absl::OkStatus();
  constexpr std::size_t kMaxPending = 4096;
  if (are_losses_due_ || losses_.size() >= kMaxPending) RETURN_IF_ERROR(SettleLosses());
  PendingLoss& pending = losses_.emplace_back();
  // The loss belongs to the host, and not to a process.
  for (const auto& [key, value] : loss.capture_thread->key_values) {
    if (key == nettrace::kKeyHostName || key == nettrace::kKeyBootId) {
      pending.host.emplace_back(key, value);
    }
  }
  pending.origin = OriginOf(loss.capture_thread, loss.capture_thread_index);
  pending.thread = loss.capture_thread->name.value_or("");
  pending.count = loss.count;
  pending.time = loss.time;
  if (loss.next != nullptr) {
    pending.next = loss.next->sequence_number;
    if (loss.next->processor != nettrace::kNoProcessor) pending.cpu = loss.next->processor;
  }
  return absl::OkStatus();
}

void LogRequests::OnOtherEvent(const nettrace::Event& event) {
  if (!trace::IsAccount(event)) return;
  if (const auto account = trace::ParseAccount(event)) {
    loss_details_.Add(*account, HostText(event.thread->key_values));
  }
}

absl::Status LogRequests::OnDeletedEvents(const DeletedEvents& deleted) {
  RequestBatch::Resource resource = {.encoded = EncodeResource({}, "", Service())};
  BeginLoss(deleted.time);
  const std::string origin = absl::StrCat(
      absl::Hex(Fnv1a(Bytes(absl::StrCat(HostText({}), "\n", deleted.name))), absl::kZeroPad16));
  PutUid(deleted.time, origin, "deleted" + deleted.id);
  if (deleted.count) {
    encoder_->Attribute("count");
    encoder_->Whole(*deleted.count);
  }
  PutText("nettrace.lost_name", deleted.name);
  PutNumber("nettrace.lost_sections", deleted.sections);
  PutNumber("nettrace.lost_files", deleted.files);
  encoder_->BeginBody();
  encoder_->Text(deleted.text);
  return logs_.Add(encoder_->Take(), &resource, lost_scope_, 0);
}

absl::Status LogRequests::SettleLosses() {
  are_losses_due_ = false;
  for (PendingLoss& loss : std::exchange(losses_, {})) {
    const std::string host = HostText(loss.host);
    for (std::size_t number = 1; loss.count != 0; ++number) {
      const LossDetail detail = loss_details_.Take(host, loss.thread, loss.count);
      loss.count -= detail.count;
      RETURN_IF_ERROR(AddLoss(loss, detail, number));
    }
  }
  return absl::OkStatus();
}

absl::Status LogRequests::AddLoss(const PendingLoss& loss, const LossDetail& detail,
                                  std::size_t number) {
  nettrace::ThreadInfo host;
  host.key_values = loss.host;
  RequestBatch::Resource resource = {.encoded = EncodeResource(host, "", Service())};
  BeginLoss(loss.time);
  std::string id = loss.next ? absl::StrCat("lost", *loss.next) : "lost";
  if (number > 1) absl::StrAppend(&id, ".", number);
  PutUid(loss.time, loss.origin, id);
  PutNumber("count", detail.count);
  if (loss.cpu) {
    encoder_->Attribute("cpu.logical_number");
    encoder_->Whole(*loss.cpu);
  }
  PutText("nettrace.capture_thread", loss.thread);
  if (detail.since != 0) PutText("nettrace.lost_since", trace::AccountTimeText(detail.since));
  if (detail.until != 0) PutText("nettrace.lost_until", trace::AccountTimeText(detail.until));
  PutText("nettrace.lost_tracepoint", detail.tracepoint);
  PutText("nettrace.lost_reason", detail.reason);
  encoder_->BeginBody();
  encoder_->Text(base::Counted(detail.count, "event") + " lost");
  return logs_.Add(encoder_->Take(), &resource, lost_scope_, detail.count);
}

void LogRequests::BeginLoss(absl::Time time) {
  RecordHead head;
  head.time = head.observed = UnixNanoseconds(time);
  head.severity = SeverityOf(3);
  const std::string level_name = trace::LevelName(3);
  head.severity_text = level_name;
  head.event_name = "LostEvents";
  encoder_->BeginRecord(head);
}

void LogRequests::OnRowsEnd() {
  are_losses_due_ = !losses_.empty();
  sources_.clear();
  rows_.clear();
  origins_.clear();
}

absl::Status LogRequests::Flush() {
  RETURN_IF_ERROR(SettleLosses());
  RETURN_IF_ERROR(logs_.Flush());
  return spans_ ? spans_->Flush() : absl::OkStatus();
}

absl::Status LogRequests::Finish() {
  while (std::optional<OpenSpan> span = window_.TakeOldest()) {
    RETURN_IF_ERROR(AddIncomplete(*std::move(span)));
  }
  return Flush();
}

void LogRequests::MakeSpans(SpanOptions options, const RequestLimits& limits) {
  spans_.emplace(encoder_.get(), Signal::kSpans, limits, options.send);
  span_options_ = std::move(options);
}

absl::Status LogRequests::BeginSpan(const exporting::ExportedEvent& exported,
                                    const RecordHead& head, const Row& row, const Source& source,
                                    const std::optional<trace::LogRecord>& record) {
  const nettrace::Event& event = *exported.event;
  OpenSpan span;
  span.head.trace_id = *head.trace_id;
  span.head.span_id = *head.span_id;
  span.head.name = SpanName(head.event_name);
  span.head.start = span.head.end = head.observed;
  if (const OpenSpan* const outer = window_.Find(*event.labels->activity_id)) {
    // The activity is inside of an open activity with the same id, so its span needs another id.
    span.head.parent = outer->head.span_id;
    span.head.span_id = Fnv1a(Bytes(absl::StrCat(outer->head.span_id))) | 1;
  } else {
    FindParent(*event.labels, &span.head);
  }
  span.activity = *event.labels->activity_id;
  span.provider = event.metadata->provider;
  span.resource = source.resource.encoded;
  span.scope = row.scope;
  span.attributes = SpanAttributes(event, row, record);
  for (OpenSpan& old : window_.Add(std::move(span))) {
    RETURN_IF_ERROR(AddIncomplete(std::move(old)));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> LogRequests::EndSpan(const nettrace::Event& event, const RecordHead& head,
                                          const Row& row,
                                          const std::optional<trace::LogRecord>& record) {
  std::optional<OpenSpan> span = window_.Take(*event.labels->activity_id, event.metadata->provider);
  if (!span) {
    ++incomplete_;
    return false;
  }
  span->head.end = std::max(span->head.start, head.observed);
  for (EncodedAttribute& attribute : SpanAttributes(event, row, record)) {
    span->attributes.push_back(std::move(attribute));
  }
  RETURN_IF_ERROR(AddSpan(*std::move(span)));
  return true;
}

void LogRequests::FindParent(const nettrace::Labels& labels, SpanHead* head) const {
  const std::optional<nettrace::Guid>& related = labels.related_activity_id;
  const nettrace::Guid none = {};
  if (!related || *related == none || *related == *labels.activity_id) return;
  const OpenSpan* const parent = window_.Find(*related);
  if (parent != nullptr && parent->head.trace_id == head->trace_id) {
    head->parent = parent->head.span_id;
    return;
  }
  const SpanIds ids = ids_.IdsOfActivity(*related);
  head->links.push_back(parent != nullptr ? SpanLink{parent->head.trace_id, parent->head.span_id}
                                          : SpanLink{*ids.trace_id, *ids.span_id});
}

std::vector<EncodedAttribute> LogRequests::SpanAttributes(
    const nettrace::Event& event, const Row& row, const std::optional<trace::LogRecord>& record) {
  encoder_->BeginAttributes();
  PutProperties(event, row);
  PutFields(event, record);
  return encoder_->TakeAttributes();
}

absl::Status LogRequests::AddSpan(OpenSpan span) {
  RequestBatch::Resource resource = {.encoded = std::move(span.resource)};
  return spans_->Add(encoder_->EncodeSpan(span.head, span.attributes), &resource, span.scope, 0);
}

absl::Status LogRequests::AddIncomplete(OpenSpan span) {
  ++incomplete_;
  encoder_->BeginAttributes();
  encoder_->Attribute(kIncomplete);
  encoder_->Bool(true);
  for (EncodedAttribute& attribute : encoder_->TakeAttributes()) {
    span.attributes.push_back(std::move(attribute));
  }
  return AddSpan(std::move(span));
}

LogRequests::Source& LogRequests::SourceOf(const nettrace::ThreadInfo& thread,
                                           std::string_view process, const Service& service) {
  LimitCache(&sources_);
  const auto [entry, added] = sources_.try_emplace(&thread);
  Source& source = entry->second;
  if (added || source.process != process || source.service != service) {
    source = {std::string(process), service, {.encoded = EncodeResource(thread, process, service)}};
  }
  return source;
}

std::string LogRequests::EncodeResource(const nettrace::ThreadInfo& thread,
                                        std::string_view process, const Service& service) {
  const auto host_value = [&](std::string_view key) {
    const std::string_view value = trace::FindValue(thread.key_values, key);
    return value.empty() ? trace::FindValue(trace_.key_values, key) : value;
  };
  const std::string_view host = host_value(nettrace::kKeyHostName);
  const std::string_view boot = host_value(nettrace::kKeyBootId);
  const std::string_view unit = trace::FindValue(thread.key_values, trace::kUnitKey);
  const std::string_view user_unit = trace::FindValue(thread.key_values, trace::kUserUnitKey);
  std::string_view path = trace::FindValue(thread.key_values, trace::kExecutableKey);
  if (path.empty() && process.starts_with('/')) path = process;
  std::string_view executable = path.empty() ? process : path;
  executable.remove_prefix(executable.rfind('/') + 1);  // npos + 1 is 0
  encoder_->BeginResource();
  PutText("service.name",
          service.name.empty() ? ServiceName(unit, user_unit, executable) : service.name);
  if (!service.instance.empty()) {
    PutText("service.instance.id", service.instance);
  } else if (!boot.empty() && thread.process_id) {
    PutText("service.instance.id", absl::StrCat(std::string(boot), ":", *thread.process_id));
  }
  PutText("host.name", host);
  PutText("nettrace.boot_id", boot);
  if (thread.process_id) {
    encoder_->Attribute("process.pid");
    encoder_->Whole(*thread.process_id);
  }
  PutText("process.executable.name", executable);
  PutText("process.executable.path", path);
  PutText("process.linux.cgroup", trace::FindValue(thread.key_values, trace::kCgroupKey));
  PutText("container.id", trace::FindValue(thread.key_values, trace::kContainerKey));
  PutText("nettrace.unit", unit);
  PutText("nettrace.user_unit", user_unit);
  return std::string(encoder_->Take());
}

std::string LogRequests::EncodeScope(std::string_view name, std::string_view group) {
  encoder_->BeginScope(base::ValidUtf8(name));
  PutText("eventheader.group", group);
  return std::string(encoder_->Take());
}

const LogRequests::Row& LogRequests::RowOf(const nettrace::EventMetadata& metadata) {
  LimitCache(&rows_);
  const auto [entry, added] = rows_.try_emplace(&metadata);
  Row& row = entry->second;
  if (added) {
    row.name = base::ValidUtf8(trace::EventName(metadata));
    row.scope =
        EncodeScope(metadata.provider, trace::FindValue(metadata.key_values, trace::kKeyGroup));
    row.tag = trace::FindValue(metadata.key_values, trace::kKeyTag);
    row.is_account = metadata.provider == trace::kAccountProvider;
    const std::vector<std::string>& with_spans = span_options_.providers;
    row.has_spans =
        spans_ && (span_options_.all_providers || std::find(with_spans.begin(), with_spans.end(),
                                                            metadata.provider) != with_spans.end());
  }
  return row;
}

std::string LogRequests::HostText(const nettrace::KeyValues& key_values) const {
  std::string text;
  for (const std::string_view key : {nettrace::kKeyHostName, nettrace::kKeyBootId}) {
    const std::string_view value = trace::FindValue(key_values, key);
    text += value.empty() ? trace::FindValue(trace_.key_values, key) : value;
    text += '\n';
  }
  return text;
}

const std::string& LogRequests::OriginOf(const nettrace::ThreadInfo* thread,
                                         nettrace::ThreadIndex index) {
  LimitCache(&origins_);
  const auto [entry, added] = origins_.try_emplace(thread);
  if (!added) return entry->second;
  std::string text = HostText(thread->key_values);
  absl::StrAppend(&text, thread->name.value_or(""), "\n", thread->process_id.value_or(0), "\n",
                  thread->thread_id.value_or(0), "\n", static_cast<std::uint64_t>(index));
  entry->second = absl::StrCat(absl::Hex(Fnv1a(Bytes(text)), absl::kZeroPad16));
  return entry->second;
}

void LogRequests::PutProperties(const nettrace::Event& event, const Row& row) {
  if (event.thread->thread_id) {
    encoder_->Attribute("thread.id");
    encoder_->Whole(*event.thread->thread_id);
  }
  PutText("thread.name", event.thread->name ? std::string_view(*event.thread->name) : "");
  if (event.processor != nettrace::kNoProcessor) {
    encoder_->Attribute("cpu.logical_number");
    encoder_->Whole(std::uint64_t{event.processor});
  }
  PutNumber("eventheader.id", payloads_->NotesOf(*event.metadata).id);
  PutNumber("eventheader.version", event.version());
  PutNumber("eventheader.opcode", event.opcode());
  const std::uint64_t keywords = event.keywords();
  if (keywords >> 63 != 0) {
    PutText("eventheader.keyword", base::FormatHexNumber(keywords));
  } else {
    PutNumber("eventheader.keyword", keywords);
  }
  PutText("eventheader.tag", row.tag);
  if (!event.labels->empty()) PutLabels(*event.labels);
  if (!event.thread->key_values.empty()) PutThreadKeys(event.thread->key_values);
  if (event.stack.empty()) return;
  encoder_->Attribute("nettrace.stack");
  encoder_->BeginArray();
  for (const std::uint64_t address : trace::StackAddresses(event, trace_.pointer_size)) {
    encoder_->Text(base::FormatHexNumber(address));
  }
  encoder_->EndArray();
}

void LogRequests::PutFields(const nettrace::Event& event,
                            const std::optional<trace::LogRecord>& record) {
  if (record) {
    if (record->has_body) {
      encoder_->BeginBody();
      trace::PutLogBody(event, payloads_, encoder_.get());
    }
    encoder_->BeginFields(/*repeats_names=*/true);
    trace::PutLogAttributes(event, payloads_, encoder_.get());
    encoder_->EndFields();
    return;
  }
  encoder_->BeginFields(payloads_->NotesOf(*event.metadata).repeats_names);
  const absl::Status status = payloads_->PutMembers(event, encoder_.get());
  encoder_->EndFields();
  PutText("nettrace.error", std::string(status.message()));
}

void LogRequests::PutLabels(const nettrace::Labels& labels) {
  if (labels.activity_id) PutText("eventheader.activity_id", base::FormatGuid(*labels.activity_id));
  if (labels.related_activity_id) {
    PutText("eventheader.related_activity_id", base::FormatGuid(*labels.related_activity_id));
  }
  if (labels.strings.empty() && labels.integers.empty()) return;
  encoder_->BeginMerged();
  for (const auto& [key, value] : labels.strings) {
    encoder_->Key("nettrace.label." + key);
    encoder_->Text(base::ValidUtf8(value));
  }
  for (const auto& [key, value] : labels.integers) {
    encoder_->Key("nettrace.label." + key);
    encoder_->Whole(value);
  }
  encoder_->EndMerged();
}

void LogRequests::PutThreadKeys(const nettrace::KeyValues& key_values) {
  const auto is_of_resource = [](const auto& pair) { return IsOfResource(pair.first); };
  if (std::all_of(key_values.begin(), key_values.end(), is_of_resource)) return;
  encoder_->BeginMerged();
  for (const auto& [key, value] : key_values) {
    if (IsOfResource(key)) continue;
    encoder_->Key("nettrace.thread." + key);
    encoder_->Text(base::ValidUtf8(value));
  }
  encoder_->EndMerged();
}

void LogRequests::PutText(std::string_view key, std::string_view text) {
  if (text.empty()) return;
  encoder_->Attribute(key);
  if (base::IsPrintableAscii(text)) return encoder_->Text(text);
  encoder_->Text(base::ValidUtf8(text));
}

void LogRequests::PutNumber(std::string_view key, std::uint64_t number) {
  if (number == 0) return;
  encoder_->Attribute(key);
  encoder_->Whole(number);
}

void LogRequests::PutUid(absl::Time time, std::string_view origin, std::string_view number) {
  uid_ = origin;
  uid_ += ':';
  base::AppendNumber(absl::ToUnixNanos(time), &uid_);
  uid_ += ':';
  uid_ += number;
  encoder_->Attribute("log.record.uid");
  encoder_->Text(uid_);
}

}  // namespace tools::otlp
