// The stacks that the samples of a tracepoint contain.
#ifndef TOOLS_COLLECTOR_PERF_STACK_OPTIONS_H_
#define TOOLS_COLLECTOR_PERF_STACK_OPTIONS_H_

#include <cstdint>

namespace collector {

struct StackOptions {
  bool user = false;
  bool kernel = false;
  // Maximum number of frames of user space and kernel together; 0: the kernel's limit.
  std::uint16_t max_frames = 0;
  // Maximum number of bytes of the user stack that are copied, so that the collector can unwind
  // code without frame pointers; 0: the kernel follows frame pointers. A multiple of 8.
  std::uint16_t copied_bytes = 0;

  // Default, minimum and maximum of copied_bytes. A record of perf has at most 65,528 bytes.
  static constexpr std::uint16_t kUsualCopy = 8192;
  static constexpr std::uint16_t kLeastCopy = 1024;
  static constexpr std::uint16_t kMostCopy = 56 * 1024;

  bool any() const { return user || kernel; }
  friend bool operator==(const StackOptions&, const StackOptions&) = default;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_STACK_OPTIONS_H_
