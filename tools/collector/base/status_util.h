// Helpers for errors. All parts of the collector use this folder, and it depends on none of them.
//
// ErrnoStatus turns an errno and the caller's words into an absl::Status. Its message says what was
// tried, why it failed and, if the caller knows one, a remedy. All errors in the collector are
// returned as values: it neither throws nor prints.
#ifndef TOOLS_COLLECTOR_BASE_STATUS_UTIL_H_
#define TOOLS_COLLECTOR_BASE_STATUS_UTIL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace collector {

// Returns a status with the message "what: <text of error>[; remedy]".
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
