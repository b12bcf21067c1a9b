#include "tools/collector/identity/cgroup_table.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "tools/collector/system/cgroup2.h"

namespace collector {

void CgroupTable::Load() {
  if (mount_.empty()) return;
  if (const std::optional<std::uint64_t> id = CgroupId(mount_)) Add(*id, "/");
  ForEachCgroup(mount_, [this](const std::string& path) {
    if (const std::optional<std::uint64_t> id = CgroupId(path)) {
      Add(*id, std::string_view(path).substr(mount_.size()));
    }
    // Stops when half of a limit is used. Find reads the paths of the other cgroups from the kernel
    // when they are needed.
    return cgroups_.size() < kMaxCgroups / 2 && bytes_ < kMaxBytes / 2 ? Below::kVisit
                                                                       : Below::kEnd;
  });
}

void CgroupTable::Add(std::uint64_t id, std::string_view path) {
  MakeRoom();
  Cgroup& cgroup = cgroups_[id];
  bytes_ += path.size() - cgroup.path.size();
  cgroup.path = std::string(path);
  cgroup.used_at = ++uses_;
}

std::string_view CgroupTable::Find(std::uint64_t id) {
  const auto found = cgroups_.find(id);
  if (found != cgroups_.end()) {
    found->second.used_at = ++uses_;
    return found->second.path;
  }
  Add(id, mount_.empty() ? "" : CgroupPath(mount_, id).value_or(""));
  return cgroups_[id].path;
}

void CgroupTable::MakeRoom() {
  if (cgroups_.size() < kMaxCgroups && bytes_ < kMaxBytes) return;
  std::vector<std::uint64_t> uses;
  uses.reserve(cgroups_.size());
  for (const auto& [id, cgroup] : cgroups_) uses.push_back(cgroup.used_at);
  const auto middle = uses.begin() + static_cast<std::ptrdiff_t>(uses.size() / 2);
  std::nth_element(uses.begin(), middle, uses.end());
  absl::erase_if(cgroups_, [this, least = *middle](const auto& entry) {
    const bool is_old = entry.second.used_at < least;
    if (is_old) bytes_ -= entry.second.path.size();
    return is_old;
  });
}

}  // namespace collector
