// The terminal of `nettrace top`: full screen while the object lives, and as it was before after
// that, also while the process is stopped.
#ifndef TOOLS_NETTRACE_TOP_TERMINAL_H_
#define TOOLS_NETTRACE_TOP_TERMINAL_H_

#include <termios.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/nettrace/top/screen.h"

namespace tools::top {

// Whether standard output is a terminal that understands the sequences that are used.
bool IsScreen();

// Uses sequences of ANSI X3.64 and of xterm, which all terminals of today have. One at a time, made
// before other threads are started: it takes SIGWINCH, SIGTSTP and SIGCONT for all of them.
class Terminal {
 public:
  // Keys are read from the process's terminal, as standard input may be the stream.
  static absl::StatusOr<std::unique_ptr<Terminal>> Open();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Readable when there is a key, and when one of the signals has come.
  int key_descriptor() const { return key_fd_; }
  int signal_descriptor() const { return signal_fd_; }

  // The keys that there are; does not wait. False if the terminal is gone.
  bool ReadKeys(std::vector<Key>* keys);
  // To be called when signal_descriptor() is readable. Stops the process on SIGTSTP; all is to be
  // painted afterwards.
  void OnSignal();

  ScreenSize Size() const;
  // Writes the lines that are not on the screen yet. False if the terminal is gone.
  bool Paint(const std::vector<Line>& lines);

 private:
  Terminal(int key_fd, int signal_fd) : key_fd_(key_fd), signal_fd_(signal_fd) {}
  void Enter();
  void Leave();

  const int key_fd_;
  const int signal_fd_;
  termios before_ = {};
  bool is_entered_ = false;
  std::vector<Line> painted_;
  std::string rest_;  // the beginning of a sequence
};

// Takes the keys off `bytes` and appends them; leaves what may be the beginning of a sequence.
// `is_all`: nothing follows it, so that ESC is the key.
void ParseKeys(std::string* bytes, bool is_all, std::vector<Key>* keys);

}  // namespace tools::top

#endif  // TOOLS_NETTRACE_TOP_TERMINAL_H_
