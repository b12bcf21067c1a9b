#include "tools/collector/journal/journal_sync.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cstring>
#include <string_view>

#include "tools/base/unique_fd.h"

namespace collector {

bool SynchronizeJournal(absl::Duration timeout) {
  constexpr std::string_view kSocket = "/run/systemd/journal/io.systemd.journal";
  // A message of Varlink is JSON and a NUL. The literal contains the NUL.
  constexpr char kRequest[] = R"({"method":"io.systemd.Journal.Synchronize"})";
  const base::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return false;
  const timeval limit = absl::ToTimeval(timeout);
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, kSocket.data(), kSocket.size());
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return false;
  }
  if (send(fd.get(), kRequest, sizeof kRequest, MSG_NOSIGNAL) !=
      static_cast<ssize_t>(sizeof kRequest)) {
    return false;
  }
  char reply[256];
  const ssize_t size = recv(fd.get(), reply, sizeof reply, 0);
  return size > 0 && std::string_view(reply, static_cast<std::size_t>(size)).find("\"error\"") ==
                         std::string_view::npos;
}

}  // namespace collector
