// What the formats that show events on a timeline have in common: names of processes and threads
// that come where they change, and slices that activities begin and end.
#ifndef TOOLS_NETTRACE_EXPORT_TIMELINE_H_
#define TOOLS_NETTRACE_EXPORT_TIMELINE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "nettrace/reader.h"

namespace tools::exporting {

// So many names, and so many open slices, are remembered. Beyond it all are forgotten: names come
// again then, and what ends a slice has its own name.
inline constexpr std::size_t kMaxRemembered = 65536;

using Ids = std::pair<std::uint64_t, std::uint64_t>;  // of process and thread; 0: not known

inline Ids IdsOf(const nettrace::ThreadInfo& thread) {
  return {thread.process_id.value_or(0), thread.thread_id.value_or(0)};
}

// The last names of processes, whose thread is 0 here, and threads.
class KnownNames {
 public:
  // Whether the last name was another one; `name` is the last one then. Never for an empty one.
  bool Changes(const Ids& ids, std::string_view name);

 private:
  absl::flat_hash_map<Ids, std::string> names_;
};

// An event with an activity id and the opcode start begins a slice of that activity, and one with
// the opcode stop ends the one that was begun last.
bool BeginsSlice(const nettrace::Event& event);
bool EndsSlice(const nettrace::Event& event);

class OpenSlices {
 public:
  struct Slice {
    std::string name;
    Ids ids;
    absl::Time begin;
  };

  // To be called with each event that begins or ends a slice. Returns the slice's name, by which
  // readers match both: for an end without a beginning the event's own.
  std::string OnEvent(const nettrace::Event& event, absl::Time time);
  // The slice of this activity that was begun last and is open; null if there is none. Valid until
  // the next OnEvent.
  const Slice* Innermost(const nettrace::Guid& activity) const;

 private:
  absl::flat_hash_map<nettrace::Guid, std::vector<Slice>> open_;
  std::size_t count_ = 0;
};

}  // namespace tools::exporting

#endif  // TOOLS_NETTRACE_EXPORT_TIMELINE_H_
