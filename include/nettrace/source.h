// Origins of a Reader's bytes, read once from front to back: a file, a pipe, memory.
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

// Not thread-safe: used by one Reader.
class Source {
 public:
  virtual ~Source() = default;
  // Reads up to `buffer.size()` bytes, at least one unless at the end, where it returns 0.
  virtual absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) = 0;
  // All bytes, if they are in memory and stay there unchanged as long as the source: they are then
  // read in place, and Read is not called. Else empty.
  virtual std::span<const std::byte> InMemory() const { return {}; }
};

// A file descriptor of any kind; blocking reads.
class FdSource : public Source {
 public:
  // Takes ownership of `fd`. `name` is for error messages.
  FdSource(int fd, std::string name);
  ~FdSource() override;
  FdSource(const FdSource&) = delete;
  FdSource& operator=(const FdSource&) = delete;

  // Opens the file at `path`, O_CLOEXEC.
  static absl::StatusOr<std::unique_ptr<FdSource>> Open(const std::string& path);

  absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) override;

 private:
  int fd_;
  std::string name_;
};

// Bytes that must stay unchanged as long as the source is read; a mapped file, for one.
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
