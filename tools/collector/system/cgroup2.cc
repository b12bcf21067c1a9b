#include "tools/collector/system/cgroup2.h"

#include <fcntl.h>
#include <unistd.h>

#include <climits>
#include <cstddef>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tools/base/unique_fd.h"

namespace collector {
namespace {

constexpr int kKernfsHandle = 0xFE;  // FILEID_KERNFS

// A file handle of a cgroup's folder. It consists of the cgroup's id.
class Handle {
 public:
  explicit Handle(std::uint64_t id = 0) {
    get()->handle_bytes = sizeof id;
    get()->handle_type = kKernfsHandle;
    std::memcpy(get()->f_handle, &id, sizeof id);
  }
  file_handle* get() { return reinterpret_cast<file_handle*>(bytes_); }
  std::optional<std::uint64_t> id() {
    std::uint64_t id = 0;
    if (get()->handle_type != kKernfsHandle || get()->handle_bytes != sizeof id) return {};
    std::memcpy(&id, get()->f_handle, sizeof id);
    return id;
  }

 private:
  alignas(file_handle) std::byte bytes_[sizeof(file_handle) + sizeof(std::uint64_t)] = {};
};

}  // namespace

std::string Cgroup2Mount() {
  std::ifstream file("/proc/self/mounts");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, ' ');
    if (parts.size() > 2 && parts[2] == "cgroup2") return parts[1];
  }
  return "";
}

bool PerfUsesCgroup2() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    // Each line is "NUMBER:CONTROLLERS:PATH".
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() < 2) continue;
    for (const absl::string_view controller : absl::StrSplit(parts[1], ',')) {
      if (controller == "perf_event") return false;
    }
  }
  return true;
}

void ForEachCgroup(const std::string& top,
                   absl::FunctionRef<Below(const std::string& path)> visit) {
  std::deque<std::string> folders = {top};
  for (; !folders.empty(); folders.pop_front()) {
    std::error_code error;
    for (std::filesystem::directory_iterator entry(folders.front(), error), end;
         !error && entry != end; entry.increment(error)) {
      std::error_code gone;
      if (entry->is_symlink(gone) || !entry->is_directory(gone)) continue;
      std::string path = entry->path().string();
      const Below below = visit(path);
      if (below == Below::kEnd) return;
      if (below == Below::kVisit) folders.push_back(std::move(path));
    }
  }
}

std::optional<std::uint64_t> CgroupId(const std::string& path) {
  Handle handle;
  int mount = 0;
  if (name_to_handle_at(AT_FDCWD, path.c_str(), handle.get(), &mount, AT_SYMLINK_FOLLOW) != 0)
    return std::nullopt;
  return handle.id();
}

std::optional<std::string> CgroupPath(const std::string& mount, std::uint64_t id) {
  const base::UniqueFd top(open(mount.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  Handle handle(id);
  const base::UniqueFd folder(open_by_handle_at(top.get(), handle.get(), O_PATH | O_CLOEXEC));
  if (!folder.valid()) return std::nullopt;
  char text[PATH_MAX];
  const ssize_t size =
      readlink(absl::StrCat("/proc/self/fd/", folder.get()).c_str(), text, sizeof text);
  if (size <= 0 || size == sizeof text) return std::nullopt;
  const std::string path(text, static_cast<std::size_t>(size));
  if (path == mount) return "/";
  // If the folder is being removed, the text is not its path: the kernel appends " (deleted)".
  if (!path.starts_with(mount + "/") || CgroupId(path) != id) return std::nullopt;
  return path.substr(mount.size());
}

}  // namespace collector
