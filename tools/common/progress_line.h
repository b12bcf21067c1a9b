// Progress for a person who waits at a terminal.
#ifndef TOOLS_COMMON_PROGRESS_LINE_H_
#define TOOLS_COMMON_PROGRESS_LINE_H_

#include <unistd.h>

#include <cstdio>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace tools {

// A line on standard error, if that is a terminal, rewritten twice a second. Not thread-safe.
class ProgressLine {
 public:
  // Shows nothing unless `wanted`.
  explicit ProgressLine(bool wanted = true) : wanted_(wanted && isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() { Hide(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Shows what `text` returns; calls it only when the line is due.
  template <typename Text>
  void Update(const Text& text) {
    if (!wanted_ || absl::Now() - last_ < absl::Milliseconds(500)) return;
    last_ = absl::Now();
    shown_ = true;
    std::fputs(("\r\x1b[K" + text()).c_str(), stderr);
  }
  // Removes the line. To be called before anything else is printed.
  void Hide() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
    shown_ = false;
  }

 private:
  const bool wanted_;
  absl::Time last_ = absl::Now();
  bool shown_ = false;
};

}  // namespace tools

#endif  // TOOLS_COMMON_PROGRESS_LINE_H_
