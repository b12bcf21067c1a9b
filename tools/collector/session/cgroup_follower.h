// A cgroup that need not be there yet, and that may go and come again, as that of a systemd unit
// does: when it is there, and when it is another one than before.
//
// inotify tells of folders that come and go in those above it. Where it cannot, or something was
// missed, a look once a second finds it.
#ifndef TOOLS_COLLECTOR_SESSION_CGROUP_FOLLOWER_H_
#define TOOLS_COLLECTOR_SESSION_CGROUP_FOLLOWER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "tools/collector/base/unique_fd.h"

namespace collector {

// Not thread-safe.
class CgroupFollower {
 public:
  // `text` is what selects it, see TargetSelection, in the hierarchy mounted at `mount`. `path` is
  // its folder, "" if it is not there: then a name without '/' is looked for where the system's
  // manager has its units, which is below slices.
  CgroupFollower(std::string mount, std::string text, std::string path);

  // Readable when something has changed in the folders above it; -1 if the kernel does not tell.
  int fd() const { return inotify_.get(); }
  // Returns the folder if it is there, and was not at the last look, or was another one. To be
  // called when the descriptor is readable; and, `is_due`, once a second, whatever was told.
  std::optional<UniqueFd> Look(bool is_due);
  // When it was looked for the last time before it came, in ns of the session clock.
  std::uint64_t absent_at() const { return absent_at_; }
  // What came is to come again at the next look.
  void Forget() { id_ = 0; }

 private:
  // Takes what inotify tells. Returns whether it may be about the cgroup.
  bool TakeNews();
  bool IsAbout(const std::string& name) const;
  void WatchAbove();
  void Watch(const std::string& folder);
  // Its folder now; "" if there is none.
  std::string Find() const;

  std::string mount_;
  std::string text_;
  std::string path_;
  UniqueFd inotify_;
  std::uint64_t id_ = 0;  // 0: it is not there
  std::uint64_t looked_at_ = 0;
  std::uint64_t absent_at_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_CGROUP_FOLLOWER_H_
