#include "libnettrace-writer/merge/clock.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/numeric/int128.h"
#include "libnettrace-writer/core/date_time.h"
#include "libnettrace-writer/core/traceevent.h"

namespace nettrace::internal {
namespace {

constexpr absl::int128 kMaxTicks = kMaxTimestamp;

// Converts a timestamp of `from` to the clock of `to`. The result may be outside the range of
// timestamps. Both sync times must be whole milliseconds.
absl::int128 ConvertTicks(std::uint64_t ticks, const TraceInfo& from, const TraceInfo& to) {
  // Limits the distance to the range of timestamps, so that the computation below cannot overflow.
  const absl::int128 since =
      std::clamp(absl::int128(ticks) - from.sync_ticks, -kMaxTicks, kMaxTicks);
  const std::int64_t apart = absl::ToInt64Milliseconds(from.sync_time - to.sync_time);
  return to.sync_ticks + absl::int128(apart) * to.ticks_per_second / 1000 +
         since * to.ticks_per_second / from.ticks_per_second;
}

// Moves the sync time of `clock` back, to `ticks` or before. Moves it by whole milliseconds and
// whole ticks, so that no timestamp changes its meaning. Does nothing if IsDate would be false for
// the result.
void SyncNoLaterThan(absl::int128 ticks, TraceInfo* clock) {
  if (ticks >= clock->sync_ticks) return;
  const std::int64_t step = 1000 / std::gcd(std::int64_t{1000}, clock->ticks_per_second);
  const absl::int128 step_ticks = absl::int128(step) * clock->ticks_per_second / 1000;
  const absl::int128 steps = (clock->sync_ticks - ticks + step_ticks - 1) / step_ticks;
  const absl::int128 milliseconds = steps * step;
  const absl::int128 sync_ticks = clock->sync_ticks - steps * step_ticks;
  if (milliseconds > std::numeric_limits<std::int64_t>::max() || sync_ticks < -kMaxTicks) return;
  const absl::Time earlier =
      clock->sync_time - absl::Milliseconds(static_cast<std::int64_t>(milliseconds));
  if (!IsDate(earlier)) return;
  clock->sync_time = earlier;
  clock->sync_ticks = static_cast<std::int64_t>(sync_ticks);
}

}  // namespace

bool IsDate(absl::Time time) { return IsValid(FromTime(time)); }

TraceInfo CommonClock(std::span<const ClockedTrace> traces) {
  TraceInfo clock = traces.front().info;
  absl::int128 first = kMaxTicks;
  for (const auto& [info, first_timestamp] : traces) {
    if (first_timestamp) first = std::min(first, ConvertTicks(*first_timestamp, info, clock));
  }
  if (first < 0) {
    // Raises sync_ticks, the timestamp at the sync time, so that the first event gets no negative
    // timestamp. Does not raise sync_ticks above half of the range of timestamps, so that the other
    // half is left for the time after the sync time. Still earlier events then get the timestamp 0.
    const auto sync_ticks = static_cast<std::int64_t>(std::min(
        clock.sync_ticks - first, std::max(absl::int128(clock.sync_ticks), kMaxTicks / 2)));
    first += sync_ticks - absl::int128(clock.sync_ticks);
    clock.sync_ticks = sync_ticks;
  }
  SyncNoLaterThan(first, &clock);
  return clock;
}

std::uint64_t TimestampAt(absl::Time time, const TraceInfo& clock) {
  constexpr absl::int128 kNanoseconds = 1'000'000'000;
  // Maximum distance from the sync time. Limits also infinite durations, so that the computation
  // below cannot overflow.
  constexpr absl::Duration kLongest = absl::Seconds(std::int64_t{1} << 40);
  const absl::Duration since =
      absl::Ceil(std::clamp(time - clock.sync_time, -kLongest, kLongest), absl::Nanoseconds(1));
  const std::int64_t seconds = absl::ToInt64Seconds(absl::Floor(since, absl::Seconds(1)));
  const std::int64_t rest = absl::ToInt64Nanoseconds(since - absl::Seconds(seconds));
  const absl::int128 rest_ticks =
      (absl::int128(rest) * clock.ticks_per_second + kNanoseconds - 1) / kNanoseconds;
  const absl::int128 ticks =
      clock.sync_ticks + absl::int128(seconds) * clock.ticks_per_second + rest_ticks;
  return static_cast<std::uint64_t>(
      std::clamp(ticks, absl::int128(0), absl::int128(traceevent::kMaxEventTimestamp)));
}

std::uint64_t ConvertTimestamp(std::uint64_t ticks, const TraceInfo& from, const TraceInfo& to) {
  const absl::int128 converted = ConvertTicks(ticks, from, to);
  if (converted < 0) return 0;
  return static_cast<std::uint64_t>(std::min(converted, kMaxTicks));
}

}  // namespace nettrace::internal
