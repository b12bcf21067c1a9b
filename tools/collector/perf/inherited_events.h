// Determines which threads of a process have a perf event while the process creates threads.
#ifndef TOOLS_COLLECTOR_PERF_INHERITED_EVENTS_H_
#define TOOLS_COLLECTOR_PERF_INHERITED_EVENTS_H_

#include <sys/types.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace collector {

// Determines whether a thread has an inherited perf event.
//
// A perf event is opened for each thread of a process. Threads that these threads create inherit
// it. A thread lacks the event if its creator did not have it yet. If its creator had it, opening
// the event for the thread would duplicate it. The kernel cannot report whether a thread has it.
// It does record which thread created a thread, with a time at which the new thread has already
// inherited the creator's events. These times and the times at which the event was opened determine
// the state of nearly every thread; the other threads are reported as unclear.
class InheritedEvents {
 public:
  // Records that the event was opened for the thread between the times `before` and `after`, in ns
  // of the session clock.
  void Opened(pid_t tid, std::uint64_t before, std::uint64_t after);
  // Records that `creator` created `tid`; `time` is the time of the record. May be called again for
  // the same creation.
  void Created(pid_t tid, pid_t creator, std::uint64_t time);

  enum class State {
    kHas,     // opened for the thread, or inherited
    kLacks,   // neither opened nor inherited
    kUnclear  // perhaps created before the event was opened, or without a record so far
  };
  // Returns the state of a thread. If the event was not opened for the thread, `tid` must be a
  // thread that was created after the event was first opened.
  State Find(pid_t tid) const;

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
  // Times at which each thread created other threads. A thread certainly has the event if three
  // steps of its creator had this order: the event was opened for the creator, the creator created
  // another thread, and it created this thread.
  std::unordered_map<pid_t, std::vector<std::uint64_t>> creations_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_INHERITED_EVENTS_H_
