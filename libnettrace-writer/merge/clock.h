// Timestamps of one trace in the clock of another, by the sync times of both.
#ifndef LIBNETTRACE_WRITER_MERGE_CLOCK_H_
#define LIBNETTRACE_WRITER_MERGE_CLOCK_H_

#include <cstdint>
#include <optional>
#include <span>

#include "absl/time/time.h"
#include "nettrace/schema.h"

namespace nettrace::internal {

// Whether a Trace block can have this sync time.
bool IsDate(absl::Time time);

struct ClockedTrace {
  TraceInfo info;
  // No event of the trace is earlier, as far as is known.
  std::optional<std::uint64_t> first_timestamp;
};

// The clock for a copy of all `traces`, at least one: that of the first, but that it counts from
// earlier if an event of another trace would have a negative time; and its sync time is no later
// than the first event, so that TraceEvent does not show events before it at 0 ms.
TraceInfo CommonClock(std::span<const ClockedTrace> traces);

// A timestamp of `from` in the clock of `to`; 0 for times before its beginning, 2^63 - 1 for times
// that it does not reach.
std::uint64_t ConvertTimestamp(std::uint64_t ticks, const TraceInfo& from, const TraceInfo& to);

// The first timestamp of `clock` that is not before `time`; 0 for times before its beginning, the
// last one that TraceEvent can show for times after it.
std::uint64_t TimestampAt(absl::Time time, const TraceInfo& clock);

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_MERGE_CLOCK_H_
