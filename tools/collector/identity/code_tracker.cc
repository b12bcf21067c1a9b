#include "tools/collector/identity/code_tracker.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "tools/base/byte_text.h"
#include "tools/base/read_file.h"
#include "tools/collector/identity/proc_files.h"

namespace collector {
namespace {

constexpr char kAnonymous[] = "//anon";  // the kernel's name in records for memory without a file
constexpr char kDeleted[] = " (deleted)";
constexpr char kMemfd[] = "/memfd:";  // a memfd's path always ends with " (deleted)"
constexpr std::size_t kMaxMapsBytes = 32 << 20;

absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }

// Removes the text up to the next `end`, and `end` itself, from `*line`. Returns the text.
std::string_view TakeUntil(char end, std::string_view* line) {
  const std::size_t size = std::min(line->find(end), line->size());
  const std::string_view taken = line->substr(0, size);
  line->remove_prefix(std::min(size + 1, line->size()));
  return taken;
}

}  // namespace

std::vector<ProcMapping> ParseProcMaps(std::string_view text) {
  std::vector<ProcMapping> mappings;
  while (!text.empty()) {
    // The line is "7f12a0-7f12b0 r-xp 00001000 08:01 123   /usr/lib/libc.so.6".
    std::string_view line = TakeUntil('\n', &text);
    ProcMapping mapping;
    std::uint64_t end = 0;
    const std::string_view first = TakeUntil('-', &line);
    const std::string_view last = TakeUntil(' ', &line);
    const std::string_view protection = TakeUntil(' ', &line);
    const std::string_view offset = TakeUntil(' ', &line);
    TakeUntil(' ', &line);  // device
    TakeUntil(' ', &line);  // inode
    if (protection.size() < 3 || protection[2] != 'x' ||
        !absl::SimpleHexAtoi(ToAbsl(first), &mapping.first) ||
        !absl::SimpleHexAtoi(ToAbsl(last), &end) || end <= mapping.first ||
        !absl::SimpleHexAtoi(ToAbsl(offset), &mapping.offset)) {
      continue;
    }
    mapping.last = end - 1;
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    mapping.path = line.empty() ? std::string_view(kAnonymous) : WithoutDeleted(line);
    mapping.is_deleted = mapping.path.size() < line.size();
    mappings.push_back(mapping);
  }
  return mappings;
}

// The first id is the current time in ns, so that captures have different ids and their files can
// be merged. A capture would have to add more than one mapping each nanosecond to reach the ids of
// a later capture.
CodeTracker::CodeTracker(KernelSymbols kernel_symbols)
    : kernel_symbols_(std::move(kernel_symbols)),
      next_id_(static_cast<std::uint64_t>(absl::ToUnixNanos(absl::Now()))) {}

std::size_t CodeTracker::SizeOf(const CodeMapping& mapping) {
  return 192 + mapping.file->path.size();
}

std::shared_ptr<const CodeFile> CodeTracker::FileOf(std::string_view path,
                                                    std::string_view build_id) {
  if (last_file_ == nullptr || last_file_->path != path || last_file_->build_id != build_id) {
    last_file_ =
        std::make_shared<const CodeFile>(CodeFile{std::string(path), std::string(build_id)});
  }
  return last_file_;
}

void CodeTracker::LoadFromProc(std::uint64_t timestamp) {
  unreadable_.clear();
  BuildIdQuery build_ids;
  for (const std::uint32_t pid : ProcPids()) LoadProcess(pid, timestamp, &build_ids);
}

void CodeTracker::LoadProcess(std::uint32_t pid, std::uint64_t timestamp, BuildIdQuery* build_ids) {
  const absl::StatusOr<std::string> text =
      base::ReadFile(absl::StrCat("/proc/", pid, "/maps"), kMaxMapsBytes);
  if (absl::IsPermissionDenied(text.status())) unreadable_.push_back(pid);
  const std::vector<ProcMapping> found = ParseProcMaps(text.ok() ? *text : std::string_view());
  BeginIfEnded(pid, timestamp);
  build_ids->SelectProcess(pid);
  // Skips mappings that are known and have not changed, so that they keep their ids.
  Mappings* mappings = nullptr;
  for (const ProcMapping& line : found) {
    const auto& now = processes_[pid].programs.back().mappings->now;
    const auto same = now.find(line.first);
    if (same != now.end() && same->second.last == line.last && same->second.offset == line.offset &&
        WithoutDeleted(same->second.file->path) == line.path) {
      continue;
    }
    if (mappings == nullptr) mappings = Change(pid, timestamp);
    std::string path(line.path);
    if (line.is_deleted && !path.starts_with(kMemfd)) path += kDeleted;
    Add({line.first, line.last, line.offset, timestamp, 0,
         FileOf(path, build_ids->BuildIdAt(line.first))},
        mappings);
  }
}

