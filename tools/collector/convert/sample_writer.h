// The floor of conversion: samples into NetTrace events.
//
// In: the format of each tracepoint, then its samples in the order of each CPU, and the number of
// those that were lost. Out: metadata rows, thread rows, labels, events, losses and sequence
// points, written to a nettrace::Writer. The metadata of an EventHeader event is compiled, once a
// schema, into a metadata row and a payload program (event_schema.h, payload_program.h); a kernel
// tracepoint's format into a row (tracepoint_schema.h); ids of W3C trace contexts become labels as
// well (trace_context.h).
//
// Promises: all in a sample but its pid, tid and timestamp was written by another process and may
// be anything. An event that does not decode is written as its bytes, under the name "Undecoded",
// and so is one whose provider has used up its share of schemas: no process can cost more than its
// bounded share, nor another one its events. Nothing is allocated for an event once its schema is
// known. Only errors of the writer's sink come back.
#ifndef TOOLS_COLLECTOR_CONVERT_SAMPLE_WRITER_H_
#define TOOLS_COLLECTOR_CONVERT_SAMPLE_WRITER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "eventheader/decoder.h"
#include "libnettrace-writer/core/event_ids.h"
#include "nettrace/writer.h"
#include "tools/collector/convert/event_schema.h"
#include "tools/collector/convert/kernel_symbols.h"
#include "tools/collector/convert/process_writer.h"
#include "tools/collector/convert/tracepoint_schema.h"
#include "tools/collector/identity/task_tracker.h"
#include "tools/collector/perf/perf_records.h"

namespace collector {

// Not thread-safe.
class SampleWriter {
 public:
  // Bounds on what one provider's schemas may cost.
  static constexpr std::size_t kMaxSchemas = 4096;
  static constexpr std::size_t kMaxSchemaBytes = 4 << 20;
  // Forms of a schema that tell apart which of its nullable fields are null.
  static constexpr std::size_t kMaxForms = 64;
  static constexpr char kUndecoded[] = "Undecoded";
  // The label of an event that came after its interval was closed, with its own timestamp. The
  // event's timestamp is then the earliest that the format allows.
  static constexpr const auto& kLateLabel = nettrace::kLabelOriginalTimestamp;

  struct Stats {
    std::uint64_t undecoded = 0;
    std::uint64_t late = 0;
    std::uint64_t process_events = 0;
  };

  // Both outlive this object. `cpus` are the numbers of the CPUs that samples come from.
  SampleWriter(nettrace::Writer* writer, TaskTracker* tasks, const std::vector<int>& cpus);

  // Makes the samples of tracepoint `id` known. A tracepoint that is known stays as it is.
  absl::Status AddTracepoint(int id, const std::string& system, const std::string& event,
                             const std::string& format);

  // Writes a sample of the CPU at `cpu` of `cpus`. Only the sink's errors come back.
  absl::Status Write(std::size_t cpu, const SampleRecord& sample, std::uint64_t timestamp);
  // `count` samples of that CPU were lost here.
  absl::Status AddLost(std::size_t cpu, std::uint64_t count);

  // Closes the interval at `timestamp`. What has happened to processes until then is written, too.
  absl::Status WriteSequencePoint(std::uint64_t timestamp);
  std::size_t events_in_interval() const { return events_in_interval_; }
  // Readers keep the events of an interval in memory, and lose those of the last one where a file
  // is cut short. It is full long before it has so many: how many the rings hold for a time is only
  // an estimate.
  static constexpr std::size_t kEventsPerInterval = 65536;
  static constexpr std::size_t kFullInterval = kEventsPerInterval / 4;
  // The interval has grown to what one should hold.
  bool interval_is_full() const {
    return labels_in_interval_ >= kLabelsPerInterval || events_in_interval_ >= kFullInterval ||
           tasks_->processes().waiting() >= kProcessEventsPerInterval ||
           tasks_->rows() >= kThreadRowsPerFlush;
  }

