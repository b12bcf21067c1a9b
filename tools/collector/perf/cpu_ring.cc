#include "tools/collector/perf/cpu_ring.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"
#include "tools/collector/perf/session_clock.h"
#include "tools/collector/perf/user_registers.h"

namespace collector {

void CpuRing::ExpectStacks(std::size_t max_frames, std::size_t copied_bytes) {
  constexpr std::size_t kMarks = 8;  // kernel.perf_event_max_contexts_per_stack by default
  max_sample_size_ = kMaxSampleSize + 8 * (max_frames + kMarks);
  has_stacks_ = true;
  if (copied_bytes == 0) return;
  constexpr std::size_t kSizes = 3;  // numbers beside the registers: ABI, and two sizes
  max_sample_size_ += copied_bytes + 8 * (kUserRegisters.size() + kSizes);
}

absl::StatusOr<EventRing> CpuRing::Open(std::size_t size) const {
  perf_event_attr attr = DummyAttributes(size);
  attr.read_format = PERF_FORMAT_TOTAL_TIME_RUNNING;  // read by IsActive
  if (has_stacks_ && KernelDefersStacks()) WriteDeferredStacks(&attr);
  return EventRing::Open(attr, number_, size);
}

void CpuRing::Begin(EventRing ring) {
  current_ = std::make_unique<EventRing>(std::move(ring));
  began_at_ = SessionClockNow();
}

void CpuRing::End(std::uint64_t lost) {
  former_.push_back({std::move(current_), lost});
  has_ended_ = true;
}

absl::Status CpuRing::Redirect(const base::UniqueFd& tracepoint, const std::string& what) const {
  if (ioctl(tracepoint.get(), PERF_EVENT_IOC_SET_OUTPUT, event().get()) == 0) {
    return absl::OkStatus();
  }
  return base::ErrnoStatus(
      errno, absl::StrCat(what, ": redirecting its samples to the ring of CPU ", number_));
}

bool CpuRing::IsActive() const {
  struct {
    std::uint64_t value;
    std::uint64_t running;  // time for which the event was active, in ns
  } first, second;
  return read(event().get(), &first, sizeof first) == sizeof first &&
         read(event().get(), &second, sizeof second) == sizeof second &&
         first.running != second.running;
}

bool CpuRing::TakeMayHaveLost() {
  const bool has_ended = std::exchange(has_ended_, false);
  const bool has_lost = std::exchange(lost_at_check_, lost_) != lost_;
  if (current_ == nullptr) return has_ended || has_lost;
  const std::uint64_t fullest = current_->ring.TakeFullest();
  return has_ended || has_lost ||
         (fullest != 0 && fullest + max_sample_size_ > current_->ring.size());
}

std::size_t CpuRing::waiting_bytes() const {
  std::size_t bytes = fill();
  for (const Former& former : former_) bytes += former.ring->ring.fill();
  return bytes;
}

}  // namespace collector
