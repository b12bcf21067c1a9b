#include <cstdio>

#include "absl/strings/str_format.h"
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
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    Fail(absl::DataLossError("standard output cannot be written"));
  }
}

}  // namespace tools
