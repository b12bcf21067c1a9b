#include "tools/eventheader/elf_catalog.h"

#include <fcntl.h>
#include <gelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "eventheader/decoder.h"
#include "eventheader/internal/static_objects.h"
#include "eventheader/tracepoint_name.h"
#include "tools/base/status_macros.h"
#include "tools/base/unique_fd.h"

namespace tools {
namespace {

constexpr char kNoteOwner[] = "EventHeader";
constexpr std::uint32_t kNoteType = 1;

// The first members of eh_static_set, eh_static_provider and eh_static_event, as a 64-bit machine
// stores them. The notes of a file lead to such objects.
struct SetImage {
  std::uint64_t mask;
  std::uint64_t provider;
  std::uint64_t keyword;
  std::int32_t status;
  std::uint8_t level;
};
struct ProviderImage {
  std::uint64_t enabled;
  std::uint64_t transport;
  std::uint64_t name;
  std::uint64_t name_size;
  std::uint64_t group;
  std::uint64_t group_size;
};
#ifdef __LP64__
static_assert(offsetof(SetImage, provider) == offsetof(eh_static_set, provider));
static_assert(offsetof(SetImage, keyword) == offsetof(eh_static_set, keyword));
static_assert(offsetof(SetImage, level) == offsetof(eh_static_set, level));
static_assert(offsetof(ProviderImage, name) == offsetof(eh_static_provider, name));
static_assert(offsetof(ProviderImage, name_size) == offsetof(eh_static_provider, name_size));
static_assert(offsetof(ProviderImage, group) == offsetof(eh_static_provider, group));
static_assert(offsetof(ProviderImage, group_size) == offsetof(eh_static_provider, group_size));
#endif
using EventImage = eh_static_event;

struct EndElf {
  void operator()(Elf* elf) const { elf_end(elf); }
};

// The value of a pointer that a relocation sets when the program is loaded: an address in this
// file, or a symbol that another file defines.
struct Target {
  std::uint64_t address = 0;
  std::string symbol;
};
using Targets = absl::flat_hash_map<std::uint64_t, Target>;  // by the address of the pointer

// An ELF file and the addresses of its segments.
class Image {
 public:
  static absl::StatusOr<Image> Open(const std::string& path);

  // Calls f(address of the descriptor, its bytes) for each note of an event catalogue.
  template <typename F>
  void ForEachNote(F f);
  // Copies the bytes at a virtual address from the file. Returns false if the file does not contain
  // them.
  bool Read(std::uint64_t address, void* to, std::size_t size) const;
  // Sets the target of each element of `pointers` that a relocation changes.
  void FindTargets(Targets* pointers);
  // Returns the value of the pointer at an address: its target if it has a relocation, else the
  // value in the file. Fails with NotFound if only the running program knows the value.
  absl::StatusOr<std::uint64_t> Pointer(const Targets& targets, std::uint64_t address) const;

 private:
  struct Segment {
    std::uint64_t address;
    std::uint64_t offset;
    std::uint64_t size;
  };
  struct RelocationTypes {
    std::uint64_t relative;
    std::uint64_t absolute;
  };

  // Returns whether `size` more bytes may be read into memory. The total is limited because the
  // parts of a hostile file may overlap.
  bool Spend(std::uint64_t size) {
    if (size > left_) return false;
    left_ -= size;
    return true;
  }