void CodeTracker::Begin(std::uint32_t pid, std::uint64_t timestamp,
                        std::shared_ptr<Mappings> mappings) {
  Process& process = processes_[pid];
  if (!process.programs.empty()) {
    Program& last = process.programs.back();
    last.until = std::min(last.until, timestamp);
    any_past_ = true;
  }
  process.programs.push_back({timestamp, kNever, std::move(mappings)});
  process.changes = ++changes_;
}

void CodeTracker::BeginIfEnded(std::uint32_t pid, std::uint64_t timestamp) {
  const auto known = processes_.find(pid);
  if (known != processes_.end() && known->second.programs.back().until == kNever) return;
  Begin(pid, timestamp, std::make_shared<Mappings>());
}

void CodeTracker::Created(std::uint32_t pid, std::uint32_t parent, std::uint64_t timestamp) {
  const auto found = processes_.find(parent);
  Begin(pid, timestamp,
        found == processes_.end() ? std::make_shared<Mappings>()
                                  : found->second.programs.back().mappings);
}

void CodeTracker::Executes(std::uint32_t pid, std::uint64_t timestamp) {
  Begin(pid, timestamp, std::make_shared<Mappings>());
}

void CodeTracker::Ended(std::uint32_t pid, std::uint64_t timestamp) {
  const auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  Program& last = process->second.programs.back();
  last.until = std::min(last.until, timestamp);
  any_past_ = true;
}

CodeTracker::Mappings* CodeTracker::Change(std::uint32_t pid, std::uint64_t timestamp) {
  BeginIfEnded(pid, timestamp);
  Process& process = processes_[pid];
  process.changes = ++changes_;
  std::shared_ptr<Mappings>& mappings = process.programs.back().mappings;
  if (mappings.use_count() > 1) {
    mappings = std::make_shared<Mappings>(*mappings);
    for (const auto& [first, mapping] : mappings->now) bytes_ += SizeOf(mapping);
  }
  mappings->snapshot = nullptr;
  return mappings.get();
}

void CodeTracker::Maps(const MappingRecord& record, std::uint64_t timestamp) {
  if (record.size == 0 || record.address + (record.size - 1) < record.address) return;
  Add({record.address, record.address + (record.size - 1), record.offset, timestamp, 0,
       FileOf(WithoutDeleted(record.path), base::AsText(record.build_id))},
      Change(record.pid, timestamp));
}

void CodeTracker::Add(CodeMapping mapping, Mappings* mappings) {
  MakeRoom(mapping, mappings);
  if (mappings->now.size() >= kMaxMappings || bytes_ + SizeOf(mapping) > kMaxBytes) return;
  if (mapping.id == 0) mapping.id = MakeId();
  bytes_ += SizeOf(mapping);
  const std::uint64_t first = mapping.first;
  mappings->now.insert_or_assign(first, std::move(mapping));
}

void CodeTracker::MakeRoom(const CodeMapping& added, Mappings* mappings) {
  auto next = mappings->now.upper_bound(added.first);
  if (next != mappings->now.begin() && std::prev(next)->second.last >= added.first) --next;
  while (next != mappings->now.end() && next->first <= added.last) {
    CodeMapping old = std::move(next->second);
    next = mappings->now.erase(next);
    const auto keep = [&](std::uint64_t first, std::uint64_t last) {
      CodeMapping rest = old;
      rest.offset += first - old.first;
      rest.first = first;
      rest.last = last;
      rest.from = added.from;
      rest.id = MakeId();
      bytes_ += SizeOf(rest);
      mappings->now.insert_or_assign(first, std::move(rest));
    };
    if (old.first < added.first) keep(old.first, added.first - 1);
    if (old.last > added.last) keep(added.last + 1, old.last);
    if (mappings->past.size() < kMaxPast) {
      mappings->past.push_back({std::move(old), added.from});
    }
    any_past_ = true;
  }
}

void CodeTracker::DropEnded(std::uint64_t timestamp) {
  if (!std::exchange(any_past_, false)) return;
  absl::erase_if(processes_, [this, timestamp](auto& entry) {
    std::vector<Program>& programs = entry.second.programs;
    std::erase_if(programs, [timestamp](const Program& each) { return each.until <= timestamp; });
    for (Program& program : programs) {
      any_past_ = any_past_ || program.until != kNever;
      std::vector<Past>& past = program.mappings->past;
      std::erase_if(past, [timestamp](const Past& each) { return each.until <= timestamp; });
      any_past_ = any_past_ || !past.empty();
    }
    return programs.empty();
  });
  CountBytes();
}

