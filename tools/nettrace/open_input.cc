#include "nettrace/open_input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "nettrace/source.h"

namespace tools {

namespace {

// Says on standard error how far a file has been read, twice a second.
class ProgressSource : public nettrace::Source {
 public:
  ProgressSource(std::unique_ptr<nettrace::Source> source, std::string name, std::uint64_t size)
      : source_(std::move(source)), name_(std::move(name)), size_(size) {}
  ~ProgressSource() override {
    if (shown_) std::fputs("\r\x1b[K", stderr);
  }
  ProgressSource(const ProgressSource&) = delete;
  ProgressSource& operator=(const ProgressSource&) = delete;

  absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) override {
    absl::StatusOr<std::size_t> got = source_->Read(buffer);
    if (got.ok()) read_ += *got;
    const absl::Time now = absl::Now();
    if (now - last_ >= absl::Milliseconds(500)) {
      last_ = now;
      shown_ = true;
      absl::FPrintF(stderr, "\r\x1b[K%s: %d of %d MB (%d%%)", name_, read_ >> 20, size_ >> 20,
                    size_ == 0 ? 100 : read_ * 100 / size_);
    }
    return got;
  }

 private:
  std::unique_ptr<nettrace::Source> source_;
  const std::string name_;
  const std::uint64_t size_;
  std::uint64_t read_ = 0;
  absl::Time last_ = absl::Now();
  bool shown_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<nettrace::Source>> OpenSource(const std::string& path,
                                                             bool progress) {
  const bool standard_input = path == "-";
  const int fd = standard_input ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, "cannot be opened");
  struct stat facts = {};
  const bool sized = fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode);
  std::unique_ptr<nettrace::Source> source =
      std::make_unique<nettrace::FdSource>(fd, "cannot be read");
  if (!progress || !sized || isatty(STDERR_FILENO) == 0) return source;
  return std::make_unique<ProgressSource>(std::move(source), path,
                                          static_cast<std::uint64_t>(facts.st_size));
}

absl::StatusOr<std::unique_ptr<nettrace::Reader>> OpenInput(const std::string& path,
                                                            bool progress) {
  absl::StatusOr<std::unique_ptr<nettrace::Source>> source = OpenSource(path, progress);
  if (!source.ok()) return source.status();
  return nettrace::Reader::Open(*std::move(source));
}

void PrintInputError(const char* command, const std::string& path, const absl::Status& status) {
  absl::FPrintF(stderr, "nettrace %s: %s: %s\n", command, path == "-" ? "standard input" : path,
                status.message());
}

}  // namespace tools
