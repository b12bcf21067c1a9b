// The terminal of `nettrace top`. It is in full-screen mode while a Terminal exists. The destructor
// restores the previous state, which is also restored while the process is stopped.
#ifndef TOOLS_NETTRACE_TOP_TERMINAL_H_
#define TOOLS_NETTRACE_TOP_TERMINAL_H_

#include <termios.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/nettrace/top/screen.h"

namespace tools::top {

// Controls the terminal with the sequences of ANSI X3.64 and xterm. Only one object may exist. It
// must be created before other threads are started, because it blocks SIGWINCH, SIGTSTP and SIGCONT
// for all threads.
class Terminal {
 public:
  // Opens the terminal of the process, /dev/tty, because standard input may be the stream. Fails if
  // the process has no terminal.
  static absl::StatusOr<std::unique_ptr<Terminal>> Open(bool has_colors);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Return descriptors. The first is readable when there is a key, the second when a signal has
  // arrived.
  int key_descriptor() const { return key_fd_; }
  int signal_descriptor() const { return signal_fd_; }

  // Reads the available keys. Waits only for the rest of an escape sequence, for at most 25 ms.
  // Returns false if the terminal is closed.
  bool ReadKeys(std::vector<Key>* keys);
  // Must be called when signal_descriptor() is readable. Stops the process on SIGTSTP. The whole
  // screen must be painted afterwards.
  void OnSignal();

  ScreenSize Size() const;
  // Writes the lines that have changed. Returns false if the terminal is closed.
  bool Paint(const std::vector<Line>& lines);

 private:
  Terminal(int key_fd, int signal_fd, bool has_colors)
      : key_fd_(key_fd), signal_fd_(signal_fd), has_colors_(has_colors) {}
  void Enter();
  void Leave();

  const int key_fd_;
  const int signal_fd_;
  const bool has_colors_;
  termios before_ = {};
  bool is_entered_ = false;
  std::vector<Line> painted_;
  std::string rest_;  // bytes of an incomplete escape sequence
};

// Moves the keys from `bytes` to `keys`, except an incomplete escape sequence at the end. With
// `is_all`, no further bytes follow, so an ESC at the end is the key Escape.
void ParseKeys(std::string* bytes, bool is_all, std::vector<Key>* keys);

}  // namespace tools::top

#endif  // TOOLS_NETTRACE_TOP_TERMINAL_H_
