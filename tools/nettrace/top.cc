// `nettrace top`: shows statistics of events, live on a full screen or once as a table.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tools/base/progress_line.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/base/unique_fd.h"
#include "tools/cli/child_process.h"
#include "tools/cli/exit_codes.h"
#include "tools/cli/signals.h"
#include "tools/cli/value_options.h"
#include "tools/nettrace/command/filter_options.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/commands.h"
#include "tools/nettrace/top/feed.h"
#include "tools/nettrace/top/report.h"
#include "tools/nettrace/top/screen.h"
#include "tools/nettrace/top/terminal.h"
#include "tools/trace/event_filter.h"

namespace tools {
namespace {

using base::UniqueFd;

constexpr char kTopCommand[] = "top";

constexpr int kSilence = 500;  // ms to wait for the end of a recording before printing a message

struct TopArguments {
  std::string path;
  std::vector<std::string> selectors;
  std::string session;
  std::string socket;
  bool once = false;
  bool json = false;
  top::View view = top::View::kEvent;
  top::Column column = top::Column::kRate;
  bool reverse = false;
  absl::Duration interval = absl::Seconds(1);
  std::optional<absl::Duration> run_for;
  std::size_t max_rows = top::ModelOptions().max_rows;
  trace::EventFilter filter;

  bool is_live() const { return path.empty(); }
  // Returns the name of the source for display and messages.
  std::string source() const {
    if (!session.empty()) return "session " + base::Printable(session);
    return is_live() ? "recording" : InputName(path);
  }
};

int Fail(const absl::Status& status, int exit_code = cli::kExitFailed) {
  absl::FPrintF(stderr, "nettrace top: %s\n", base::Printable(std::string(status.message())));
  return exit_code;
}

// The child process, `nettrace record` or `nettrace ctl tail`, whose output is read.
class Recorder {
 public:
  // Starts the process and returns its output. With `keeps_errors`, its error messages are kept
  // until PrintErrors.
  absl::StatusOr<UniqueFd> Start(const TopArguments& arguments, bool keeps_errors) {
    if (keeps_errors) {
      errors_ = UniqueFd(memfd_create("nettrace-top", MFD_CLOEXEC));
      if (errors_.get() < 0) return base::ErrnoStatus(errno, "memfd_create");
    }
    std::array<int, 2> pipe = {-1, -1};
    if (pipe2(pipe.data(), O_CLOEXEC) != 0) return base::ErrnoStatus(errno, "pipe");
    UniqueFd output(pipe[0]);
    const UniqueFd input(pipe[1]);
    auto child = cli::ChildProcess::StartWithOutput(Command(arguments), input.get(),
                                                    keeps_errors ? errors_.get() : STDERR_FILENO);
    if (!child.ok()) return child.status();
    child_ = *std::move(child);
    return output;
  }
  bool is_started() const { return child_.has_value(); }
  void Terminate() { child_->Terminate(); }

  // Waits for the process to end, unless the user asks to stop again. Returns its exit code.
  int Wait() {
    while (true) {
      cli::ClearWake();
      if (const std::optional<int> code = child_->Reap()) {
        child_.reset();
        return *code;
      }
      std::array<pollfd, 2> fds = {pollfd{cli::WakeDescriptor(), POLLIN, 0},
                                   pollfd{cli::HurryDescriptor(), POLLIN, 0}};
      poll(fds.data(), fds.size(), -1);
      if (fds[1].revents != 0) return cli::kExitFailed;
    }
  }
  // Prints the error messages that have been added since the last call.
  void PrintErrors() {
    if (errors_.get() < 0) return;
    char buffer[4096];
    ssize_t got = 0;
    while ((got = pread(errors_.get(), buffer, sizeof buffer, printed_)) > 0) {
      std::fwrite(buffer, 1, static_cast<std::size_t>(got), stderr);
      printed_ += got;
    }
  }

 private:
  static std::vector<std::string> Command(const TopArguments& arguments) {
    constexpr char kThisProgram[] = "/proc/self/exe";
    if (!arguments.session.empty()) {
      std::vector<std::string> command = {kThisProgram, "ctl", "tail"};
      if (!arguments.socket.empty()) command.insert(command.end(), {"--socket", arguments.socket});
      command.insert(command.end(), {"--", arguments.session});
      return command;
    }
    std::vector<std::string> command = {kThisProgram, "record", "-o", "-"};
    for (const std::string& selector : arguments.selectors) {
      command.insert(command.end(), {"-e", selector});
    }
    return command;
  }

  std::optional<cli::ChildProcess> child_;
  UniqueFd errors_;
  off_t printed_ = 0;
};

class Top {
 public:
  Top(const TopArguments& arguments, bool is_screen)
      : arguments_(arguments),
        is_screen_(is_screen),
        feed_(OptionsOf(arguments, is_screen), arguments.filter) {}

