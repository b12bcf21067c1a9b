#include "tools/nettrace/top/run.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "tools/base/progress_line.h"
#include "tools/base/text.h"
#include "tools/base/unique_fd.h"
#include "tools/cli/exit_codes.h"
#include "tools/cli/signals.h"
#include "tools/nettrace/command/color_option.h"
#include "tools/nettrace/command/input_files.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/top/feed.h"
#include "tools/nettrace/top/recorder.h"
#include "tools/nettrace/top/report.h"
#include "tools/nettrace/top/screen.h"
#include "tools/nettrace/top/terminal.h"

namespace tools::top {
namespace {

using base::UniqueFd;

constexpr int kSilence = 500;  // ms to wait for the end of a recording before printing a message

int Fail(const absl::Status& status, int exit_code = cli::kExitFailed) {
  absl::FPrintF(stderr, "nettrace top: %s\n", base::Printable(std::string(status.message())));
  return exit_code;
}

// Returns the arguments with which this program must be started to write the events of the source.
std::vector<std::string> RecorderArguments(const RunOptions& options) {
  if (!options.session.empty()) {
    std::vector<std::string> arguments = {"ctl", "tail"};
    if (!options.socket.empty()) arguments.insert(arguments.end(), {"--socket", options.socket});
    arguments.insert(arguments.end(), {"--", options.session});
    return arguments;
  }
  std::vector<std::string> arguments = {"record", "-o", "-"};
  for (const std::string& selector : options.selectors) {
    arguments.insert(arguments.end(), {"-e", selector});
  }
  return arguments;
}

// Returns the width of the terminal and whether to use colors. The width is kAnyWidth if standard
// output is not a terminal.
TableStyle StyleOfTable(const RunOptions& options) {
  TableStyle style;
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) style.width = size.ws_col;
  style.has_colors = HasColors(options.color);
  return style;
}

class Run {
 public:
  Run(const RunOptions& options, bool is_screen)
      : options_(options),
        is_screen_(is_screen),
        files_(options.paths),
        feed_(ModelOptionsOf(options, is_screen), options.filter) {}

  // Starts to read the source. If this fails, prints the error and returns the exit code.
  std::optional<int> Start() {
    absl::StatusOr<UniqueFd> input = UniqueFd();
    if (options_.is_live()) {
      input = recorder_.Start(RecorderArguments(options_), is_screen_);
      if (!input.ok()) return Fail(input.status());
    } else {
      if (const std::optional<int> code = OpenFiles(&*input)) return code;
    }
    if (const absl::Status status = feed_.Start(*std::move(input), options_.follow); !status.ok()) {
      return Fail(status);
    }
    return std::nullopt;
  }

  // Opens the file, or starts to merge the files. If this fails, prints the error and returns the
  // exit code.
  std::optional<int> OpenFiles(UniqueFd* input) {
    if (!files_.is_one()) {
      if (options_.follow) {
        return Fail(absl::InvalidArgumentError(
                        absl::StrCat("--follow reads only one file, not ", files_.Name(),
                                     "; a directory stands for its files; name one file")),
                    cli::kExitUsage);
      }
      absl::StatusOr<UniqueFd> pipe = files_.OpenPipe(&opened_.merge);
      if (!pipe.ok()) return Fail(pipe.status());
      *input = *std::move(pipe);
      is_file_ = true;
      return std::nullopt;
    }
    const std::string& path = files_.paths().front();
    const absl::StatusOr<int> fd = OpenDescriptor(path);
    if (!fd.ok()) {
      PrintInputError(kCommand, path, fd.status());
      if (absl::IsNotFound(fd.status()) && path.find('/') == std::string::npos) {
        absl::FPrintF(stderr, "nettrace top: to show a session of nettraced, use --session\n");
      }
      return cli::kExitUnreadable;
    }
    *input = UniqueFd(*fd);
    struct stat facts = {};
    is_file_ = !options_.follow && fstat(*fd, &facts) == 0 && S_ISREG(facts.st_mode);
    return std::nullopt;
  }

  // Shows the screen until the user quits, a signal arrives, or the terminal is closed.
  void ShowScreen(std::unique_ptr<Terminal> terminal);
  // Waits until the stream ends or the requested time is over; with `heeds_signals`, also until a
  // signal arrives.
  void WaitForEnd(bool heeds_signals);
  // Ends the recording, if there is one. Then stops the feed, and waits until it has ended.
  void EndStream();
  // Prints the errors and returns the exit code. Must be called after EndStream.
  int Report();
  Feed& feed() { return feed_; }

 private:
  static ModelOptions ModelOptionsOf(const RunOptions& options, bool is_screen) {
    ModelOptions model;
    model.max_rows = options.max_rows;
    model.keeps_events = is_screen;
    model.interval = options.interval;
    return model;
  }
  std::string State(bool has_ended);
  bool HasEnded() const {
    pollfd fd = {feed_.ended_descriptor(), POLLIN, 0};
    return poll(&fd, 1, 0) == 1;
  }

