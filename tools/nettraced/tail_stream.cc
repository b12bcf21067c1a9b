#include "tools/nettraced/tail_stream.h"

#include <span>
#include <utility>

#include "absl/status/status.h"
#include "tools/base/status_macros.h"
#include "tools/output/pipe_sink.h"

namespace nettraced {
namespace {

// Bytes that may wait for the peer before events are lost.
constexpr std::size_t kQueueBytes = 4 << 20;
constexpr absl::Duration kLook = absl::Milliseconds(200);  // time between two checks of the queue

}  // namespace

absl::StatusOr<std::shared_ptr<TailStream>> TailStream::Start(
    std::shared_ptr<CaptureThread> capture, collector::SessionOptions options,
    base::UniqueFd socket, std::string first) {
  ASSIGN_OR_RETURN(auto canceller, output::Canceller::Create());
  output::OutputQueueOptions queue_options;
  queue_options.limit = kQueueBytes;
  queue_options.thread_name = "tail";
  queue_options.cancel = [canceller] { canceller->Cancel(); };
  ASSIGN_OR_RETURN(auto queue, output::OutputQueue::Create(
                                   std::make_unique<output::StreamSink>(
                                       std::move(socket), "the tail's socket", canceller),
                                   std::move(queue_options)));
  std::shared_ptr<TailStream> tail(new TailStream(std::move(capture), queue));
  const auto make_sink = [&]() -> absl::StatusOr<std::unique_ptr<nettrace::Sink>> {
    auto sink = std::make_unique<output::QueueSink>(queue);
    std::size_t taken = 0;
    RETURN_IF_ERROR(sink->Append(std::as_bytes(std::span(first)), &taken));
    return sink;
  };
  absl::Status status;
  tail->capture_->Run([&](collector::Capture& with) {
    const auto session = with.StartSession(std::move(options), make_sink);
    if (session.ok()) {
      tail->session_ = *session;
    } else {
      status = session.status();
    }
  });
  if (!status.ok()) return status;
  return tail;
}

TailStream::~TailStream() {
  End();
  // Waits until the whole stream is written to the socket. If the peer reads too slowly, the server
  // shuts the socket down, which aborts the queue.
  while (!queue_->WaitUntilDelivered(kLook) && !absl::IsAborted(queue_->stats().status)) continue;
  queue_->Close(absl::ZeroDuration());
}

void TailStream::End() {
  capture_->Run([this](collector::Capture& capture) {
    if (session_ != nullptr) capture.StopSession(session_);
    session_ = nullptr;
  });
  ended_ = true;
}

bool TailStream::IsEnded() const { return ended_ || absl::IsAborted(queue_->stats().status); }

}  // namespace nettraced
