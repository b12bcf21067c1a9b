// Reads a stream into a Model on a separate thread, so that the display never waits for the stream.
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
#include "tools/base/unique_fd.h"
#include "tools/nettrace/top/model.h"
#include "tools/trace/event_filter.h"
#include "tools/trace/process_names.h"

namespace tools::top {

// The result of reading a stream.
struct StreamEnd {
  bool is_open = false;      // the stream was opened
  bool is_empty = false;     // the stream ended before its header
  bool is_stopped = false;   // Stop was called before the stream ended
  bool is_complete = false;  // the stream has the end block of a complete file
  absl::Status status;       // why the stream could not be opened or read to its end
  absl::Status sort_status;  // TimeOrderedReader::sort_status
};

class Feed {
 public:
  Feed(const ModelOptions& options, const trace::EventFilter& filter);
  ~Feed();  // stops the thread and waits for it
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // Starts to read `input` on the thread. With `follows`, a file ends when the recording in it has
  // ended or the file is deleted. Fails if no descriptor or thread can be created. Must be
  // called only once.
  absl::Status Start(base::UniqueFd input, bool follows = false);
  // Makes the thread stop before it reads further bytes of the input.
  void Stop();

  // Return descriptors. The first becomes readable when the stream has been opened: its header was
  // read, or it ended before its header. The second becomes readable when the stream has ended or
  // could not be opened.
  int begun_descriptor() const { return begun_.get(); }
  int ended_descriptor() const { return ended_.get(); }
  // Returns the result of reading the stream. Must be called only when ended_descriptor() is
  // readable.
  StreamEnd end();

  // The following functions may be called at any time, but by one thread only.
  bool has_begun() const { return has_begun_; }
  Snapshot TakeSnapshot();
  std::vector<std::string> LastEvents(View view, const std::string& key);
  // Returns the number of events that were read, including those that the filter excludes.
  std::uint64_t events() const { return events_; }

 private:
  using Clock = std::chrono::steady_clock;

  void Run(std::unique_ptr<nettrace::Source> source);
  StreamEnd Read(std::unique_ptr<nettrace::Source> source);

  const absl::Duration interval_;
  const trace::EventFilter filter_;
  base::UniqueFd stop_;
  base::UniqueFd begun_;
  base::UniqueFd ended_;
  std::atomic<bool> is_stopped_ = false;
  std::atomic<bool> has_begun_ = false;
  std::atomic<std::uint64_t> events_ = 0;

  trace::ProcessNames names_;  // used only by the thread

  std::mutex mutex_;  // guards the following members, except thread_
  StreamEnd end_;
  Model model_;
  Clock::time_point last_step_ = Clock::now();  // time at which the last sequence point was read

  std::thread thread_;
};

}  // namespace tools::top

#endif  // TOOLS_NETTRACE_TOP_FEED_H_
