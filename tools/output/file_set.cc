#include "tools/output/file_set.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tools/base/file_lock.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/status_macros.h"

namespace output {
namespace {

constexpr mode_t kDirectoryMode = 0750;

bool IsSameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Creates a directory and its missing parents.
absl::Status CreateDirectory(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), kDirectoryMode) != 0 && errno != EEXIST && errno != EROFS) {
      return base::ErrnoStatus(errno, absl::StrCat("cannot create ", part));
    }
    if (end == std::string::npos) return absl::OkStatus();
  }
}

// Reads the attributes of the regular file `name`. Returns false if there is none of that name.
bool FindFile(int directory, const std::string& name, struct stat* file) {
  return fstatat(directory, name.c_str(), file, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(file->st_mode);
}

base::UniqueFd Duplicate(const base::UniqueFd& fd) {
  return base::UniqueFd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
}

// Returns the bytes that keep_free_bytes means on this file system.
std::uint64_t BytesToKeepFree(std::uint64_t setting, const struct statvfs& system) {
  constexpr std::uint64_t kMost = std::uint64_t{2} << 30;
  constexpr std::uint64_t kPart = 20;
  if (setting != FilesSettings::kKeepFreePart) return setting;
  return std::min(kMost, std::uint64_t{system.f_blocks} * system.f_frsize / kPart);
}

// Returns `time` with the next microsecond; after the last one of a second, the first one.
std::string NextTime(const std::string& time) {
  std::string next = time;
  for (std::size_t i = next.size(); i-- > 0;) {
    if (next[i] == '.') break;
    if (next[i] == 'Z') continue;
    if (next[i] != '9') {
      ++next[i];
      break;
    }
    next[i] = '0';
  }
  return next;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileSet>> FileSet::Create(const FilesSettings& settings,
                                                         std::string_view session,
                                                         bool compressed) {
  absl::StatusOr<FileNames> names = FileNames::Create(settings.name, session);
  if (!names.ok()) return names.status();
  if (settings.directory.empty())
    return absl::InvalidArgumentError("no directory for the files is set");
  std::unique_ptr<FileSet> files(new FileSet(settings, *std::move(names), compressed));
  files->Tell(files->OpenDirectory()).IgnoreError();
  return files;
}

absl::Status FileSet::Tell(absl::Status status) {
  if (!status.ok()) {
    const std::lock_guard lock(mutex_);
    state_.error = status;
    state_.error_time = absl::Now();
  }
  UpdateState();
  return status;
}

void FileSet::UpdateState() {
  const std::lock_guard lock(mutex_);
  state_.current_file = file_.valid() ? PathOf(file_name_) : "";
  state_.files = kept_.size();
  state_.file_bytes = kept_bytes_ + StrayBytes() + (file_.valid() ? InBlocks(size_) : 0);
}

FilesState FileSet::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

void FileSet::CountDiscarded(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  state_.discarded += bytes;
}

std::string FileSet::PathOf(const FileNames::Name& name) const {
  return absl::StrCat(settings_.directory, "/", names_.Format(name));
}

std::uint64_t FileSet::InBlocks(std::uint64_t bytes) const {
  return (bytes + block_size_ - 1) / block_size_ * block_size_;
}

absl::Status FileSet::OpenDirectory() {
  const std::string& path = settings_.directory;
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  base::UniqueFd directory(open(path.c_str(), kFlags));
  if (!directory.valid() && errno == ENOENT) {
    RETURN_IF_ERROR(CreateDirectory(path));
    directory = base::UniqueFd(open(path.c_str(), kFlags));
  }
  if (!directory.valid()) {
    return base::ErrnoStatus(errno, absl::StrCat("cannot use the directory ", path));
  }
  struct statvfs system = {};
  if (fstatvfs(directory.get(), &system) == 0 && system.f_frsize != 0) {
    block_size_ = system.f_frsize;
  }
  directory_ = std::move(directory);
  return Scan();
}

bool FileSet::IsDirectoryHere() const {
  struct stat opened = {};
  struct stat named = {};
  return directory_.valid() && fstat(directory_.get(), &opened) == 0 &&
         stat(settings_.directory.c_str(), &named) == 0 && IsSameFile(opened, named);
}

absl::Status FileSet::Scan() {
  const std::deque<Kept> before = std::exchange(kept_, {});
  kept_bytes_ = 0;
  strays_.clear();
  const auto cannot_read = [this] {
    return base::ErrnoStatus(errno,
                             absl::StrCat("cannot read the directory ", settings_.directory));
  };
  base::UniqueFd fd(openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fd.valid() ? fdopendir(fd.get()) : nullptr,
                                                    closedir);
  if (entries == nullptr) return cannot_read();
  fd.release();
  errno = 0;
  while (const dirent* const entry = readdir(entries.get())) {
    const std::optional<FileNames::Name> name = names_.Parse(entry->d_name);
    struct stat file = {};
    if (!name || !FindFile(directory_.get(), entry->d_name, &file)) continue;
    const std::uint64_t bytes = InBlocks(static_cast<std::uint64_t>(file.st_size));
    if (name->kind == FileNames::Kind::kPartial || name->kind == FileNames::Kind::kRepairing) {
      const bool is_own = file_.valid() && *name == file_name_ && IsFileHere();
      if (!is_own) strays_.push_back({*name, bytes});
      continue;
    }
    const absl::Duration age =
        std::max(absl::Now() - absl::TimeFromTimespec(file.st_mtim), absl::ZeroDuration());
    const auto known =
        absl::c_find_if(before, [&](const Kept& kept) { return kept.name == *name; });
    kept_.push_back(
        {*name, bytes, known == before.end() ? base::Uptime() - age : known->completed});
    kept_bytes_ += bytes;
    errno = 0;
  }
  if (errno != 0) return cannot_read();
  absl::c_stable_sort(kept_,
                      [](const Kept& a, const Kept& b) { return a.name.time < b.name.time; });
  return absl::OkStatus();
}

std::uint64_t FileSet::StrayBytes() const {
  std::uint64_t bytes = 0;
  for (const Stray& stray : strays_) bytes += stray.bytes;
  return bytes;
}

absl::Duration FileSet::age() const { return base::Uptime() - begun_; }

absl::Status FileSet::Begin() {
  if (!IsDirectoryHere()) {
    if (absl::Status status = OpenDirectory(); !status.ok()) return Tell(std::move(status));
  }
  FileNames::Name name = {FileNames::TimeText(absl::Now()), compressed_, FileNames::Kind::kPartial};
  return Tell(CreateFile(std::move(name)));
}

absl::Status FileSet::BeginRepair(const FileNames::Name& stray) {
  FileNames::Name name = stray;
  name.kind = FileNames::Kind::kRepairing;
  // Removes a copy that an earlier repair did not finish, unless another process is writing it.
  const absl::StatusOr<base::UniqueFd> left = OpenStray(name);
  if (absl::IsAborted(left.status())) return left.status();
  if (absl::Status status = RemoveStray(name); !status.ok()) return status;
  return Tell(CreateFile(std::move(name)));
}

absl::Status FileSet::CreateFile(FileNames::Name name) {
  constexpr int kAttempts = 10'000;
  const bool is_fixed = name.kind == FileNames::Kind::kRepairing;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const bool is_used =
        !is_fixed && (name.time == last_time_ || absl::c_any_of(kept_, [&](const Kept& kept) {
                        return kept.name.time == name.time;
                      }));
    const std::string text = names_.Format(name);
    base::UniqueFd file;
    if (!is_used) {
      file = base::UniqueFd(openat(directory_.get(), text.c_str(),
                                   O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                   settings_.mode & 0600));
      if (!file.valid() && errno != EEXIST) {
        return base::ErrnoStatus(errno, absl::StrCat("cannot create ", PathOf(name)));
      }
    }
    // Before the file is locked, another daemon may remove or rename it as one that was left
    // behind.
    if (file.valid() && base::ClaimFile(file.get())) {
      file_ = std::move(file);
      file_name_ = name;
      file_directory_ = Duplicate(directory_);
      size_ = 0;
      begun_ = base::Uptime();
      if (IsFileHere()) {
        // From here on readers can open the file, which is already locked. A copy stays private
        // until it is whole, because its lock must keep a second repair out. Unlike open, fchmod
        // ignores the umask. It fails if the file system has no modes.
        if (!is_fixed) fchmod(file_.get(), settings_.mode);
        last_time_ = name.time;
        return absl::OkStatus();
      }
      file_.reset();
    }
    if (is_fixed) break;
    name.time = NextTime(name.time);
  }
  return absl::UnavailableError(
      absl::StrCat("cannot create ", PathOf(name), ": it already exists"));
}

bool FileSet::IsFileHere() const {
  struct stat opened = {};
  struct stat named = {};
  return fstat(file_.get(), &opened) == 0 &&
         FindFile(directory_.get(), names_.Format(file_name_), &named) && IsSameFile(opened, named);
}

absl::Status FileSet::WriteBytes(std::span<const std::byte> bytes, std::size_t* taken) {
  while (*taken < bytes.size()) {
    const ssize_t written = pwrite(file_.get(), bytes.data() + *taken, bytes.size() - *taken,
                                   static_cast<off_t>(size_));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = written < 0 ? errno : EIO;
      return base::ErrnoStatus(error, absl::StrCat("cannot write ", PathOf(file_name_)));
    }
    *taken += static_cast<std::size_t>(written);
    size_ += static_cast<std::uint64_t>(written);
  }
  return absl::OkStatus();
}