  base::UniqueFd file_;
  std::unique_ptr<Elf, EndElf> elf_;
  std::uint64_t left_ = 0;
  RelocationTypes types_{};
  std::vector<Segment> loaded_;
  std::vector<Segment> notes_;
};

absl::StatusOr<Image> Image::Open(const std::string& path) {
  Image image;
  // O_NONBLOCK prevents blocking on a FIFO, because a file of a package may be a FIFO.
  image.file_ = base::UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!image.file_.valid() || fstat(image.file_.get(), &status) != 0) {
    return absl::ErrnoToStatus(errno, path);
  }
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not a regular file; name a program or shared object"));
  }
  // Limits the bytes that Spend() allows to three times the size of the file: once for notes, twice
  // for relocations and symbols. The same symbol table counts again for each section of
  // relocations.
  image.left_ = 3 * static_cast<std::uint64_t>(status.st_size);
  elf_version(EV_CURRENT);
  image.elf_.reset(elf_begin(image.file_.get(), ELF_C_READ, nullptr));
  GElf_Ehdr header{};
  std::size_t segments = 0;
  if (image.elf_ == nullptr || elf_kind(image.elf_.get()) != ELF_K_ELF ||
      gelf_getehdr(image.elf_.get(), &header) == nullptr ||
      (header.e_type != ET_EXEC && header.e_type != ET_DYN) ||
      elf_getphdrnum(image.elf_.get(), &segments) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not a program or shared object in ELF format; name one"));
  }
  if (header.e_machine == EM_X86_64) {
    image.types_ = {R_X86_64_RELATIVE, R_X86_64_64};
  } else if (header.e_machine == EM_AARCH64) {
    image.types_ = {R_AARCH64_RELATIVE, R_AARCH64_ABS64};
  }
  if (image.types_.relative == 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return absl::UnimplementedError(
        absl::StrCat(path,
                     ": only programs for amd64 and arm64 have catalogues; run the program, "
                     "and use 'eventheader list'"));
  }
  for (std::size_t i = 0; i < segments; ++i) {
    GElf_Phdr segment{};
    if (gelf_getphdr(image.elf_.get(), static_cast<int>(i), &segment) == nullptr) continue;
    const Segment found = {segment.p_vaddr, segment.p_offset, segment.p_filesz};
    if (segment.p_type == PT_LOAD) image.loaded_.push_back(found);
    // All notes are read as if they were aligned to 4 bytes, whatever the alignment of the segment.
    // mold puts all notes into one segment, which gets the alignment 8 of .note.gnu.property. The
    // size of that note is a multiple of 8, so the next note begins where it is expected.
    if (segment.p_type == PT_NOTE) image.notes_.push_back(found);
  }
  return image;
}

template <typename F>
void Image::ForEachNote(F f) {
  for (const Segment& segment : notes_) {
    if (!Spend(segment.size)) continue;
    Elf_Data* const data =
        elf_getdata_rawchunk(elf_.get(), static_cast<std::int64_t>(segment.offset),
                             static_cast<std::size_t>(segment.size), ELF_T_NHDR);
    if (data == nullptr) continue;
    GElf_Nhdr note{};
    std::size_t name = 0;
    std::size_t descriptor = 0;
    for (std::size_t at = 0; (at = gelf_getnote(data, at, &note, &name, &descriptor)) != 0;) {
      const auto* const bytes = static_cast<const char*>(data->d_buf);
      if (note.n_type == kNoteType && note.n_namesz == sizeof kNoteOwner &&
          std::memcmp(bytes + name, kNoteOwner, sizeof kNoteOwner) == 0) {
        f(segment.address + descriptor, std::string_view(bytes + descriptor, note.n_descsz));
      }
    }
  }
}

bool Image::Read(std::uint64_t address, void* to, std::size_t size) const {
  for (const Segment& segment : loaded_) {
    const std::uint64_t begin = address - segment.address;
    if (address < segment.address || begin > segment.size || size > segment.size - begin) continue;
    const auto read = pread(file_.get(), to, size, static_cast<off_t>(segment.offset + begin));
    return read >= 0 && static_cast<std::size_t>(read) == size;
  }
  return false;
}

void Image::FindTargets(Targets* pointers) {
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf_.get(), section)) != nullptr;) {
    GElf_Shdr header{};
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_RELA ||
        (header.sh_flags & SHF_ALLOC) == 0 || !Spend(header.sh_size)) {
      continue;
    }
    Elf_Data* const data = elf_getdata(section, nullptr);
    if (data == nullptr) continue;
    Elf_Scn* const symbol_section = elf_getscn(elf_.get(), header.sh_link);
    GElf_Shdr symbol_header{};
    Elf_Data* symbols = nullptr;
    if (symbol_section != nullptr && gelf_getshdr(symbol_section, &symbol_header) != nullptr &&
        Spend(symbol_header.sh_size)) {
      symbols = elf_getdata(symbol_section, nullptr);
    }
    GElf_Rela relocation{};
    for (int i = 0; gelf_getrela(data, i, &relocation) != nullptr; ++i) {
      const auto pointer = pointers->find(relocation.r_offset);
      if (pointer == pointers->end()) continue;
      Target& target = pointer->second;
      if (GELF_R_TYPE(relocation.r_info) == types_.relative) {
        target.address = static_cast<std::uint64_t>(relocation.r_addend);
      } else if (GELF_R_TYPE(relocation.r_info) == types_.absolute) {
        GElf_Sym symbol{};
        if (symbols == nullptr ||
            gelf_getsym(symbols, static_cast<int>(GELF_R_SYM(relocation.r_info)), &symbol) ==
                nullptr) {
          continue;
        }
        if (symbol.st_shndx != SHN_UNDEF) {
          target.address = symbol.st_value + static_cast<std::uint64_t>(relocation.r_addend);
        } else {
          const char* const name = elf_strptr(elf_.get(), symbol_header.sh_link, symbol.st_name);
          target.symbol = name != nullptr ? name : "?";
        }
      }
    }
  }
}

