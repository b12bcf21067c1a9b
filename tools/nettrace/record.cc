#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tools/collector/base/status_util.h"
#include "tools/collector/base/unique_fd.h"
#include "tools/collector/session/recorder.h"
#include "tools/collector/session/selector.h"
#include "tools/common/progress_line.h"
#include "tools/nettrace/commands.h"

namespace tools {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitNoCommand = 127;  // as a shell has it
constexpr char kStandardOutput[] = "-";
constexpr std::size_t kMaxRingSize = std::size_t{1} << 33;

struct RecordArguments {
  std::string output;
  std::vector<std::string> selectors;
  std::string duration;
  std::size_t ring_size = 1 << 20;
  bool json = false;
  std::vector<std::string> command;
};

int Fail(const absl::Status& status, int exit_code = kExitFailed) {
  absl::FPrintF(stderr, "nettrace record: %s\n", status.message());
  return exit_code;
}

// The sink, in all likelihood: what it has taken stays, and is readable to its last whole block.
int FailHalfway(const absl::Status& status, const nettrace::Writer::Stats& stats) {
  const std::uint64_t missing = stats.events - stats.events_written + stats.events_dropped;
  return Fail(absl::Status(
      status.code(),
      absl::StrCat(status.message(), "; ", stats.events_written, " events are in the file, ",
                   missing, " more are not; 'nettrace repair' gives it an end")));
}

// Signals that end the recording, or tell of the command's end, as a descriptor.
absl::StatusOr<collector::UniqueFd> BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  // A reader that goes away is an error of the write, not the end of the process.
  signal(SIGPIPE, SIG_IGN);  // NOLINT(bugprone-signal-handler)
  collector::UniqueFd fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return collector::ErrnoStatus(errno, "signalfd");
  return fd;
}

// Takes the signals of children. Those that ask for the end stay pending, for PipeSink to see
// them while the rest is written.
bool StopIsAsked() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  const timespec now = {};
  while (sigtimedwait(&signals, nullptr, &now) > 0) {
  }
  sigpending(&signals);
  return sigismember(&signals, SIGINT) == 1 || sigismember(&signals, SIGTERM) == 1;
}

// Starts `command` with the signals of a fresh process. `own_output`: standard output is the
// trace's, so that what the command prints there goes to standard error.
absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& command, bool own_output) {
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  if (own_output) posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return collector::ErrnoStatus(error, "starting " + command[0]);
  return pid;
}

