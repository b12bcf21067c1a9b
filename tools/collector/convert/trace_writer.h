// Writes the converted events of one trace to its file, and replaces slots with the trace's ids.
//
// Input: converted events in the order of each CPU, the numbers of lost events, process events, and
// the ends of intervals. Output: metadata rows, thread rows, labels, events, losses and sequence
// points, written to a nettrace::Writer. A row is written when the trace first needs it; later
// events find it with one comparison.
#ifndef TOOLS_COLLECTOR_CONVERT_TRACE_WRITER_H_
#define TOOLS_COLLECTOR_CONVERT_TRACE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/writer.h"
#include "tools/collector/convert/code_writer.h"
#include "tools/collector/convert/collector_events.h"
#include "tools/collector/convert/converted_event.h"
#include "tools/collector/convert/process_writer.h"
#include "tools/collector/identity/task_tracker.h"
#include "tools/collector/system/slots.h"
#include "tools/trace/code_map.h"

namespace collector {

// Writes one trace. Not thread-safe.
class TraceWriter {
 public:
  // Label for an event that is older than the previous event of its CPU or than the start of the
  // interval; the value is the event's own timestamp. The event is written with the earliest
  // timestamp that the format allows.
  static constexpr const auto& kLateLabel = nettrace::kLabelOriginalTimestamp;
  static constexpr const auto& kStackCutLabel = trace::kStackCutLabel;
  // Maximum number of events of an interval. Readers keep the events of an interval in memory, and
  // lose those of the last interval if the file is truncated. An interval is full when it has a
  // quarter of this number. The rest is for events that are still in the rings when the interval
  // ends; their number can only be estimated.
  static constexpr std::size_t kEventsPerInterval = 65536;
  static constexpr std::size_t kFullInterval = kEventsPerInterval / 4;

  // Value for the writer's max_metadata, which also limits how many EventIds the writer remembers
  // after a flush. A provider has 65533 EventIds, so some are free for its new rows even if all
  // remembered EventIds are of this provider.
  static constexpr std::size_t kMaxMetadata = 36864;

  struct Stats {
    std::uint64_t undecoded = 0;
    std::uint64_t late = 0;
    std::uint64_t process_events = 0;
  };

  // All arguments must outlive this object. `tasks` describes the threads of the events. No event
  // is written with a time before `start`. The events of `account`, which may be null, are written
  // before each sequence point.
  TraceWriter(nettrace::Writer* writer, const TaskTracker* tasks, std::uint64_t start,
              CollectorEvents* account = nullptr);

  // Adds a CPU that events come from. CPUs and ring threads get indices from 0 on, in the order in
  // which they are added.
  void AddCpu(int number);
  std::size_t cpus() const { return cpus_.size(); }
  // Makes the source at `index` a ring thread: a source that is not a CPU, usually a thread whose
  // events come through a ring in user space. A thread of a .NET stream and the journal are others.
  // `index` is one more than the last index, or the index of a ring thread that is replaced.
  // `name` is the name of the new capture thread. If `source` is not empty, it identifies the
  // writer in the memory of a service (trace::RingThreadSource). Each row of the capture thread
  // then states the number of the writer's next event (SetRingNumber()).
  void SetRingThread(std::size_t index, std::string name, std::string source = "");
  // Sets the processor of the next events of the ring thread at `index`; kNoProcessor: unknown.
  void SetProcessor(std::size_t index, std::uint32_t processor) {
    cpus_[index].row.processor = processor;
  }
  // Sets the number that the service has given to the next event of the ring thread at `index`. If
  // events were lost before it, `number` is that of the first of these.
  void SetRingNumber(std::size_t index, std::uint64_t number) { cpus_[index].ring_number = number; }
  // Returns the number of the next unit of the ring thread at `index`. A unit is an event in the
  // file or a lost event (tools/trace/ring_positions.h). The number is higher than those of all
  // units of earlier ring threads with the same source.
  std::uint64_t ring_units(std::size_t index) const {
    const Cpu& cpu = cpus_[index];
    return cpu.first_unit + cpu.events + cpu.lost;
  }
  // Returns whether the ring thread at `index` has had an event or a lost event.
  bool has_ring_units(std::size_t index) const {
    return cpus_[index].events + cpus_[index].lost != 0;
  }
  // Returns the number of lost events of the ring thread at `index` since its last event or
  // sequence point. No sequence number in the file shows these losses yet.
  std::uint64_t pending_lost(std::size_t index) const { return cpus_[index].pending_lost; }
  // Number of the CPU with this index; CollectorEvents::kNoCpu for a ring thread.
  int cpu_number(std::size_t cpu) const { return cpus_[cpu].number; }
  const std::string& cpu_name(std::size_t cpu) const { return cpus_[cpu].name; }
  // Counts of the events and of the lost events of all ring threads that have been replaced.
  std::uint64_t replaced_events() const { return replaced_events_; }
  std::uint64_t replaced_lost() const { return replaced_lost_; }
  // Number of events of the CPU with this index so far, in all sections.
  std::uint64_t cpu_events(std::size_t cpu) const { return cpus_[cpu].events; }
  // Number of lost events of the CPU with this index so far, in all sections.
  std::uint64_t cpu_lost(std::size_t cpu) const { return cpus_[cpu].lost; }
  // Timestamp of the last event of the CPU with this index; 0 if there was none.
  std::uint64_t last_timestamp(std::size_t cpu) const { return cpus_[cpu].row.timestamp; }