  // Starts reading. Prints errors, and returns the exit code if it fails.
  std::optional<int> Start() {
    absl::StatusOr<UniqueFd> input = UniqueFd();
    if (arguments_.is_live()) {
      input = recorder_.Start(arguments_, is_screen_);
      if (!input.ok()) return Fail(input.status());
    } else {
      const absl::StatusOr<int> fd = OpenDescriptor(arguments_.path);
      if (!fd.ok()) {
        PrintInputError(kTopCommand, arguments_.path, fd.status());
        if (absl::IsNotFound(fd.status()) && arguments_.path.find('/') == std::string::npos) {
          absl::FPrintF(stderr, "nettrace top: to show a session of nettraced, use --session\n");
        }
        return cli::kExitUnreadable;
      }
      input = UniqueFd(*fd);
      struct stat facts = {};
      is_file_ = fstat(*fd, &facts) == 0 && S_ISREG(facts.st_mode);
    }
    if (const absl::Status status = feed_.Start(*std::move(input)); !status.ok()) {
      return Fail(status);
    }
    return std::nullopt;
  }

  // Shows the screen until the user quits, a signal arrives, or the terminal is closed.
  void ShowScreen(std::unique_ptr<top::Terminal> terminal);
  // Waits until the stream ends or the requested time is over.
  void WaitForEnd(bool heeds_signals);
  // Completes the stream if it has not ended.
  void EndStream();
  // Prints the errors and returns the exit code. Must be called after EndStream.
  int Report();
  top::Feed& feed() { return feed_; }

 private:
  static top::ModelOptions OptionsOf(const TopArguments& arguments, bool is_screen) {
    top::ModelOptions options;
    options.max_rows = arguments.max_rows;
    options.keeps_events = is_screen;
    options.interval = arguments.interval;
    return options;
  }
  std::string State(bool has_ended);
  bool HasEnded() const {
    pollfd fd = {feed_.ended_descriptor(), POLLIN, 0};
    return poll(&fd, 1, 0) == 1;
  }

