// Handles signals. Requests to end (SIGINT, SIGTERM, SIGQUIT and SIGHUP) and the ends of child
// processes (SIGCHLD) make descriptors readable that a program can poll. SIGPIPE and SIGXFSZ are
// ignored.
#ifndef TOOLS_CLI_SIGNALS_H_
#define TOOLS_CLI_SIGNALS_H_

#include <signal.h>

#include <array>

#include "absl/status/status.h"

namespace cli {

// Ignores SIGXFSZ, so that writing beyond the limit of file sizes fails with EFBIG, and the program
// can report it.
void IgnoreFileSizeSignal();

// Installs the signal handlers, for the life of the process:
//  - SIGINT, SIGTERM, SIGQUIT and SIGHUP ask the process to end; see IsStopRequested. A SIGHUP that
//    is already ignored, for example by nohup(1), stays ignored.
//  - SIGPIPE and SIGXFSZ are ignored, so that writes to a pipe without a reader, or to a file that
//    may not grow, fail with an error.
//  - SIGCHLD makes WakeDescriptor readable.
// Must be called once, before any other thread is started. Fails if its descriptors cannot be
// created.
absl::Status CatchSignals();

// Returns a descriptor that becomes readable when a request to end or a SIGCHLD arrives. It stays
// readable until ClearWake is called.
int WakeDescriptor();
// Makes WakeDescriptor unreadable. Returns whether a request to end or a SIGCHLD has arrived since
// the previous call. Makes no system call if none has arrived.
bool ClearWake();

// Returns a descriptor that becomes readable when the process is asked to end, and stays readable.
int StopDescriptor();
bool IsStopRequested();

// Returns a descriptor that is readable after a second request to end. Only SIGINT makes a second
// request. The process should then not wait for anything; the next SIGINT ends it at once. A SIGINT
// within 100 ms of the first request is part of that request: its sender may have sent one SIGINT
// to the process and one to its process group.
int HurryDescriptor();

// A scope in which SIGINT, SIGTERM, SIGQUIT and SIGHUP have their default action, so that they end
// the process at once. Signals that are ignored stay ignored.
class DefaultSignals {
 public:
  DefaultSignals();
  ~DefaultSignals();
  DefaultSignals(const DefaultSignals&) = delete;
  DefaultSignals& operator=(const DefaultSignals&) = delete;

 private:
  std::array<struct sigaction, 4> before_;
};

}  // namespace cli

#endif  // TOOLS_CLI_SIGNALS_H_
