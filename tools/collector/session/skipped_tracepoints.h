// Holds the tracepoints that patterns select but that cannot be recorded. Each is reported once,
// and tried again from time to time, because a new tracepoint may get its name. At most about 100
// tracepoints are tried again per second.
#ifndef TOOLS_COLLECTOR_SESSION_SKIPPED_TRACEPOINTS_H_
#define TOOLS_COLLECTOR_SESSION_SKIPPED_TRACEPOINTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace collector {

// A list of tracepoints that are left out of a recording. Users see them as `leftOut`. Not
// thread-safe.
class SkippedTracepoints {
 public:
  // Maximum number of names, and of reasons, that are stored. Later tracepoints are only counted.
  static constexpr std::size_t kMaxNames = 1024;
  static constexpr std::size_t kMaxReasons = 20;
  // Minimum time until a tracepoint is tried again. The time is longer if there are many
  // tracepoints, so that at most about 100 are tried a second.
  static constexpr std::uint64_t kTryAgain = 1'000'000'000;  // ns

  // Returns whether recording `name` ("system:event") should be tried: it is not skipped, or its
  // next try is due. `now` is in ns of a monotonic clock.
  bool IsDue(std::string_view name, std::uint64_t now) const;
  // Adds a tracepoint that cannot be recorded. Returns false if it had been added before.
  bool Add(const std::string& name, const std::string& reason, std::uint64_t now);
  // Forgets the name, so that Add adds it again.
  void Forget(std::string_view name);
  // Marks the tracepoint as recorded. Its name remains in names().
  void Remove(std::string_view name);

  // Returns a copy with the count, names and reasons only. It is small and fits a summary.
  SkippedTracepoints CopyNamed() const;

  // Number of tracepoints that have been skipped, and the first of their names and reasons, in the
  // order of Add.
  std::size_t count() const { return count_; }
  const std::vector<std::string>& names() const { return names_; }
  const std::vector<std::string>& reasons() const { return reasons_; }

 private:
  // Maximum number of entries; more than tracefs can hold at a time.
  static constexpr std::size_t kMaxEntries = 1 << 17;

  // Time in ns at which each skipped tracepoint is tried next. The key is a hash of the name,
  // because names may be long; other processes cannot predict the hash. The time 0 marks a
  // tracepoint that was skipped and is recorded now. Such a tracepoint is always due.
  absl::flat_hash_map<std::size_t, std::uint64_t> due_;
  std::size_t count_ = 0;
  std::vector<std::string> names_;
  std::vector<std::string> reasons_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_SKIPPED_TRACEPOINTS_H_
