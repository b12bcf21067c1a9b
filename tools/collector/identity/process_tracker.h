// Which processes there are, and what happened to each: what a trace says of them, so that readers
// have their names, their beginning and their end.
//
// In: from the TaskTracker, the threads of each process as they begin and end, and its executable.
// Out: process events, until they are taken for the traces; and for a trace that begins later,
// which processes there are then.
//
// A process goes by the path of its executable; by the name of its main thread where it has none,
// as the kernel's own threads, or where the path is not known; by its parent's until the path of
// what it runs is known. It ends with its last thread: the main thread may have ended before.
#ifndef TOOLS_COLLECTOR_IDENTITY_PROCESS_TRACKER_H_
#define TOOLS_COLLECTOR_IDENTITY_PROCESS_TRACKER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace collector {

struct ProcessEvent {
  enum class Kind : std::uint8_t {
    kExists,   // it was there before, or has another name from here on
    kCreated,  // it begins here, also where an earlier process had its pid
    kExited,
  };
  Kind kind = Kind::kExists;
  std::uint32_t pid = 0;
  std::uint32_t namespace_pid = 0;  // its pid in its own pid namespace, or `pid` if not known
  std::uint64_t timestamp = 0;      // session clock, ns
  std::string name;                 // of kExited: the last one it had
  std::uint64_t number = 0;         // from 1, in the order in which they became known
};

// Not thread-safe.
class ProcessTracker {
 public:
  struct Description {
    std::string name;
    bool has_path = false;  // the name is the executable's path, else the main thread's name
    std::uint32_t namespace_pid = 0;
  };
  // What /proc says of a process whose main thread is called `main_thread`.
  static Description ReadProc(std::uint32_t pid, std::string_view main_thread);

  // The process is there at `timestamp`. Where it is known already, only a path that is not its
  // name changes something. FORK records of it from before `loaded` describe its beginning.
  void Exists(std::uint32_t pid, Description description, std::uint64_t timestamp,
              std::uint64_t loaded);
  // The process begins, as a copy of its parent.
  void Created(std::uint32_t pid, std::uint32_t parent, std::string_view main_thread,
               std::uint64_t timestamp);
  // It runs a program: its other threads are gone, and their tids are returned. The path of the
  // executable follows; where it had one, it goes by that until then, since the end of an interval
  // may lie between the two, and would show a name that was never more than on its way.
  std::vector<std::uint32_t> Executes(std::uint32_t pid, std::string_view main_thread,
                                      std::uint64_t timestamp);
  // It maps a file as code. The first one after Executes is its executable; then it returns true.
  // Others are ignored.
  bool MapsCode(std::uint32_t pid, std::string_view path, std::uint64_t timestamp);
  // Its main thread is renamed.
  void Renamed(std::uint32_t pid, std::string_view main_thread, std::uint64_t timestamp);

  bool IsKnown(std::uint32_t pid) const { return processes_.contains(pid); }
  // A thread begins. Ignored if the process is not known.
  void AddThread(std::uint32_t pid, std::uint32_t tid);
  // A thread ends. Returns true if the process ends with it.
  bool EndThread(std::uint32_t pid, std::uint32_t tid, std::uint64_t timestamp);
  // Ends all threads but those of `alive`, and the processes that have none left. Returns the tids.
  std::vector<std::uint32_t> EndAllBut(const absl::flat_hash_set<std::uint32_t>& alive,
                                       std::uint64_t timestamp);

  // Removes and returns the events up to `limit`, oldest first. They are kept until then because
  // what becomes known of a process soon after its beginning, above all that it runs another
  // program, changes the event of its beginning: readers take the last name that a process has for
  // all of its life, but take the second event's time for its beginning, too.
  std::vector<ProcessEvent> Take(std::uint64_t limit);
  // For a trace that begins at `timestamp`: an event for each process that is there. What happened
  // before is in these, so that the trace takes only events with a higher number than all of them;
  // none of the events that wait changes any more.
  std::vector<ProcessEvent> Existing(std::uint64_t timestamp);
  // For a trace that has had all events that were taken, and tells anew of those processes: an
  // event at `timestamp` for each that they left.
  std::vector<ProcessEvent> Alive(std::uint64_t timestamp) const;
  // Events that wait to be taken.
  std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Process {
    Description description;
    // What the main thread is called since Executes; none once the path is known.
    std::optional<std::string> executing;
    std::uint64_t loaded = 0;                 // as given to Exists
    std::uint64_t beginning = 0;              // number of its last kExists or kCreated event
    absl::flat_hash_set<std::uint32_t> tids;  // of its threads that have not ended
  };

  void Begin(ProcessEvent::Kind kind, std::uint32_t pid, Process* process, std::uint64_t timestamp);
  void End(std::uint32_t pid, std::uint64_t timestamp);
  void SetName(std::uint32_t pid, Process* process, std::string_view name, std::uint64_t timestamp);
  // The event that Begin made last for the process; null if it has been taken, or Existing has told
  // of it.
  ProcessEvent* WaitingBeginning(const Process& process);

  absl::flat_hash_map<std::uint32_t, Process> processes_;  // by pid
  std::vector<ProcessEvent> waiting_;                      // by number
  std::uint64_t last_number_ = 0;
  std::uint64_t last_told_ = 0;      // last_number_ when Existing ran last
  std::uint64_t first_existed_ = 0;  // timestamp of the first Exists
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_IDENTITY_PROCESS_TRACKER_H_
