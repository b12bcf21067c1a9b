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

// Makes all sinks that were created with this object stop waiting for their readers. Thread-safe.
class Canceller {
 public:
  // Fails if the process has no free descriptor.
  static absl::StatusOr<std::shared_ptr<Canceller>> Create();

  // Ends all current waits of the sinks, and prevents later waits.
  void Cancel();
  int fd() const { return fd_.get(); }  // a descriptor that is readable after Cancel

 private:
  explicit Canceller(base::UniqueFd fd) : fd_(std::move(fd)) {}

  const base::UniqueFd fd_;  // an eventfd, which Cancel makes readable
};

// A sink for an open pipe or socket. Append waits for the reader. It fails with Unavailable if the
// reader takes nothing for a second, or after Canceller::Cancel; the caller may then retry. It
// fails with Aborted if the reader has closed its end, and with the error of the write otherwise. A
// broken pipe never causes a SIGPIPE.
class StreamSink : public nettrace::Sink {
 public:
  // Makes `fd` non-blocking. Error messages contain `name`.
  StreamSink(base::UniqueFd fd, std::string name, std::shared_ptr<Canceller> canceller);

  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override;
  // Fails with Aborted if the reader has closed its end.
  absl::Status Flush() override;

 private:
  const int fd_;  // owned by sink_
  const std::string name_;
  nettrace::FdSink sink_;
};

// Holds the state of a PipeSink for other threads. May outlive the sink.
class PipeState {
 public:
  struct Values {
    bool has_reader = false;
    std::uint64_t readers = 0;    // readers that have connected since the start
    std::uint64_t bytes = 0;      // bytes that readers were given, without prologues
    std::uint64_t discarded = 0;  // bytes discarded because a reader disconnected in a section
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

// A sink for a named pipe. While the pipe has no reader, the sink takes no bytes of sections and
// returns Unavailable. Each reader gets the stream's prologue (the bytes before the first section)
// and then whole sections, beginning with the section that was waiting for a reader. If a reader
// disconnects in the middle of a section, the rest of that section is discarded, and the sink
// requests another section.
//
// Each time the sink opens the path, it checks the path. Calls fail with FailedPrecondition if the
// path is not a pipe, and with PermissionDenied if another user may have put the pipe there. They
// fail with another error if the pipe cannot be opened.
class PipeSink : public nettrace::Sink {
 public:
  PipeSink(std::string path, std::shared_ptr<Canceller> canceller)
      : path_(std::move(path)), canceller_(std::move(canceller)) {}

  std::shared_ptr<const PipeState> state() const { return state_; }

  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override;
  // Drops a reader that has closed its end, and connects to a new reader. Fails with Unavailable
  // while there is no reader. Returns OK before the first section, and while a section is
  // discarded.
  absl::Status Flush() override;
  absl::Status BeginSection() override;
  bool WantsSection() const override { return skipping_; }

 private:
  // Opens the pipe if it is closed, and writes the prologue to a new reader.
  absl::Status Connect();
  // Closes the pipe after its reader has closed its end.
  void Disconnect();

  const std::string path_;
  const std::shared_ptr<Canceller> canceller_;
  const std::shared_ptr<PipeState> state_ = std::make_shared<PipeState>();
  std::vector<std::byte> prologue_;
  bool in_sections_ = false;    // true once the first section has begun
  bool section_begun_ = false;  // true if a reader was given a part of the section
  bool skipping_ = false;       // true if the rest of the section is discarded
  std::unique_ptr<StreamSink> stream_;
  std::size_t prologue_given_ = 0;  // bytes of the prologue that the current reader was given
};

}  // namespace output

#endif  // TOOLS_OUTPUT_PIPE_SINK_H_
