#include "tools/collector/unwind/module_cache.h"

#include <sys/stat.h>

#include <utility>

#include "tools/elf/vdso.h"

namespace collector {

std::optional<elf::FrameRules> Module::Find(std::uint64_t offset, std::size_t* budget) const {
  for (const elf::ElfFile::CodeSegment& segment : code) {
    if (offset < segment.offset || offset - segment.offset >= segment.size) continue;
    return frames.Find(offset - segment.offset + segment.address, budget);
  }
  return std::nullopt;
}

const Module* ModuleCache::Use(const FileKey& key) {
  const auto found = modules_.find(key);
  if (found == modules_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  const Module& module = found->second->module;
  return module.frames.size() == 0 ? nullptr : &module;
}

const Module* ModuleCache::Add(const FileKey& key, const elf::ElfFile& file) {
  constexpr std::size_t kOverhead = 512;  // bytes of an entry without its module
  Entry entry{key, {file.FindCode(), file.ReadCallFrames()}, kOverhead};
  entry.bytes +=
      entry.module.frames.bytes() + entry.module.code.size() * sizeof(entry.module.code[0]);
  bytes_ += entry.bytes;
  entries_.push_front(std::move(entry));
  modules_.emplace(key, entries_.begin());
  while (entries_.size() > 1 && (entries_.size() > limits_.modules || bytes_ > limits_.bytes)) {
    bytes_ -= entries_.back().bytes;
    modules_.erase(entries_.back().key);
    entries_.pop_back();
  }
  return Use(key);
}

const Module* ModuleCache::Find(std::uint32_t pid, const CodeMapping& mapping) {
  if (const auto known = known_.find(mapping.id); known != known_.end()) {
    const auto& [key, opener] = known->second;
    // A file that could not be opened for one process may be accessible through another process.
    if (!key && opener == pid) return nullptr;
    if (key && modules_.contains(*key)) return Use(*key);
  }
  if (known_.size() >= kMaxMappings) known_.clear();
  Known& known = known_[mapping.id];
  known = {std::nullopt, pid};
  const std::optional<elf::ElfFile> file = files_.Open(pid, mapping);
  struct stat facts = {};
  if (!file || fstat(file->fd(), &facts) != 0) return nullptr;
  // All copies of the vdso share one key, because each copy has its own inode.
  const bool is_vdso = mapping.file->path == elf::kVdso;
  known.key = is_vdso
                  ? FileKey{}
                  : FileKey{facts.st_dev, facts.st_ino, static_cast<std::uint64_t>(facts.st_size),
                            static_cast<std::uint64_t>(facts.st_ctim.tv_sec),
                            static_cast<std::uint64_t>(facts.st_ctim.tv_nsec)};
  const FileKey key = *known.key;
  return modules_.contains(key) ? Use(key) : Add(key, *file);
}

}  // namespace collector
