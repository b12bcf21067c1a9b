#include "tools/eventheader/tracepoints.h"

#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "eventheader/wire.h"
#include "tools/base/read_file.h"
#include "tools/base/text.h"
#include "tools/collector/tracefs/user_event_definition.h"

namespace tools {
namespace {

// The systems of the tracepoints of user_events. The second one holds tracepoints that share a name
// but differ in their fields.
constexpr const char* kSystems[] = {"user_events", "user_events_multi"};
// Maximum number of processes that a message names.
constexpr std::size_t kMaxNamed = 10;

std::string FirstLine(const std::filesystem::path& path) {
  constexpr std::size_t kMaxLine = 1 << 16;
  const std::string text = base::ReadFile(path, kMaxLine).value_or("");
  return text.substr(0, text.find('\n'));
}

std::string Link(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::read_symlink(path, error).native();
}

// Returns whether this process is in the machine's initial pid namespace.
bool SeesAllProcesses(const std::filesystem::path& proc) {
  return Link(proc / "self/ns/pid") == "pid:[4026531836]";
}

std::string Names(const std::vector<Process>& processes) {
  std::string names;
  for (std::size_t i = 0; i < processes.size() && i < kMaxNamed; ++i) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", processes[i].pid, " (", processes[i].name,
                    ")");
  }
  if (processes.size() > kMaxNamed) {
    absl::StrAppend(&names, " and ", processes.size() - kMaxNamed, " more");
  }
  return names;
}

}  // namespace

std::optional<eh::TracepointName> Tracepoint::EventHeader() const {
  if (fields && *fields != eh::kTracepointFields) return std::nullopt;
  return eh::ParseTracepointName(name);
}

bool Tracepoint::IsTaken() const {
  return fields && *fields != eh::kTracepointFields && eh::ParseTracepointName(name);
}

bool MatchesAny(std::string_view name, const std::vector<std::string>& patterns) {
  const std::string text(name);
  return patterns.empty() ||
         std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
           return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
         });
}

absl::StatusOr<collector::Tracefs> FindUserEvents() {
  absl::StatusOr<collector::Tracefs> tracefs = collector::Tracefs::Find();
  if (tracefs.ok() && !tracefs->HasUserEvents()) {
    return absl::UnimplementedError(
        "this kernel has no user_events; use Linux 6.4 or newer with CONFIG_USER_EVENTS=y");
  }
  return tracefs;
}

absl::StatusOr<TracepointList> ListTracepoints(const collector::Tracefs& tracefs,
                                               const std::vector<std::string>& patterns) {
  TracepointList list;
  const absl::StatusOr<std::size_t> unclear =
      tracefs.ForEachUserEvent([&](const collector::UserEvent& event) {
        if (!MatchesAny(event.name, patterns)) return;
        list.tracepoints.push_back({std::string(event.name), std::string(event.used_by), {}, {}});
      });
  if (!unclear.ok()) return unclear.status();
  list.unclear = *unclear;
  std::sort(list.tracepoints.begin(), list.tracepoints.end(),
            [](const Tracepoint& a, const Tracepoint& b) { return a.name < b.name; });
  for (Tracepoint& tracepoint : list.tracepoints) ReadDetails(tracefs, &tracepoint);
  return list;
}

void ReadDetails(const collector::Tracefs& tracefs, Tracepoint* tracepoint) {
  for (const char* system : kSystems) {
    const auto found = tracefs.ReadTracepoint(system, tracepoint->name);
    if (!found.ok()) continue;
    tracepoint->fields = collector::FieldsOfFormat(found->format);
    constexpr std::size_t kMaxHistogram = std::size_t{16} << 20;
    const std::string path =
        absl::StrCat(tracefs.directory(), "/events/", system, "/", tracepoint->name, "/hist");
    tracepoint->hits = HitsOfHistogram(base::ReadFile(path, kMaxHistogram).value_or(""));
    return;
  }
}

std::optional<std::uint64_t> HitsOfHistogram(std::string_view text) {
  std::optional<std::uint64_t> hits;
  for (absl::string_view line : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    std::uint64_t number = 0;
    line = absl::StripAsciiWhitespace(line);
    if (absl::ConsumePrefix(&line, "Hits: ") && absl::SimpleAtoi(line, &number)) {
      hits = std::max(hits.value_or(0), number);  // each histogram counts all hits
    }
  }
  return hits;
}

Holders FindHolders(const std::string& proc) {
  Holders holders;
  holders.all = SeesAllProcesses(proc);
  std::error_code error;
  for (std::filesystem::directory_iterator entry(proc, error), end; !error && entry != end;
       entry.increment(error)) {
    Process process;
    if (!absl::SimpleAtoi(entry->path().filename().native(), &process.pid) ||
        process.pid == getpid()) {
      continue;
    }
    std::error_code denied;
    bool registers = false;
    bool records = false;
    for (std::filesystem::directory_iterator fd(entry->path() / "fd", denied), last;
         !denied && fd != last; fd.increment(denied)) {
      const std::string target = Link(fd->path());
      registers = registers || absl::EndsWith(target, "/user_events_data");
      records = records || target == "anon_inode:[perf_event]";
    }
    if (denied == std::errc::permission_denied) holders.all = false;
    if (!registers && !records) continue;
    process.name = FirstLine(entry->path() / "comm");
    if (registers) holders.registrants.push_back(process);
    if (records) holders.recorders.push_back(process);
  }
  const auto by_pid = [](const Process& a, const Process& b) { return a.pid < b.pid; };
  std::sort(holders.registrants.begin(), holders.registrants.end(), by_pid);
  std::sort(holders.recorders.begin(), holders.recorders.end(), by_pid);
  return holders;
}

std::optional<bool> IsPersistent(const Tracepoint& tracepoint, const Holders& holders) {
  if (tracepoint.services) return false;
  if (!tracepoint.used_by.empty() || !holders.registrants.empty() || !holders.all) {
    return std::nullopt;
  }
  return true;
}

std::string DescribeUsers(const Tracepoint& tracepoint, const Holders& holders) {
  std::string text;
  if (!tracepoint.used_by.empty()) {
    absl::StrAppend(&text, "it is enabled by ", tracepoint.used_by);
    if (absl::StrContains(tracepoint.used_by, "perf") && !holders.recorders.empty()) {
      absl::StrAppend(&text, "; these processes have perf events: ", Names(holders.recorders));
    }
  }
  if (!holders.registrants.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : "; ",
                    "these processes have user_events open: ", Names(holders.registrants));
  }
  if (!holders.all) {
    absl::StrAppend(&text, text.empty() ? "" : "; ",
                    "some processes are visible only to root outside of containers");
  }
  return text.empty() ? "no user of it is visible" : text;
}

}  // namespace tools
