// The file that is being written, before it has its final name.
#ifndef TOOLS_OUTPUT_PARTIAL_FILE_H_
#define TOOLS_OUTPUT_PARTIAL_FILE_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/unique_fd.h"
#include "tools/output/file_name.h"

namespace output {

// Returns whether the open file `fd` is the regular file `file` in the directory.
bool IsFileAt(int fd, int directory, const char* file);

// A file that is open for writing. It is locked, except in the cases in which ClaimFile
// (file_lock.h) takes no lock. Other daemons do not write or repair a locked file. A process
// that may only read the file cannot lock it against writers. Created by FileDirectory::CreateFile.
// A default-constructed object has no file. Destruction leaves the file as it is, so that
// RecoverFiles can repair it.
class PartialFile {
 public:
  PartialFile() = default;
  // `directory` is the directory in which `file` was created.
  PartialFile(base::UniqueFd file, base::UniqueFd directory, FileNames::Name name, std::string path)
      : file_(std::move(file)),
        directory_(std::move(directory)),
        name_(std::move(name)),
        path_(std::move(path)),
        begun_(base::Uptime()) {}

  bool valid() const { return file_.valid(); }
  const FileNames::Name& name() const { return name_; }
  const std::string& path() const { return path_; }
  int directory() const { return directory_.get(); }
  std::uint64_t size() const { return size_; }  // bytes
  // Returns the time since the file was begun, by base::Uptime().
  absl::Duration age() const { return base::Uptime() - begun_; }
  // Returns whether the file still has its name in `directory`.
  bool IsIn(int directory) const { return IsFileAt(file_.get(), directory, FileName()); }

  // Appends to the file, and sets `*taken` to the number of bytes written, also after an error.
  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken);
  // Reads bytes from `offset` on. Returns the number of bytes read, 0 at the end of the file, or -1
  // on an error.
  ssize_t Read(std::span<std::byte> bytes, std::uint64_t offset) const;
  // Makes the data durable, if the file system supports that.
  absl::Status Sync();
  // Sets the mode, regardless of the umask. Has no effect if the file system has no modes.
  void SetMode(mode_t mode);
  // Sets the age of this file to that of `other`, which this file replaces, so that rotate_every
  // still counts from the time at which `other` was begun.
  void TakeAgeOf(const PartialFile& other) { begun_ = other.begun_; }
  // Removes the file from `directory`, unless another file has its name there, and closes it.
  void RemoveFrom(int directory);
  void Close() { *this = PartialFile(); }

 private:
  const char* FileName() const { return path_.c_str() + (path_.rfind('/') + 1); }

  base::UniqueFd file_;
  base::UniqueFd directory_;
  FileNames::Name name_;
  std::string path_;
  std::uint64_t size_ = 0;
  absl::Duration begun_;  // base::Uptime() when the file was begun
};

}  // namespace output

#endif  // TOOLS_OUTPUT_PARTIAL_FILE_H_
