#include "tools/collector/session/target.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tools/base/status_macros.h"
#include "tools/collector/system/cgroup2.h"

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL  // since Linux 6.9; older headers lack it
#endif

namespace collector {
namespace {

constexpr char kNoCgroup2[] =
    "cgroups: no cgroup v2 is mounted; boot with systemd.unified_cgroup_hierarchy=1, or mount it "
    "with 'mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified', or select processes by their ids";
// Maximum number of cgroups that an error names.
constexpr std::size_t kMaxNamed = 5;

// Returns the value of a line of /proc/ID/status, or no value if the task or the line does not
// exist.
std::optional<std::string> ReadStatus(pid_t id, absl::string_view key) {
  std::ifstream file(absl::StrCat("/proc/", id, "/status"));
  for (std::string line; std::getline(file, line);) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(":\t", 1));
    if (parts.first == key) return std::string(parts.second);
  }
  return std::nullopt;
}

// Returns whether the task exists and has not ended. A zombie has ended.
bool IsRunning(pid_t id) {
  const std::optional<std::string> state = ReadStatus(id, "State");
  return state && !state->starts_with('Z') && !state->starts_with('X');
}

absl::Status CheckProcess(pid_t pid) {
  const std::optional<std::string> process = ReadStatus(pid, "Tgid");
  if (!process) {
    return absl::NotFoundError(absl::StrCat(
        "process ", pid, ": there is no such process; 'ps -e' lists the processes that exist"));
  }
  if (*process != absl::StrCat(pid)) {
    return absl::InvalidArgumentError(
        absl::StrCat("process ", pid, ": that is a thread of process ", *process,
                     "; select process ", *process, " or thread ", pid));
  }
  return absl::OkStatus();
}

bool IsDirectory(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

// Returns the folders named `name` below `mount`, none of them inside another one.
std::vector<std::string> FindByName(const std::string& mount, const std::string& name) {
  std::vector<std::string> found;
  ForEachCgroup(mount, [&](const std::string& path) {
    if (std::filesystem::path(path).filename() != name) return Below::kVisit;
    found.push_back(path);
    return Below::kSkip;
  });
  std::sort(found.begin(), found.end());
  return found;
}

// Returns a descriptor of the task. The descriptor is invalid if the task does not exist or the
// kernel does not support `flags`.
base::UniqueFd OpenTask(pid_t id, unsigned flags) {
  return base::UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, id, flags)));
}

bool IsBelow(const std::string& path, const std::string& other) {
  return path == other || path.starts_with(other + "/");
}

absl::StatusOr<std::vector<base::UniqueFd>> OpenCgroups(const std::vector<std::string>& selected) {
  const std::string mount = Cgroup2Mount();
  if (mount.empty()) return absl::FailedPreconditionError(kNoCgroup2);
  std::vector<std::string> paths;
  for (const std::string& text : selected) {
    ASSIGN_OR_RETURN(const std::string path, FindCgroup(mount, text));
    std::error_code error;
    const std::filesystem::path canonical = std::filesystem::canonical(path, error);
    paths.push_back(error ? path : canonical.string());
  }
  // Sorts the paths, so that a folder precedes the folders inside it.
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> kept;
  for (const std::string& path : paths) {
    if (std::none_of(kept.begin(), kept.end(),
                     [&path](const std::string& other) { return IsBelow(path, other); })) {
      kept.push_back(path);
    }
  }
  std::vector<base::UniqueFd> cgroups;
  for (const std::string& path : kept) {
    ASSIGN_OR_RETURN(base::UniqueFd cgroup, OpenCgroup(path));
    cgroups.push_back(std::move(cgroup));
  }
  return cgroups;
}

}  // namespace

absl::StatusOr<std::vector<pid_t>> ParseIds(std::string_view text) {
  std::vector<pid_t> ids;
  for (const absl::string_view part :
       absl::StrSplit(absl::string_view(text.data(), text.size()), ',')) {
    pid_t id = 0;
    if (part.empty() || !absl::ascii_isdigit(static_cast<unsigned char>(part[0])) ||
        !absl::SimpleAtoi(part, &id) || id <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", absl::string_view(text.data(), text.size()),
                       "': invalid list of ids; examples: 12 or 12,34,56"));
    }
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  return ids;
}

