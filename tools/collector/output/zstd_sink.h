// Compresses a trace on its way to another sink, on a thread of its own.
#ifndef TOOLS_COLLECTOR_OUTPUT_ZSTD_SINK_H_
#define TOOLS_COLLECTOR_OUTPUT_ZSTD_SINK_H_

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/sink.h"

struct ZSTD_CCtx_s;  // from zstd.h

namespace collector {

struct ZstdSinkOptions {
  // Of compression, 1 to 19: 3 takes twice the time of 1 and saves no more than 1 % of a trace.
  int level = 1;
  // Bytes that wait for the thread; Append waits while there are as many. At least
  // ZstdSink::kChunk.
  std::size_t queue_bytes = 4 << 20;
  // If there, it counts the bytes that the other sink took.
  std::shared_ptr<std::atomic<std::uint64_t>> written;
};

// The output is a sequence of zstd frames. Each Flush ends one, so that what came before it can be
// read whatever happens to the rest. Bytes are compressed in chunks of up to kChunk, each of which
// is readable without what follows it: a reader of a file that is cut sees all chunks that are
// whole.
//
// Append only copies, unless the queue is full; then it waits for the thread. So an error of the
// other sink is returned by a later call than the one that gave the bytes. Bytes that were taken
// are kept: each call tries again to write them, returns the error if that fails, and takes nothing
// then. Undelivered says how many there are.
//
// The destructor waits until the other sink has taken what it can take, and ends the frame.
class ZstdSink : public nettrace::Sink {
 public:
  static constexpr std::size_t kChunk = 128 << 10;  // zstd's own largest block

  // ResourceExhausted if there is no memory or no thread for it.
  static absl::StatusOr<std::unique_ptr<ZstdSink>> Create(
      std::unique_ptr<nettrace::Sink> destination, const ZstdSinkOptions& options = {});
  ~ZstdSink() override;
  ZstdSink(const ZstdSink&) = delete;
  ZstdSink& operator=(const ZstdSink&) = delete;

  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override;
  // Ends the frame. The thread does it later, if nothing is wrong.
  absl::Status Flush() override;
  // Ends the frame, waits until the other sink has all of it, and has that make it durable.
  absl::Status Sync() override;
  std::uint64_t Undelivered() const override;

  // The thread's id.
  pid_t thread_id() const { return thread_id_; }

 private:
  struct FreeContext {
    void operator()(ZSTD_CCtx_s* context) const;
  };

  ZstdSink(std::unique_ptr<nettrace::Sink> destination, const ZstdSinkOptions& options,
           std::unique_ptr<ZSTD_CCtx_s, FreeContext> context);

  // What the thread runs.
  void Run();
  // The following need the mutex.
  bool HasWork() const;
  bool IsDelivered() const { return delivered_ == appended_ && frame_start_ == appended_; }
  // After an error, lets the thread try once more, and waits for what becomes of it.
  absl::Status TryAgain(std::unique_lock<std::mutex>* lock);
  // These are the thread's, and give the mutex up meanwhile.
  absl::Status CompressChunk(std::unique_lock<std::mutex>* lock);
  absl::Status WriteOutput(std::unique_lock<std::mutex>* lock);

  const std::unique_ptr<nettrace::Sink> destination_;  // the thread's; Sync's when there is no work
  const std::shared_ptr<std::atomic<std::uint64_t>> written_;
  const std::unique_ptr<ZSTD_CCtx_s, FreeContext> context_;  // the thread's

  mutable std::mutex mutex_;
  std::condition_variable work_;      // the thread waits for it
  std::condition_variable progress_;  // the others wait for it
  // A ring: byte number n of the stream is at n modulo its size.
  std::vector<std::byte> queue_;
  // Numbers of bytes of the stream, in the order of their sizes:
  std::uint64_t delivered_ = 0;   // their frames' bytes are the other sink's
  std::uint64_t compressed_ = 0;  // they have left the queue
  std::uint64_t appended_ = 0;
  std::uint64_t frame_start_ = 0;  // where the frame that is open begins
  std::uint64_t frame_end_ = 0;    // where a frame is to end
  bool has_output_ = false;        // not all of output_ is the other sink's
  bool output_ends_frame_ = false;
  absl::Status status_;
  bool broken_ = false;  // the error is zstd's, and stays
  bool try_again_ = false;
  bool stopping_ = false;

  // The thread's: compressed bytes, of which the other sink has taken those before output_next_.
  std::vector<std::byte> output_;
  std::size_t output_next_ = 0;

  std::atomic<pid_t> thread_id_ = 0;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_OUTPUT_ZSTD_SINK_H_
