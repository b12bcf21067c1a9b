// The files of a session that are kept on disk, and the deletion of the oldest files.
#ifndef TOOLS_OUTPUT_KEPT_FILES_H_
#define TOOLS_OUTPUT_KEPT_FILES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tools/output/file_directory.h"
#include "tools/output/file_name.h"
#include "tools/output/files_settings.h"
#include "tools/output/partial_file.h"

namespace output {

// The list of a session's files in its directory, except the file that is being written.
//
// Complete files here include unreadable files (FileNames::Kind). Only complete files of the
// session are deleted to keep the limits. MakeRoom, MakeRoomForFile and DeleteAged delete the
// oldest of them. The limits are:
//  - keep_files: maximum number of complete files, without the file that is being written.
//  - keep_bytes: maximum total size of the complete files, the strays (see strays()) and the file
//    that is being written, at any time. The size of each file is rounded up to whole blocks of
//    the file system. Metadata of the file system, such as the directory itself, is not counted.
//  - keep_free_bytes: space on the file system that is still available to the process's user after
//    each write.
//  - keep_age: maximum time since a file was completed, by Uptime().
// MakeRoom fails with ResourceExhausted if keep_bytes or keep_free_bytes would be violated, and no
// complete file is left to delete. If the free space cannot be read, keep_free_bytes has no
// effect.
class KeptFiles {
 public:
  // `settings` and `directory` must outlive this object.
  KeptFiles(const FilesSettings* settings, const FileDirectory* directory)
      : settings_(settings), directory_(directory) {}

  const FilesSettings& settings() const { return *settings_; }
  const FileDirectory& directory() const { return *directory_; }

  // Reads the list from the directory. `own` is the file that is being written, which the list
  // omits, or an invalid PartialFile. If reading fails, the list is empty.
  absl::Status Refresh(const PartialFile& own);
  // Adds a file of `bytes` bytes that has just been completed.
  void Add(const FileNames::Name& name, std::uint64_t bytes);
  std::uint64_t files() const { return files_.size(); }  // complete files
  // Bytes of complete files and strays. The size of each is rounded up to blocks of the file
  // system.
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t deleted() const { return deleted_; }  // complete files deleted so far
  // Returns the files of the kind kComplete, the oldest first, without unreadable files.
  std::vector<FileNames::Name> CompleteFiles() const;
  // Returns whether the name of a complete file has this time.
  bool HasFileOfTime(std::string_view time) const;

  // Deletes the oldest files until `file` may grow by `more` bytes. Fails with OutOfRange if the
  // file alone would exceed keep_bytes. Fails with ResourceExhausted if no file is left to delete,
  // and with another error if a file cannot be deleted.
  absl::Status MakeRoom(const PartialFile& file, std::size_t more);
  // Deletes the oldest files until one more file may be completed.
  absl::Status MakeRoomForFile();
  // Deletes the files that are older than keep_age.
  absl::Status DeleteAged();

  // Returns the strays that the last Refresh found and RemoveStray has not deleted. A stray is an
  // unfinished file that another process is writing or has left behind.
  const std::vector<FileDirectory::Entry>& strays() const { return strays_; }
  // Deletes a stray and removes it from the list.
  absl::Status RemoveStray(const FileNames::Name& name);

 private:
  struct File {
    FileNames::Name name;
    std::uint64_t bytes = 0;   // size, rounded up to whole blocks
    absl::Duration completed;  // base::Uptime() when the file was completed
  };

  absl::Status DeleteOldest();

  const FilesSettings* settings_;
  const FileDirectory* directory_;
  std::deque<File> files_;  // complete files, the oldest first
  std::vector<FileDirectory::Entry> strays_;
  std::uint64_t bytes_ = 0;
  std::uint64_t deleted_ = 0;
};

}  // namespace output

#endif  // TOOLS_OUTPUT_KEPT_FILES_H_
