#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "collector/recorder.h"
#include "collector/selector.h"
#include "collector/status_util.h"
#include "collector/unique_fd.h"
#include "nettrace/commands.h"
#include "nettrace/progress_line.h"

namespace tools {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitNoCommand = 127;  // as a shell has it

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

// Starts `command` with the signals of a fresh process.
absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& command) {
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
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv[0], nullptr, &attributes, argv.data(), environ);
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
                arguments.output == "-" ? "standard output" : arguments.output, summary.events,
                summary.lost, summary.bytes, summary.threads, summary.tracepoints);
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

absl::StatusOr<std::unique_ptr<nettrace::Sink>> OpenOutput(const std::string& path) {
  if (path == "-") {
    const int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (fd < 0) return collector::ErrnoStatus(errno, "standard output");
    return std::make_unique<nettrace::FdSink>(fd, "standard output");
  }
  return nettrace::FdSink::Create(path);
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
    const absl::StatusOr<pid_t> pid = Spawn(arguments.command);
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
      signalfd_siginfo signal;
      while (read(signals->get(), &signal, sizeof signal) == sizeof signal) {
        if (signal.ssi_signo != SIGCHLD) stop = true;
      }
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
      "Exit code: that of the command if there is one, else 0; 1 the recording failed; 2 usage;\n"
      "127 the command cannot be started.\n\n"
      "Examples:\n"
      "  nettrace record -o trace.nettrace -e MyCompany_MyService --duration 10s\n"
      "  nettrace record -o trace.nettrace -e MyCompany_MyService:warning:0x3 -- ./service\n"
      "  nettrace record -o trace.nettrace -e MyCompany_MyService_L4K1   # registered beforehand\n"
      "  nettrace record -o - -e sched:sched_switch --duration 1s | nettrace dump -\n");
  record->callback([arguments, exit_code] { *exit_code = Record(*arguments); });
}

}  // namespace tools
