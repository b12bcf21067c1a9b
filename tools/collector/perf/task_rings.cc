#include "tools/collector/perf/task_rings.h"

#include <linux/perf_event.h>

#include <algorithm>

#include "tools/collector/perf/session_clock.h"

namespace collector {
namespace {

constexpr std::size_t kMinRingSize = 32 * 1024;  // minimum size of a ring, in bytes

}  // namespace

TaskRings::TaskRings(std::size_t cpus, std::size_t sample_ring_size, bool cgroups, bool all_code)
    : ring_size_(std::max(kMinRingSize, sample_ring_size / 4)),
      cgroups_(cgroups),
      all_code_(all_code),
      rings_(cpus) {}

absl::StatusOr<EventRing> TaskRings::Open(int cpu) const {
  perf_event_attr attr = DummyAttributes(ring_size_);
  CountLosses(&attr);
  attr.comm = 1;
  attr.comm_exec = 1;
  attr.task = 1;
  // Requests the mappings of files as code. They contain the path of a process's executable, which
  // no other record has. A program causes one record for each of its shared objects, typically four
  // records of about 110 bytes.
  attr.mmap = 1;
  attr.mmap2 = attr.build_id = all_code_ && KernelReportsBuildIds() ? 1 : 0;
  attr.cgroup = cgroups_ ? 1 : 0;
  return EventRing::Open(attr, cpu, ring_size_);
}

void TaskRings::End(std::size_t index) {
  Take(&*rings_[index]);
  rings_[index].reset();
  are_missing_ = true;
}

void TaskRings::Peek(absl::FunctionRef<void(const PerfRecord&)> look) {
  for (std::optional<Ring>& ring : rings_) {
    if (ring) ring->ring.Peek(look);
  }
}

void TaskRings::Take(Ring* ring) {
  const std::size_t fill = ring->ring.fill();
  if (fill == 0) return;
  ring->ring.Drain(PerfRing::kNoLimit, [this](const PerfRecord& record) {
    MappingRecord mapping;
    CodeRecord code;
    if (!all_code_ && ParseMapping(record, &mapping) && !ParseCode(record, &code)) return;
    waiting_.emplace_back(record.timestamp,
                          std::vector<std::byte>(record.bytes.begin(), record.bytes.end()));
  });
  // Reads the kernel's count of losses only if the ring is a quarter full. The longest record, with
  // a path, is shorter than half of the ring, so a record is lost only while the ring is at least
  // half full. The ring may become half full while Take drains it. This call and the next call of
  // Take then read at least half a ring together, so one of them reads a quarter or more.
  if (fill < ring->ring.size() / 4) return;
  const absl::StatusOr<EventCounts> counts = ReadCounts(ring->event);
  if (!counts.ok() || counts->lost == ring->lost) return;
  ring->lost = counts->lost;
  are_missing_ = true;
}

bool TaskRings::Drain(absl::FunctionRef<void(const PerfRecord&)> consume) {
  // A record that arrives after its CPU's ring was read may be earlier than a record in another
  // ring. Therefore records later than this time are kept until all earlier ones have been read.
  const std::uint64_t limit = SessionClockNow();
  for (std::optional<Ring>& ring : rings_) {
    if (ring) Take(&*ring);
  }
  if (!waiting_.empty()) {
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    auto record = waiting_.begin();
    for (; record != waiting_.end() && record->first <= limit; ++record) {
      consume(PerfRecord{record->first, record->second});
    }
    waiting_.erase(waiting_.begin(), record);
  }
  return std::exchange(are_missing_, false);
}

}  // namespace collector
