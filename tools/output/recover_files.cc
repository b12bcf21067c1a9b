#include "tools/output/recover_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nettrace/merger.h"
#include "nettrace/reader.h"
#include "nettrace/source.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/base/unique_fd.h"
#include "tools/output/file_directory.h"
#include "tools/output/kept_files.h"
#include "tools/output/partial_file.h"
#include "tools/output/zstd_sink.h"
#include "tools/trace/unknown_end.h"
#include "tools/trace/zstd_source.h"

namespace output {
namespace {

using Outcome = RecoveredFile::Outcome;

// A sink that writes the repaired copy of a file. Deletes older files of the session to keep the
// limits of KeptFiles.
class CopySink : public nettrace::Sink {
 public:
  CopySink(KeptFiles* kept, PartialFile* copy) : kept_(kept), copy_(copy) {}
  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override {
    *taken = 0;
    RETURN_IF_ERROR(kept_->MakeRoom(*copy_, bytes.size()));
    return copy_->Append(bytes, taken);
  }

 private:
  KeptFiles* const kept_;
  PartialFile* const copy_;
};

// Opens a reader at the beginning of the file, which may be compressed.
absl::StatusOr<std::unique_ptr<nettrace::Reader>> OpenReader(const base::UniqueFd& file,
                                                             const std::string& path) {
  base::UniqueFd own(fcntl(file.get(), F_DUPFD_CLOEXEC, 3));
  if (!own.valid() || lseek(own.get(), 0, SEEK_SET) != 0) {
    return base::ErrnoStatus(errno, absl::StrCat("cannot read ", path));
  }
  ASSIGN_OR_RETURN(
      std::unique_ptr<nettrace::Source> source,
      trace::OpenCompressed(std::make_unique<nettrace::FdSource>(own.release(), path)));
  nettrace::ReaderOptions options;
  options.skip_damage = true;
  return nettrace::Reader::Open(std::move(source), options);
}

// Returns whether all bytes of the file are 0, or the file is empty. After a power failure, a file
// may have its size, but zeros instead of its data.
bool IsAllZero(const base::UniqueFd& file) {
  std::array<std::byte, 4096> buffer;
  for (off_t at = 0;;) {
    const ssize_t got = pread(file.get(), buffer.data(), buffer.size(), at);
    if (got < 0) return false;
    if (got == 0) return true;
    const std::span<const std::byte> bytes(buffer.data(), static_cast<std::size_t>(got));
    if (std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{}; })) {
      return false;
    }
    at += got;
  }
}

// Reads files one after the other. Stores the positions of services with rings in user space
// (tools/trace/ring_positions.h) at the end of the latest file that has positions.
class PositionChain {
 public:
  using Ending = trace::RecordedRings::Ending;

  PositionChain(const FileDirectory* directory, std::vector<FileNames::Name> complete)
      : directory_(directory), complete_(std::move(complete)) {}

  // Reads the stream of a partial file to its end. Returns whether the file has positions.
  bool Read(nettrace::Reader* reader) {
    std::optional<trace::RecordedRings> found = PositionsIn(reader);
    if (!found) return false;
    rings_ = std::move(found);
    was_interrupted_early_ = false;
    return true;
  }

  // Must be called for a partial file that has neither positions nor an end block.
  void InterruptedEarly() { was_interrupted_early_ = true; }

  // Returns the positions that were set or read before. If there are none, first reads them from
  // the newest complete file that can be opened.
  trace::RecordedRings Get() {
    if (!rings_) ReadNewest();
    trace::RecordedRings rings = *rings_;
    if (was_interrupted_early_ && rings.ending == Ending::kEnded) {
      rings.ending = Ending::kInterruptedEarly;
    }
    return rings;
  }

 private:
  // Reads the stream to its end. Returns nullopt if it has no positions.
  static std::optional<trace::RecordedRings> PositionsIn(nettrace::Reader* reader) {
    trace::RingPositionReader found;
    for (auto step = reader->Next(); step != nettrace::Reader::Step::kEnd; step = reader->Next()) {
      found.Add(*reader, step);
    }
    if (!found.HasPositions()) return std::nullopt;
    return trace::RecordedRings{found.Positions(),
                                found.HasEnded() ? Ending::kEnded : Ending::kInterrupted};
  }

  void ReadNewest() {
    rings_.emplace();
    for (auto name = complete_.rbegin(); name != complete_.rend(); ++name) {
      const std::string path = directory_->PathFor(*name);
      const base::UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
      if (!file.valid()) continue;
      const auto reader = OpenReader(file, path);
      if (!reader.ok()) continue;
      rings_ = PositionsIn(reader->get()).value_or(trace::RecordedRings());
      return;
    }
  }

  const FileDirectory* directory_;
  const std::vector<FileNames::Name> complete_;  // names, the oldest first
  std::optional<trace::RecordedRings> rings_;
  bool was_interrupted_early_ = false;
};

