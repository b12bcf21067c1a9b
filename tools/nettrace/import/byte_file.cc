#include "tools/nettrace/import/byte_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace tools::importing {

absl::StatusOr<std::unique_ptr<DiskFile>> DiskFile::Open(int folder, const std::string& name) {
  // O_NONBLOCK prevents openat from blocking if `name` is a FIFO.
  base::UniqueFd fd(openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "cannot be opened");
  struct stat facts = {};
  if (fstat(fd.get(), &facts) != 0) return absl::ErrnoToStatus(errno, "cannot be read");
  if (!S_ISREG(facts.st_mode))
    return absl::InvalidArgumentError("not a regular file; remove it from the trace");
  return std::unique_ptr<DiskFile>(
      new DiskFile(std::move(fd), static_cast<std::uint64_t>(facts.st_size)));
}

absl::StatusOr<std::size_t> DiskFile::ReadAt(std::uint64_t offset, std::span<std::byte> buffer) {
  std::size_t done = 0;
  while (done < buffer.size()) {
    const ssize_t got = pread(fd_.get(), buffer.data() + done, buffer.size() - done,
                              static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, "cannot be read");
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

absl::StatusOr<std::size_t> MemoryFile::ReadAt(std::uint64_t offset, std::span<std::byte> buffer) {
  if (offset >= bytes_.size()) return 0;
  const std::size_t size = std::min<std::uint64_t>(buffer.size(), bytes_.size() - offset);
  std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), size, buffer.begin());
  return size;
}

absl::StatusOr<std::string> ReadAll(ByteFile* file, std::uint64_t max) {
  if (file->size() > max) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file has ", file->size(), " bytes; at most ", max, " are supported"));
  }
  std::string text(file->size(), '\0');
  ASSIGN_OR_RETURN(const std::size_t got,
                   file->ReadAt(0, std::as_writable_bytes(std::span(text.data(), text.size()))));
  text.resize(got);
  return text;
}

}  // namespace tools::importing