  // Writes an event of the CPU with this index. Fails if the writer fails. If the file cannot hold
  // the event's metadata row, the event is written as undecoded; if that is impossible too, it is
  // counted as lost.
  absl::Status Write(std::size_t cpu_index, const ConvertedEvent& event) {
    Cpu& cpu = cpus_[cpu_index];
    if (event.stack != nullptr) [[unlikely]]
      return WriteWithStack(&cpu, event);
    return WriteRow(&cpu, event);
  }
  // Records that `count` samples of the CPU with this index were lost after its last event.
  absl::Status AddLost(std::size_t cpu, std::uint64_t count);
  // Writes a process event; `thread` is the identity of the process's main thread. Must be called
  // in the order of time.
  absl::Status WriteProcessEvent(const ProcessEvent& event, Slot thread);

  // Closes the interval at `timestamp`.
  absl::Status WriteSequencePoint(std::uint64_t timestamp) {
    return EndInterval(timestamp, /*starts_section=*/false);
  }
  // Closes the interval and begins a section, in which all rows are written again.
  absl::Status StartSection(std::uint64_t timestamp) {
    return EndInterval(timestamp, /*starts_section=*/true);
  }
  std::size_t events_in_interval() const { return events_in_interval_; }
  // Returns whether the interval should be closed: it has enough events, process events or labels,
  // or the thread or metadata rows must be flushed.
  bool interval_is_full() const {
    return labels_in_interval_ >= kLabelsPerInterval || events_in_interval_ >= kFullInterval ||
           process_events_in_interval_ >= kProcessEventsPerInterval || threads_are_full() ||
           metadata_is_full_;
  }
  // Number of thread rows since the last flush.
  std::size_t thread_rows() const { return thread_rows_; }

  Stats stats() const {
    Stats stats = stats_;
    stats.process_events = processes_.written() + (code_ ? code_->written() : 0);
    return stats;
  }

 private:
  static constexpr std::size_t kLabelsPerInterval = 65536;
  static constexpr std::size_t kProcessEventsPerInterval = 16384;
  static constexpr std::size_t kThreadRowsPerFlush = 65536;
  // Maximum bytes of keys and values in thread rows between two flushes. Readers keep the rows
  // until a flush.
  static constexpr std::size_t kThreadBytesPerFlush = std::size_t{16} << 20;
  // Maximum number of metadata rows, and of their bytes, before a flush; readers keep the rows
  // until then. Rows above this number, up to kMaxMetadata, are for events that come before the
  // interval can be closed. The last of them are reserved for undecoded events, and for process and
  // collector events, without which the trace could not continue.
  static constexpr std::size_t kMetadataRowsPerFlush = 24576;
  static constexpr std::size_t kMetadataBytesPerFlush = std::size_t{48} << 20;
  static constexpr std::size_t kMetadataRowsOfUndecoded = 4096;
  static constexpr std::size_t kMetadataRowsOfCollector = 16;

  struct Cpu {
    int number = 0;
    std::string name;  // name of the capture thread, for a ring thread
    // Row of the CPU's last event. Its capture thread and processor also apply to the next event,
    // and its timestamp is the minimum for the next event.
    nettrace::EventRow row = {};
    // Kind of the last event, if its row is valid for all events of this kind in this interval;
    // otherwise an empty kind.
    EventKind kind = {};
    std::uint64_t events = 0;
    std::uint64_t lost = 0;
    std::uint64_t pending_lost = 0;
    // For ring threads only: see SetRingThread(), SetRingNumber() and ring_units().
    std::string source;
    std::uint64_t ring_number = 0;
    std::uint64_t first_unit = 0;
  };

