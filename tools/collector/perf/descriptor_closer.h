// Closes descriptors of perf events on a separate thread, because closing them can block for tens
// of ms.
//
// Disabling the events of a tracepoint takes microseconds. Closing one of its descriptors also
// takes microseconds, unless it is the last open descriptor of the tracepoint. In that case, the
// kernel waits under a global lock until no CPU can be in the tracepoint any more, which takes 31
// to 36 ms on 2 CPUs. The order of closing makes no difference, and neither do event groups,
// closing in 2, 4 or 8 threads, or the end of the process. Therefore a separate thread closes the
// descriptors, after the collector has disabled their events.
#ifndef TOOLS_COLLECTOR_PERF_DESCRIPTOR_CLOSER_H_
#define TOOLS_COLLECTOR_PERF_DESCRIPTOR_CLOSER_H_

#include <sys/types.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/base/unique_fd.h"

namespace collector {

// A thread that closes descriptors in the order of the Close calls. The destructor waits until all
// are closed. Thread-safe.
class DescriptorCloser {
 public:
  // Starts the thread. Fails with ResourceExhausted if the system cannot create it.
  static absl::StatusOr<std::unique_ptr<DescriptorCloser>> Start();
  DescriptorCloser(const DescriptorCloser&) = delete;
  DescriptorCloser& operator=(const DescriptorCloser&) = delete;
  ~DescriptorCloser();

  pid_t thread_id() const { return thread_id_; }
  void Close(std::vector<base::UniqueFd> fds);

 private:
  DescriptorCloser() = default;
  void Run();

  std::mutex mutex_;
  std::condition_variable progress_;
  std::vector<base::UniqueFd> waiting_;
  pid_t thread_id_ = 0;
  bool ends_ = false;
  std::thread thread_;  // not joinable if it could not be started
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_DESCRIPTOR_CLOSER_H_