// The command's exit code once it has ended, as a shell has it.
std::optional<int> Reap(pid_t pid) {
  int status = 0;
  if (waitpid(pid, &status, WNOHANG) != pid) return std::nullopt;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void PrintSummary(const RecordArguments& arguments, const collector::RecorderSummary& summary,
                  const std::vector<std::string>& unmatched) {
  if (arguments.json) {
    absl::PrintF(
        "{\"events\":%u,\"lost\":%u,\"undecoded\":%u,\"late\":%u,"
        "\"bytes\":%u,\"threads\":%u,\"tracepoints\":%u,\"sequencePoints\":%u}\n",
        summary.events, summary.lost, summary.undecoded, summary.late, summary.bytes,
        summary.threads, summary.tracepoints, summary.sequence_points);
    std::fflush(stdout);
  }
  absl::FPrintF(stderr, "%s: %u events, %u lost, %u bytes, %u threads, %u tracepoints\n",
                arguments.output == kStandardOutput ? "standard output" : arguments.output,
                summary.events, summary.lost, summary.bytes, summary.threads, summary.tracepoints);
  if (summary.lost != 0) {
    absl::FPrintF(stderr, "  lost: the rings were full; larger ones (--ring-size) hold more\n");
  }
  if (summary.undecoded != 0) {
    absl::FPrintF(stderr, "  %u events did not decode; they are in the file as '%s'\n",
                  summary.undecoded, collector::SampleWriter::kUndecoded);
  }
  if (summary.late != 0) {
    absl::FPrintF(stderr, "  %u events came late; their own time is in the label '%s'\n",
                  summary.late, collector::SampleWriter::kLateLabel);
  }
  if (summary.hits && *summary.hits != summary.events + summary.lost) {
    absl::FPrintF(stderr,
                  "  the kernel counted %u, which is not events + lost: please report this\n",
                  *summary.hits);
  }
  for (const std::string& selector : unmatched) {
    absl::FPrintF(stderr, "  selector '%s' matched no tracepoint\n", selector);
  }
}

// A pipe, or what is like one. If its reader takes nothing a write would wait without end, and with
// it the signals that are to end the recording.
class PipeSink : public nettrace::Sink {
 public:
  // Takes ownership of `fd`.
  static absl::StatusOr<std::unique_ptr<nettrace::Sink>> Create(int fd, const std::string& name) {
    auto sink = std::make_unique<PipeSink>(fd, name);
    if (!sink->stop_.valid()) return collector::ErrnoStatus(errno, "signalfd");
    return sink;
  }
  PipeSink(int fd, const std::string& name) : fd_(fd), name_(name), sink_(fd, name) {
    sigset_t signals;
    sigemptyset(&signals);
    for (int signal : {SIGINT, SIGTERM}) sigaddset(&signals, signal);
    stop_ = collector::UniqueFd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  }

  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override {
    *taken = 0;
    absl::Status status;
    while (status.ok() && *taken < bytes.size()) {
      if (!WaitForReader()) {
        return absl::UnavailableError("cannot write " + name_ + ": its reader takes nothing");
      }
      // So much a pipe that takes anything takes at once.
      const std::size_t size = std::min<std::size_t>(PIPE_BUF, bytes.size() - *taken);
      std::size_t now = 0;
      status = sink_.Append(bytes.subspan(*taken, size), &now);
      *taken += now;
    }
    return status;
  }
  absl::Status Sync() override { return sink_.Sync(); }

 private:
  // False if it is time to stop, and to give up.
  bool WaitForReader() {
    pollfd fds[] = {{fd_, POLLOUT, 0}, {stop_.get(), POLLIN, 0}};
    while (poll(fds, 2, given_up_ ? 0 : -1) < 0 && errno == EINTR) {
    }
    if (fds[0].revents != 0) return true;
    constexpr int kLastChance = 1000;  // ms, for a reader that is only slow
    given_up_ = given_up_ || poll(fds, 1, kLastChance) == 0;
    return !given_up_;
  }

  const int fd_;  // sink_ closes it
  const std::string name_;
  nettrace::FdSink sink_;
  collector::UniqueFd stop_;
  bool given_up_ = false;
};

// Waits for the pipe's reader. Until then a signal may end this process: nothing was recorded.
int OpenPipe(const std::string& path) {
  sigset_t none;
  sigset_t blocked;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, &blocked);
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const int error = errno;
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
  errno = error;
  return fd;
}

absl::StatusOr<std::unique_ptr<nettrace::Sink>> OpenOutput(const std::string& path) {
  const bool is_standard = path == kStandardOutput;
  struct stat facts = {};
  const int found = is_standard ? fstat(STDOUT_FILENO, &facts) : stat(path.c_str(), &facts);
  if (!is_standard && (found != 0 || !S_ISFIFO(facts.st_mode))) {
    return nettrace::FdSink::Create(path);
  }
  const std::string name = is_standard ? "standard output" : path;
  const int fd = is_standard ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3) : OpenPipe(path);
  if (fd < 0) return collector::ErrnoStatus(errno, name);
  if (S_ISREG(facts.st_mode)) return std::make_unique<nettrace::FdSink>(fd, name);
  return PipeSink::Create(fd, name);
}