absl::StatusOr<std::string> FindCgroup(const std::string& mount, const std::string& text) {
  const bool is_absolute = text.starts_with('/');
  if (is_absolute && IsDirectory(text)) return text;
  // An absolute path may also be from /proc/PID/cgroup, where paths start at the root of the
  // hierarchy of cgroups. Therefore also searches for it below `mount`.
  const std::string below = absl::StrCat(mount, is_absolute ? "" : "/", text);
  if (!text.empty() && IsDirectory(below)) return below;
  const std::string missing = absl::StrCat("cgroup ", text.empty() ? "\"\"" : text, ": ");
  if (text.empty() || text.find('/') != std::string::npos) {
    return absl::NotFoundError(absl::StrCat(missing, "there is no such cgroup below ", mount,
                                            "; 'systemd-cgls' lists those that exist"));
  }
  std::vector<std::string> found = FindByName(mount, text);
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat(missing, "there is no cgroup of that name below ",
                                            mount, "; check that the unit is running"));
  }
  if (found.size() > 1) {
    const std::size_t count = found.size();
    found.resize(std::min(count, kMaxNamed));
    return absl::InvalidArgumentError(
        absl::StrCat(missing, count, " cgroups have that name: ", absl::StrJoin(found, ", "),
                     count > kMaxNamed ? ", ..." : "", "; use the path of one"));
  }
  return found[0];
}

absl::StatusOr<base::UniqueFd> OpenCgroup(const std::string& path) {
  base::UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return base::ErrnoStatus(errno, absl::StrCat("cgroup ", path));
  struct statfs facts;
  if (fstatfs(fd.get(), &facts) != 0 || facts.f_type != CGROUP2_SUPER_MAGIC) {
    return absl::FailedPreconditionError(
        absl::StrCat("cgroup ", path, ": not a cgroup v2; use a cgroup below ", Cgroup2Mount()));
  }
  return fd;
}

absl::StatusOr<PerfTarget> OpenTarget(const TargetSelection& selection) {
  PerfTarget target;
  const int kinds = static_cast<int>(!selection.pids.empty()) +
                    static_cast<int>(!selection.tids.empty()) +
                    static_cast<int>(!selection.cgroups.empty());
  if (kinds > 1) {
    return absl::InvalidArgumentError(
        "processes, threads and cgroups exclude each other; select one kind");
  }
  if (!selection.pids.empty()) {
    target.kind = PerfTarget::Kind::kProcesses;
    target.ids = selection.pids;
    for (const pid_t pid : target.ids) {
      target.descriptors.push_back(OpenTask(pid, /*flags=*/0));
      RETURN_IF_ERROR(CheckProcess(pid));
    }
  } else if (!selection.tids.empty()) {
    target.kind = PerfTarget::Kind::kThreads;
    target.ids = selection.tids;
    for (const pid_t tid : target.ids) {
      target.descriptors.push_back(OpenTask(tid, PIDFD_THREAD));
      if (!IsRunning(tid)) {
        return absl::NotFoundError(absl::StrCat(
            "thread ", tid, ": there is no such thread; 'ps -eL' lists the threads that exist"));
      }
    }
  } else if (!selection.cgroups.empty()) {
    target.kind = PerfTarget::Kind::kCgroups;
    ASSIGN_OR_RETURN(target.cgroups, OpenCgroups(selection.cgroups));
  }
  return target;
}

absl::StatusOr<FollowedTarget> OpenFollowedTarget(const TargetSelection& selection) {
  if (selection.cgroups.size() != 1 || !selection.pids.empty() || !selection.tids.empty()) {
    return absl::InvalidArgumentError(
        "a target can be followed only if it is one cgroup; select one, and no process or thread");
  }
  const std::string mount = Cgroup2Mount();
  if (mount.empty()) return absl::FailedPreconditionError(kNoCgroup2);
  const absl::StatusOr<std::string> path = FindCgroup(mount, selection.cgroups[0]);
  if (!path.ok() && !absl::IsNotFound(path.status())) return path.status();
  FollowedTarget followed;
  followed.target.kind = PerfTarget::Kind::kCgroups;
  followed.follower.emplace(mount, selection.cgroups[0], path.value_or(""));
  return followed;
}

TargetWatch::TargetWatch(const PerfTarget& target) : kind_(target.kind) {
  for (std::size_t i = 0; i < target.ids.size(); ++i) {
    const int fd = target.descriptors[i].get();
    running_.push_back({target.ids[i], base::UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 0))});
  }
}

std::vector<int> TargetWatch::descriptors() const {
  std::vector<int> descriptors;
  for (const Task& task : running_) {
    if (task.descriptor.valid()) descriptors.push_back(task.descriptor.get());
  }
  return descriptors;
}

bool TargetWatch::HaveEnded() {
  if (kind_ != PerfTarget::Kind::kProcesses && kind_ != PerfTarget::Kind::kThreads) return false;
  // Removes the tasks that have ended. This closes their descriptors, so that these cause no more
  // wake-ups.
  std::erase_if(running_, [](const Task& task) {
    if (!task.descriptor.valid()) return !IsRunning(task.id);
    pollfd descriptor = {task.descriptor.get(), POLLIN, 0};
    return poll(&descriptor, 1, 0) > 0;
  });
  return running_.empty();
}

}  // namespace collector
