// Reads any bytes as an ELF file, and finds the functions at a few fixed addresses and at those of
// the first 8 KiB of the file, also in its compressed section .gnu_debugdata. Checks that functions
// contain the addresses, and that names are bounded.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "tools/base/unique_fd.h"
#include "tools/elf/elf_file.h"

namespace {

void Require(bool promise) {
  if (!promise) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  base::UniqueFd fd(memfd_create("fuzz", MFD_CLOEXEC));
  Require(fd.valid() && write(fd.get(), data, size) == static_cast<ssize_t>(size));
  const absl::StatusOr<elf::ElfFile> file = elf::ElfFile::Open(std::move(fd));
  if (!file.ok()) return 0;
  Require(file->build_id().size() <= elf::kMaxBuildId);
  std::vector<std::uint64_t> addresses = {0, 0x1000, 0x401000, 0x401018, ~std::uint64_t{0}};
  for (std::uint64_t offset = 0; offset < 0x2000; offset += 0x10) {
    if (const auto address = file->AddressAt(offset)) addresses.push_back(*address);
  }
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  elf::Functions found = file->FindFunctions(addresses);
  if (const auto more = file->OpenDebugData()) {
    found = elf::Combine(std::move(found), more->FindFunctions(addresses));
  }
  Require(found.of_address.size() == addresses.size());
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (found.of_address[i] == elf::Functions::kNone) continue;
    const elf::Function& function = found.functions.at(found.of_address[i]);
    Require(function.first <= addresses[i] && addresses[i] <= function.last);
    Require(!function.name.empty() && function.name.size() <= elf::kMaxName);
  }
  const auto link = file->ReadDebugLink();
  Require(!link || (!link->name.empty() && link->name.find('/') == std::string::npos));
  file->Checksum();
  return 0;
}
