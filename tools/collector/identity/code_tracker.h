// Tracks the code that processes have mapped, so that a trace can describe the addresses of stacks.
//
// Input: the code of all processes in /proc when the capture begins, and the records of mappings,
// of new processes, of programs that are executed and of processes that end. Output: the mapping
// that an address of a process belonged to at a time.
//
// Records are applied before the samples of the same time are read, so mappings that have been
// replaced are kept until all samples of their time have been read. The kernel does not report that
// a mapping was removed. A removed mapping therefore stays in the table until another mapping
// replaces it. This causes no errors, because no stack contains its addresses in the meantime.
#ifndef TOOLS_COLLECTOR_IDENTITY_CODE_TRACKER_H_
#define TOOLS_COLLECTOR_IDENTITY_CODE_TRACKER_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tools/collector/identity/build_id_query.h"
#include "tools/collector/identity/kernel_symbols.h"
#include "tools/collector/perf/perf_records.h"

namespace collector {

// A file, or other memory, that processes have mapped as code.
struct CodeFile {
  // Path in the mount namespace of the process, or a name such as "[vdso]". The suffix " (deleted)"
  // shows that the file had been removed when /proc was read, so another file may be at the path.
  std::string path;
  std::string build_id;  // bytes; empty: not known
};

struct CodeMapping {
  std::uint64_t first = 0;
  std::uint64_t last = 0;    // address of the last byte
  std::uint64_t offset = 0;  // position of the first address in the file, in bytes
  std::uint64_t from = 0;    // time of the mapping: session clock, ns
  // Id that no other mapping of any capture of the machine has. When a process is created as a copy
  // of another process, its mappings keep their ids.
  std::uint64_t id = 0;
  std::shared_ptr<const CodeFile> file;
};

// A copy of the mappings of a program that a process executes, including replaced mappings. The
// copy does not change, so threads may share it.
class CodeSnapshot {
 public:
  // Returns the mapping of an address at a time; null if there is none.
  const CodeMapping* Find(std::uint64_t address, std::uint64_t timestamp) const;

  // A mapping and the time until which it was valid: session clock, ns.
  struct Entry {
    CodeMapping mapping;
    std::uint64_t until = 0;
  };
  std::vector<Entry> now;   // sorted by address; without overlaps
  std::vector<Entry> past;  // replaced mappings
};

// A table of the mappings of all processes. Not thread-safe.
class CodeTracker {
 public:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  // Maximum estimated memory of all mappings, in bytes. Once it is reached, new mappings are
  // ignored until others are dropped.
  static constexpr std::size_t kMaxBytes = std::size_t{256} << 20;
  // Maximum number of mappings of a process at a time; further mappings are ignored.
  static constexpr std::size_t kMaxMappings = 16384;
  // Maximum number of replaced mappings that are kept for a program; further ones are not kept.
  // There is a limit because Find() searches all of them.
  static constexpr std::size_t kMaxPast = 256;

  explicit CodeTracker(KernelSymbols kernel_symbols);

  const KernelSymbols& kernel_symbols() const { return kernel_symbols_; }
  // Returns an id that no mapping of any capture of the machine has.
  std::uint64_t MakeId() { return next_id_++; }

  // Adds the mapped code of every process in /proc, valid from `timestamp` on. If `timestamp` is 0,
  // the code is valid at all earlier times, too.
  void LoadFromProc(std::uint64_t timestamp);
  // Returns the processes whose code LoadFromProc was not permitted to read when it ran last.
  const std::vector<std::uint32_t>& unreadable() const { return unreadable_; }
  // Records that `parent` created the process `pid`, which begins with the same mappings.
  void Created(std::uint32_t pid, std::uint32_t parent, std::uint64_t timestamp);
  // Records that the process executes a program, which removes all of its mappings.
  void Executes(std::uint32_t pid, std::uint64_t timestamp);
  void Maps(const MappingRecord& record, std::uint64_t timestamp);
  void Ended(std::uint32_t pid, std::uint64_t timestamp);
  // Drops the processes, programs and mappings that ended no later than `timestamp`. The caller
  // must have read all samples up to that time.
  void DropEnded(std::uint64_t timestamp);

