// Matches the events that start and stop activities. An event with an activity id and the opcode
// start begins an activity. An event with the opcode stop ends the activity with the same id that
// began last.
#ifndef TOOLS_TRACE_ACTIVITY_MATCHER_H_
#define TOOLS_TRACE_ACTIVITY_MATCHER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "nettrace/reader.h"

namespace trace {

// Maximum number of open activities, which have begun and not ended. When this number would be
// exceeded, all open activities are forgotten.
inline constexpr std::size_t kMaxOpenActivities = 65536;

bool BeginsActivity(const nettrace::Event& event);
bool EndsActivity(const nettrace::Event& event);

// Holds the open activities. `Begin` is the type of the value that the caller stores when an
// activity begins, and gets back when the activity ends.
template <typename Begin>
class ActivityMatcher {
 public:
  // Adds the activity of `event`. BeginsActivity(event) must be true.
  void Add(const nettrace::Event& event, Begin begin) {
    if (open_ == kMaxOpenActivities) {
      forgotten_ += std::exchange(open_, 0);
      by_id_.clear();
    }
    by_id_[*event.labels->activity_id].push_back(std::move(begin));
    ++open_;
  }
  // Removes the activity that `event` ends, and returns the value that Add() stored for it. If no
  // such activity is open, counts `event` as unmatched and returns nullopt. EndsActivity(event)
  // must be true.
  std::optional<Begin> Take(const nettrace::Event& event) {
    const auto begins = by_id_.find(*event.labels->activity_id);
    if (begins == by_id_.end()) {
      ++unmatched_;
      return std::nullopt;
    }
    std::optional<Begin> latest = std::move(begins->second.back());
    begins->second.pop_back();
    if (begins->second.empty()) by_id_.erase(begins);
    --open_;
    return latest;
  }
  // Removes all open activities and returns their values, in no particular order.
  std::vector<Begin> TakeAll() {
    std::vector<Begin> all;
    all.reserve(open_);
    for (auto& [id, begins] : by_id_) {
      for (Begin& begin : begins) all.push_back(std::move(begin));
    }
    by_id_.clear();
    open_ = 0;
    return all;
  }
  // Returns the value that Add() stored last for the activity, or null if the activity is not open.
  // The result is valid until the next call of Add(), Take() or TakeAll().
  Begin* Find(const nettrace::Guid& activity) {
    const auto begins = by_id_.find(activity);
    return begins == by_id_.end() ? nullptr : &begins->second.back();
  }
  const Begin* Find(const nettrace::Guid& activity) const {
    const auto begins = by_id_.find(activity);
    return begins == by_id_.end() ? nullptr : &begins->second.back();
  }

  std::uint64_t open() const { return open_; }
  std::uint64_t forgotten() const { return forgotten_; }  // begins that were forgotten
  std::uint64_t unmatched() const { return unmatched_; }  // ends without a begin

 private:
  absl::flat_hash_map<nettrace::Guid, std::vector<Begin>> by_id_;
  std::uint64_t open_ = 0;
  std::uint64_t forgotten_ = 0;
  std::uint64_t unmatched_ = 0;
};

}  // namespace trace

#endif  // TOOLS_TRACE_ACTIVITY_MATCHER_H_
