// Creates the error of a failed call that should have returned a file descriptor.
#ifndef TOOLS_BASE_DESCRIPTOR_STATUS_H_
#define TOOLS_BASE_DESCRIPTOR_STATUS_H_

#include <cerrno>
#include <string>

#include "absl/status/status.h"
#include "tools/base/status_macros.h"

namespace base {

// Returns the status for `error`, the errno of a failed call that creates a file descriptor. `what`
// names the purpose and the call, such as "waiting for signals: eventfd". If a limit of open files
// is reached, the message also gives the remedy.
inline absl::Status DescriptorStatus(int error, const std::string& what) {
  switch (error) {
    case EMFILE:
      return ErrnoStatus(error, what,
                         "raise the limit of open files ('ulimit -n', or LimitNOFILE= of a unit)");
    case ENFILE:
      return ErrnoStatus(error, what, "raise the system's limit of open files (fs.file-max)");
    default:
      return ErrnoStatus(error, what);
  }
}

}  // namespace base

#endif  // TOOLS_BASE_DESCRIPTOR_STATUS_H_
