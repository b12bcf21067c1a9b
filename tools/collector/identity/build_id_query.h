// Asks the kernel for the build ids of the files that processes have mapped.
#ifndef TOOLS_COLLECTOR_IDENTITY_BUILD_ID_QUERY_H_
#define TOOLS_COLLECTOR_IDENTITY_BUILD_ID_QUERY_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "tools/base/unique_fd.h"

namespace collector {

// Asks the kernel for build ids by the ioctl PROCMAP_QUERY (since Linux 6.11). To answer, the
// kernel reads the first page of the file, which could block for any time on a file system that a
// user provides, such as FUSE. Therefore this class asks only about files on local file systems
// that are mounted in the mount namespace of this process. Not thread-safe.
class BuildIdQuery {
 public:
  BuildIdQuery();

  // Selects the process for the next calls of BuildIdAt().
  void SelectProcess(std::uint32_t pid);
  // Returns the bytes of the build id of the file that the process has mapped at `address`; empty
  // if it is not known.
  std::string BuildIdAt(std::uint64_t address);

 private:
  bool is_supported_ = true;
  absl::flat_hash_set<std::uint64_t> devices_;  // device numbers of local file systems
  base::UniqueFd maps_;                         // /proc/PID/maps
};

// Returns the device numbers of local file systems in the text of /proc/PID/mountinfo, in the form
// of makedev(3).
absl::flat_hash_set<std::uint64_t> LocalDevices(std::string_view mountinfo);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_IDENTITY_BUILD_ID_QUERY_H_
