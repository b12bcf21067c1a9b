// Makes the clock for a copy of several traces, and converts times and timestamps to it by the sync
// times.
#ifndef LIBNETTRACE_WRITER_MERGE_CLOCK_H_
#define LIBNETTRACE_WRITER_MERGE_CLOCK_H_

#include <cstdint>
#include <optional>
#include <span>

#include "absl/time/time.h"
#include "nettrace/schema.h"

namespace nettrace::internal {

// Returns whether a Trace block can contain this sync time: its year must be 1 to 9999.
bool IsDate(absl::Time time);

struct ClockedTrace {
  TraceInfo info;
  // A timestamp that no event of the trace precedes. No value if the trace has neither events nor
  // sequence points.
  std::optional<std::uint64_t> first_timestamp;
};

// Returns the clock for a copy of all `traces`, at least one. It is the clock of the first trace,
// with two changes. It starts earlier if an event of another trace would otherwise have a negative
// timestamp. Its sync time is no later than the first event, because TraceEvent shows events before
// the sync time at 0 ms. Both changes are limited by the ranges of timestamps and of the sync time.
TraceInfo CommonClock(std::span<const ClockedTrace> traces);

// Converts a timestamp of `from` to the clock of `to`. Returns 0 for times before tick 0 of `to`,
// and 2^63 - 1 for times after its largest timestamp.
std::uint64_t ConvertTimestamp(std::uint64_t ticks, const TraceInfo& from, const TraceInfo& to);

// Returns the first timestamp of `clock` that is not before `time`. Returns 0 for times before tick
// 0. For times after the largest timestamp that TraceEvent can show, returns that timestamp.
std::uint64_t TimestampAt(absl::Time time, const TraceInfo& clock);

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_MERGE_CLOCK_H_
