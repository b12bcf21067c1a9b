// A live stream of a session's events to a socket. It is a separate session on the same capture.
#ifndef TOOLS_NETTRACED_TAIL_STREAM_H_
#define TOOLS_NETTRACED_TAIL_STREAM_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/session/session.h"
#include "tools/nettraced/capture_thread.h"
#include "tools/output/output_queue.h"

namespace nettraced {

// Writes events to a socket until End is called or the socket fails. Thread-safe.
class TailStream {
 public:
  // Starts a stream that begins with `first`. Fails if the session or its queue cannot be created.
  // After a failure, nothing has been written to the socket, unless the capture failed after the
  // stream had begun.
  static absl::StatusOr<std::shared_ptr<TailStream>> Start(std::shared_ptr<CaptureThread> capture,
                                                           collector::SessionOptions options,
                                                           base::UniqueFd socket,
                                                           std::string first);
  // Calls End, and waits until the whole stream is written to the socket or the socket has failed.
  ~TailStream();
  TailStream(const TailStream&) = delete;
  TailStream& operator=(const TailStream&) = delete;

  // Ends the stream with the regular end of a NetTrace stream, unless the stream has already ended.
  // Does not wait for the peer.
  void End();
  // Returns whether End has been called or the socket has failed.
  bool IsEnded() const;

 private:
  TailStream(std::shared_ptr<CaptureThread> capture, std::shared_ptr<output::OutputQueue> queue)
      : capture_(std::move(capture)), queue_(std::move(queue)) {}

  const std::shared_ptr<CaptureThread> capture_;
  const std::shared_ptr<output::OutputQueue> queue_;
  collector::Session* session_ = nullptr;  // used on the capture's thread only; null after the end
  std::atomic<bool> ended_ = false;
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_TAIL_STREAM_H_
