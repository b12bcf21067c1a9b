// Builds small ELF files of both classes and byte orders, for tests.
#ifndef TESTS_SUPPORT_ELF_BUILDER_H_
#define TESTS_SUPPORT_ELF_BUILDER_H_

#include <elf.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tests {

struct ElfSymbol {
  std::string name;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  unsigned type = STT_FUNC;
  unsigned binding = STB_GLOBAL;
  bool is_defined = true;
};

// The contents of a file with one executable segment, which begins at kTextOffset in the file.
struct ElfContents {
  static constexpr std::uint64_t kTextOffset = 0x1000;

  bool is_64 = true;
  bool is_big = false;
  std::uint64_t text_address = 0x401000;
  std::uint64_t text_size = 0x1000;  // in the headers only; the file does not contain the code
  std::string build_id = {};
  std::string debug_link = {};  // name; empty: none
  std::uint32_t debug_crc = 0;
  std::string debug_data = {};  // compressed; empty: none
  std::vector<ElfSymbol> symbols = {};
  std::vector<ElfSymbol> exports = {};
};

class ElfBuilder {
 public:
  explicit ElfBuilder(const ElfContents& contents) : contents_(contents) {}

  std::string Build() {
    const bool is_64 = contents_.is_64;
    const std::size_t header_size = is_64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
    const std::size_t segment_size = is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
    out_.assign(header_size + 2 * segment_size, '\0');
    sections_.push_back({});
    const Section note = Add(SHT_NOTE, 0, Note());
    sections_.push_back({".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, contents_.text_address,
                         ElfContents::kTextOffset, contents_.text_size, 0, 0});
    AddSymbols(SHT_SYMTAB, contents_.symbols);
    AddSymbols(SHT_DYNSYM, contents_.exports);
    if (!contents_.debug_link.empty()) {
      std::string link = contents_.debug_link;
      link.resize((link.size() + 4) & ~std::size_t{3});
      Put(&link, contents_.debug_crc, 4);
      Add(SHT_PROGBITS, 0, link, ".gnu_debuglink");
    }
    if (!contents_.debug_data.empty()) {
      Add(SHT_PROGBITS, 0, contents_.debug_data, ".gnu_debugdata");
    }
    const std::uint64_t sections = AddSections();
    std::string header = Header(segment_size, sections);
    header += Segment(PT_NOTE, PF_R, note.offset, 0, note.size);
    header += Segment(PT_LOAD, PF_R | PF_X, ElfContents::kTextOffset, contents_.text_address,
                      contents_.text_size);
    return out_.replace(0, header.size(), header);
  }

 private:
  struct Section {
    std::string name = {};
    std::uint32_t type = SHT_NULL;
    std::uint64_t flags = 0;
    std::uint64_t address = 0;
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint32_t link = 0;
    std::uint64_t entry_size = 0;
  };

  void Put(std::string* to, std::uint64_t value, std::size_t size) const {
    for (std::size_t i = 0; i < size; ++i) {
      *to += static_cast<char>(value >> (8 * (contents_.is_big ? size - 1 - i : i)));
    }
  }
  // Appends a number of the size of an address.
  void PutWord(std::string* to, std::uint64_t value) const {
    Put(to, value, contents_.is_64 ? 8 : 4);
  }

  Section Add(std::uint32_t type, std::uint32_t link, const std::string& bytes,
              const std::string& name = "", std::uint64_t entry_size = 0) {
    out_.resize((out_.size() + 7) & ~std::size_t{7});
    sections_.push_back({name, type, 0, 0, out_.size(), bytes.size(), link, entry_size});
    out_ += bytes;
    return sections_.back();
  }

  std::string Note() const {
    std::string note;
    if (contents_.build_id.empty()) return note;
    Put(&note, 4, 4);
    Put(&note, contents_.build_id.size(), 4);
    Put(&note, NT_GNU_BUILD_ID, 4);
    note.append("GNU", 4);
    return note + contents_.build_id;
  }

