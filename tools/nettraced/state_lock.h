// The lock that keeps two daemons from using one state directory.
#ifndef TOOLS_NETTRACED_STATE_LOCK_H_
#define TOOLS_NETTRACED_STATE_LOCK_H_

#include <string>

#include "absl/status/statusor.h"
#include "tools/base/unique_fd.h"

namespace nettraced {

// Locks the state directory until the descriptor is closed or the process ends. Creates the
// directory if only its last part is missing. The lock is on a file of mode 0600 in the directory,
// so that users who may read the trace files cannot take the lock. Fails with AlreadyExists if
// another daemon holds the lock, and with other errors if the lock file cannot be opened.
absl::StatusOr<base::UniqueFd> LockStateDirectory(const std::string& directory);

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_STATE_LOCK_H_
