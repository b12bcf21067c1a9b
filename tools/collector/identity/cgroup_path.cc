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

// Removes and returns the next component of the path; "" at the end.
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

// Returns whether systemd accepts the name as that of a unit with processes.
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

// Removes the '_' that systemd puts before a name that could equal the name of a file of the
// kernel, such as "cgroup.procs".
std::string_view WithoutEscape(std::string_view component) {
  if (component.starts_with('_')) component.remove_prefix(1);
  return component;
}

// Returns the first unit that is not a slice, if only slices precede it; otherwise "". Removes the
// components that it has read from `*path`.
std::string_view TakeUnit(std::string_view* path) {
  for (;;) {
    const std::string_view name = WithoutEscape(TakeComponent(path));
    if (!IsUnit(name)) return "";
    if (!name.ends_with(kSlice)) return name;
  }
}

// Returns the text between `before` and `after`; "" if the text does not have this form.
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

// Returns the id in the name of a container engine's cgroup: alone ("/docker/ID"), or after the
// engine's name ("docker-ID.scope", "cri-containerd-ID.scope",
// "kubepods-….slice:cri-containerd:ID").
std::string_view EngineId(std::string_view component) {
  constexpr std::size_t kIdSize = 64;
  if (component.ends_with(kScope)) component.remove_suffix(kScope.size());
  if (component.size() < kIdSize) return "";
  const std::string_view id = component.substr(component.size() - kIdSize);
  const std::string_view before = component.substr(0, component.size() - kIdSize);
  if (!std::all_of(id.begin(), id.end(), [](char c) { return HexValue(c) >= 0; })) return "";
  // This is the cgroup of conmon, which monitors a container for podman and CRI-O and is not in the
  // container.
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
