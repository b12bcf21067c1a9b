#include "tools/collector/perf/perf_capture.h"

#include <linux/perf_event.h>

#include <algorithm>

#include "tools/base/status_macros.h"
#include "tools/collector/perf/target_events.h"

namespace collector {
namespace {

// Returns whether the kernel can record cgroups (since 5.7, with CONFIG_CGROUP_PERF).
bool KernelRecordsCgroups() {
  perf_event_attr attr = DummyAttributes(/*ring_size=*/0);
  attr.sample_type |= PERF_SAMPLE_CGROUP;
  attr.cgroup = 1;
  return OpenEvent(&attr, /*pid=*/0, /*cpu=*/-1).valid();
}

}  // namespace

PerfCapture::PerfCapture(PerfTarget target, CpuRings rings, bool has_cgroups)
    : target_(std::move(target)),
      rings_(std::move(rings)),
      has_cgroups_(has_cgroups),
      detached_lost_(rings_.cpus().size()) {}

absl::StatusOr<PerfCapture> PerfCapture::Open(const std::vector<int>& cpus, PerfOptions options) {
  const bool has_cgroups = options.cgroups && KernelRecordsCgroups();
  ASSIGN_OR_RETURN(CpuRings rings, CpuRings::Open(cpus, options.ring_size, has_cgroups,
                                                  options.stacks, options.copied_bytes));
  RETURN_IF_ERROR(CheckCgroups(options.target, rings.cpus()[rings.FindOnline().front()].number()));
  return PerfCapture(std::move(options.target), std::move(rings), has_cgroups);
}

absl::StatusOr<PerfCapture> PerfCapture::OpenNone() {
  ASSIGN_OR_RETURN(CpuRings rings, CpuRings::OpenNone());
  return PerfCapture(PerfTarget(), std::move(rings), /*has_cgroups=*/false);
}

absl::Status PerfCapture::Attach(int id, const std::string& name, const std::string& filter,
                                 const StackOptions& stacks) {
  return Attach(PerfTracepoint{id, name, filter, has_cgroups_, stacks});
}

absl::Status PerfCapture::AttachSamples(int id, const std::string& name, std::uint32_t rate,
                                        const StackOptions& stacks) {
  return Attach(PerfTracepoint{id, name, "", has_cgroups_, stacks, rate});
}

absl::Status PerfCapture::Attach(PerfTracepoint source) {
  // Stays true when the tracepoint is detached, because its samples may still be in the rings.
  defers_stacks_ = defers_stacks_ || DefersStacks(source);
  AttachedTracepoint tracepoint(std::move(source), target_.kind, rings_.cpus().size());
  RETURN_IF_ERROR(tracepoint.Open(target_, rings_.FindOnline(), &rings_));
  tracepoints_.push_back(std::move(tracepoint));
  return absl::OkStatus();
}

std::size_t PerfCapture::DescriptorsPerTracepoint() const {
  return CountParts(target_) * rings_.FindOnline().size();
}

absl::Status PerfCapture::Enable() {
  for (AttachedTracepoint& tracepoint : tracepoints_) {
    RETURN_IF_ERROR(tracepoint.Enable(rings_.cpus()));
  }
  return absl::OkStatus();
}

std::vector<AttachedTracepoint>::iterator PerfCapture::Find(int id) {
  return std::find_if(tracepoints_.begin(), tracepoints_.end(),
                      [id](const AttachedTracepoint& tracepoint) { return tracepoint.id() == id; });
}

void PerfCapture::Disable(int id) {
  if (const auto tracepoint = Find(id); tracepoint != tracepoints_.end()) tracepoint->Disable();
}

void PerfCapture::Detach(int id) {
  const auto tracepoint = Find(id);
  if (tracepoint == tracepoints_.end()) return;
  tracepoint->Disable();
  std::vector<base::UniqueFd> closing;
  for (std::size_t i = 0; i < detached_lost_.size(); ++i) {
    detached_lost_[i] += tracepoint->Close(i, &closing);
  }
  hits_were_known_ = hits_are_known();
  tracepoints_.erase(tracepoint);
  Close(std::move(closing));
}

std::optional<pid_t> PerfCapture::StartCloser() {
  if (closer_ == nullptr) {
    absl::StatusOr<std::unique_ptr<DescriptorCloser>> closer = DescriptorCloser::Start();
    if (!closer.ok()) return std::nullopt;
    closer_ = *std::move(closer);
  }
  return closer_->thread_id();
}

void PerfCapture::Close(std::vector<base::UniqueFd> fds) {
  if (closer_ != nullptr) closer_->Close(std::move(fds));
}

std::vector<CpuChange> PerfCapture::FollowCpus(bool suspect) {
  return rings_.Follow(
      suspect, [this](std::size_t index) { return OpenEvents(index); },
      [this](std::size_t index, base::UniqueFd probe) {
        return CloseEvents(index, std::move(probe));
      });
}

absl::Status PerfCapture::OpenEvents(std::size_t index) {
  for (AttachedTracepoint& tracepoint : tracepoints_) {
    if (tracepoint.is_disabled()) continue;
    RETURN_IF_ERROR(tracepoint.Open(target_, {index}, &rings_));
  }
  return absl::OkStatus();
}

std::uint64_t PerfCapture::CloseEvents(std::size_t index, base::UniqueFd probe) {
  std::vector<base::UniqueFd> closing;
  std::uint64_t lost = detached_lost_[index];
  for (AttachedTracepoint& tracepoint : tracepoints_) lost += tracepoint.Close(index, &closing);
  closing.push_back(std::move(probe));
  Close(std::move(closing));
  return lost;
}

absl::Status PerfCapture::SetCgroup(base::UniqueFd cgroup) {
  target_.cgroups.clear();
  target_.cgroups.push_back(std::move(cgroup));
  const std::vector<std::size_t> online = rings_.FindOnline();
  absl::Status status;
  if (!online.empty()) status = CheckCgroups(target_, rings_.cpus()[online.front()].number());
  std::vector<base::UniqueFd> closing;
  for (AttachedTracepoint& tracepoint : tracepoints_) {
    if (!status.ok()) break;
    if (tracepoint.is_disabled()) continue;
    for (std::size_t i = 0; i < rings_.cpus().size(); ++i) tracepoint.Close(i, &closing);
    status = tracepoint.Open(target_, online, &rings_);
  }
  // Closes the old events only now that the new events are open, so that each tracepoint always has
  // an event. When the last event of a tracepoint is closed, the kernel takes about 35 ms to detach
  // the tracepoint.
  Close(std::move(closing));
  if (!status.ok()) target_.cgroups.clear();
  return status;
}

absl::Status PerfCapture::ReadLosses(
    absl::FunctionRef<void(std::size_t index, int id, std::uint64_t count)> on_lost, Losses which) {
  RETURN_IF_ERROR(CheckLossesAreCounted());
  for (std::size_t i = 0; i < rings_.cpus().size(); ++i) {
    const bool may_have_lost = rings_.TakeMayHaveLost(i);
    if (which == Losses::kWhereLikely && !may_have_lost) continue;
    for (AttachedTracepoint& tracepoint : tracepoints_) {
      ASSIGN_OR_RETURN(const std::uint64_t lost, tracepoint.TakeLosses(i));
      if (lost != 0) on_lost(i, tracepoint.id(), lost);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<EventCounts> PerfCapture::ReadCounts(int id) const {
  RETURN_IF_ERROR(CheckLossesAreCounted());
  for (const AttachedTracepoint& tracepoint : tracepoints_) {
    if (tracepoint.id() == id) return tracepoint.ReadTotals();
  }
  return EventCounts();
}

bool PerfCapture::hits_are_known() const {
  return hits_were_known_ &&
         std::all_of(tracepoints_.begin(), tracepoints_.end(),
                     [](const AttachedTracepoint& each) { return each.hits_are_known(); });
}

}  // namespace collector
