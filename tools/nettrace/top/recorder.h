// The process whose output `nettrace top` reads: `nettrace record` or `nettrace ctl tail`.
#ifndef TOOLS_NETTRACE_TOP_RECORDER_H_
#define TOOLS_NETTRACE_TOP_RECORDER_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/base/unique_fd.h"
#include "tools/cli/child_process.h"

namespace tools::top {

class Recorder {
 public:
  // Starts this program with `arguments`. Returns a pipe from which its standard output can be
  // read. With `keeps_errors`, its error messages do not disturb the screen, but are kept until
  // PrintErrors is called.
  absl::StatusOr<base::UniqueFd> Start(const std::vector<std::string>& arguments,
                                       bool keeps_errors);
  bool is_started() const { return child_.has_value(); }
  void Terminate() { child_->Terminate(); }
  // Waits for the process to end and returns its exit code. After a second request to end
  // (cli::HurryDescriptor), returns kExitFailed without waiting.
  int Wait();
  // Prints the error messages that have been added since the last call. Does nothing without
  // `keeps_errors`.
  void PrintErrors();

 private:
  std::optional<cli::ChildProcess> child_;
  base::UniqueFd errors_;
  off_t printed_ = 0;
};

}  // namespace tools::top

#endif  // TOOLS_NETTRACE_TOP_RECORDER_H_
