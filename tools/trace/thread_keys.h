// Keys of thread rows that the collector writes, and programs read. Keys with empty values are left
// out. The keys of the host are in include/nettrace/format.h.
#ifndef TOOLS_TRACE_THREAD_KEYS_H_
#define TOOLS_TRACE_THREAD_KEYS_H_

namespace trace {

inline constexpr char kExecutableKey[] = "Executable";  // path, as its process sees it
inline constexpr char kCgroupKey[] = "Cgroup";          // path in the cgroup v2 hierarchy
// The names of unit and container in the path of kCgroupKey: see
// tools/collector/identity/cgroup_path.h.
inline constexpr char kUnitKey[] = "Unit";
inline constexpr char kUserUnitKey[] = "UserUnit";
inline constexpr char kContainerKey[] = "Container";
// Present if the thread's events did not come from the kernel, but through a ring in user space
// (kRingTransport) or in the stream of a .NET process (kEventPipeTransport). The process then chose
// the thread id itself, so the id may be wrong. With kJournalTransport, the events are entries of
// the journal, which states the process, but not the thread.
inline constexpr char kTransportKey[] = "Transport";
inline constexpr char kRingTransport[] = "ring";
inline constexpr char kEventPipeTransport[] = "eventpipe";
inline constexpr char kJournalTransport[] = "journal";

}  // namespace trace

#endif  // TOOLS_TRACE_THREAD_KEYS_H_
