// Tracks the creation, programs, names and ends of processes. Makes the process events, from which
// readers of a trace take the name, start and end of processes.
//
// Input, from the TaskTracker: the start and end of each thread, and the executable of each
// process. Output: process events, until they are taken for the traces; and the processes that
// exist when a trace begins.
//
// The name of a process is the path of its executable. If it has no executable, like a kernel
// thread, or if the path is not known, it has the name of its main thread. A new process has its
// parent's name until its path is known. A process ends with its last thread; the main thread may
// have ended earlier.
//
// A process may execute another program after the event of its start has been taken. The process
// events then end the process at the time of the execution, and create it again. Without this end,
// readers, which show one name and one start for each process, would show the new program for the
// time before the execution, or a start that is too late.
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
    kExists,   // existed before this time, or has a new name from this time on
    kCreated,  // created, or executed a program; an earlier process may have had its pid
    kExited,   // ended, or is about to execute a program
  };
  Kind kind = Kind::kExists;
  std::uint32_t pid = 0;
  std::uint32_t namespace_pid = 0;  // pid in its own pid namespace, or `pid` if not known
  std::uint64_t timestamp = 0;      // session clock, ns
  std::string name;                 // for kExited, the last name
  std::uint64_t number = 0;         // from 1, in the order of detection
};

// A table of the machine's processes, and their events. Not thread-safe.
class ProcessTracker {
 public:
  struct Description {
    std::string name;
    bool has_path = false;  // `name` is the executable's path, else the main thread's name
    std::uint32_t namespace_pid = 0;
  };
  // Reads the description of a process from /proc. `main_thread` is the name of its main thread.
  static Description ReadProc(std::uint32_t pid, std::string_view main_thread);

  // Adds a process that exists at `timestamp`. If the process is known, only updates its name, and
  // only if the description has a path. `loaded` is the time at which /proc was read: a FORK record
  // with an earlier timestamp is the creation of this process, and not the creation of a later
  // process with the same pid.
  void Exists(std::uint32_t pid, Description description, std::uint64_t timestamp,
              std::uint64_t loaded);
  // Adds a new process, as a copy of its parent. If Exists has already added the process from
  // /proc, only corrects the kind and time of its event. Ignores an unknown process that was
  // created before the recording began.
  void Created(std::uint32_t pid, std::uint32_t parent, std::string_view main_thread,
               std::uint64_t timestamp);
  // Records that the process executes a program, which ends its other threads; returns their tids.
  // Adds a process that is not known: the record of its creation was lost, or the kernel did not
  // write one because it hides the parent. Does not add it if `timestamp` is before the recording.
  //
  // MapsCode reports the path of the executable later. Until then, a process whose name is a path
  // keeps this name. Otherwise, an interval that ends between Executes and MapsCode would show a
  // temporary name.
  std::vector<std::uint32_t> Executes(std::uint32_t pid, std::string_view main_thread,
                                      std::uint64_t timestamp);
  // Records that the process maps a file as code. Returns true if the file is the executable, which
  // is the first file mapped after Executes; ignores other files.
  bool MapsCode(std::uint32_t pid, std::string_view path);
  // Records a new name of the main thread.
  void Renamed(std::uint32_t pid, std::string_view main_thread, std::uint64_t timestamp);

  bool IsKnown(std::uint32_t pid) const { return processes_.contains(pid); }
  // Adds a thread. Does nothing if the process is not known.
  void AddThread(std::uint32_t pid, std::uint32_t tid);
  // Removes a thread that has ended. Returns true if it was the last thread of the process, which
  // then ends, too.
  bool EndThread(std::uint32_t pid, std::uint32_t tid, std::uint64_t timestamp);
  // Ends all threads except `alive`, and the processes that lose their last thread. Returns the
  // tids of the ended threads.
  std::vector<std::uint32_t> EndAllBut(const absl::flat_hash_set<std::uint32_t>& alive,
                                       std::uint64_t timestamp);

  // Removes and returns the events up to `limit`, oldest first. While the first event of a process
  // waits, later information, such as the program that the process executes, changes this event.
  // Once the event is taken, later information needs a second event, and readers take the time of
  // the second event as the start of the process.
  std::vector<ProcessEvent> Take(std::uint64_t limit);
  // Returns an event for each process that exists, for a trace that begins at `timestamp`. The
  // events include everything that was recorded before the call, so the trace must take only later
  // events, which have higher numbers. After this call, the events that wait for Take no longer
  // change.
  std::vector<ProcessEvent> Existing(std::uint64_t timestamp);
  // Returns an event at `timestamp` for each process that exists according to the events that have
  // been taken. Used for a trace that has received all these events and must write the processes
  // again.
  std::vector<ProcessEvent> Alive(std::uint64_t timestamp) const;
  // Number of events that wait to be taken.
  std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Program {
    std::string name;             // name of the main thread
    std::uint64_t timestamp = 0;  // start of the program: session clock, ns
  };
  struct Process {
    Description description;
    // The program that the last call of Executes reported; no value once its path is known.
    std::optional<Program> executing;
    std::uint64_t loaded = 0;                 // ns; `loaded` of the last call of Exists
    std::uint64_t beginning = 0;              // number of its last kExists or kCreated event
    absl::flat_hash_set<std::uint32_t> tids;  // threads that have not ended
  };

  void Add(ProcessEvent::Kind kind, std::uint32_t pid, const Description& description,
           std::uint64_t timestamp);
  void Begin(ProcessEvent::Kind kind, std::uint32_t pid, Process* process, std::uint64_t timestamp);
  void End(std::uint32_t pid, std::uint64_t timestamp);
  // Sets the name of a process that has executed another program at `timestamp`. If the first event
  // of the process has been taken, adds events that end the process and create it again.
  void SetProgram(std::uint32_t pid, Process* process, std::string_view name,
                  std::uint64_t timestamp);
  void SetName(std::uint32_t pid, Process* process, std::string_view name, std::uint64_t timestamp);
  // Returns the last event that Begin made for the process. Returns null if the event has been
  // taken, or if a result of Existing includes it.
  ProcessEvent* WaitingBeginning(const Process& process);

  absl::flat_hash_map<std::uint32_t, Process> processes_;  // by pid
  std::vector<ProcessEvent> waiting_;  // events that have not been taken, sorted by number
  std::uint64_t last_number_ = 0;
  std::uint64_t last_existing_ = 0;  // last_number_ at the last Existing
  std::uint64_t first_existed_ = 0;  // timestamp of the first call of Exists
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_IDENTITY_PROCESS_TRACKER_H_
