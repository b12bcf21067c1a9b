// Reads the functions that a JIT compiler lists in a perf map, /tmp/perf-PID.map. Each line has the
// first address and the size of a function in hexadecimal digits, and its name. The file belongs to
// the process and may be hostile.
#ifndef TOOLS_NETTRACE_SYMBOLIZE_PERF_MAP_H_
#define TOOLS_NETTRACE_SYMBOLIZE_PERF_MAP_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/base/prompt_files.h"
#include "tools/elf/elf_file.h"

namespace tools::symbolize {

// Finds the functions at some addresses in the text of a perf map, which is passed in pieces. Of
// several functions at an address, the last one counts, because a JIT compiler reuses memory.
class PerfMapLookup {
 public:
  // `addresses` must be sorted and unique, and outlive this object.
  explicit PerfMapLookup(std::span<const std::uint64_t> addresses)
      : addresses_(addresses), found_(addresses.size()) {}

  void AddText(std::string_view text);
  // Returns the functions. Must be called once, after AddText has received the whole text.
  elf::Functions Finish();

 private:
  // Maximum bytes that are kept of a line.
  static constexpr std::size_t kMaxLine = elf::kMaxName + 40;

  void AddLine();

  std::span<const std::uint64_t> addresses_;
  std::vector<std::shared_ptr<const elf::Function>> found_;  // by index in addresses_; null: none
  std::string line_;                                         // the current line, up to kMaxLine
  std::uint64_t steps_ = 0;
  std::size_t name_bytes_ = 0;
  bool is_limited_ = false;
};

// Reads the functions at `addresses` from the perf map at `path`, at most its first GiB. Fails if
// it is not a regular file, has several hard links, or belongs to a user other than root and the
// effective user of this program. Root may read the perf maps of all users. If `prompt_files` is
// not null, also fails, with FailedPrecondition, if the path leads to a file system that may wait
// for a user's process. Errors do not contain the path.
absl::StatusOr<elf::Functions> ReadPerfMap(const std::string& path,
                                           std::span<const std::uint64_t> addresses,
                                           base::PromptFiles* prompt_files = nullptr);

// A process that runs in a container. Its root directory or mount namespace differs from that of
// this program, or its process id differs between its own pid namespace and that of this program.
struct ContainedProcess {
  std::uint64_t pid = 0;
  std::uint64_t own_pid = 0;  // the id in its own namespace
  uid_t user = 0;             // effective user
  std::string perf_map;       // path, for messages
};
// Returns the process if it runs in a container and started no later than `last_use`. A process
// that started later is not the recorded process: the kernel has used the process id again. If
// `prompt_files` is not null, a root directory that may wait for a user's process counts as a
// different root, and is not accessed.
std::optional<ContainedProcess> FindContainedProcess(std::uint64_t pid, absl::Time last_use,
                                                     base::PromptFiles* prompt_files = nullptr);
// Reads tmp/perf-OWN_PID.map below the root of the process. In addition to the conditions of
// ReadPerfMap, the file must belong to the user of the process. No part of its path may be a
// symbolic link, because the process chooses what its root contains.
absl::StatusOr<elf::Functions> ReadPerfMapOf(const ContainedProcess& process,
                                             std::span<const std::uint64_t> addresses,
                                             base::PromptFiles* prompt_files = nullptr);

}  // namespace tools::symbolize

#endif  // TOOLS_NETTRACE_SYMBOLIZE_PERF_MAP_H_
