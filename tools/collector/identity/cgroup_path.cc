#include "tools/collector/identity/cgroup_path.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/strings/ascii.h"

namespace collector {
namespace {

constexpr std::string_view kSlice = ".slice";
constexpr std::string_view kScope = ".scope";
constexpr std::string_view kService = ".service";

// Removes the next component from `*path` and returns it. Returns "" if no component is left.
std::string_view TakeComponent(std::string_view* path) {
  path->remove_prefix(std::min(path->find_first_not_of('/'), path->size()));
  const std::string_view component = path->substr(0, path->find('/'));
  path->remove_prefix(component.size());
  return component;
}

bool IsUnitCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         std::string_view(":-_.\\@").find(c) != std::string_view::npos;
}

// Returns whether `name` is a valid name of a systemd unit that can have a cgroup.
bool IsUnit(std::string_view name) {
  constexpr std::array<std::string_view, 6> kKinds = {kService,  kScope,   kSlice,
                                                      ".socket", ".mount", ".swap"};
  constexpr std::size_t kMaxUnit = 255;
  return name.size() <= kMaxUnit && !name.starts_with('@') &&
         std::all_of(name.begin(), name.end(), IsUnitCharacter) &&
         std::any_of(kKinds.begin(), kKinds.end(), [name](std::string_view kind) {
           return name.size() > kind.size() && name.ends_with(kind);
         });
}

// Returns the component without a leading '_'. systemd adds it if the name could equal that of a
// file that the kernel creates in a cgroup, such as "cgroup.procs".
std::string_view WithoutEscape(std::string_view component) {
  if (component.starts_with('_')) component.remove_prefix(1);
  return component;
}

// Removes the slices at the beginning of `*path` and the component after them. Returns this
// component if it is a unit, else "".
std::string_view TakeUnit(std::string_view* path) {
  for (;;) {
    const std::string_view name = WithoutEscape(TakeComponent(path));
    if (!IsUnit(name)) return "";
    if (!name.ends_with(kSlice)) return name;
  }
}

// Returns the part of `text` between the prefix `before` and the suffix `after`. Returns "" if
// `text` lacks one of them, or if nothing is between them.
std::string_view Between(std::string_view text, std::string_view before, std::string_view after) {
  if (text.size() <= before.size() + after.size() || !text.starts_with(before) ||
      !text.ends_with(after)) {
    return "";
  }
  return text.substr(before.size(), text.size() - before.size() - after.size());
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Decodes the name of a machine, in which systemd writes a '-' as "\x2d".
std::string Unescape(std::string_view text) {
  constexpr std::size_t kEscapeSize = 4;
  std::string name;
  while (!text.empty()) {
    if (text.size() >= kEscapeSize && text.starts_with("\\x") && HexValue(text[2]) >= 0 &&
        HexValue(text[3]) >= 0) {
      name.push_back(static_cast<char>(HexValue(text[2]) * 16 + HexValue(text[3])));
      text.remove_prefix(kEscapeSize);
    } else {
      name.push_back(text.front());
      text.remove_prefix(1);
    }
  }
  return name;
}

// Returns the container id at the end of the name of a cgroup that a container engine created, such
// as "docker-ID.scope" or "kubepods-….slice:cri-containerd:ID". The name may also be the id alone,
// as in "/docker/ID". Returns "" if there is no id.
std::string_view EngineId(std::string_view component) {
  constexpr std::size_t kIdSize = 64;
  if (component.ends_with(kScope)) component.remove_suffix(kScope.size());
  if (component.size() < kIdSize) return "";
  const std::string_view id = component.substr(component.size() - kIdSize);
  const std::string_view before = component.substr(0, component.size() - kIdSize);
  if (!std::all_of(id.begin(), id.end(), [](char c) { return HexValue(c) >= 0; })) return "";
  // "conmon-ID.scope" is the cgroup of conmon, which monitors a container for podman and CRI-O.
  // conmon itself is not in the container.
  if (before.ends_with("conmon-")) return "";
  return before.empty() || before.ends_with('-') || before.ends_with(':') ? id : "";
}

std::string ContainerOf(std::string_view component, std::string_view parent) {
  if (const std::string_view id = EngineId(component); !id.empty()) return std::string(id);
  if (const auto machine = Between(component, "systemd-nspawn@", kService); !machine.empty())
    return Unescape(machine);
  if (parent == "machine.slice") return Unescape(Between(component, "machine-", kScope));
  if (parent == "lxc" || parent == "lxc.payload") return std::string(component);
  return std::string(Between(component, "lxc.payload.", ""));
}

}  // namespace

CgroupNames ParseCgroupPath(std::string_view path) {
  CgroupNames names;
  std::string_view rest = path;
  const std::string_view unit = TakeUnit(&rest);
  names.unit = std::string(unit);
  if (unit.starts_with("user@") && unit.ends_with(kService)) {
    names.user_unit = std::string(TakeUnit(&rest));
  }
  rest = path;
  std::string_view parent;
  for (std::string_view component; !(component = TakeComponent(&rest)).empty();
       parent = component) {
    names.container = ContainerOf(component, parent);
    if (!names.container.empty()) break;
  }
  return names;
}

}  // namespace collector
