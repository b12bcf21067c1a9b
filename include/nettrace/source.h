// Sources of a Reader's bytes: a file, a pipe, memory. A Reader reads them once, front to back.
#ifndef NETTRACE_SOURCE_H_
#define NETTRACE_SOURCE_H_

#include "nettrace/need_cxx20.h"

#ifdef NETTRACE_CXX20

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace nettrace {

// Provides the bytes of one Reader. Not thread-safe.
class Source {
 public:
  virtual ~Source() = default;
  // Reads up to `buffer.size()` bytes and returns their count: at least 1, or 0 at the end.
  // `buffer` must not be empty. A source that must not block returns Unavailable if there are no
  // bytes yet; its Reader needs ReaderOptions::waits.
  virtual absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) = 0;
  // Returns all bytes if they are in memory and stay unchanged while the source exists. The Reader
  // then reads them in place and does not call Read(). Else returns an empty span.
  virtual std::span<const std::byte> InMemory() const { return {}; }
};

// Reads from a file descriptor of any kind, which must be blocking: EAGAIN is an error.
class FdSource : public Source {
 public:
  // Takes ownership of `fd`. Error messages contain `name`.
  FdSource(int fd, std::string name);
  ~FdSource() override;
  FdSource(const FdSource&) = delete;
  FdSource& operator=(const FdSource&) = delete;

  // Opens the file at `path`, with O_CLOEXEC. Fails with the error of open(2).
  static absl::StatusOr<std::unique_ptr<FdSource>> Open(const std::string& path);

  absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) override;

 private:
  int fd_;
  std::string name_;
};

// Reads bytes in memory, e.g. a mapped file. The bytes must stay valid and unchanged while the
// source exists.
class MemorySource : public Source {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : rest_(bytes) {}
  absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) override;
  std::span<const std::byte> InMemory() const override { return rest_; }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace nettrace

#endif  // NETTRACE_CXX20
#endif  // NETTRACE_SOURCE_H_
