// Shared parts of the formats that show events on a timeline: changes of the names of processes and
// threads, and slices that activities begin and end.
#ifndef TOOLS_TRACE_TIMELINE_H_
#define TOOLS_TRACE_TIMELINE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "nettrace/reader.h"

namespace trace {

// Maximum number of names, and of open slices, that are remembered. When a limit is reached, all
// are forgotten: names are then written again, and the end of a forgotten slice keeps the name of
// its event.
inline constexpr std::size_t kMaxRemembered = 65536;

using Ids = std::pair<std::uint64_t, std::uint64_t>;  // process and thread; 0 if unknown

inline Ids IdsOf(const nettrace::ThreadInfo& thread) {
  return {thread.process_id.value_or(0), thread.thread_id.value_or(0)};
}

// Remembers the last names of threads, and of processes as thread 0.
class KnownNames {
 public:
  // Remembers `name` and returns whether the last name differed. Ignores an empty name and returns
  // false.
  bool Changes(const Ids& ids, std::string_view name);

 private:
  absl::flat_hash_map<Ids, std::string> names_;
};

// An event with an activity id and the opcode start begins a slice of that activity. One with the
// opcode stop ends the slice that was begun last.
bool BeginsSlice(const nettrace::Event& event);
bool EndsSlice(const nettrace::Event& event);

class OpenSlices {
 public:
  struct Slice {
    std::string name;
    Ids ids;
    absl::Time begin;
  };

  // Must be called with each event that begins or ends a slice. Returns the name of the slice, by
  // which readers match both events. For an end without a beginning, returns the name of the event.
  std::string OnEvent(const nettrace::Event& event, absl::Time time);
  // Returns the open slice of this activity that was begun last, or null if there is none. Valid
  // until the next OnEvent.
  const Slice* Innermost(const nettrace::Guid& activity) const;

 private:
  absl::flat_hash_map<nettrace::Guid, std::vector<Slice>> open_;
  std::size_t count_ = 0;
};

}  // namespace trace

#endif  // TOOLS_TRACE_TIMELINE_H_
