// Input of subcommands that read a file twice: first the whole file, to decide what to show, and
// then again, to show it.
#ifndef TOOLS_NETTRACE_COMMAND_REREAD_INPUT_H_
#define TOOLS_NETTRACE_COMMAND_REREAD_INPUT_H_

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "libnettrace-writer/read/spill_file.h"
#include "nettrace/reader.h"
#include "tools/base/unique_fd.h"
#include "tools/nettrace/command/open_input.h"

namespace tools {

// Holds an input. The second pass over a regular file begins at the offset of the first pass. Other
// inputs, such as pipes, are copied to a temporary file in the first pass. Must outlive its
// readers.
class RereadInput {
 public:
  // Opens `path`, or standard input for "-". `*file` receives the result of fstat. `progress` must
  // outlive this object.
  static absl::StatusOr<std::unique_ptr<RereadInput>> Open(const std::string& path,
                                                           Progress* progress, struct stat* file);

  // Returns the reader of the first pass, which decompresses zstd. Must be called once.
  absl::StatusOr<std::unique_ptr<nettrace::Reader>> Read();
  // Returns the reader of the second pass. It reads only the bytes that the first pass has read,
  // even if the file has grown. Must be called after the first pass has ended.
  absl::StatusOr<std::unique_ptr<nettrace::Reader>> ReadAgain();

 private:
  class FirstSource;
  class SecondSource;
  explicit RereadInput(Progress* progress) : progress_(progress) {}

  Progress* const progress_;
  base::UniqueFd fd_;
  bool is_file_ = false;
  std::uint64_t begin_ = 0;  // offset of the descriptor in its file when it was opened
  std::uint64_t size_ = 0;   // bytes that the first pass has read
  nettrace::internal::SpillFile copy_{""};
};

}  // namespace tools

#endif  // TOOLS_NETTRACE_COMMAND_REREAD_INPUT_H_
