#include "tools/nettrace/command/input_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <new>
#include <set>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nettrace/merger.h"
#include "nettrace/sink.h"
#include "nettrace/source.h"
#include "tools/base/signals_blocked.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/base/unique_fd.h"
#include "tools/trace/unknown_end.h"
#include "tools/trace/zstd_source.h"

namespace tools {
namespace {

bool IsTrace(std::string_view name) {
  return name.ends_with(".nettrace") || name.ends_with(".nettrace.zst");
}

// Adds the NetTrace files in a directory to `paths`, sorted by name. Prints how many partial files
// it leaves out.
absl::Status AddFiles(const char* command, const std::string& path,
                      std::vector<std::string>* paths) {
  DIR* const directory = opendir(path.c_str());
  if (directory == nullptr) {
    return base::ErrnoStatus(errno, absl::StrCat(InputName(path), ": cannot be read"));
  }
  std::vector<std::string> names;
  std::uint64_t partial = 0;
  while (const dirent* const entry = readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (IsTrace(name)) names.emplace_back(name);
    if (name.ends_with(".partial") && IsTrace(name.substr(0, name.size() - 8))) ++partial;
  }
  closedir(directory);
  if (partial != 0) {
    absl::FPrintF(stderr, "nettrace %s: %s: left out %s; name such a file (*.partial) to read it\n",
                  command, InputName(path), base::Counted(partial, "partial file"));
  }
  if (names.empty()) {
    return absl::NotFoundError(
        absl::StrCat(InputName(path),
                     ": the directory has no files named *.nettrace or *.nettrace.zst; name "
                     "another directory, or a file"));
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    paths->push_back(absl::StrCat(path, path.back() == '/' ? "" : "/", name));
  }
  return absl::OkStatus();
}

// Removes all but the first of the paths that name the same file. Prints how many paths it removed.
void RemoveRepeated(const char* command, std::vector<std::string>* paths) {
  std::set<std::pair<dev_t, ino_t>> known;
  std::string first;
  const std::size_t removed = std::erase_if(*paths, [&](const std::string& path) {
    struct stat facts = {};
    if (path == "-" || stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return false;
    if (known.emplace(facts.st_dev, facts.st_ino).second) return false;
    if (first.empty()) first = path;
    return true;
  });
  if (removed == 0) return;
  absl::FPrintF(stderr, "nettrace %s: %s: named more than once; reading it once%s\n", command,
                InputName(first),
                removed == 1 ? "" : absl::StrCat("; other repeated paths left out: ", removed - 1));
}

// Reads another source up to a maximum number of bytes.
class LimitedSource : public nettrace::Source {
 public:
  LimitedSource(std::unique_ptr<nettrace::Source> source, std::uint64_t limit)
      : source_(std::move(source)), left_(limit) {}

  absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) override {
    buffer = buffer.first(static_cast<std::size_t>(std::min<std::uint64_t>(left_, buffer.size())));
    if (buffer.empty()) return 0;
    ASSIGN_OR_RETURN(const std::size_t got, source_->Read(buffer));
    left_ -= got;
    return got;
  }

 private:
  std::unique_ptr<nettrace::Source> source_;
  std::uint64_t left_;
};

// Opens a reader of the first bytes of a file, up to its size in `facts`. Fails with Aborted if
// another file has this path now.
absl::StatusOr<std::unique_ptr<nettrace::Reader>> OpenUnchangedFile(const std::string& path,
                                                                    const struct stat& facts) {
  ASSIGN_OR_RETURN(const int fd, OpenDescriptor(path));
  auto file = std::make_unique<nettrace::FdSource>(fd, "cannot be read");
  struct stat now = {};
  if (fstat(fd, &now) != 0 || now.st_dev != facts.st_dev || now.st_ino != facts.st_ino) {
    return absl::AbortedError("was replaced while it was read; try again");
  }
  ASSIGN_OR_RETURN(std::unique_ptr<nettrace::Source> source,
                   trace::OpenCompressed(std::make_unique<LimitedSource>(
                       std::move(file), static_cast<std::uint64_t>(facts.st_size))));
  return nettrace::Reader::Open(std::move(source));
}

// Writes all bytes to a blocking descriptor. `*taken` receives the number of bytes written, even if
// the function fails.
absl::Status WriteAll(int fd, std::span<const std::byte> bytes, std::size_t* taken) {
  for (*taken = 0; *taken < bytes.size();) {
    const ssize_t written = write(fd, bytes.data() + *taken, bytes.size() - *taken);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return absl::ErrnoToStatus(errno, "the pipe cannot be written");
    *taken += static_cast<std::size_t>(written);
  }
  return absl::OkStatus();
}

}  // namespace

void AddFilesOption(CLI::App* command, std::vector<std::string>* paths) {
  command
      ->add_option("file", *paths,
                   "Files to read, or directories whose .nettrace files are read; - is standard "
                   "input")
      ->required();
}

absl::StatusOr<std::vector<std::string>> FindFiles(const char* command,
                                                   const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    struct stat facts = {};
    if (path != "-" && stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode)) {
      RETURN_IF_ERROR(AddFiles(command, path, &files));
    } else {
      files.push_back(path);
    }
  }
  if (files.size() > 1 && std::find(files.begin(), files.end(), "-") != files.end()) {
    return absl::InvalidArgumentError(
        "standard input: cannot be read together with files; name either files or -");
  }
  RemoveRepeated(command, &files);
  return files;
}

