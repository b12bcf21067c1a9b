// Selects the largest of a session's losses. A session may have a loss for each CPU and tracepoint,
// which is more than users can read.
#ifndef TOOLS_CONTROL_LOSSES_H_
#define TOOLS_CONTROL_LOSSES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

#include "tools/control/service.h"

namespace control {

using LossTable = decltype(SessionStatus::losses);

struct Loss {
  std::uint32_t cpu = 0;
  std::string_view tracepoint;  // "" if unknown
  std::uint64_t events = 0;
};

// Returns the `count` largest losses, in descending order. Their string_views point into `losses`.
inline std::vector<Loss> LargestLosses(const LossTable& losses, std::size_t count) {
  std::vector<Loss> all;
  all.reserve(losses.size());
  for (const auto& [where, events] : losses) all.push_back({where.first, where.second, events});
  const auto is_larger = [](const Loss& a, const Loss& b) {
    return std::tie(b.events, a.cpu, a.tracepoint) < std::tie(a.events, b.cpu, b.tracepoint);
  };
  const std::size_t kept = std::min(count, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept), all.end(),
                    is_larger);
  all.resize(kept);
  return all;
}

}  // namespace control

#endif  // TOOLS_CONTROL_LOSSES_H_
