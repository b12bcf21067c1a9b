#include "tools/control/access.h"

#include <grp.h>
#include <sys/acl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace control {
namespace {

// Returns the id that stands for all ids without a mapping in this user namespace. `file` is the
// path of the kernel's file with this id. If the file cannot be read, returns the kernel's default.
unsigned OverflowId(const char* file) {
  unsigned id = 65534;
  std::ifstream(file) >> id;
  return id;
}

absl::StatusOr<std::optional<gid_t>> FindGroup(const char* setting, const std::string& name) {
  if (name.empty()) return std::nullopt;
  std::vector<char> buffer(1024);
  struct group entry = {};
  struct group* found = nullptr;
  while (getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) == ERANGE) {
    buffer.resize(buffer.size() * 2);
  }
  if (found == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(setting, " ", name, ": no such group; create it with 'groupadd --system ",
                     name, "', or set another group"));
  }
  if (found->gr_gid == OverflowId("/proc/sys/kernel/overflowgid")) {
    return absl::InvalidArgumentError(
        absl::StrCat(setting, " ", name, ": its id, ", found->gr_gid,
                     ", stands for all groups outside this user namespace; set another group"));
  }
  return found->gr_gid;
}

}  // namespace

absl::StatusOr<Peer> PeerOf(int socket) {
  ucred credentials = {};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return base::ErrnoStatus(errno, "SO_PEERCRED");
  }
  Peer peer = {credentials.uid, credentials.pid, {}};
  peer.groups.resize(32);
  for (;;) {
    size = static_cast<socklen_t>(peer.groups.size() * sizeof(gid_t));
    const int result = getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, peer.groups.data(), &size);
    if (result != 0 && errno != ERANGE) return base::ErrnoStatus(errno, "SO_PEERGROUPS");
    // After ERANGE, `size` is the number of bytes that all groups need.
    peer.groups.resize(size / sizeof(gid_t));
    if (result == 0) break;
  }
  peer.groups.push_back(credentials.gid);
  return peer;
}

absl::StatusOr<AccessRules> AccessRules::Of(const std::string& control_group,
                                            const std::string& look_group) {
  AccessRules rules;
  absl::StatusOr<std::optional<gid_t>> group = FindGroup("control_group", control_group);
  if (!group.ok()) return group.status();
  rules.control_group_ = *group;
  group = FindGroup("look_group", look_group);
  if (!group.ok()) return group.status();
  rules.look_group_ = *group;
  if (geteuid() != OverflowId("/proc/sys/kernel/overflowuid")) rules.own_user_ = geteuid();
  return rules;
}

Access AccessRules::Of(const Peer& peer) const {
  const auto is_member = [&peer](const std::optional<gid_t>& group) {
    return group && std::find(peer.groups.begin(), peer.groups.end(), *group) != peer.groups.end();
  };
  if (IsAdministrator(peer.user) || is_member(control_group_)) return Access::kChange;
  return is_member(look_group_) ? Access::kLook : Access::kNone;
}

bool AccessRules::IsAdministrator(uid_t user) const { return user == 0 || user == own_user_; }

absl::Status AccessRules::Apply(const std::string& path) const {
  struct stat now = {};
  if (stat(path.c_str(), &now) != 0) return base::ErrnoStatus(errno, absl::StrCat(path, ": stat"));
  // Calls chown only if the group is wrong. The systemd unit runs the daemon in the right group,
  // and does not allow it to call chown.
  if (look_group_ && now.st_gid != *look_group_ &&
      chown(path.c_str(), static_cast<uid_t>(-1), *look_group_) != 0) {
    return base::ErrnoStatus(errno, absl::StrCat(path, ": the group cannot be set to look_group"),
                             "the daemon's user must be a member of that group");
  }
  if (chmod(path.c_str(), look_group_ ? 0660 : 0600) != 0) {
    return base::ErrnoStatus(errno, absl::StrCat(path, ": the mode cannot be set"));
  }
  if (!control_group_ || control_group_ == look_group_) return absl::OkStatus();
  const std::string text =
      absl::StrCat("u::rw,g::", look_group_ ? "rw" : "-", ",o::-,m::rw,g:", *control_group_, ":rw");
  const std::unique_ptr<void, int (*)(void*)> list(acl_from_text(text.c_str()), acl_free);
  if (list == nullptr ||
      acl_set_file(path.c_str(), ACL_TYPE_ACCESS, static_cast<acl_t>(list.get())) != 0) {
    return base::ErrnoStatus(errno, absl::StrCat(path, ": cannot grant access to control_group"),
                             "its file system needs access control lists (CONFIG_TMPFS_POSIX_ACL)");
  }
  return absl::OkStatus();
}

}  // namespace control
