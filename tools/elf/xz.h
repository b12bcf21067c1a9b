// Decompresses data in the format of xz(1), with limits of memory and size.
#ifndef TOOLS_ELF_XZ_H_
#define TOOLS_ELF_XZ_H_

#include <cstddef>
#include <span>

#include "tools/base/unique_fd.h"

namespace elf {

// Maximum bytes of the decompressed data, and of the memory of the decompressor.
inline constexpr std::size_t kMaxDecompressed = std::size_t{64} << 20;
inline constexpr std::size_t kMaxXzMemory = std::size_t{128} << 20;

// Returns a file in memory with the decompressed bytes. Returns an invalid descriptor if the data
// is damaged or exceeds a limit, or if the file cannot be written.
base::UniqueFd DecompressXz(std::span<const std::byte> data);

}  // namespace elf

#endif  // TOOLS_ELF_XZ_H_