void CodeTracker::CountBytes() {
  // bytes_ also includes dropped mappings until this function counts again. Counting takes time for
  // each mapping, so it is done only once bytes_ has reached a quarter of the limit.
  if (bytes_ < kMaxBytes / 4) return;
  bytes_ = 0;
  for (const auto& [pid, process] : processes_) {
    for (const Program& program : process.programs) {
      // Mappings may be shared by several programs. Each program counts its share.
      std::size_t size = 0;
      for (const auto& [first, mapping] : program.mappings->now) size += SizeOf(mapping);
      for (const Past& past : program.mappings->past) size += SizeOf(past.mapping);
      bytes_ += size / static_cast<std::size_t>(std::max(program.mappings.use_count(), 1L));
    }
  }
}

bool CodeTracker::UseIfValid(const CodeMapping& mapping, std::uint64_t until,
                             std::uint64_t timestamp, Found* found) {
  if (timestamp < mapping.from) {
    found->until = std::min(found->until, mapping.from);
    return false;
  }
  if (timestamp >= until) {
    found->from = std::max(found->from, until);
    return false;
  }
  found->mapping = &mapping;
  found->from = std::max(found->from, mapping.from);
  found->until = std::min(found->until, until);
  return true;
}

CodeTracker::Found CodeTracker::Find(std::uint32_t pid, std::uint64_t address,
                                     std::uint64_t timestamp) const {
  Found found;
  const auto process = processes_.find(pid);
  if (process == processes_.end()) return found;
  const Program* program = nullptr;
  const std::vector<Program>& programs = process->second.programs;
  for (auto each = programs.rbegin(); each != programs.rend() && program == nullptr; ++each) {
    if (each->from <= timestamp) {
      program = &*each;
    } else {
      found.until = each->from;
    }
  }
  if (program == nullptr) return found;
  if (program->until <= timestamp) {
    // After the end of the process, no mapping is valid. Samples may still come from its last
    // thread, but only with addresses of the kernel.
    found.program_from = found.from = program->until;
    return found;
  }
  found.program_from = found.from = program->from;
  found.until = program->until;
  for (const Past& past : program->mappings->past) {
    if (address < past.mapping.first || address > past.mapping.last) continue;
    if (UseIfValid(past.mapping, past.until, timestamp, &found)) return found;
  }
  const auto& now = program->mappings->now;
  const auto after = now.upper_bound(address);
  if (after == now.begin() || std::prev(after)->second.last < address) return found;
  UseIfValid(std::prev(after)->second, kNever, timestamp, &found);
  return found;
}

const CodeMapping* CodeSnapshot::Find(std::uint64_t address, std::uint64_t timestamp) const {
  for (const Entry& entry : past) {
    const CodeMapping& mapping = entry.mapping;
    if (address >= mapping.first && address <= mapping.last && timestamp >= mapping.from &&
        timestamp < entry.until) {
      return &mapping;
    }
  }
  const auto after = std::upper_bound(
      now.begin(), now.end(), address,
      [](std::uint64_t wanted, const Entry& entry) { return wanted < entry.mapping.first; });
  if (after == now.begin()) return nullptr;
  const CodeMapping& mapping = std::prev(after)->mapping;
  return address <= mapping.last && timestamp >= mapping.from ? &mapping : nullptr;
}

std::shared_ptr<const CodeSnapshot> CodeTracker::TakeSnapshot(std::uint32_t pid,
                                                              std::uint64_t timestamp) {
  const auto process = processes_.find(pid);
  if (process == processes_.end()) return nullptr;
  const std::vector<Program>& programs = process->second.programs;
  const auto program =
      std::find_if(programs.rbegin(), programs.rend(),
                   [timestamp](const Program& each) { return each.from <= timestamp; });
  if (program == programs.rend() || program->until <= timestamp) return nullptr;
  Mappings& mappings = *program->mappings;
  if (mappings.snapshot == nullptr) {
    auto snapshot = std::make_shared<CodeSnapshot>();
    snapshot->now.reserve(mappings.now.size());
    for (const auto& [first, mapping] : mappings.now) snapshot->now.push_back({mapping, kNever});
    for (const Past& past : mappings.past) snapshot->past.push_back({past.mapping, past.until});
    mappings.snapshot = std::move(snapshot);
  }
  return mappings.snapshot;
}

std::uint64_t CodeTracker::CountChanges(std::uint32_t pid) const {
  const auto process = processes_.find(pid);
  return process == processes_.end() ? 0 : process->second.changes;
}

}  // namespace collector
