#include "tools/nettrace/top/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tools::top {
namespace {

// Switches to the alternate screen, hides the cursor, disables automatic line wrap, and clears the
// screen.
constexpr std::string_view kEnterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
constexpr std::string_view kLeaveScreen = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";
// Mode 2026 encloses a frame. Terminals that support it do not show incomplete frames.
constexpr std::string_view kBeginFrame = "\x1b[?2026h";
constexpr std::string_view kEndFrame = "\x1b[?2026l";

constexpr int kSequenceTime = 25;  // ms to wait for the rest of a key's sequence

sigset_t TerminalSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGWINCH, SIGTSTP, SIGCONT}) sigaddset(&signals, number);
  return signals;
}

bool WriteAll(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      pollfd fd = {STDOUT_FILENO, POLLOUT, 0};
      poll(&fd, 1, -1);
      continue;
    }
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// Returns the key for a sequence after ESC; 0 if the sequence is unknown.
Key KeyOfSequence(std::string_view sequence) {
  static constexpr std::pair<std::string_view, Key> kSequences[] = {
      {"[A", kUp},    {"[B", kDown},    {"[C", kRight},    {"[D", kLeft}, {"OA", kUp},
      {"OB", kDown},  {"OC", kRight},   {"OD", kLeft},     {"[H", kHome}, {"OH", kHome},
      {"[1~", kHome}, {"[7~", kHome},   {"[F", kEnd},      {"OF", kEnd},  {"[4~", kEnd},
      {"[8~", kEnd},  {"[5~", kPageUp}, {"[6~", kPageDown}};
  for (const auto& [known, key] : kSequences) {
    if (sequence == known) return key;
  }
  return 0;
}

// Returns how many of `bytes`, which follow an ESC, belong to the escape sequence; 0 if it is
// incomplete.
std::size_t SequenceLength(std::string_view bytes) {
  if (bytes.empty()) return 0;
  if (bytes[0] == 'O') return bytes.size() >= 2 ? 2 : 0;
  const auto end =
      std::find_if(bytes.begin() + 1, bytes.end(), [](char c) { return c >= '@' && c <= '~'; });
  return end == bytes.end() ? 0 : static_cast<std::size_t>(end - bytes.begin()) + 1;
}

}  // namespace

void ParseKeys(std::string* bytes, bool is_all, std::vector<Key>* keys) {
  std::size_t at = 0;
  while (at < bytes->size()) {
    const std::string_view rest = std::string_view(*bytes).substr(at);
    if (rest[0] != '\x1b') {
      keys->push_back(static_cast<unsigned char>(rest[0]));
      ++at;
      continue;
    }
    const bool is_sequence = rest.size() > 1 && (rest[1] == '[' || rest[1] == 'O');
    const std::size_t length = is_sequence ? SequenceLength(rest.substr(1)) : 0;
    if (length > 0) {
      const Key key = KeyOfSequence(rest.substr(1, length));
      if (key != 0) keys->push_back(key);
      at += 1 + length;
      continue;
    }
    if (!is_all && (is_sequence || rest.size() == 1)) break;
    keys->push_back(kEscape);
    ++at;
  }
  bytes->erase(0, at);
}

absl::StatusOr<std::unique_ptr<Terminal>> Terminal::Open(bool has_colors) {
  const int key_fd = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (key_fd < 0) return absl::ErrnoToStatus(errno, "/dev/tty");
  const sigset_t signals = TerminalSignals();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const int signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signal_fd < 0) {
    const int error = errno;
    close(key_fd);
    return absl::ErrnoToStatus(error, "signalfd");
  }
  auto terminal = std::unique_ptr<Terminal>(new Terminal(key_fd, signal_fd, has_colors));
  if (tcgetattr(key_fd, &terminal->before_) != 0) return absl::ErrnoToStatus(errno, "/dev/tty");
  terminal->Enter();
  return terminal;
}

Terminal::~Terminal() {
  Leave();
  const sigset_t signals = TerminalSignals();
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  close(signal_fd_);
  close(key_fd_);
}

// Starts the full-screen mode. Keys such as ^C and ^Z still send signals, which the other programs
// of a pipeline receive, too.
void Terminal::Enter() {
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_iflag &= ~static_cast<tcflag_t>(ICRNL | INLCR | IXON);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  tcsetattr(key_fd_, TCSADRAIN, &raw);
  WriteAll(kEnterScreen);
  painted_.clear();
  is_entered_ = true;
}

void Terminal::Leave() {
  if (!is_entered_) return;
  is_entered_ = false;
  WriteAll(kLeaveScreen);
  tcsetattr(key_fd_, TCSADRAIN, &before_);
}

bool Terminal::ReadKeys(std::vector<Key>* keys) {
  char buffer[256];
  const ssize_t got = read(key_fd_, buffer, sizeof buffer);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
  if (got > 0) rest_.append(buffer, static_cast<std::size_t>(got));
  ParseKeys(&rest_, /*is_all=*/false, keys);
  if (rest_.empty()) return true;
  pollfd more = {key_fd_, POLLIN, 0};
  if (poll(&more, 1, kSequenceTime) == 0) ParseKeys(&rest_, /*is_all=*/true, keys);
  return true;
}

void Terminal::OnSignal() {
  signalfd_siginfo signal = {};
  while (read(signal_fd_, &signal, sizeof signal) == sizeof signal) {
    if (signal.ssi_signo == SIGTSTP) {
      Leave();
      raise(SIGSTOP);
      Enter();
    } else if (signal.ssi_signo == SIGCONT && is_entered_) {
      // Another program may have used the terminal while the process was stopped.
      Enter();
    } else {
      painted_.clear();
      WriteAll("\x1b[2J");
    }
  }
}

ScreenSize Terminal::Size() const {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
    return {};
  }
  return {size.ws_row, size.ws_col};
}

bool Terminal::Paint(const std::vector<Line>& lines) {
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i < painted_.size() && painted_[i] == lines[i]) continue;
    absl::StrAppend(&text, "\x1b[", i + 1, ";1H");
    // For text that is not ASCII, the terminal may use another width than this program assumes, so
    // the line is cleared first.
    if (!IsAscii(lines[i].text) || (i < painted_.size() && !IsAscii(painted_[i].text))) {
      text.append("\x1b[0m\x1b[2K");
    }
    const std::string_view style = SequenceOf(lines[i].style);
    text.append(style);
    text.append(has_colors_ ? ColoredText(lines[i], style) : lines[i].text);
  }
  painted_ = lines;
  if (text.empty()) return true;
  text.append(kEndFrame);
  return WriteAll(text.insert(0, kBeginFrame));
}

}  // namespace tools::top
