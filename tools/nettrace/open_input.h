// What the subcommands that read a file have in common.
#ifndef TOOLS_NETTRACE_OPEN_INPUT_H_
#define TOOLS_NETTRACE_OPEN_INPUT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "nettrace/reader.h"

namespace tools {

// Exit codes of the subcommands that read a file.
inline constexpr int kExitDamaged = 1;
inline constexpr int kExitUnreadable = 2;

// Says on standard error, where that is a terminal, how much of the inputs has been read: a line
// that is written anew twice a second. Not thread-safe.
class Progress {
 public:
  // `wanted`: whether to say anything at all.
  explicit Progress(std::string command, bool wanted = true);
  ~Progress() { Hide(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // An input is this long; without a size, nobody knows how long.
  void AddInput(std::optional<std::uint64_t> size);
  void AddRead(std::uint64_t bytes);
  // Takes the line away. To be called before anything else is printed.
  void Hide();

 private:
  const std::string command_;
  const bool wanted_;
  std::uint64_t read_ = 0;
  std::optional<std::uint64_t> total_ = 0;
  absl::Time last_ = absl::Now();
  bool shown_ = false;
};

// The bytes of `path`, of standard input for "-". `progress` must live as long as they are read.
absl::StatusOr<std::unique_ptr<nettrace::Source>> OpenSource(const std::string& path,
                                                             Progress* progress);

// Opens `path`, standard input for "-".
absl::StatusOr<std::unique_ptr<nettrace::Reader>> OpenInput(const std::string& path,
                                                            Progress* progress);

// `exit_code`, or 1, and printed, if what was printed on standard output has not gone there.
int FinishOutput(const char* command, int exit_code);

// Prints "nettrace COMMAND: FILE: why".
void PrintInputError(const char* command, const std::string& path, const absl::Status& status);

}  // namespace tools

#endif  // TOOLS_NETTRACE_OPEN_INPUT_H_
