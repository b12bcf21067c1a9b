// The ground floor: what every floor of the engine uses and what knows nothing of tracing. Here are
// errors; unique_fd.h has the owner of a descriptor, uevents.h what the kernel announces of itself.
//
// In: an errno and the caller's words. Out: an absl::Status whose message a person can act on, as
// it says what was tried, why it failed and, where the caller knows one, a remedy. Errors are
// values in the whole engine: it neither throws nor prints.
#ifndef TOOLS_COLLECTOR_BASE_STATUS_UTIL_H_
#define TOOLS_COLLECTOR_BASE_STATUS_UTIL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace collector {

// "what: <text of error>[; remedy]".
inline absl::Status ErrnoStatus(int error, const std::string& what,
                                const std::string& remedy = "") {
  absl::Status status = absl::ErrnoToStatus(error, what);
  if (remedy.empty()) return status;
  return absl::Status(status.code(), absl::StrCat(status.message(), "; ", remedy));
}

}  // namespace collector

#define COLLECTOR_RETURN_IF_ERROR(expression)                               \
  do {                                                                      \
    if (absl::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

#endif  // TOOLS_COLLECTOR_BASE_STATUS_UTIL_H_
