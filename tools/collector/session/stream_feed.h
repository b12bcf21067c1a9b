// The interface of a feed. A feed reads events that are neither in a ring of the kernel nor in a
// ring in user space, and passes them to one session of a capture.
#ifndef TOOLS_COLLECTOR_SESSION_STREAM_FEED_H_
#define TOOLS_COLLECTOR_SESSION_STREAM_FEED_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "tools/collector/session/session_writer.h"

namespace collector {

// Feeds the events of one kind of source to a session. Not thread-safe. No function blocks.
class StreamFeed {
 public:
  // Maximum time between two calls of Receive, in ns.
  static constexpr std::uint64_t kEvery = 50'000'000;

  StreamFeed() = default;
  StreamFeed(const StreamFeed&) = delete;
  StreamFeed& operator=(const StreamFeed&) = delete;
  virtual ~StreamFeed() = default;

  virtual const SessionWriter* session() const = 0;
  // Passes the events also to another session, until that session ends. A feed need not support
  // this.
  virtual void Give(SessionWriter* /*session*/) {}
  // Sets the number of feeds that share the memory for events that wait.
  virtual void SetFeeds(std::size_t /*feeds*/) {}
  // Returns the maximum time from an event to its arrival, in ns. Events that arrive later are late
  // (TraceWriter::kLateLabel).
  virtual std::uint64_t delay() const = 0;
  // Reads the events that have arrived, up to a limited number of bytes.
  virtual void Receive() = 0;
  // Passes the events up to `limit`, in ns of the session clock, in the order of time. Returns the
  // time up to which all events that were read have been passed: `limit`, or earlier if
  // `is_bounded` is set and there are more events than an interval can hold.
  virtual std::uint64_t Drain(std::uint64_t limit, bool is_bounded) = 0;
  // Returns whether Receive should be called again at once.
  virtual bool IsWorthDraining() const = 0;
  // Returns whether more events may come, or there are events that Drain has not passed.
  virtual bool has_streams() const = 0;

  // Asks the sources of the events to end. Returns whether all of them were asked. Must be called
  // again while it returns false.
  virtual bool RequestStop() = 0;
  // Ends the sources that have not ended, and reports `reason`.
  virtual void Abandon(const std::string& reason) = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_STREAM_FEED_H_
