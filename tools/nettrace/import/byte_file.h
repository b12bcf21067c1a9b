// Random access to the bytes of a file or of memory.
#ifndef TOOLS_NETTRACE_IMPORT_BYTE_FILE_H_
#define TOOLS_NETTRACE_IMPORT_BYTE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/base/unique_fd.h"

namespace tools::importing {

class ByteFile {
 public:
  virtual ~ByteFile() = default;
  virtual std::uint64_t size() const = 0;
  // Reads bytes at `offset`, and returns their number. It is less than `buffer.size()` only at the
  // end of the file.
  virtual absl::StatusOr<std::size_t> ReadAt(std::uint64_t offset, std::span<std::byte> buffer) = 0;
};

class DiskFile : public ByteFile {
 public:
  // Opens the regular file `name` in the directory with the descriptor `folder`, which may be
  // AT_FDCWD. Fails with InvalidArgument if the file is of another type, and with another error if
  // it cannot be opened.
  static absl::StatusOr<std::unique_ptr<DiskFile>> Open(int folder, const std::string& name);

  std::uint64_t size() const override { return size_; }
  absl::StatusOr<std::size_t> ReadAt(std::uint64_t offset, std::span<std::byte> buffer) override;

 private:
  DiskFile(base::UniqueFd fd, std::uint64_t size) : fd_(std::move(fd)), size_(size) {}

  base::UniqueFd fd_;
  std::uint64_t size_;
};

class MemoryFile : public ByteFile {
 public:
  explicit MemoryFile(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

  std::uint64_t size() const override { return bytes_.size(); }
  absl::StatusOr<std::size_t> ReadAt(std::uint64_t offset, std::span<std::byte> buffer) override;

 private:
  std::vector<std::byte> bytes_;
};

// Returns the contents of a file. Fails with InvalidArgument if it has more than `max` bytes.
absl::StatusOr<std::string> ReadAll(ByteFile* file, std::uint64_t max);

}  // namespace tools::importing

#endif  // TOOLS_NETTRACE_IMPORT_BYTE_FILE_H_
