// Input of subcommands that read their files twice: first completely, to decide what to show, and
// then again, to show it.
#ifndef TOOLS_NETTRACE_COMMAND_REREAD_INPUT_H_
#define TOOLS_NETTRACE_COMMAND_REREAD_INPUT_H_

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "libnettrace-writer/read/spill_file.h"
#include "nettrace/reader.h"
#include "tools/base/unique_fd.h"
#include "tools/nettrace/command/input_files.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/trace/account.h"

namespace tools {

// Holds one input, or several files that are read as one. The second pass over a regular file
// begins at the offset at which the first pass began. The first pass copies any other input, such
// as a pipe, to a temporary file. Several inputs must be regular files. Must outlive its readers.
// The messages of all errors name the file.
class RereadInput {
 public:
  // Opens the paths, at least one; "-" is standard input. `progress` must outlive this object.
  static absl::StatusOr<std::unique_ptr<RereadInput>> Open(std::vector<std::string> paths,
                                                           Progress* progress);

  const InputFiles& files() const { return files_; }
  // Returns the results of stat of all files.
  const std::vector<struct stat>& facts() const { return facts_; }

  // Returns the reader of the first pass, which decompresses zstd. Must be called once.
  absl::StatusOr<std::unique_ptr<nettrace::Reader>> Read();
  // Returns the reader of the second pass. It reads only the bytes that the first pass has read,
  // even if a file has grown. Must be called after the first pass has ended.
  absl::StatusOr<std::unique_ptr<nettrace::Reader>> ReadAgain();

  // Return the files that are damaged or not readable, and the times in which losses are unknown
  // (tools/trace/unknown_end.h). `reader` is the reader of the first pass, and must have reached
  // the end of the input.
  std::vector<InputFiles::Problem> Problems(const nettrace::Reader& reader) const;
  std::vector<trace::AccountEvent> UnknownEnds(const nettrace::Reader& reader) const;

 private:
  class FirstSource;
  class SecondSource;
  RereadInput(std::vector<std::string> paths, Progress* progress)
      : files_(std::move(paths)), progress_(progress) {}

  absl::Status OpenOne();
  absl::StatusOr<std::unique_ptr<nettrace::Reader>> ReadOne(
      std::unique_ptr<nettrace::Source> source) const;

  const InputFiles files_;
  Progress* const progress_;
  std::vector<struct stat> facts_;
  // The merge of the first pass. Read has returned its reader, so `reader` is null. Both members
  // are null if there is one input.
  InputFiles::Opened first_;
  // The following members are used only if there is one input.
  base::UniqueFd fd_;
  bool is_file_ = false;
  std::uint64_t begin_ = 0;  // offset of the descriptor in its file when it was opened
  std::uint64_t size_ = 0;   // bytes that the first pass has read
  nettrace::internal::SpillFile copy_{""};
};

}  // namespace tools

#endif  // TOOLS_NETTRACE_COMMAND_REREAD_INPUT_H_
