// Maps events and losses to OTLP requests. The caller writes the requests to their destination,
// such as a file.
//
// A record has the properties of an event:
//
//   resource    host.name, nettrace.boot_id, process.pid, process.executable.name and .path,
//               process.linux.cgroup, container.id, service.name, service.instance.id,
//               nettrace.unit and nettrace.user_unit, as far as the trace states them
//   scope       the provider; attribute eventheader.group
//   severity    critical: FATAL; error: ERROR; warning: WARN; information: INFO; verbose: DEBUG;
//               higher levels: TRACE; level 0: unspecified
//   trace and span  see TraceIds
//   attributes  log.record.uid, thread.id, thread.name, cpu.logical_number, eventheader.id,
//               .version, .opcode, .keyword, .tag, .activity_id and .related_activity_id,
//               nettrace.stack, nettrace.label.NAME, nettrace.thread.NAME and nettrace.error, and
//               the fields of the payload; see LogEncoder
//
// An event that is a log record of OpenTelemetry (tools/trace/common_schema.h) becomes that record.
// The record's parts replace those of the event: the time, severity, event name, ids, body and
// service. The time of the event remains the observed time.
//
// Attributes that an event does not have are left out, and so are numbers of eventheader.* if they
// are 0. log.record.uid consists of a hash of the event's capture thread, the time and the sequence
// number. It is therefore the same whenever the same file is exported.
//
// A loss is a record LostEvents of the scope nettrace with the severity WARN. Its attributes are
// log.record.uid, count and, if they are known, cpu.logical_number, nettrace.capture_thread, and
// from the account nettrace.lost_since, nettrace.lost_until, nettrace.lost_tracepoint and
// nettrace.lost_reason. Its time is Loss::time. The losses of an interval follow its events, and a
// loss that has several details becomes several records.
//
// After a call of MakeSpans, an activity also becomes a span. The start and the stop of an activity
// are events with the opcodes 1 and 2 and the same activity id. The span has the resource, the
// scope, and the trace and span id of the start's record. The name of the span is the name of the
// start without "Start" (see SpanName). The span has the attributes of both events; the attributes
// of the stop have precedence. If an activity with the same id is open, the span gets another span
// id, and the open activity becomes its parent. Otherwise, the related activity of the start
// becomes the parent if it is open and in the same trace, else a link. A start without a stop
// becomes a span without duration, with the attribute nettrace.span.incomplete. A record of a stop
// without a start has this attribute, too.
//
// Events that were deleted before they were read become a record that is also named LostEvents; see
// DeletedEvents.
#ifndef TOOLS_NETTRACE_EXPORT_OTLP_LOG_REQUESTS_H_
#define TOOLS_NETTRACE_EXPORT_OTLP_LOG_REQUESTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "nettrace/reader.h"
#include "tools/nettrace/export/exporter.h"
#include "tools/nettrace/export/otlp/log_encoder.h"
#include "tools/nettrace/export/otlp/loss_details.h"
#include "tools/nettrace/export/otlp/request_batch.h"
#include "tools/nettrace/export/otlp/span_window.h"
#include "tools/nettrace/export/otlp/trace_ids.h"
#include "tools/trace/common_schema.h"
#include "tools/trace/payload_json.h"

namespace tools::otlp {

// Describes events that were recorded, and deleted before they could be read.
struct DeletedEvents {
  absl::Time time = {};
  std::string text = {};  // for people; valid UTF-8
  std::string name = {};  // name of the file, or of the series of files; valid UTF-8
  std::optional<std::uint64_t> count = std::nullopt;  // events; nullopt means unknown
  std::uint64_t sections = 0;                         // attribute nettrace.lost_sections
  std::uint64_t files = 0;                            // attribute nettrace.lost_files
  std::string id = {};  // distinguishes the records of one `name`; a part of log.record.uid
};

// Which activities become spans, and the function that receives requests of spans.
struct SpanOptions {
  std::vector<std::string> providers;
  bool all_providers = false;
  bool without_logs = false;  // whether to make no log records
  RequestBatch::Send send;
};

// Collects records and passes each full request to a function. The records of a request are grouped
// by resource and scope, and are in the order of the events within each group. Must be used
// like an Exporter: the member functions of the same names are called at the same times. Memory
// holds one request of each signal, the window of spans, and data of a bounded number of threads
// and metadata rows.
class LogRequests {
 public:
  using Send = RequestBatch::Send;

  // `trace` must outlive this object.
  LogRequests(Encoding encoding, const nettrace::TraceInfo& trace, const RequestLimits& limits,
              Send send);
  // Makes spans, too. Must be called before the first event.
  void MakeSpans(SpanOptions options, const RequestLimits& limits);

