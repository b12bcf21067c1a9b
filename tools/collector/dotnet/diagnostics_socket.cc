#include "tools/collector/dotnet/diagnostics_socket.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tools/base/read_file.h"
#include "tools/base/status_macros.h"
#include "tools/collector/identity/proc_files.h"

namespace collector {
namespace {

constexpr absl::string_view kNameStart = "dotnet-diagnostic-";
constexpr absl::string_view kNameEnd = "-socket";
constexpr std::size_t kMaxProcFile = std::size_t{64} << 10;

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

// Returns the words after `key` in its line of /proc/PID/status.
std::vector<absl::string_view> StatusWords(std::string_view status, absl::string_view key) {
  for (const absl::string_view line : absl::StrSplit(View(status), '\n')) {
    absl::string_view words = line;
    if (absl::ConsumePrefix(&words, key)) {
      return absl::StrSplit(words, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    }
  }
  return {};
}

// Opens `path` below the directory `root`. Follows no symbolic link and does not leave `root`.
base::UniqueFd OpenBelow(int root, const std::string& path) {
  open_how how = {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return base::UniqueFd(
      static_cast<int>(syscall(SYS_openat2, root, path.c_str(), &how, sizeof how)));
}

// Returns the inode of the mount namespace of a process; nullopt if it cannot be read.
std::optional<ino_t> MountsOf(const std::string& process) {
  struct stat facts = {};
  if (stat(absl::StrCat("/proc/", process, "/ns/mnt").c_str(), &facts) != 0) return std::nullopt;
  return facts.st_ino;
}

bool IsSameFile(const std::string& a, const std::string& b) {
  struct stat a_facts = {};
  struct stat b_facts = {};
  return stat(a.c_str(), &a_facts) == 0 && stat(b.c_str(), &b_facts) == 0 &&
         a_facts.st_dev == b_facts.st_dev && a_facts.st_ino == b_facts.st_ino;
}

absl::Status NotOfProcess(const ProcessFacts& process, absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat(
      what, " does not belong to process ", process.pid,
      "; remove the file of the socket, and restart the process if it has no other socket"));
}

// Opens the file of the socket, whose path is `path` below the root directory of the process.
absl::StatusOr<base::UniqueFd> OpenSocketFile(const ProcessFacts& process,
                                              const std::string& path) {
  const base::UniqueFd root(
      open(absl::StrCat("/proc/", process.pid, "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) {
    return base::ErrnoStatus(errno, absl::StrCat("root directory of process ", process.pid),
                             "run as root, or as the user of the process");
  }
  base::UniqueFd file = OpenBelow(root.get(), path);
  if (!file.valid()) return base::ErrnoStatus(errno, path);
  struct stat facts = {};
  if (fstat(file.get(), &facts) != 0) return base::ErrnoStatus(errno, path);
  if (!S_ISSOCK(facts.st_mode) || facts.st_uid != process.user) return NotOfProcess(process, path);
  return file;
}

}  // namespace

std::optional<ProcessFacts> ParseProcessFacts(pid_t pid, std::string_view stat,
                                              std::string_view status) {
  constexpr std::size_t kStart = 19;  // index of the start time among the words after the name
  const std::size_t open = stat.find('(');
  const std::size_t close = stat.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return std::nullopt;
  }
  ProcessFacts facts;
  facts.pid = pid;
  facts.name = std::string(stat.substr(open + 1, close - open - 1));
  const std::vector<absl::string_view> words =
      absl::StrSplit(View(stat.substr(close + 1)), ' ', absl::SkipEmpty());
  if (words.size() <= kStart || words[0] == "Z" || words[0] == "X" ||
      !absl::SimpleAtoi(words[kStart], &facts.start)) {
    return std::nullopt;
  }
  const auto users = StatusWords(status, "Uid:");
  const auto pids = StatusWords(status, "NSpid:");
  if (users.size() < 2 || !absl::SimpleAtoi(users[1], &facts.user)) return std::nullopt;
  facts.own_pid = static_cast<std::uint64_t>(pid);
  if (!pids.empty() && !absl::SimpleAtoi(pids.back(), &facts.own_pid)) return std::nullopt;
  return facts;
}

std::optional<ProcessFacts> ReadProcessFacts(pid_t pid) {
  const auto stat = base::ReadFile(absl::StrCat("/proc/", pid, "/stat"), kMaxProcFile);
  const auto status = base::ReadFile(absl::StrCat("/proc/", pid, "/status"), kMaxProcFile);
  if (!stat.ok() || !status.ok()) return std::nullopt;
  return ParseProcessFacts(pid, *stat, *status);
}

std::optional<SocketName> ParseSocketName(std::string_view name) {
  absl::string_view rest = View(name);
  if (!absl::ConsumePrefix(&rest, kNameStart) || !absl::ConsumeSuffix(&rest, kNameEnd)) {
    return std::nullopt;
  }
  SocketName parsed;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(rest, absl::MaxSplits('-', 1));
  if (!absl::SimpleAtoi(parts.first, &parsed.pid) || parsed.pid <= 0 ||
      !absl::SimpleAtoi(parts.second, &parsed.start)) {
    return std::nullopt;
  }
  return parsed;
}

std::vector<pid_t> ListDiagnosticsSockets(const std::string& folder, std::size_t max) {
  std::vector<pid_t> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(folder.c_str()), closedir);
  if (listing == nullptr) return pids;
  while (const dirent* entry = readdir(listing.get())) {
    const std::optional<SocketName> name = ParseSocketName(entry->d_name);
    if (!name) continue;
    if (pids.size() == max) break;
    pids.push_back(name->pid);
  }
  return pids;
}

std::vector<pid_t> ListProcessesWithOtherFolder(const std::string& folder, std::size_t max) {
  std::vector<pid_t> pids;
  const std::optional<ino_t> own = MountsOf("self");
  // If the collector runs as a systemd service, it often has separate mounts, but the same `folder`
  // as process 1. All processes with the mounts of process 1 then have this folder, too.
  const std::optional<ino_t> usual =
      IsSameFile(folder, absl::StrCat("/proc/1/root", folder)) ? MountsOf("1") : own;
  for (const std::uint32_t pid : ProcPids()) {
    const std::optional<ino_t> mounts = MountsOf(absl::StrCat(pid));
    if (!mounts || mounts == own || mounts == usual) continue;
    if (pids.size() == max) break;
    pids.push_back(static_cast<pid_t>(pid));
  }
  return pids;
}

std::string ReadTemporaryFolder(pid_t pid) {
  const auto environment = base::ReadFile(absl::StrCat("/proc/", pid, "/environ"), kMaxProcFile);
  if (!environment.ok()) return "";
  for (absl::string_view variable : absl::StrSplit(*environment, '\0')) {
    if (absl::ConsumePrefix(&variable, "TMPDIR=")) {
      return std::string(absl::StripSuffix(variable, "/"));
    }
  }
  return "";
}

absl::StatusOr<base::UniqueFd> ConnectDiagnostics(const ProcessFacts& process,
                                                  const std::string& folder) {
  const std::string path =
      absl::StrCat(folder, "/", kNameStart, process.own_pid, "-", process.start, kNameEnd);
  ASSIGN_OR_RETURN(const base::UniqueFd file, OpenSocketFile(process, path));
  base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return base::ErrnoStatus(errno, "a socket cannot be created");
  // Connects to the file that was checked, even if its path now names another file.
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  absl::StrCat("/proc/self/fd/", file.get()).copy(address.sun_path, sizeof address.sun_path - 1);
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == ECONNREFUSED) return absl::NotFoundError("its diagnostics socket is not in use");
    if (errno == EAGAIN) return absl::UnavailableError("too many connections wait at its socket");
    return base::ErrnoStatus(errno, "its diagnostics socket cannot be connected");
  }
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return base::ErrnoStatus(errno,
                             "the process at its diagnostics socket is not known: SO_PEERCRED");
  }
  // The process may have ended, and another process may have its pid.
  const std::optional<ProcessFacts> now = ReadProcessFacts(process.pid);
  if (peer.pid != process.pid || peer.uid != process.user || !now || now->start != process.start) {
    return NotOfProcess(process, absl::StrCat("the process that listens at ", path));
  }
  return socket;
}

int SendDescriptor(int socket, int passed) {
  char byte = 0;
  iovec data = {&byte, sizeof byte};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &passed, sizeof passed);
  return sendmsg(socket, &message, MSG_NOSIGNAL) == sizeof byte ? 0 : errno;
}

}  // namespace collector
