#include "tools/nettrace/symbolize/function_finder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "nettrace/format.h"
#include "tools/base/read_file.h"
#include "tools/base/unique_fd.h"
#include "tools/elf/vdso.h"
#include "tools/nettrace/symbolize/perf_map.h"

namespace tools::symbolize {
namespace {

std::string ValueOf(const nettrace::TraceInfo& trace, std::string_view key) {
  for (const auto& [name, value] : trace.key_values) {
    if (name == key) return value;
  }
  return "";
}

constexpr char kVdso[] = "[vdso]";
// The reason if a limit ended the search for functions.
constexpr char kLimited[] =
    "its symbols reach a limit, so functions may be missing: there are too many, too many overlap, "
    "or their names are too long";

// Returns whether the code has no file. A JIT compiler may have written this code to memory.
bool HasNoFile(std::string_view path) {
  return path.empty() || path.starts_with("//anon") || path.starts_with("/memfd:") ||
         path.starts_with("/dev/zero") || path.starts_with("/SYSV") ||
         (path.starts_with("[") && !path.starts_with("[v"));
}

// Returns true if the process of the mapping still maps `file` at the addresses of the mapping, and
// false if the process maps another file there. Returns nullopt if the mapping is gone, or if this
// process may not see it. PromptFiles opens no file on a file system that may wait for a user's
// process (FUSE). If `prompt_files` has opened `file`, a mapped file on such a file system is
// therefore another file.
std::optional<bool> IsMapped(const struct stat& file, const HitMapping& mapping,
                             base::PromptFiles* prompt_files) {
  struct stat mapped = {};
  const std::string path =
      absl::StrFormat("/proc/%d/map_files/%x-%x", mapping.pid, mapping.first, mapping.last + 1);
  const base::UniqueFd fd(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  if (prompt_files != nullptr &&
      !prompt_files->IsPrompt(fd.get(), static_cast<std::uint32_t>(mapping.pid))) {
    return false;
  }
  if (fstat(fd.get(), &mapped) != 0) return std::nullopt;
  return mapped.st_dev == file.st_dev && mapped.st_ino == file.st_ino;
}

// Returns when the contents, names or mode of the file last changed.
absl::Time ChangeOf(const struct stat& facts) {
  return std::max(absl::TimeFromTimespec(facts.st_mtim), absl::TimeFromTimespec(facts.st_ctim));
}

// Returns the functions in the symbols of `file`. If `*is_complete` is false and `file` has a
// section .gnu_debugdata, adds the functions in this section and sets `*is_complete`.
elf::Functions FindFunctions(const elf::ElfFile& file, std::span<const std::uint64_t> addresses,
                             bool* is_complete) {
  elf::Functions found = file.FindFunctions(addresses);
  if (*is_complete) return found;
  const std::optional<elf::ElfFile> more = file.OpenDebugData();
  if (!more) return found;
  *is_complete = true;
  return elf::Combine(std::move(found), more->FindFunctions(addresses));
}

std::string Cause(const absl::Status& status) {
  if (absl::IsNotFound(status)) return "the file does not exist";
  // Only PromptFiles fails with FailedPrecondition. 'nettrace symbolize' does not use it, and can
  // therefore read the file.
  constexpr char kRemedy[] = "; 'nettrace symbolize' reads it";
  return absl::StrCat("the file cannot be used: ", status.message(),
                      absl::IsFailedPrecondition(status) ? kRemedy : "");
}

}  // namespace

Machine CompareMachine(const nettrace::TraceInfo& trace) {
  Machine machine;
  utsname system = {};
  machine.is_same_host =
      uname(&system) == 0 && ValueOf(trace, nettrace::kKeyHostName) == system.nodename;
  constexpr char kBootId[] = "/proc/sys/kernel/random/boot_id";
  constexpr std::size_t kMaxBootId = 64;
  const std::string boot = base::ReadFile(kBootId, kMaxBootId).value_or("");
  machine.is_same_boot =
      !boot.empty() && ValueOf(trace, nettrace::kKeyBootId) == absl::StripAsciiWhitespace(boot);
  return machine;
}

void FunctionFinder::Find(std::span<const HitMapping> mappings) {
  // The key is the path and the build id, or the process if there is no file.
  std::map<std::tuple<std::string, std::string, std::uint64_t>, Group> groups;
  for (const HitMapping& mapping : mappings) {
    const auto key = HasNoFile(mapping.path)
                         ? std::tuple(std::string(), std::string(), mapping.pid)
                         : std::tuple(mapping.path, mapping.file.build_id, std::uint64_t{0});
    groups[key].push_back(&mapping);
  }
  for (const auto& [key, group] : groups) {
    HasNoFile(group.front()->path) ? FindInPerfMap(group) : FindInFiles(group);
  }
}

std::string FunctionFinder::WhyRefused(const elf::ElfFile& file, const HitMapping& mapping) const {
  const std::string& build_id = mapping.file.build_id;
  if (!build_id.empty()) {
    return file.build_id() == build_id ? "" : "the file has another build id";
  }
  constexpr char kUnknown[] = "the build id of the mapping is not known, and ";
  if (!machine_.is_same_host) return absl::StrCat(kUnknown, "the file is on another host");
  struct stat facts = {};
  if (fstat(file.fd(), &facts) != 0 || ChangeOf(facts) >= mapping.time) {
    return absl::StrCat(kUnknown, "the file has changed since it was mapped");
  }
  // `mapping.time` may be later than the time at which the file was mapped, and the file may have
  // changed between these times. If possible, checks what the process has mapped.
  const std::optional<bool> is_mapped =
      machine_.is_same_boot ? IsMapped(facts, mapping, prompt_files_) : std::nullopt;
  if (is_mapped == false)
    return absl::StrCat(kUnknown, "the process has mapped another file than the one at this path");
  if (is_mapped == true) return "";
  const uid_t user = geteuid();
  if (!elf::IsPublic(file.fd()) && (user == 0 || facts.st_uid != user)) {
    return absl::StrCat(kUnknown, "not every user may read the file");
  }
  return "";
}

std::optional<elf::ElfFile> FunctionFinder::OpenOriginal(const HitMapping& mapping,
                                                         ModuleResult* result) const {
  const std::string& path = mapping.path;
  absl::StatusOr<elf::ElfFile> file = elf::ElfFile::Open(path, prompt_files_);
  if (!file.ok()) {
    result->reason = Cause(file.status());
  } else {
    result->reason = WhyRefused(*file, mapping);
    result->source = path;
    if (result->reason.empty()) return *std::move(file);
  }
  // Refuses a path with "..", which would lead out of the folders. The kernel writes no such path.
  if (absl::StrContains(path, "/../")) return std::nullopt;
  for (const std::string& folder : debug_files_.named()) {
    for (const std::string& each :
         {absl::StrCat(folder, path), absl::StrCat(folder, path.substr(path.rfind('/')))}) {
      file = elf::ElfFile::Open(each, prompt_files_);
      const std::string& build_id = mapping.file.build_id;
      if (!file.ok() || (!build_id.empty() && file->build_id() != build_id)) continue;
      result->source = each;
      result->reason.clear();
      return *std::move(file);
    }
  }
  result->source.clear();
  return std::nullopt;
}

FunctionFinder::Files FunctionFinder::OpenFiles(const HitMapping& mapping,
                                                ModuleResult* result) const {
  Files files;
  if (mapping.path == kVdso) {
    files.original = OpenVdsoOf(mapping, result);
    return files;
  }
  if (!mapping.path.starts_with('/')) {
    result->reason = "the code has no file";
    return files;
  }
  files.original = OpenOriginal(mapping, result);
  if (files.original && files.original->has_symbols()) return files;
  const std::string& build_id = files.original ? files.original->build_id() : mapping.file.build_id;
  files.debug = debug_files_.FindByBuildId(build_id);
  if (!files.debug && files.original) {
    files.debug = debug_files_.FindByLink(*files.original, result->source);
  }
  if (files.debug || debuginfod_ == nullptr) return files;
  absl::StatusOr<elf::ElfFile> sent = debuginfod_->Find(build_id);
  if (sent.ok()) {
    files.debug = *std::move(sent);
  } else if (!absl::IsNotFound(sent.status())) {
    files.debuginfod_error = absl::StrCat("the debuginfod server ", sent.status().message());
  }
  return files;
}

std::optional<elf::ElfFile> FunctionFinder::OpenVdsoOf(const HitMapping& mapping,
                                                       ModuleResult* result) const {
  // Processes with 32-bit addresses have another vdso, at low addresses.
  const bool is_low = mapping.last <= std::numeric_limits<std::uint32_t>::max();
  if (!machine_.is_same_boot) {
    result->reason =
        "the vdso is part of the kernel, which may be another one now; run 'nettrace symbolize' on "
        "the recorded machine before it restarts";
    return std::nullopt;
  }
  std::optional<elf::ElfFile> vdso = elf::ReadVdso(mapping.last - mapping.first + 1);
  const std::string& build_id = mapping.file.build_id;
  if (!vdso || is_low != (sizeof(void*) == sizeof(std::uint32_t)) ||
      (!build_id.empty() && vdso->build_id() != build_id)) {
    result->reason = "the process has another vdso than this program";
    return std::nullopt;
  }
  result->source = kVdso;
  return vdso;
}

void FunctionFinder::FindInFiles(const Group& group) {
  ModuleResult result;
  // Checks the file for the oldest mapping: without a build id, the file must not have changed
  // since then.
  const HitMapping& oldest = **std::min_element(
      group.begin(), group.end(), [](const auto* a, const auto* b) { return a->time < b->time; });
  result.path = oldest.path;
  result.build_id = oldest.file.build_id;
  const Files files = OpenFiles(oldest, &result);
  const auto page_mask = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) - 1;
  // Converts an address of the process to an address in the file. Without the original file,
  // assumes that the mapping starts at the address that the trace states, or else at the only
  // executable segment.
  const auto address_of = [&](const HitMapping& mapping,
                              std::uint64_t address) -> std::optional<std::uint64_t> {
    const std::uint64_t offset = address - mapping.first;
    if (files.original) return files.original->AddressAt(mapping.offset + offset);
    std::optional<std::uint64_t> start = mapping.file.address;
    if (!start) start = files.debug->OnlyCodeAddress();
    if (!start) return std::nullopt;
    return (*start & ~page_mask) + offset;
  };
  std::vector<std::uint64_t> addresses;
  const bool has_file = files.original || files.debug;
  for (const HitMapping* mapping : group) {
    result.addresses += mapping->addresses.size();
    for (const std::uint64_t address : mapping->addresses) {
      const auto in_file = has_file ? address_of(*mapping, address) : std::nullopt;
      if (in_file) addresses.push_back(*in_file);
    }
  }
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  if (files.original && result.path != kVdso) Describe(group, *files.original);
  if (has_file) {
    const elf::ElfFile& source = files.debug ? *files.debug : *files.original;
    bool is_complete = source.has_symbols() || result.path == kVdso;
    const elf::Functions found = FindFunctions(source, addresses, &is_complete);
    Add(group, addresses, found, address_of, &result);
    result.source = files.debug ? files.debug->path() : result.source;
    result.reason = "";
    if (found.is_limited) {
      result.reason = kLimited;
    } else if (result.named < result.addresses) {
      result.reason = is_complete
                          ? "the symbols have no function there"
                          : "the file has only the symbols of its exports; install its debug "
                            "symbols";
    }
  }
  if (result.named < result.addresses && !files.debuginfod_error.empty()) {
    result.reason =
        absl::StrCat(result.reason, result.reason.empty() ? "" : "; ", files.debuginfod_error);
  }
  modules_.push_back(std::move(result));
}

void FunctionFinder::Describe(const Group& group, const elf::ElfFile& file) {
  const auto page_mask = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) - 1;
  const std::optional<elf::DebugLink> link = file.ReadDebugLink();
  for (const HitMapping* mapping : group) {
    if (mapping->metadata_id == 0 || mapping->file.address || file.build_id().empty()) continue;
    // Without a build id, `file` was checked for only one mapping of the group.
    if (mapping->file.build_id.empty() && !WhyRefused(file, *mapping).empty()) continue;
    // The mapping may begin before the segment, because mappings begin at pages.
    const std::uint64_t distance = mapping->addresses.front() - mapping->first;
    const std::optional<std::uint64_t> address = file.AddressAt(mapping->offset + distance);
    if (!address || *address < distance || ((*address - distance) & page_mask) != 0) continue;
    ElfDescription description = {file.build_id(), link ? link->name : "", *address - distance,
                                  mapping->offset};
    const auto [known, is_new] =
        descriptions_.try_emplace(mapping->metadata_id, std::move(description));
    if (!is_new && known->second && known->second->address != *address - distance) {
      known->second.reset();
    }
  }
}