  struct Found {
    const CodeMapping* mapping = nullptr;  // null: not known; valid until the next change
    // Time at which the process began to execute the program; if the process had ended, the time of
    // its end. In ns of the session clock; 0: not known.
    std::uint64_t program_from = 0;
    // The result is valid for times from `from` on and before `until`: session clock, ns.
    std::uint64_t from = 0;
    std::uint64_t until = kNever;
  };
  // Returns the mapping of an address of the process at a time.
  Found Find(std::uint32_t pid, std::uint64_t address, std::uint64_t timestamp) const;
  // Returns the mappings of the program that the process executes at a time; null: not known. The
  // copy is made once for each change of the mappings.
  std::shared_ptr<const CodeSnapshot> TakeSnapshot(std::uint32_t pid, std::uint64_t timestamp);
  // Returns a number that changes whenever the mappings of the process change; 0 if the process is
  // not known.
  std::uint64_t CountChanges(std::uint32_t pid) const;

 private:
  struct Past {
    CodeMapping mapping;
    std::uint64_t until;
  };
  struct Mappings {
    std::map<std::uint64_t, CodeMapping> now;      // by first address
    std::vector<Past> past;                        // replaced mappings
    std::shared_ptr<const CodeSnapshot> snapshot;  // a copy; null: none since the last change
  };
  // A program, and the time in which a process executes it. Several programs share one Mappings
  // object while their mappings are equal, for example after a fork.
  struct Program {
    std::uint64_t from = 0;
    std::uint64_t until = kNever;
    std::shared_ptr<Mappings> mappings;
  };
  struct Process {
    std::vector<Program> programs;  // oldest first
    std::uint64_t changes = 0;
  };

  // Prepares a change of the mappings of the process's current program, and returns them. If
  // another program shares them, copies them first.
  Mappings* Change(std::uint32_t pid, std::uint64_t timestamp);
  void Begin(std::uint32_t pid, std::uint64_t timestamp, std::shared_ptr<Mappings> mappings);
  // Begins a program without mappings if the process is not known or has ended.
  void BeginIfEnded(std::uint32_t pid, std::uint64_t timestamp);
  void Add(CodeMapping mapping, Mappings* mappings);
  // Moves the mappings that overlap `added` to the past mappings. Their parts outside the range of
  // `added` become new mappings.
  void MakeRoom(const CodeMapping& added, Mappings* mappings);
  // Returns whether a mapping of the address is valid at `timestamp`, and stores it in `found` if
  // it is. Also limits the times in `found` to those for which this result is valid.
  static bool UseIfValid(const CodeMapping& mapping, std::uint64_t until, std::uint64_t timestamp,
                         Found* found);
  void LoadProcess(std::uint32_t pid, std::uint64_t timestamp, BuildIdQuery* build_ids);
  std::shared_ptr<const CodeFile> FileOf(std::string_view path, std::string_view build_id);
  static std::size_t SizeOf(const CodeMapping& mapping);
  void CountBytes();

  KernelSymbols kernel_symbols_;
  std::uint64_t next_id_;
  std::uint64_t changes_ = 0;
  absl::flat_hash_map<std::uint32_t, Process> processes_;
  std::shared_ptr<const CodeFile> last_file_;  // the last result of FileOf
  std::size_t bytes_ = 0;                      // estimate, which CountBytes corrects
  std::vector<std::uint32_t> unreadable_;      // pids
  bool any_past_ = false;
};

// A line of /proc/PID/maps that describes code.
struct ProcMapping {
  std::uint64_t first = 0;
  std::uint64_t last = 0;  // address of the last byte
  std::uint64_t offset = 0;
  std::string_view path;  // without the suffix of a deleted file; "//anon" if there is none
  bool is_deleted = false;
};
// Parses the text of /proc/PID/maps, and returns the mappings of code. Views refer to the text.
std::vector<ProcMapping> ParseProcMaps(std::string_view text);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_IDENTITY_CODE_TRACKER_H_
