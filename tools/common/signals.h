// The signals that ask a program to end, and those of its children.
#ifndef TOOLS_COMMON_SIGNALS_H_
#define TOOLS_COMMON_SIGNALS_H_

#include <signal.h>

#include <array>

#include "absl/status/status.h"

namespace tools {

// From here on, for the life of the process:
//  - SIGINT, SIGTERM, SIGQUIT and SIGHUP ask it to end: see IsStopRequested. A SIGHUP that is
//    ignored already, as nohup(1) does it, stays ignored.
//  - SIGPIPE and SIGXFSZ are ignored: a reader that goes away and a file that may not grow are
//    errors of the write.
//  - SIGCHLD wakes whoever waits at WakeDescriptor.
// To be called once, before any other thread is started.
absl::Status CatchSignals();

// Readable from when one of these signals comes until ClearWake.
int WakeDescriptor();
// Returns whether one has come since the last call. Without one it costs no system call.
bool ClearWake();

// Readable once the process has been asked to end, and from then on.
int StopDescriptor();
bool IsStopRequested();

// Readable once its user has asked again, by a SIGINT: it is to wait for nothing any more. The next
// SIGINT then ends it at once. One that comes within a tenth of a second is the same request, sent
// to the process and to its group.
int HurryDescriptor();

// While it lives, the signals that ask to end do so at once, as without CatchSignals.
class DefaultSignals {
 public:
  DefaultSignals();
  ~DefaultSignals();
  DefaultSignals(const DefaultSignals&) = delete;
  DefaultSignals& operator=(const DefaultSignals&) = delete;

 private:
  std::array<struct sigaction, 4> before_;
};

}  // namespace tools

#endif  // TOOLS_COMMON_SIGNALS_H_
