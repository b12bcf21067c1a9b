// Descriptors that the kernel takes its time to close, closed where nobody waits for it.
#ifndef TOOLS_COLLECTOR_PERF_DESCRIPTOR_CLOSER_H_
#define TOOLS_COLLECTOR_PERF_DESCRIPTOR_CLOSER_H_

#include <sys/types.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "tools/collector/base/unique_fd.h"

namespace collector {

// A thread that does nothing but close what it is given, in that order. Its destruction waits until
// all is closed. Thread-safe.
class DescriptorCloser {
 public:
  DescriptorCloser();
  DescriptorCloser(const DescriptorCloser&) = delete;
  DescriptorCloser& operator=(const DescriptorCloser&) = delete;
  ~DescriptorCloser();

  pid_t thread_id() const { return thread_id_; }
  void Close(std::vector<UniqueFd> fds);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable progress_;
  std::vector<UniqueFd> waiting_;
  pid_t thread_id_ = 0;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_DESCRIPTOR_CLOSER_H_