absl::StatusOr<std::uint64_t> Image::Pointer(const Targets& targets, std::uint64_t address) const {
  if (const auto found = targets.find(address); found != targets.end()) {
    if (!found->second.symbol.empty()) {
      return absl::NotFoundError(
          absl::StrCat("the provider ", found->second.symbol,
                       " of an event set is in another shared object; run the program, and use "
                       "'eventheader list'"));
    }
    if (found->second.address != 0) return found->second.address;
  }
  std::uint64_t value = 0;
  if (!Read(address, &value, sizeof value) || value == 0) {
    return absl::NotFoundError(
        "the provider of an event set is known only while the program runs; run it, and use "
        "'eventheader list'");
  }
  return value;
}

// The two addresses in an ELF note: of an event set, and of one of its events. In a note for the
// set itself, the second address is 0.
using Note = std::pair<std::uint64_t, std::uint64_t>;

absl::StatusOr<std::set<Note>> ReadNotes(Image* image, const std::string& path) {
  std::set<Note> notes;
  bool too_many = false;
  image->ForEachNote([&](std::uint64_t address, std::string_view descriptor) {
    std::uint64_t offsets[2];
    if (descriptor.size() != sizeof offsets || too_many) return;
    std::memcpy(offsets, descriptor.data(), sizeof offsets);
    notes.insert({address + offsets[0], offsets[1] == 0 ? 0 : address + 8 + offsets[1]});
    too_many = notes.size() > 2 * kMaxCatalogEvents;
  });
  if (too_many) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "%s: its ELF notes describe more than %d event sets and events, the maximum; run the "
        "program, and use 'eventheader list'",
        path, 2 * kMaxCatalogEvents));
  }
  return notes;
}

// Determines the names of the tracepoints of event sets.
class Namer {
 public:
  Namer(Image* image, const std::set<Note>& notes) : image_(*image) {
    for (const auto& [set, event] : notes) {
      targets_.try_emplace(set + offsetof(SetImage, provider));
    }
    image->FindTargets(&targets_);
    Targets texts;
    for (const auto& [pointer, target] : targets_) {
      const absl::StatusOr<std::uint64_t> provider = image_.Pointer(targets_, pointer);
      if (!provider.ok()) continue;
      texts.try_emplace(*provider + offsetof(ProviderImage, name));
      texts.try_emplace(*provider + offsetof(ProviderImage, group));
    }
    image->FindTargets(&texts);
    targets_.insert(texts.begin(), texts.end());
  }

  absl::StatusOr<std::string> TracepointOf(std::uint64_t address) const;

 private:
  absl::StatusOr<std::string> Text(std::uint64_t pointer, std::uint64_t size,
                                   std::size_t limit) const;

  const Image& image_;
  Targets targets_;
};

absl::StatusOr<std::string> Namer::Text(std::uint64_t pointer, std::uint64_t size,
                                        std::size_t limit) const {
  if (size == 0) return std::string();
  ASSIGN_OR_RETURN(const std::uint64_t address, image_.Pointer(targets_, pointer));
  std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(size, limit + 1)), '\0');
  if (!image_.Read(address, text.data(), text.size())) {
    return absl::NotFoundError(
        "the file does not contain the name of one of its providers, which may be in another "
        "library or set at run time; while the program runs, 'eventheader list' shows its "
        "tracepoints");
  }
  return text;
}

