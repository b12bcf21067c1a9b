// The names of the kernel's code: which symbol an address belongs to.
#ifndef TOOLS_COLLECTOR_CONVERT_KERNEL_SYMBOLS_H_
#define TOOLS_COLLECTOR_CONVERT_KERNEL_SYMBOLS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace collector {

// Immutable once made. What is loaded later than it (modules, BPF programs) has no name in it.
class KernelSymbols {
 public:
  // Reads /proc/kallsyms, some 100 ms of work for 10 MB. Without the permission to see addresses
  // (kernel.kptr_restrict) there are no symbols.
  static KernelSymbols Load();
  // Parses the text of that file: a line has address, type and name.
  static KernelSymbols Parse(std::string_view text);

  bool empty() const { return symbols_.empty(); }

  // "tcp_sendmsg+0x4a", or "tcp_sendmsg" without the offset or where it is 0; "" if the address is
  // in no symbol.
  std::string Find(std::uint64_t address, bool with_offset) const;

 private:
  struct Symbol {
    std::uint64_t address;
    std::uint32_t name;  // in names_, NUL-terminated
    std::uint32_t rank;  // of several symbols at one address, the one of the lowest rank is shown
  };

  std::vector<Symbol> symbols_;  // by address, one for each
  std::string names_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_KERNEL_SYMBOLS_H_
