// The paths of the machine's cgroups, by the ids that samples name them by.
//
// In: the hierarchy as it is at the start, then perf's records of the cgroups that are made. Out:
// the path of an id, also of a cgroup that has been removed since. The kernel gives no id again and
// no cgroup another name, so that what is in the table stays right.
//
// Promises: bounded, whatever anybody makes of cgroups. What was not asked for lately is forgotten
// first; if it is asked for again, the kernel is asked for its path, once, and it is not named if
// the cgroup is gone by then.
#ifndef TOOLS_COLLECTOR_IDENTITY_CGROUP_TABLE_H_
#define TOOLS_COLLECTOR_IDENTITY_CGROUP_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace collector {

// Not thread-safe.
class CgroupTable {
 public:
  // More are not kept, nor more bytes of their paths.
  static constexpr std::size_t kMaxCgroups = 65536;
  static constexpr std::size_t kMaxBytes = std::size_t{32} << 20;

  // Of the hierarchy mounted at `mount`; "" if there is none: then it has only what Add names.
  explicit CgroupTable(std::string mount) : mount_(std::move(mount)) {}

  // Adds the cgroups that are there, at most so many as are kept.
  void Load();
  // A cgroup is made.
  void Add(std::uint64_t id, std::string_view path);
  // The path, which begins with '/'; "" if it is not known. Valid until the next call.
  std::string_view Find(std::uint64_t id);

  std::size_t size() const { return cgroups_.size(); }

 private:
  struct Cgroup {
    std::string path;           // "": there is none to be had
    std::uint64_t used_at = 0;  // by uses_
  };

  // Forgets half of them, if there are as many as may be.
  void MakeRoom();

  std::string mount_;
  absl::flat_hash_map<std::uint64_t, Cgroup> cgroups_;  // by id
  std::size_t bytes_ = 0;                               // of all paths
  std::uint64_t uses_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_IDENTITY_CGROUP_TABLE_H_
