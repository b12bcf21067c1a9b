// A temporary file for data that does not fit in memory. It has no name in the file system, so it
// disappears when the process ends in any way.
#ifndef LIBNETTRACE_WRITER_READ_SPILL_FILE_H_
#define LIBNETTRACE_WRITER_READ_SPILL_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace nettrace::internal {

class SpillFile {
 public:
  // Uses `directory`; if it is empty, uses $TMPDIR, or /var/tmp if TMPDIR is not set. The first
  // write creates the file, so an unsuitable directory is an error of Append() or Flush().
  explicit SpillFile(std::string directory);
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  // Appends `bytes` through a buffer. After an error, the file is as it was after the last
  // successful Flush().
  absl::Status Append(std::span<const std::byte> bytes);
  absl::Status Flush();
  // Returns the size of the file after the latest successful Flush(), in bytes.
  std::uint64_t size() const { return size_; }
  // Fills `bytes` with the contents of the file from `offset` on. Flush() must have been called
  // since these contents were appended. Fails if the file cannot be read or is too short.
  absl::Status Read(std::uint64_t offset, std::span<std::byte> bytes) const;
  // Empties the file and frees its disk space.
  void Clear();

 private:
  absl::Status Open();
  absl::Status Write(std::span<const std::byte> bytes);
  absl::Status Error(int error, const char* what) const;

  const std::string directory_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
  std::uint64_t written_ = 0;  // bytes in the file, including those written since the last Flush()
  std::vector<std::byte> buffer_;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_READ_SPILL_FILE_H_