namespace {

// Returns the status of the problem, with the name of its file before the message.
absl::Status Named(const InputFiles::Problem& problem) {
  return absl::Status(problem.status.code(),
                      absl::StrCat(InputName(problem.path), ": ", problem.status.message()));
}

}  // namespace

// Merges files on a thread, which writes the result to a pipe.
class InputFiles::Merge {
 public:
  explicit Merge(const std::vector<std::string>& paths) : paths_(paths) {
    for (const std::string& path : paths) {
      merger_.AddInput([this, path] { return OpenInput(path, &progress_); });
    }
  }
  // Merges the files for InputFiles::OpenUnchanged: only up to their sizes in `facts`.
  Merge(const std::vector<std::string>& paths, const std::vector<struct stat>& facts)
      : paths_(paths),
        facts_(facts),
        readers_(paths.size()),
        merger_({.add_at_end = [this](const nettrace::Reader& input) {
          FindUnknownEnd(input);
          return std::vector<nettrace::AddedEvent>();
        }}) {
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      merger_.AddInput([this, i] {
        auto reader = OpenUnchangedFile(paths_[i], facts_[i]);
        if (reader.ok()) readers_[i] = reader->get();
        return reader;
      });
    }
  }
  ~Merge() { Wait(); }
  Merge(const Merge&) = delete;
  Merge& operator=(const Merge&) = delete;

  // Starts the thread. Returns the descriptor from which the caller reads the pipe, and which the
  // caller must close.
  absl::StatusOr<int> Start() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "a pipe cannot be made");
    // The thread must receive no SIGPIPE: if the reader closes the pipe, the write fails instead,
    // and the thread ends.
    const base::SignalsBlocked blocked;
    thread_ = std::thread([this, fd = ends[1]] { Run(base::UniqueFd(fd)); });
    return ends[0];
  }
  // Waits until the thread has ended. The pipe must have been closed, or read to its end.
  void Wait() {
    if (thread_.joinable()) thread_.join();
  }
  // Returns an event for each file without an end block. It states the time in which the losses of
  // the file are unknown. Must be called after Wait, and only if the object was created with
  // `facts`.
  const std::vector<trace::AccountEvent>& unknown_ends() const { return unknown_ends_; }
  // Returns the files that were not merged completely, with their errors. Must be called after
  // Wait.
  std::vector<Problem> Problems() const {
    std::vector<Problem> problems;
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      const bool is_failed = !status_.ok() && merger_.failed_input() == i;
      const absl::Status& status = is_failed ? status_ : merger_.status(i);
      if (!status.ok()) problems.push_back({paths_[i], status});
    }
    if (problems.empty() && !status_.ok()) problems.push_back({paths_.front(), status_});
    return problems;
  }

 private:
  void Run(base::UniqueFd pipe) {
    try {
      const auto write = [&pipe](std::span<const std::byte> bytes, std::size_t* taken) {
        return WriteAll(pipe.get(), bytes, taken);
      };
      status_ = merger_.Run(std::make_unique<nettrace::CallbackSink>(write));
    } catch (const std::bad_alloc&) {
      status_ = absl::ResourceExhaustedError("not enough memory");
    }
  }

  // If the input has no end block, adds the time in which its losses are unknown to unknown_ends_.
  // The input must have been read to its end.
  void FindUnknownEnd(const nettrace::Reader& input) {
    const auto index = std::find(readers_.begin(), readers_.end(), &input) - readers_.begin();
    const auto end = trace::UnknownEnd(input, facts_[static_cast<std::size_t>(index)]);
    if (end) unknown_ends_.push_back(*end);
  }

  const std::vector<std::string> paths_;
  const std::vector<struct stat> facts_;
  std::vector<const nettrace::Reader*> readers_;  // for each input, the reader that was opened last
  std::vector<trace::AccountEvent> unknown_ends_;
  Progress progress_{"", /*wanted=*/false};  // the caller shows the progress of the pipe
  nettrace::Merger merger_;
  std::thread thread_;
  absl::Status status_;
};

