#include "tools/output/atomic_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"

namespace output {
namespace {

// Remedy if the file is complete, but cannot be moved from its temporary name to its path.
constexpr char kGone[] = "check that its directory still exists, or choose another path";
constexpr mode_t kAccessBits = 0777;
constexpr mode_t kOwnerBits = 0700;

// Returns a random file name, so that no other user can create a file of this name before this
// process does.
absl::StatusOr<std::string> UnguessableName() {
  std::array<std::byte, 16> random;
  if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    return absl::ErrnoToStatus(errno, "cannot get random numbers");
  }
  return absl::StrCat(".nettrace-", base::FormatHex(random), ".tmp");
}

// Returns the path of an open file in /proc. By this path, linkat can give a name to a file that
// has none.
std::string PathOfDescriptor(int fd) { return absl::StrCat("/proc/self/fd/", fd); }

void SetAccess(int fd, const FileAccess& access) {
  constexpr uid_t kUnchanged = static_cast<uid_t>(-1);
  mode_t mode = access.mode;
  const bool owned =
      (!access.owner && !access.group) ||
      fchown(fd, access.owner.value_or(kUnchanged), access.group.value_or(kUnchanged)) == 0;
  if (!owned && (!access.group || fchown(fd, kUnchanged, *access.group) != 0)) {
    const mode_t both = mode >> 3 & mode & 07;
    mode = (mode & kOwnerBits) | both << 3 | both;
  }
  // An error is ignored: fchmod fails on file systems without modes, where no mode can be set.
  fchmod(fd, mode);
}

// Opens the folder of `path`, and sets `*name` to the last part of the path.
absl::StatusOr<base::UniqueFd> OpenFolderOf(const std::string& path, std::string* name) {
  const std::size_t slash = path.rfind('/');
  *name = path.substr(slash + 1);  // the whole path if it has no slash, because npos + 1 is 0
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  base::UniqueFd fd(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "cannot be created");
  return fd;
}

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

// Opens the folder `path`, which is relative to `at`, to list it. Returns null if it cannot be
// read.
Directory OpenDirectory(int at, const char* path) {
  const int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const directory = fd < 0 ? nullptr : fdopendir(fd);
  if (fd >= 0 && directory == nullptr) close(fd);
  return Directory(directory);
}

// Returns the next name in the directory except "." and "..". Returns null at the end of the
// directory and after an error.
const char* NextName(DIR* directory) {
  while (const dirent* const entry = readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") return entry->d_name;
  }
  return nullptr;
}

// Removes the contents of an open folder, with all folders in it.
void RemoveContents(int folder) {
  const Directory directory = OpenDirectory(folder, ".");
  if (directory == nullptr) return;
  while (const char* const name = NextName(directory.get())) {
    if (unlinkat(folder, name, 0) == 0) continue;
    const base::UniqueFd inner(
        openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!inner.valid()) continue;
    RemoveContents(inner.get());
    unlinkat(folder, name, AT_REMOVEDIR);
  }
}

// Opens a folder in the folder `at`, and creates it if it does not exist.
absl::StatusOr<base::UniqueFd> OpenInner(int at, const std::string& name) {
  if (mkdirat(at, name.c_str(), kOwnerBits) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, absl::StrCat(name, " cannot be created"));
  }
  base::UniqueFd fd(openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, absl::StrCat(name, " cannot be opened"));
  return fd;
}

// Sets the access to all files below an open folder, and to the folder itself: users that may read
// the files may also enter the folder.
void SetTreeAccess(int folder, const FileAccess& access) {
  const Directory directory = OpenDirectory(folder, ".");
  while (const char* const name = directory == nullptr ? nullptr : NextName(directory.get())) {
    const base::UniqueFd fd(openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    struct stat facts = {};
    if (!fd.valid() || fstat(fd.get(), &facts) != 0) continue;
    if (S_ISDIR(facts.st_mode)) {
      SetTreeAccess(fd.get(), access);
    } else {
      SetAccess(fd.get(), access);
    }
  }
  FileAccess folder_access = access;
  folder_access.mode |= (access.mode & 0444) >> 2;
  SetAccess(folder, folder_access);
}

}  // namespace

FileAccess AccessToAll(std::span<const struct stat> files) {
  FileAccess access;
  for (const struct stat& file : files) {
    if (!S_ISREG(file.st_mode)) return FileAccess();
    if (&file == &files.front()) {
      access = {file.st_mode & kAccessBits, file.st_uid, file.st_gid};
    } else if (access.owner != file.st_uid || access.group != file.st_gid) {
      return FileAccess();
    }
    access.mode &= file.st_mode;
  }
  return access;
}

AtomicFile::AtomicFile(const std::string& path) : path_(path) {}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) unlinkat(folder_.get(), temporary_.c_str(), 0);
}

