// Finds the kernel symbol that an address belongs to.
#ifndef TOOLS_COLLECTOR_IDENTITY_KERNEL_SYMBOLS_H_
#define TOOLS_COLLECTOR_IDENTITY_KERNEL_SYMBOLS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace collector {

// An immutable table of the kernel's symbols. It contains no symbols of modules and BPF programs
// that are loaded after it was read.
class KernelSymbols {
 public:
  // Reads /proc/kallsyms, which takes about 100 ms for 10 MB. The table is empty if the file cannot
  // be read or this process may not see addresses (kernel.kptr_restrict).
  static KernelSymbols Load();
  // Parses the text of /proc/kallsyms. Each line has an address, a type and a name.
  static KernelSymbols Parse(std::string_view text);

  bool empty() const { return symbols_.empty(); }

  // Returns the symbol of an address, and the offset of the address from the start of the symbol,
  // such as "tcp_sendmsg+0x4a". The offset is left out if it is 0 or `with_offset` is false.
  // Returns "" if no symbol begins within 1 MiB before the address.
  std::string Find(std::uint64_t address, bool with_offset) const;

  // A symbol with its addresses. It ends before the next symbol, and at most 1 MiB after its start.
  struct Range {
    std::uint64_t first = 0;
    std::uint64_t last = 0;  // address of the last byte
    std::string_view name;   // valid while the table exists
  };
  // Returns the last symbol that begins at or before the address; no value if that is more than
  // 1 MiB before.
  std::optional<Range> FindRange(std::uint64_t address) const;

 private:
  struct Symbol {
    std::uint64_t address;
    std::uint32_t name;  // index of the name in names_, where a NUL ends it
    std::uint32_t rank;  // if an address has several symbols, the one with the lowest rank is kept
  };

  std::vector<Symbol> symbols_;  // sorted by address; one for each address
  std::string names_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_IDENTITY_KERNEL_SYMBOLS_H_