  // Writes an event. The caller has set the stack in the CPU's row, or left it empty.
  absl::Status WriteRow(Cpu* cpu, const ConvertedEvent& event) {
    // Most events differ from the previous event on their CPU only in time and payload, so the row
    // is used again.
    if (event.kind != cpu->kind || event.timestamp < cpu->row.timestamp ||
        event.own_labels != nullptr) {
      return WriteOther(cpu, event);
    }
    cpu->row.timestamp = event.timestamp;
    return Append(cpu, event);
  }
  // Writes an event that has a stack. If the trace cannot hold the stack in this interval, writes
  // the event without the stack.
  absl::Status WriteWithStack(Cpu* cpu, const ConvertedEvent& event);
  // Writes an event that has another kind than the previous event on its CPU, is older, or has own
  // labels.
  absl::Status WriteOther(Cpu* cpu, const ConvertedEvent& event);
  // Writes an event that needs a row or labels that are new in the interval. The CPU's row already
  // contains the event's time, and also its labels unless `lacks_labels` is set.
  absl::Status WriteWithRows(Cpu* cpu, const ConvertedEvent& event, bool lacks_labels);
  // Writes an event that is older than the last event of its CPU, or older than the start of the
  // current interval.
  absl::Status WriteLate(Cpu* cpu, const ConvertedEvent& event);
  // Writes the event with the CPU's row, which the caller has completed.
  absl::Status Append(Cpu* cpu, const ConvertedEvent& event) {
    ++events_in_interval_;
    ++cpu->events;
    cpu->pending_lost = 0;
    stats_.undecoded += event.undecoded ? 1 : 0;
    return writer_->WriteEvent(cpu->row, event.payload);
  }
  // Sets the metadata row of the event's schema in `*row`, and adds it if necessary. Fails with
  // InvalidArgument if the file cannot hold the row at all, and with ResourceExhausted if the file
  // cannot hold it before metadata is flushed.
  absl::Status SetMetadata(const ConvertedEvent& event, nettrace::EventRow* row);
  // Adds a row with the event's own EventId. If the event has no id, or if a row of another schema
  // has this id, the row gets a free id. Fails with ResourceExhausted if no id is free.
  absl::StatusOr<nettrace::MetadataId> AddRow(nettrace::EventMetadata metadata);
  // Number of metadata rows since the last flush.
  std::uint64_t metadata_rows() const { return writer_->stats().metadata - metadata_flushed_; }
  absl::StatusOr<nettrace::LabelListId> Intern(const nettrace::Labels& labels);
  // Returns the id of the event's label list, and adds the list to the trace if it is new.
  absl::StatusOr<nettrace::LabelListId> InternFor(const ConvertedEvent& event);
  absl::StatusOr<nettrace::ThreadIndex> ThreadRow(Slot thread);
  bool threads_are_full() const {
    return thread_rows_ >= kThreadRowsPerFlush || thread_bytes_ >= kThreadBytesPerFlush;
  }
  absl::Status AddCaptureThread(Cpu* cpu);
  absl::Status EndInterval(std::uint64_t timestamp, bool starts_section);
  void ForgetMetadata();
  void ForgetThreads();

  nettrace::Writer* writer_;
  const TaskTracker* tasks_;
  ProcessWriter processes_;
  std::optional<CodeWriter> code_;  // no value: code is not tracked
  CollectorEvents* account_;
  std::vector<Cpu> cpus_;
  SlotMap<nettrace::MetadataId> forms_;
  SlotMap<bool> unusable_forms_;  // forms whose rows the file cannot hold
  SlotMap<nettrace::ThreadIndex> threads_;
  SlotMap<nettrace::LabelListId> labels_;  // label lists of the interval
  std::uint64_t metadata_flushed_ = 0;     // number of metadata rows before the last flush
  std::uint64_t metadata_bytes_flushed_ = 0;
  bool metadata_is_full_ = false;  // metadata must be flushed
  std::uint64_t interval_start_;
  std::size_t thread_rows_ = 0;
  std::size_t thread_bytes_ = 0;
  std::size_t labels_in_interval_ = 0;
  std::size_t events_in_interval_ = 0;
  std::size_t process_events_in_interval_ = 0;
  std::uint64_t replaced_events_ = 0;
  std::uint64_t replaced_lost_ = 0;
  // Payload of the last event that was written as undecoded.
  std::vector<std::byte> undecoded_payload_;
  Stats stats_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_TRACE_WRITER_H_
