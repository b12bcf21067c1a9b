// Takes over the socket that systemd has opened for services with rings in user space.
#ifndef TOOLS_NETTRACED_ACTIVATED_SOCKET_H_
#define TOOLS_NETTRACED_ACTIVATED_SOCKET_H_

#include <string>

#include "tools/base/unique_fd.h"

namespace nettraced {

struct ActivatedSocket {
  base::UniqueFd fd;  // invalid if systemd has passed no such socket
  std::string path;
};

// Returns the first descriptor passed by systemd (sd_listen_fds(3)) that is a listening Unix socket
// of type SOCK_SEQPACKET with a path. Closes the other descriptors and logs a warning for each.
// Must be called once, before threads start.
ActivatedSocket TakeActivatedSocket();

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_ACTIVATED_SOCKET_H_
