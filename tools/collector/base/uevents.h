// What the kernel announces of itself while it runs: CPUs that come online and go, modules that are
// loaded. (Uevents, by which udev learns of devices.)
#ifndef TOOLS_COLLECTOR_BASE_UEVENTS_H_
#define TOOLS_COLLECTOR_BASE_UEVENTS_H_

#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "tools/collector/base/unique_fd.h"

namespace collector {

enum class Uevent { kOther, kCpu, kModule };
// What a message announces: that a CPU has come online or gone, that a module is there, or
// something else. The message is "ACTION@PATH", then a NUL and more, which is not looked at.
Uevent ParseUevent(std::string_view message);

// Announcements since it was opened. Those of other processes are passed over, as are, where the
// kernel can filter them, those of other things: nobody is woken for them. Not thread-safe.
class UeventSocket {
 public:
  static absl::StatusOr<UeventSocket> Open();

  // Is readable when something has been announced.
  int fd() const { return fd_.get(); }

  struct Changes {
    bool cpus = false;
    bool modules = false;
  };
  // What has been announced since the last call. Where the kernel had to drop announcements, both.
  Changes Take();

 private:
  explicit UeventSocket(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_BASE_UEVENTS_H_
