#include "tools/trace/hosts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "nettrace/format.h"
#include "tools/trace/key_values.h"

namespace trace {

std::string_view HostNameOf(const nettrace::ThreadInfo& thread) {
  const std::string_view name = FindValue(thread.key_values, nettrace::kKeyHostName);
  return name.empty() ? FindValue(thread.key_values, nettrace::kKeyBootId) : name;
}

std::size_t Hosts::Find(const nettrace::ThreadInfo& thread) const {
  if (thread.key_values.empty()) return kNone;
  const std::string_view name = FindValue(thread.key_values, nettrace::kKeyHostName);
  const std::string_view boot = FindValue(thread.key_values, nettrace::kKeyBootId);
  if (name.empty() && boot.empty()) return kNone;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].name == name && hosts_[i].boot == boot) return i + 1;
  }
  return kOthers;
}

std::size_t Hosts::Add(const nettrace::ThreadInfo& thread) {
  const std::size_t known = Find(thread);
  if (known != kOthers || hosts_.size() == kMax) return known;
  hosts_.push_back({std::string(FindValue(thread.key_values, nettrace::kKeyHostName)),
                    std::string(FindValue(thread.key_values, nettrace::kKeyBootId))});
  return hosts_.size();
}

std::string Hosts::TextOf(std::size_t host) const {
  constexpr std::size_t kBootDigits = 8;  // the first digits distinguish the boots of one host
  if (host == kNone) return "";
  if (host == kOthers) return "another host";
  const auto& [name, boot] = hosts_[host - 1];
  const auto same_name =
      std::count_if(hosts_.begin(), hosts_.end(),
                    [&name = name](const Host& other) { return other.name == name; });
  if (same_name == 1 && !name.empty()) return name;
  const std::string boot_text =
      boot.empty() ? "unknown boot" : absl::StrCat("boot ", boot.substr(0, kBootDigits));
  return name.empty() ? boot_text : absl::StrCat(name, " (", boot_text, ")");
}

}  // namespace trace
