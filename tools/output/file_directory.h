// The directory of a session's files: lists the files, and creates, locks, renames and deletes
// files by name.
#ifndef TOOLS_OUTPUT_FILE_DIRECTORY_H_
#define TOOLS_OUTPUT_FILE_DIRECTORY_H_

#include <sys/types.h>

#include <cstdint>
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
#include "tools/output/partial_file.h"

namespace output {

// The directory in which a session writes. The files of the session are the regular files whose
// names match the template. Symbolic links and other files are ignored. Only Replace, and on some
// file systems Rename, can replace an existing file.
class FileDirectory {
 public:
  // Fails with InvalidArgument if the template is invalid or no directory is set.
  static absl::StatusOr<FileDirectory> Create(const FilesSettings& settings,
                                              std::string_view session);

  // Opens the directory at its path. Creates the directory and its missing parents if it does not
  // exist. Must succeed before the functions that use files are called.
  absl::Status Open();
  // Returns whether the directory is open and still at its path.
  bool IsHere() const;
  int fd() const { return fd_.get(); }
  std::string PathFor(const FileNames::Name& name) const;
  // Returns `bytes`, the size of a file, rounded up to whole blocks of the file system.
  std::uint64_t InBlocks(std::uint64_t bytes) const;

  struct Entry {
    FileNames::Name name;
    std::uint64_t bytes = 0;  // size, rounded up to whole blocks
    absl::Time changed;       // time of the last modification
  };
  // Returns the session's files, in any order. Fails if the directory cannot be read.
  absl::StatusOr<std::vector<Entry>> List() const;
  bool Contains(const FileNames::Name& name) const;

  // Creates an empty file, locks it, and then gives it `mode`, except a file of the kind
  // kRepairing, which stays private. Fails with AlreadyExists if the name is in use, or if another
  // process removed or renamed the file before it was locked. Fails with another error if no file
  // can be created.
  absl::StatusOr<PartialFile> CreateFile(const FileNames::Name& name, mode_t mode) const;
  // Opens and locks a file that an earlier process left behind, so that it can be read. Fails with
  // Aborted if another writer has locked the file, or if the file was removed or renamed before it
  // was locked. Fails with another error if the file cannot be opened.
  absl::StatusOr<base::UniqueFd> Claim(const FileNames::Name& name) const;
  // Deletes a file. Succeeds if the file does not exist. Messages of errors begin with "cannot
  // `verb` PATH".
  absl::Status Remove(const FileNames::Name& name, const char* verb = "remove") const;
  // Renames a file to `*to`. As long as a file of that name exists, changes `*to` to a later time
  // and tries again. Fails with AlreadyExists after 10,000 names. If the file system does not
  // support RENAME_NOREPLACE, a file that another process creates during the call may be replaced.
  absl::Status Rename(const FileNames::Name& from, FileNames::Name* to) const;
  // Renames a file, which replaces a file that has the name `to`.
  absl::Status Replace(const FileNames::Name& from, const FileNames::Name& to) const;

 private:
  FileDirectory(std::string path, FileNames names)
      : path_(std::move(path)), names_(std::move(names)) {}

  std::string path_;
  FileNames names_;
  base::UniqueFd fd_;
  // Bytes of a block of the file system; 4096 if the file system does not report it.
  std::uint64_t block_size_ = 4096;
};

}  // namespace output

#endif  // TOOLS_OUTPUT_FILE_DIRECTORY_H_
