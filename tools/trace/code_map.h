// Names the code at the addresses of stacks, from the events of Universal.System that describe
// mappings (ProcessMapping) and functions (ProcessSymbol).
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

namespace trace {

// Holds the mappings of each process and the functions in them. Not thread-safe.
class CodeMap {
 public:
  // Maximum estimated memory of mappings and functions, in bytes. Above it, those of processes that
  // have ended are dropped; further ones are ignored.
  static constexpr std::size_t kMaxBytes = std::size_t{256} << 20;

  // Updates the mappings and functions. Must be called with every event of the file, in order of
  // time.
  void OnEvent(const nettrace::Event& event);

  // Appends what is known of the code at `address` in the process: `module!function+0x1f`,
  // `module+0x1f` with the offset in the file of the module, or only the address, `0x1f`. If
  // `is_return` is set, `address` is a return address, and the module and function are those of the
  // call before it.
  void AppendCode(std::optional<std::uint64_t> pid, std::uint64_t address, bool is_return,
                  std::string* out) const;

 private:
  struct Function {
    std::uint64_t last = 0;  // address of the last byte
    std::string name;
  };
  // The mapping with one id, which processes may share.
  struct Image {
    std::string module;
    std::map<std::uint64_t, Function> functions;  // by first address
    std::size_t ranges = 0;                       // ranges of all processes with this id
    std::size_t bytes = 0;
  };
  struct Range {
    std::uint64_t last = 0;  // address of the last byte
    std::uint64_t id = 0;    // id of the mapping
    std::uint64_t offset = 0;
  };
  using Ranges = std::map<std::uint64_t, Range>;  // by first address

  void AddMapping(std::uint64_t pid, std::uint64_t first, const Range& range,
                  std::string_view path);
  void AddFunction(std::uint64_t id, std::uint64_t first, std::uint64_t last, std::string name);
  void AddRange(Ranges* ranges, std::uint64_t first, const Range& range);
  // Removes [first, last] from the ranges. The parts of a range outside of it stay.
  void MakeRoom(Ranges* ranges, std::uint64_t first, std::uint64_t last);
  void ForgetRange(const Range& range);
  void ForgetProcess(std::uint64_t pid);
  // Returns whether there is room for entries of `bytes`. Drops images without ranges if necessary.
  bool HasRoom(std::size_t bytes);

  absl::flat_hash_map<std::uint64_t, Ranges> processes_;  // by pid
  absl::flat_hash_map<std::uint64_t, Image> images_;      // by id of the mapping
  std::size_t unused_ = 0;  // images without ranges: a later process may share their functions
  std::size_t bytes_ = 0;
};

// Returns the addresses of the event's stack, leaf first. `pointer_size` is that of the trace.
std::vector<std::uint64_t> StackAddresses(const nettrace::Event& event, std::int32_t pointer_size);
// Returns whether the address of the frame at `index` is a return address. It is, except for the
// leaf and for the first frame of user space after frames of the kernel.
bool IsReturnAddress(std::span<const std::uint64_t> stack, std::size_t index);

}  // namespace trace

#endif  // TOOLS_TRACE_CODE_MAP_H_