absl::Status FileSet::Append(std::span<const std::byte> bytes, std::size_t* taken) {
  *taken = 0;
  if (!file_.valid()) return absl::FailedPreconditionError("there is no file to write to");
  if (absl::Status status = MakeRoom(bytes.size()); !status.ok()) return Tell(std::move(status));
  absl::Status status = WriteBytes(bytes, taken);
  {
    const std::lock_guard lock(mutex_);
    state_.bytes += *taken;
  }
  return Tell(std::move(status));
}

absl::Status FileSet::MakeRoom(std::size_t more) {
  const std::uint64_t size = InBlocks(size_ + more);
  const std::uint64_t bound = settings_.keep_bytes;
  if (bound != 0 && size > bound) {
    return absl::OutOfRangeError(absl::StrCat(PathOf(file_name_),
                                              " alone is larger than keep_bytes, ", bound,
                                              "; raise keep_bytes or use smaller files"));
  }
  while (bound != 0 && kept_bytes_ + StrayBytes() + size > bound) {
    if (kept_.empty()) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "incomplete files of the session in ", settings_.directory, " use up keep_bytes, ", bound,
          "; raise keep_bytes, or move these files away"));
    }
    RETURN_IF_ERROR(DeleteOldest());
  }
  if (settings_.keep_free_bytes == 0) return absl::OkStatus();
  struct statvfs system = {};
  // If the free space is unknown, the file may grow.
  if (fstatvfs(file_directory_.get(), &system) != 0) return absl::OkStatus();
  // Some file systems free the blocks of a file later, so deleted bytes are counted as free here.
  std::uint64_t free = std::uint64_t{system.f_bavail} * system.f_frsize;
  const std::uint64_t kept_free = BytesToKeepFree(settings_.keep_free_bytes, system);
  const std::uint64_t needed = kept_free + size - InBlocks(size_);
  while (free < needed) {
    if (kept_.empty()) {
      // The message has no number that changes between attempts.
      return absl::ResourceExhaustedError(
          absl::StrCat("the file system of ", settings_.directory, " has less than ", kept_free,
                       " bytes left, which keep_free_bytes reserves; free some space, or lower "
                       "keep_free_bytes"));
    }
    free += kept_.front().bytes;
    RETURN_IF_ERROR(DeleteOldest());
  }
  return absl::OkStatus();
}

