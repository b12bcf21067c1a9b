#include "tools/nettraced/activated_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/nettraced/log.h"

namespace nettraced {
namespace {

// Returns the path of a Unix socket; "" if it has no path.
std::string PathOf(int fd) {
  sockaddr_un address{};
  socklen_t size = sizeof(address) - 1;  // keeps a NUL at the end of the path
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  return address.sun_path;
}

}  // namespace

ActivatedSocket TakeActivatedSocket() {
  ActivatedSocket taken;
  const int count = sd_listen_fds(/*unset_environment=*/1);
  for (int i = 0; i < count; ++i) {
    base::UniqueFd fd(SD_LISTEN_FDS_START + i);
    const bool fits = sd_is_socket(fd.get(), AF_UNIX, SOCK_SEQPACKET, /*listening=*/1) > 0;
    std::string path = fits ? PathOf(fd.get()) : "";
    if (path.empty() || taken.fd.valid()) {
      Log(LOG_WARNING,
          absl::StrCat("descriptor ", fd.get(),
                       " from systemd is ignored; the socket unit must have only one socket, "
                       "with ListenSequentialPacket= and a path"));
      continue;
    }
    taken = {std::move(fd), std::move(path)};
  }
  return taken;
}

}  // namespace nettraced