// Repairs one file.
class Recovery {
 public:
  // `rings` may be null.
  Recovery(KeptFiles* kept, const FileNames::Name& name, PositionChain* rings)
      : kept_(kept), directory_(kept->directory()), name_(name), rings_(rings) {
    result_.partial = directory_.PathFor(name_);
  }

  RecoveredFile Run() {
    absl::StatusOr<base::UniqueFd> file = directory_.Claim(name_);
    if (!file.ok()) {
      return End(absl::IsAborted(file.status()) ? Outcome::kBusy : Outcome::kFailed, file.status());
    }
    file_ = *std::move(file);
    if (IsAllZero(file_)) {
      if (rings_ != nullptr) rings_->InterruptedEarly();
      return Remove();
    }
    auto reader = OpenReader(file_, result_.partial);
    if (!reader.ok()) {
      if (rings_ != nullptr) rings_->InterruptedEarly();
      return Keep(FileNames::Kind::kUnreadable, reader.status());
    }
    const bool has_positions = rings_ != nullptr && rings_->Read(reader->get());
    while ((*reader)->Next() != nettrace::Reader::Step::kEnd) {
    }
    const absl::Status status = (*reader)->status();
    // Keeps the partial file after an error of the disk, because the file may be readable later.
    if (!status.ok() && !absl::IsDataLoss(status)) return End(Outcome::kFailed, status);
    result_.events = (*reader)->stats().events;
    const std::vector<nettrace::SkippedPart>& skipped = (*reader)->skipped();
    if (status.ok() && (*reader)->stats().complete && skipped.empty()) {
      return Keep(FileNames::Kind::kComplete, status);
    }
    if (rings_ != nullptr && !has_positions) rings_->InterruptedEarly();
    if (result_.events == 0) return Remove();
    result_.status = status;
    if (!skipped.empty()) {
      std::uint64_t events = 0;
      for (const nettrace::SkippedPart& part : skipped) events += part.events;
      result_.status = absl::DataLossError(
          absl::StrCat("offset ", skipped.front().offset, ": ", skipped.front().reason,
                       "; skipped ", base::Counted(skipped.size(), "damaged part"), " with about ",
                       base::Counted(events, "event")));
    }
    const absl::Status repaired = Repair();
    if (!repaired.ok()) {
      copy_.RemoveFrom(directory_.fd());
      return End(absl::IsAborted(repaired) ? Outcome::kBusy : Outcome::kFailed, repaired);
    }
    return std::move(result_);
  }

 private:
  RecoveredFile End(Outcome outcome, absl::Status status) {
    result_.outcome = outcome;
    result_.status = std::move(status);
    return std::move(result_);
  }
  RecoveredFile Remove() {
    const absl::Status status = kept_->RemoveStray(name_);
    return End(status.ok() ? Outcome::kEmpty : Outcome::kFailed, status);
  }
  RecoveredFile Keep(FileNames::Kind kind, const absl::Status& why) {
    absl::StatusOr<std::string> path = Rename(name_, kind);
    if (!path.ok()) return End(Outcome::kFailed, path.status());
    result_.path = *std::move(path);
    return End(kind == FileNames::Kind::kComplete ? Outcome::kComplete : Outcome::kUnreadable, why);
  }

  // Renames a file of the kind `name.kind` to the kind `kind`. Returns the new path.
  absl::StatusOr<std::string> Rename(const FileNames::Name& name, FileNames::Kind kind) {
    FileNames::Name to = name;
    to.kind = kind;
    RETURN_IF_ERROR(directory_.Rename(name, &to));
    RETURN_IF_ERROR(kept_->Refresh(PartialFile()));
    return directory_.PathFor(to);
  }

  // Begins an empty copy. Fails with Aborted if another process is repairing the same file, and
  // with another error if the copy cannot be created.
  absl::Status BeginCopy() {
    FileNames::Name name = name_;
    name.kind = FileNames::Kind::kRepairing;
    // Removes the unfinished copy of an earlier repair, unless another process is still writing it.
    const absl::StatusOr<base::UniqueFd> left = directory_.Claim(name);
    if (absl::IsAborted(left.status())) return left.status();
    RETURN_IF_ERROR(kept_->RemoveStray(name));
    ASSIGN_OR_RETURN(copy_, directory_.CreateFile(name, kept_->settings().mode));
    return absl::OkStatus();
  }

  // Replaces the partial file by the copy, and then gives the copy the final name. Readers
  // therefore find the data in exactly one file at any time. Returns the path.
  absl::StatusOr<std::string> CompleteCopy() {
    RETURN_IF_ERROR(copy_.Sync());
    copy_.SetMode(kept_->settings().mode);
    RETURN_IF_ERROR(directory_.Replace(copy_.name(), name_));
    const PartialFile locked = std::move(copy_);
    return Rename(name_, FileNames::Kind::kComplete);
  }