absl::Status FileSet::DeleteOldest() {
  const Kept& oldest = kept_.front();
  const std::string name = names_.Format(oldest.name);
  struct stat file = {};
  if (FindFile(directory_.get(), name, &file)) {
    if (unlinkat(directory_.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
      return base::ErrnoStatus(errno, absl::StrCat("cannot delete ", PathOf(oldest.name)));
    }
    const std::lock_guard lock(mutex_);
    ++state_.deleted;
  }
  kept_bytes_ -= oldest.bytes;
  kept_.pop_front();
  return absl::OkStatus();
}

absl::Status FileSet::DeleteAged() {
  const absl::Duration now = base::Uptime();
  while (!kept_.empty() && now - kept_.front().completed > settings_.keep_age) {
    RETURN_IF_ERROR(DeleteOldest());
  }
  return absl::OkStatus();
}

absl::Status FileSet::Check() {
  if (!IsDirectoryHere()) {
    if (absl::Status status = OpenDirectory(); !status.ok()) return Tell(std::move(status));
  }
  if (file_.valid() && !IsFileHere()) {
    if (absl::Status status = MoveFile(); !status.ok()) return Tell(std::move(status));
  }
  return Tell(DeleteAged());
}

absl::Status FileSet::MoveFile() {
  base::UniqueFd old_file = std::move(file_);
  base::UniqueFd old_directory = std::move(file_directory_);
  const FileNames::Name old_name = file_name_;
  const std::uint64_t old_size = size_;
  const absl::Duration begun = begun_;
  FileNames::Name name = old_name;
  last_time_.clear();
  absl::Status status = CreateFile(std::move(name));
  if (status.ok()) {
    Tell(absl::NotFoundError(absl::StrCat(PathOf(old_name),
                                          " was removed, renamed or unmounted; the session copies "
                                          "its content to, and continues in, ",
                                          PathOf(file_name_))))
        .IgnoreError();
    status = CopyFrom(old_file.get(), old_size);
    if (!status.ok()) Abandon();
  }
  begun_ = begun;
  if (!status.ok()) {
    file_ = std::move(old_file);
    file_directory_ = std::move(old_directory);
    file_name_ = old_name;
    size_ = old_size;
    return status;
  }
  // The file still has its old name if the directory was renamed.
  struct stat opened = {};
  struct stat named = {};
  const std::string text = names_.Format(old_name);
  if (fstat(old_file.get(), &opened) == 0 && FindFile(old_directory.get(), text, &named) &&
      IsSameFile(opened, named)) {
    unlinkat(old_directory.get(), text.c_str(), 0);
  }
  return absl::OkStatus();
}

absl::Status FileSet::CopyFrom(int fd, std::uint64_t size) {
  constexpr std::size_t kBuffer = 128 << 10;
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kBuffer);
  while (size_ < size) {
    const std::size_t wanted = std::min<std::uint64_t>(kBuffer, size - size_);
    const ssize_t got = pread(fd, buffer.get(), wanted, static_cast<off_t>(size_));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      return absl::DataLossError(
          absl::StrCat("the first ", size, " bytes of ", PathOf(file_name_),
                       " cannot be copied from the previous file, and are lost"));
    }
    const std::span<const std::byte> bytes(buffer.get(), static_cast<std::size_t>(got));
    std::size_t taken = 0;
    RETURN_IF_ERROR(MakeRoom(bytes.size()));
    RETURN_IF_ERROR(WriteBytes(bytes, &taken));
  }
  return absl::OkStatus();
}

