#include "tools/output/kept_files.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/status_macros.h"

namespace output {
namespace {

// Returns the bytes that must stay free on this file system for the value `setting` of
// keep_free_bytes.
std::uint64_t BytesToKeepFree(std::uint64_t setting, const struct statvfs& system) {
  constexpr std::uint64_t kMost = std::uint64_t{2} << 30;
  constexpr std::uint64_t kPart = 20;
  if (setting != FilesSettings::kKeepFreePart) return setting;
  return std::min(kMost, std::uint64_t{system.f_blocks} * system.f_frsize / kPart);
}

}  // namespace

absl::Status KeptFiles::Refresh(const PartialFile& own) {
  using Kind = FileNames::Kind;
  const std::deque<File> before = std::exchange(files_, {});
  strays_.clear();
  bytes_ = 0;
  ASSIGN_OR_RETURN(std::vector<FileDirectory::Entry> entries, directory_->List());
  for (FileDirectory::Entry& entry : entries) {
    if (entry.name.kind == Kind::kPartial || entry.name.kind == Kind::kRepairing) {
      if (own.valid() && entry.name == own.name() && own.IsIn(directory_->fd())) continue;
      bytes_ += entry.bytes;
      strays_.push_back(std::move(entry));
      continue;
    }
    const auto known =
        absl::c_find_if(before, [&](const File& file) { return file.name == entry.name; });
    const absl::Duration age = std::max(absl::Now() - entry.changed, absl::ZeroDuration());
    bytes_ += entry.bytes;
    files_.push_back({std::move(entry.name), entry.bytes,
                      known == before.end() ? base::Uptime() - age : known->completed});
  }
  absl::c_stable_sort(files_,
                      [](const File& a, const File& b) { return a.name.time < b.name.time; });
  return absl::OkStatus();
}

void KeptFiles::Add(const FileNames::Name& name, std::uint64_t bytes) {
  files_.push_back({name, directory_->InBlocks(bytes), base::Uptime()});
  bytes_ += files_.back().bytes;
}

std::vector<FileNames::Name> KeptFiles::CompleteFiles() const {
  std::vector<FileNames::Name> names;
  for (const File& file : files_) {
    if (file.name.kind == FileNames::Kind::kComplete) names.push_back(file.name);
  }
  return names;
}

bool KeptFiles::HasFileOfTime(std::string_view time) const {
  return absl::c_any_of(files_, [&](const File& file) { return file.name.time == time; });
}

absl::Status KeptFiles::MakeRoom(const PartialFile& file, std::size_t more) {
  const std::uint64_t size = directory_->InBlocks(file.size() + more);
  const std::uint64_t bound = settings_->keep_bytes;
  if (bound != 0 && size > bound) {
    return absl::OutOfRangeError(absl::StrCat(file.path(), " would have ", size,
                                              " bytes, but keep_bytes is ", bound,
                                              "; raise keep_bytes, or lower rotate_bytes or "
                                              "flight.keep_bytes"));
  }
  while (bound != 0 && bytes_ + size > bound) {
    if (files_.empty()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("incomplete files of the session in ", settings_->directory, " use up the ",
                       bound, " bytes of keep_bytes; raise keep_bytes, or move these files away"));
    }
    RETURN_IF_ERROR(DeleteOldest());
  }
  if (settings_->keep_free_bytes == 0) return absl::OkStatus();
  struct statvfs system = {};
  // If the free space cannot be read, the file may grow.
  if (fstatvfs(file.directory(), &system) != 0) return absl::OkStatus();
  // Some file systems free the blocks of a deleted file later. The bytes of each deleted file are
  // therefore added to `free` here, and the free space is not read again.
  std::uint64_t free = std::uint64_t{system.f_bavail} * system.f_frsize;
  const std::uint64_t kept_free = BytesToKeepFree(settings_->keep_free_bytes, system);
  const std::uint64_t needed = kept_free + size - directory_->InBlocks(file.size());
  while (free < needed) {
    if (files_.empty()) {
      // The message contains no number that changes between attempts, so that all attempts have the
      // same message.
      return absl::ResourceExhaustedError(absl::StrCat(
          "the file system of ", settings_->directory, " has less free space than the ", kept_free,
          " bytes that keep_free_bytes reserves; free some space, or lower "
          "keep_free_bytes"));
    }
    free += files_.front().bytes;
    RETURN_IF_ERROR(DeleteOldest());
  }
  return absl::OkStatus();
}

absl::Status KeptFiles::MakeRoomForFile() {
  while (settings_->keep_files != 0 && files_.size() >= settings_->keep_files) {
    RETURN_IF_ERROR(DeleteOldest());
  }
  return absl::OkStatus();
}

absl::Status KeptFiles::DeleteAged() {
  const absl::Duration now = base::Uptime();
  while (!files_.empty() && now - files_.front().completed > settings_->keep_age) {
    RETURN_IF_ERROR(DeleteOldest());
  }
  return absl::OkStatus();
}

absl::Status KeptFiles::DeleteOldest() {
  const File& oldest = files_.front();
  if (directory_->Contains(oldest.name)) {
    RETURN_IF_ERROR(directory_->Remove(oldest.name, "delete"));
    ++deleted_;
  }
  bytes_ -= oldest.bytes;
  files_.pop_front();
  return absl::OkStatus();
}

absl::Status KeptFiles::RemoveStray(const FileNames::Name& name) {
  RETURN_IF_ERROR(directory_->Remove(name));
  std::erase_if(strays_, [&](const FileDirectory::Entry& stray) {
    if (stray.name != name) return false;
    bytes_ -= stray.bytes;
    return true;
  });
  return absl::OkStatus();
}

}  // namespace output
