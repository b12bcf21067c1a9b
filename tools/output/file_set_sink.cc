#include "tools/output/file_set_sink.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nettrace/format.h"
#include "tools/base/status_macros.h"
#include "tools/output/zstd_sink.h"

namespace output {
namespace {

// WantsSection requests the next file when the current file reaches keep_bytes divided by this
// number.
constexpr std::uint64_t kFilesInBound = 4;

std::uint64_t RotateBytes(const FilesSettings& settings) {
  const std::uint64_t bytes = settings.rotate_bytes == 0 ? UINT64_MAX : settings.rotate_bytes;
  const std::uint64_t part =
      settings.keep_bytes == 0 ? UINT64_MAX : settings.keep_bytes / kFilesInBound;
  return std::min(bytes, part);
}

}  // namespace

std::vector<std::byte> StreamEnd(std::optional<int> compressed) {
  if (compressed) return ZstdFrame(nettrace::kEndOfStreamBlock, *compressed);
  return {nettrace::kEndOfStreamBlock.begin(), nettrace::kEndOfStreamBlock.end()};
}

void FileSetControl::Rotate(Done done) {
  {
    const std::lock_guard lock(mutex_);
    if (files_ != nullptr) {
      requests_.push_back(std::move(done));
      return;
    }
  }
  done(absl::CancelledError("the session has ended; 'nettrace ctl start' starts it again"));
}

FilesState FileSetControl::state() const {
  const std::lock_guard lock(mutex_);
  return files_ == nullptr ? last_ : files_->state();
}

absl::StatusOr<std::unique_ptr<FileSetSink>> FileSetSink::Create(const FilesSettings& settings,
                                                                 std::string_view session,
                                                                 std::optional<int> compressed) {
  ASSIGN_OR_RETURN(std::unique_ptr<FileSet> files,
                   FileSet::Create(settings, session, compressed.has_value()));
  std::vector<std::byte> end = StreamEnd(compressed);
  if (end.empty()) {
    return absl::ResourceExhaustedError(
        "not enough memory to compress the files; raise the limit of this process's memory");
  }
  return std::unique_ptr<FileSetSink>(new FileSetSink(std::move(files), std::move(end)));
}

FileSetSink::FileSetSink(std::unique_ptr<FileSet> files, std::vector<std::byte> end)
    : files_(std::move(files)),
      control_(std::make_shared<FileSetControl>()),
      end_(std::move(end)),
      rotate_bytes_(RotateBytes(files_->settings())) {
  control_->files_ = files_.get();
}

FileSetSink::~FileSetSink() {
  {
    const std::lock_guard lock(control_->mutex_);
    control_->last_ = files_->state();
    control_->files_ = nullptr;
  }
  Answer(absl::CancelledError("the session has ended; 'nettrace ctl start' starts it again"));
}

void FileSetSink::Answer(const absl::StatusOr<std::string>& path) {
  std::vector<FileSetControl::Done> requests;
  {
    const std::lock_guard lock(control_->mutex_);
    requests.swap(control_->requests_);
  }
  for (const FileSetControl::Done& done : requests) done(path);
}

void FileSetSink::BeginEarly() { files_->Begin().IgnoreError(); }

absl::Status FileSetSink::Append(std::span<const std::byte> bytes, std::size_t* taken) {
  *taken = 0;
  if (!in_sections_) {
    prologue_.insert(prologue_.end(), bytes.begin(), bytes.end());
    *taken = bytes.size();
    return absl::OkStatus();
  }
  if (!discarding_) {
    absl::Status status = HasData() ? absl::OkStatus() : BeginFile();
    if (status.ok()) status = files_->Append(bytes, taken);
    if (absl::IsOutOfRange(status)) status = CutFile();
    if (!status.ok() || !discarding_) return status;
  }
  files_->CountDiscarded(bytes.size() - *taken);
  *taken = bytes.size();
  return absl::OkStatus();
}

absl::Status FileSetSink::BeginFile() {
  if (!files_->has_file()) RETURN_IF_ERROR(files_->Begin());
  std::size_t taken = 0;
  absl::Status status = files_->Append(prologue_, &taken);
  if (!status.ok()) files_->Abandon();
  return status;
}

absl::Status FileSetSink::CutFile() {
  discarding_ = true;
  if (!files_->has_file()) return absl::OkStatus();
  return files_->Complete().status();
}

absl::Status FileSetSink::CompleteFile() {
  while (end_written_ < end_.size()) {
    std::size_t taken = 0;
    absl::Status status = files_->Append(std::span(end_).subspan(end_written_), &taken);
    end_written_ += taken;
    if (absl::IsOutOfRange(status)) break;  // the file gets its final name without an end block
    if (!status.ok()) return status;
  }
  ASSIGN_OR_RETURN(std::string path, files_->Complete());
  end_written_ = 0;
  Answer(std::move(path));
  return absl::OkStatus();
}

absl::Status FileSetSink::BeginSection() {
  in_sections_ = true;
  discarding_ = false;
  const bool is_wanted = end_written_ != 0 || WantsSection();
  if (!HasData() || !is_wanted) return absl::OkStatus();
  return CompleteFile();
}

bool FileSetSink::WantsSection() const {
  if (discarding_) return true;
  {
    const std::lock_guard lock(control_->mutex_);
    if (!control_->requests_.empty()) return true;
  }
  return HasData() &&
         (files_->size() >= rotate_bytes_ || files_->age() >= files_->settings().rotate_every);
}

absl::Status FileSetSink::Flush() {
  absl::Status status = files_->Check();
  if (absl::IsDataLoss(status)) {
    // The rest of the section is useless without the lost part.
    files_->Abandon();
    discarding_ = true;
    return absl::OkStatus();
  }
  if (status.ok() && files_->settings().sync == SyncPolicy::kInterval) files_->Sync();
  return status;
}

absl::Status FileSetSink::Sync() {
  absl::Status status = Flush();
  if (status.ok() && files_->settings().sync == SyncPolicy::kRotation) files_->Sync();
  return status;
}

absl::Status FileSetSink::Finish() {
  if (!HasData()) {
    files_->Abandon();
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(std::string path, files_->Complete());
  Answer(std::move(path));
  return absl::OkStatus();
}

}  // namespace output