ElfDescriptions FunctionFinder::descriptions() const {
  ElfDescriptions descriptions;
  for (const auto& [id, description] : descriptions_) {
    if (description) descriptions.emplace(id, *description);
  }
  return descriptions;
}

void FunctionFinder::FindInPerfMap(const Group& group) {
  ModuleResult result;
  const std::uint64_t pid = group.front()->pid;
  result.path = absl::StrCat("/tmp/perf-", pid, ".map");
  std::vector<std::uint64_t> addresses;
  absl::Time last_use;
  for (const HitMapping* mapping : group) {
    result.addresses += mapping->addresses.size();
    addresses.insert(addresses.end(), mapping->addresses.begin(), mapping->addresses.end());
    last_use = std::max(last_use, mapping->time);
  }
  if (!machine_.is_same_boot) {
    // On another machine, or after a restart, another process may have the same id.
    result.reason =
        "the perf map may be of another process, because the machine was started again or is "
        "another one; run 'nettrace symbolize' on the recorded machine before it restarts";
    modules_.push_back(std::move(result));
    return;
  }
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  const std::optional<ContainedProcess> contained =
      FindContainedProcess(pid, last_use, prompt_files_);
  if (contained) result.path = contained->perf_map;
  const absl::StatusOr<elf::Functions> found =
      contained ? ReadPerfMapOf(*contained, addresses, prompt_files_)
                : ReadPerfMap(result.path, addresses, prompt_files_);
  if (found.ok()) {
    result.source = result.path;
    Add(
        group, addresses, *found,
        [](const HitMapping&, std::uint64_t address) { return std::optional(address); }, &result);
    if (found->is_limited) {
      result.reason = kLimited;
    } else if (result.named < result.addresses) {
      result.reason = "the perf map has no function there";
    }
  } else {
    result.reason = Cause(found.status());
  }
  modules_.push_back(std::move(result));
}

