// Tracks the code that processes have mapped, so that a trace can describe the addresses of stacks.
//
// Input: the code of all processes in /proc when the capture begins, and the records of mappings,
// of new processes, of programs that are executed and of processes that end. Output: the mapping
// that an address of a process belonged to at a time.
//
// Records are applied before the samples of the same time are read, so mappings that have been
// replaced are kept until all samples of their time have been read. The kernel does not report
// that a mapping was removed. Such a mapping stays until another takes its place, which is correct:
// no stack has an address of it in between.
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
#include "tools/collector/identity/kernel_symbols.h"
#include "tools/collector/perf/perf_records.h"

namespace collector {

// A file, or other memory, that processes have mapped as code.
struct CodeFile {
  // Path in the mount namespace of the process, or a name such as "[vdso]". It ends with
  // " (deleted)" if the file was not at the path when the capture began: the build id is not known
  // then, and another file may be at the path.
  std::string path;
  std::string build_id;  // bytes; empty: not known
};

struct CodeMapping {
  std::uint64_t first = 0;
  std::uint64_t last = 0;    // address of the last byte
  std::uint64_t offset = 0;  // of the first address in the file
  std::uint64_t from = 0;    // time of the mapping: session clock, ns
  // Identifies the mapping among those of all captures of the machine. Processes share it if one
  // was created as a copy of the other.
  std::uint64_t id = 0;
  std::shared_ptr<const CodeFile> file;
};

// A table of the mappings of all processes. Not thread-safe.
class CodeTracker {
 public:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  // Maximum estimated memory of all mappings, in bytes. Further ones are ignored until others end.
  static constexpr std::size_t kMaxBytes = std::size_t{256} << 20;
  // Maximum number of mappings of a process at a time.
  static constexpr std::size_t kMaxMappings = 16384;
  // Maximum number of replaced mappings of a process that are kept, because Find reads all of them.
  static constexpr std::size_t kMaxPast = 256;

  explicit CodeTracker(KernelSymbols kernel_symbols);

  const KernelSymbols& kernel_symbols() const { return kernel_symbols_; }
  // Returns an id that no mapping of any capture of the machine has.
  std::uint64_t MakeId() { return next_id_++; }

  // Adds the code of every process in /proc, from `timestamp` on; 0: from the beginning.
  void LoadFromProc(std::uint64_t timestamp);
  // Returns the processes whose code LoadFromProc was not permitted to read when it ran last.
  const std::vector<std::uint32_t>& unreadable() const { return unreadable_; }
  // Records that `parent` created a process with the same mappings.
  void Created(std::uint32_t pid, std::uint32_t parent, std::uint64_t timestamp);
  // Records that the process executes a program, which removes all of its mappings.
  void Executes(std::uint32_t pid, std::uint64_t timestamp);
  void Maps(const MappingRecord& record, std::uint64_t timestamp);
  void Ended(std::uint32_t pid, std::uint64_t timestamp);
  // Drops what ended no later than `timestamp`. The caller must have read all samples up to it.
  void DropEnded(std::uint64_t timestamp);

  struct Found {
    const CodeMapping* mapping = nullptr;  // null: not known; valid until the next change
    // The process executes the program since this time, or has ended at this time. 0: not known.
    std::uint64_t program_from = 0;
    // The result holds from this time on, and before that one.
    std::uint64_t from = 0;
    std::uint64_t until = kNever;
  };
  // Returns the mapping of an address of the process at a time.
  Found Find(std::uint32_t pid, std::uint64_t address, std::uint64_t timestamp) const;
  // Returns a number that changes whenever the mappings of the process change; 0: not known.
  std::uint64_t CountChanges(std::uint32_t pid) const;

 private:
  struct Past {
    CodeMapping mapping;
    std::uint64_t until;
  };
  struct Mappings {
    std::map<std::uint64_t, CodeMapping> now;  // by first address
    std::vector<Past> past;                    // those that others have replaced
  };
  // A program that a process executes from one time to another. Processes share the mappings that
  // they have in common until one of them changes.
  struct Program {
    std::uint64_t from = 0;
    std::uint64_t until = kNever;
    std::shared_ptr<Mappings> mappings;
  };
  struct Process {
    std::vector<Program> programs;  // oldest first
    std::uint64_t changes = 0;
  };

  // Returns the mappings of the process's current program, which it shares with no other process.
  Mappings* Change(std::uint32_t pid, std::uint64_t timestamp);
  void Begin(std::uint32_t pid, std::uint64_t timestamp, std::shared_ptr<Mappings> mappings);
  // Begins a program without mappings if the process is not known or has ended.
  void BeginIfEnded(std::uint32_t pid, std::uint64_t timestamp);
  void Add(CodeMapping mapping, Mappings* mappings);
  // Moves what lies in the range to the past mappings.
  void MakeRoom(const CodeMapping& added, Mappings* mappings);
  // Returns whether a mapping of the address is valid at `timestamp`, and adds to `found` that it
  // is, or that it is not until it begins or since it ended.
  static bool UseIfValid(const CodeMapping& mapping, std::uint64_t until, std::uint64_t timestamp,
                         Found* found);
  void LoadProcess(std::uint32_t pid, std::uint64_t timestamp);
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
