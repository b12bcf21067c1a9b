// Keys of thread rows that the collector writes, and programs read. Keys with empty values are left
// out. The keys of the host are in include/nettrace/format.h.
#ifndef TOOLS_TRACE_THREAD_KEYS_H_
#define TOOLS_TRACE_THREAD_KEYS_H_

namespace trace {

inline constexpr char kExecutableKey[] = "Executable";  // path, as its process sees it
inline constexpr char kCgroupKey[] = "Cgroup";          // path in the cgroup v2 hierarchy
// The names in that path: see tools/collector/identity/cgroup_path.h.
inline constexpr char kUnitKey[] = "Unit";
inline constexpr char kUserUnitKey[] = "UserUnit";
inline constexpr char kContainerKey[] = "Container";
// The way by which the thread's events came, if not from the kernel: kRingTransport. The thread id
// is then a claim of its process.
inline constexpr char kTransportKey[] = "Transport";
inline constexpr char kRingTransport[] = "ring";

}  // namespace trace

#endif  // TOOLS_TRACE_THREAD_KEYS_H_
