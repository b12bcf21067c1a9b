#include <cerrno>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/cli/exit_codes.h"
#include "tools/eventheader/commands.h"

namespace tools {

void Invocation::Fail(const absl::Status& status, int code) {
  Say(std::string(status.message()));
  if (exit_code == cli::kExitOk) exit_code = code;
}

void Invocation::Fail(const absl::Status& status) { Fail(status, cli::kExitFailed); }

void Invocation::Say(const std::string& message) const {
  if (!quiet) absl::FPrintF(stderr, "eventheader: %s\n", base::Printable(message));
}

void Invocation::FinishOutput() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  // If only an earlier write has failed, errno no longer has its reason, so the message has none.
  constexpr char kProblem[] = "standard output cannot be written";
  Fail(errno != 0 ? base::ErrnoStatus(errno, kProblem) : absl::DataLossError(kProblem));
}

}  // namespace tools
