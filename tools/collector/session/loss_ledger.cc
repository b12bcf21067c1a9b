#include "tools/collector/session/loss_ledger.h"

#include <algorithm>

namespace collector {

LossLedger::Cpu& LossLedger::At(std::size_t cpu) {
  while (cpus_.size() <= cpu) {
    cpus_.emplace_back().read_at = start_;
  }
  return cpus_[cpu];
}

void LossLedger::Report(std::size_t cpu, std::uint64_t count, std::uint64_t after) {
  Cpu& state = At(cpu);
  if (state.reported == 0) state.after = after;
  state.reported += count;
  is_due_ = is_due_ || count != 0;
}

absl::Status LossLedger::Settle(std::size_t cpus, bool all, ReadTotals read, Clock now,
                                std::vector<Loss>* losses) {
  for (std::size_t i = 0; i < cpus; ++i) {
    Cpu& cpu = At(i);
    if (cpu.reported == 0 && !all) continue;
    Loss loss;
    loss.cpu = i;
    loss.from = cpu.reported == 0 ? cpu.read_at : std::max(cpu.read_at, cpu.after);
    const std::uint64_t before = now();
    const std::size_t first = losses->size();
    const absl::Status status = read(i, [&](int tracepoint_id, std::uint64_t lost) {
      if (lost == 0) return;
      std::uint64_t& total = cpu.totals[tracepoint_id];
      if (lost <= total) return;
      loss.tracepoint_id = tracepoint_id;
      loss.count = lost - total;
      losses->push_back(loss);
      total = lost;
    });
    const std::uint64_t until = now();
    if (absl::IsUnimplemented(status)) {
      loss.count = cpu.reported;
      if (loss.count != 0) losses->push_back(loss);
    } else if (!status.ok()) {
      return status;
    }
    for (std::size_t j = first; j < losses->size(); ++j) (*losses)[j].until = until;
    cpu.reported = 0;
    cpu.read_at = before;
  }
  is_due_ = false;
  return absl::OkStatus();
}

}  // namespace collector
