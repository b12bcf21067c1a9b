// Events of the collector about its own recording, of the provider NetTrace.Collector
// (tools/trace/account.h), such as losses, CPUs that went offline, and tracepoints that are left
// out. The events have their own capture thread, so that losses in a CPU's ring do not affect them.
#ifndef TOOLS_COLLECTOR_CONVERT_COLLECTOR_EVENTS_H_
#define TOOLS_COLLECTOR_CONVERT_COLLECTOR_EVENTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/writer.h"
#include "tools/trace/account.h"
#include "tools/trace/account_summary.h"
#include "tools/trace/ring_positions.h"

namespace collector {

// Collects the events that the collector writes about its own recording, and writes them when an
// interval ends. Times are of the trace's clock, in ns; 0 means unknown. Not thread-safe.
class CollectorEvents {
 public:
  // Maximum number of tracepoints that are reported as left out (kMaxLeftOut), and as matched by a
  // pattern for the first time (kMaxMet). Further tracepoints are not reported, because any process
  // can create tracepoints without limit.
  static constexpr std::size_t kMaxLeftOut = 1000;
  static constexpr std::size_t kMaxMet = 1000;
  // Maximum number of losses in one interval that are reported with their tracepoints. Further
  // losses are added up in one event for each CPU, which names no tracepoint.
  static constexpr std::size_t kMaxLosses = 4096;
  // Maximum number of services in one interval that are reported by ServiceUnknown, each with its
  // name. Further services share one event without a name.
  static constexpr std::size_t kMaxUnknownServices = 256;

  // Value of `cpu` for events that did not come through the ring of a CPU, but through rings in
  // user space, in .NET streams or from the journal.
  static constexpr int kNoCpu = -1;

  // Sets the writer, which must outlive this object. `trace` describes the trace that the writer
  // was created with. Must be called before Write().
  void Open(nettrace::Writer* writer, const nettrace::TraceInfo& trace);
  // Sets the earliest time of the events that Write() writes. Events that are earlier get this
  // time.
  void Begin(std::uint64_t start) { earliest_ = start; }

  // Records that `count` events of a tracepoint ("system:event"; empty if not known) were lost on a
  // CPU after `from` and no later than `until`.
  void EventsLost(int cpu, std::string_view tracepoint, std::uint64_t count, std::uint64_t from,
                  std::uint64_t until);
  // Records that a CPU went offline or came online. If it went offline, it did so at some time
  // between `since` and `until`. If it came online, its events between these times may be missing.
  // If the CPU cannot be recorded, `error` is the reason and `until` is 0; otherwise `error` is
  // empty.
  void CpuChanged(int cpu, bool online, std::uint64_t since, std::uint64_t until,
                  std::string_view error);
  // Records that the followed cgroup appeared. Its events between `since` and `until` may not have
  // been recorded. If the cgroup cannot be recorded, `error` is the reason; otherwise `error` is
  // empty.
  void TargetCame(std::uint64_t since, std::uint64_t until, std::string_view error);
  // Records that the kernel throttled the samples of a CPU `count` times, each time until the CPU's
  // next timer tick. The first time was at `from`, the last time at `until`.
  void SamplesThrottled(int cpu, std::uint64_t count, std::uint64_t from, std::uint64_t until);
  // Records that `count` events with times from `from` to `until` have cut stacks, because the
  // collector had no time to unwind them.
  void StacksSkipped(std::uint64_t count, std::uint64_t from, std::uint64_t until);
  // Records that an unknown number of events of a service ("ring:PID") between `since` and `until`
  // may be lost. `since` is 0 if it is unknown. `reason` says why.
  void ServiceUnknown(std::string_view service, std::uint64_t since, std::uint64_t until,
                      std::string_view reason);
  void TracepointLeftOut(std::string_view tracepoint, std::string_view reason, std::uint64_t time);
  // Records that a pattern matched the tracepoint for the first time. Its events before `time` may
  // not have been recorded.
  void TracepointMet(std::string_view tracepoint, std::uint64_t time);
  // Records that `count` events of a CPU with times between `from` and `until` were read but not
  // written. `reason` says why.
  void EventsDropped(int cpu, std::uint64_t count, std::uint64_t from, std::uint64_t until,
                     std::string_view reason);
  // Records that section number `section` begins; the first is 0. The sections before it contain
  // `events` events of the CPU, and lack `lost` events that the CPU lost.
  void SectionBegan(int cpu, std::uint64_t section, std::uint64_t events, std::uint64_t lost,
                    std::uint64_t time);

  // Writes the collected events. Must be called before a sequence point at `limit`, which must be
  // later than the previous one. Events with a later time are written with the time `limit`. Events
  // of a kind for which the file has no metadata row or event id left are kept for a later call.
  // Fails if the writer fails.
  absl::Status Write(std::uint64_t limit);

  // Writes the events that contain `record` (tools/trace/ring_positions.h). Their timestamp is the
  // latest of three times: the start given to Begin(), the last limit of Write(), and the timestamp
  // of the last event. Does nothing if the file lacks the metadata row of these events, and has no
  // room for it until metadata is flushed.
  absl::Status WriteRingPositions(const trace::RingRecord& record);

  // Returns whether Write() has nothing to write.
  bool is_empty() const { return waiting_.empty(); }

  // Forget the row of the capture thread, and the metadata rows. Must be called when a sequence
  // point has flushed the thread rows (ForgetThreads) or the metadata rows (ForgetMetadata).
  void ForgetThreads() { capture_thread_ = nettrace::kNoThread; }
  void ForgetMetadata() {
    rows_ = {};
    positions_row_ = nettrace::kNoMetadata;
  }

  // Number of events written so far.
  std::uint64_t written() const { return written_; }
  // Totals of the events that Write() has written. Events of WriteRingPositions() are not included.
  const trace::AccountSummary& summary() const { return summary_; }

 private:
  struct Waiting {
    std::uint64_t time;
    trace::AccountEvent event;  // times are of the trace's clock
  };

  std::uint64_t UnixTime(std::uint64_t ticks) const;
  absl::StatusOr<nettrace::MetadataId> MetadataRow(trace::AccountEvent::Kind kind);
  absl::StatusOr<nettrace::MetadataId> AddRow(nettrace::EventMetadata metadata);
  absl::Status WritePayload(nettrace::MetadataId metadata_id, std::uint64_t timestamp,
                            std::span<const std::byte> payload);
  absl::Status WriteOne(nettrace::MetadataId metadata_id, Waiting waiting, std::uint64_t limit);

  nettrace::Writer* writer_ = nullptr;
  // Offset in ns. A time of the trace's clock plus this offset is ns since 1970.
  std::int64_t clock_offset_ = 0;
  nettrace::ThreadIndex capture_thread_ = nettrace::kNoThread;
  // Metadata rows by kind; kNoMetadata until the row is needed.
  std::array<nettrace::MetadataId, trace::AccountEvent::kMaxId + 1> rows_ = {};
  nettrace::MetadataId positions_row_ = nettrace::kNoMetadata;
  std::vector<Waiting> waiting_;
  std::size_t losses_waiting_ = 0;
  std::size_t unknown_services_waiting_ = 0;
  std::size_t left_out_ = 0;
  std::size_t met_ = 0;
  std::uint64_t earliest_ = 0;  // ns; minimum time of the next event
  std::uint64_t written_ = 0;
  trace::AccountSummary summary_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_COLLECTOR_EVENTS_H_