void FileSet::Sync() {
  if (!file_.valid()) return;
  while (fdatasync(file_.get()) != 0) {
    if (errno == EINTR) continue;
    // The file system does not support syncing this file.
    if (errno == EINVAL || errno == EROFS) return;
    Tell(base::ErrnoStatus(errno, absl::StrCat("cannot sync ", PathOf(file_name_)),
                           "data written to it earlier may be lost"))
        .IgnoreError();
    return;
  }
}

absl::Status FileSet::Rename(const FileNames::Name& from, FileNames::Name* to) {
  const std::string old_name = names_.Format(from);
  constexpr int kAttempts = 10'000;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::string name = names_.Format(*to);
    int result = renameat2(directory_.get(), old_name.c_str(), directory_.get(), name.c_str(),
                           RENAME_NOREPLACE);
    if (result != 0 && (errno == EINVAL || errno == ENOSYS)) {
      // Some file systems do not support this flag.
      struct stat there = {};
      if (fstatat(directory_.get(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0) {
        errno = EEXIST;
      } else {
        result = renameat(directory_.get(), old_name.c_str(), directory_.get(), name.c_str());
      }
    }
    if (result == 0) return absl::OkStatus();
    if (errno != EEXIST) {
      return base::ErrnoStatus(errno, absl::StrCat("cannot rename ", PathOf(from)));
    }
    to->time = NextTime(to->time);
  }
  return absl::AlreadyExistsError(
      absl::StrCat("cannot rename ", PathOf(from), ": all names that were tried exist"));
}

absl::StatusOr<std::string> FileSet::Complete() {
  if (!file_.valid())
    return absl::FailedPreconditionError("no file is being written, so none can be completed");
  RETURN_IF_ERROR(Check());
  while (settings_.keep_files != 0 && !kept_.empty() && kept_.size() >= settings_.keep_files) {
    if (absl::Status status = DeleteOldest(); !status.ok()) return Tell(std::move(status));
  }
  if (settings_.sync != SyncPolicy::kOff) Sync();
  FileNames::Name name = file_name_;
  name.kind = FileNames::Kind::kComplete;
  if (absl::Status status = Rename(file_name_, &name); !status.ok()) return Tell(std::move(status));
  if (settings_.sync != SyncPolicy::kOff) fsync(directory_.get());
  kept_.push_back({name, InBlocks(size_), base::Uptime()});
  kept_bytes_ += kept_.back().bytes;
  last_time_ = std::max(last_time_, name.time);
  file_.reset();
  file_directory_.reset();
  UpdateState();
  return PathOf(name);
}

absl::StatusOr<std::string> FileSet::CompleteRepair() {
  FileNames::Name stray = file_name_;
  stray.kind = FileNames::Kind::kPartial;
  if (fdatasync(file_.get()) != 0 && errno != EINVAL && errno != EROFS) {
    return Tell(base::ErrnoStatus(errno, absl::StrCat("cannot sync ", PathOf(file_name_))));
  }
  fchmod(file_.get(), settings_.mode);
  if (renameat(directory_.get(), names_.Format(file_name_).c_str(), directory_.get(),
               names_.Format(stray).c_str()) != 0) {
    return Tell(base::ErrnoStatus(errno, absl::StrCat("cannot rename ", PathOf(file_name_))));
  }
  const base::UniqueFd claimed = std::move(file_);
  file_directory_.reset();
  return RenameStray(stray, FileNames::Kind::kComplete);
}

void FileSet::Abandon() {
  if (!file_.valid()) return;
  if (IsFileHere()) unlinkat(directory_.get(), names_.Format(file_name_).c_str(), 0);
  file_.reset();
  file_directory_.reset();
  UpdateState();
}

absl::StatusOr<std::vector<FileSet::Stray>> FileSet::FindStrays() {
  RETURN_IF_ERROR(IsDirectoryHere() ? Scan() : OpenDirectory());
  return strays_;
}

absl::StatusOr<base::UniqueFd> FileSet::OpenStray(const FileNames::Name& name) {
  const std::string text = names_.Format(name);
  constexpr int kFlags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  base::UniqueFd file(openat(directory_.get(), text.c_str(), O_RDWR | kFlags));
  if (!file.valid() && (errno == EACCES || errno == EROFS)) {
    file = base::UniqueFd(openat(directory_.get(), text.c_str(), O_RDONLY | kFlags));
  }
  if (!file.valid()) return base::ErrnoStatus(errno, absl::StrCat("cannot open ", PathOf(name)));
  if (!base::ClaimFile(file.get())) {
    return absl::AbortedError(absl::StrCat(PathOf(name), " is being written by another process"));
  }
  // The former owner of the lock may have completed the file in the meantime.
  struct stat opened = {};
  struct stat named = {};
  if (fstat(file.get(), &opened) != 0 || !FindFile(directory_.get(), text, &named) ||
      !IsSameFile(opened, named)) {
    return absl::AbortedError(absl::StrCat(PathOf(name), " no longer exists"));
  }
  return file;
}

absl::Status FileSet::RemoveStray(const FileNames::Name& name) {
  if (unlinkat(directory_.get(), names_.Format(name).c_str(), 0) != 0 && errno != ENOENT) {
    return Tell(base::ErrnoStatus(errno, absl::StrCat("cannot remove ", PathOf(name))));
  }
  std::erase_if(strays_, [&](const Stray& stray) { return stray.name == name; });
  UpdateState();
  return absl::OkStatus();
}

absl::StatusOr<std::string> FileSet::RenameStray(const FileNames::Name& name,
                                                 FileNames::Kind kind) {
  FileNames::Name to = name;
  to.kind = kind;
  if (absl::Status status = Rename(name, &to); !status.ok()) return Tell(std::move(status));
  RETURN_IF_ERROR(Tell(Scan()));
  return PathOf(to);
}

}  // namespace output
