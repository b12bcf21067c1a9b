// The converted events of one trace, written to its file: the trace's own ids in the place of
// slots.
//
// In: converted events in the order of each CPU, the numbers of those that were lost, what happened
// to processes, and when intervals end. Out: metadata rows, thread rows, labels, events, losses and
// sequence points, written to a nettrace::Writer. A row is written when the trace meets what it
// describes for the first time; from then on it is found by one comparison.
#ifndef TOOLS_COLLECTOR_CONVERT_TRACE_WRITER_H_
#define TOOLS_COLLECTOR_CONVERT_TRACE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/writer.h"
#include "tools/collector/base/slots.h"
#include "tools/collector/convert/collector_events.h"
#include "tools/collector/convert/process_writer.h"
#include "tools/collector/convert/sample_converter.h"
#include "tools/collector/identity/task_tracker.h"

namespace collector {

// Not thread-safe.
class TraceWriter {
 public:
  // The label of an event that came after its interval was closed, with its own timestamp. The
  // event's timestamp is then the earliest that the format allows.
  static constexpr const auto& kLateLabel = nettrace::kLabelOriginalTimestamp;
  // Readers keep the events of an interval in memory, and lose those of the last one where a file
  // is cut short. It is full long before it has so many: how many the rings hold for a time is only
  // an estimate.
  static constexpr std::size_t kEventsPerInterval = 65536;
  static constexpr std::size_t kFullInterval = kEventsPerInterval / 4;

  // What the writer's max_metadata is to be. As many EventIds stay remembered over a flush, and
  // leave room for new ones of the same provider.
  static constexpr std::size_t kMaxMetadata = 36864;

  struct Stats {
    std::uint64_t undecoded = 0;
    std::uint64_t late = 0;
    std::uint64_t process_events = 0;
  };

  // All outlive this object: the events are from `converter`, their threads from `tasks`. The trace
  // begins at `start`: no event is before it. What `account` says, which may be null, is written
  // before each sequence point.
  TraceWriter(nettrace::Writer* writer, SampleConverter* converter, const TaskTracker* tasks,
              std::uint64_t start, CollectorEvents* account = nullptr);

  // Events come from one more CPU. Its index is one above the last one's.
  void AddCpu(int number);
  std::size_t cpus() const { return cpus_.size(); }
  int cpu_number(std::size_t cpu) const { return cpus_[cpu].number; }
  // Events of that CPU so far, in all sections, and those that AddLost counts.
  std::uint64_t cpu_events(std::size_t cpu) const { return cpus_[cpu].events; }
  std::uint64_t cpu_lost(std::size_t cpu) const { return cpus_[cpu].lost; }
  // The time of the last event of that CPU; 0 if there was none.
  std::uint64_t last_timestamp(std::size_t cpu) const { return cpus_[cpu].row.timestamp; }

  // Writes the event that the converter returned last, of the CPU at index `cpu`. Only the sink's
  // errors come back.
  absl::Status Write(std::size_t cpu_index, const ConvertedEvent& event) {
    Cpu& cpu = cpus_[cpu_index];
    // Most events differ from the one before on their CPU in time and payload only.
    if (event.kind != cpu.kind || event.timestamp < cpu.row.timestamp || event.has_own_labels) {
      return WriteOther(&cpu, event);
    }
    cpu.row.timestamp = event.timestamp;
    return Append(&cpu, event);
  }
  // `count` samples of that CPU were lost here.
  absl::Status AddLost(std::size_t cpu, std::uint64_t count);
  // What has happened to a process; `thread` is its main thread's identity. In the order of time.
  absl::Status WriteProcessEvent(const ProcessEvent& event, Slot thread);

  // Closes the interval at `timestamp`.
  absl::Status WriteSequencePoint(std::uint64_t timestamp) {
    return EndInterval(timestamp, /*starts_section=*/false);
  }
  // Closes the interval and begins a section, in which all rows are written anew.
  absl::Status StartSection(std::uint64_t timestamp) {
    return EndInterval(timestamp, /*starts_section=*/true);
  }
  std::size_t events_in_interval() const { return events_in_interval_; }
  // The interval has grown to what one should hold.
  bool interval_is_full() const {
    return labels_in_interval_ >= kLabelsPerInterval || events_in_interval_ >= kFullInterval ||
           process_events_in_interval_ >= kProcessEventsPerInterval || threads_are_full() ||
           metadata_is_full_;
  }
  // Thread rows since they were flushed.
  std::size_t thread_rows() const { return thread_rows_; }

