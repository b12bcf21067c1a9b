// Feeds the events of streams of .NET processes (tools/collector/dotnet/eventpipe_stream.h) to a
// session of a capture.
//
// Input: streams, which another thread has started. Output: events in the order of time, and their
// losses. Each thread of a process is a separate capture thread in the file, as each CPU is. The
// runtime writes events up to kDelay after their time.
//
// The runtime does not write a stream in the order of time: it writes the events of one thread, and
// then those of the next thread. Therefore the feed keeps events in memory until it has read the
// events of all threads up to their time.
//
// Guarantees: No function blocks. Work and memory are bounded for each stream. Timestamps that are
// earlier than the thread's previous event or in the future are corrected. A process that does
// not send a stream, or sends it too slowly, has no effect on the events of others.
#ifndef TOOLS_COLLECTOR_SESSION_EVENTPIPE_FEED_H_
#define TOOLS_COLLECTOR_SESSION_EVENTPIPE_FEED_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "nettrace/schema.h"
#include "tools/collector/dotnet/eventpipe_inbox.h"
#include "tools/collector/dotnet/eventpipe_stream.h"
#include "tools/collector/identity/task_tracker.h"
#include "tools/collector/session/distributor.h"
#include "tools/collector/session/session_writer.h"
#include "tools/collector/session/stream_feed.h"

namespace collector {

struct EventPipeFeedOptions {
  std::shared_ptr<EventPipeInbox> inbox;
  SessionWriter* session = nullptr;
  // Largest CPU number of the machine. An event with a larger number is written without a CPU.
  std::uint32_t last_cpu = 0;
  // Whether processes must be read from /proc, because perf does not report them.
  bool reads_processes = false;
  // Applies the kernel's records of threads to the TaskTracker.
  std::function<void()> update_tasks;
};

class EventPipeFeed final : public StreamFeed {
 public:
  // Maximum time from an event to its arrival, in ns. The runtime writes events every 0.1 s. Events
  // that arrive later are late (TraceWriter::kLateLabel).
  static constexpr std::uint64_t kDelay = 500'000'000;

  EventPipeFeed(EventPipeFeedOptions options, TaskTracker* tasks, Distributor* distributor);
  ~EventPipeFeed() override;

  const SessionWriter* session() const override { return options_.session; }
  // Returns kDelay while there are streams.
  std::uint64_t delay() const override { return has_streams() ? kDelay : 0; }
  void Give(SessionWriter* session) override { distributor_->Give(id_, session); }
  void SetFeeds(std::size_t feeds) override { feeds_ = feeds; }
  // Takes new streams, and reads a limited number of bytes of each stream.
  void Receive() override;
  std::uint64_t Drain(std::uint64_t limit, bool is_bounded) override;
  // Returns whether Receive should be called again at once, because a stream has more bytes.
  bool IsWorthDraining() const override;
  // Returns whether there are streams that have not ended, or events that Drain has not passed.
  bool has_streams() const override { return !streams_.empty(); }

  // Asks all processes to end their streams. Must be called again while it returns false.
  bool RequestStop() override;
  // Ends the streams that have not ended, for `reason`.
  void Abandon(const std::string& reason) override;

 private:
  static constexpr std::size_t kBytesAtOnce = std::size_t{256} << 10;
  static constexpr std::size_t kEventsAtOnce = 8192;
  // Maximum bytes of the events that wait, of one stream and of all streams of all feeds together.
  // A stream that has reached its share is not read, so its process has to keep further events.
  static constexpr std::size_t kMaxWaitingOfStream = std::size_t{16} << 20;
  static constexpr std::size_t kMaxWaiting = std::size_t{64} << 20;
  // Maximum number of threads of a process that are capture threads of the file at the same time.
  static constexpr std::size_t kMaxThreads = 512;

  struct Thread {
    std::size_t index = 0;  // returned by Distributor::AddRingThread
    Slot identity;
    std::uint64_t used = 0;    // Stream::uses at its last use
    std::uint64_t number = 0;  // number of its next event or loss
  };
  struct Stream {
    Stream(EventPipeConnection connection, std::uint32_t stream_number)
        : stream(std::move(connection)), number(stream_number) {}
    EventPipeStream stream;
    std::uint32_t number;  // unique in the session
    bool has_ended = false;
    std::string name;                                    // "dotnet:PID", for the account
    std::size_t waiting = 0;                             // bytes of its events that wait
    absl::flat_hash_map<std::uint64_t, Thread> threads;  // by tid
    std::uint64_t uses = 0;                              // number of uses of threads
    // Time of the last event of each thread that had an event, in ns, by tid.
    absl::flat_hash_map<std::uint64_t, std::uint64_t> last_times;
    // Argument and result of the last call of IsWanted.
    const nettrace::EventMetadata* last_metadata = nullptr;
    bool is_last_wanted = false;
  };
  // An event with the losses before it, or losses without an event.
  struct Waiting {
    std::uint64_t timestamp = 0;  // ns
    std::uint64_t order = 0;      // position in the order in which the events were read
    Stream* stream = nullptr;
    std::uint64_t lost = 0;
    std::uint64_t capture_tid = 0;
    std::uint64_t tid = 0;
    std::uint32_t processor = 0;
    std::uint32_t kind = 0;                             // DotnetStreamEvent::kind
    const nettrace::EventMetadata* metadata = nullptr;  // null: no event
    nettrace::Labels labels;
    std::vector<std::byte> payload;

    std::size_t bytes() const { return sizeof(Waiting) + payload.size(); }
    // The earliest event is the top of the heap.
    friend bool operator<(const Waiting& a, const Waiting& b) {
      return std::tie(a.timestamp, a.order) > std::tie(b.timestamp, b.order);
    }
  };

  std::size_t MaxWaiting() const;
  void Read(Stream* stream, std::uint64_t now);
  void ReadEvent(Stream* stream, std::uint64_t now);
  void ReadLosses(Stream* stream, std::uint64_t now);
  void Add(Waiting waiting);
  // Returns whether the event is of a provider that the session requested. A process may also send
  // events of other providers.
  bool IsWanted(Stream* stream, const nettrace::EventMetadata* metadata) const;
  void Pass(const Waiting& waiting);
  Thread& FindThread(Stream* stream, std::uint64_t tid);
  void RemoveThread(Thread* thread);
  void RemoveEnded();
  void Remove(Stream* stream, const std::string& reason, bool is_cut);

  EventPipeFeedOptions options_;
  TaskTracker* tasks_;
  Distributor* distributor_;
  const int id_;               // returned by Distributor::AddDotnetStreams
  const std::uint64_t start_;  // ns; no event is earlier
  std::size_t feeds_ = 1;
  std::uint32_t next_stream_ = 1;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<Waiting> waiting_;  // a heap
  std::uint64_t order_ = 0;       // Waiting::order of the next event
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_EVENTPIPE_FEED_H_
