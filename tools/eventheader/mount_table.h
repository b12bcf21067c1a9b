// The mount table as a process sees it, from /proc/PID/mountinfo.
#ifndef TOOLS_EVENTHEADER_MOUNT_TABLE_H_
#define TOOLS_EVENTHEADER_MOUNT_TABLE_H_

#include <string>
#include <string_view>
#include <vector>

namespace tools {

struct Mount {
  std::string point;
  std::string root;  // the folder of the mounted file system that is visible at `point`
  std::string type;  // type of the file system, e.g. "tracefs"
  bool read_only = false;
};

// Parses mountinfo and keeps the kernel's order. Skips lines of another form. Runs in linear time.
std::vector<Mount> ParseMountInfo(std::string_view text);

// Returns the mount that contains `path`: the one with the longest mount point, or the last of the
// list if several share that point. Returns null if there is none.
const Mount* MountOf(const std::vector<Mount>& mounts, std::string_view path);

// Returns a mount of the root folder of tracefs that no other mount hides, preferably the one at
// /sys/kernel/tracing. Returns null if there is none.
const Mount* TracefsMount(const std::vector<Mount>& mounts);

}  // namespace tools

#endif  // TOOLS_EVENTHEADER_MOUNT_TABLE_H_