int Record(const RecordArguments& arguments) {
  collector::RecorderOptions options;
  for (const std::string& text : arguments.selectors) {
    absl::StatusOr<collector::Selector> selector = collector::ParseSelector(text);
    if (!selector.ok()) return Fail(selector.status(), kExitUsage);
    options.selectors.push_back(*std::move(selector));
  }
  absl::Duration duration = absl::InfiniteDuration();
  if (!arguments.duration.empty() &&
      (!absl::ParseDuration(arguments.duration, &duration) || duration <= absl::ZeroDuration())) {
    return Fail(absl::InvalidArgumentError("--duration " + arguments.duration +
                                           ": not a time; use e.g. 500ms, 10s or 1h30m"),
                kExitUsage);
  }
  if (arguments.ring_size > kMaxRingSize) {
    return Fail(absl::InvalidArgumentError("--ring-size: not a size up to 8G; use e.g. 64K or 4M"),
                kExitUsage);
  }
  if (arguments.json && arguments.output == kStandardOutput) {
    return Fail(
        absl::InvalidArgumentError("--json: standard output is the trace's already; use -o FILE"),
        kExitUsage);
  }
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  options.ring_size = std::bit_ceil(std::max(arguments.ring_size, page));

  absl::StatusOr<collector::UniqueFd> signals = BlockSignals();
  if (!signals.ok()) return Fail(signals.status());
  auto recorder = collector::Recorder::Start(options, [&] { return OpenOutput(arguments.output); });
  if (!recorder.ok()) return Fail(recorder.status());
  if (absl::Status status = (*recorder)->WakeOn(signals->get()); !status.ok()) return Fail(status);
  const absl::Time end = absl::Now() + duration;

  pid_t command = -1;
  int exit_code = 0;
  if (!arguments.command.empty()) {
    const absl::StatusOr<pid_t> pid = Spawn(arguments.command, arguments.output == kStandardOutput);
    if (!pid.ok()) {
      exit_code = Fail(pid.status(), kExitNoCommand);
    } else {
      command = *pid;
    }
  }
  const bool run = arguments.command.empty() || command > 0;
  {
    ProgressLine progress;
    for (bool stop = !run; !stop;) {
      if (absl::Status status = (*recorder)->Poll(end - absl::Now()); !status.ok()) {
        if (command > 0) kill(command, SIGTERM);
        progress.Hide();
        return FailHalfway(status, (*recorder)->stats());
      }
      progress.Update([&] {
        const nettrace::Writer::Stats& stats = (*recorder)->stats();
        return absl::StrFormat("nettrace record: %d events, %d lost, %d bytes", stats.events,
                               stats.lost, stats.bytes);
      });
      stop = StopIsAsked();
      if (command > 0) {
        if (const std::optional<int> code = Reap(command)) {
          exit_code = *code;
          command = -1;
          stop = true;
        }
      }
      if (absl::Now() >= end) stop = true;
    }
  }
  // Nothing that was started for the recording is left behind.
  if (command > 0) kill(command, SIGTERM);

  const absl::StatusOr<collector::RecorderSummary> summary = (*recorder)->Finish();
  if (!summary.ok()) return FailHalfway(summary.status(), (*recorder)->stats());
  PrintSummary(arguments, *summary, (*recorder)->Unmatched());
  return exit_code;
}

}  // namespace

void AddRecord(CLI::App& app, int* exit_code) {
  auto arguments = std::make_shared<RecordArguments>();
  CLI::App* record = app.add_subcommand("record", "Record events into a NetTrace file");
  record->add_option("-o,--output", arguments->output, "File to write; - is standard output")
      ->required();
  record
      ->add_option(
          "-e,--event", arguments->selectors,
          "What to record: Provider[:level[:keyword mask]], Provider_LxKy or system:event; "
          "may be given several times")
      ->required()
      ->allow_extra_args(false);
  record->add_option("--duration", arguments->duration,
                     "Stop after this time, e.g. 500ms, 10s, 1h");
  record
      ->add_option("--ring-size", arguments->ring_size,
                   "Memory of each CPU's ring, e.g. 64K or 4M; rounded up to a power of two")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->default_str("1M");
  record->add_flag("--json", arguments->json, "Print the summary as JSON on standard output, too");
  record->add_option("command", arguments->command,
                     "Record until this command ends; write it behind --");
  record->footer(
      "It stops at the end of the duration or of the command, or on SIGINT or SIGTERM; a command "
      "that\n"
      "still runs then is sent SIGTERM.\n\n"
      "Exit code: that of the command if its end was that of the recording, else 0; 1 the "
      "recording\n"
      "failed; 2 usage;\n"
      "127 the command cannot be started.\n\n"
      "Examples:\n"
      "  nettrace record -o trace.nettrace -e MyCompany_MyService --duration 10s\n"
      "  nettrace record -o trace.nettrace -e MyCompany_MyService:warning:0x3 -- ./service\n"
      "  nettrace record -o trace.nettrace -e MyCompany_MyService_L4K1   # registered beforehand\n"
      "  nettrace record -o - -e sched:sched_switch --duration 1s | nettrace dump -\n");
  record->callback([arguments, exit_code] { *exit_code = Record(*arguments); });
}

}  // namespace tools
