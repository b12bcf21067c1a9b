#include "tools/nettrace/command/open_input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "nettrace/source.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/trace/zstd_source.h"

namespace tools {
namespace {

class ProgressSource : public nettrace::Source {
 public:
  ProgressSource(std::unique_ptr<nettrace::Source> source, Progress* progress)
      : source_(std::move(source)), progress_(progress) {}

  absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) override {
    absl::StatusOr<std::size_t> got = source_->Read(buffer);
    if (got.ok()) progress_->AddRead(*got);
    return got;
  }

 private:
  std::unique_ptr<nettrace::Source> source_;
  Progress* progress_;
};

// Reads a file that another process still writes. At the end of the file, waits until the file
// grows or is deleted.
class GrowingSource : public nettrace::Source {
 public:
  // `fd` must be the descriptor of the file that `source` reads.
  GrowingSource(std::unique_ptr<nettrace::Source> source, int fd)
      : source_(std::move(source)), fd_(fd) {}

  absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) override {
    constexpr absl::Duration kPause = absl::Milliseconds(100);
    for (;;) {
      // Checks for a deletion before the read, so that bytes that were written before the deletion
      // are still read.
      struct stat facts = {};
      const bool is_deleted = fstat(fd_, &facts) != 0 || facts.st_nlink == 0;
      absl::StatusOr<std::size_t> got = source_->Read(buffer);
      if (!got.ok() || *got != 0 || is_deleted) return got;
      absl::SleepFor(kPause);
    }
  }

 private:
  std::unique_ptr<nettrace::Source> source_;
  const int fd_;
};

}  // namespace

void Progress::SetTotal(std::uint64_t bytes) {
  total_ = bytes;
  is_total_set_ = true;
}

void Progress::AddInput(std::optional<std::uint64_t> size) {
  if (is_total_set_) return;
  if (size && total_) {
    *total_ += *size;
  } else {
    total_.reset();
  }
}

void Progress::AddRead(std::uint64_t bytes) {
  read_ += bytes;
  line_.Update([this] {
    const std::string text = absl::StrFormat("nettrace %s: %d", command_, read_ >> 20);
    if (total_.value_or(0) == 0) return text + " MB";
    return absl::StrFormat("%s of %d MB (%d%%)", text, *total_ >> 20,
                           std::min<std::uint64_t>(100, read_ * 100 / *total_));
  });
}

absl::StatusOr<int> OpenDescriptor(const std::string& path) {
  const int fd = path == "-" ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                             : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) return fd;
  if (errno == EMFILE) {
    return absl::ResourceExhaustedError(
        "cannot be opened: too many open files; raise the limit, for example by ulimit -n 4096");
  }
  return absl::ErrnoToStatus(errno, "cannot be opened");
}

absl::StatusOr<std::unique_ptr<nettrace::Source>> OpenSource(const std::string& path,
                                                             Progress* progress, struct stat* file,
                                                             bool follow) {
  ASSIGN_OR_RETURN(const int fd, OpenDescriptor(path));
  std::unique_ptr<nettrace::Source> source =
      std::make_unique<nettrace::FdSource>(fd, "cannot be read");
  struct stat facts = {};
  std::optional<std::uint64_t> size;
  if (fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode)) {
    size = static_cast<std::uint64_t>(facts.st_size);
    if (follow) source = std::make_unique<GrowingSource>(std::move(source), fd);
  }
  if (file != nullptr) *file = facts;
  progress->AddInput(size);
  return trace::OpenCompressed(std::make_unique<ProgressSource>(std::move(source), progress));
}

absl::StatusOr<std::unique_ptr<nettrace::Reader>> OpenInput(const std::string& path,
                                                            Progress* progress, struct stat* file,
                                                            bool skip_damage, bool follow) {
  ASSIGN_OR_RETURN(std::unique_ptr<nettrace::Source> source,
                   OpenSource(path, progress, file, follow));
  nettrace::ReaderOptions options;
  options.skip_damage = skip_damage;
  return nettrace::Reader::Open(std::move(source), options);
}

std::string RefusalText(const nettrace::Reader& reader) {
  return "TraceEvent, the library of PerfView, cannot show this file: " +
         reader.traceevent_refusal();
}

int FinishOutput(const char* command, int exit_code) {
  const int error = std::fflush(stdout) == 0 ? 0 : errno;
  if (error == 0 && std::ferror(stdout) == 0) return exit_code;
  // If `error` is 0, fflush() succeeded, but an earlier write failed, and its errno is not known.
  constexpr char kWhat[] = "standard output cannot be written";
  absl::FPrintF(stderr, "nettrace %s: %s\n", command,
                error == 0 ? kWhat : std::string(absl::ErrnoToStatus(error, kWhat).message()));
  return cli::kExitFailed;
}

int WithinMemory(const char* name, const std::vector<std::string>& files,
                 const std::function<int()>& command, int exit_code) {
  try {
    return command();
  } catch (const std::bad_alloc&) {
    // The memory that `command` used has been freed, so there is enough for the message.
    const auto append = [](std::string* text, const std::string& file) {
      absl::StrAppend(text, InputName(file));
    };
    absl::FPrintF(stderr,
                  "nettrace %s: %s: not enough memory; free some, or raise the limit of the "
                  "process (ulimit -v)\n",
                  name, absl::StrJoin(files, ", ", append));
    return exit_code;
  }
}

std::string InputName(const std::string& path) {
  return path == "-" ? "standard input" : base::Printable(path);
}

void PrintInputError(const char* command, const std::string& path, const absl::Status& status) {
  absl::FPrintF(stderr, "nettrace %s: %s: %s\n", command, InputName(path),
                base::Printable(std::string(status.message())));
}

}  // namespace tools
