// Counts lost events from gaps in the sequence numbers of a capture thread's events.
#ifndef LIBNETTRACE_WRITER_CORE_SEQUENCE_NUMBERS_H_
#define LIBNETTRACE_WRITER_CORE_SEQUENCE_NUMBERS_H_

#include <cstdint>

namespace nettrace::internal {

// Maximum events in a gap. Numbers wrap at 2^32. Readers treat a larger gap as a step back, and
// count a step back as a loss of this many events, as TraceEvent does.
inline constexpr std::uint64_t kMaxGap = (std::uint64_t{1} << 31) - 1;

// In the functions below, `last` is the number of the last event that was read from a capture
// thread. `next_last` is the number of the last event before the current position of the stream,
// including lost events. It is the number of the next event minus 1, or the number in a sequence
// point or a RemoveThread row.

// Returns whether `next_last` is a step back from `last`.
constexpr bool IsStepBack(std::uint32_t last, std::uint32_t next_last) {
  return next_last - last > kMaxGap;
}

// Returns the number of events lost after event `last`.
constexpr std::uint64_t LostBetween(std::uint32_t last, std::uint32_t next_last) {
  return IsStepBack(last, next_last) ? kMaxGap : next_last - last;
}

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_CORE_SEQUENCE_NUMBERS_H_
