// Shows progress on a terminal.
#ifndef TOOLS_BASE_PROGRESS_LINE_H_
#define TOOLS_BASE_PROGRESS_LINE_H_

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace base {

// Returns whether the descriptor is a terminal that can move its cursor: TERM is set, and not
// "dumb".
inline bool IsScreen(int fd) {
  const char* const name = std::getenv("TERM");
  return isatty(fd) == 1 && name != nullptr && *name != '\0' && std::string_view(name) != "dumb";
}

// A line on standard error that is rewritten at most twice a second. It is shown only on a
// terminal that can move its cursor. Not thread-safe.
class ProgressLine {
 public:
  // Shows nothing unless `wanted`.
  explicit ProgressLine(bool wanted = true) : wanted_(wanted && IsScreen(STDERR_FILENO)) {}
  ~ProgressLine() { Hide(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Calls `text` and shows the text that it returns. Does nothing within 500 ms of the construction
  // or of the last shown text.
  template <typename Text>
  void Update(const Text& text) {
    if (!wanted_ || absl::Now() - last_ < absl::Milliseconds(500)) return;
    last_ = absl::Now();
    shown_ = true;
    std::fputs(("\r\x1b[K" + text()).c_str(), stderr);
  }
  // Removes the line. Must be called before other text is printed.
  void Hide() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
    shown_ = false;
  }

 private:
  const bool wanted_;
  absl::Time last_ = absl::Now();
  bool shown_ = false;
};

}  // namespace base

#endif  // TOOLS_BASE_PROGRESS_LINE_H_