  Stats stats() const {
    Stats stats = stats_;
    stats.process_events = processes_.written();
    return stats;
  }

 private:
  static constexpr std::size_t kLabelsPerInterval = 65536;
  static constexpr std::size_t kProcessEventsPerInterval = 16384;
  static constexpr std::size_t kThreadRowsPerFlush = 65536;
  // And bytes of what they say beside names and ids, which readers keep until then.
  static constexpr std::size_t kThreadBytesPerFlush = std::size_t{16} << 20;
  // Metadata rows are flushed once there are so many, or so many bytes of them, which readers keep
  // until then. The rest up to kMaxMetadata is for what comes before the interval can be closed,
  // and the last of it for the rows of events that are not decoded, and of processes and the
  // account, without which the trace could not go on.
  static constexpr std::size_t kMetadataRowsPerFlush = 24576;
  static constexpr std::size_t kMetadataBytesPerFlush = std::size_t{48} << 20;
  static constexpr std::size_t kMetadataRowsOfUndecoded = 4096;
  static constexpr std::size_t kMetadataRowsOfCollector = 16;

  struct Cpu {
    int number = 0;
    // The row of its last event, of which capture thread, processor and time hold on.
    nettrace::EventRow row = {};
    // That event's, if all of the row holds for events of this kind, in this interval.
    EventKind kind = {};
    std::uint64_t events = 0;
    std::uint64_t lost = 0;
  };

  // Writes an event that is of another kind than the one before.
  absl::Status WriteOther(Cpu* cpu, const ConvertedEvent& event);
  // Writes an event that needs a row, or labels, that the interval has not had. The time is in the
  // CPU's row, and the labels are, unless the event lacks them.
  absl::Status WriteWithRows(Cpu* cpu, const ConvertedEvent& event, bool lacks_labels);
  // Writes an event after those that are later.
  absl::Status WriteLate(Cpu* cpu, const ConvertedEvent& event);
  // Writes the event by the CPU's row.
  absl::Status Append(Cpu* cpu, const ConvertedEvent& event) {
    ++events_in_interval_;
    ++cpu->events;
    stats_.undecoded += event.undecoded ? 1 : 0;
    return writer_->WriteEvent(cpu->row, event.payload);
  }
  // Sets the row that the event's form has. InvalidArgument if the file cannot hold it,
  // ResourceExhausted if it cannot until metadata is flushed.
  absl::Status SetMetadata(const ConvertedEvent& event, nettrace::EventRow* row);
  // Writes a row, whose EventId is the event's own, or 0 if it has none. It keeps that if no row of
  // another schema has it, else it gets another one.
  absl::StatusOr<nettrace::MetadataId> AddRow(nettrace::EventMetadata metadata);
  // Since they were flushed.
  std::uint64_t metadata_rows() const { return writer_->stats().metadata - metadata_flushed_; }
  absl::StatusOr<nettrace::LabelListId> Intern(const nettrace::Labels& labels);
  absl::StatusOr<nettrace::ThreadIndex> ThreadRow(Slot thread);
  bool threads_are_full() const {
    return thread_rows_ >= kThreadRowsPerFlush || thread_bytes_ >= kThreadBytesPerFlush;
  }
  absl::Status AddCaptureThread(Cpu* cpu);
  absl::Status EndInterval(std::uint64_t timestamp, bool starts_section);
  void ForgetMetadata();
  void ForgetThreads();

  nettrace::Writer* writer_;
  SampleConverter* converter_;
  const TaskTracker* tasks_;
  ProcessWriter processes_;
  CollectorEvents* account_;
  std::vector<Cpu> cpus_;
  SlotMap<nettrace::MetadataId> forms_;
  SlotMap<bool> unusable_forms_;  // those whose row the file cannot hold
  SlotMap<nettrace::ThreadIndex> threads_;
  SlotMap<nettrace::LabelListId> labels_;  // of the interval
  std::uint64_t metadata_flushed_ = 0;     // rows
  std::uint64_t metadata_bytes_flushed_ = 0;
  bool metadata_is_full_ = false;  // it is to be flushed
  std::uint64_t interval_start_;
  std::size_t thread_rows_ = 0;
  std::size_t thread_bytes_ = 0;
  std::size_t labels_in_interval_ = 0;
  std::size_t events_in_interval_ = 0;
  std::size_t process_events_in_interval_ = 0;
  Stats stats_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_TRACE_WRITER_H_
