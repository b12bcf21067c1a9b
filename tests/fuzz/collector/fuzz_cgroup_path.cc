// Parses any bytes as the path of a cgroup, and checks: the results are parts of the path, a unit
// has a name that systemd could give it, and folders below the container of a unit do not change
// the result.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tools/collector/identity/cgroup_path.h"

namespace {

void Require(bool promise) {
  if (!promise) std::abort();
}

bool IsUnitCharacter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view(":-_.\\@").find(c) != std::string_view::npos;
}

void CheckUnit(std::string_view unit, std::string_view path) {
  Require(unit.size() < 256 && std::all_of(unit.begin(), unit.end(), IsUnitCharacter));
  Require(unit.empty() || (path.find(unit) != std::string_view::npos && !unit.ends_with(".slice")));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string path(reinterpret_cast<const char*>(bytes), size);
  const collector::CgroupNames names = collector::ParseCgroupPath(path);
  CheckUnit(names.unit, path);
  CheckUnit(names.user_unit, path);
  Require(names.container.size() <= path.size());
  if (names.unit.empty() || names.container.empty()) return 0;
  const bool has_users = names.unit.starts_with("user@") && names.user_unit.empty();
  if (!has_users) {
    const std::string below =
        path + "/docker-" + std::string(64, '0') + ".scope/system.slice/a.service";
    Require(collector::ParseCgroupPath(below) == names);
  }
  return 0;
}
