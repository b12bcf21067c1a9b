// Receives the kernel's announcements (uevents, which udev also uses) of CPUs that come online or
// go offline, and of modules that are loaded.
#ifndef TOOLS_COLLECTOR_SYSTEM_UEVENTS_H_
#define TOOLS_COLLECTOR_SYSTEM_UEVENTS_H_

#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "tools/base/unique_fd.h"

namespace collector {

enum class Uevent { kOther, kCpu, kModule };
// Returns what a message announces: a CPU came online or went offline (kCpu), a module was loaded
// (kModule), or something else (kOther). The message is "ACTION@PATH" and a NUL; what follows is
// ignored.
Uevent ParseUevent(std::string_view message);

// Receives the announcements that the kernel makes after Open(). Ignores messages from other
// processes. If the kernel can filter, announcements of other kinds do not make the descriptor
// readable. Not thread-safe.
class UeventSocket {
 public:
  // Begins to receive announcements. Fails if this process cannot receive them, for example because
  // it has no free descriptor.
  static absl::StatusOr<UeventSocket> Open();

  // Returns a descriptor that is readable when there are announcements.
  int fd() const { return fd_.get(); }

  struct Changes {
    bool cpus = false;
    bool modules = false;
  };
  // Returns what has changed since the last call. Both members are true if the kernel had to drop
  // announcements.
  Changes Take();

 private:
  explicit UeventSocket(base::UniqueFd fd) : fd_(std::move(fd)) {}

  base::UniqueFd fd_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SYSTEM_UEVENTS_H_
