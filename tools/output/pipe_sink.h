// Sinks for pipes and sockets, whose readers may be slow, connect late, or disconnect.
#ifndef TOOLS_OUTPUT_PIPE_SINK_H_
#define TOOLS_OUTPUT_PIPE_SINK_H_

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
#include "tools/base/unique_fd.h"

namespace output {

// Makes sinks stop waiting for their readers. Thread-safe.
class Canceller {
 public:
  static absl::StatusOr<std::shared_ptr<Canceller>> Create();

  // Ends all current waits, and prevents later ones.
  void Cancel();
  int fd() const { return fd_.get(); }  // readable after Cancel

 private:
  explicit Canceller(base::UniqueFd fd) : fd_(std::move(fd)) {}

  const base::UniqueFd fd_;  // an eventfd
};

// A sink for an open pipe or socket. Append waits for the reader. It fails with Unavailable if the
// reader takes nothing for a second, and may then be retried. It fails with Aborted once the reader
// has gone. A broken pipe never causes a SIGPIPE.
class StreamSink : public nettrace::Sink {
 public:
  // Makes `fd` non-blocking. `name` is for messages.
  StreamSink(base::UniqueFd fd, std::string name, std::shared_ptr<Canceller> canceller);

  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override;
  // Fails with Aborted once the reader has gone.
  absl::Status Flush() override;

 private:
  const int fd_;  // sink_ closes it
  const std::string name_;
  nettrace::FdSink sink_;
};

// Values of a PipeSink for other threads, during its life and after it.
class PipeState {
 public:
  struct Values {
    bool has_reader = false;
    std::uint64_t readers = 0;    // readers since the start
    std::uint64_t bytes = 0;      // bytes that readers were given
    std::uint64_t discarded = 0;  // bytes that no reader was given
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

// A sink for a named pipe. While the pipe has no reader, the sink takes nothing and returns
// Unavailable. Each reader gets the stream's prologue and then whole sections, beginning with the
// one that waits to be written. If a reader goes away in the middle of a section, the rest of that
// section is discarded, and the sink requests another section.
//
// The path is checked whenever it is opened: FailedPrecondition if it is not a pipe,
// PermissionDenied if another user may have put the pipe there.
class PipeSink : public nettrace::Sink {
 public:
  PipeSink(std::string path, std::shared_ptr<Canceller> canceller)
      : path_(std::move(path)), canceller_(std::move(canceller)) {}

  std::shared_ptr<const PipeState> state() const { return state_; }

  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override;
  // Fails with Unavailable while there is no reader.
  absl::Status Flush() override;
  absl::Status BeginSection() override;
  bool WantsSection() const override { return skipping_; }

 private:
  // Opens the pipe if it is closed, and gives a new reader the prologue.
  absl::Status Connect();
  void Disconnect();

  const std::string path_;
  const std::shared_ptr<Canceller> canceller_;
  const std::shared_ptr<PipeState> state_ = std::make_shared<PipeState>();
  std::vector<std::byte> prologue_;
  bool in_sections_ = false;    // the prologue is over
  bool section_begun_ = false;  // a reader was given a part of the section
  bool skipping_ = false;       // the rest of the section is discarded
  std::unique_ptr<StreamSink> stream_;
  std::size_t prologue_given_ = 0;  // bytes given to the current reader
};

}  // namespace output

#endif  // TOOLS_OUTPUT_PIPE_SINK_H_
