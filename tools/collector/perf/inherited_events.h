// Which threads of a process have an event, while the process creates others.
#ifndef TOOLS_COLLECTOR_PERF_INHERITED_EVENTS_H_
#define TOOLS_COLLECTOR_PERF_INHERITED_EVENTS_H_

#include <sys/types.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace collector {

// An event that is opened for each thread of a process, to be inherited by those that they create,
// is missing in a thread whose creator did not have it yet, and would be there twice in one whose
// creator had. The kernel has no way to ask for it. It says when a thread was created, after the
// creator's events have been copied, and by whom: that and the times at which the event was opened
// tell it of nearly every thread; of the others, that they are unclear.
class InheritedEvents {
 public:
  // The event was opened for the thread between these times, of the session's clock.
  void Opened(pid_t tid, std::uint64_t before, std::uint64_t after);
  // `creator` has created `tid`; the record of it has this time. The same may be said again.
  void Created(pid_t tid, pid_t creator, std::uint64_t time);

  enum class State {
    kHas,     // it was opened for the thread, or inherited
    kLacks,   // neither
    kUnclear  // the creation was at the time of the opening, or no record of it is there yet
  };
  // To be asked of a thread that was not there before the event was opened for the first one.
  State Of(pid_t tid) const;

 private:
  struct Span {
    std::uint64_t before;
    std::uint64_t after;
  };
  struct Creation {
    pid_t creator;
    std::uint64_t time;
  };
  std::unordered_map<pid_t, Span> opened_;
  std::unordered_map<pid_t, Creation> created_;
  // When each creator made threads: those have it for certain that it made after another one that
  // it made after the event was opened for it.
  std::unordered_map<pid_t, std::vector<std::uint64_t>> creations_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_INHERITED_EVENTS_H_
