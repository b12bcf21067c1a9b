#include "tools/elf/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string_view>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"
#include "tools/elf/xz.h"

namespace elf {
namespace {

// Limits that bound memory and time for hostile files.
constexpr std::size_t kMaxSegments = 1024;
constexpr std::size_t kMaxSections = 65536;
constexpr std::size_t kMaxSymbols = std::size_t{1} << 25;  // symbols of a table
constexpr std::size_t kMaxNotes = std::size_t{64} << 10;   // bytes of notes in a segment or section
constexpr std::size_t kMaxNoteParts = 16;  // segments, or sections, that are searched for notes
constexpr std::size_t kChunk = std::size_t{64} << 10;  // bytes that are read at a time
constexpr std::size_t kMaxAliases = 8;                 // names that are compared for a function
constexpr std::uint64_t kMaxChecked = std::uint64_t{2} << 30;  // bytes of a file for Checksum
// Maximum pairs of a symbol and an address in it that a look-up checks: kMinSteps, plus
// kStepsOfAddress for each address that is looked up.
constexpr std::uint64_t kMinSteps = std::uint64_t{1} << 20;
constexpr std::uint64_t kStepsOfAddress = 64;

template <typename T>
T Reversed(T value) {
  std::array<std::byte, sizeof(T)> bytes;
  std::memcpy(bytes.data(), &value, sizeof value);
  std::reverse(bytes.begin(), bytes.end());
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

absl::Status CheckRegular(int fd) {
  struct stat facts = {};
  if (fstat(fd, &facts) != 0) return absl::ErrnoToStatus(errno, "cannot be read");
  if (!S_ISREG(facts.st_mode)) return absl::InvalidArgumentError("not a regular file");
  return absl::OkStatus();
}

// Removes the version of a symbol, as in "memcpy@@GLIBC_2.14".
std::string WithoutVersion(std::string name) {
  if (const std::size_t at = name.find('@'); at != std::string::npos && at != 0) name.resize(at);
  return name;
}

}  // namespace

template <typename T>
T ElfFile::Host(T value) const {
  return is_swapped_ ? Reversed(value) : value;
}

ElfFile::Segment ElfFile::ParseSegment(const std::byte* from) const {
  const auto parse = [this, from](auto raw) {
    std::memcpy(&raw, from, sizeof raw);
    return Segment{Host(raw.p_type),  Host(raw.p_flags),  Host(raw.p_offset),
                   Host(raw.p_vaddr), Host(raw.p_filesz), Host(raw.p_align)};
  };
  return is_64_ ? parse(Elf64_Phdr()) : parse(Elf32_Phdr());
}

ElfFile::Section ElfFile::ParseSection(const std::byte* from) const {
  const auto parse = [this, from](auto raw) {
    std::memcpy(&raw, from, sizeof raw);
    return Section{Host(raw.sh_name), Host(raw.sh_type),   Host(raw.sh_flags),
                   Host(raw.sh_addr), Host(raw.sh_offset), Host(raw.sh_size),
                   Host(raw.sh_link), Host(raw.sh_entsize)};
  };
  return is_64_ ? parse(Elf64_Shdr()) : parse(Elf32_Shdr());
}

ElfFile::Symbol ElfFile::ParseSymbol(const std::byte* from) const {
  const auto parse = [this, from](auto raw) {
    std::memcpy(&raw, from, sizeof raw);
    // The type and the binding have the same bits in files of 32 and of 64 bits.
    const unsigned info = raw.st_info;
    return Symbol{Host(raw.st_name),  info & 0xf,         info >> 4,
                  Host(raw.st_shndx), Host(raw.st_value), Host(raw.st_size)};
  };
  return is_64_ ? parse(Elf64_Sym()) : parse(Elf32_Sym());
}

absl::StatusOr<ElfFile> ElfFile::Open(const std::string& path, base::PromptFiles* prompt_files) {
  // Opening a device can have effects, such as the start of a watchdog. Therefore, the type of the
  // file is checked before the file is opened, and then the same file is opened.
  base::UniqueFd place;
  if (prompt_files != nullptr) {
    ASSIGN_OR_RETURN(place, prompt_files->Open(path));
  } else {
    place = base::UniqueFd(open(path.c_str(), O_PATH | O_CLOEXEC));
  }
  if (!place.valid()) return absl::ErrnoToStatus(errno, "cannot be opened");
  RETURN_IF_ERROR(CheckRegular(place.get()));
  base::UniqueFd fd(open(absl::StrCat("/proc/self/fd/", place.get()).c_str(),
                         O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "cannot be opened");
  ASSIGN_OR_RETURN(ElfFile file, Open(std::move(fd)));
  file.path_ = path;
  return file;
}

absl::StatusOr<ElfFile> ElfFile::Open(base::UniqueFd fd) {
  RETURN_IF_ERROR(CheckRegular(fd.get()));
  ElfFile file(std::move(fd));
  RETURN_IF_ERROR(file.ReadHeader());
  return file;
}

bool ElfFile::ReadAt(std::uint64_t offset, std::span<std::byte> buffer) const {
  while (!buffer.empty()) {
    const ssize_t got =
        offset > static_cast<std::uint64_t>(INT64_MAX)
            ? 0
            : pread(fd_.get(), buffer.data(), buffer.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    buffer = buffer.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return true;
}

absl::Status ElfFile::ReadHeader() {
  absl::Status no_elf = absl::InvalidArgumentError("not a program or shared object");
  std::array<std::byte, sizeof(Elf64_Ehdr)> bytes = {};
  if (!ReadAt(0, std::span(bytes).first(sizeof(Elf32_Ehdr))) ||
      std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0) {
    return no_elf;
  }
  is_64_ = bytes[EI_CLASS] == std::byte{ELFCLASS64};
  const bool is_big = bytes[EI_DATA] == std::byte{ELFDATA2MSB};
  if ((!is_64_ && bytes[EI_CLASS] != std::byte{ELFCLASS32}) ||
      (!is_big && bytes[EI_DATA] != std::byte{ELFDATA2LSB}) || (is_64_ && !ReadAt(0, bytes))) {
    return no_elf;
  }
  is_swapped_ = is_big != (std::endian::native == std::endian::big);
  const auto read = [&](auto header, std::size_t segment_size, std::size_t section_size) {
    std::memcpy(&header, bytes.data(), sizeof header);
    const auto type = Host(header.e_type);
    if (type != ET_EXEC && type != ET_DYN) return false;
    has_thumb_ = Host(header.e_machine) == EM_ARM;
    section_names_ = Host(header.e_shstrndx);
    if (Host(header.e_phentsize) == segment_size) {
      ReadSegments(Host(header.e_phoff), Host(header.e_phnum), segment_size);
    }
    if (Host(header.e_shentsize) == section_size) {
      ReadSections(Host(header.e_shoff), Host(header.e_shnum), section_size);
    }
    return true;
  };
  if (!(is_64_ ? read(Elf64_Ehdr(), sizeof(Elf64_Phdr), sizeof(Elf64_Shdr))
               : read(Elf32_Ehdr(), sizeof(Elf32_Phdr), sizeof(Elf32_Shdr)))) {
    return no_elf;
  }
  ReadBuildId();
  return absl::OkStatus();
}

void ElfFile::ReadSegments(std::uint64_t offset, std::size_t count, std::size_t entry_size) {
  std::vector<std::byte> bytes(std::min(count, kMaxSegments) * entry_size);
  if (!ReadAt(offset, bytes)) return;
  for (std::size_t at = 0; at < bytes.size(); at += entry_size) {
    segments_.push_back(ParseSegment(bytes.data() + at));
  }
}

void ElfFile::ReadSections(std::uint64_t offset, std::size_t count, std::size_t entry_size) {
  if (offset == 0) return;
  std::vector<std::byte> bytes(entry_size);
  // If the number of sections does not fit in the 16-bit field of the ELF header, that field is 0,
  // and the size field of the first section contains the number.
  if (count == 0 && ReadAt(offset, bytes)) {
    count = static_cast<std::size_t>(
        std::min<std::uint64_t>(ParseSection(bytes.data()).size, kMaxSections));
  }
  count = std::min(count, kMaxSections);
  bytes.resize(count * entry_size);
  if (!ReadAt(offset, bytes)) return;
  sections_.reserve(count);
  for (std::size_t at = 0; at < bytes.size(); at += entry_size) {
    const Section& section = sections_.emplace_back(ParseSection(bytes.data() + at));
    if (section.type == SHT_SYMTAB && !symbols_) symbols_ = section;
    if (section.type == SHT_DYNSYM && !exports_) exports_ = section;
  }
}

void ElfFile::ReadBuildId() {
  std::size_t parts = 0;
  for (const Segment& segment : segments_) {
    if (segment.type != PT_NOTE || !build_id_.empty() || ++parts > kMaxNoteParts) continue;
    ReadNotes(segment.offset, segment.size, segment.align);
  }
  // In a file of debug information, the offsets of segments may be those in the program that the
  // file describes. The notes are then found only by the sections.
  parts = 0;
  for (const Section& section : sections_) {
    if (section.type != SHT_NOTE || !build_id_.empty() || ++parts > kMaxNoteParts) continue;
    ReadNotes(section.offset, section.size, 4);
  }
}

void ElfFile::ReadNotes(std::uint64_t offset, std::uint64_t size, std::uint64_t align) {
  std::vector<std::byte> bytes(std::min<std::uint64_t>(size, kMaxNotes));
  if (!ReadAt(offset, bytes)) return;
  const std::uint64_t mask = align == 8 ? 7 : 3;
  std::span<const std::byte> rest = bytes;
  while (rest.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note;  // Elf32_Nhdr has the same layout
    std::memcpy(&note, rest.data(), sizeof note);
    // No sum overflows, because the sizes have 32 bits.
    const std::uint64_t name_size = Host(note.n_namesz);
    const std::uint64_t value_size = Host(note.n_descsz);
    const std::uint64_t value = (sizeof note + name_size + mask) & ~mask;
    if (value > rest.size() || value_size > rest.size() - value) return;
    if (Host(note.n_type) == NT_GNU_BUILD_ID && name_size == sizeof ELF_NOTE_GNU &&
        std::memcmp(rest.data() + sizeof note, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0 &&
        value_size != 0 && value_size <= kMaxBuildId) {
      build_id_.assign(reinterpret_cast<const char*>(rest.data() + value),
                       static_cast<std::size_t>(value_size));
      return;
    }
    const std::uint64_t next = (value + value_size + mask) & ~mask;
    if (next > rest.size()) return;
    rest = rest.subspan(static_cast<std::size_t>(next));
  }
}

std::optional<std::uint64_t> ElfFile::AddressAt(std::uint64_t offset) const {
  for (const Segment& segment : segments_) {
    if (segment.type == PT_LOAD && (segment.flags & PF_X) != 0 && offset >= segment.offset &&
        offset - segment.offset < segment.size) {
      return offset - segment.offset + segment.address;
    }
  }
  return std::nullopt;
}

std::vector<ElfFile::CodeSegment> ElfFile::FindCode() const {
  std::vector<CodeSegment> code;
  for (const Segment& segment : segments_) {
    if (segment.type != PT_LOAD || (segment.flags & PF_X) == 0) continue;
    code.push_back({segment.offset, segment.size, segment.address});
  }
  return code;
}

CallFrames ElfFile::ReadCallFrames() const {
  // The segment of type PT_GNU_EH_FRAME is a header that contains the address of the table. All
  // linkers write it in one form: version 1, and an address of 4 bytes, relative to its own place.
  constexpr std::array<std::byte, 2> kHeader = {std::byte{1}, std::byte{0x1b}};
  constexpr std::size_t kAddressAt = 4;
  if (!is_64_ || is_swapped_) return {};
  for (const Segment& header : segments_) {
    std::array<std::byte, kAddressAt + 4> bytes = {};
    if (header.type != PT_GNU_EH_FRAME || !ReadAt(header.offset, bytes)) continue;
    if (!std::equal(kHeader.begin(), kHeader.end(), bytes.begin())) continue;
    std::int32_t distance = 0;
    std::memcpy(&distance, bytes.data() + kAddressAt, sizeof distance);
    const std::uint64_t address =
        header.address + kAddressAt + static_cast<std::uint64_t>(std::int64_t{distance});
    for (const Segment& segment : segments_) {
      if (segment.type != PT_LOAD || address < segment.address ||
          address - segment.address >= segment.size) {
        continue;
      }
      // .eh_frame_hdr does not state the size of .eh_frame. The table is therefore read up to the
      // end of the section, or of the segment if no section begins there. CallFrames::Parse stops
      // at the entry of size 0 that ends the table.
      const std::uint64_t skipped = address - segment.address;
      std::uint64_t size = segment.size - skipped;
      for (const Section& section : sections_) {
        if (section.address == address && section.size < size) size = section.size;
      }
      std::vector<std::byte> table(
          static_cast<std::size_t>(size <= CallFrames::kMaxBytes ? size : 0));
      if (!ReadAt(segment.offset + skipped, table)) return {};
      return CallFrames::Parse(std::move(table), address);
    }
  }
  return {};
}

std::optional<std::uint64_t> ElfFile::OnlyCodeAddress() const {
  std::optional<std::uint64_t> address;
  for (const Segment& segment : segments_) {
    if (segment.type != PT_LOAD || (segment.flags & PF_X) == 0) continue;
    if (address) return std::nullopt;
    address = segment.address;
  }
  return address;
}

std::string ElfFile::ReadName(const Section& names, std::uint32_t offset) const {
  if (offset >= names.size || names.offset + offset < names.offset) return "";
  std::array<char, kMaxName> buffer;
  const std::size_t size =
      static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), names.size - offset));
  if (!ReadAt(names.offset + offset, std::as_writable_bytes(std::span(buffer).first(size)))) {
    return "";
  }
  const std::string_view text(buffer.data(), size);
  return std::string(text.substr(0, text.find('\0')));
}

const ElfFile::Section* ElfFile::FindSection(std::string_view name, std::uint64_t max_size) const {
  if (section_names_ >= sections_.size()) return nullptr;
  for (const Section& section : sections_) {
    if (section.type == SHT_PROGBITS && (section.flags & SHF_ALLOC) == 0 &&
        section.size <= max_size && ReadName(sections_[section_names_], section.name) == name) {
      return &section;
    }
  }
  return nullptr;
}

std::optional<DebugLink> ElfFile::ReadDebugLink() const {
  constexpr std::uint64_t kMaxLink = 512;
  const Section* const section = FindSection(".gnu_debuglink", kMaxLink);
  if (section == nullptr || section->size < 8) return std::nullopt;
  std::vector<char> bytes(static_cast<std::size_t>(section->size));
  if (!ReadAt(section->offset, std::as_writable_bytes(std::span(bytes)))) return std::nullopt;
  DebugLink link;
  std::uint32_t crc = 0;
  std::memcpy(&crc, bytes.data() + bytes.size() - sizeof crc, sizeof crc);
  link.crc = Host(crc);
  const std::string_view text(bytes.data(), bytes.size() - sizeof crc);
  link.name = std::string(text.substr(0, text.find('\0')));
  if (link.name.empty() || link.name.find('/') != std::string::npos || link.name == "..") {
    return std::nullopt;
  }
  return link;
}

std::optional<ElfFile> ElfFile::OpenDebugData() const {
  constexpr std::uint64_t kMaxCompressed = std::uint64_t{16} << 20;
  const Section* const section = FindSection(".gnu_debugdata", kMaxCompressed);
  if (section == nullptr) return std::nullopt;
  std::vector<std::byte> bytes(static_cast<std::size_t>(section->size));
  if (!ReadAt(section->offset, bytes)) return std::nullopt;
  base::UniqueFd decompressed = DecompressXz(bytes);
  if (!decompressed.valid()) return std::nullopt;
  absl::StatusOr<ElfFile> file = Open(std::move(decompressed));
  if (!file.ok()) return std::nullopt;
  return *std::move(file);
}

std::optional<std::uint32_t> ElfFile::Checksum() const {
  std::vector<unsigned char> buffer(kChunk);
  uLong crc = crc32_z(0, nullptr, 0);
  for (std::uint64_t offset = 0; offset <= kMaxChecked;) {
    const ssize_t got = pread(fd_.get(), buffer.data(), buffer.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) return static_cast<std::uint32_t>(crc);
    crc = crc32_z(crc, buffer.data(), static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return std::nullopt;
}

// Finds the functions at some addresses in one pass over the symbol tables: ReadSymbols() passes
// each symbol to Add(), then Finish() returns the functions. Keeps for each address the innermost
// function that contains it, and up to kMaxAliases names of that function.
class ElfFile::Lookup {
 public:
  explicit Lookup(std::span<const std::uint64_t> addresses)
      : addresses_(addresses),
        found_(addresses.size()),
        nearest_(addresses.size()),
        steps_left_(kMinSteps + kStepsOfAddress * addresses.size()) {}

  // Adds a function. `end_of_code` is the address after the executable section that contains it; 0
  // if none does. `names` is the string table that contains its name.
  void Add(const Symbol& symbol, std::uint64_t end_of_code, const Section* names) {
    const Alias alias = {names, symbol.name, symbol.binding};
    const std::uint64_t last = symbol.address + (symbol.size - 1);
    if (symbol.size != 0 && last < symbol.address) return;
    AddStart(symbol, end_of_code, alias);
    if (symbol.size == 0) return;
    for (std::size_t i = IndexOf(symbol.address); i < addresses_.size() && addresses_[i] <= last;
         ++i) {
      if (steps_left_ == 0) return SetLimited();
      --steps_left_;
      Offer({symbol.address, last, {}}, alias, &found_[i]);
    }
  }

  // Records that symbols were left out.
  void SetLimited() { is_limited_ = true; }

  // Returns the functions that were found. `read` reads a name from a string table. Must be called
  // once.
  template <typename Read>
  Functions Finish(const Read& read) {
    UseLabels();
    Functions result;
    std::size_t bytes = 0;
    // Candidates of the same function are not always adjacent in found_, because the range of
    // another function may lie within its range.
    absl::flat_hash_map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> indices;
    for (const Candidate& each : found_) {
      result.of_address.push_back(Functions::kNone);
      if (each.aliases.empty()) continue;
      const auto [index, is_new] = indices.try_emplace({each.first, each.last}, Functions::kNone);
      std::string name = is_new ? BestName(each.aliases, read) : "";
      const bool fits = bytes + name.size() <= Functions::kMaxNameBytes;
      if (!fits) is_limited_ = true;
      if (!name.empty() && fits) {
        bytes += name.size();
        index->second = static_cast<std::uint32_t>(result.functions.size());
        result.functions.push_back({each.first, each.last, std::move(name)});
      }
      result.of_address.back() = index->second;
    }
    result.is_limited = is_limited_;
    return result;
  }

 private:
  struct Alias {
    const Section* names = nullptr;
    std::uint32_t name = 0;
    unsigned binding = 0;
  };
  struct Candidate {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::vector<Alias> aliases;
  };
  // The symbol that starts nearest to an address, at or before it, and the start of the next
  // symbol.
  struct Nearest {
    std::uint64_t first = 0;
    std::uint64_t end = 0;  // end address of the symbol's section
    std::uint64_t next = ~std::uint64_t{0};
    bool is_sized = false;
    Alias alias;  // alias.names is null if no symbol starts at or before the address
  };

  // Returns the index of the first address that is not before `address`.
  std::size_t IndexOf(std::uint64_t address) const {
    return static_cast<std::size_t>(
        std::lower_bound(addresses_.begin(), addresses_.end(), address) - addresses_.begin());
  }

  void AddStart(const Symbol& symbol, std::uint64_t end, const Alias& alias) {
    const std::size_t index = IndexOf(symbol.address);
    if (index != 0) {
      std::uint64_t& next = nearest_[index - 1].next;
      next = std::min(next, symbol.address);
    }
    if (index == addresses_.size()) return;
    Nearest& nearest = nearest_[index];
    const bool is_sized = symbol.size != 0;
    if (nearest.alias.names != nullptr &&
        (symbol.address < nearest.first || (symbol.address == nearest.first && !is_sized))) {
      return;
    }
    nearest = {symbol.address, end, nearest.next, is_sized, alias};
  }

  static void Offer(Candidate offered, const Alias& alias, Candidate* best) {
    const bool is_same = offered.first == best->first && offered.last == best->last;
    if (best->aliases.empty() || offered.first > best->first ||
        (offered.first == best->first && offered.last < best->last)) {
      *best = std::move(offered);
    } else if (!is_same || best->aliases.size() >= kMaxAliases) {
      return;
    }
    best->aliases.push_back(alias);
  }

  // For an address that no function with a size contains, uses the nearest symbol at or before the
  // address, if that symbol has no size. Its code ends at the next symbol, or at the end of its
  // section. Functions that are written in assembly may have no size.
  void UseLabels() {
    for (std::size_t i = 1; i < nearest_.size(); ++i) {
      if (nearest_[i].alias.names != nullptr) continue;
      const std::uint64_t next = nearest_[i].next;
      nearest_[i] = nearest_[i - 1];
      nearest_[i].next = next;
    }
    std::uint64_t next = ~std::uint64_t{0};
    for (std::size_t i = nearest_.size(); i-- > 0;) {
      const Nearest& nearest = nearest_[i];
      next = std::min(next, nearest.next);
      if (!found_[i].aliases.empty() || nearest.alias.names == nullptr || nearest.is_sized ||
          addresses_[i] >= nearest.end) {
        continue;
      }
      found_[i] = {nearest.first, std::min(nearest.end, next) - 1, {nearest.alias}};
    }
  }

  // Returns the name with the fewest underscores at its start, because libraries export several
  // names for one function, such as "write" and "__write". Prefers global to local names, and short
  // to long names.
  template <typename Read>
  static std::string BestName(const std::vector<Alias>& aliases, const Read& read) {
    std::string best;
    std::tuple<std::size_t, bool, std::size_t> best_rank;
    for (const Alias& alias : aliases) {
      std::string name = WithoutVersion(read(*alias.names, alias.name));
      if (name.empty()) continue;
      const std::tuple rank(std::min(name.find_first_not_of('_'), name.size()),
                            alias.binding == STB_LOCAL, name.size());
      if (best.empty() || std::tie(rank, name) < std::tie(best_rank, best)) {
        best_rank = rank;
        best = std::move(name);
      }
    }
    return best;
  }

  std::span<const std::uint64_t> addresses_;
  std::vector<Candidate> found_;
  std::vector<Nearest> nearest_;
  std::uint64_t steps_left_;
  bool is_limited_ = false;
};

std::uint64_t ElfFile::EndOfCode(const Symbol& symbol) const {
  if (symbol.section == SHN_UNDEF || symbol.section >= sections_.size()) return 0;
  const Section& section = sections_[symbol.section];
  const std::uint64_t end = section.address + section.size;
  if ((section.flags & SHF_EXECINSTR) == 0 || end < section.address ||
      symbol.address < section.address || symbol.address >= end) {
    return 0;
  }
  return end;
}

void ElfFile::ReadSymbols(const Section& table, Lookup* lookup) const {
  const std::size_t entry_size = is_64_ ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
  if (table.entry_size != entry_size || table.link >= sections_.size()) return;
  const Section* const names = &sections_[table.link];
  const std::uint64_t all = table.size / entry_size;
  if (all > kMaxSymbols) lookup->SetLimited();
  auto left = static_cast<std::size_t>(std::min<std::uint64_t>(all, kMaxSymbols));
  std::vector<std::byte> buffer;
  for (std::uint64_t offset = table.offset; left != 0;) {
    const std::size_t count = std::min(left, kChunk / entry_size);
    buffer.resize(count * entry_size);
    if (!ReadAt(offset, buffer)) return;
    for (std::size_t i = 0; i < count; ++i) {
      Symbol symbol = ParseSymbol(buffer.data() + i * entry_size);
      const bool is_function = symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC;
      // A function that is written in assembly may be a global label without a type. Local labels
      // are skipped: they mark data and the targets of branches.
      const bool is_label = symbol.type == STT_NOTYPE && symbol.binding != STB_LOCAL;
      if (symbol.name == 0 || symbol.section == SHN_UNDEF || (!is_function && !is_label)) continue;
      if (has_thumb_) symbol.address &= ~std::uint64_t{1};
      const std::uint64_t end = EndOfCode(symbol);
      if (is_label) symbol.size = 0;
      if (symbol.size == 0 && end == 0) continue;
      lookup->Add(symbol, end, names);
    }
    left -= count;
    offset += buffer.size();
  }
}

Functions ElfFile::FindFunctions(std::span<const std::uint64_t> addresses) const {
  Lookup lookup(addresses);
  if (symbols_) ReadSymbols(*symbols_, &lookup);
  if (exports_) ReadSymbols(*exports_, &lookup);
  return lookup.Finish(
      [this](const Section& names, std::uint32_t name) { return ReadName(names, name); });
}

Functions Combine(Functions first, Functions second) {
  const auto count = static_cast<std::uint32_t>(first.functions.size());
  for (std::size_t i = 0; i < first.of_address.size(); ++i) {
    std::uint32_t& index = first.of_address[i];
    const std::uint32_t other = second.of_address[i];
    if (other != Functions::kNone &&
        (index == Functions::kNone ||
         second.functions[other].first > first.functions[index].first)) {
      index = count + other;
    }
  }
  std::move(second.functions.begin(), second.functions.end(), std::back_inserter(first.functions));
  first.is_limited |= second.is_limited;
  return first;
}

}  // namespace elf
