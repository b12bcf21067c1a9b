// A sink on a thread of its own: bytes and marks wait in a queue between the two.
//
//   auto queue = OutputQueue::Create(std::move(inner), {...});   // the thread runs
//   ... give std::make_unique<QueueSink>(*queue) to a Writer, which appends to it
//   (*queue)->Close(absl::Seconds(30));                          // from any thread
#ifndef TOOLS_COLLECTOR_OUTPUT_OUTPUT_QUEUE_H_
#define TOOLS_COLLECTOR_OUTPUT_OUTPUT_QUEUE_H_

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

namespace collector {

// What becomes of an Append when the queue is full, and of the inner sink's errors.
enum class WhenFull : std::uint8_t {
  // Append waits for the thread. An error of the inner sink is returned by a later call than the
  // one that gave the bytes. Bytes that were taken are kept: each call tries again to write them,
  // returns the error if that fails, and takes nothing then. Sync and Finish wait for the thread.
  kWait,
  // No call ever waits, and Append takes everything: IsFull() is true from when the queue has
  // reached its limit until it is half empty, and it is for the writer to pause meanwhile. The
  // thread keeps what the inner sink did not take, and tries again each second, or when it is told
  // to. Once a second at least it looks whether the inner sink wants a section, and if nothing is
  // queued calls its Flush.
  kTake,
};

struct OutputQueueOptions {
  WhenFull when_full = WhenFull::kTake;
  // Bytes that wait for the thread when the queue is full; at least OutputQueue::kPiece.
  std::size_t limit = 4 << 20;
  std::string thread_name = "nettrace-output";  // up to 15 characters
  // Ends a call of the inner sink that waits for somebody, as one that writes to a pipe; called by
  // Close when its time is over. From then on the inner sink waits for nobody.
  std::function<void()> cancel = {};
  // Called by the thread when the inner sink fails after it did not, when it fails with another
  // message, and, with OK, when it does not fail any more. It may use the queue's stats().
  std::function<void(const absl::Status&)> on_status = {};
};

// All functions may be called by any thread.
class OutputQueue {
 public:
  // The inner sink gets bytes in pieces of up to so many; smaller ones only before a mark.
  static constexpr std::size_t kPiece = 128 << 10;

  struct Stats {
    std::uint64_t queued = 0;       // bytes that wait for the thread
    std::uint64_t undelivered = 0;  // those, and those that the inner sink holds back
    std::uint64_t appended = 0;     // all that there ever were
    absl::Status status;            // that with which the inner sink fails now
    absl::Time stuck_since = absl::InfiniteFuture();  // that is, since when it does
    absl::Status last_error;                          // OK if there never was one
    absl::Time last_error_time = absl::InfinitePast();
  };

  // ResourceExhausted if there is no thread for it.
  static absl::StatusOr<std::shared_ptr<OutputQueue>> Create(std::unique_ptr<nettrace::Sink> inner,
                                                             OutputQueueOptions options);
  // Close: with kWait until the inner sink has taken what it takes without an error, with kTake at
  // once.
  ~OutputQueue();
  OutputQueue(const OutputQueue&) = delete;
  OutputQueue& operator=(const OutputQueue&) = delete;

  Stats stats() const;
  // The thread's id.
  pid_t thread_id() const;
  // Has a thread that waits after an error try again at once.
  void RetryNow();
  // Waits until the inner sink has everything, but no longer than `limit`; returns whether it has.
  bool WaitUntilDelivered(absl::Duration limit);
  // Ends the stream for good: as WaitUntilDelivered, then ends the thread and destroys the inner
  // sink. Returns how many bytes it did not get. If it does not return from a call although it has
  // been cancelled, the thread is left alone with it, and ends with the call.
  std::uint64_t Close(absl::Duration limit);

 private:
  friend class QueueSink;
  enum class Mark : std::uint8_t;
  struct State;

  explicit OutputQueue(std::shared_ptr<State> state);

  // Has the thread do to the inner sink what the mark says when that has what came before it.
  absl::Status Do(Mark mark);

  const std::shared_ptr<State> state_;  // the thread's, too
};

// The end of a queue at which a Writer is. It may end before or after the queue, which it keeps;
// one queue has one of these.
class QueueSink : public nettrace::Sink {
 public:
  explicit QueueSink(std::shared_ptr<OutputQueue> queue) : queue_(std::move(queue)) {}

  // Cancelled once the queue has been closed.
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

}  // namespace collector

#endif  // TOOLS_COLLECTOR_OUTPUT_OUTPUT_QUEUE_H_
