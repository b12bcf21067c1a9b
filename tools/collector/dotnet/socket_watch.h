// Watches a folder for new diagnostics sockets of .NET processes, so that processes that live for
// less than a second are found.
#ifndef TOOLS_COLLECTOR_DOTNET_SOCKET_WATCH_H_
#define TOOLS_COLLECTOR_DOTNET_SOCKET_WATCH_H_

#include <string>
#include <vector>

#include "tools/base/unique_fd.h"
#include "tools/collector/dotnet/diagnostics_socket.h"

namespace collector {

// Not thread-safe.
class SocketWatch {
 public:
  // Begins to watch `folder`. Watches nothing if inotify cannot watch it, for example because this
  // user has no watches left.
  explicit SocketWatch(const std::string& folder);

  // Returns a descriptor that is readable when files have been created, or -1 if nothing is
  // watched.
  int fd() const { return notices_.get(); }
  // Returns the names of sockets that were created since the last call. Sets `*is_incomplete` if
  // names are missing, because the kernel dropped notices. Any user may create files of this name.
  std::vector<SocketName> Read(bool* is_incomplete);

 private:
  base::UniqueFd notices_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_DOTNET_SOCKET_WATCH_H_
