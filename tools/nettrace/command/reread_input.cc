#include "tools/nettrace/command/reread_input.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nettrace/source.h"
#include "tools/base/status_macros.h"
#include "tools/trace/unknown_end.h"
#include "tools/trace/zstd_source.h"

namespace tools {
namespace {

absl::Status Named(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(InputName(path), ": ", status.message()));
}

}  // namespace

class RereadInput::FirstSource : public nettrace::Source {
 public:
  explicit FirstSource(RereadInput* input) : input_(input) {}

  absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) override {
    ssize_t got = 0;
    do {
      got = input_->is_file_ ? pread(input_->fd_.get(), buffer.data(), buffer.size(),
                                     static_cast<off_t>(input_->begin_ + input_->size_))
                             : read(input_->fd_.get(), buffer.data(), buffer.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0) return absl::ErrnoToStatus(errno, "cannot be read");
    const auto size = static_cast<std::size_t>(got);
    if (!input_->is_file_) RETURN_IF_ERROR(input_->copy_.Append(buffer.first(size)));
    input_->size_ += size;
    input_->progress_->AddRead(size);
    return size;
  }

 private:
  RereadInput* const input_;
};

class RereadInput::SecondSource : public nettrace::Source {
 public:
  explicit SecondSource(RereadInput* input) : input_(input) {}

  absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) override {
    const std::uint64_t left = input_->size_ - read_;
    buffer = buffer.first(
        static_cast<std::size_t>(std::min(left, static_cast<std::uint64_t>(buffer.size()))));
    if (buffer.empty()) return 0;
    if (input_->is_file_) {
      ssize_t got = 0;
      do {
        got = pread(input_->fd_.get(), buffer.data(), buffer.size(),
                    static_cast<off_t>(input_->begin_ + read_));
      } while (got < 0 && errno == EINTR);
      if (got < 0) return absl::ErrnoToStatus(errno, "cannot be read again");
      buffer = buffer.first(static_cast<std::size_t>(got));
    } else {
      RETURN_IF_ERROR(input_->copy_.Read(read_, buffer));
    }
    read_ += buffer.size();
    input_->progress_->AddRead(buffer.size());
    return buffer.size();
  }

 private:
  RereadInput* const input_;
  std::uint64_t read_ = 0;
};

absl::StatusOr<std::unique_ptr<RereadInput>> RereadInput::Open(std::vector<std::string> paths,
                                                               Progress* progress) {
  auto input = std::unique_ptr<RereadInput>(new RereadInput(std::move(paths), progress));
  if (input->files_.is_one()) {
    if (const absl::Status status = input->OpenOne(); !status.ok()) {
      return Named(input->files_.paths().front(), status);
    }
    return input;
  }
  for (const std::string& path : input->files_.paths()) {
    struct stat& facts = input->facts_.emplace_back();
    if (stat(path.c_str(), &facts) != 0) {
      return Named(path, absl::ErrnoToStatus(errno, "cannot be opened"));
    }
    if (S_ISREG(facts.st_mode)) continue;
    return Named(path, absl::InvalidArgumentError(
                           "several inputs are read twice, so each must be a regular file; save "
                           "the stream to a file first"));
  }
  return input;
}

absl::Status RereadInput::OpenOne() {
  ASSIGN_OR_RETURN(const int fd, OpenDescriptor(files_.paths().front()));
  fd_ = base::UniqueFd(fd);
  std::optional<std::uint64_t> size;
  struct stat& file = facts_.emplace_back();
  if (fstat(fd, &file) == 0 && S_ISREG(file.st_mode)) {
    is_file_ = true;
    const off_t begin = lseek(fd, 0, SEEK_CUR);
    begin_ = begin > 0 ? static_cast<std::uint64_t>(begin) : 0;
    size = static_cast<std::uint64_t>(file.st_size);
  }
  // Adds the size twice, because each byte is read twice.
  progress_->AddInput(size);
  progress_->AddInput(size);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<nettrace::Reader>> RereadInput::ReadOne(
    std::unique_ptr<nettrace::Source> source) const {
  absl::StatusOr<std::unique_ptr<nettrace::Source>> opened =
      trace::OpenCompressed(std::move(source));
  if (!opened.ok()) return Named(files_.paths().front(), opened.status());
  absl::StatusOr<std::unique_ptr<nettrace::Reader>> reader =
      nettrace::Reader::Open(*std::move(opened));
  return reader.ok() ? std::move(reader) : Named(files_.paths().front(), reader.status());
}

absl::StatusOr<std::unique_ptr<nettrace::Reader>> RereadInput::Read() {
  if (files_.is_one()) return ReadOne(std::make_unique<FirstSource>(this));
  ASSIGN_OR_RETURN(first_, files_.OpenUnchanged(progress_, facts_));
  return std::move(first_.reader);
}

absl::StatusOr<std::unique_ptr<nettrace::Reader>> RereadInput::ReadAgain() {
  if (files_.is_one()) {
    RETURN_IF_ERROR(copy_.Flush());
    return ReadOne(std::make_unique<SecondSource>(this));
  }
  ASSIGN_OR_RETURN(InputFiles::Opened again, files_.OpenUnchanged(progress_, facts_));
  return std::move(again.reader);
}

std::vector<InputFiles::Problem> RereadInput::Problems(const nettrace::Reader& reader) const {
  return files_.Problems(first_, reader.status());
}

std::vector<trace::AccountEvent> RereadInput::UnknownEnds(const nettrace::Reader& reader) const {
  if (!files_.is_one()) return InputFiles::UnknownEnds(first_);
  const std::optional<trace::AccountEvent> end = trace::UnknownEnd(reader, facts_.front());
  return end ? std::vector{*end} : std::vector<trace::AccountEvent>();
}

}  // namespace tools
