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
// Attributes that an event does not have, or that are 0, are left out. The uid of a record is the
// same whenever the same file is exported: a hash of its capture thread, its time, and its number
// on that thread.
//
// A loss is a record LostEvents of the scope nettrace with the severity WARN. Its attributes are
// log.record.uid, count and, if they are known, cpu.logical_number, nettrace.capture_thread, and
// from the account nettrace.lost_since, nettrace.lost_until, nettrace.lost_tracepoint and
// nettrace.lost_reason. Its time is Loss::time. The losses of an interval follow its events, and a
// loss that has several details becomes several records.
//
// Events that were deleted before they were read are a record of the same name; see DeletedEvents.
#ifndef TOOLS_NETTRACE_EXPORT_OTLP_LOG_REQUESTS_H_
#define TOOLS_NETTRACE_EXPORT_OTLP_LOG_REQUESTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "nettrace/reader.h"
#include "tools/nettrace/export/exporter.h"
#include "tools/nettrace/export/otlp/log_encoder.h"
#include "tools/nettrace/export/otlp/loss_details.h"
#include "tools/nettrace/export/otlp/trace_ids.h"
#include "tools/trace/common_schema.h"
#include "tools/trace/payload_json.h"

namespace tools::otlp {

// Maximum size of a request. A record that is larger than `bytes` becomes a request without other
// records.
struct RequestLimits {
  // Maximum bytes of a request. The file receivers of the OpenTelemetry collector cut lines at 1
  // MiB.
  std::size_t bytes = 1'000'000;
  std::size_t records = 8192;
};

// Describes events that were recorded, and deleted before they could be read.
struct DeletedEvents {
  absl::Time time = {};
  std::string text = {};  // for people; valid UTF-8
  std::string name = {};  // of the file, or of the series of files; valid UTF-8
  std::optional<std::uint64_t> count = std::nullopt;  // events; nullopt means unknown
  std::uint64_t sections = 0;                         // attribute nettrace.lost_sections
  std::uint64_t files = 0;                            // attribute nettrace.lost_files
  std::string id = {};                                // distinguishes the uids of a name
};

// Collects records and passes each full request to a function. The records of a request are grouped
// by resource and scope, and are in the order of the events within each group. The functions are
// called like those of Exporter. Memory holds one request, and data of a bounded number of threads
// and metadata rows.
class LogRequests {
 public:
  // Receives an encoded ExportLogsServiceRequest, which is valid during the call.
  using Send = std::function<absl::Status(std::string_view request)>;

  // `trace` must outlive this object.
  LogRequests(Encoding encoding, trace::PayloadStyle payloads, const nettrace::TraceInfo& trace,
              const RequestLimits& limits, Send send);

  absl::Status OnEvent(const exporting::ExportedEvent& event);
  absl::Status OnLoss(const trace::Loss& loss);
  // Receives events that the filter does not select, because some of them describe losses.
  void OnOtherEvent(const nettrace::Event& event);
  absl::Status OnDeletedEvents(const DeletedEvents& deleted);
  void OnRowsEnd();
  // Passes all records to the function `send`.
  absl::Status Flush();

  // Leaves out the next `count` records, as if they had been passed on. Must be called before the
  // first event. The records after them are the same as without this call.
  void SkipRecords(std::uint64_t count) { skipped_ = count; }
  // Returns the number of records in the current request.
  std::size_t records() const { return order_.size(); }
  // Returns the number of events of the file that records of the current request represent: an
  // event counts 1, a loss its number. The first record is numbered `first`.
  std::uint64_t EventsIn(std::size_t first, std::size_t count) const;
  // Appends a request that has the records of the current request from the one numbered `first`
  // on, at most `count` of them, in the order in which they were added. May be called by Send.
  void AppendPart(std::size_t first, std::size_t count, std::string* out) const;

 private:
  // The service that a log record of OpenTelemetry states. Both members are empty for other events.
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
    std::string resource;
    std::uint64_t request = 0;  // number of the request in which `group` is the resource's group
    std::size_t group = 0;
  };
  // Holds the data that all events of a metadata row share.
  struct Row {
    std::string name;  // valid UTF-8
    std::string scope;
    std::string tag;
    bool is_account = false;
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
  // Place of a record in the current request.
  struct Place {
    std::uint32_t group = 0;
    std::uint32_t scope = 0;
    std::size_t begin = 0;  // offset in ResourceGroup::Scope::records
    std::size_t size = 0;
    std::uint64_t events = 0;  // see EventsIn
  };

  absl::Status SettleLosses();
  absl::Status AddLoss(const PendingLoss& loss, const LossDetail& detail, std::size_t number);
  // Begins a record LostEvents.
  void BeginLoss(absl::Time time);
  absl::Status SendRequest();
  // Adds a record to the current request. If the request would become too large, first passes it to
  // send_ and begins a new request.
  absl::Status AddRecord(std::string_view record, Source* source, const std::string& scope,
                         std::uint64_t events);

  const nettrace::TraceInfo& trace_;
  const RequestLimits limits_;
  const Send send_;
  const std::unique_ptr<LogEncoder> encoder_;
  trace::PayloadJson payloads_;
  TraceIds ids_;
  // Caches by the addresses of rows. The rows are valid until OnRowsEnd.
  absl::node_hash_map<const nettrace::ThreadInfo*, Source> sources_;
  absl::node_hash_map<const nettrace::EventMetadata*, Row> rows_;
  absl::node_hash_map<const nettrace::ThreadInfo*, std::string> origins_;
  std::string lost_scope_;
  LossDetails loss_details_;
  std::vector<PendingLoss> losses_;
  bool are_losses_due_ = false;  // whether their interval has ended
  std::string uid_;
  // The following members are about the current request.
  std::uint64_t request_ = 1;  // its number
  std::vector<ResourceGroup> groups_;
  absl::flat_hash_map<std::string, std::size_t> places_;  // indices in groups_, by resource
  std::vector<Place> order_;   // of its records, in the order in which they were added
  std::uint64_t skipped_ = 0;  // records that are still left out
  std::size_t bytes_ = LogEncoder::kFrameSize;
  std::string encoded_;
};

}  // namespace tools::otlp

#endif  // TOOLS_NETTRACE_EXPORT_OTLP_LOG_REQUESTS_H_
