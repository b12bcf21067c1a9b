// Whose events were lost, and when: the rings say where samples are missing, the kernel's counts
// say of which tracepoints they were.
#ifndef TOOLS_COLLECTOR_SESSION_LOSS_LEDGER_H_
#define TOOLS_COLLECTOR_SESSION_LOSS_LEDGER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace collector {

// Samples of one tracepoint that one CPU's ring had no space for.
struct Loss {
  std::size_t cpu = 0;               // its place in PerfSession::cpus()
  std::optional<int> tracepoint_id;  // not known before Linux 6.0
  std::uint64_t count = 0;
  // They were lost after `from`, up to `until`, on the session's clock.
  std::uint64_t from = 0;
  std::uint64_t until = 0;

  friend bool operator==(const Loss&, const Loss&) = default;
};

// The sum of all losses that Settle has given is the kernel's count, once it has been called with
// `all` and the recording is disabled. Costs nothing while nothing is lost; else as many reads at
// the end of an interval as there are tracepoints, for each CPU that has lost something since.
// Not thread-safe.
class LossLedger {
 public:
  // Passes the totals of a CPU's losses, by tracepoint, since the start. Unimplemented where the
  // kernel does not count them.
  using ReadTotals = absl::FunctionRef<absl::Status(
      std::size_t cpu, absl::FunctionRef<void(int tracepoint_id, std::uint64_t lost)> total)>;
  using Clock = absl::FunctionRef<std::uint64_t()>;

  // Nothing was lost before `start`.
  explicit LossLedger(std::uint64_t start) : start_(start) {}

  // The CPU's ring is short of `count` samples, after one with the time `after`; 0: before the
  // first.
  void Report(std::size_t cpu, std::uint64_t count, std::uint64_t after);
  // Something has been reported since Settle.
  bool is_due() const { return is_due_; }

  // Appends what was lost on the CPUs of which that was reported, with `all` on each of the first
  // `cpus`: what is lost is counted before the ring can say it.
  absl::Status Settle(std::size_t cpus, bool all, ReadTotals read, Clock now,
                      std::vector<Loss>* losses);

 private:
  struct Cpu {
    std::uint64_t reported = 0;  // since Settle
    std::uint64_t after = 0;     // of the first of those
    std::uint64_t read_at = 0;   // all that was lost before is known
    absl::flat_hash_map<int, std::uint64_t> totals;
  };

  Cpu& At(std::size_t cpu);

  const std::uint64_t start_;
  std::vector<Cpu> cpus_;
  bool is_due_ = false;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_LOSS_LEDGER_H_
