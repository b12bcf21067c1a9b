// Runs a sink on a separate thread. A queue of bytes and marks connects the writer and the sink. A
// mark stands for a call of the sink that is not Append, such as Flush.
//
//   auto queue = OutputQueue::Create(std::move(inner), {...});   // the thread runs
//   ... give std::make_unique<QueueSink>(*queue) to a Writer, which appends to it
//   (*queue)->Close(absl::Seconds(30));                          // from any thread
#ifndef TOOLS_OUTPUT_OUTPUT_QUEUE_H_
#define TOOLS_OUTPUT_OUTPUT_QUEUE_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "nettrace/sink.h"

namespace output {

// States what Append does when the queue is full, and how errors of the inner sink are handled. The
// inner sink is the sink that the queue passes its bytes to.
enum class WhenFull : std::uint8_t {
  // Append waits until the thread has made room. If the inner sink fails, the queue keeps the bytes
  // that the inner sink did not take. The call that appended these bytes may already have returned
  // OK; a later call then returns the error. Each later call first makes the thread retry. If the
  // retry fails, the call returns the error and takes nothing. Sync and Finish wait until the inner
  // sink has everything or fails.
  kWait,
  // No call waits, and Append takes everything unless the queue is closed. IsFull() is true from
  // when the queue reaches its limit until it is half empty, and the writer should pause during
  // that time. The thread keeps what the inner sink did not take, and retries each second or after
  // RetryNow. At least once a second, the thread checks whether the inner sink wants a section, and
  // calls the inner sink's Flush if nothing is queued.
  kTake,
};

struct OutputQueueOptions {
  WhenFull when_full = WhenFull::kTake;
  // Number of queued bytes at which the queue is full. Values below OutputQueue::kPiece become
  // kPiece.
  std::size_t limit = 4 << 20;
  std::string thread_name = "nettrace-output";  // up to 15 characters
  // Ends a call of the inner sink that is waiting, such as a write to a pipe. With kTake, Close
  // calls this function if the thread has not ended 0.1 s after Close stopped waiting for delivery.
  // From then on, the inner sink must not wait.
  std::function<void()> cancel = {};
  // Called by the thread when the inner sink begins to fail, and when it recovers (with OK). While
  // it fails, also called when a status code occurs for the first time. A different message alone
  // is not reported, because each attempt may name another file. The function may call stats().
  std::function<void(const absl::Status&)> on_status = {};
};

// A queue with its inner sink and thread. Thread-safe.
class OutputQueue {
 public:
  // Maximum size of the pieces that the inner sink gets, in bytes. A piece is smaller if a mark
  // follows it, and may be smaller while the queue is full or the sink fails.
  static constexpr std::size_t kPiece = 128 << 10;

  struct Stats {
    std::uint64_t queued = 0;       // bytes that wait for the thread
    std::uint64_t undelivered = 0;  // queued bytes, and bytes that the inner sink holds back
    std::uint64_t appended = 0;     // bytes appended since the start
    absl::Status status;            // current error of the inner sink, or OK
    // Time of the first error since the last success; InfiniteFuture while there is no error.
    absl::Time stuck_since = absl::InfiniteFuture();
    absl::Status last_error;  // last error since the start; OK if there was none
    absl::Time last_error_time = absl::InfinitePast();
  };

  // Fails with ResourceExhausted if the thread cannot be started.
  static absl::StatusOr<std::shared_ptr<OutputQueue>> Create(std::unique_ptr<nettrace::Sink> inner,
                                                             OutputQueueOptions options);
  // Closes the queue. With kWait, first waits until the inner sink has everything or returns an
  // error.
  ~OutputQueue();
  OutputQueue(const OutputQueue&) = delete;
  OutputQueue& operator=(const OutputQueue&) = delete;

  Stats stats() const;
  // Returns the OS id of the thread, as gettid returns it.
  pid_t thread_id() const;
  // If the thread waits after an error, makes it retry at once.
  void RetryNow();
  // Waits until the inner sink has all bytes and marks, for at most `limit`. With kWait, an error
  // of the inner sink also ends the wait. Returns whether the inner sink has everything.
  bool WaitUntilDelivered(absl::Duration limit);
  // Waits like WaitUntilDelivered, then ends the thread and destroys the inner sink. With kWait,
  // waits for the end of the thread without a limit. With kTake, if the inner sink does not return
  // from a cancelled call, the thread keeps running, and ends with that call. Another call of Close
  // only waits, for at most `limit`, until the thread has ended. Returns Stats::undelivered.
  std::uint64_t Close(absl::Duration limit);

 private:
  friend class QueueSink;
  enum class Mark : std::uint8_t;
  struct State;

  explicit OutputQueue(std::shared_ptr<State> state);

  // Adds a mark, for which the thread calls the inner sink after it has passed all bytes before the
  // mark. With kWait, also makes the thread retry after an error, and for Sync and Finish waits
  // until the inner sink has everything. Fails with Cancelled if the queue is closed, and, with
  // kWait, with the error of the inner sink.
  absl::Status Do(Mark mark);

  const std::shared_ptr<State> state_;  // shared with the thread
};

// The sink through which a Writer fills a queue. It shares ownership of the queue, so either may be
// destroyed first. A queue has only one QueueSink.
class QueueSink : public nettrace::Sink {
 public:
  explicit QueueSink(std::shared_ptr<OutputQueue> queue) : queue_(std::move(queue)) {}

  // Append, Flush, Sync, Finish and BeginSection fail with Cancelled once the queue is closed.
  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override;
  absl::Status Flush() override;
  absl::Status Sync() override;
  absl::Status Finish() override;
  absl::Status BeginSection() override;
  std::uint64_t Undelivered() const override;
  bool WantsSection() const override;
  bool IsFull() const override;

 private:
  const std::shared_ptr<OutputQueue> queue_;
};

}  // namespace output

#endif  // TOOLS_OUTPUT_OUTPUT_QUEUE_H_
