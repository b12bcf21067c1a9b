// Lost events, found by the gaps in the numbers of one capture thread's events.
#ifndef LIBNETTRACE_WRITER_CORE_SEQUENCE_NUMBERS_H_
#define LIBNETTRACE_WRITER_CORE_SEQUENCE_NUMBERS_H_

#include <cstdint>

namespace nettrace::internal {

// Numbers wrap at 2^32. Readers take a larger gap for a step back, and a step back, as TraceEvent
// does, for a loss of this many events.
inline constexpr std::uint64_t kMaxGap = (std::uint64_t{1} << 31) - 1;

// Whether the last number goes back from `last` to `next_last`.
constexpr bool IsStepBack(std::uint32_t last, std::uint32_t next_last) {
  return next_last - last > kMaxGap;
}

// Events missing where the last number seen is `last` and should be `next_last`.
constexpr std::uint64_t LostBetween(std::uint32_t last, std::uint32_t next_last) {
  return IsStepBack(last, next_last) ? kMaxGap : next_last - last;
}

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_CORE_SEQUENCE_NUMBERS_H_
