// Notifies the daemon's supervisor, such as systemd, of the daemon's state, by the protocol of
// sd_notify(3). Unlike the function sd_notify, this class does not block if the supervisor does not
// read.
#ifndef TOOLS_NETTRACED_SUPERVISOR_H_
#define TOOLS_NETTRACED_SUPERVISOR_H_

#include <sys/socket.h>
#include <sys/un.h>

#include <string>
#include <string_view>
#include <vector>

#include "tools/base/unique_fd.h"

namespace nettraced {

// A client of the supervisor's notification socket. Not thread-safe.
class Supervisor {
 public:
  // `socket` is the value of $NOTIFY_SOCKET: an absolute path, or '@' and an abstract name. If it
  // is null, too long or of another form, there is no supervisor, and Notify does nothing.
  explicit Supervisor(const char* socket);

  // Sends lines such as "READY=1". If the supervisor does not take the lines, this object keeps
  // them for Retry. They replace kept lines whose first line sets the same variable, because only
  // the last value counts.
  void Notify(std::string lines);
  // Sends the kept lines in their order, until the supervisor takes no more.
  void Retry();
  // Returns whether lines are kept.
  bool has_kept() const { return !kept_.empty(); }

 private:
  bool Send(std::string_view lines) const;

  sockaddr_un address_ = {};
  socklen_t address_size_ = 0;  // 0 if there is no supervisor
  base::UniqueFd socket_;
  std::vector<std::string> kept_;  // lines that were not sent; an element for each Notify
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_SUPERVISOR_H_
