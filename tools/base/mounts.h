// Reads the mounted file systems of a process.
#ifndef TOOLS_BASE_MOUNTS_H_
#define TOOLS_BASE_MOUNTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace base {

// Maximum bytes of a /proc/PID/mountinfo that are read.
inline constexpr std::size_t kMaxMountinfo = std::size_t{16} << 20;

// A line of /proc/PID/mountinfo.
struct Mount {
  std::uint64_t id = 0;
  std::uint64_t device = 0;  // device number of the file system, in the form of makedev(3)
  std::string type;          // type of the file system, such as "ext4" or "fuse.sshfs"
};

// Parses the text of /proc/PID/mountinfo. Skips malformed lines.
std::vector<Mount> ParseMounts(std::string_view mountinfo);

}  // namespace base

#endif  // TOOLS_BASE_MOUNTS_H_
