// The files of a session in their directory: their names, the limits of what is kept, and the file
// that is being written.
#ifndef TOOLS_OUTPUT_FILE_SET_H_
#define TOOLS_OUTPUT_FILE_SET_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/base/unique_fd.h"
#include "tools/output/file_name.h"
#include "tools/output/files_settings.h"

namespace output {

// The files of a session on disk, for its status.
struct FilesState {
  std::string current_file;      // path of the file that is being written; "" if none
  std::uint64_t files = 0;       // complete files, including those of earlier runs
  std::uint64_t file_bytes = 0;  // bytes of all files, counted as for keep_bytes
  std::uint64_t bytes = 0;       // bytes written since the start, including prologues and ends
  std::uint64_t deleted = 0;     // files deleted since the start, to keep within limits
  std::uint64_t discarded = 0;   // bytes that are in no file; see FileSetSink
  absl::Status error;            // last error, even if it no longer occurs
  absl::Time error_time = absl::InfinitePast();
};

// The files of a session in a directory.
//
// A file is written as NAME.partial. It is created with O_EXCL, and has a lock that other daemons
// respect and readers cannot take (see file_lock.h). When it is complete, it is renamed to NAME,
// without ever replacing a file. NAME has the time at which the file was begun. If another file has
// this name because the clock stands still or goes back, NAME has a later time.
//
// Only complete files of the session are counted and deleted: regular files in the directory whose
// names match the template. Symbolic links and other files are left alone. Before a write, the
// oldest files are deleted so that all limits hold after it:
//  - keep_files: maximum number of complete files. The file that is being written is one more.
//  - keep_bytes: maximum total size of these files and the one that is being written, at any time.
//    Each is rounded up to whole blocks of the file system. Metadata of the file system, such as
//    the directory itself, is not counted.
//  - keep_free_bytes: space on the file system, available to the process's user, that no write here
//    uses up.
//  - keep_age: maximum time since a file was completed, by Uptime().
// If no complete file is left to delete and a limit would still be exceeded, the write fails with
// ResourceExhausted.
//
// Check detects a directory that was removed, renamed or unmounted. It creates the directory again
// if possible, and copies the file that is being written, which is still open, to the new place. It
// also does so if only the file was removed or renamed.
//
// Not thread-safe, except for state().
class FileSet {
 public:
  // Fails with InvalidArgument if the template is invalid. A directory that cannot be used is no
  // error here. It is reported by state() and by each write until it can be used.
  static absl::StatusOr<std::unique_ptr<FileSet>> Create(const FilesSettings& settings,
                                                         std::string_view session, bool compressed);
  // Leaves a file that is being written as it is, to be recovered later.
  ~FileSet() = default;
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;

  // Begins an empty file.
  absl::Status Begin();
  // Begins an empty file as a copy that will replace `stray`, a file that was left behind. Fails
  // with Aborted if another process is making that copy.
  absl::Status BeginRepair(const FileNames::Name& stray);
  bool has_file() const { return file_.valid(); }
  std::uint64_t size() const { return size_; }  // bytes in the file
  // Returns the time since the file was begun, by Uptime().
  absl::Duration age() const;

  // Works like Sink::Append. Fails with OutOfRange if the file alone would exceed
  // keep_bytes.
  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken);
  // Checks that the directory and the file are at their paths, and restores them if not. Deletes
  // files that are too old. Fails with DataLoss if the file was removed and can no longer be read.
  absl::Status Check();
  // Makes the file durable. An error is stored in the state and not returned. A retry would not
  // help, because the data to write back is already lost.
  void Sync();
  // Calls Check, gives the file its final name, and returns its path. It can be called again after
  // an error.
  absl::StatusOr<std::string> Complete();
  // Completes a file of BeginRepair. The copy replaces the stray, and then gets the final name, so
  // that readers find its data in exactly one file at any time.
  absl::StatusOr<std::string> CompleteRepair();
  // Removes the file.
  void Abandon();

  // A file that another process is writing or that was left behind. It is never the file of this
  // FileSet.
  struct Stray {
    FileNames::Name name;
    std::uint64_t bytes = 0;  // size, rounded up to whole blocks
  };
  absl::StatusOr<std::vector<Stray>> FindStrays();
  // Opens a stray for reading and locks it. Fails with Aborted if another writer has locked it, or
  // if it was removed or renamed in the meantime.
  absl::StatusOr<base::UniqueFd> OpenStray(const FileNames::Name& name);
  absl::Status RemoveStray(const FileNames::Name& name);
  // Renames a stray to the name of a complete or an unreadable file. Returns the path.
  absl::StatusOr<std::string> RenameStray(const FileNames::Name& name, FileNames::Kind kind);

  std::string PathOf(const FileNames::Name& name) const;
  void CountDiscarded(std::uint64_t bytes);
  FilesState state() const;
  const FilesSettings& settings() const { return settings_; }

 private:
  struct Kept {
    FileNames::Name name;
    std::uint64_t bytes = 0;   // size, rounded up to whole blocks
    absl::Duration completed;  // Uptime() when it was completed
  };

  FileSet(const FilesSettings& settings, FileNames names, bool compressed)
      : settings_(settings), names_(std::move(names)), compressed_(compressed) {}

  absl::Status OpenDirectory();
  bool IsDirectoryHere() const;
  // Reads the list of the session's files from the directory.
  absl::Status Scan();
  absl::Status CreateFile(FileNames::Name name);
  bool IsFileHere() const;
  // Copies the file to its path.
  absl::Status MoveFile();
  absl::Status CopyFrom(int fd, std::uint64_t size);
  absl::Status WriteBytes(std::span<const std::byte> bytes, std::size_t* taken);
  // Deletes the oldest files until the file may grow by `more` bytes.
  absl::Status MakeRoom(std::size_t more);
  absl::Status DeleteOldest();
  absl::Status DeleteAged();
  absl::Status Rename(const FileNames::Name& from, FileNames::Name* to);
  std::uint64_t InBlocks(std::uint64_t bytes) const;
  std::uint64_t StrayBytes() const;
  // Stores an error in the state, updates the state, and returns `status`.
  absl::Status Tell(absl::Status status);
  void UpdateState();

  const FilesSettings settings_;
  const FileNames names_;
  const bool compressed_;

  base::UniqueFd directory_;
  std::uint64_t block_size_ = 4096;
  std::deque<Kept> kept_;         // complete files, the oldest first
  std::uint64_t kept_bytes_ = 0;  // bytes of these files
  std::vector<Stray> strays_;

  base::UniqueFd file_;
  base::UniqueFd file_directory_;  // directory in which the file was created
  FileNames::Name file_name_;
  std::uint64_t size_ = 0;
  absl::Duration begun_;   // Uptime() when the file was begun
  std::string last_time_;  // time in the last name that was used

  mutable std::mutex mutex_;
  FilesState state_;
};

}  // namespace output

#endif  // TOOLS_OUTPUT_FILE_SET_H_
