// Pipes and sockets as destinations, whose readers may be slow, come and go.
#ifndef TOOLS_COLLECTOR_OUTPUT_PIPE_SINK_H_
#define TOOLS_COLLECTOR_OUTPUT_PIPE_SINK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/sink.h"
#include "tools/collector/base/unique_fd.h"

namespace collector {

// Ends what waits for a reader. Thread-safe.
class Canceller {
 public:
  static absl::StatusOr<std::shared_ptr<Canceller>> Create();

  // From here on nothing waits any more.
  void Cancel();
  int fd() const { return fd_.get(); }  // readable from then on

 private:
  explicit Canceller(UniqueFd fd) : fd_(std::move(fd)) {}

  const UniqueFd fd_;  // an eventfd
};

// A pipe or a socket that is open. Append waits for the reader, but for no longer than a second
// without a byte: then it is Unavailable and may be tried again. Aborted once the reader has gone.
// A broken pipe is never a SIGPIPE.
class StreamSink : public nettrace::Sink {
 public:
  // `fd` becomes non-blocking. `name` is for messages.
  StreamSink(UniqueFd fd, std::string name, std::shared_ptr<Canceller> canceller);

  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override;
  // Aborted once the reader has gone.
  absl::Status Flush() override;

 private:
  const int fd_;  // sink_ closes it
  const std::string name_;
  nettrace::FdSink sink_;
};

// What other threads may ask of a PipeSink, during its life and after it.
class PipeState {
 public:
  struct Values {
    bool has_reader = false;
    std::uint64_t readers = 0;    // so many have come
    std::uint64_t bytes = 0;      // that they were given
    std::uint64_t discarded = 0;  // that none was
  };
  Values values() const {
    const std::lock_guard lock(mutex_);
    return values_;
  }

 private:
  friend class PipeSink;

  mutable std::mutex mutex_;
  Values values_;
};

// A named pipe. While it has no reader, the sink takes nothing, and is Unavailable. Each reader
// gets the stream's prologue and then whole sections, the first of which is the one that is to be
// written when it comes. When a reader goes away, what follows of the section that it was given a
// part of is discarded, and another section wanted.
//
// What is at the path is looked at each time that it is opened: FailedPrecondition if that is no
// pipe, PermissionDenied if another user may have put it there.
class PipeSink : public nettrace::Sink {
 public:
  PipeSink(std::string path, std::shared_ptr<Canceller> canceller)
      : path_(std::move(path)), canceller_(std::move(canceller)) {}

  std::shared_ptr<const PipeState> state() const { return state_; }

  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override;
  // Unavailable while there is no reader.
  absl::Status Flush() override;
  absl::Status BeginSection() override;
  bool WantsSection() const override { return skipping_; }

 private:
  // Opens the pipe if it is not, and gives a new reader the prologue.
  absl::Status Connect();
  void Disconnect();

  const std::string path_;
  const std::shared_ptr<Canceller> canceller_;
  const std::shared_ptr<PipeState> state_ = std::make_shared<PipeState>();
  std::vector<std::byte> prologue_;
  bool in_sections_ = false;    // the prologue is over
  bool section_begun_ = false;  // a part of the section was given to a reader
  bool skipping_ = false;       // what follows of the section is discarded
  std::unique_ptr<StreamSink> stream_;
  std::size_t prologue_given_ = 0;  // to the reader that there is
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_OUTPUT_PIPE_SINK_H_
