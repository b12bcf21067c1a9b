// Reads whole files into memory, up to a bound.
#ifndef TOOLS_BASE_READ_FILE_H_
#define TOOLS_BASE_READ_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace base {

// Reads the file at `path`, at most its first `max` bytes. Errors have the form "PATH: why".
absl::StatusOr<std::string> ReadFile(const std::string& path, std::size_t max);

// Reads the open file `fd` from its current position, at most `max` bytes. Errors have the form
// "WHAT: why"; `what` is usually the path.
absl::StatusOr<std::string> ReadOpenFile(int fd, std::size_t max, const std::string& what);

}  // namespace base

#endif  // TOOLS_BASE_READ_FILE_H_