  const RunOptions& options_;
  const bool is_screen_;
  bool is_file_ = false;
  const InputFiles files_;
  // Declared before feed_, and so destroyed after it: the thread that merges the files ends only
  // after feed_ has closed the pipe.
  InputFiles::Opened opened_;
  Feed feed_;
  Recorder recorder_;
};

std::string Run::State(bool has_ended) {
  if (has_ended) return feed_.end().status.ok() ? "ended" : "ended, incomplete";
  if (!feed_.has_begun()) return "waiting";
  return is_file_ ? "reading" : "live";
}

void Run::ShowScreen(std::unique_ptr<Terminal> terminal) {
  Screen screen(options_.source(), options_.view, options_.column, options_.reverse,
                [this](View view, const std::string& key) { return feed_.LastEvents(view, key); });
  bool has_ended = false;
  absl::Time next = absl::InfinitePast();
  while (true) {
    if (absl::Now() >= next) {
      screen.Update(feed_.TakeSnapshot(), State(has_ended));
      next = has_ended ? absl::InfiniteFuture() : absl::Now() + options_.interval;
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
    std::vector<Key> keys;
    if (!terminal->ReadKeys(&keys)) return;
    const bool was_paused = screen.is_paused();
    for (const Key key : keys) {
      if (!screen.OnKey(key)) return;
    }
    if (was_paused && !screen.is_paused()) next = absl::InfinitePast();
  }
}

void Run::WaitForEnd(bool heeds_signals) {
  base::ProgressLine progress;
  absl::Time end = absl::InfiniteFuture();
  while (true) {
    if (options_.run_for && feed_.has_begun() && end == absl::InfiniteFuture()) {
      end = absl::Now() + *options_.run_for;
    }
    const absl::Duration left =
        std::clamp(end - absl::Now(), absl::ZeroDuration(), absl::Milliseconds(500));
    if (left == absl::ZeroDuration()) return;
    const bool waits_for_begin = options_.run_for && !feed_.has_begun();
    std::array<pollfd, 3> fds = {pollfd{feed_.ended_descriptor(), POLLIN, 0},
                                 pollfd{waits_for_begin ? feed_.begun_descriptor() : -1, POLLIN, 0},
                                 pollfd{heeds_signals ? cli::StopDescriptor() : -1, POLLIN, 0}};
    poll(fds.data(), fds.size(), static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (fds[0].revents != 0 || (heeds_signals && cli::IsStopRequested())) return;
    progress.Update([this] { return absl::StrFormat("nettrace top: %d events", feed_.events()); });
  }
}

void Run::EndStream() {
  if (recorder_.is_started() && !HasEnded()) {
    // After SIGTERM, the recorder still writes the remaining events and the end of the stream.
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

int Run::Report() {
  const bool is_recorded = recorder_.is_started();
  recorder_.PrintErrors();
  const int recorded = is_recorded ? recorder_.Wait() : cli::kExitOk;
  recorder_.PrintErrors();
  const StreamEnd end = feed_.end();
  if (recorded != cli::kExitOk) return recorded;
  if (!end.sort_status.ok()) {
    PrintInputError(kCommand, files_.Name(), end.sort_status);
    return cli::kExitFailed;
  }
  if (opened_.merge != nullptr && !end.is_stopped) {
    const int damage = PrintProblems(kCommand, files_.Problems(opened_, end.status));
    return end.is_empty ? cli::kExitUnreadable : damage;
  }
  // If this program has stopped the stream, its missing end is not an error.
  if (end.status.ok() || (end.is_stopped && absl::IsCancelled(end.status))) return cli::kExitOk;
  if (is_recorded)
    return Fail(absl::Status(end.status.code(),
                             options_.source() + ": " + std::string(end.status.message())));
  PrintInputError(kCommand, files_.Name(), end.status);
  return end.is_open ? cli::kExitDamaged : cli::kExitUnreadable;
}

}  // namespace

std::string RunOptions::source() const {
  if (!session.empty()) return "session " + base::Printable(session);
  return is_live() ? "recording" : InputFiles(paths).Name();
}

int RunOnce(const RunOptions& options) {
  // If the source is live or grows, or --for is given, a signal ends the reading, and the result is
  // printed.
  const bool heeds_signals = options.is_live() || options.follow || options.run_for;
  if (heeds_signals) {
    struct sigaction on_broken_pipe = {};
    sigaction(SIGPIPE, nullptr, &on_broken_pipe);
    if (const absl::Status status = cli::CatchSignals(); !status.ok()) return Fail(status);
    sigaction(SIGPIPE, &on_broken_pipe, nullptr);
  }
  Run run(options, /*is_screen=*/false);
  if (const std::optional<int> code = run.Start()) return *code;
  run.WaitForEnd(heeds_signals);
  run.EndStream();
  // Without an open stream there is no table. If a recorder has failed, its stream is empty, and
  // the recorder has printed the error.
  if (run.feed().end().is_open && !(options.is_live() && run.feed().end().is_empty)) {
    const Snapshot snapshot = run.feed().TakeSnapshot();
    const std::string text = options.json
                                 ? ReportJson(snapshot, run.feed().end().is_complete) + "\n"
                                 : ReportText(snapshot, options.view, options.column,
                                              options.reverse, StyleOfTable(options));
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  const int exit_code = run.Report();
  return FinishOutput(kCommand, exit_code);
}

int RunScreen(const RunOptions& options) {
  if (const absl::Status status = cli::CatchSignals(); !status.ok()) return Fail(status);
  absl::StatusOr<std::unique_ptr<Terminal>> terminal = Terminal::Open(HasColors(options.color));
  if (!terminal.ok()) {
    absl::FPrintF(stderr, "nettrace top: %s; use --once where there is no terminal\n",
                  base::Printable(std::string(terminal.status().message())));
    return cli::kExitFailed;
  }
  if (!options.is_live() && options.paths.front() == "-" && isatty(STDIN_FILENO) == 1) {
    terminal->reset();
    return Fail(absl::InvalidArgumentError("standard input is a terminal; use e.g. 'nettrace ctl "
                                           "tail SESSION | nettrace top -'"),
                cli::kExitUsage);
  }
  Run run(options, /*is_screen=*/true);
  if (const std::optional<int> code = run.Start()) return *code;
  run.ShowScreen(*std::move(terminal));
  run.EndStream();
  return run.Report();
}

}  // namespace tools::top
