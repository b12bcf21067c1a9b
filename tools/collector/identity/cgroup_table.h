// Maps the ids of cgroups, which samples contain, to their paths.
//
// Input: the cgroups that exist at the start, then perf's records of new cgroups. Output: the path
// of an id, even if the cgroup has been removed since. The kernel neither reuses ids nor renames
// cgroups, so entries stay correct.
//
// Guarantees: The table is bounded, however many cgroups processes create. The least recently used
// entries are removed first. If the id of a removed entry is requested again, the table reads the
// path from the kernel and keeps it. The path is "" if the cgroup no longer exists.
#ifndef TOOLS_COLLECTOR_IDENTITY_CGROUP_TABLE_H_
#define TOOLS_COLLECTOR_IDENTITY_CGROUP_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace collector {

// A bounded table of cgroup paths. Not thread-safe.
class CgroupTable {
 public:
  // Maximum number of cgroups, and maximum bytes of their paths.
  static constexpr std::size_t kMaxCgroups = 65536;
  static constexpr std::size_t kMaxBytes = std::size_t{32} << 20;

  // Creates a table of the hierarchy mounted at `mount`. If `mount` is "", the table contains only
  // what Add adds.
  explicit CgroupTable(std::string mount) : mount_(std::move(mount)) {}

  // Adds the existing cgroups, up to half of the limits.
  void Load();
  // Adds a cgroup, or replaces its path if the id is known.
  void Add(std::uint64_t id, std::string_view path);
  // Returns the path of the cgroup, which begins with '/'; "" if it is not known. Valid until the
  // next call.
  std::string_view Find(std::uint64_t id);

  std::size_t size() const { return cgroups_.size(); }

 private:
  struct Cgroup {
    std::string path;           // "": the path is not available
    std::uint64_t used_at = 0;  // value of uses_ at the last use
  };

  // Removes the least recently used half of the cgroups if a limit is reached.
  void MakeRoom();

  std::string mount_;
  absl::flat_hash_map<std::uint64_t, Cgroup> cgroups_;  // by id
  std::size_t bytes_ = 0;                               // total size of the paths
  std::uint64_t uses_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_IDENTITY_CGROUP_TABLE_H_
