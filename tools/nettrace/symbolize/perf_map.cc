#include "tools/nettrace/symbolize/perf_map.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "tools/base/read_file.h"
#include "tools/base/status_macros.h"
#include "tools/base/unique_fd.h"

namespace tools::symbolize {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;
constexpr std::size_t kChunk = std::size_t{64} << 10;
// Maximum number of pairs of a function and an address in it. Only functions that overlap many
// times reach this limit.
constexpr std::uint64_t kMaxSteps = std::uint64_t{1} << 26;

// Takes hexadecimal digits and the space after them from `*line`.
bool TakeNumber(std::string_view* line, std::uint64_t* number) {
  const std::size_t space = line->find(' ');
  if (space == std::string_view::npos ||
      !absl::SimpleHexAtoi(absl::string_view(line->data(), space), number)) {
    return false;
  }
  line->remove_prefix(space + 1);
  return true;
}

}  // namespace

void PerfMapLookup::AddText(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = std::min(text.find('\n'), text.size());
    line_.append(text.substr(0, std::min(size, kMaxLine - line_.size())));
    if (size == text.size()) return;
    AddLine();
    line_.clear();
    text.remove_prefix(size + 1);
  }
}

void PerfMapLookup::AddLine() {
  std::string_view line = line_;
  std::uint64_t first = 0;
  std::uint64_t size = 0;
  if (!TakeNumber(&line, &first) || !TakeNumber(&line, &size) || size == 0 || line.empty() ||
      first + (size - 1) < first) {
    return;
  }
  const std::uint64_t last = first + (size - 1);
  auto next = std::lower_bound(addresses_.begin(), addresses_.end(), first);
  if (next == addresses_.end() || *next > last) return;
  line = line.substr(0, elf::kMaxName);
  name_bytes_ += line.size();
  if (name_bytes_ > elf::Functions::kMaxNameBytes) {
    is_limited_ = true;
    return;
  }
  const auto function =
      std::make_shared<const elf::Function>(elf::Function{first, last, std::string(line)});
  for (; next != addresses_.end() && *next <= last; ++next) {
    if (++steps_ > kMaxSteps) {
      is_limited_ = true;
      return;
    }
    found_[static_cast<std::size_t>(next - addresses_.begin())] = function;
  }
}

elf::Functions PerfMapLookup::Finish() {
  AddLine();
  elf::Functions result;
  result.is_limited = is_limited_;
  absl::flat_hash_map<const elf::Function*, std::uint32_t> indices;
  for (const std::shared_ptr<const elf::Function>& each : found_) {
    result.of_address.push_back(elf::Functions::kNone);
    if (each == nullptr) continue;
    const auto [index, is_new] =
        indices.try_emplace(each.get(), static_cast<std::uint32_t>(result.functions.size()));
    if (is_new) result.functions.push_back(*each);
    result.of_address.back() = index->second;
  }
  return result;
}