  Stats stats() const {
    Stats stats = stats_;
    stats.process_events = processes_.written();
    return stats;
  }

 private:
  static constexpr std::size_t kLabelsPerInterval = 65536;
  static constexpr std::size_t kProcessEventsPerInterval = 16384;
  static constexpr std::size_t kThreadRowsPerFlush = 65536;
  static constexpr std::size_t kRecentSchemas = 256;
  static constexpr std::size_t kRecentActivities = 256;
  static constexpr std::size_t kMaxSymbolLists = 65536;

  struct Cpu {
    int number;
    nettrace::ThreadIndex capture_thread = nettrace::kNoThread;
    std::uint64_t last_timestamp = 0;
  };

  // What the schemas of one provider cost. Names that differ in case only are one provider's to
  // TraceEvent, which tells events apart by provider and id.
  struct Provider {
    std::size_t schemas = 0;
    std::size_t schema_bytes = 0;
  };

  // A schema with the types that suit the values of some of its events.
  struct Form {
    nettrace::MetadataId metadata_id = nettrace::kNoMetadata;
    PayloadProgram program;
    bool usable = true;  // false: the file cannot hold its row
  };
  // Distinguishes the schemas of a tracepoint. The opcode is one of them, not a label of events:
  // TraceLog, with which PerfView reads, takes it from the metadata row alone.
  struct SchemaKey {
    std::uint64_t header = 0;  // flags, version, id, tag and opcode
    std::string_view metadata;
    friend bool operator==(const SchemaKey&, const SchemaKey&) = default;
  };
  struct SchemaHash {
    std::size_t operator()(const SchemaKey& key) const;
  };
  struct Schema {
    SchemaKey key;         // a view into `metadata`
    std::string metadata;  // of the event
    Form bytes;            // for all events; without a row if there are nullable fields
    Form utf16;            // made when the first text comes that needs it
    // The forms of a schema with nullable fields: by the TextForm and the values seen in each.
    absl::flat_hash_map<std::string, Form> forms;
    std::size_t nullable_fields = 0;
    bool usable = true;  // false: its metadata is malformed
    bool trace_context = false;
  };

  struct Tracepoint {
    std::string name;  // of the event
    bool is_event_header = false;
    std::string provider;
    eh::TracepointName parts;   // views into `name`
    Provider* share = nullptr;  // of providers_; null if it is no EventHeader tracepoint
    TracepointSchema layout;
    // The rows of its events, if it is no EventHeader tracepoint: of all but those with text that
    // is not ASCII, and of those, made when the first one comes.
    nettrace::MetadataId metadata_id = nettrace::kNoMetadata;
    nettrace::MetadataId utf16_id = nettrace::kNoMetadata;
    nettrace::MetadataId undecoded_id = nettrace::kNoMetadata;  // until there is a row
    absl::flat_hash_map<SchemaKey, std::unique_ptr<Schema>, SchemaHash> schemas;
    // Schemas that were used lately, by a few bytes of their keys. Empty if it is no EventHeader
    // tracepoint.
    std::vector<Schema*> recent;
  };

  // The addresses of the kernel's code in an event.
  struct KernelAddresses {
    static constexpr std::size_t kMax = 4;  // what more an event has is not named
    const Tracepoint* tracepoint = nullptr;
    std::array<std::uint64_t, kMax> addresses = {};
    friend bool operator==(const KernelAddresses&, const KernelAddresses&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const KernelAddresses& key) {
      return H::combine(std::move(h), key.tracepoint, key.addresses);
    }
  };

  // The label list that has the ids of an activity and no others.
  struct ActivityLabels {
    std::array<std::byte, 32> ids;  // the activity's, and the related one's
    std::size_t size = 0;
    std::uint64_t interval_start = 0;  // of the interval that the list belongs to
    nettrace::LabelListId list = nettrace::kNoLabels;
  };