// Reads the pipe of a merge. The destructor closes the pipe, which ends the thread of the merge,
// and waits for the thread.
class InputFiles::MergedSource : public nettrace::Source {
 public:
  MergedSource(std::unique_ptr<nettrace::Source> pipe, std::shared_ptr<Merge> merge,
               Progress* progress)
      : pipe_(std::move(pipe)), merge_(std::move(merge)), progress_(progress) {}
  ~MergedSource() override {
    pipe_.reset();  // ends the thread of the merge
    merge_->Wait();
  }
  MergedSource(const MergedSource&) = delete;
  MergedSource& operator=(const MergedSource&) = delete;

  absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) override {
    absl::StatusOr<std::size_t> got = pipe_->Read(buffer);
    if (got.ok()) progress_->AddRead(*got);
    return got;
  }

 private:
  std::unique_ptr<nettrace::Source> pipe_;
  const std::shared_ptr<Merge> merge_;
  Progress* const progress_;
};

std::string InputFiles::Name() const {
  return is_one() ? InputName(paths_.front()) : base::Counted(paths_.size(), "file");
}

absl::StatusOr<base::UniqueFd> InputFiles::OpenPipe(std::shared_ptr<Merge>* merge) const {
  *merge = std::make_shared<Merge>(paths_);
  ASSIGN_OR_RETURN(const int fd, (*merge)->Start());
  return base::UniqueFd(fd);
}

absl::StatusOr<InputFiles::Opened> InputFiles::Open(Progress* progress,
                                                    std::vector<struct stat>* facts) const {
  if (is_one()) {
    struct stat file = {};
    absl::StatusOr<std::unique_ptr<nettrace::Reader>> reader =
        OpenInput(paths_.front(), progress, &file);
    if (facts != nullptr) *facts = {file};
    if (reader.ok()) return Opened{*std::move(reader), nullptr};
    return Named({paths_.front(), reader.status()});
  }
  if (facts != nullptr) {
    for (const std::string& path : paths_) {
      if (stat(path.c_str(), &facts->emplace_back()) == 0) continue;
      return Named({path, absl::ErrnoToStatus(errno, "cannot be opened")});
    }
  }
  return OpenMerge(std::make_shared<Merge>(paths_), progress);
}

absl::StatusOr<InputFiles::Opened> InputFiles::OpenUnchanged(
    Progress* progress, const std::vector<struct stat>& facts) const {
  return OpenMerge(std::make_shared<Merge>(paths_, facts), progress);
}

std::vector<trace::AccountEvent> InputFiles::UnknownEnds(const Opened& opened) {
  opened.merge->Wait();
  return opened.merge->unknown_ends();
}

absl::StatusOr<InputFiles::Opened> InputFiles::OpenMerge(std::shared_ptr<Merge> merge,
                                                         Progress* progress) const {
  ASSIGN_OR_RETURN(const int fd, merge->Start());
  auto pipe = std::make_unique<nettrace::FdSource>(
      fd, "the merged events of the input files cannot be read");
  absl::StatusOr<std::unique_ptr<nettrace::Reader>> reader =
      nettrace::Reader::Open(std::make_unique<MergedSource>(std::move(pipe), merge, progress));
  // The stream is empty if a file cannot be opened. When the thread of the merge has ended,
  // merge->Problems() returns the error.
  const bool is_empty = reader.ok() && (*reader)->major_version() == 0;
  if (reader.ok() && !is_empty) return Opened{*std::move(reader), std::move(merge)};
  // Replacing the reader by an error destroys its MergedSource, which ends the thread.
  if (is_empty) reader = absl::InternalError("the files cannot be merged");
  const std::vector<Problem> problems = merge->Problems();
  return problems.empty() ? reader.status() : Named(problems.front());
}

std::vector<InputFiles::Problem> InputFiles::Problems(const Opened& opened,
                                                      const absl::Status& status) const {
  if (opened.merge != nullptr) {
    opened.merge->Wait();
    return opened.merge->Problems();
  }
  if (status.ok()) return {};
  return {{paths_.front(), status}};
}

int PrintProblems(const char* command, const std::vector<InputFiles::Problem>& problems) {
  for (const InputFiles::Problem& problem : problems) {
    PrintInputError(command, problem.path, problem.status);
  }
  return problems.empty() ? cli::kExitOk : cli::kExitDamaged;
}

void PrintFilesError(const char* command, const absl::Status& status) {
  absl::FPrintF(stderr, "nettrace %s: %s\n", command,
                base::Printable(std::string(status.message())));
}

}  // namespace tools