absl::Status AtomicFile::CreateTemporary() {
  ASSIGN_OR_RETURN(folder_, OpenFolderOf(path_, &name_));
  // Creates a file without a name, if the file system supports that and /proc is mounted, because
  // Keep() names the file through /proc. Otherwise creates a file with a random name.
  int fd = -1;
  if (access("/proc/self/fd", X_OK) == 0) {
    fd = openat(folder_.get(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, kPrivateMode);
  }
  if (fd < 0) {
    ASSIGN_OR_RETURN(std::string name, UnguessableName());
    fd = openat(folder_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                kPrivateMode);
    if (fd < 0) return absl::ErrnoToStatus(errno, "cannot be created");
    temporary_ = std::move(name);
  }
  temporary_fd_ = base::UniqueFd(fd);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<nettrace::FdSink>> AtomicFile::Create(const FileAccess& access) {
  // The rename in Keep would replace a device such as /dev/null by a file.
  struct stat facts = {};
  if (stat(path_.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode)) {
    return absl::FailedPreconditionError(
        "is not a regular file, so it cannot be replaced; choose another path");
  }
  RETURN_IF_ERROR(CreateTemporary());
  SetAccess(temporary_fd_.get(), access);
  const int fd = fcntl(temporary_fd_.get(), F_DUPFD_CLOEXEC, 3);
  if (fd < 0) return absl::ErrnoToStatus(errno, "cannot be written");
  return std::make_unique<nettrace::FdSink>(fd, "the file");
}

absl::Status AtomicFile::Keep() {
  if (temporary_.empty()) {
    // linkat cannot replace a file at the path. The file therefore first gets a temporary name, and
    // renameat then replaces the file at the path.
    ASSIGN_OR_RETURN(std::string name, UnguessableName());
    if (linkat(AT_FDCWD, PathOfDescriptor(temporary_fd_.get()).c_str(), folder_.get(), name.c_str(),
               AT_SYMLINK_FOLLOW) != 0) {
      return base::ErrnoStatus(errno, "the complete file cannot be placed in its directory", kGone);
    }
    temporary_ = std::move(name);
  }
  if (renameat(folder_.get(), temporary_.c_str(), folder_.get(), name_.c_str()) != 0) {
    return base::ErrnoStatus(errno, "the complete file cannot be renamed to its final path", kGone);
  }
  temporary_.clear();
  return absl::OkStatus();
}

AtomicFolder::AtomicFolder(const std::string& path) : path_(path) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
}

AtomicFolder::~AtomicFolder() { Remove(); }

void AtomicFolder::Remove() {
  if (temporary_.empty()) return;
  RemoveContents(folder_.get());
  unlinkat(parent_.get(), temporary_.c_str(), AT_REMOVEDIR);
}

absl::Status AtomicFolder::Create(const FileAccess& access) {
  access_ = access;
  struct stat facts = {};
  if (lstat(path_.c_str(), &facts) == 0) {
    const Directory directory =
        S_ISDIR(facts.st_mode) ? OpenDirectory(AT_FDCWD, path_.c_str()) : nullptr;
    if (directory == nullptr || NextName(directory.get()) != nullptr) {
      return absl::AlreadyExistsError(
          "already exists and is not an empty directory; choose another one, or remove it");
    }
  }
  ASSIGN_OR_RETURN(parent_, OpenFolderOf(path_, &name_));
  ASSIGN_OR_RETURN(std::string name, UnguessableName());
  if (mkdirat(parent_.get(), name.c_str(), kOwnerBits) != 0) {
    return absl::ErrnoToStatus(errno, "cannot be created");
  }
  temporary_ = std::move(name);
  folder_ = base::UniqueFd(
      openat(parent_.get(), temporary_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder_.valid()) return absl::ErrnoToStatus(errno, "cannot be created");
  return absl::OkStatus();
}

absl::Status AtomicFolder::Append(const std::string& name, std::span<const std::byte> bytes) {
  base::UniqueFd inner;
  std::size_t begin = 0;
  for (std::size_t slash = name.find('/'); slash != name.npos; slash = name.find('/', begin)) {
    const int at = inner.valid() ? inner.get() : folder_.get();
    ASSIGN_OR_RETURN(inner, OpenInner(at, name.substr(begin, slash - begin)));
    begin = slash + 1;
  }
  const int at = inner.valid() ? inner.get() : folder_.get();
  const char* const last = name.c_str() + begin;
  int fd = openat(at, last, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) {
    fd = openat(at, last, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, kPrivateMode);
  }
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat(name, " cannot be created"));
  nettrace::FdSink file(fd, absl::StrCat("the file ", name));
  std::size_t taken = 0;
  return file.Append(bytes, &taken);
}

absl::Status AtomicFolder::Keep() {
  SetTreeAccess(folder_.get(), access_);
  // renameat replaces a folder at the path if it is empty, and fails otherwise.
  if (renameat(parent_.get(), temporary_.c_str(), parent_.get(), name_.c_str()) != 0) {
    return base::ErrnoStatus(errno, "the complete directory cannot be renamed to its final path",
                             "remove what is at its path, or choose another path");
  }
  temporary_.clear();
  return absl::OkStatus();
}

}  // namespace output
