// Destinations of a Writer's bytes, appended without seeking: a file, a pipe, a socket, memory.
#ifndef NETTRACE_SINK_H_
#define NETTRACE_SINK_H_

#include "nettrace/need_cxx20.h"

#ifdef NETTRACE_CXX20

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace nettrace {

// Not thread-safe: used by one Writer.
class Sink {
 public:
  virtual ~Sink() = default;
  // Takes all of `bytes` and returns OK, or takes a prefix of them, sets `*taken` to its length and
  // returns the error. EINTR and short writes are the sink's to handle.
  virtual absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) = 0;
  // Hands on what the sink has taken and holds back, or begins to. Does not wait for it.
  virtual absl::Status Flush() { return absl::OkStatus(); }
  // Makes what was appended durable, where the sink knows how.
  virtual absl::Status Sync() { return absl::OkStatus(); }
  // The stream is whole, up to its EndOfStream block, and nothing is appended any more. As Sync, if
  // there is nothing else to do then. After an error it may be called again.
  virtual absl::Status Finish() { return Sync(); }
  // How many of the bytes that Append took have not reached their destination, if the sink holds
  // bytes back: were the process to end now, they would be lost.
  virtual std::uint64_t Undelivered() const { return 0; }

  // Sections: parts of a stream each of which is a stream of its own where the stream's prologue,
  // which is what was appended before the first section, stands in front of it. So a sink can begin
  // a new file at a section, or keep the last sections only. Called by the Writer between two
  // Appends, when all before has been taken: what is appended from here on is a new section. After
  // an error it is called again before the next Append.
  virtual absl::Status BeginSection() { return absl::OkStatus(); }
  // The sink would have a new section begin soon, as its file is to be followed by another one.
  // False from BeginSection on, until it would have yet another one.
  virtual bool WantsSection() const { return false; }
  // The sink's buffers are full. It still takes what it is given, but asks for a pause.
  virtual bool IsFull() const { return false; }
};

// A file descriptor of any kind. Waits until it takes the bytes, also if it is non-blocking. A
// broken pipe is an error here, never a SIGPIPE. Sync makes a regular file's contents durable; once
// that has failed it stays failed.
class FdSink : public Sink {
 public:
  // Takes ownership of `fd`. `name` is for error messages.
  FdSink(int fd, std::string name);
  ~FdSink() override;
  FdSink(const FdSink&) = delete;
  FdSink& operator=(const FdSink&) = delete;

  // Creates or truncates the file at `path`, O_CLOEXEC, mode 0644 less the umask.
  static absl::StatusOr<std::unique_ptr<FdSink>> Create(const std::string& path);

  // `retry` is called with errno when a write fails, but for EINTR and EAGAIN: if it returns true,
  // after waiting perhaps, the write is tried again from the first byte that was not taken. It is
  // called with 0 when an Append after that has taken everything. Without it, and if it returns
  // false, the error is Append's.
  void set_retry(std::function<bool(int error)> retry) { retry_ = std::move(retry); }

  // `wait` is called, with the descriptor, in place of waiting without end until one that is
  // non-blocking takes something. If it returns false, Append is Unavailable.
  void set_wait(std::function<bool(int fd)> wait) { wait_ = std::move(wait); }

  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override;
  absl::Status Sync() override;

 private:
  // Whether to try again after this error.
  bool IsRetried(int error);

  int fd_;
  std::string name_;
  bool regular_;
  std::function<bool(int error)> retry_;
  std::function<bool(int fd)> wait_;
  bool retrying_ = false;  // retry_ was called with an error, and not with 0 since
  absl::Status sync_failure_;
};

class MemorySink : public Sink {
 public:
  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override;
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Calls a function, with the contract of Sink::Append.
class CallbackSink : public Sink {
 public:
  using Callback =
      std::function<absl::Status(std::span<const std::byte> bytes, std::size_t* taken)>;
  explicit CallbackSink(Callback append) : append_(std::move(append)) {}
  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override {
    return append_(bytes, taken);
  }

 private:
  Callback append_;
};

}  // namespace nettrace

#endif  // NETTRACE_CXX20
#endif  // NETTRACE_SINK_H_
