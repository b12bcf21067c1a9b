#include "object_size.h"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

namespace {

template <typename T>
bool Read(const std::string& file, std::size_t offset, T* value) {
  if (offset > file.size() || sizeof(*value) > file.size() - offset) return false;
  std::memcpy(value, file.data() + offset, sizeof(*value));
  return true;
}

}  // namespace

std::optional<ObjectSize> SizeOfObject(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(stream), {}};
  Elf64_Ehdr header;
  if (!Read(file, 0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64) {
    return std::nullopt;
  }
  const auto section_at = [&](std::size_t index, Elf64_Shdr* section) {
    return Read(file, header.e_shoff + index * sizeof(*section), section);
  };
  Elf64_Shdr names;
  if (!section_at(header.e_shstrndx, &names)) return std::nullopt;
  ObjectSize size;
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    if (!section_at(i, &section)) return std::nullopt;
    if ((section.sh_flags & SHF_ALLOC) == 0 || section.sh_type == SHT_NOTE) continue;
    const std::size_t name = names.sh_offset + section.sh_name;
    if (name >= file.size()) return std::nullopt;
    if ((section.sh_flags & SHF_EXECINSTR) != 0) {
      size.code += section.sh_size;
    } else if (std::string_view(file.c_str() + name) == ".eh_frame") {
      size.unwind += section.sh_size;
    } else if ((section.sh_flags & SHF_WRITE) == 0) {
      size.read_only += section.sh_size;
    }
  }
  return size;
}
