// Reads the samples of one CPU, and counts exactly how many were lost because the ring was full.
#ifndef TOOLS_COLLECTOR_PERF_CPU_RING_H_
#define TOOLS_COLLECTOR_PERF_CPU_RING_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/perf/open_event.h"
#include "tools/collector/perf/perf_records.h"
#include "tools/collector/perf/perf_ring.h"

namespace collector {

// Holds the ring that receives the samples of all tracepoints on one CPU, while the CPU is online.
//
// The perf events of a CPU end when it goes offline, and do not resume when it comes back. The CPU
// then gets a new ring. The former ring is kept until its samples have been delivered. The samples
// of the new ring are delivered after them. Delivered and lost samples add up to those that the
// kernel made, if End is called with the kernel's counts. Not thread-safe.
class CpuRing {
 public:
  explicit CpuRing(int number) : number_(number) {}

  // Sets the maximum number of frames in the stack of a sample, and the maximum bytes of its copy
  // of the stack. Without this call, samples have no stacks. TakeMayHaveLost computes the size of
  // the largest sample from these numbers. Must be called before Open, so that Open requests the
  // records of deferred stacks if the kernel supports them.
  void ExpectStacks(std::size_t max_frames, std::size_t copied_bytes = 0);

  int number() const { return number_; }
  bool is_online() const { return current_ != nullptr; }

  // Opens a ring of `size` bytes. Fails with NotFound if the CPU is offline.
  absl::StatusOr<EventRing> Open(std::size_t size) const;
  // Makes `ring` the current ring, and the CPU online.
  void Begin(EventRing ring);
  // Makes the CPU offline. Samples in the current ring are still delivered. `lost` is the number of
  // samples that the CPU has lost so far, by the counts of the tracepoints.
  void End(std::uint64_t lost);
  // Descriptor of the perf event that owns the current ring. The CPU must be online.
  const base::UniqueFd& event() const { return current_->event; }
  // Makes a tracepoint write its samples to the current ring. The CPU must be online. `what` is the
  // start of the message of an error.
  absl::Status Redirect(const base::UniqueFd& tracepoint, const std::string& what) const;
  // Returns whether the event of the current ring is still active. It ends when the CPU goes
  // offline, and stays ended when the CPU comes back. The check sends the CPU an interrupt.
  bool IsActive() const;
  // Timestamp of the last delivered sample or switch; 0 if there was none.
  std::uint64_t last_sample() const { return last_sample_; }
  // Time up to which the CPU was certainly recorded, in ns: the time of its last delivered sample
  // or of the beginning of its ring, whichever is later. The CPU must be online.
  std::uint64_t recorded_until() const { return std::max(last_sample_, began_at_); }

  // Passes every sample and switch with a timestamp up to `limit` to `on_sample(sample,
  // timestamp)`, oldest first. Where samples are missing, calls `on_lost(total)` with the number of
  // samples lost so far.
  template <typename OnSample, typename OnLost>
  void Drain(std::uint64_t limit, const OnSample& on_sample, const OnLost& on_lost);
  // Passes the records that have not been drained to `look(record)`, those of the oldest ring
  // first, and leaves them in the rings.
  template <typename Look>
  void Peek(const Look& look);
  // Returns whether samples may have been lost since the last call: a ring ended, contained a LOST
  // record, or was too full for a large sample. Makes no system call.
  bool TakeMayHaveLost();

  // Counts THROTTLE records. After each of them, the CPU has no samples of CPU time until its next
  // timer tick.
  struct Throttled {
    std::uint64_t count = 0;
    // Times of the first and of the last record, in ns; 0 if there is none.
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };
  // Returns the THROTTLE records that Drain has read since the last call.
  Throttled TakeThrottled() { return std::exchange(throttled_, {}); }

  // Bytes in the current ring; 0 if the CPU is offline.
  std::size_t fill() const { return is_online() ? current_->ring.fill() : 0; }
  // Bytes in the current ring and in former rings.
  std::size_t waiting_bytes() const;

 private:
  struct Former {
    std::unique_ptr<EventRing> ring;
    std::uint64_t lost;  // samples that the CPU had lost when the ring ended
  };

  template <typename OnSample, typename OnLost>
  void DrainRing(PerfRing* ring, std::uint64_t limit, const OnSample& on_sample,
                 const OnLost& on_lost);

  // Maximum size of a tracepoint's sample without a stack, in bytes: PERF_MAX_TRACE_SIZE (8192),
  // and at most 256 bytes that perf adds.
  static constexpr std::size_t kMaxSampleSize = 8192 + 256;

  int number_;
  std::size_t max_sample_size_ = kMaxSampleSize;
  bool has_stacks_ = false;
  std::unique_ptr<EventRing> current_;
  std::vector<Former> former_;
  std::uint64_t began_at_ = 0;     // time of Begin, in ns
  std::uint64_t last_sample_ = 0;  // timestamp of the last delivered sample
  std::uint64_t lost_ = 0;         // lost samples, by LOST records and by End
  Throttled throttled_;
  std::uint64_t lost_at_check_ = 0;  // value of lost_ at the last TakeMayHaveLost
  bool has_ended_ = false;           // whether a ring has ended since the last TakeMayHaveLost
};

template <typename OnSample, typename OnLost>
void CpuRing::DrainRing(PerfRing* ring, std::uint64_t limit, const OnSample& on_sample,
                        const OnLost& on_lost) {
  // One for all records: setting its members is faster than creating it for each record.
  SampleRecord sample;
  ring->Drain(limit, [&](const PerfRecord& record) {
    std::uint64_t lost = 0;
    if (ParseSample(record, &sample) || ParseSwitchIn(record, &sample)) {
      last_sample_ = record.timestamp;
      on_sample(sample, record.timestamp);
    } else if (ParseLost(record, &lost)) {
      lost_ += lost;
      on_lost(lost_);
    } else if (record.type() == PERF_RECORD_THROTTLE) {
      if (throttled_.count++ == 0) throttled_.first = record.timestamp;
      throttled_.last = record.timestamp;
    }
  });
}

template <typename Look>
void CpuRing::Peek(const Look& look) {
  for (const Former& former : former_) former.ring->ring.Peek(look);
  if (current_ != nullptr) current_->ring.Peek(look);
}

template <typename OnSample, typename OnLost>
void CpuRing::Drain(std::uint64_t limit, const OnSample& on_sample, const OnLost& on_lost) {
  while (!former_.empty()) [[unlikely]] {
      const Former& former = former_.front();
      DrainRing(&former.ring->ring, limit, on_sample, on_lost);
      if (!former.ring->ring.empty()) return;
      if (former.lost > lost_) {
        // Reports the losses that were not in a LOST record.
        lost_ = former.lost;
        on_lost(lost_);
      }
      former_.erase(former_.begin());
    }
  if (current_ == nullptr || current_->ring.empty()) return;
  DrainRing(&current_->ring, limit, on_sample, on_lost);
}

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_CPU_RING_H_
