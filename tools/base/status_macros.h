// Errors as values: an errno as an absl::Status, and macros that return errors to the caller.
#ifndef TOOLS_BASE_STATUS_MACROS_H_
#define TOOLS_BASE_STATUS_MACROS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace base {

// Returns a status with the message "what: <text of error>[; remedy]". `what` says what was tried.
inline absl::Status ErrnoStatus(int error, const std::string& what,
                                const std::string& remedy = "") {
  absl::Status status = absl::ErrnoToStatus(error, what);
  if (remedy.empty()) return status;
  return absl::Status(status.code(), absl::StrCat(status.message(), "; ", remedy));
}

}  // namespace base

// Returns the status of the expression from the calling function, unless it is OK.
#define RETURN_IF_ERROR(expression)                                         \
  do {                                                                      \
    if (absl::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

// Moves the value of an absl::StatusOr to `target`, which may declare a variable. If there is no
// value, returns the status from the calling function.
#define ASSIGN_OR_RETURN(target, expression) \
  ASSIGN_OR_RETURN_TO_(BASE_JOIN_(status_or_, __LINE__), target, expression)

// `result` and `target` are names or declarations, which cannot be in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define ASSIGN_OR_RETURN_TO_(result, target, expression) \
  auto result = (expression);                            \
  if (!result.ok()) return std::move(result).status();   \
  target = *std::move(result)
// NOLINTEND(bugprone-macro-parentheses)
#define BASE_JOIN_(a, b) BASE_JOIN_EXPANDED_(a, b)
#define BASE_JOIN_EXPANDED_(a, b) a##b

#endif  // TOOLS_BASE_STATUS_MACROS_H_
