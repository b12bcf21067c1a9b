#include "tools/base/mounts.h"

#include <sys/sysmacros.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace base {

std::vector<Mount> ParseMounts(std::string_view mountinfo) {
  std::vector<Mount> mounts;
  // A line has the form "36 35 98:0 /root /folder rw,noatime master:1 - ext4 /dev/vda rw".
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(mountinfo.data(), mountinfo.size()), '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 3 || words.end() - dash < 2) continue;
    const std::vector<absl::string_view> numbers = absl::StrSplit(words[2], ':');
    Mount mount;
    std::uint32_t major_device = 0;
    std::uint32_t minor_device = 0;
    if (numbers.size() == 2 && absl::SimpleAtoi(words[0], &mount.id) &&
        absl::SimpleAtoi(numbers[0], &major_device) &&
        absl::SimpleAtoi(numbers[1], &minor_device)) {
      mount.device = makedev(major_device, minor_device);
      mount.type = std::string(dash[1]);
      mounts.push_back(std::move(mount));
    }
  }
  return mounts;
}

}  // namespace base
