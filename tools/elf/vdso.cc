#include "tools/elf/vdso.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "tools/base/read_file.h"
#include "tools/base/unique_fd.h"

namespace elf {
namespace {

constexpr std::uint64_t kMaxVdso = std::uint64_t{1} << 20;
constexpr std::size_t kMaxMaps = std::size_t{4} << 20;

// Returns whether this process has a mapping of `size` bytes at `first`.
bool IsMapped(std::uint64_t first, std::uint64_t size) {
  const std::string maps = base::ReadFile("/proc/self/maps", kMaxMaps).value_or("");
  const std::string range = absl::StrFormat("%x-%x ", first, first + size);
  return maps.starts_with(range) || maps.find("\n" + range) != std::string::npos;
}

}  // namespace

std::optional<ElfFile> ReadVdso(std::uint64_t size) {
  const std::uint64_t first = getauxval(AT_SYSINFO_EHDR);
  if (first == 0 || size > kMaxVdso || !IsMapped(first, size)) return std::nullopt;
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  const base::UniqueFd memory(open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
  base::UniqueFd copy(memfd_create("vdso", MFD_CLOEXEC));
  const auto count = static_cast<ssize_t>(bytes.size());
  if (pread(memory.get(), bytes.data(), bytes.size(), static_cast<off_t>(first)) != count ||
      write(copy.get(), bytes.data(), bytes.size()) != count) {
    return std::nullopt;
  }
  absl::StatusOr<ElfFile> file = ElfFile::Open(std::move(copy));
  if (!file.ok()) return std::nullopt;
  return *std::move(file);
}

}  // namespace elf
