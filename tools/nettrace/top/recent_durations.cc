#include "tools/nettrace/top/recent_durations.h"

#include <algorithm>

namespace tools::top {

StepNumber StepAt(absl::Time time) {
  return absl::ToUnixNanos(time) / absl::ToInt64Nanoseconds(kStep);
}

void RecentDurations::Add(StepNumber step, std::uint64_t nanoseconds, Budget* budget) {
  if (Step* const found = FindStep(step)) {
    AddTo(found, trace::DurationHistogram::BucketOf(nanoseconds), 1, budget);
  }
}

void RecentDurations::Merge(const RecentDurations& other, Budget* budget) {
  for (const Step& step : other.steps_) {
    Step* const found = FindStep(step.number);
    if (found == nullptr) continue;
    for (const Entry& entry : step.entries) AddTo(found, entry.bucket, entry.count, budget);
  }
}

void RecentDurations::Forget(StepNumber now) {
  std::erase_if(steps_,
                [now](const Step& step) { return step.number <= now - 2 * kStepsOfMinute; });
}

Minutes RecentDurations::At(StepNumber now) const {
  Minutes minutes;
  for (const Step& step : steps_) {
    const StepNumber age = now - step.number;
    if (age < 0 || age >= 2 * kStepsOfMinute) continue;
    trace::DurationHistogram& minute = age < kStepsOfMinute ? minutes.last : minutes.before;
    for (const Entry& entry : step.entries) minute.AddBucket(entry.bucket, entry.count);
  }
  return minutes;
}

std::size_t RecentDurations::CountEntries() const {
  std::size_t count = 0;
  for (const Step& step : steps_) count += step.entries.size();
  return count;
}

RecentDurations::Step* RecentDurations::FindStep(StepNumber number) {
  if (!steps_.empty() && number <= steps_.back().number - 2 * kStepsOfMinute) return nullptr;
  auto at = steps_.end();
  while (at != steps_.begin() && (at - 1)->number > number) --at;
  if (at != steps_.begin() && (at - 1)->number == number) return &*(at - 1);
  const bool is_latest = at == steps_.end();
  at = steps_.insert(at, {number, {}});
  if (!is_latest) return &*at;
  Forget(number);
  return &steps_.back();
}

void RecentDurations::AddTo(Step* step, std::uint16_t bucket, std::uint32_t count, Budget* budget) {
  std::vector<Entry>& entries = step->entries;
  auto at = std::lower_bound(entries.begin(), entries.end(), bucket,
                             [](const Entry& entry, std::uint16_t b) { return entry.bucket < b; });
  if (at == entries.end() || at->bucket != bucket) {
    if (entries.empty() || budget->used < Budget::kMaxEntries) {
      at = entries.insert(at, {0, bucket});
      ++budget->used;
    } else if (at == entries.end() ||
               (at != entries.begin() && bucket - (at - 1)->bucket < at->bucket - bucket)) {
      --at;
    }
  }
  at->count += count;
}

}  // namespace tools::top
