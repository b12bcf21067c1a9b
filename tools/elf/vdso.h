// Reads the vdso: code of the kernel that each process has mapped, as an ELF file in memory.
#ifndef TOOLS_ELF_VDSO_H_
#define TOOLS_ELF_VDSO_H_

#include <cstdint>
#include <optional>

#include "tools/elf/elf_file.h"

namespace elf {

// Name of the mapping of the vdso.
inline constexpr char kVdso[] = "[vdso]";

// Returns a copy of the vdso of this process. Returns no value if the vdso is not mapped, does not
// have exactly `size` bytes, or cannot be copied.
std::optional<ElfFile> ReadVdso(std::uint64_t size);

}  // namespace elf

#endif  // TOOLS_ELF_VDSO_H_
