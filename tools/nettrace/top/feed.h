// Reads a stream into a Model, on a thread, so that whoever shows it never waits for it.
#ifndef TOOLS_NETTRACE_TOP_FEED_H_
#define TOOLS_NETTRACE_TOP_FEED_H_

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "nettrace/source.h"
#include "tools/collector/base/unique_fd.h"
#include "tools/nettrace/event_filter.h"
#include "tools/nettrace/top/model.h"

namespace tools::top {

// How a stream has ended.
struct StreamEnd {
  bool is_open = false;     // it was a stream
  bool is_empty = false;    // of which not even the header came
  bool is_stopped = false;  // by Stop
  bool is_complete = false;
  absl::Status status;       // why it was not opened, or what is damaged
  absl::Status sort_status;  // TimeOrderedReader::sort_status
};

class Feed {
 public:
  Feed(const ModelOptions& options, const EventFilter& filter);
  ~Feed();  // stops and waits
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // Starts to read `input`. To be called once.
  absl::Status Start(collector::UniqueFd input);
  // Has the reading end as soon as nothing is there to be read.
  void Stop();

  // Readable once the stream has begun, and once it has ended.
  int begun_descriptor() const { return begun_.get(); }
  int ended_descriptor() const { return ended_.get(); }
  // To be called once the stream has ended.
  StreamEnd end();

  // These may be called at any time, by one thread.
  bool has_begun() const { return has_begun_; }
  Snapshot TakeSnapshot();
  std::vector<std::string> LastEvents(View view, const std::string& key);
  std::uint64_t events() const { return events_; }

 private:
  using Clock = std::chrono::steady_clock;

  void Run(std::unique_ptr<nettrace::Source> source);
  StreamEnd Read(std::unique_ptr<nettrace::Source> source);

  const absl::Duration interval_;
  collector::UniqueFd stop_;
  collector::UniqueFd begun_;
  collector::UniqueFd ended_;
  std::atomic<bool> is_stopped_ = false;
  std::atomic<bool> has_begun_ = false;
  std::atomic<std::uint64_t> events_ = 0;

  std::mutex mutex_;  // of what follows
  StreamEnd end_;
  Model model_;
  Clock::time_point last_step_ = Clock::now();

  std::thread thread_;
};

}  // namespace tools::top

#endif  // TOOLS_NETTRACE_TOP_FEED_H_
