#include "tools/collector/perf/attached_tracepoint.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace collector {
namespace {

// Returns the counts of the events, added up.
absl::StatusOr<EventCounts> SumCounts(const std::vector<base::UniqueFd>& events) {
  EventCounts sum;
  for (const base::UniqueFd& event : events) {
    ASSIGN_OR_RETURN(const EventCounts counts, ReadCounts(event));
    sum.hits += counts.hits;
    sum.lost += counts.lost;
  }
  return sum;
}

// Returns the hits of the events, or no value if they cannot be read.
std::optional<std::uint64_t> ReadHits(const std::vector<base::UniqueFd>& events) {
  const absl::StatusOr<EventCounts> counts = SumCounts(events);
  return counts.ok() ? std::optional(counts->hits) : std::nullopt;
}

}  // namespace

absl::Status AttachedTracepoint::CheckFilter(int id, const std::string& filter) {
  perf_event_attr attr = TracepointAttributes(id);
  const base::UniqueFd fd = OpenEvent(&attr, /*pid=*/0, /*cpu=*/-1);
  if (!fd.valid()) return OpenError(errno, "it cannot be opened to check the filter");
  if (ioctl(fd.get(), PERF_EVENT_IOC_SET_FILTER, filter.c_str()) == 0) return absl::OkStatus();
  // The kernel refuses a filter with EINVAL, or with EPERM for some operators that it does not
  // know.
  if (errno == EINVAL || errno == EPERM) return absl::InvalidArgumentError("Invalid argument");
  return base::ErrnoStatus(errno, absl::StrCat("setting the filter '", filter, "'"));
}

absl::Status AttachedTracepoint::Open(const PerfTarget& target,
                                      const std::vector<std::size_t>& indices, CpuRings* rings) {
  ASSIGN_OR_RETURN(TargetEvents events, OpenTargetEvents(target, tracepoint_, indices, rings));
  for (std::size_t i = 0; i < indices.size(); ++i) SetEvents(indices[i], std::move(events[i]));
  if (state_ != State::kEnabled) return absl::OkStatus();
  for (const std::size_t i : indices) RETURN_IF_ERROR(EnableOn(&cpus_[i], rings->cpus()[i]));
  return absl::OkStatus();
}

absl::Status AttachedTracepoint::Enable(const std::vector<CpuRing>& rings) {
  if (state_ != State::kAttached) return absl::OkStatus();
  state_ = State::kEnabled;
  for (std::size_t i = 0; i < cpus_.size(); ++i) RETURN_IF_ERROR(EnableOn(&cpus_[i], rings[i]));
  return absl::OkStatus();
}

absl::Status AttachedTracepoint::EnableOn(Cpu* cpu, const CpuRing& ring) {
  const std::string what = absl::StrCat("enabling tracepoint ", tracepoint_.name);
  if (!inherits_) {
    for (const base::UniqueFd& event : cpu->events) {
      if (ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0) != 0) return base::ErrnoStatus(errno, what);
    }
    return absl::OkStatus();
  }
  const std::optional<std::uint64_t> before = ReadHits(cpu->events);
  cpu->hits_before = before.value_or(0);
  for (const base::UniqueFd& event : cpu->events) RETURN_IF_ERROR(ring.Redirect(event, what));
  // If there was a hit between the two calls of ReadHits, it is not known whether its sample was
  // written.
  if (ReadHits(cpu->events) != before) hits_are_known_ = false;
  return absl::OkStatus();
}

void AttachedTracepoint::Disable() {
  if (std::exchange(state_, State::kDisabled) == State::kDisabled) return;
  for (Cpu& cpu : cpus_) DisableOn(&cpu);
}

void AttachedTracepoint::DisableOn(Cpu* cpu) {
  // Disables the events even if their CPU is no longer recorded: the CPU may still be online, if
  // one of its events could not be opened.
  for (const base::UniqueFd& event : cpu->events) ioctl(event.get(), PERF_EVENT_IOC_DISABLE, 0);
  // In threads that are just being created, the events may still be enabled. Ends the redirection
  // of the events to the ring, so that they write no samples.
  if (!inherits_ || !cpu->hits_before || cpu->hits_at_end) return;
  constexpr long kNone = -1;  // a long, because the kernel reads all of its bits
  const std::optional<std::uint64_t> before = ReadHits(cpu->events);
  for (const base::UniqueFd& event : cpu->events)
    ioctl(event.get(), PERF_EVENT_IOC_SET_OUTPUT, kNone);
  cpu->hits_at_end = before;
  if (ReadHits(cpu->events) != before) hits_are_known_ = false;
}

std::uint64_t AttachedTracepoint::Close(std::size_t index, std::vector<base::UniqueFd>* closing) {
  Cpu& cpu = cpus_[index];
  if (!is_disabled()) DisableOn(&cpu);
  if (const absl::StatusOr<EventCounts> counts = ReadCountsOn(cpu); counts.ok()) {
    cpu.closed = *counts;
  }
  closing->insert(closing->end(), std::make_move_iterator(cpu.events.begin()),
                  std::make_move_iterator(cpu.events.end()));
  cpu.events.clear();
  cpu.hits_before.reset();
  cpu.hits_at_end.reset();
  return cpu.closed.lost;
}

absl::StatusOr<std::uint64_t> AttachedTracepoint::TakeLosses(std::size_t index) {
  ASSIGN_OR_RETURN(const EventCounts counts, ReadCountsOn(cpus_[index]));
  return counts.lost - std::exchange(cpus_[index].lost_read, counts.lost);
}

absl::StatusOr<EventCounts> AttachedTracepoint::ReadCountsOn(const Cpu& cpu) const {
  ASSIGN_OR_RETURN(EventCounts counts, SumCounts(cpu.events));
  if (inherits_) {
    counts.hits = cpu.hits_before ? cpu.hits_at_end.value_or(counts.hits) - *cpu.hits_before : 0;
  }
  return EventCounts{cpu.closed.hits + counts.hits, cpu.closed.lost + counts.lost};
}

absl::StatusOr<EventCounts> AttachedTracepoint::ReadTotals() const {
  EventCounts total;
  for (const Cpu& cpu : cpus_) {
    ASSIGN_OR_RETURN(const EventCounts counts, ReadCountsOn(cpu));
    total.hits += counts.hits;
    total.lost += counts.lost;
  }
  return total;
}

}  // namespace collector