namespace {

constexpr int kReadFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

// Opens the file of `place`, a descriptor that was opened with O_PATH, for reading.
base::UniqueFd Reopen(const base::UniqueFd& place) {
  return base::UniqueFd(open(absl::StrCat("/proc/self/fd/", place.get()).c_str(), kReadFlags));
}

base::UniqueFd OpenRootOf(std::uint64_t pid) {
  return base::UniqueFd(
      open(absl::StrCat("/proc/", pid, "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

// Returns whether `file`, a file of the process, may be accessed. If `prompt_files` is not null,
// its file system must answer without waiting for a user's process (FUSE).
bool MayAccess(const base::UniqueFd& file, std::uint64_t pid, base::PromptFiles* prompt_files) {
  return prompt_files == nullptr ||
         prompt_files->IsPrompt(file.get(), static_cast<std::uint32_t>(pid));
}

// Reads an open perf map. If `owner` has a value, the file must belong to this user. Unless root
// runs this program, the file must belong to root or to the effective user of this program.
absl::StatusOr<elf::Functions> ReadOpenPerfMap(const base::UniqueFd& fd, std::optional<uid_t> owner,
                                               std::span<const std::uint64_t> addresses) {
  struct stat facts = {};
  if (!fd.valid() || fstat(fd.get(), &facts) != 0) {
    return absl::ErrnoToStatus(errno, "cannot be opened");
  }
  if (!S_ISREG(facts.st_mode) || facts.st_nlink != 1) {
    return absl::InvalidArgumentError(
        "not a regular file, or a file with several names (hard links)");
  }
  const uid_t user = geteuid();
  if ((owner && facts.st_uid != *owner) ||
      (user != 0 && facts.st_uid != 0 && facts.st_uid != user)) {
    return absl::PermissionDeniedError("belongs to another user");
  }
  PerfMapLookup lookup(addresses);
  std::string buffer(kChunk, '\0');
  for (std::uint64_t left = kMaxBytes; left != 0;) {
    const ssize_t got = read(fd.get(), buffer.data(), std::min<std::uint64_t>(left, kChunk));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, "cannot be read");
    if (got == 0) break;
    lookup.AddText(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
    left -= static_cast<std::uint64_t>(got);
  }
  return lookup.Finish();
}

// Returns the numbers after `key` in the text of /proc/PID/status.
std::vector<std::uint64_t> NumbersOf(std::string_view status, std::string_view key) {
  std::vector<std::uint64_t> numbers;
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(status.data(), status.size()), '\n')) {
    if (!absl::StartsWith(line, absl::string_view(key.data(), key.size()))) continue;
    for (const absl::string_view word :
         absl::StrSplit(line.substr(key.size()), absl::ByAnyChar("\t "), absl::SkipEmpty())) {
      std::uint64_t number = 0;
      if (absl::SimpleAtoi(word, &number)) numbers.push_back(number);
    }
  }
  return numbers;
}

// Returns when the process started, from the text of /proc/PID/stat; nullopt if the text is not
// valid.
std::optional<absl::Time> StartOf(std::string_view stat) {
  // The 22nd value is the start of the process, in clock ticks since the machine started. The
  // second value, the name in parentheses, may contain spaces.
  constexpr std::size_t kStart = 19;  // index after the parentheses
  const std::size_t end = stat.rfind(") ");
  if (end == std::string_view::npos) return std::nullopt;
  const std::vector<absl::string_view> values =
      absl::StrSplit(absl::string_view(stat.data() + end + 2, stat.size() - end - 2), ' ');
  std::int64_t ticks = 0;
  timespec now = {};
  if (values.size() <= kStart || !absl::SimpleAtoi(values[kStart], &ticks) ||
      clock_gettime(CLOCK_BOOTTIME, &now) != 0) {
    return std::nullopt;
  }
  const absl::Duration since_boot = absl::Seconds(1) * ticks / sysconf(_SC_CLK_TCK);
  return absl::Now() - absl::DurationFromTimespec(now) + since_boot;
}

}  // namespace

absl::StatusOr<elf::Functions> ReadPerfMap(const std::string& path,
                                           std::span<const std::uint64_t> addresses,
                                           base::PromptFiles* prompt_files) {
  base::UniqueFd fd;
  if (prompt_files != nullptr) {
    ASSIGN_OR_RETURN(const base::UniqueFd place,
                     prompt_files->Open(path, base::PromptFiles::LastLink::kOpen));
    fd = Reopen(place);
  } else {
    fd = base::UniqueFd(open(path.c_str(), kReadFlags | O_NOFOLLOW));
  }
  return ReadOpenPerfMap(fd, std::nullopt, addresses);
}

std::optional<ContainedProcess> FindContainedProcess(std::uint64_t pid, absl::Time last_use,
                                                     base::PromptFiles* prompt_files) {
  constexpr std::size_t kMaxText = std::size_t{64} << 10;
  const std::string folder = absl::StrCat("/proc/", pid);
  const std::string status = base::ReadFile(folder + "/status", kMaxText).value_or("");
  const std::vector<std::uint64_t> pids = NumbersOf(status, "NSpid:");
  const std::vector<std::uint64_t> users = NumbersOf(status, "Uid:");
  const auto start = StartOf(base::ReadFile(folder + "/stat", kMaxText).value_or(""));
  const base::UniqueFd root_folder = OpenRootOf(pid);
  struct stat root = {};
  struct stat own_root = {};
  // Accepts a difference of 1 s, because the start is computed from another clock.
  if (pids.empty() || users.size() < 2 || !start || *start > last_use + absl::Seconds(1) ||
      !root_folder.valid()) {
    return std::nullopt;
  }
  const ContainedProcess contained = {pid, pids.back(), static_cast<uid_t>(users[1]),
                                      absl::StrCat(folder, "/root/tmp/perf-", pids.back(), ".map")};
  if (!MayAccess(root_folder, pid, prompt_files)) return contained;
  if (fstat(root_folder.get(), &root) != 0 || stat("/", &own_root) != 0) return std::nullopt;
  struct stat mounts = {};
  struct stat own_mounts = {};
  if (stat((folder + "/ns/mnt").c_str(), &mounts) != 0 ||
      stat("/proc/self/ns/mnt", &own_mounts) != 0) {
    return std::nullopt;
  }
  // Processes with other mounts may have another /tmp, even if their root is the same folder.
  if (pids.back() == pid && mounts.st_ino == own_mounts.st_ino && root.st_dev == own_root.st_dev &&
      root.st_ino == own_root.st_ino) {
    return std::nullopt;
  }
  return contained;
}

absl::StatusOr<elf::Functions> ReadPerfMapOf(const ContainedProcess& process,
                                             std::span<const std::uint64_t> addresses,
                                             base::PromptFiles* prompt_files) {
  base::UniqueFd place = OpenRootOf(process.pid);
  for (const std::string& name :
       {std::string("tmp"), absl::StrCat("perf-", process.own_pid, ".map")}) {
    if (place.valid() && !MayAccess(place, process.pid, prompt_files)) break;
    open_how how = {};
    how.flags = O_PATH | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    place = base::UniqueFd(
        static_cast<int>(syscall(SYS_openat2, place.get(), name.c_str(), &how, sizeof how)));
    if (!place.valid()) return absl::ErrnoToStatus(errno, "cannot be opened");
  }
  if (!MayAccess(place, process.pid, prompt_files)) {
    return absl::FailedPreconditionError(
        "it was not read, because its file system is unknown or may wait for a user's process "
        "(FUSE)");
  }
  return ReadOpenPerfMap(Reopen(place), process.user, addresses);
}

}  // namespace tools::symbolize
