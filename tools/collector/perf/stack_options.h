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

  bool any() const { return user || kernel; }
  friend bool operator==(const StackOptions&, const StackOptions&) = default;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_STACK_OPTIONS_H_