  void AddPositions(std::vector<nettrace::AddedEvent>* added) {
    if (rings_ == nullptr) return;
    const trace::RecordedRings rings = rings_->Get();
    if (rings.positions.empty()) return;
    for (std::vector<std::byte>& payload : trace::RingPositionsPayloads(trace::RecordOf(rings))) {
      added->push_back({trace::RingPositionsMetadata(), std::move(payload), "repair"});
    }
  }

  // Writes the readable part of the file to a copy. Adds an event with the time in which losses are
  // not known, if there is such a time, and events with the ring positions of services. Then calls
  // CompleteCopy.
  absl::Status Repair() {
    ASSIGN_OR_RETURN(std::unique_ptr<nettrace::Reader> reader, OpenReader(file_, result_.partial));
    struct stat facts = {};
    fstat(file_.get(), &facts);
    nettrace::MergerOptions options;
    options.add_at_end = [&](const nettrace::Reader& input) -> std::vector<nettrace::AddedEvent> {
      const std::optional<trace::AccountEvent> unknown = trace::UnknownEnd(input, facts);
      std::vector<nettrace::AddedEvent> added;
      if (unknown) {
        result_.unknown = trace::UnknownText({unknown->since, unknown->until});
        added = trace::UnknownEndEvents(*unknown);
      }
      AddPositions(&added);
      return added;
    };
    nettrace::Merger merger(std::move(options));
    merger.AddInput(std::move(reader));
    RETURN_IF_ERROR(BeginCopy());
    std::unique_ptr<nettrace::Sink> sink = std::make_unique<CopySink>(kept_, &copy_);
    if (name_.compressed) {
      ASSIGN_OR_RETURN(sink, ZstdSink::Create(std::move(sink)));
    }
    RETURN_IF_ERROR(merger.Run(std::move(sink)));
    const absl::Status& read = merger.input(0).status();
    if (!read.ok() && !absl::IsDataLoss(read)) return read;
    ASSIGN_OR_RETURN(result_.path, CompleteCopy());
    result_.outcome = Outcome::kRepaired;
    return absl::OkStatus();
  }

  KeptFiles* const kept_;
  const FileDirectory& directory_;
  const FileNames::Name name_;
  PositionChain* const rings_;
  base::UniqueFd file_;
  PartialFile copy_;
  RecoveredFile result_;
};

}  // namespace

absl::StatusOr<std::vector<RecoveredFile>> RecoverFiles(const FilesSettings& settings,
                                                        std::string_view session,
                                                        trace::RecordedRings* rings) {
  ASSIGN_OR_RETURN(FileDirectory directory, FileDirectory::Create(settings, session));
  RETURN_IF_ERROR(directory.Open());
  KeptFiles kept(&settings, &directory);
  RETURN_IF_ERROR(kept.Refresh(PartialFile()));
  std::vector<FileDirectory::Entry> strays = kept.strays();
  std::stable_sort(strays.begin(), strays.end(),
                   [](const auto& a, const auto& b) { return a.name.time < b.name.time; });
  // Removes copies that were not finished; their originals still exist.
  for (const FileDirectory::Entry& stray : strays) {
    if (stray.name.kind != FileNames::Kind::kRepairing) continue;
    const absl::StatusOr<base::UniqueFd> file = directory.Claim(stray.name);
    if (file.ok()) kept.RemoveStray(stray.name).IgnoreError();
  }
  PositionChain chain(&directory, kept.CompleteFiles());
  std::vector<RecoveredFile> recovered;
  for (const FileDirectory::Entry& stray : strays) {
    if (stray.name.kind != FileNames::Kind::kPartial) continue;
    recovered.push_back(Recovery(&kept, stray.name, rings == nullptr ? nullptr : &chain).Run());
  }
  if (rings == nullptr) return recovered;
  *rings = chain.Get();
  for (const RecoveredFile& file : recovered) {
    if (file.outcome == Outcome::kBusy) rings->ending = trace::RecordedRings::Ending::kEnded;
  }
  return recovered;
}

std::string RecoveryText(const RecoveredFile& file) {
  const std::string why = file.status.ok() ? "" : absl::StrCat(" (", file.status.message(), ")");
  switch (file.outcome) {
    case Outcome::kComplete:
      return absl::StrCat(file.path, ": complete, ", base::Counted(file.events, "event"),
                          "; renamed to its final name");
    case Outcome::kRepaired:
      return absl::StrCat(
          file.path, ": repaired, ", base::Counted(file.events, "event"),
          file.unknown.empty() ? "" : absl::StrCat("; losses are unknown ", file.unknown), why);
    case Outcome::kEmpty:
      return absl::StrCat(file.partial, ": no events; removed");
    case Outcome::kUnreadable:
      return absl::StrCat(file.partial, ": no events can be read", why, "; kept as ", file.path);
    case Outcome::kBusy:
      return absl::StrCat(file.partial, ": skipped", why);
    case Outcome::kFailed:
      break;
  }
  return absl::StrCat(file.partial, ": cannot be repaired now", why,
                      "; the next start of the session tries again");
}

}  // namespace output
