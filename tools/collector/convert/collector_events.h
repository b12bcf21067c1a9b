// What the collector has to say of its own recording, as events of the provider NetTrace.Collector
// (tools/common/account.h): losses, CPUs that went and came, tracepoints that are left out. Their
// capture thread has no other events, so that a loss in a CPU's ring never hides one.
#ifndef TOOLS_COLLECTOR_CONVERT_COLLECTOR_EVENTS_H_
#define TOOLS_COLLECTOR_CONVERT_COLLECTOR_EVENTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/writer.h"
#include "tools/common/account.h"
#include "tools/common/account_summary.h"

namespace collector {

// Takes what there is to say at any time, and writes it when an interval ends. Times are those of
// the trace's clock, whose ticks are nanoseconds; 0 is a time that is not known. Not thread-safe.
class CollectorEvents {
 public:
  // Of more tracepoints that are left out, or met, the trace does not tell: anybody may make them.
  static constexpr std::size_t kMaxLeftOut = 1000;
  static constexpr std::size_t kMaxMet = 1000;
  // Losses of more tracepoints and CPUs in one interval are told without their tracepoints.
  static constexpr std::size_t kMaxLosses = 4096;

  // To be called before Write. `writer` outlives this object. `trace` is what it was created with.
  void Open(nettrace::Writer* writer, const nettrace::TraceInfo& trace);
  // No event has a time before `start`.
  void Begin(std::uint64_t start) { earliest_ = start; }

  // `count` events of a tracepoint ("system:event"; empty if the kernel does not say whose they
  // were) were lost on a CPU, at some time after `from`, up to `until`.
  void EventsLost(int cpu, std::string_view tracepoint, std::uint64_t count, std::uint64_t from,
                  std::uint64_t until);
  // The CPU is gone, since some time between these; or it is there again, and what it did between
  // these was not recorded. `error`: why it is not recorded now; else empty.
  void CpuChanged(int cpu, bool online, std::uint64_t since, std::uint64_t until,
                  std::string_view error);
  // The cgroup that is recorded came; what was done in it between these times may not have been
  // recorded, and is not at all if there is an error.
  void TargetCame(std::uint64_t since, std::uint64_t until, std::string_view error);
  void TracepointLeftOut(std::string_view tracepoint, std::string_view reason, std::uint64_t time);
  // A pattern met the tracepoint for the first time: what it had before `time` was not recorded.
  void TracepointMet(std::string_view tracepoint, std::uint64_t time);
  // `count` events that came on a CPU between these times were not written.
  void EventsDropped(int cpu, std::uint64_t count, std::uint64_t from, std::uint64_t until,
                     std::string_view reason);
  // A section begins, the trace's first being number 0: those before have so many events of that
  // CPU, and so many losses.
  void SectionBegan(int cpu, std::uint64_t section, std::uint64_t events, std::uint64_t lost,
                    std::uint64_t time);

  // Writes all of that. To be called before a sequence point at `limit`, which is later than the
  // one before; an event of a later time has this one's.
  absl::Status Write(std::uint64_t limit);

  // There is nothing to write.
  bool is_empty() const { return waiting_.empty(); }

  // A sequence point flushed the rows of threads, or of metadata.
  void ForgetThreads() { capture_thread_ = nettrace::kNoThread; }
  void ForgetMetadata() { rows_ = {}; }

  // Events written so far.
  std::uint64_t written() const { return written_; }
  // What they add up to.
  const tools::AccountSummary& summary() const { return summary_; }

 private:
  struct Waiting {
    std::uint64_t time;
    tools::AccountEvent event;  // with times of the trace's clock
  };

  std::uint64_t UnixTime(std::uint64_t ticks) const;
  absl::StatusOr<nettrace::MetadataId> MetadataRow(tools::AccountEvent::Kind kind);
  absl::Status WriteOne(nettrace::MetadataId metadata_id, Waiting waiting, std::uint64_t limit);

  nettrace::Writer* writer_ = nullptr;
  std::int64_t clock_offset_ = 0;  // ns, from the trace's clock to the time since 1970
  nettrace::ThreadIndex capture_thread_ = nettrace::kNoThread;
  // By kind; kNoMetadata until it is needed.
  std::array<nettrace::MetadataId, tools::AccountEvent::kKinds + 1> rows_ = {};
  std::vector<Waiting> waiting_;
  std::size_t losses_waiting_ = 0;
  std::size_t left_out_ = 0;
  std::size_t met_ = 0;
  std::uint64_t earliest_ = 0;  // no later event may be before it
  std::uint64_t written_ = 0;
  tools::AccountSummary summary_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_COLLECTOR_EVENTS_H_
