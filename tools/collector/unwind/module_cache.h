// Keeps the tables of call frames of the files that processes execute.
#ifndef TOOLS_COLLECTOR_UNWIND_MODULE_CACHE_H_
#define TOOLS_COLLECTOR_UNWIND_MODULE_CACHE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tools/collector/identity/code_tracker.h"
#include "tools/collector/unwind/mapped_files.h"
#include "tools/elf/call_frames.h"
#include "tools/elf/elf_file.h"

namespace collector {

// A file that processes execute: where its code is, and its table of call frames.
struct Module {
  std::vector<elf::ElfFile::CodeSegment> code;
  elf::CallFrames frames;

  // Returns the rules that find the caller of the code at `offset` in the file; no value if there
  // are none. `*budget` is that of elf::CallFrames::Find.
  std::optional<elf::FrameRules> Find(std::uint64_t offset, std::size_t* budget) const;
};

// The modules of all processes. The least recently used modules are dropped above the limits, and
// read again when they are needed. Nothing of a file becomes a part of a trace except the addresses
// of frames. Not thread-safe, except refused().
class ModuleCache {
 public:
  struct Limits {
    std::size_t modules = 256;
    std::size_t bytes = std::size_t{128} << 20;  // estimated memory of all modules
  };

  explicit ModuleCache(const Limits& limits) : limits_(limits) {}
  ModuleCache() : ModuleCache(Limits()) {}

  // Returns the module of a mapping of the process; null if its file cannot be read or has no table
  // of call frames. The pointer is valid until the next call.
  const Module* Find(std::uint32_t pid, const CodeMapping& mapping);

  std::size_t size() const { return modules_.size(); }
  std::size_t bytes() const { return bytes_; }
  // Number of files that were not read because of their file systems (MappedFiles::refused). Any
  // thread may call this function.
  std::size_t refused() const { return files_.refused(); }

 private:
  // Identifies the contents of a file. The build id is not sufficient, because any user can make a
  // file with the build id of another file.
  using FileKey = std::array<std::uint64_t, 5>;
  // Maximum number of mappings whose files are remembered. Above it, all are forgotten.
  static constexpr std::size_t kMaxMappings = 16384;
  struct Entry {
    FileKey key = {};
    Module module;
    std::size_t bytes = 0;
  };
  // Holds the key of a mapping's file, and the process for which the cache opened the file or tried
  // to open it. `key` has no value if the file could not be opened.
  struct Known {
    std::optional<FileKey> key;
    std::uint32_t pid = 0;
  };

  const Module* Use(const FileKey& key);
  const Module* Add(const FileKey& key, const elf::ElfFile& file);

  const Limits limits_;
  MappedFiles files_;
  std::list<Entry> entries_;  // the most recently used entry is the first
  absl::flat_hash_map<FileKey, std::list<Entry>::iterator> modules_;
  absl::flat_hash_map<std::uint64_t, Known> known_;  // by id of the mapping
  std::size_t bytes_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_UNWIND_MODULE_CACHE_H_
