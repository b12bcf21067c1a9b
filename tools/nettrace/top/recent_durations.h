// The durations of the activities that stopped in the last minute or in the minute before it. Their
// percentiles are computed in bounded memory.
#ifndef TOOLS_NETTRACE_TOP_RECENT_DURATIONS_H_
#define TOOLS_NETTRACE_TOP_RECENT_DURATIONS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "tools/trace/duration_histogram.h"

namespace tools::top {

// The number of a step of time. Each step lasts kStep and begins at a multiple of kStep.
using StepNumber = std::int64_t;
inline constexpr absl::Duration kStep = absl::Seconds(5);
inline constexpr StepNumber kStepsOfMinute = 12;
StepNumber StepAt(absl::Time time);

struct Minutes {
  // Durations of the current step and of the 11 before it, which are the last 55 to 60 s.
  trace::DurationHistogram last;
  // Durations of the 12 steps before those of `last`.
  trace::DurationHistogram before;
};

// Counts durations by step of time (StepNumber) and by bucket of DurationHistogram. Holds only
// steps and buckets that have durations, and at most 24 steps, which are two minutes.
class RecentDurations {
 public:
  // The memory of several objects. When `used` has reached kMaxEntries, the owner of the budget
  // must set `used` to the sum of CountEntries of these objects.
  struct Budget {
    // Maximum number of entries of all objects together. Beyond it, only the first entry of a step
    // is still added. An entry has 8 bytes.
    static constexpr std::size_t kMaxEntries = std::size_t{4} << 20;
    std::size_t used = 0;  // entries at the last count, and entries added since then
  };

  // Adds the duration of an activity that stopped within `step`. Ignores it if `step` is two
  // minutes or more before the latest step. If the budget is used up, counts the closest duration
  // of the same step once more instead.
  void Add(StepNumber step, std::uint64_t nanoseconds, Budget* budget);
  void Merge(const RecentDurations& other, Budget* budget);
  // Removes the durations that are not in the two minutes that end with `now`.
  void Forget(StepNumber now);
  // Returns the durations of the two minutes that end with `now`.
  Minutes At(StepNumber now) const;
  std::size_t CountEntries() const;

 private:
  struct Entry {
    std::uint32_t count = 0;
    std::uint16_t bucket = 0;
  };
  struct Step {
    StepNumber number = 0;
    std::vector<Entry> entries;  // by bucket
  };

  // Returns the step, and adds it if it does not exist; null if it is too old.
  Step* FindStep(StepNumber number);
  static void AddTo(Step* step, std::uint16_t bucket, std::uint32_t count, Budget* budget);

  std::vector<Step> steps_;  // by number; at most two minutes
};

}  // namespace tools::top

#endif  // TOOLS_NETTRACE_TOP_RECENT_DURATIONS_H_
