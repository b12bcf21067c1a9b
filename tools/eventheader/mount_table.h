// What is mounted where, as a process sees it: its /proc/PID/mountinfo.
#ifndef TOOLS_EVENTHEADER_MOUNT_TABLE_H_
#define TOOLS_EVENTHEADER_MOUNT_TABLE_H_

#include <string>
#include <string_view>
#include <vector>

namespace tools {

struct Mount {
  std::string point;
  std::string root;  // of the file system, what is mounted
  std::string type;  // "tracefs"
  bool read_only = false;
};

// In the order of the kernel. Lines of another form are passed over. The time is linear.
std::vector<Mount> ParseMountInfo(std::string_view text);

// The mount that a path is on: of those that contain it the nearest, and of several at one place
// the last. Null if there is none.
const Mount* MountOf(const std::vector<Mount>& mounts, std::string_view path);

// Where the whole of a tracefs is mounted and to be seen: at the usual place if it is there. Null
// if it is nowhere.
const Mount* TracefsMount(const std::vector<Mount>& mounts);

}  // namespace tools

#endif  // TOOLS_EVENTHEADER_MOUNT_TABLE_H_
