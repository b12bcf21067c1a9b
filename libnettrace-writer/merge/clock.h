// Timestamps of one trace in the clock of another, by the sync times of both.
#ifndef LIBNETTRACE_WRITER_MERGE_CLOCK_H_
#define LIBNETTRACE_WRITER_MERGE_CLOCK_H_

#include <cstdint>
#include <span>

#include "nettrace/schema.h"

namespace nettrace::internal {

// The clock for a copy of all `traces`, at least one: that of the first. If another trace's clock
// began a second or more before it, the copy's counts from that beginning.
TraceInfo CommonClock(std::span<const TraceInfo> traces);

// A timestamp of `from` in the clock of `to`; 0 for times before its beginning, 2^63 - 1 for times
// that it does not reach.
std::uint64_t ConvertTimestamp(std::uint64_t ticks, const TraceInfo& from, const TraceInfo& to);

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_MERGE_CLOCK_H_
