// What the account of a recording (account.h) adds up to: for the summaries of `nettrace record`
// and `nettrace info`.
#ifndef TOOLS_COMMON_ACCOUNT_SUMMARY_H_
#define TOOLS_COMMON_ACCOUNT_SUMMARY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "tools/common/account.h"
#include "tools/common/json_text.h"

namespace tools {

// Its memory is bounded, whatever is added. What passes the bounds is counted.
class AccountSummary {
 public:
  static constexpr std::size_t kMaxLosses = 16384;
  static constexpr std::size_t kMaxIntervals = 1000;
  static constexpr std::size_t kMaxCpuChanges = 1000;

  // A time in ns since 1970, 0 if it is not known.
  using Time = std::uint64_t;
  struct Interval {
    Time from = 0;
    Time until = 0;
    std::uint64_t count = 0;  // events lost in it
  };
  struct CpuChange {
    std::uint32_t cpu = 0;
    bool online = false;
    Time since = 0;  // see CpuOffline and CpuOnline
    Time until = 0;
    std::string reason;
  };

  void Add(const AccountEvent& event);

  // Events lost, by CPU and tracepoint; that is empty where it is not known.
  using Key = std::pair<std::uint32_t, std::string>;
  const std::map<Key, std::uint64_t>& losses() const { return losses_; }
  // Events lost of which that does not tell.
  std::uint64_t losses_left_out() const { return losses_left_out_; }
  // All events lost.
  std::uint64_t lost() const { return lost_; }
  // Of those, the ones that came and were not written, and why the last of them were not.
  std::uint64_t dropped() const { return dropped_; }
  const std::string& dropped_reason() const { return dropped_reason_; }
  // The first intervals in which events were lost, in the order of Add. Losses of one interval
  // have the same end.
  const std::vector<Interval>& intervals() const { return intervals_; }
  std::uint64_t intervals_left_out() const { return intervals_left_out_; }
  const std::vector<CpuChange>& cpu_changes() const { return cpu_changes_; }
  std::uint64_t cpu_changes_left_out() const { return cpu_changes_left_out_; }
  // The first section, of those that say what was before them: its number, and what that was on all
  // CPUs.
  struct Section {
    std::uint64_t number = 0;
    std::uint64_t events_before = 0;
    std::uint64_t lost_before = 0;
  };
  const std::optional<Section>& section() const { return section_; }
  // The times of the AccountUnknown, from the earliest to the latest; of several those between
  // them may be known.
  struct Unknown {
    Time since = 0;
    Time until = 0;
  };
  const std::optional<Unknown>& unknown() const { return unknown_; }

 private:
  void AddLoss(const AccountEvent& event);

  std::map<Key, std::uint64_t> losses_;
  std::uint64_t losses_left_out_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t dropped_ = 0;
  std::string dropped_reason_;
  std::vector<Interval> intervals_;
  Time last_interval_ = 0;  // its end, also if it is left out
  std::uint64_t intervals_left_out_ = 0;
  std::vector<CpuChange> cpu_changes_;
  std::uint64_t cpu_changes_left_out_ = 0;
  std::optional<Section> section_;
  std::optional<Unknown> unknown_;
};

// "2026-11-21T10:22:00.5Z"; "?" if it is not known.
std::string AccountTimeText(AccountSummary::Time time);

// Writes the members losses, lossesLeftOut, lossIntervals, lossIntervalsLeftOut, cpuChanges and
// cpuChangesLeftOut.
void PutAccount(const AccountSummary& account, JsonWriter* json);
// A member that is the time as text, or null.
void PutAccountTime(JsonWriter* json, const char* key, AccountSummary::Time time);

}  // namespace tools

#endif  // TOOLS_COMMON_ACCOUNT_SUMMARY_H_
