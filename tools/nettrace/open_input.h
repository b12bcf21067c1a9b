// Opening the file that a subcommand reads.
#ifndef TOOLS_NETTRACE_OPEN_INPUT_H_
#define TOOLS_NETTRACE_OPEN_INPUT_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/reader.h"

namespace tools {

// Exit codes of the subcommands that read a file.
inline constexpr int kExitDamaged = 1;
inline constexpr int kExitUnreadable = 2;

// The bytes of `path`, of standard input for "-". Where standard error is a terminal and `progress`
// is true, tells there how much of a long file has been read.
absl::StatusOr<std::unique_ptr<nettrace::Source>> OpenSource(const std::string& path,
                                                             bool progress);

// Opens `path`, standard input for "-".
absl::StatusOr<std::unique_ptr<nettrace::Reader>> OpenInput(const std::string& path,
                                                            bool progress = false);

// Prints "nettrace COMMAND: FILE: why".
void PrintInputError(const char* command, const std::string& path, const absl::Status& status);

}  // namespace tools

#endif  // TOOLS_NETTRACE_OPEN_INPUT_H_
