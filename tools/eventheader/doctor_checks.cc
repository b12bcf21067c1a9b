#include "tools/eventheader/doctor_checks.h"

#include <grp.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace tools {
namespace {

using collector::SessionStatus;

constexpr char kUsualPath[] = "/sys/kernel/tracing/user_events_data";
constexpr char kMountCommand[] = "mount -t tracefs tracefs /sys/kernel/tracing";
// Ids of tracepoints are of 16 bits.
constexpr std::uint64_t kMaxTracepointIds = 65535;
// Bits of capabilities.
constexpr int kCapDacOverride = 1;
constexpr int kCapDacReadSearch = 2;
constexpr int kCapIpcLock = 14;
constexpr int kCapSysAdmin = 21;
constexpr int kCapPerfmon = 38;

bool Has(const Identity& identity, int capability) {
  return (identity.capabilities >> capability & 1) != 0;
}

std::string Property(const UnitFacts& unit, const std::string& name) {
  const auto found = unit.find(name);
  return found == unit.end() ? "" : found->second;
}

// {major, minor} of a release such as "6.12.3-amd64"; no value if it is none.
std::optional<std::pair<int, int>> ParseRelease(const std::string& release) {
  const std::vector<std::string> parts = absl::StrSplit(release, absl::ByAnyChar(".-"));
  std::pair<int, int> version;
  if (parts.size() < 2 || !absl::SimpleAtoi(parts[0], &version.first) ||
      !absl::SimpleAtoi(parts[1], &version.second)) {
    return std::nullopt;
  }
  return version;
}

// For messages.
std::string SubjectName(const Facts& facts) {
  if (!facts.unit_name.empty()) return facts.unit_name;
  if (!facts.user_name.empty()) return "user " + facts.user_name;
  if (facts.subject)
    return absl::StrCat("process ", facts.subject->pid, " (", facts.subject->name, ")");
  return "this process";
}

std::string GroupName(gid_t group) {
  const struct group* const entry = getgrgid(group);
  return entry == nullptr ? std::to_string(group) : entry->gr_name;
}

// Whether a process with these rights, outside of user namespaces, may do to a file what the three
// bits say.
bool May(const Identity& identity, const FileFacts& file, mode_t bits, bool capabilities_count) {
  if (capabilities_count && Has(identity, kCapDacOverride)) return true;
  if (capabilities_count && bits == S_IXOTH && Has(identity, kCapDacReadSearch)) return true;
  const bool is_member = std::find(identity.groups.begin(), identity.groups.end(), file.group) !=
                         identity.groups.end();
  const int shift = identity.user == file.user ? 6 : is_member ? 3 : 0;
  return (file.mode >> shift & bits) == bits;
}

// The first on the way to user_events_data that stops the subject; null if nothing does.
const FileFacts* Obstacle(const ProcessFacts& subject) {
  for (const FileFacts& file : subject.way) {
    const bool is_last = &file == &subject.way.back();
    if (file.error != 0) return nullptr;  // not to be seen from here, or not there
    if (!May(*subject.identity, file, is_last ? S_IWOTH : S_IXOTH, subject.uid_map.empty())) {
      return &file;
    }
  }
  return nullptr;
}

bool HasUserEvents(const Facts& facts) { return facts.data && facts.data->error != ENOENT; }

// Whether one of the paths, which a unit's property has with blanks between, is `path` or above it.
bool Covers(const std::string& paths, std::string_view path) {
  for (absl::string_view entry : absl::StrSplit(paths, ' ', absl::SkipEmpty())) {
    while (absl::ConsumePrefix(&entry, "-") || absl::ConsumePrefix(&entry, "+")) {
    }
    const std::string_view folder(entry.data(), entry.size());
    if (folder == "/" || folder == path ||
        (path.starts_with(folder) && path[folder.size()] == '/')) {
      return true;
    }
  }
  return false;
}

std::string DropIn(const Facts& facts, const std::string& line) {
  return facts.unit_name.empty()
             ? absl::StrCat("put '", line, "' into the unit of the service, and restart it")
             : absl::StrCat("'systemctl edit ", facts.unit_name, "': '", line,
                            "' below [Service], and restart it");
}

// What the mounts of a process that runs say.
std::vector<Finding> CheckMounts(const Facts& facts) {
  const std::string name = SubjectName(facts);
  const std::vector<Mount>& mounts = *facts.subject->mounts;
  const Mount* const tracefs = TracefsMount(mounts);
  if (tracefs == nullptr) {
    return {{"sandbox", absl::StrCat(name, " sees no tracefs, which the machine has"),
             DropIn(facts, "BindPaths=/sys/kernel/tracing") +
                 "; a container needs '-v /sys/kernel/tracing:/tracing'"}};
  }
  const std::string data = tracefs->point + "/user_events_data";
  const Mount* const mount = MountOf(mounts, data);
  if (mount->type != "tracefs") {
    return {{"sandbox", absl::StrCat("something else is mounted over ", data, " for ", name),
             "take it out of InaccessiblePaths= or TemporaryFileSystem= of the unit"}};
  }
  if (!mount->read_only) return {};
  return {{"sandbox",
           absl::StrCat(data, " is read-only for ", name,
                        ", as by ProtectKernelTunables=: its registrations fail"),
           DropIn(facts, absl::StrCat("ReadWritePaths=-", data))}};
}

// What the settings of a unit say that does not run.
std::vector<Finding> CheckUnit(const Facts& facts) {
  const UnitFacts& unit = *facts.unit;
  const bool may_write = Covers(Property(unit, "ReadWritePaths"), kUsualPath);
  if (Covers(Property(unit, "InaccessiblePaths"), kUsualPath)) {
    return {{"sandbox", facts.unit_name + " hides tracefs by InaccessiblePaths=",
             "take /sys/kernel/tracing out of it"}};
  }
  const bool has_root =
      !Property(unit, "RootDirectory").empty() || !Property(unit, "RootImage").empty();
  if (has_root && !Covers(Property(unit, "BindPaths"), kUsualPath) &&
      !absl::StrContains(Property(unit, "BindPaths"), "/sys/kernel/tracing")) {
    return {{"sandbox", facts.unit_name + " has a root of its own without tracefs",
             DropIn(facts, "BindPaths=/sys/kernel/tracing")}};
  }
  const bool is_read_only = Property(unit, "ProtectKernelTunables") == "yes" ||
                            Covers(Property(unit, "ReadOnlyPaths"), kUsualPath);
  if (!is_read_only || may_write) return {};
  return {{"sandbox",
           facts.unit_name + " has ProtectKernelTunables= or ReadOnlyPaths=, so that tracefs is "
                             "read-only for it: its registrations will fail",
           DropIn(facts, std::string("ReadWritePaths=-") + kUsualPath)}};
}

void CheckFiles(const ProcessFacts& process, const std::string& name,
                std::vector<Finding>* findings) {
  // One more is needed for the next thing that it opens.
  if (process.open_files && process.open_files_limit &&
      *process.open_files + 1 >= *process.open_files_limit) {
    findings->push_back({"limits",
                         absl::StrCat(name, " has ", *process.open_files, " of ",
                                      *process.open_files_limit, " descriptors open"),
                         "raise its limit (LimitNOFILE= of its unit, or ulimit -n), and restart "
                         "it"});
  }
}

// The daemon's rings are locked memory: beyond what the kernel lets each user have for perf, they
// need a limit that allows them.
void CheckLockedMemory(const Facts& facts, const ProcessFacts& daemon,
                       std::vector<Finding>* findings) {
  if (!facts.perf_event_paranoid || *facts.perf_event_paranoid <= -1 || !daemon.identity ||
      Has(*daemon.identity, kCapIpcLock) || !daemon.locked_bytes_limit ||
      !facts.perf_event_mlock_kib || !facts.cpus || !facts.daemon.sessions.ok()) {
    return;
  }
  std::uint64_t ring_bytes = 0;  // Sessions share rings: of each CPU the largest, at least.
  for (const SessionStatus& session : *facts.daemon.sessions) {
    ring_bytes = std::max(ring_bytes, session.ring_bytes);
  }
  const std::uint64_t needed = ring_bytes * *facts.cpus;
  const std::uint64_t allowed =
      *facts.perf_event_mlock_kib * 1024 * *facts.cpus + *daemon.locked_bytes_limit;
  if (needed <= allowed) return;
  findings->push_back({"limits",
                       absl::StrCat("nettraced's rings are ", needed / 1024,
                                    " KiB of locked memory, and it may have ", allowed / 1024),
                       "give its unit LimitMEMLOCK=infinity, as it is installed, or its sessions "
                       "smaller rings"});
}

Finding StateFinding(const SessionStatus& session) {
  const std::string why = session.error.empty() ? "" : ": " + session.error;
  switch (session.state) {
    case SessionStatus::State::kStopped:
      return {"sessions", absl::StrCat("session ", session.name, " is stopped", why),
              absl::StrCat("'nettrace ctl start ", session.name, "'")};
    case SessionStatus::State::kSuspended:
      return {"sessions",
              absl::StrCat("session ", session.name,
                           " is suspended, as its output takes nothing; events are lost", why),
              "make room, or bring its directory or reader back"};
    default:
      return {"sessions", absl::StrCat("session ", session.name, " has failed", why),
              "mend what its error says; it is tried again by itself"};
  }
}

}  // namespace

