// Code that is shared by formats with a timeline: ids of the processes and threads of several
// hosts, changes of their names, and slices that activities begin and end.
#ifndef TOOLS_TRACE_TIMELINE_H_
#define TOOLS_TRACE_TIMELINE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "nettrace/reader.h"
#include "tools/trace/activity_matcher.h"
#include "tools/trace/hosts.h"

namespace trace {

using Ids = std::pair<std::uint64_t, std::uint64_t>;  // ids of process and thread; 0 if unknown

inline Ids IdsOf(const nettrace::ThreadInfo& thread) {
  return {thread.process_id.value_or(0), thread.thread_id.value_or(0)};
}

// Gives the processes and threads of several hosts different ids. In formats with a timeline, a
// number identifies a process, and readers treat equal numbers as one process. Not thread-safe.
class HostIds {
 public:
  // Distance between the ids of two hosts. The ids that Linux assigns are below this number.
  static constexpr std::uint64_t kPerHost = std::uint64_t{1} << 22;

  // Returns the ids of the thread. Adds kPerHost to each id of a thread of the second host, twice
  // as much for the third host, and so on. Unknown ids remain 0. All hosts beyond Hosts::kMax share
  // one range of ids.
  Ids IdsOf(const nettrace::ThreadInfo& thread) {
    const Ids ids = trace::IdsOf(thread);
    if (thread.key_values.empty()) [[likely]]
      return ids;
    const std::size_t host = hosts_.Add(thread);
    const std::uint64_t more = host <= 1 ? 0 : (host - 1) * kPerHost;
    return {ids.first == 0 ? 0 : ids.first + more, ids.second == 0 ? 0 : ids.second + more};
  }
  // Returns the name to show for the thread's process: `process`, and the host if the file states
  // it.
  std::string NameOf(const nettrace::ThreadInfo& thread, std::string_view process) const;

 private:
  Hosts hosts_;
};

// Holds the last name of each thread, and of each process under the thread id 0.
class KnownNames {
 public:
  // Maximum number of names. When it is reached, all names are forgotten, and Changes() then
  // returns true for each of them once more.
  static constexpr std::size_t kMaxRemembered = 65536;

  // Stores `name` as the last name, and returns whether the previous name differed. Ignores an
  // empty name and returns false.
  bool Changes(const Ids& ids, std::string_view name);

 private:
  // An entry of names_ that was used recently. It is found without a search in a hash table.
  struct Recent {
    Ids ids;
    std::string name;  // empty if there is none
  };

  absl::flat_hash_map<Ids, std::string> names_;
  std::array<Recent, 64> recent_;
};

// Category of the durations of zero length that the ends of an arrow are attached to, because
// readers draw arrows only between durations. They are not events of the NetTrace file.
inline constexpr char kArrows[] = "NetTrace.Arrows";

// Keeps the activities that have started and not yet stopped (activity_matcher.h). Each activity is
// a slice of the timeline, and has the name of the event that began it.
class OpenSlices {
 public:
  // Readers match the begin and the end of a slice by its name and provider.
  struct Slice {
    std::string name;
    std::string provider;
    Ids ids;
    absl::Time begin;
  };

  // Opens the slice of an activity that `event` begins. `ids` are those of the event's thread.
  void Begin(const nettrace::Event& event, absl::Time time, const Ids& ids);
  // Closes the innermost slice of the activity that `event` ends, and returns it. Returns nullopt
  // if no slice of this activity is open.
  std::optional<Slice> End(const nettrace::Event& event) { return open_.Take(event); }
  // Returns the open slice of this activity that began last, or null if there is none. Valid until
  // the next call of Begin() or End().
  const Slice* Innermost(const nettrace::Guid& activity) const { return open_.Find(activity); }

 private:
  ActivityMatcher<Slice> open_;
};

}  // namespace trace

#endif  // TOOLS_TRACE_TIMELINE_H_