template <typename AddressOf>
void FunctionFinder::Add(const Group& group, std::span<const std::uint64_t> addresses,
                         const elf::Functions& found, const AddressOf& address_of,
                         ModuleResult* result) {
  for (const HitMapping* mapping : group) {
    std::vector<elf::Function>& functions = functions_[mapping->id];
    absl::flat_hash_set<std::uint32_t> added;
    for (const std::uint64_t address : mapping->addresses) {
      const std::optional<std::uint64_t> in_file = address_of(*mapping, address);
      if (!in_file) continue;
      const auto at = std::lower_bound(addresses.begin(), addresses.end(), *in_file);
      const std::uint32_t index =
          found.of_address[static_cast<std::size_t>(at - addresses.begin())];
      if (index == elf::Functions::kNone) continue;
      ++result->named;
      if (!added.insert(index).second) continue;
      // A function of a hostile file may have almost all addresses. TraceEvent fails for ranges of
      // 2^63 bytes, so only the part of the function in the mapping is written.
      elf::Function function = found.functions[index];
      function.first = address - std::min(*in_file - function.first, address - mapping->first);
      function.last = address + std::min(function.last - *in_file, mapping->last - address);
      functions.push_back(std::move(function));
      ++result->functions;
    }
  }
}

}  // namespace tools::symbolize