absl::StatusOr<std::string> Namer::TracepointOf(std::uint64_t address) const {
  SetImage set{};
  if (!image_.Read(address, &set, sizeof set)) {
    return absl::NotFoundError(
        "a note refers to an event set that is not in the file, which may be damaged; install the "
        "program again");
  }
  ASSIGN_OR_RETURN(const std::uint64_t at,
                   image_.Pointer(targets_, address + offsetof(SetImage, provider)));
  ProviderImage provider{};
  if (!image_.Read(at, &provider, sizeof provider)) {
    return absl::NotFoundError(
        "an event set refers to a provider that is not in the file, which may be damaged; install "
        "the program again");
  }
  ASSIGN_OR_RETURN(const std::string name, Text(at + offsetof(ProviderImage, name),
                                                provider.name_size, eh::kMaxTracepointName));
  ASSIGN_OR_RETURN(const std::string group, Text(at + offsetof(ProviderImage, group),
                                                 provider.group_size, eh::kMaxTracepointName));
  const std::string options = group.empty() ? "" : absl::StrCat("G", group);
  char text[eh::kMaxTracepointName + 1];
  const std::size_t size = eh::FormatTracepointName({name, set.level, set.keyword, options}, text);
  if (size == 0)
    return absl::InvalidArgumentError(
        absl::StrCat("an event set has an invalid provider '", name, "', group '", group,
                     "' or level ", set.level, ", or the name of its tracepoint is longer than ",
                     eh::kMaxTracepointName, " characters; correct it in the program"));
  return std::string(text, size);
}

absl::StatusOr<CatalogEvent> ReadEvent(const Image& image, std::uint64_t address,
                                       const std::string& tracepoint) {
  EventImage image_of{};
  CatalogEvent event;
  if (image.Read(address, &image_of, sizeof image_of)) {
    event.head.resize(std::min<std::size_t>(image_of.head_size, eh::kMaxEventSize));
  }
  eh::EventView view{};
  if (event.head.empty() ||
      !image.Read(address + sizeof image_of, event.head.data(), event.head.size())) {
    return absl::NotFoundError(
        "a note refers to an event that is not in the file, which may be damaged; install the "
        "program again");
  }
  if (const eh::ParseError error = eh::ParseEvent(event.head, &view);
      error != eh::ParseError::kNone) {
    return absl::InvalidArgumentError(absl::StrCat("an event: ", eh::ParseErrorText(error)));
  }
  eh::MetadataReader metadata(view.metadata, view.little_endian);
  for (eh::FieldDefinition field; metadata.Next(&field);) {
  }
  if (metadata.error() != eh::ParseError::kNone) {
    return absl::InvalidArgumentError(
        absl::StrCat("an event: ", eh::ParseErrorText(metadata.error())));
  }
  event.tracepoint = tracepoint;
  event.name = std::string(metadata.event_name());
  return event;
}

}  // namespace

absl::StatusOr<Catalog> ReadCatalog(const std::string& path) {
  ASSIGN_OR_RETURN(Image image, Image::Open(path));
  ASSIGN_OR_RETURN(std::set<Note> notes, ReadNotes(&image, path));
  Catalog catalog;
  if (notes.empty()) return catalog;

  const Namer namer(&image, notes);
  std::set<CatalogEvent> events;
  std::set<std::string> tracepoints;
  std::set<std::string> unclear;
  for (const auto& [set, event_address] : notes) {
    absl::StatusOr<std::string> tracepoint = namer.TracepointOf(set);
    if (!tracepoint.ok()) {
      unclear.insert(std::string(tracepoint.status().message()));
      continue;
    }
    tracepoints.insert(*tracepoint);
    if (event_address == 0) continue;
    absl::StatusOr<CatalogEvent> event = ReadEvent(image, event_address, *tracepoint);
    if (event.ok()) {
      events.insert(*std::move(event));
    } else {
      unclear.insert(absl::StrCat(*tracepoint, ": ", event.status().message()));
    }
    if (events.size() > kMaxCatalogEvents) {
      return absl::ResourceExhaustedError(absl::StrFormat(
          "%s: it has more than %d kinds of events, the maximum; run the program, and use "
          "'eventheader list'",
          path, kMaxCatalogEvents));
    }
  }
  catalog.tracepoints.assign(tracepoints.begin(), tracepoints.end());
  while (!events.empty()) {
    catalog.events.push_back(std::move(events.extract(events.begin()).value()));
  }
  catalog.unclear.assign(unclear.begin(), unclear.end());
  return catalog;
}

}  // namespace tools
