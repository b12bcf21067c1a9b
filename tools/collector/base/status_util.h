// Helpers for errors. All parts of the collector use this folder, and it depends on none of them.
//
// ErrnoStatus turns an errno and the caller's words into an absl::Status. Its message says what was
// tried, why it failed and, if the caller knows one, a remedy. All errors in the collector are
// returned as values: it neither throws nor prints.
#ifndef TOOLS_COLLECTOR_BASE_STATUS_UTIL_H_
#define TOOLS_COLLECTOR_BASE_STATUS_UTIL_H_

#include <string>
#include <utility>

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

// Evaluates the expression, an absl::Status, and returns it from the function if it is an error.
#define COLLECTOR_RETURN_IF_ERROR(expression)                               \
  do {                                                                      \
    if (absl::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

// Evaluates the expression, an absl::StatusOr. Returns its status from the function if it is an
// error, else assigns its value: COLLECTOR_ASSIGN_OR_RETURN(const Tracefs tracefs,
// Tracefs::Find()). Use it only as a statement of a block.
#define COLLECTOR_ASSIGN_OR_RETURN(declaration, expression)                                \
  COLLECTOR_ASSIGN_RESULT_OR_RETURN(COLLECTOR_CONCATENATE(result_, __LINE__), declaration, \
                                    expression)
#define COLLECTOR_ASSIGN_RESULT_OR_RETURN(result, declaration, expression) \
  auto result = (expression);                                              \
  if (!result.ok()) return std::move(result).status();                     \
  declaration = *std::move(result)
#define COLLECTOR_CONCATENATE(a, b) COLLECTOR_CONCATENATE_VALUES(a, b)
#define COLLECTOR_CONCATENATE_VALUES(a, b) a##b

#endif  // TOOLS_COLLECTOR_BASE_STATUS_UTIL_H_
