// Status from errno, with what was tried and what to do about it.
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