  void AddSymbols(std::uint32_t type, const std::vector<ElfSymbol>& symbols) {
    if (symbols.empty()) return;
    constexpr std::uint64_t kText = 2;  // index of the section of code
    std::string names(1, '\0');
    std::string table(contents_.is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym), '\0');
    const std::size_t entry_size = table.size();
    std::size_t name = 0;  // position of the name of the last symbol
    for (const ElfSymbol& symbol : symbols) {
      const std::uint64_t info = ELF64_ST_INFO(symbol.binding, symbol.type);
      const std::uint64_t section = symbol.is_defined ? kText : SHN_UNDEF;
      // Successive symbols with the same name share its bytes.
      if (&symbol == &symbols.front() || symbol.name != (&symbol)[-1].name) {
        name = names.size();
        names.append(symbol.name.c_str(), symbol.name.size() + 1);
      }
      Put(&table, name, 4);
      if (contents_.is_64) {
        Put(&table, info, 1);
        Put(&table, 0, 1);
        Put(&table, section, 2);
      }
      PutWord(&table, symbol.address);
      PutWord(&table, symbol.size);
      if (!contents_.is_64) {
        Put(&table, info, 1);
        Put(&table, 0, 1);
        Put(&table, section, 2);
      }
    }
    Add(type, static_cast<std::uint32_t>(sections_.size() + 1), table, "", entry_size);
    Add(SHT_STRTAB, 0, names);
  }

  // Returns the offset of the table of sections.
  std::uint64_t AddSections() {
    Add(SHT_STRTAB, 0, "", ".shstrtab");
    std::string names(1, '\0');
    std::vector<std::size_t> offsets;
    for (const Section& section : sections_) {
      offsets.push_back(names.size());
      names.append(section.name.c_str(), section.name.size() + 1);
    }
    sections_.back().size = names.size();
    out_ += names;
    out_.resize((out_.size() + 7) & ~std::size_t{7});
    const std::uint64_t begin = out_.size();
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      const Section& section = sections_[i];
      Put(&out_, offsets[i], 4);
      Put(&out_, section.type, 4);
      PutWord(&out_, section.flags);
      PutWord(&out_, section.address);
      PutWord(&out_, section.offset);
      PutWord(&out_, section.size);
      Put(&out_, section.link, 4);
      Put(&out_, 0, 4);
      PutWord(&out_, 8);
      PutWord(&out_, section.entry_size);
    }
    return begin;
  }

  std::string Segment(std::uint32_t type, std::uint32_t flags, std::uint64_t offset,
                      std::uint64_t address, std::uint64_t size) const {
    std::string segment;
    Put(&segment, type, 4);
    if (contents_.is_64) Put(&segment, flags, 4);
    for (const std::uint64_t value : {offset, address, address, size, size}) {
      PutWord(&segment, value);
    }
    if (!contents_.is_64) Put(&segment, flags, 4);
    PutWord(&segment, 4);
    return segment;
  }

  std::string Header(std::size_t segment_size, std::uint64_t sections) const {
    const bool is_64 = contents_.is_64;
    std::string header = ELFMAG;
    header += static_cast<char>(is_64 ? ELFCLASS64 : ELFCLASS32);
    header += static_cast<char>(contents_.is_big ? ELFDATA2MSB : ELFDATA2LSB);
    header += static_cast<char>(EV_CURRENT);
    header.resize(EI_NIDENT);
    Put(&header, ET_DYN, 2);
    Put(&header, EM_X86_64, 2);
    Put(&header, EV_CURRENT, 4);
    const std::size_t size = is_64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
    for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{size}, sections}) {
      PutWord(&header, value);
    }
    Put(&header, 0, 4);
    for (const std::size_t value :
         {size, segment_size, std::size_t{2}, is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr),
          sections_.size(), sections_.size() - 1}) {
      Put(&header, value, 2);
    }
    return header;
  }

  const ElfContents contents_;
  std::string out_;
  std::vector<Section> sections_;
};

}  // namespace tests

#endif  // TESTS_SUPPORT_ELF_BUILDER_H_
