#include "nettrace/open_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_format.h"
#include "nettrace/source.h"

namespace tools {

absl::StatusOr<std::unique_ptr<nettrace::Reader>> OpenInput(const std::string& path) {
  const bool standard_input = path == "-";
  const int fd = standard_input ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, "cannot be opened");
  return nettrace::Reader::Open(std::make_unique<nettrace::FdSource>(fd, "cannot be read"));
}

void PrintInputError(const char* command, const std::string& path, const absl::Status& status) {
  absl::FPrintF(stderr, "nettrace %s: %s: %s\n", command, path == "-" ? "standard input" : path,
                status.message());
}

}  // namespace tools
