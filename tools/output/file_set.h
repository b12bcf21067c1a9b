// The files that a session writes, one after the other, and their status.
#ifndef TOOLS_OUTPUT_FILE_SET_H_
#define TOOLS_OUTPUT_FILE_SET_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/output/file_directory.h"
#include "tools/output/file_name.h"
#include "tools/output/files_settings.h"
#include "tools/output/kept_files.h"
#include "tools/output/partial_file.h"

namespace output {

// Holds the state of a session's files on disk, for the status of the session.
struct FilesState {
  std::string current_file;  // path of the file that is being written; "" if there is none
  std::uint64_t files = 0;   // complete files, including those of earlier runs
  // Bytes of all files, each rounded up to blocks of the file system. keep_bytes limits them.
  std::uint64_t file_bytes = 0;
  std::uint64_t bytes = 0;      // bytes written since the start, including prologues and end blocks
  std::uint64_t deleted = 0;    // files deleted since the start, to keep the limits of KeptFiles
  std::uint64_t discarded = 0;  // bytes that were discarded and are in no file
  absl::Status error;           // last error, even if it no longer occurs; OK if there was none
  // Time of the last error; InfinitePast if there was none.
  absl::Time error_time = absl::InfinitePast();
};

// The files of a session in a directory, within the limits of KeptFiles.
//
// A file is written as NAME.partial, a PartialFile. When it is complete, it is renamed to NAME.
// This does not replace another file, except in the rare case that FileDirectory::Rename describes.
// NAME has the time at which the file was begun. If another file has this name because the clock
// stands still or goes back, NAME has a later time.
//
// Check detects a directory that was removed, renamed or unmounted. It creates the directory again
// if possible, and copies the file that is being written, which is still open, to the new
// directory. It also copies this file if only the file was removed or renamed.
//
// Not thread-safe, except for state().
class FileSet {
 public:
  // Fails with InvalidArgument if the template is invalid or no directory is set. If the directory
  // cannot be used, Create succeeds. Each call of Begin then fails, and state() has the error,
  // until the directory can be used.
  static absl::StatusOr<std::unique_ptr<FileSet>> Create(const FilesSettings& settings,
                                                         std::string_view session, bool compressed);
  // Leaves a file that is being written as it is. RecoverFiles repairs it later.
  ~FileSet() = default;
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;

  // Creates an empty file, to which Append then writes. Fails if the directory cannot be used or no
  // file can be created.
  absl::Status Begin();
  bool has_file() const { return file_.valid(); }
  std::uint64_t size() const { return file_.size(); }  // bytes in the file
  // Returns the time since the file was begun, by base::Uptime().
  absl::Duration age() const { return file_.age(); }

  // Appends to the file, and sets `*taken` to the number of bytes that were appended, also after an
  // error. Fails with FailedPrecondition if there is no file, with OutOfRange if the file alone
  // would exceed keep_bytes, and with ResourceExhausted if no space can be made for the bytes
  // (KeptFiles). Other errors are those of the write or of deleting a file.
  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken);
  // Checks that the directory and the file are at their paths, and restores them if not. Deletes
  // files that are too old. Fails with DataLoss if the file was removed or renamed and its contents
  // can no longer be read. After another error, Check can be called again.
  absl::Status Check();
  // Syncs the file to the disk. Does not return an error, but stores it in state(). A retry would
  // not help, because the kernel has already dropped the data that it could not write.
  void Sync();
  // Calls Check, gives the file its final name, and returns its path. Syncs the file if the
  // settings require it. Fails with FailedPrecondition if there is no file. Can be called again
  // after another error.
  absl::StatusOr<std::string> Complete();
  // Closes and deletes the file that is being written.
  void Abandon();

  // Adds `bytes` to FilesState::discarded.
  void CountDiscarded(std::uint64_t bytes);
  FilesState state() const;
  const FilesSettings& settings() const { return settings_; }

 private:
  FileSet(const FilesSettings& settings, FileDirectory directory, bool compressed)
      : settings_(settings),
        compressed_(compressed),
        directory_(std::move(directory)),
        kept_(&settings_, &directory_) {}

  // If the directory is not open, or no longer at its path, opens it and reads the list of files.
  absl::Status EnsureDirectory();
  // Creates the file. If a file with the time in `name` exists, uses a later time. Fails with
  // Unavailable after 10,000 names.
  absl::Status CreateFile(FileNames::Name name);
  // Calls EnsureDirectory, and calls MoveFile if the file that is being written is no longer at its
  // path.
  absl::Status EnsureFile();
  // Copies the contents of the file, which is still open, to a new file at its path. Writing
  // continues in the new file.
  absl::Status MoveFile();
  absl::Status CopyFrom(const PartialFile& from);
  absl::StatusOr<std::string> CompleteFile();
  // Updates the state, stores `status` in it if it is an error, and returns `status`.
  absl::Status Record(absl::Status status);

  const FilesSettings settings_;
  const bool compressed_;
  FileDirectory directory_;
  KeptFiles kept_;
  PartialFile file_;
  std::string last_time_;  // newest time in the names of the files; "": none

  mutable std::mutex mutex_;
  FilesState state_;
};

}  // namespace output

#endif  // TOOLS_OUTPUT_FILE_SET_H_
