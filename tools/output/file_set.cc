#include "tools/output/file_set.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tools/base/status_macros.h"

namespace output {

absl::StatusOr<std::unique_ptr<FileSet>> FileSet::Create(const FilesSettings& settings,
                                                         std::string_view session,
                                                         bool compressed) {
  ASSIGN_OR_RETURN(FileDirectory directory, FileDirectory::Create(settings, session));
  std::unique_ptr<FileSet> files(new FileSet(settings, std::move(directory), compressed));
  files->Record(files->EnsureDirectory()).IgnoreError();
  return files;
}

absl::Status FileSet::Record(absl::Status status) {
  const std::lock_guard lock(mutex_);
  state_.current_file = file_.path();
  state_.files = kept_.files();
  state_.file_bytes = kept_.bytes() + directory_.InBlocks(file_.size());
  state_.deleted = kept_.deleted();
  if (!status.ok()) {
    state_.error = status;
    state_.error_time = absl::Now();
  }
  return status;
}

FilesState FileSet::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

void FileSet::CountDiscarded(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  state_.discarded += bytes;
}

absl::Status FileSet::EnsureDirectory() {
  if (directory_.IsHere()) return absl::OkStatus();
  RETURN_IF_ERROR(directory_.Open());
  return kept_.Refresh(file_);
}

absl::Status FileSet::Begin() {
  absl::Status status = EnsureDirectory();
  if (status.ok()) {
    status = CreateFile({FileNames::TimeText(absl::Now()), compressed_, FileNames::Kind::kPartial});
  }
  return Record(std::move(status));
}

absl::Status FileSet::CreateFile(FileNames::Name name) {
  constexpr int kAttempts = 10'000;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (name.time != last_time_ && !kept_.HasFileOfTime(name.time)) {
      absl::StatusOr<PartialFile> file = directory_.CreateFile(name, settings_.mode);
      if (file.ok()) {
        file_ = *std::move(file);
        last_time_ = name.time;
        return absl::OkStatus();
      }
      if (!absl::IsAlreadyExists(file.status())) return file.status();
    }
    name.time = FileNames::NextTime(name.time);
  }
  return absl::UnavailableError(absl::StrCat("cannot create a file: the ", kAttempts,
                                             " names before ", directory_.PathFor(name),
                                             " are in use; move files out of the directory"));
}

absl::Status FileSet::Append(std::span<const std::byte> bytes, std::size_t* taken) {
  *taken = 0;
  if (!file_.valid()) return absl::FailedPreconditionError("there is no file to write to");
  absl::Status status = kept_.MakeRoom(file_, bytes.size());
  if (status.ok()) status = file_.Append(bytes, taken);
  {
    const std::lock_guard lock(mutex_);
    state_.bytes += *taken;
  }
  return Record(std::move(status));
}

absl::Status FileSet::Check() {
  absl::Status status = EnsureFile();
  if (status.ok()) status = kept_.DeleteAged();
  return Record(std::move(status));
}

absl::Status FileSet::EnsureFile() {
  RETURN_IF_ERROR(EnsureDirectory());
  if (!file_.valid() || file_.IsIn(directory_.fd())) return absl::OkStatus();
  return MoveFile();
}

absl::Status FileSet::MoveFile() {
  PartialFile old = std::move(file_);
  last_time_.clear();
  absl::Status status = CreateFile(old.name());
  if (status.ok()) {
    Record(
        absl::NotFoundError(absl::StrCat(old.path(),
                                         " was removed, renamed or unmounted; the session "
                                         "copies its content to a new file and continues in it: ",
                                         file_.path())))
        .IgnoreError();
    status = CopyFrom(old);
    if (!status.ok()) file_.RemoveFrom(directory_.fd());
  }
  if (!status.ok()) {
    file_ = std::move(old);
    return status;
  }
  file_.TakeAgeOf(old);
  // If the directory was renamed, the old file still has its name in the renamed directory. It is
  // deleted there, because the copy has the same contents.
  old.RemoveFrom(old.directory());
  return absl::OkStatus();
}

absl::Status FileSet::CopyFrom(const PartialFile& from) {
  constexpr std::size_t kBuffer = 128 << 10;
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kBuffer);
  while (file_.size() < from.size()) {
    const std::size_t wanted = std::min<std::uint64_t>(kBuffer, from.size() - file_.size());
    const ssize_t got = from.Read({buffer.get(), wanted}, file_.size());
    if (got <= 0) {
      return absl::DataLossError(
          absl::StrCat(from.path(), ": its ", from.size(),
                       " bytes cannot be copied to a new file, and are lost; check the disk"));
    }
    const std::span<const std::byte> bytes(buffer.get(), static_cast<std::size_t>(got));
    std::size_t taken = 0;
    RETURN_IF_ERROR(kept_.MakeRoom(file_, bytes.size()));
    RETURN_IF_ERROR(file_.Append(bytes, &taken));
  }
  return absl::OkStatus();
}

void FileSet::Sync() {
  if (!file_.valid()) return;
  const absl::Status status = file_.Sync();
  if (status.ok()) return;
  Record(absl::Status(status.code(),
                      absl::StrCat(status.message(),
                                   "; data written to it earlier may be lost; check the disk")))
      .IgnoreError();
}

absl::StatusOr<std::string> FileSet::Complete() {
  if (!file_.valid())
    return absl::FailedPreconditionError(
        "no file is being written, so none can be completed; nettrace ctl status shows the reason");
  RETURN_IF_ERROR(Check());
  absl::StatusOr<std::string> path = CompleteFile();
  RETURN_IF_ERROR(Record(path.status()));
  return path;
}

absl::StatusOr<std::string> FileSet::CompleteFile() {
  RETURN_IF_ERROR(kept_.MakeRoomForFile());
  if (settings_.sync != SyncPolicy::kOff) Sync();
  FileNames::Name name = file_.name();
  name.kind = FileNames::Kind::kComplete;
  RETURN_IF_ERROR(directory_.Rename(file_.name(), &name));
  if (settings_.sync != SyncPolicy::kOff) fsync(directory_.fd());
  kept_.Add(name, file_.size());
  last_time_ = std::max(last_time_, name.time);
  file_.Close();
  return directory_.PathFor(name);
}

void FileSet::Abandon() {
  if (!file_.valid()) return;
  file_.RemoveFrom(directory_.fd());
  Record(absl::OkStatus()).IgnoreError();
}

}  // namespace output
