// Reads the vdso: code of the kernel that each process has mapped, as an ELF file in memory.
#ifndef TOOLS_NETTRACE_SYMBOLIZE_VDSO_H_
#define TOOLS_NETTRACE_SYMBOLIZE_VDSO_H_

#include <cstdint>
#include <optional>

#include "tools/elf/elf_file.h"

namespace tools::symbolize {

// Returns a copy of the vdso of this process, if it has `size` bytes.
std::optional<elf::ElfFile> ReadVdso(std::uint64_t size);

}  // namespace tools::symbolize

#endif  // TOOLS_NETTRACE_SYMBOLIZE_VDSO_H_
