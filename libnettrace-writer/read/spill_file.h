// A temporary file for what does not fit in memory. It has no name that stays, so that it goes with
// the process, however that ends.
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
  // Makes a file in `directory`; where that is empty, in $TMPDIR or /var/tmp. It is made when the
  // first bytes are written.
  explicit SpillFile(std::string directory);
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  // Appends `bytes` to the file, by way of a buffer. Once an error came, all is as it was at the
  // last Flush that was OK.
  absl::Status Append(std::span<const std::byte> bytes);
  absl::Status Flush();
  // Bytes in the file up to the last Flush.
  std::uint64_t size() const { return size_; }
  // Fills `bytes` from `offset` on; what is read must have been flushed.
  absl::Status Read(std::uint64_t offset, std::span<std::byte> bytes) const;
  // Gives the disk's room back.
  void Clear();

 private:
  absl::Status Open();
  absl::Status Write(std::span<const std::byte> bytes);
  absl::Status Error(int error, const char* what) const;

  const std::string directory_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
  std::uint64_t written_ = 0;  // bytes in the file, also those that are not flushed
  std::vector<std::byte> buffer_;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_READ_SPILL_FILE_H_