  absl::Status OnEvent(const exporting::ExportedEvent& event);
  absl::Status OnLoss(const trace::Loss& loss);
  // Receives events that the filter does not select, because some of them describe losses.
  void OnOtherEvent(const nettrace::Event& event);
  absl::Status OnDeletedEvents(const DeletedEvents& deleted);
  void OnRowsEnd();
  // Passes all records so far, and the spans of ended activities, to the functions `send`.
  absl::Status Flush();
  // Must be called after the last event. Also ends the open spans.
  absl::Status Finish();

  RequestBatch& logs() { return logs_; }
  RequestBatch* spans() { return spans_ ? &*spans_ : nullptr; }
  // Returns the number of starts without a stop, and of stops without a start.
  std::uint64_t incomplete_spans() const { return incomplete_; }

 private:
  // The service that a log record of OpenTelemetry states. Both members are empty for events that
  // are no such log record.
  struct Service {
    std::string name;
    std::string instance;
    friend bool operator==(const Service&, const Service&) = default;
  };
  // Holds the data that all events of a thread share while its process has the same name and
  // service.
  struct Source {
    std::string process;
    Service service;
    RequestBatch::Resource resource;
  };
  // Holds the data that all events of a metadata row share.
  struct Row {
    std::string name;  // valid UTF-8
    std::string scope;
    std::string tag;
    bool is_account = false;
    bool has_spans = false;
  };
  // A loss that becomes a record at the end of its interval.
  struct PendingLoss {
    nettrace::KeyValues host;
    std::string origin;
    std::string thread;  // name of the capture thread
    std::uint64_t count = 0;
    absl::Time time;
    std::optional<std::uint32_t> next;  // sequence number of the event after the loss
    std::optional<std::uint64_t> cpu;
  };

  Source& SourceOf(const nettrace::ThreadInfo& thread, std::string_view process,
                   const Service& service);
  const Row& RowOf(const nettrace::EventMetadata& metadata);
  std::string EncodeScope(std::string_view name, std::string_view group);
  std::string EncodeResource(const nettrace::ThreadInfo& thread, std::string_view process,
                             const Service& service);
  // Returns text that identifies the host of a thread.
  std::string HostText(const nettrace::KeyValues& key_values) const;
  // Returns 16 hexadecimal digits that identify the capture thread.
  const std::string& OriginOf(const nettrace::ThreadInfo* thread, nettrace::ThreadIndex index);
  void PutProperties(const nettrace::Event& event, const Row& row);
  // Writes the fields of the payload, or the body and attributes of a log record of OpenTelemetry.
  void PutFields(const nettrace::Event& event, const std::optional<trace::LogRecord>& record);
  void PutLabels(const nettrace::Labels& labels);
  void PutThreadKeys(const nettrace::KeyValues& key_values);
  // Write an attribute. PutText writes nothing for an empty text, and PutNumber nothing for 0.
  void PutText(std::string_view key, std::string_view text);
  void PutNumber(std::string_view key, std::uint64_t number);
  void PutUid(absl::Time time, std::string_view origin, std::string_view number);
  absl::Status SettleLosses();
  absl::Status AddLoss(const PendingLoss& loss, const LossDetail& detail, std::size_t number);
  // Begins a record LostEvents.
  void BeginLoss(absl::Time time);

  // Begin and end the span of an event. EndSpan returns whether there was a start.
  absl::Status BeginSpan(const exporting::ExportedEvent& exported, const RecordHead& head,
                         const Row& row, const Source& source,
                         const std::optional<trace::LogRecord>& record);
  absl::StatusOr<bool> EndSpan(const nettrace::Event& event, const RecordHead& head, const Row& row,
                               const std::optional<trace::LogRecord>& record);
  void FindParent(const nettrace::Labels& labels, SpanHead* head) const;
  std::vector<EncodedAttribute> SpanAttributes(const nettrace::Event& event, const Row& row,
                                               const std::optional<trace::LogRecord>& record);
  absl::Status AddSpan(OpenSpan span);
  absl::Status AddIncomplete(OpenSpan span);

  const nettrace::TraceInfo& trace_;
  const std::unique_ptr<LogEncoder> encoder_;
  RequestBatch logs_;
  std::optional<RequestBatch> spans_;
  SpanOptions span_options_;
  SpanWindow window_;
  std::uint64_t incomplete_ = 0;
  trace::PayloadJson* payloads_ = nullptr;  // payloads of the event that OnEvent receives
  TraceIds ids_;
  // Caches by the addresses of rows. The rows are valid until OnRowsEnd.
  absl::node_hash_map<const nettrace::ThreadInfo*, Source> sources_;
  absl::node_hash_map<const nettrace::EventMetadata*, Row> rows_;
  absl::node_hash_map<const nettrace::ThreadInfo*, std::string> origins_;
  std::string lost_scope_;
  LossDetails loss_details_;
  std::vector<PendingLoss> losses_;
  bool are_losses_due_ = false;  // whether the interval of losses_ has ended
  std::string uid_;
};

}  // namespace tools::otlp

#endif  // TOOLS_NETTRACE_EXPORT_OTLP_LOG_REQUESTS_H_
