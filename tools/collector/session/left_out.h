// The tracepoints that patterns select and that cannot be recorded: each is named once and tried
// again now and then, as another one may have its name by then: at the price of few of them a
// second, however many there are.
#ifndef TOOLS_COLLECTOR_SESSION_LEFT_OUT_H_
#define TOOLS_COLLECTOR_SESSION_LEFT_OUT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace collector {

// Not thread-safe.
class LeftOut {
 public:
  // The first ones, and the reasons of the very first.
  static constexpr std::size_t kMaxNames = 1024;
  static constexpr std::size_t kMaxReasons = 20;
  // Each is due for another try after this time, or later where there are many: no more than 100
  // are in a second.
  static constexpr std::uint64_t kTryAgain = 1'000'000'000;  // ns

  // Whether `name` ("system:event") is to be tried: it is not left out, or it is due. `now`: ns of
  // a clock that does not go back.
  bool IsDue(std::string_view name, std::uint64_t now) const;
  // Leaves it out. False if it has been named before.
  bool Add(const std::string& name, const std::string& reason, std::uint64_t now);
  // It is recorded by now. Its name stays among those that have been left out.
  void Remove(std::string_view name);

  // What it says of those, without what Add and IsDue need: small, for a summary.
  LeftOut Named() const;

  // Those that have been left out, in the order in which they were: their number, and the first.
  std::size_t count() const { return count_; }
  const std::vector<std::string>& names() const { return names_; }
  const std::vector<std::string>& reasons() const { return reasons_; }

 private:
  // More than tracefs can have at a time.
  static constexpr std::size_t kMaxEntries = 1 << 17;

  // When each is due, by a hash of its name, which may be long. Nobody outside knows the hash.
  // Those that are recorded by now are due at all times.
  absl::flat_hash_map<std::size_t, std::uint64_t> due_;
  std::size_t count_ = 0;
  std::vector<std::string> names_;
  std::vector<std::string> reasons_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_LEFT_OUT_H_