std::vector<Finding> CheckKernel(const Facts& facts) {
  if (HasUserEvents(facts)) return {};
  const auto version = ParseRelease(facts.release);
  constexpr std::pair kFirst(6, 4);
  if (version && *version < kFirst) {
    return {{"kernel", absl::StrCat("Linux ", facts.release, " has no user_events"),
             "boot Linux 6.4 or newer, with CONFIG_USER_EVENTS=y"}};
  }
  if (facts.config_user_events == false) {
    return {
        {"kernel",
         absl::StrCat("Linux ", facts.release, " was configured without CONFIG_USER_EVENTS"),
         "boot a kernel that has CONFIG_USER_EVENTS=y: that of Ubuntu or Azure Linux, or one of "
         "your own"}};
  }
  if (!facts.data) return {};  // CheckTracefs says that first
  return {{"kernel", absl::StrCat(facts.data->path, " is not there: the kernel has no user_events"),
           "boot Linux 6.4 or newer, with CONFIG_USER_EVENTS=y"}};
}

std::vector<Finding> CheckTracefs(const Facts& facts) {
  if (TracefsMount(facts.mounts) != nullptr) return {};
  return {{"tracefs", "tracefs is not mounted",
           absl::StrCat("'", kMountCommand,
                        "', at each boot: 'systemctl enable --now sys-kernel-tracing.mount'")}};
}

