// Takes the socket for services with rings in user space that systemd has opened.
#ifndef TOOLS_NETTRACED_ACTIVATED_SOCKET_H_
#define TOOLS_NETTRACED_ACTIVATED_SOCKET_H_

#include <string>

#include "tools/base/unique_fd.h"

namespace nettraced {

struct ActivatedSocket {
  base::UniqueFd fd;  // invalid: there is none
  std::string path;
};

// Returns the first descriptor of systemd (sd_listen_fds(3)) that is a listening socket of this
// type with a path. Logs and closes the others. Must be called once, before threads start.
ActivatedSocket TakeActivatedSocket();

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_ACTIVATED_SOCKET_H_
