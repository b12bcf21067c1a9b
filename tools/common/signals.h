// The signals that ask a program to end, and those of its children, as descriptors.
#ifndef TOOLS_COMMON_SIGNALS_H_
#define TOOLS_COMMON_SIGNALS_H_

#include "absl/status/statusor.h"
#include "tools/collector/base/unique_fd.h"

namespace tools {

// Blocks SIGINT, SIGTERM and SIGCHLD in the calling thread, and ignores SIGPIPE: a reader that goes
// away is an error of the write, not the end of the process. The descriptor is readable while one
// of the three is pending. Call it before any other thread is started.
absl::StatusOr<collector::UniqueFd> BlockSignals();

// A descriptor that is readable while SIGINT or SIGTERM, which must be blocked, is pending.
absl::StatusOr<collector::UniqueFd> OpenStopSignals();

// Consumes the pending SIGCHLDs; returns whether SIGINT or SIGTERM is pending. Those stay pending,
// so that whoever waits at OpenStopSignals() sees them, too.
bool IsStopPending();

}  // namespace tools

#endif  // TOOLS_COMMON_SIGNALS_H_
