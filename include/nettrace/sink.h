// Destinations of a Writer's bytes: a file, a pipe, a socket, memory or a function. A Writer only
// appends bytes, so a sink need not be able to seek.
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

// Receives the bytes of one Writer. Not thread-safe.
class Sink {
 public:
  virtual ~Sink() = default;
  // Appends all of `bytes` and returns OK, or appends a prefix of them, sets `*taken` to its length
  // and returns the error. The sink must continue after EINTR and short writes.
  virtual absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) = 0;
  // Starts to deliver the bytes that the sink holds back. Does not wait until they are delivered.
  virtual absl::Status Flush() { return absl::OkStatus(); }
  // Makes the appended bytes durable, if the sink can.
  virtual absl::Status Sync() { return absl::OkStatus(); }
  // Ends the stream. The Writer calls this after it has appended the EndOfStream block, and appends
  // nothing afterwards. The default calls Sync(). May be called again after an error.
  virtual absl::Status Finish() { return Sync(); }
  // Returns the number of appended bytes that the sink holds back and has not delivered yet. They
  // would be lost if the process ended now.
  virtual std::uint64_t Undelivered() const { return 0; }

  // Begins a new section at the next appended byte. A section is a part of a stream that forms a
  // complete stream together with the prologue, which is everything before the first section. A
  // sink can therefore begin a new file at a section, or keep only the last sections. The Writer
  // calls this between two calls of Append(), when the sink has taken all bytes so far. After an
  // error, the Writer calls this again before the next Append().
  virtual absl::Status BeginSection() { return absl::OkStatus(); }
  // Returns whether the sink asks for a new section soon, because it wants to begin a new file.
  // Returns false after BeginSection, until the sink needs another section.
  virtual bool WantsSection() const { return false; }
  // Returns whether the sink's buffers are full. The sink still takes bytes, but asks the caller to
  // pause.
  virtual bool IsFull() const { return false; }
};

// Writes to a file descriptor of any kind. Append() waits until the descriptor takes the bytes,
// even if it is non-blocking. A broken pipe is an error, never a SIGPIPE. Sync() makes the contents
// of a regular file durable, and does nothing if the descriptor or its file system does not support
// that. After Sync() has failed once, it always fails, because the kernel reports lost bytes only
// once.
class FdSink : public Sink {
 public:
  // Takes ownership of `fd`. Error messages contain `name`.
  FdSink(int fd, std::string name);
  ~FdSink() override;
  FdSink(const FdSink&) = delete;
  FdSink& operator=(const FdSink&) = delete;

  // Creates or truncates the file at `path`, with O_CLOEXEC and mode 0644 less the umask. Fails
  // with the error of open(2).
  static absl::StatusOr<std::unique_ptr<FdSink>> Create(const std::string& path);

  // Sets a function that Append() calls with errno when a write fails, except for EINTR and EAGAIN.
  // If the function returns true, perhaps after waiting, Append() writes again from the first byte
  // that was not taken. If the function returns false or is not set, Append() returns the error.
  // When all bytes are written after such errors, Append() calls the function with 0.
  void set_retry(std::function<bool(int error)> retry) { retry_ = std::move(retry); }

  // Sets a function that Append() calls with the descriptor when a non-blocking descriptor takes no
  // bytes. Without it, Append() waits indefinitely. If the function returns false, Append() returns
  // Unavailable.
  void set_wait(std::function<bool(int fd)> wait) { wait_ = std::move(wait); }

  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override;
  absl::Status Sync() override;

 private:
  // Returns whether to retry the write after this error.
  bool IsRetried(int error);

  int fd_;
  std::string name_;
  bool regular_;
  std::function<bool(int error)> retry_;
  std::function<bool(int fd)> wait_;
  bool retrying_ = false;  // retry_ was called with an error, and not yet with 0 after it
  absl::Status sync_failure_;
};

// Stores the bytes in memory.
class MemorySink : public Sink {
 public:
  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override;
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Passes the bytes to a function that has the contract of Sink::Append().
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
