// Destinations of a Writer's bytes, appended without seeking: a file, a pipe, a socket, memory.
#ifndef NETTRACE_SINK_H_
#define NETTRACE_SINK_H_

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
  // How many of the bytes that Append took have not reached their destination, if the sink holds
  // bytes back: were the process to end now, they would be lost.
  virtual std::uint64_t Undelivered() const { return 0; }
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

  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override;
  absl::Status Sync() override;

 private:
  // Whether to try again after this error.
  bool IsRetried(int error);

  int fd_;
  std::string name_;
  bool regular_;
  std::function<bool(int error)> retry_;
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

#endif  // NETTRACE_SINK_H_
