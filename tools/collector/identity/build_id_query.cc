#include "tools/collector/identity/build_id_query.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "tools/base/mounts.h"
#include "tools/base/read_file.h"

namespace collector {
namespace {

// struct procmap_query of <linux/fs.h>, which older headers lack.
struct ProcmapQuery {
  std::uint64_t size = sizeof(ProcmapQuery);
  std::uint64_t flags = 0;
  std::uint64_t address = 0;
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  std::uint64_t mapping_flags = 0;
  std::uint64_t page_size = 0;
  std::uint64_t offset = 0;
  std::uint64_t inode = 0;
  std::uint32_t major_device = 0;
  std::uint32_t minor_device = 0;
  std::uint32_t name_size = 0;
  std::uint32_t build_id_size = 0;
  std::uint64_t name = 0;
  std::uint64_t build_id = 0;
};
constexpr auto kProcmapQuery = _IOWR('f', 17, ProcmapQuery);

constexpr std::size_t kMaxBuildId = 20;  // the kernel ignores longer ones

constexpr std::array<std::string_view, 13> kLocalTypes = {
    "bcachefs", "btrfs",   "erofs", "ext2",     "ext3",  "ext4", "f2fs",
    "iso9660",  "overlay", "ramfs", "squashfs", "tmpfs", "xfs"};

}  // namespace

absl::flat_hash_set<std::uint64_t> LocalDevices(std::string_view mountinfo) {
  absl::flat_hash_set<std::uint64_t> devices;
  for (const base::Mount& mount : base::ParseMounts(mountinfo)) {
    if (std::find(kLocalTypes.begin(), kLocalTypes.end(), mount.type) != kLocalTypes.end()) {
      devices.insert(mount.device);
    }
  }
  return devices;
}

BuildIdQuery::BuildIdQuery()
    : devices_(
          LocalDevices(base::ReadFile("/proc/self/mountinfo", base::kMaxMountinfo).value_or(""))) {}

void BuildIdQuery::SelectProcess(std::uint32_t pid) {
  maps_.reset();
  if (!is_supported_) return;
  maps_ = base::UniqueFd(open(absl::StrCat("/proc/", pid, "/maps").c_str(), O_RDONLY | O_CLOEXEC));
}

std::string BuildIdQuery::BuildIdAt(std::uint64_t address) {
  if (!is_supported_ || !maps_.valid()) return "";
  ProcmapQuery query;
  query.address = address;
  // This query has no room for a build id, so the kernel does not read the file.
  if (ioctl(maps_.get(), kProcmapQuery, &query) != 0) {
    is_supported_ = errno != ENOTTY;
    return "";
  }
  if (query.inode == 0 || !devices_.contains(makedev(query.major_device, query.minor_device))) {
    return "";
  }
  std::array<char, kMaxBuildId> build_id = {};
  query = {};
  query.address = address;
  query.build_id_size = build_id.size();
  query.build_id = reinterpret_cast<std::uintptr_t>(build_id.data());
  if (ioctl(maps_.get(), kProcmapQuery, &query) != 0) return "";
  return {build_id.data(), std::min<std::size_t>(query.build_id_size, build_id.size())};
}

}  // namespace collector