std::vector<Finding> CheckSandbox(const Facts& facts) {
  if (!HasUserEvents(facts)) return {};
  if (facts.subject && facts.subject->mounts) return CheckMounts(facts);
  return facts.unit ? CheckUnit(facts) : std::vector<Finding>();
}

std::vector<Finding> CheckPermission(const Facts& facts) {
  if (!HasUserEvents(facts) || !facts.subject || !facts.subject->identity) return {};
  const ProcessFacts& subject = *facts.subject;
  // It was opened before permissions changed, or another process has given it away.
  if (subject.has_user_events_open) return {};
  const FileFacts* const obstacle = Obstacle(subject);
  if (obstacle == nullptr) return {};
  const bool is_data = obstacle == &subject.way.back();
  const std::string what =
      absl::StrFormat("%s may not %s %s (mode %04o, group %s)", SubjectName(facts),
                      is_data ? "write to" : "pass through", obstacle->path, obstacle->mode & 07777,
                      GroupName(obstacle->group));
  if (is_data && (obstacle->mode & S_IWGRP) != 0 && obstacle->group != 0) {
    const std::string group = GroupName(obstacle->group);
    return {{"permission", what,
             facts.user_name.empty()
                 ? DropIn(facts, absl::StrCat("SupplementaryGroups=", group))
                 : absl::StrCat("'usermod -aG ", group, " ", facts.user_name,
                                "', and log in anew; of a service: SupplementaryGroups=", group)}};
  }
  const std::string folder = subject.way[subject.way.size() - 2].path;
  return {{"permission", what,
           absl::StrCat("let a group write: 'systemd-sysusers && systemd-tmpfiles --create' where "
                        "nettraced is installed, or 'chmod 711 ",
                        folder, "; chgrp user_events ", subject.way.back().path, "; chmod 660 ",
                        subject.way.back().path, "'; tracefs forgets that when it is remounted")}};
}

std::vector<Finding> CheckUserNamespace(const Facts& facts) {
  if (!facts.subject || facts.subject->uid_map.empty()) return {};
  const ProcessFacts& subject = *facts.subject;
  if (subject.has_user_events_open || !subject.identity || Obstacle(subject) == nullptr) return {};
  return {{"user-namespace",
           absl::StrCat(SubjectName(facts), " is in a user namespace (", subject.uid_map,
                        "), where root and capabilities are worth nothing in tracefs"),
           "let it have a group of the machine that may write to user_events_data (--group-add of "
           "containers), or take it out of the namespace (PrivateUsers=no)"}};
}

std::vector<Finding> CheckLimits(const Facts& facts) {
  std::vector<Finding> findings;
  if (facts.subject) CheckFiles(*facts.subject, SubjectName(facts), &findings);
  if (facts.daemon.process) {
    CheckFiles(*facts.daemon.process, "nettraced", &findings);
    CheckLockedMemory(facts, *facts.daemon.process, &findings);
  }
  if (facts.user_events_max && facts.tracepoints && facts.tracepoints->ok() &&
      (*facts.tracepoints)->size() >= *facts.user_events_max) {
    findings.push_back({"limits",
                        absl::StrCat("all ", *facts.user_events_max,
                                     " tracepoints that kernel.user_events_max allows are there"),
                        "'sysctl kernel.user_events_max=65536', or 'eventheader unregister' those "
                        "that nobody needs"});
  }
  if (facts.all_tracepoints && *facts.all_tracepoints >= kMaxTracepointIds) {
    findings.push_back({"limits", "the kernel has no id left for another tracepoint",
                        "'eventheader unregister' those that nobody needs"});
  }
  if (facts.perf_event_paranoid && *facts.perf_event_paranoid > -1 && facts.daemon.process &&
      facts.daemon.process->identity && !Has(*facts.daemon.process->identity, kCapPerfmon) &&
      !Has(*facts.daemon.process->identity, kCapSysAdmin)) {
    findings.push_back({"limits",
                        absl::StrCat("nettraced has no CAP_PERFMON, and kernel.perf_event_paranoid "
                                     "is ",
                                     *facts.perf_event_paranoid),
                        "give its unit AmbientCapabilities=CAP_PERFMON CAP_DAC_READ_SEARCH, as it "
                        "is installed"});
  }
  return findings;
}

