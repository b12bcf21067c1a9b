// How lost events are found: by what is missing between the numbers of one capture thread.
#ifndef LIBNETTRACE_WRITER_READ_SEQUENCE_H_
#define LIBNETTRACE_WRITER_READ_SEQUENCE_H_

#include <cstdint>

namespace nettrace {

// What the reference reader counts for a number that goes back.
inline constexpr std::uint64_t kLostByStepBack = (std::uint64_t{1} << 31) - 1;

// Events missing where the last number seen was `last` and the one expected to be last is
// `expected`. Numbers wrap at 2^32.
inline std::uint64_t LostBetween(std::uint32_t last, std::uint32_t expected) {
  const std::uint32_t missing = expected - last;
  return missing <= kLostByStepBack ? missing : kLostByStepBack;
}

}  // namespace nettrace

#endif  // LIBNETTRACE_WRITER_READ_SEQUENCE_H_
