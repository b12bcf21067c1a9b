#include "tools/collector/dotnet/socket_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <optional>

namespace collector {

SocketWatch::SocketWatch(const std::string& folder)
    : notices_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  if (!notices_.valid()) return;
  if (inotify_add_watch(notices_.get(), folder.c_str(), IN_CREATE | IN_ONLYDIR) < 0) {
    notices_.reset();
  }
}

std::vector<SocketName> SocketWatch::Read(bool* is_incomplete) {
  std::vector<SocketName> names;
  alignas(inotify_event) std::array<char, std::size_t{64} << 10> bytes;
  const ssize_t size = notices_.valid() ? read(notices_.get(), bytes.data(), bytes.size()) : 0;
  for (std::size_t at = 0; size > 0 && at + sizeof(inotify_event) <= std::size_t(size);) {
    inotify_event event = {};
    std::memcpy(&event, bytes.data() + at, sizeof event);
    if ((event.mask & IN_Q_OVERFLOW) != 0) *is_incomplete = true;
    // The kernel ends the name with a NUL.
    if (event.len != 0) {
      const std::optional<SocketName> name =
          ParseSocketName(bytes.data() + at + sizeof(inotify_event));
      if (name) names.push_back(*name);
    }
    at += sizeof(inotify_event) + event.len;
  }
  return names;
}

}  // namespace collector