std::vector<Finding> CheckNames(const Facts& facts) {
  std::vector<Finding> findings;
  if (!facts.tracepoints || !facts.tracepoints->ok()) return findings;
  for (const Tracepoint& tracepoint : **facts.tracepoints) {
    if (!tracepoint.IsTaken()) continue;
    findings.push_back(
        {"name",
         absl::StrCat("tracepoint ", tracepoint.name, " is defined as '", *tracepoint.fields,
                      "', which is not EventHeader's: services cannot register it"),
         absl::StrCat("'eventheader unregister ", tracepoint.name,
                      "' deletes it or says who uses it; then restart the service")});
  }
  return findings;
}

std::vector<Finding> CheckRegistered(const Facts& facts) {
  if (!HasUserEvents(facts) || !facts.subject || facts.subject->pid == 0 ||
      facts.subject->has_user_events_open || !facts.subject->open_files) {
    return {};
  }
  return {
      {"registered", absl::StrCat(SubjectName(facts), " has not registered any tracepoint"),
       "what is above may be why; then restart it. If nothing is, ask its provider.status(), or "
       "whether it is instrumented at all"}};
}

std::vector<Finding> CheckDaemon(const Facts& facts) {
  const absl::Status& status = facts.daemon.sessions.status();
  if (status.ok()) return {};
  if (!absl::IsNotFound(status)) {
    return {{"daemon", std::string(status.message()),
             absl::IsPermissionDenied(status) ? "run this as root, or as a member of group tracing"
                                              : "'systemctl status nettraced' says more"}};
  }
  const UnitFacts& unit = facts.daemon.unit;
  const std::string state = Property(unit, "ActiveState");
  if (state == "failed") {
    const bool is_settings = Property(unit, "ExecMainStatus") == "78";
    return {{"daemon", absl::StrCat("nettraced has failed (", Property(unit, "Result"), ")"),
             is_settings ? "'nettraced --check-config' says what is wrong with its settings"
                         : "'journalctl -u nettraced' says why"}};
  }
  if (Property(unit, "LoadState") != "loaded") {
    return {{"daemon", "nettraced does not run, and systemd has no unit of it",
             "install it, or record with 'nettrace record'"}};
  }
  return {{"daemon", absl::StrCat("nettraced does not run (", state, ")"),
           "'systemctl enable --now nettraced'"}};
}

std::vector<Finding> CheckSessions(const Facts& facts) {
  if (!facts.daemon.sessions.ok()) return {};
  if (facts.daemon.sessions->empty()) {
    return {{"sessions", "nettraced has no session: it collects nothing",
             "describe one in /etc/nettraced/NAME.toml, see nettraced.toml(5), and 'systemctl "
             "reload nettraced'"}};
  }
  std::vector<Finding> findings;
  for (const SessionStatus& session : *facts.daemon.sessions) {
    if (session.state != SessionStatus::State::kRunning) findings.push_back(StateFinding(session));
    for (const std::string& selector : session.unmatched) {
      findings.push_back({"selector",
                          absl::StrCat("selector '", selector, "' of session ", session.name,
                                       " matches no tracepoint"),
                          "compare it with 'eventheader list'; if its service has not run yet, "
                          "'eventheader register' makes the tracepoint now"});
    }
    for (const std::string& tracepoint : session.left_out) {
      findings.push_back({"left-out",
                          absl::StrCat("session ", session.name, " leaves out ", tracepoint),
                          "'nettrace ctl status " + session.name + "' shows all of them"});
    }
  }
  return findings;
}

std::vector<Finding> Diagnose(const Facts& facts) {
  std::vector<Finding> all;
  for (const Check check :
       {CheckKernel, CheckTracefs, CheckSandbox, CheckPermission, CheckUserNamespace, CheckLimits,
        CheckNames, CheckRegistered, CheckDaemon, CheckSessions}) {
    std::vector<Finding> found = check(facts);
    std::move(found.begin(), found.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace tools
