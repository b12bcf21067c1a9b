#include "tools/collector/system/uevents.h"

#include <linux/filter.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "tools/base/status_macros.h"

namespace collector {
namespace {

constexpr std::string_view kCpuPath = "/devices/system/cpu/cpu";
constexpr std::string_view kModulePath = "/module/";
// Multicast group of the kernel's messages; that of udev is 2.
constexpr std::uint32_t kKernelGroup = 1;
// Bytes of a message that are read. The kernel's limit is 2 KiB, and only the beginning matters.
constexpr std::size_t kMessageSize = 2048;
// Maximum number of messages that one call of Take() reads. If more messages are waiting, the
// descriptor stays readable.
constexpr int kMaxAtOnce = 256;

bool IsNumber(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char digit) { return std::isdigit(digit) != 0; });
}

// Makes the kernel drop all messages except those that begin with "onli", "offl" or "add@/mod".
void FilterMessages(int fd) {
  constexpr std::uint32_t kOnli = 0x6F6E6C69;
  constexpr std::uint32_t kOffl = 0x6F66666C;
  constexpr std::uint32_t kAdd = 0x61646440;
  constexpr std::uint32_t kMod = 0x2F6D6F64;
  std::array<sock_filter, 8> program = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kOnli, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kOffl, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kAdd, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kMod, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 0xFFFFFFFF),
      BPF_STMT(BPF_RET | BPF_K, 0),
  }};
  const sock_fprog filter = {program.size(), program.data()};
  // If the filter cannot be set, other announcements make the descriptor readable, but are still
  // ignored.
  setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
}

}  // namespace

Uevent ParseUevent(std::string_view message) {
  const std::string_view header = message.substr(0, message.find('\0'));
  const std::size_t at = header.find('@');
  if (at == std::string_view::npos) return Uevent::kOther;
  const std::string_view action = header.substr(0, at);
  const std::string_view path = header.substr(at + 1);
  if ((action == "online" || action == "offline") && path.starts_with(kCpuPath) &&
      IsNumber(path.substr(kCpuPath.size()))) {
    return Uevent::kCpu;
  }
  if (action == "add" && path.starts_with(kModulePath) && path.size() > kModulePath.size() &&
      path.find('/', kModulePath.size()) == std::string_view::npos) {
    return Uevent::kModule;
  }
  return Uevent::kOther;
}

absl::StatusOr<UeventSocket> UeventSocket::Open() {
  base::UniqueFd fd(
      socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT));
  if (!fd.valid()) return base::ErrnoStatus(errno, "opening a socket for the kernel's uevents");
  FilterMessages(fd.get());
  sockaddr_nl address = {};
  address.nl_family = AF_NETLINK;
  address.nl_groups = kKernelGroup;
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return base::ErrnoStatus(errno, "listening to the kernel's uevents");
  }
  return UeventSocket(std::move(fd));
}

UeventSocket::Changes UeventSocket::Take() {
  Changes changes;
  for (int i = 0; i < kMaxAtOnce; ++i) {
    std::array<char, kMessageSize> message;
    sockaddr_nl sender = {};
    socklen_t sender_size = sizeof sender;
    const ssize_t size = recvfrom(fd_.get(), message.data(), message.size(), 0,
                                  reinterpret_cast<sockaddr*>(&sender), &sender_size);
    if (size < 0 && errno == ENOBUFS) {
      changes = {.cpus = true, .modules = true};
      continue;
    }
    if (size < 0) break;
    // Processes with CAP_NET_ADMIN may send to the group, too. Only messages of the kernel have
    // port 0.
    if (sender_size != sizeof sender || sender.nl_pid != 0) continue;
    const Uevent event = ParseUevent({message.data(), static_cast<std::size_t>(size)});
    changes.cpus = changes.cpus || event == Uevent::kCpu;
    changes.modules = changes.modules || event == Uevent::kModule;
  }
  return changes;
}

}  // namespace collector
