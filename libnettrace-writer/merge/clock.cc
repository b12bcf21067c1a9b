#include "libnettrace-writer/merge/clock.h"

#include <algorithm>
#include <limits>

#include "absl/numeric/int128.h"
#include "absl/time/time.h"

namespace nettrace::internal {
namespace {

constexpr absl::int128 kMaxTicks = kMaxTimestamp;

// Sync times are whole milliseconds.
absl::int128 ConvertTicks(std::uint64_t ticks, const TraceInfo& from, const TraceInfo& to) {
  // No clock runs longer, and so nothing below overflows.
  const absl::int128 since =
      std::clamp(absl::int128(ticks) - from.sync_ticks, -kMaxTicks, kMaxTicks);
  const std::int64_t apart = absl::ToInt64Milliseconds(from.sync_time - to.sync_time);
  return to.sync_ticks + absl::int128(apart) * to.ticks_per_second / 1000 +
         since * to.ticks_per_second / from.ticks_per_second;
}

}  // namespace

TraceInfo CommonClock(std::span<const TraceInfo> traces) {
  TraceInfo clock = traces.front();
  absl::int128 first = 0;
  for (const TraceInfo& trace : traces) first = std::min(first, ConvertTicks(0, trace, clock));
  // Clocks that began at one time seem to differ by the fractions that sync times leave out.
  if (-first < clock.ticks_per_second) return clock;
  // Half of the range stays for the events themselves.
  clock.sync_ticks = static_cast<std::int64_t>(
      std::min(clock.sync_ticks - first, std::max(absl::int128(clock.sync_ticks), kMaxTicks / 2)));
  return clock;
}

std::uint64_t ConvertTimestamp(std::uint64_t ticks, const TraceInfo& from, const TraceInfo& to) {
  const absl::int128 converted = ConvertTicks(ticks, from, to);
  if (converted < 0) return 0;
  return static_cast<std::uint64_t>(std::min(converted, kMaxTicks));
}

}  // namespace nettrace::internal
