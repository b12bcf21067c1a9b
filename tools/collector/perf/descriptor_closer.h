// Descriptors that the kernel takes its time to close, closed where nobody waits for it.
//
// Disabling the events of a tracepoint takes microseconds, and closing all but the last of them,
// too. With the last one the kernel waits, under a lock of which there is one, until no CPU can be
// in the tracepoint any more: 31 to 36 ms on 2 CPUs, whether descriptors are closed by tracepoint
// or by CPU, the leaders first, as members of a group, in 2, 4 or 8 threads, or by the end of the
// process. So there is one thread, and all else is done before.
#ifndef TOOLS_COLLECTOR_PERF_DESCRIPTOR_CLOSER_H_
#define TOOLS_COLLECTOR_PERF_DESCRIPTOR_CLOSER_H_

#include <sys/types.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/collector/base/unique_fd.h"

namespace collector {

// A thread that does nothing but close what it is given, in that order. Its destruction waits until
// all is closed. Thread-safe.
class DescriptorCloser {
 public:
  // ResourceExhausted if the system has no thread for it.
  static absl::StatusOr<std::unique_ptr<DescriptorCloser>> Start();
  DescriptorCloser(const DescriptorCloser&) = delete;
  DescriptorCloser& operator=(const DescriptorCloser&) = delete;
  ~DescriptorCloser();

  pid_t thread_id() const { return thread_id_; }
  void Close(std::vector<UniqueFd> fds);

 private:
  DescriptorCloser() = default;
  void Run();

  std::mutex mutex_;
  std::condition_variable progress_;
  std::vector<UniqueFd> waiting_;
  pid_t thread_id_ = 0;
  bool ends_ = false;
  std::thread thread_;  // not joinable: it could not be started
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_DESCRIPTOR_CLOSER_H_
