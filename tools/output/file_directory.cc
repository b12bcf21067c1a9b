#include "tools/output/file_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "tools/base/file_lock.h"
#include "tools/base/status_macros.h"

namespace output {
namespace {

constexpr mode_t kDirectoryMode = 0750;
constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

// Creates a directory and its missing parents.
absl::Status CreateDirectory(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    // On a read-only file system, mkdir may fail with EROFS although the directory exists, so this
    // error is ignored.
    if (mkdir(part.c_str(), kDirectoryMode) != 0 && errno != EEXIST && errno != EROFS) {
      return base::ErrnoStatus(
          errno, absl::StrCat("cannot create ", part),
          "set another `directory`, or let the daemon's user write to its parent");
    }
    if (end == std::string::npos) return absl::OkStatus();
  }
}

// Reads the attributes of the regular file `name`. Returns false if the directory has no regular
// file of that name.
bool FindFile(int directory, const char* name, struct stat* file) {
  return fstatat(directory, name, file, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(file->st_mode);
}

// Renames a file unless a file `to` exists. Returns a result and sets errno like renameat2.
int RenameNoReplace(int directory, const std::string& from, const std::string& to) {
  const int result = renameat2(directory, from.c_str(), directory, to.c_str(), RENAME_NOREPLACE);
  // Some file systems do not support RENAME_NOREPLACE. For these, tests whether `to` exists,
  // although another process may create it between the test and the rename.
  if (result == 0 || (errno != EINVAL && errno != ENOSYS)) return result;
  struct stat there = {};
  if (fstatat(directory, to.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0) {
    return renameat(directory, from.c_str(), directory, to.c_str());
  }
  errno = EEXIST;
  return -1;
}

}  // namespace

absl::StatusOr<FileDirectory> FileDirectory::Create(const FilesSettings& settings,
                                                    std::string_view session) {
  ASSIGN_OR_RETURN(FileNames names, FileNames::Create(settings.name, session));
  if (settings.directory.empty())
    return absl::InvalidArgumentError("no directory for the files is set; set `directory`");
  return FileDirectory(settings.directory, std::move(names));
}

absl::Status FileDirectory::Open() {
  base::UniqueFd directory(open(path_.c_str(), kOpenDirectory));
  if (!directory.valid() && errno == ENOENT) {
    RETURN_IF_ERROR(CreateDirectory(path_));
    directory = base::UniqueFd(open(path_.c_str(), kOpenDirectory));
  }
  if (!directory.valid()) {
    return base::ErrnoStatus(errno, absl::StrCat("cannot use the directory ", path_),
                             "set another `directory`, or give the daemon's user access to it");
  }
  struct statvfs system = {};
  if (fstatvfs(directory.get(), &system) == 0 && system.f_frsize != 0) {
    block_size_ = system.f_frsize;
  }
  fd_ = std::move(directory);
  return absl::OkStatus();
}

bool FileDirectory::IsHere() const {
  struct stat opened = {};
  struct stat named = {};
  return fd_.valid() && fstat(fd_.get(), &opened) == 0 && stat(path_.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

std::string FileDirectory::PathFor(const FileNames::Name& name) const {
  return absl::StrCat(path_, "/", names_.Format(name));
}

std::uint64_t FileDirectory::InBlocks(std::uint64_t bytes) const {
  return (bytes + block_size_ - 1) / block_size_ * block_size_;
}

absl::StatusOr<std::vector<FileDirectory::Entry>> FileDirectory::List() const {
  const auto error = [this] {
    return base::ErrnoStatus(errno, absl::StrCat("cannot read the directory ", path_));
  };
  base::UniqueFd fd(openat(fd_.get(), ".", kOpenDirectory));
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fd.valid() ? fdopendir(fd.get()) : nullptr,
                                                   closedir);
  if (stream == nullptr) return error();
  fd.release();
  std::vector<Entry> entries;
  errno = 0;
  while (const dirent* const entry = readdir(stream.get())) {
    const std::optional<FileNames::Name> name = names_.Parse(entry->d_name);
    struct stat file = {};
    if (name && FindFile(fd_.get(), entry->d_name, &file)) {
      entries.push_back({*name, InBlocks(static_cast<std::uint64_t>(file.st_size)),
                         absl::TimeFromTimespec(file.st_mtim)});
    }
    errno = 0;
  }
  if (errno != 0) return error();
  return entries;
}

bool FileDirectory::Contains(const FileNames::Name& name) const {
  struct stat file = {};
  return FindFile(fd_.get(), names_.Format(name).c_str(), &file);
}

absl::StatusOr<PartialFile> FileDirectory::CreateFile(const FileNames::Name& name,
                                                      mode_t mode) const {
  base::UniqueFd fd(openat(fd_.get(), names_.Format(name).c_str(),
                           O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 0600));
  if (!fd.valid() && errno != EEXIST) {
    return base::ErrnoStatus(errno, absl::StrCat("cannot create ", PathFor(name)));
  }
  // Before this process locks the file, another daemon may treat it as a file that was left behind,
  // and remove or rename it. IsIn then returns false.
  if (fd.valid() && base::ClaimFile(fd.get())) {
    PartialFile file(std::move(fd), base::UniqueFd(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 3)), name,
                     PathFor(name));
    if (file.IsIn(fd_.get())) {
      // The mode permits other users to open the file only now, after it is locked. The copy of a
      // repair stays private: RecoverFiles sets its mode when the copy is complete.
      if (name.kind != FileNames::Kind::kRepairing) file.SetMode(mode);
      return file;
    }
  }
  return absl::AlreadyExistsError(
      absl::StrCat("cannot create ", PathFor(name), ": it already exists"));
}

absl::StatusOr<base::UniqueFd> FileDirectory::Claim(const FileNames::Name& name) const {
  const std::string text = names_.Format(name);
  constexpr int kFlags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  base::UniqueFd file(openat(fd_.get(), text.c_str(), O_RDWR | kFlags));
  if (!file.valid() && (errno == EACCES || errno == EROFS)) {
    file = base::UniqueFd(openat(fd_.get(), text.c_str(), O_RDONLY | kFlags));
  }
  if (!file.valid()) return base::ErrnoStatus(errno, absl::StrCat("cannot open ", PathFor(name)));
  if (!base::ClaimFile(file.get())) {
    return absl::AbortedError(absl::StrCat(PathFor(name), " is being written by another process"));
  }
  // The previous owner of the lock may have completed and renamed the file before this process took
  // the lock.
  if (!IsFileAt(file.get(), fd_.get(), text.c_str())) {
    return absl::AbortedError(absl::StrCat(PathFor(name), " no longer exists"));
  }
  return file;
}

absl::Status FileDirectory::Remove(const FileNames::Name& name, const char* verb) const {
  if (unlinkat(fd_.get(), names_.Format(name).c_str(), 0) == 0 || errno == ENOENT) {
    return absl::OkStatus();
  }
  return base::ErrnoStatus(errno, absl::StrCat("cannot ", verb, " ", PathFor(name)));
}

absl::Status FileDirectory::Rename(const FileNames::Name& from, FileNames::Name* to) const {
  constexpr int kAttempts = 10'000;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (RenameNoReplace(fd_.get(), names_.Format(from), names_.Format(*to)) == 0) {
      return absl::OkStatus();
    }
    if (errno != EEXIST) {
      return base::ErrnoStatus(errno, absl::StrCat("cannot rename ", PathFor(from)));
    }
    to->time = FileNames::NextTime(to->time);
  }
  return absl::AlreadyExistsError(
      absl::StrCat("cannot rename ", PathFor(from), ": ", kAttempts,
                   " names have been tried, and all are in use; move files out of the directory"));
}

absl::Status FileDirectory::Replace(const FileNames::Name& from, const FileNames::Name& to) const {
  if (renameat(fd_.get(), names_.Format(from).c_str(), fd_.get(), names_.Format(to).c_str()) == 0) {
    return absl::OkStatus();
  }
  return base::ErrnoStatus(errno, absl::StrCat("cannot rename ", PathFor(from)));
}

}  // namespace output