  absl::Status WriteKernelEvent(Tracepoint* tracepoint, std::span<const std::byte> record,
                                nettrace::EventRow* row);
  // Gives the event labels with the symbols of its addresses.
  absl::Status AddKernelSymbols(const Tracepoint& tracepoint, std::span<const std::byte> record,
                                nettrace::EventRow* row);
  // Gives the event a label list with its activity ids.
  absl::Status LabelActivity(const eh::EventView& event, nettrace::EventRow* row);
  absl::Status WriteEventHeader(Tracepoint* tracepoint, std::span<const std::byte> bytes,
                                nettrace::EventRow* row);
  // The same for what has no schema, or does not keep its payload.
  absl::Status WriteConverted(Tracepoint* tracepoint, std::span<const std::byte> bytes,
                              const eh::EventView& event, Schema* schema, nettrace::EventRow* row);
  absl::Status WriteUndecoded(Tracepoint* tracepoint, std::span<const std::byte> bytes,
                              std::string_view reason, nettrace::EventRow* row);
  static SchemaKey KeyOf(const eh::EventView& event);
  // Sets `*schema` to that of `event`; to null, with the reason, if it has none.
  absl::Status FindSchema(Tracepoint* tracepoint, const eh::EventView& event, const SchemaKey& key,
                          Schema** schema, const char** reason);
  // Compiles `*schema` from its first event.
  absl::Status MakeSchema(const Tracepoint& tracepoint, const eh::EventView& event, Schema* schema);
  // The form for events with the values that `seen_` and `text` tell, with its row; null if the
  // provider's share is used up.
  absl::StatusOr<Form*> FindForm(const Tracepoint& tracepoint, const eh::EventView& event,
                                 TextForm text, Schema* schema);
  Form* FindNullableForm(const Tracepoint& tracepoint, const eh::EventView& event, TextForm text,
                         Schema* schema);
  // Counts a schema of this size towards its provider's share. False if that is used up.
  static bool TakeShare(const Tracepoint& tracepoint, std::size_t metadata_size);
  // Compiles one form of the schema of `event` and writes its row. It is not usable, and the status
  // is OK, if the file cannot hold it.
  absl::Status AddForm(const Tracepoint& tracepoint, const eh::EventView& event,
                       const ValueForms& forms, Form* form);
  // Writes the row, whose EventId is the event's own, or 0 if it has none. It keeps that if no row
  // of another schema has it, else it gets another one.
  absl::StatusOr<nettrace::MetadataId> AddRow(nettrace::EventMetadata metadata);
  absl::Status AddCaptureThread(Cpu* cpu);
  nettrace::Labels& SetLabels() {
    labelled_ = true;
    return labels_;
  }
  absl::Status Emit(nettrace::EventRow* row, std::span<const std::byte> payload);

  nettrace::Writer* writer_;
  TaskTracker* tasks_;
  ProcessWriter processes_;
  std::vector<Cpu> cpus_;
  std::vector<std::unique_ptr<Tracepoint>> tracepoints_;  // by id
  std::unordered_map<std::string, Provider> providers_;   // by the name in upper case
  nettrace::internal::EventIdTable event_ids_;
  // Read when the first tracepoint comes that has addresses of the kernel.
  std::optional<KernelSymbols> kernel_symbols_;
  absl::flat_hash_map<KernelAddresses, nettrace::LabelListId> symbol_lists_;  // of the interval
  std::vector<ActivityLabels> activities_;  // used lately, by their ids
  std::uint64_t interval_start_ = 0;
  std::size_t labels_in_interval_ = 0;
  std::size_t events_in_interval_ = 0;
  nettrace::Labels labels_;         // of the event being written; to be set by SetLabels
  bool labelled_ = false;           // there may be some
  std::vector<std::byte> payload_;  // scratch
  std::vector<std::byte> utf16_payload_;
  std::string seen_;  // of the event being written, for each nullable field
  Stats stats_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_SAMPLE_WRITER_H_
