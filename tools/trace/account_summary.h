// Sums up the account of a recording (account.h), for summaries such as that of `nettrace info`.
#ifndef TOOLS_TRACE_ACCOUNT_SUMMARY_H_
#define TOOLS_TRACE_ACCOUNT_SUMMARY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "tools/base/json_text.h"
#include "tools/trace/account.h"

namespace trace {

// Holds the totals of an account. Memory is bounded: entries beyond the limits below are only
// counted.
class AccountSummary {
 public:
  static constexpr std::size_t kMaxLosses = 16384;
  static constexpr std::size_t kMaxIntervals = 1000;
  static constexpr std::size_t kMaxCpuChanges = 1000;
  static constexpr std::size_t kMaxUnknownServices = 1000;

  // Time in ns since 1970; 0 means unknown.
  using Time = std::uint64_t;
  struct Interval {
    Time from = 0;
    Time until = 0;
    std::uint64_t count = 0;  // events lost in the interval
  };

  void Add(const AccountEvent& event);

  // Returns the numbers of lost events by CPU and tracepoint. The tracepoint is empty if it is
  // unknown.
  using Key = std::pair<std::uint32_t, std::string>;
  const std::map<Key, std::uint64_t>& losses() const { return losses_; }
  // Returns the number of lost events that losses() does not contain, because it has kMaxLosses
  // entries.
  std::uint64_t losses_left_out() const { return losses_left_out_; }
  // Returns the number of all lost events.
  std::uint64_t lost() const { return lost_; }
  // Number of events in lost() that the collector received but did not write (EventsDropped), and
  // the latest reason why it did not.
  std::uint64_t dropped() const { return dropped_; }
  const std::string& dropped_reason() const { return dropped_reason_; }
  // Returns the first intervals in which events were lost, in the order of the calls of Add().
  // Consecutive losses with the same end belong to the same interval.
  const std::vector<Interval>& intervals() const { return intervals_; }
  std::uint64_t intervals_left_out() const { return intervals_left_out_; }
  // Returns the first CpuOffline and CpuOnline events, in the order of the calls of Add().
  const std::vector<AccountEvent>& cpu_changes() const { return cpu_changes_; }
  std::uint64_t cpu_changes_left_out() const { return cpu_changes_left_out_; }
  // Returns the first ServiceUnknown events, in the order of the calls of Add().
  const std::vector<AccountEvent>& unknown_services() const { return unknown_services_; }
  std::uint64_t unknown_services_left_out() const { return unknown_services_left_out_; }
  // Returns how often the kernel stopped the samples of CPU time on a CPU until its next timer
  // tick, in total for all CPUs.
  std::uint64_t throttled() const { return throttled_; }
  // Returns the number of events whose stacks were cut because there was no time to unwind them.
  std::uint64_t stacks_skipped() const { return stacks_skipped_; }
  // Lowest section number in SectionBegan events, and the totals of all CPUs in the sections before
  // it.
  struct Section {
    std::uint64_t number = 0;
    std::uint64_t events_before = 0;
    std::uint64_t lost_before = 0;
  };
  const std::optional<Section>& section() const { return section_; }
  // Time from the earliest Since to the latest Until of all AccountUnknown events. Losses may be
  // known for some times in between, if there are several of these events.
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
  Time last_interval_ = 0;  // end of the last interval, even if intervals_ does not contain it
  std::uint64_t intervals_left_out_ = 0;
  std::vector<AccountEvent> cpu_changes_;
  std::uint64_t cpu_changes_left_out_ = 0;
  std::vector<AccountEvent> unknown_services_;
  std::uint64_t unknown_services_left_out_ = 0;
  std::uint64_t throttled_ = 0;
  std::uint64_t stacks_skipped_ = 0;
  std::optional<Section> section_;
  std::optional<Unknown> unknown_;
};

// Returns e.g. "2026-11-21T10:22:00.500000000Z", or "?" if the time is unknown.
std::string AccountTimeText(AccountSummary::Time time);
// Returns e.g. "ring:7 from 2026-11-21T10:22:00.500000000Z to 2026-11-21T10:22:01.250000000Z: " and
// the reason, for an event ServiceUnknown.
std::string UnknownServiceText(const AccountEvent& service);

// Writes the members losses, lossesLeftOut, lossIntervals, lossIntervalsLeftOut, cpuChanges,
// cpuChangesLeftOut, unknownServices, unknownServicesLeftOut, throttled and stacksSkipped.
void PutAccount(const AccountSummary& account, base::JsonWriter* json);
// Writes the member `key`: the time as text, or null if it is unknown.
void PutAccountTime(base::JsonWriter* json, const char* key, AccountSummary::Time time);

}  // namespace trace

#endif  // TOOLS_TRACE_ACCOUNT_SUMMARY_H_
