// Finds the functions at the addresses of stacks, in ELF files, in debug information and in perf
// maps.
//
// The file at the path of a mapping may not be the file that was mapped: that file may have been
// replaced, or the process may have had another root directory. A user could direct the path to a
// file that only root may read, and learn the names of its functions from a trace that root
// symbolizes. Therefore, the file at the path is used only if it has the build id of the mapping.
// If the build id of the mapping is not known, the trace must be of this host, the file must not
// have changed since it was mapped, and the process must not have mapped another file. In addition,
// one of these conditions must hold: the process still has the file mapped; every user may read the
// file; or the effective user of this program owns the file and is not root.
#ifndef TOOLS_NETTRACE_SYMBOLIZE_FUNCTION_FINDER_H_
#define TOOLS_NETTRACE_SYMBOLIZE_FUNCTION_FINDER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "nettrace/schema.h"
#include "tools/base/prompt_files.h"
#include "tools/elf/debug_files.h"
#include "tools/elf/elf_file.h"
#include "tools/nettrace/symbolize/debuginfod.h"
#include "tools/nettrace/symbolize/stack_hits.h"

namespace tools::symbolize {

// The result of the search for functions in a file that processes have mapped, or in the code that
// a process has compiled at run time.
struct ModuleResult {
  std::string path;
  std::string build_id;  // bytes
  std::string source;    // file with the names of the functions; empty: none was found
  std::uint64_t addresses = 0;
  std::uint64_t named = 0;      // addresses that have a function
  std::uint64_t functions = 0;  // events to write: one for each function of each mapping
  std::string reason;           // why functions are or may be missing; empty if none are
};

// Whether paths and process ids of a trace mean the same on this machine now.
struct Machine {
  bool is_same_host = false;
  bool is_same_boot = false;
};
// Compares the keys of the Trace block with this machine.
Machine CompareMachine(const nettrace::TraceInfo& trace);

using FunctionsByMapping = absl::flat_hash_map<std::uint64_t, std::vector<elf::Function>>;

// The facts that other programs need to find the symbols of a file.
struct ElfDescription {
  std::string build_id;       // bytes
  std::string debug_link;     // name of the file with the debug information; empty if unknown
  std::uint64_t address = 0;  // address, as in symbols, of the mapping's first byte
  std::uint64_t offset = 0;   // offset of this byte in the file
};
// Descriptions by the id of the event that describes the file of a mapping.
using ElfDescriptions = absl::flat_hash_map<std::uint64_t, ElfDescription>;

// Finds the functions of mappings, and states for each file how many were found. Not thread-safe.
class FunctionFinder {
 public:
  // `folders` contain debug information or copies of files, and are searched before
  // elf::kDebugFolder. `debuginfod` is asked last; null: no servers are asked. If `prompt_files` is
  // not null, a file is skipped if its path leads to a file system that may wait for a user's
  // process. `prompt_files` must outlive this object.
  FunctionFinder(Machine machine, std::vector<std::string> folders,
                 std::unique_ptr<Debuginfod> debuginfod = nullptr,
                 base::PromptFiles* prompt_files = nullptr)
      : machine_(machine),
        prompt_files_(prompt_files),
        debug_files_(std::move(folders), prompt_files),
        debuginfod_(std::move(debuginfod)) {}

  // Finds the functions of the mappings, and adds them to functions() with their addresses in the
  // processes.
  void Find(std::span<const HitMapping> mappings);

  // Returns the functions of each mapping, by the id of the mapping. A function occurs only once in
  // a mapping.
  const FunctionsByMapping& functions() const { return functions_; }
  // Returns the descriptions of files that were found and that the trace does not describe fully.
  ElfDescriptions descriptions() const;
  const std::vector<ModuleResult>& modules() const { return modules_; }

 private:
  // Mappings with the same file, or of the same process if they have no file.
  using Group = std::vector<const HitMapping*>;
  // The files for a group of mappings.
  struct Files {
    std::optional<elf::ElfFile> original;
    std::optional<elf::ElfFile> debug;
    std::string debuginfod_error;  // empty: none
  };

  void FindInFiles(const Group& group);
  // Adds the description of `file`, the file of these mappings, to descriptions_.
  void Describe(const Group& group, const elf::ElfFile& file);
  void FindInPerfMap(const Group& group);
  // Opens the file of the mapping, or a copy of the file in a folder of debug information, and sets
  // `result->source`. If there is none, sets `result->reason`.
  std::optional<elf::ElfFile> OpenOriginal(const HitMapping& mapping, ModuleResult* result) const;
  Files OpenFiles(const HitMapping& mapping, ModuleResult* result) const;
  // Returns the vdso if it is that of the mapping; otherwise sets `result->reason`.
  std::optional<elf::ElfFile> OpenVdsoOf(const HitMapping& mapping, ModuleResult* result) const;
  // Returns why the file may not be used for the mapping; empty if it may.
  std::string WhyRefused(const elf::ElfFile& file, const HitMapping& mapping) const;
  // Adds the functions in `found` to those parts of `*result` that describe their mappings. `found`
  // is the result of the search for `addresses`, which are sorted addresses in the file.
  // `address_of` converts an address of a mapping to an address in the file.
  template <typename AddressOf>
  void Add(const Group& group, std::span<const std::uint64_t> addresses,
           const elf::Functions& found, const AddressOf& address_of, ModuleResult* result);

  const Machine machine_;
  base::PromptFiles* const prompt_files_;
  const elf::DebugFiles debug_files_;
  const std::unique_ptr<Debuginfod> debuginfod_;
  FunctionsByMapping functions_;
  // Descriptions by the id of the event that describes the file. The value is nullopt if mappings
  // with the same event begin at different addresses of the file, because a description has only
  // one address.
  absl::flat_hash_map<std::uint64_t, std::optional<ElfDescription>> descriptions_;
  std::vector<ModuleResult> modules_;
};

}  // namespace tools::symbolize

#endif  // TOOLS_NETTRACE_SYMBOLIZE_FUNCTION_FINDER_H_