  const TopArguments& arguments_;
  const bool is_screen_;
  bool is_file_ = false;
  top::Feed feed_;
  Recorder recorder_;
};

std::string Top::State(bool has_ended) {
  if (has_ended) return feed_.end().status.ok() ? "ended" : "ended, incomplete";
  if (!feed_.has_begun()) return "waiting";
  return is_file_ ? "reading" : "live";
}

void Top::ShowScreen(std::unique_ptr<top::Terminal> terminal) {
  top::Screen screen(
      arguments_.source(), arguments_.view, arguments_.column, arguments_.reverse,
      [this](top::View view, const std::string& key) { return feed_.LastEvents(view, key); });
  bool has_ended = false;
  absl::Time next = absl::InfinitePast();
  while (true) {
    if (absl::Now() >= next) {
      screen.Update(feed_.TakeSnapshot(), State(has_ended));
      next = has_ended ? absl::InfiniteFuture() : absl::Now() + arguments_.interval;
    }
    if (!terminal->Paint(screen.Lines(terminal->Size()))) return;
    const absl::Duration wait = next - absl::Now();
    // Adds one millisecond, because the conversion to milliseconds rounds down.
    const int timeout =
        has_ended
            ? -1
            : static_cast<int>(absl::ToInt64Milliseconds(std::max(wait, absl::ZeroDuration()))) + 1;
    std::array<pollfd, 4> fds = {pollfd{terminal->key_descriptor(), POLLIN, 0},
                                 pollfd{terminal->signal_descriptor(), POLLIN, 0},
                                 pollfd{cli::StopDescriptor(), POLLIN, 0},
                                 pollfd{has_ended ? -1 : feed_.ended_descriptor(), POLLIN, 0}};
    if (poll(fds.data(), fds.size(), timeout) < 0 && errno != EINTR) return;
    if (cli::IsStopRequested()) return;
    if (fds[3].revents != 0) {
      has_ended = true;
      if (!feed_.end().is_open || feed_.end().is_empty) return;  // there is no data to show
      next = absl::InfinitePast();
    }
    if (fds[1].revents != 0) terminal->OnSignal();
    if (fds[0].revents == 0) continue;
    std::vector<top::Key> keys;
    if (!terminal->ReadKeys(&keys)) return;
    const bool was_paused = screen.is_paused();
    for (const top::Key key : keys) {
      if (!screen.OnKey(key)) return;
    }
    if (was_paused && !screen.is_paused()) next = absl::InfinitePast();
  }
}

void Top::WaitForEnd(bool heeds_signals) {
  base::ProgressLine progress;
  absl::Time end = absl::InfiniteFuture();
  while (true) {
    if (arguments_.run_for && feed_.has_begun() && end == absl::InfiniteFuture()) {
      end = absl::Now() + *arguments_.run_for;
    }
    const absl::Duration left =
        std::clamp(end - absl::Now(), absl::ZeroDuration(), absl::Milliseconds(500));
    if (left == absl::ZeroDuration()) return;
    const bool waits_for_begin = arguments_.run_for && !feed_.has_begun();
    std::array<pollfd, 3> fds = {pollfd{feed_.ended_descriptor(), POLLIN, 0},
                                 pollfd{waits_for_begin ? feed_.begun_descriptor() : -1, POLLIN, 0},
                                 pollfd{heeds_signals ? cli::StopDescriptor() : -1, POLLIN, 0}};
    poll(fds.data(), fds.size(), static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (fds[0].revents != 0 || (heeds_signals && cli::IsStopRequested())) return;
    progress.Update([this] { return absl::StrFormat("nettrace top: %d events", feed_.events()); });
  }
}

void Top::EndStream() {
  if (recorder_.is_started() && !HasEnded()) {
    // The recorder delivers the remaining events and the end of the stream.
    recorder_.Terminate();
    std::array<pollfd, 2> fds = {pollfd{feed_.ended_descriptor(), POLLIN, 0},
                                 pollfd{cli::HurryDescriptor(), POLLIN, 0}};
    if (poll(fds.data(), fds.size(), kSilence) == 0) {
      absl::FPrintF(stderr, "nettrace top: waiting for the end of the recording\n");
    }
    while (poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR) {
    }
  }
  feed_.Stop();
  pollfd ended = {feed_.ended_descriptor(), POLLIN, 0};
  while (poll(&ended, 1, -1) < 0 && errno == EINTR) {
  }
}

int Top::Report() {
  const bool is_recorded = recorder_.is_started();
  recorder_.PrintErrors();
  const int recorded = is_recorded ? recorder_.Wait() : cli::kExitOk;
  recorder_.PrintErrors();
  const top::StreamEnd end = feed_.end();
  if (recorded != cli::kExitOk) return recorded;
  if (!end.sort_status.ok()) {
    PrintInputError(kTopCommand, arguments_.path, end.sort_status);
    return cli::kExitFailed;
  }
  // A stopped stream may be incomplete.
  if (end.status.ok() || (end.is_stopped && absl::IsCancelled(end.status))) return cli::kExitOk;
  if (is_recorded)
    return Fail(absl::Status(end.status.code(),
                             arguments_.source() + ": " + std::string(end.status.message())));
  PrintInputError(kTopCommand, arguments_.path, end.status);
  return end.is_open ? cli::kExitDamaged : cli::kExitUnreadable;
}

int RunOnce(const TopArguments& arguments) {
  // Signals end a recording, or a reading of limited time, in an orderly way.
  const bool heeds_signals = arguments.is_live() || arguments.run_for;
  if (heeds_signals) {
    struct sigaction on_broken_pipe = {};
    sigaction(SIGPIPE, nullptr, &on_broken_pipe);
    if (const absl::Status status = cli::CatchSignals(); !status.ok()) return Fail(status);
    sigaction(SIGPIPE, &on_broken_pipe, nullptr);
  }
  Top top(arguments, /*is_screen=*/false);
  if (const std::optional<int> code = top.Start()) return *code;
  top.WaitForEnd(heeds_signals);
  top.EndStream();
  // A recorder that failed has printed its error.
  if (top.feed().end().is_open && !(arguments.is_live() && top.feed().end().is_empty)) {
    const top::Snapshot snapshot = top.feed().TakeSnapshot();
    const std::string text =
        arguments.json
            ? top::ReportJson(snapshot, top.feed().end().is_complete) + "\n"
            : top::ReportText(snapshot, arguments.view, arguments.column, arguments.reverse);
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  const int exit_code = top.Report();
  return FinishOutput(kTopCommand, exit_code);
}

int RunScreen(const TopArguments& arguments) {
  if (const absl::Status status = cli::CatchSignals(); !status.ok()) return Fail(status);
  absl::StatusOr<std::unique_ptr<top::Terminal>> terminal = top::Terminal::Open();
  if (!terminal.ok()) {
    absl::FPrintF(stderr, "nettrace top: %s; use --once where there is no terminal\n",
                  base::Printable(std::string(terminal.status().message())));
    return cli::kExitFailed;
  }
  if (arguments.path == "-" && isatty(STDIN_FILENO) == 1) {
    terminal->reset();
    return Fail(absl::InvalidArgumentError("standard input is a terminal; it must be a NetTrace "
                                           "stream"),
                cli::kExitUsage);
  }
  Top top(arguments, /*is_screen=*/true);
  if (const std::optional<int> code = top.Start()) return *code;
  top.ShowScreen(*std::move(terminal));
  top.EndStream();
  return top.Report();
}

void AddShown(CLI::App* command, TopArguments* arguments) {
  std::vector<std::string> views;
  views.reserve(top::kViews.size());
  for (const top::View view : top::kViews) views.emplace_back(top::NameOf(view));
  command
      ->add_option_function<std::string>(
          "--by",
          [arguments, views](const std::string& name) {
            const auto found = std::find(views.begin(), views.end(), name);
            arguments->view = top::kViews[static_cast<std::size_t>(found - views.begin())];
          },
          "Rows that are shown first, or rows of the table")
      ->check(CLI::IsMember(views))
      ->default_str("event");
  std::vector<std::string> columns;
  columns.reserve(top::kColumns.size());
  for (const top::ColumnFacts& facts : top::kColumns) columns.emplace_back(facts.name);
  command
      ->add_option_function<std::string>(
          "--sort",
          [arguments, columns](const std::string& name) {
            const auto found = std::find(columns.begin(), columns.end(), name);
            arguments->column =
                top::kColumns[static_cast<std::size_t>(found - columns.begin())].column;
          },
          "Column to sort the rows by, the largest value first")
      ->check(CLI::IsMember(columns))
      ->default_str("rate");
  command->add_flag("--reverse", arguments->reverse, "Sort the smallest value first");
  command
      ->add_option("--max-rows", arguments->max_rows,
                   "Maximum number of rows of each kind; if there are more, those with the fewest "
                   "events are combined")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
}

void AddSources(CLI::App* command, TopArguments* arguments) {
  CLI::Option* file =
      command->add_option("file", arguments->path, "File to read; - is standard input");
  CLI::Option* selectors =
      command
          ->add_option("-e", arguments->selectors,
                       "Record these events, like nettrace record -e; may be repeated")
          ->allow_extra_args(false);
  CLI::Option* session = command->add_option("--session", arguments->session,
                                             "Show the events of this session of nettraced");
  command->add_option("--socket", arguments->socket, "Control socket of the daemon")
      ->needs(session);
  file->excludes(selectors, session);
  selectors->excludes(session);
}

}  // namespace

void AddTop(CLI::App& app, int* exit_code) {
  auto arguments = std::make_shared<TopArguments>();
  CLI::App* command = app.add_subcommand("top", "Show the rates and durations of events live");
  AddSources(command, arguments.get());
  AddShown(command, arguments.get());
  cli::AddDurationOption(
      command, "--interval", absl::Milliseconds(100),
      [arguments](absl::Duration time) { arguments->interval = time; },
      "Time between two updates, and minimum time over which rates are computed; default 1s, "
      "minimum 100ms");
  command->add_flag("--once", arguments->once,
                    "Print a table at the end of the stream or after --for; the default if "
                    "standard output is not a terminal");
  command->add_flag("--json", arguments->json, "Print a JSON object with all rows; implies --once");
  cli::AddDurationOption(
      command, "--for", absl::ZeroDuration(),
      [arguments](absl::Duration time) { arguments->run_for = time; },
      "Read for this time, e.g. 10s; implies --once. For a table of -e or --session, the default "
      "is --interval");
  AddFilterOptions(command, &arguments->filter);
  command->footer(
      "Keys: p, e, o, t and c show providers, events, processes, threads and CPUs; left and right "
      "select the column to sort by; Enter shows the last events of a row; / filters rows; space "
      "pauses the screen; q quits; ? shows all keys.\n\n"
      "Exit code: 0 everything was read, or the user stopped it; 1 the input is cut or damaged, "
      "and everything before the damage was counted, or the recording failed; 2 the input cannot "
      "be read, or wrong usage; 3 a selector matched no tracepoint.\n\n"
      "Examples:\n"
      "  nettrace top --once --by provider trace.nettrace\n"
      "  nettrace top --json trace.nettrace | jq '.byEvent.rows[0]'\n"
      "  nettrace top --once -e 'sched:*' --for 2s\n"
      "  nettrace record -o - -e sched:sched_switch --duration 1s | nettrace top -\n");
  command->callback([arguments, exit_code] {
    if (arguments->path.empty() && arguments->selectors.empty() && arguments->session.empty()) {
      throw CLI::RequiredError("file, -e or --session");
    }
    arguments->filter.processes = trace::EventFilter::Added::kHidden;
    arguments->filter.account = trace::EventFilter::Added::kHidden;
    const bool is_screen = !arguments->once && !arguments->json && !arguments->run_for &&
                           base::IsScreen(STDOUT_FILENO);
    if (!is_screen && arguments->is_live() && !arguments->run_for) {
      arguments->run_for = arguments->interval;
    }
    *exit_code = WithinMemory(kTopCommand, {arguments->source()}, [&] {
      return is_screen ? RunScreen(*arguments) : RunOnce(*arguments);
    });
  });
}

}  // namespace tools
