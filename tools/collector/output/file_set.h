// The files of a session in their directory: their names, how much of them is kept, and the one
// that is being written.
#ifndef TOOLS_COLLECTOR_OUTPUT_FILE_SET_H_
#define TOOLS_COLLECTOR_OUTPUT_FILE_SET_H_

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
#include "tools/collector/base/unique_fd.h"
#include "tools/collector/output/file_name.h"
#include "tools/collector/output/files_settings.h"

namespace collector {

// What of a session is on disk, for its status.
struct FilesState {
  std::string current_file;      // the path of what is being written; "" if nothing is
  std::uint64_t files = 0;       // complete ones, those of earlier runs included
  std::uint64_t file_bytes = 0;  // of these and of the current one, as keep_bytes counts them
  std::uint64_t bytes = 0;       // written since the start, prologues and ends included
  std::uint64_t deleted = 0;     // files, to keep within bounds, since the start
  std::uint64_t discarded = 0;   // bytes that were in no file; see FileSetSink
  absl::Status error;            // the last one, also if all is well again
  absl::Time error_time = absl::InfinitePast();
};

// A file is written as NAME.partial, with O_EXCL and a lock that other daemons respect, and gets
// its name when it is complete, without ever replacing a file. NAME has the time at which it was
// begun; if the clock stands still or goes back, that is a name that no file has yet, in any case.
//
// What is kept: the session's own complete files, which are the regular files in the directory
// whose names are those of its template; symbolic links and whatever else is there are let alone.
// Before a write, the oldest are deleted so that after it all bounds hold:
//  - keep_files: so many complete files at most. The one that is being written is one more.
//  - keep_bytes: the sizes of all of them and of the one that is being written, each rounded up to
//    whole blocks of the file system, are never more, at no time. Metadata of the file system, such
//    as the directory itself, is not counted.
//  - keep_free_bytes: what the file system has left for the process's user is never less because of
//    a write here.
//  - keep_age: since a file was completed, by a clock that nobody sets.
// If all complete files are gone and a bound would still be passed, the write is refused with
// ResourceExhausted.
//
// A directory that was removed, renamed or unmounted is noticed by Check: it is created anew if its
// parent is there and allows that, and the file that is being written is copied to the new place,
// from where it is still open. The same is done if the file alone was removed or renamed.
//
// Not thread-safe, but for state().
class FileSet {
 public:
  // InvalidArgument if the template is not good. A directory that cannot be used is no error yet:
  // it is in the state, and that of each write until it can be used.
  static absl::StatusOr<std::unique_ptr<FileSet>> Create(const FilesSettings& settings,
                                                         std::string_view session, bool compressed);
  // A file that is being written stays as it is, to be recovered.
  ~FileSet() = default;
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;

  // Begins a file, which is empty.
  absl::Status Begin();
  // The same, as a copy that is to take the place of the file left behind `stray`.
  absl::Status BeginRepair(const FileNames::Name& stray);
  bool has_file() const { return file_.valid(); }
  std::uint64_t size() const { return size_; }  // of the file
  // Since the file was begun, by a clock that nobody sets.
  absl::Duration age() const;

  // With the contract of Sink::Append. OutOfRange if the file alone would pass keep_bytes.
  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken);
  // Looks whether directory and file are where they should be, and mends that; deletes files that
  // are too old. DataLoss if the file is elsewhere and cannot be read there any more.
  absl::Status Check();
  // Makes the file durable. An error is told in the state and not returned, as it does not help to
  // try again: what was to be written back is lost by then.
  void Sync();
  // Gives the file its name, after Check, and returns its path. After an error it can be called
  // again.
  absl::StatusOr<std::string> Complete();
  // The same for one of BeginRepair. At no moment is what is in it in two files, or in none: it
  // takes the place of the stray, which then gets its name.
  absl::StatusOr<std::string> CompleteRepair();
  // Removes the file.
  void Abandon();

  // Files that are being written by others, or were left behind; those of this FileSet are not
  // among them.
  struct Stray {
    FileNames::Name name;
    std::uint64_t bytes = 0;  // in whole blocks
  };
  absl::StatusOr<std::vector<Stray>> FindStrays();
  // Opens one for reading and claims it. Aborted if somebody else has, or it is gone.
  absl::StatusOr<UniqueFd> OpenStray(const FileNames::Name& name);
  absl::Status RemoveStray(const FileNames::Name& name);
  // Gives it its name, or that of an unreadable file; returns the path.
  absl::StatusOr<std::string> RenameStray(const FileNames::Name& name, FileNames::Kind kind);

  std::string PathOf(const FileNames::Name& name) const;
  void CountDiscarded(std::uint64_t bytes);
  FilesState state() const;
  const FilesSettings& settings() const { return settings_; }

 private:
  struct Kept {
    FileNames::Name name;
    std::uint64_t bytes = 0;   // in whole blocks
    absl::Duration completed;  // when, by the clock that nobody sets
  };

  FileSet(const FilesSettings& settings, FileNames names, bool compressed)
      : settings_(settings), names_(std::move(names)), compressed_(compressed) {}

  absl::Status OpenDirectory();
  bool IsDirectoryHere() const;
  // Reads what of the session there is.
  absl::Status Scan();
  absl::Status CreateFile(FileNames::Name name);
  bool IsFileHere() const;
  // Copies the file to where it should be.
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
  // Remembers an error for the state; returns the status.
  absl::Status Tell(absl::Status status);
  void UpdateState();

  const FilesSettings settings_;
  const FileNames names_;
  const bool compressed_;

  UniqueFd directory_;
  std::uint64_t block_size_ = 4096;
  std::deque<Kept> kept_;         // complete files, the oldest first
  std::uint64_t kept_bytes_ = 0;  // of these
  std::vector<Stray> strays_;

  UniqueFd file_;
  UniqueFd file_directory_;  // where the file was created
  FileNames::Name file_name_;
  std::uint64_t size_ = 0;
  absl::Duration begun_;   // by the clock that nobody sets
  std::string last_time_;  // of the names that were given

  mutable std::mutex mutex_;
  FilesState state_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_OUTPUT_FILE_SET_H_
