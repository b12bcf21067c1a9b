// Names the code at the addresses of stacks, from the events of Universal.System that describe
// mappings (ProcessMapping), their files (ProcessMappingMetadata) and functions (ProcessSymbol).
#ifndef TOOLS_TRACE_CODE_MAP_H_
#define TOOLS_TRACE_CODE_MAP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "nettrace/reader.h"
#include "tools/trace/hosts.h"

namespace trace {

// Key of the label of an event whose stack may lack frames. Such a stack has the maximum number of
// frames that the recording keeps, or lacks its part in user space. The value is the number of
// frames in the event.
inline constexpr char kStackCutLabel[] = "StackCut";

// Holds the mappings of each process and the functions in them. Not thread-safe.
class CodeMap {
 public:
  // Maximum estimated memory of mappings and functions, in bytes. If a mapping would exceed it, the
  // files that no running process maps are dropped first. Mappings and functions that still do not
  // fit are ignored.
  static constexpr std::size_t kMaxBytes = std::size_t{256} << 20;

  // The code at an address. Views are valid until the next OnEvent.
  struct Code {
    bool is_known = false;             // whether a mapping has the address
    std::uint64_t mapping = 0;         // id of the mapping
    std::string_view path;             // path of the mapped file
    std::string_view build_id;         // build id of the file, in hexadecimal; empty if unknown
    std::string_view function;         // name of the function; empty if unknown
    std::uint64_t function_start = 0;  // address of the function's first byte
    // First address of the mapping, and the offset of the byte at this address in the file.
    std::uint64_t mapping_start = 0;
    std::uint64_t file_offset = 0;
  };
  // A function and its first address.
  struct Symbol {
    std::string_view name;
    std::uint64_t start = 0;
  };

  // Updates the mappings and functions. Must be called with every event of the file, in order of
  // time.
  void OnEvent(const nettrace::Event& event);

  // Returns what is known of the code at `address` in the process of the thread. If `is_return` is
  // set, `address` is a return address, and the code is that of the call before it.
  Code Find(const nettrace::ThreadInfo& thread, std::uint64_t address, bool is_return) const;
  // Returns the function at `address` in a mapping, or nullopt. The name is valid until the next
  // OnEvent.
  std::optional<Symbol> FindFunction(std::uint64_t mapping, std::uint64_t address) const;
  // Appends what is known of the code at `address`: `module!function+0x1f`, `module+0x1f` with the
  // offset in the file of the module, or only the address, `0x1f`. `is_return` has the same meaning
  // as for Find().
  void AppendCode(const nettrace::ThreadInfo& thread, std::uint64_t address, bool is_return,
                  std::string* out) const;
  // Returns a number that changes whenever the mappings of the thread's process change; 0 if none
  // are known. While the number is the same, each address stays in the same mapping.
  std::uint64_t VersionOf(const nettrace::ThreadInfo& thread) const;
  // Returns the number of mappings and functions that were ignored because of kMaxBytes.
  std::uint64_t ignored() const { return ignored_; }

 private:
  struct Function {
    std::uint64_t last = 0;  // address of the last byte
    std::string name;
  };
  // A mapped file with its functions, identified by the id of its mapping. Several processes may
  // share an id.
  struct Image {
    std::string path;
    std::string build_id;
    std::map<std::uint64_t, Function> functions;  // by first address
    std::size_t ranges = 0;                       // number of ranges with this id, of all processes
    std::size_t bytes = 0;
  };
  struct Range {
    std::uint64_t last = 0;  // address of the last byte
    std::uint64_t id = 0;    // id of the mapping
    std::uint64_t offset = 0;
  };
  using Ranges = std::map<std::uint64_t, Range>;  // by first address
  // The number of a host in hosts_, and a pid on this host.
  using ProcessKey = std::pair<std::size_t, std::uint64_t>;
  struct Process {
    Ranges ranges;
    std::uint64_t version = 0;
  };

  void AddMapping(const ProcessKey& key, std::uint64_t first, const Range& range,
                  std::string_view path, std::uint64_t metadata);
  void AddBuildId(std::uint64_t metadata, std::string_view json);
  void AddFunction(std::uint64_t id, std::uint64_t first, std::uint64_t last, std::string name);
  void AddRange(Ranges* ranges, std::uint64_t first, const Range& range);
  // Removes the addresses from `first` to `last` from the ranges. Keeps the parts of a range that
  // are outside of these addresses.
  void MakeRoom(Ranges* ranges, std::uint64_t first, std::uint64_t last);
  void ForgetRange(const Range& range);
  void ForgetProcess(const ProcessKey& key);
  const Process* FindProcess(const nettrace::ThreadInfo& thread) const;
  // Returns whether there is room for entries of `bytes`. Drops images without ranges if necessary.
  bool HasRoom(std::size_t bytes);

  Hosts hosts_;
  absl::flat_hash_map<ProcessKey, Process> processes_;
  absl::flat_hash_map<std::uint64_t, Image> images_;           // by id of the mapping
  absl::flat_hash_map<std::uint64_t, std::string> build_ids_;  // by id of the metadata
  // Number of changes of mappings so far, from which Process::version is taken.
  std::uint64_t changes_ = 0;
  // Number of images without ranges. They stay until HasRoom needs their memory, because a later
  // process may map the same file.
  std::size_t unused_ = 0;
  std::size_t bytes_ = 0;
  std::uint64_t ignored_ = 0;
};

// Returns the name of the module of a mapped file: the last part of its path.
std::string_view ModuleName(std::string_view path);
// Returns the addresses of the event's stack, leaf first. `pointer_size` is that of the trace.
std::vector<std::uint64_t> StackAddresses(const nettrace::Event& event, std::int32_t pointer_size);
// Returns whether the address of the frame at `index` is a return address. This is true except for
// the leaf, and for the first frame of user space after frames of the kernel.
bool IsReturnAddress(std::span<const std::uint64_t> stack, std::size_t index);

}  // namespace trace

#endif  // TOOLS_TRACE_CODE_MAP_H_
