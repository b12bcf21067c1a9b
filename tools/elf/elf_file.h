// Reads from an ELF file what is needed to name functions: its segments, its build id, and the
// functions at some addresses. The file is not mapped, run or loaded, and may be hostile or change
// while it is read. Every offset is checked, and limits bound the memory and the time.
#ifndef TOOLS_ELF_ELF_FILE_H_
#define TOOLS_ELF_ELF_FILE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/base/prompt_files.h"
#include "tools/base/unique_fd.h"
#include "tools/elf/call_frames.h"

namespace elf {

// Maximum bytes of a build id, and of a name. A longer build id is ignored, and a longer name is
// cut.
inline constexpr std::size_t kMaxBuildId = 64;
inline constexpr std::size_t kMaxName = 4096;

// A function and the addresses of its code.
struct Function {
  std::uint64_t first = 0;
  std::uint64_t last = 0;  // address of the last byte
  std::string name;        // as in the file: mangled
};

// The functions that contain some addresses.
struct Functions {
  // Maximum bytes of all names together. A function whose name would exceed this limit is left out,
  // and its addresses have kNone in of_address.
  static constexpr std::size_t kMaxNameBytes = std::size_t{64} << 20;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  std::vector<Function> functions;        // each occurs once, or once per file after Combine
  std::vector<std::uint32_t> of_address;  // for each address, the index in `functions`, or kNone
  // Whether a limit was reached, so that functions may be missing.
  bool is_limited = false;
};
// Merges the results of FindFunctions for two files, which must be for the same `addresses`. If
// both files have a function at an address, the result has the function that starts later.
Functions Combine(Functions first, Functions second);

// The name and checksum of the file with the debug information of a program.
struct DebugLink {
  std::string name;  // without a folder
  std::uint32_t crc = 0;
};

// An ELF file of 32 or 64 bits, in either byte order. Not thread-safe.
class ElfFile {
 public:
  // Opens a file. Does not open devices and FIFOs. Returns the error of open(2), and
  // InvalidArgument if the file is not a regular file or not a program or shared object. Errors do
  // not contain the path. Unless `prompt_files` is null, fails with FailedPrecondition if the path
  // leads to a file system that may wait for a user's process.
  static absl::StatusOr<ElfFile> Open(const std::string& path,
                                      base::PromptFiles* prompt_files = nullptr);
  static absl::StatusOr<ElfFile> Open(base::UniqueFd fd);

  // Returns the bytes of the build id; empty if there is none.
  const std::string& build_id() const { return build_id_; }
  int fd() const { return fd_.get(); }
  // Returns the path that Open() was called with; empty if it was called with a descriptor.
  const std::string& path() const { return path_; }

  // Returns the virtual address (as in symbols) of the byte at `offset` of the file; no value if
  // the byte is not in an executable segment.
  std::optional<std::uint64_t> AddressAt(std::uint64_t offset) const;
  // A part of the file that is loaded as code: its position in the file, its size in bytes and its
  // virtual address.
  struct CodeSegment {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint64_t address = 0;
  };
  std::vector<CodeSegment> FindCode() const;
  // Returns the first address of the only executable segment; no value if there is none, or if
  // there are several. A file of debug information has the addresses of the program that it
  // describes, but not its offsets.
  std::optional<std::uint64_t> OnlyCodeAddress() const;

  // Returns the table of call frames (.eh_frame), which the unwinding of stacks needs. The table is
  // empty if the file has none, is for machines with another size of addresses or byte order, or if
  // the table is larger than CallFrames::kMaxBytes.
  CallFrames ReadCallFrames() const;

  // Returns the functions that contain `addresses`, which must be sorted and unique. Checks at most
  // 2^20 pairs of a symbol and an address in it, and 64 more for each address. Only a file whose
  // symbols overlap each other many times reaches this limit; Functions::is_limited is then true.
  Functions FindFunctions(std::span<const std::uint64_t> addresses) const;
  // Returns whether the file has a complete table of symbols, not only that of its exports.
  bool has_symbols() const { return symbols_.has_value(); }
  std::optional<DebugLink> ReadDebugLink() const;
  // Returns the ELF file in the section .gnu_debugdata, which has the functions that a stripped
  // file does not export. Returns no value if there is none, or if it is damaged or too large.
  std::optional<ElfFile> OpenDebugData() const;
  // Returns the CRC-32 of the whole file, as in DebugLink::crc; no value if the file is larger than
  // 2 GiB or cannot be read.
  std::optional<std::uint32_t> Checksum() const;

 private:
  struct Segment {
    std::uint32_t type = 0;
    std::uint32_t flags = 0;
    std::uint64_t offset = 0;
    std::uint64_t address = 0;
    std::uint64_t size = 0;  // bytes in the file
    std::uint64_t align = 0;
  };
  struct Section {
    std::uint32_t name = 0;
    std::uint32_t type = 0;
    std::uint64_t flags = 0;
    std::uint64_t address = 0;
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint32_t link = 0;
    std::uint64_t entry_size = 0;
  };
  struct Symbol {
    std::uint32_t name = 0;
    unsigned type = 0;
    unsigned binding = 0;
    std::uint32_t section = 0;
    std::uint64_t address = 0;
    std::uint64_t size = 0;
  };
  class Lookup;

  explicit ElfFile(base::UniqueFd fd) : fd_(std::move(fd)) {}
  absl::Status ReadHeader();
  void ReadSegments(std::uint64_t offset, std::size_t count, std::size_t entry_size);
  void ReadSections(std::uint64_t offset, std::size_t count, std::size_t entry_size);
  void ReadBuildId();
  // Stores the build id that the notes at `offset` contain, if there is one.
  void ReadNotes(std::uint64_t offset, std::uint64_t size, std::uint64_t align);
  // Returns the section with this name that is not loaded; null if there is none, or if it has more
  // than `max_size` bytes.
  const Section* FindSection(std::string_view name, std::uint64_t max_size) const;
  // Fills `buffer` from the file. Returns false if the file has fewer bytes, or cannot be read.
  bool ReadAt(std::uint64_t offset, std::span<std::byte> buffer) const;
  // Reads the name at `offset` of the string table `names`. The name ends at a NUL, after kMaxName
  // bytes, or at the end of the table.
  std::string ReadName(const Section& names, std::uint32_t offset) const;
  void ReadSymbols(const Section& table, Lookup* lookup) const;
  // Returns the address after the executable section that contains the symbol; 0 if no such section
  // contains it.
  std::uint64_t EndOfCode(const Symbol& symbol) const;

  template <typename T>
  T Host(T value) const;
  Segment ParseSegment(const std::byte* from) const;
  Section ParseSection(const std::byte* from) const;
  Symbol ParseSymbol(const std::byte* from) const;

  base::UniqueFd fd_;
  std::string path_;
  bool is_64_ = false;
  bool is_swapped_ = false;  // the byte order of the file is not that of this machine
  bool has_thumb_ = false;   // Arm: bit 0 of a function's address is a flag and must be cleared
  std::vector<Segment> segments_;
  std::vector<Section> sections_;
  std::optional<Section> symbols_;
  std::optional<Section> exports_;
  std::uint32_t section_names_ = 0;  // index of the section with the names of sections
  std::string build_id_;
};

}  // namespace elf

#endif  // TOOLS_ELF_ELF_FILE_H_
