#include "tools/nettrace/command/reread_input.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "nettrace/source.h"
#include "tools/base/status_macros.h"
#include "tools/trace/zstd_source.h"

namespace tools {

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

absl::StatusOr<std::unique_ptr<RereadInput>> RereadInput::Open(const std::string& path,
                                                               Progress* progress,
                                                               struct stat* file) {
  ASSIGN_OR_RETURN(const int fd, OpenDescriptor(path));
  auto input = std::unique_ptr<RereadInput>(new RereadInput(progress));
  input->fd_ = base::UniqueFd(fd);
  std::optional<std::uint64_t> size;
  if (fstat(fd, file) == 0 && S_ISREG(file->st_mode)) {
    input->is_file_ = true;
    const off_t begin = lseek(fd, 0, SEEK_CUR);
    input->begin_ = begin > 0 ? static_cast<std::uint64_t>(begin) : 0;
    size = static_cast<std::uint64_t>(file->st_size);
  }
  // Adds the size twice, because each byte is read twice.
  progress->AddInput(size);
  progress->AddInput(size);
  return input;
}

absl::StatusOr<std::unique_ptr<nettrace::Reader>> RereadInput::Read() {
  ASSIGN_OR_RETURN(std::unique_ptr<nettrace::Source> source,
                   trace::OpenCompressed(std::make_unique<FirstSource>(this)));
  return nettrace::Reader::Open(std::move(source));
}

absl::StatusOr<std::unique_ptr<nettrace::Reader>> RereadInput::ReadAgain() {
  RETURN_IF_ERROR(copy_.Flush());
  ASSIGN_OR_RETURN(std::unique_ptr<nettrace::Source> source,
                   trace::OpenCompressed(std::make_unique<SecondSource>(this)));
  return nettrace::Reader::Open(std::move(source));
}

}  // namespace tools
