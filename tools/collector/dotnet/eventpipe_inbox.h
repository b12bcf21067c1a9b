// Connects two threads of a recording of .NET processes. One thread asks processes for streams of
// events, and passes the streams to the other thread. The other thread reads the streams, and
// reports back which of them have ended.
#ifndef TOOLS_COLLECTOR_DOTNET_EVENTPIPE_INBOX_H_
#define TOOLS_COLLECTOR_DOTNET_EVENTPIPE_INBOX_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tools/collector/dotnet/eventpipe_stream.h"

namespace collector {

// Thread-safe. No function waits for the other thread.
class EventPipeInbox {
 public:
  // Maximum number of streams that are read at the same time, which bounds their memory.
  static constexpr std::size_t kMaxStreams = 256;

  // `providers` are the names of the providers whose events are recorded. The streams may also have
  // events of other providers, which the reader skips.
  explicit EventPipeInbox(std::vector<std::string> providers) : providers_(std::move(providers)) {}
  const std::vector<std::string>& providers() const { return providers_; }

  // The end of a stream.
  struct End {
    pid_t pid = 0;
    std::uint64_t start = 0;  // ProcessFacts::start
    std::string reason;       // EventPipeStream::reason
    bool is_cut = false;      // EventPipeStream::is_cut
    bool was_asked = false;   // the process was asked to end the stream
  };

  // Functions for the thread that asks .NET processes for their streams.

  // Returns whether kMaxStreams streams are being read.
  bool is_full() const {
    const std::lock_guard lock(mutex_);
    return open_ >= kMaxStreams;
  }
  void Add(EventPipeConnection connection) {
    const std::lock_guard lock(mutex_);
    connections_.push_back(std::move(connection));
    ++open_;
  }
  // Returns the ends of streams that were added since the last call. By this call, the caller also
  // confirms that its report contains all ends that the last call returned.
  std::vector<End> TakeEnds() {
    const std::lock_guard lock(mutex_);
    has_unrecorded_ = !ends_.empty();
    return std::exchange(ends_, {});
  }

  // Functions for the thread that reads streams.

  std::vector<EventPipeConnection> Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(connections_, {});
  }
  void AddEnd(End end) {
    const std::lock_guard lock(mutex_);
    ends_.push_back(std::move(end));
    has_unrecorded_ = true;
    --open_;
  }
  // Returns whether the report of the other thread may still lack ends of streams (see TakeEnds).
  bool has_unrecorded() const {
    const std::lock_guard lock(mutex_);
    return has_unrecorded_;
  }

 private:
  const std::vector<std::string> providers_;
  mutable std::mutex mutex_;  // protects all members below
  std::vector<EventPipeConnection> connections_;
  std::vector<End> ends_;
  bool has_unrecorded_ = false;
  std::size_t open_ = 0;  // streams that were added and have not ended
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_DOTNET_EVENTPIPE_INBOX_H_
