#include "tools/collector/identity/proc_files.h"

#include <dirent.h>
#include <unistd.h>

#include <climits>
#include <fstream>
#include <iterator>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tools/base/read_file.h"

namespace collector {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

// Returns the names in the folder `path` that are numbers, such as the pids in /proc.
std::vector<std::uint32_t> Numbers(const std::string& path) {
  std::vector<std::uint32_t> numbers;
  const std::unique_ptr<DIR, CloseDirectory> directory(opendir(path.c_str()));
  if (directory == nullptr) return numbers;
  while (const dirent* entry = readdir(directory.get())) {  // NOLINT(concurrency-mt-unsafe)
    std::uint32_t number = 0;
    if (absl::SimpleAtoi(entry->d_name, &number)) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

std::vector<std::uint32_t> ProcPids() { return Numbers("/proc"); }

std::vector<std::uint32_t> ProcTids(std::uint32_t pid) {
  return Numbers(absl::StrCat("/proc/", pid, "/task"));
}

std::optional<ProcThread> ParseProcStat(std::string_view text) {
  // The text is "PID (NAME) STATE ...". The name may contain parentheses and blanks.
  const std::size_t begin = text.find('(');
  const std::size_t end = text.rfind(')');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin ||
      text.size() < end + 3) {
    return std::nullopt;
  }
  const char state = text[end + 2];
  return ProcThread{std::string(text.substr(begin + 1, end - begin - 1)),
                    state == 'Z' || state == 'X'};
}

std::optional<ProcThread> ReadProcThread(std::uint32_t pid, std::uint32_t tid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/task/", tid, "/stat"));
  // Reads to the end of the file, because a name may contain any byte except NUL, also a newline.
  // If the thread ends before the read, getline() sets an error state of the stream and throws no
  // exception.
  std::string text;
  std::getline(file, text, '\0');
  return ParseProcStat(text);
}

std::string_view WithoutDeleted(std::string_view path) {
  const absl::string_view kept =
      absl::StripSuffix(absl::string_view(path.data(), path.size()), " (deleted)");
  return {kept.data(), kept.size()};
}

std::string ReadProcExecutable(std::uint32_t pid) {
  char path[PATH_MAX];
  const ssize_t size = readlink(absl::StrCat("/proc/", pid, "/exe").c_str(), path, sizeof path);
  if (size <= 0) return "";
  return std::string(WithoutDeleted({path, static_cast<std::size_t>(size)}));
}

std::uint32_t ReadProcNamespacePid(std::uint32_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "NSpid:")) continue;
    // The line has a pid for each pid namespace; the pid in the process's own namespace is last.
    const std::vector<absl::string_view> pids = absl::StrSplit(line, '\t');
    std::uint32_t own = 0;
    if (absl::SimpleAtoi(pids.back(), &own)) return own;
  }
  return pid;
}

std::string ParseProcCgroup(std::string_view text) {
  // The text has lines such as "0::/system.slice/a.service"; lines of cgroup v1 begin with other
  // numbers.
  constexpr std::string_view kVersion2 = "0::/";
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    const std::string_view each(line.data(), line.size());
    if (each.starts_with(kVersion2)) return std::string(each.substr(kVersion2.size() - 1));
  }
  return "";
}

std::string ReadProcCgroup(std::uint32_t pid) {
  constexpr std::size_t kMaxText = 65536;
  const absl::StatusOr<std::string> text =
      base::ReadFile(absl::StrCat("/proc/", pid, "/cgroup"), kMaxText);
  return text.ok() ? ParseProcCgroup(*text) : "";
}

std::optional<absl::Duration> ParseProcStart(std::string_view text, std::int64_t ticks_per_second) {
  // The start time is field 22. The name, field 2, may contain parentheses and blanks.
  constexpr std::size_t kStartAfterName = 22 - 3;
  const std::size_t end = text.rfind(") ");
  if (end == std::string_view::npos || ticks_per_second <= 0) return std::nullopt;
  const std::string_view rest = text.substr(end + 2);
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(rest.data(), rest.size()), ' ');
  std::int64_t ticks = 0;
  if (fields.size() <= kStartAfterName || !absl::SimpleAtoi(fields[kStartAfterName], &ticks)) {
    return std::nullopt;
  }
  return absl::Seconds(1) / static_cast<double>(ticks_per_second) * static_cast<double>(ticks);
}

std::optional<absl::Duration> ReadProcStart(std::uint32_t pid) {
  constexpr std::size_t kMaxText = 4096;
  const absl::StatusOr<std::string> text =
      base::ReadFile(absl::StrCat("/proc/", pid, "/stat"), kMaxText);
  return text.ok() ? ParseProcStart(*text, sysconf(_SC_CLK_TCK)) : std::nullopt;
}

// Reads the status file, because the owner of the files in /proc/PID is not reliable: a process can
// make root their owner.
std::optional<std::uint32_t> ReadProcUser(std::uint32_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "Uid:")) continue;
    // The line has the real, effective, saved and filesystem uid.
    const std::vector<absl::string_view> uids = absl::StrSplit(line, '\t');
    std::uint32_t effective = 0;
    if (uids.size() > 2 && absl::SimpleAtoi(uids[2], &effective)) return effective;
  }
  return std::nullopt;
}

}  // namespace collector
