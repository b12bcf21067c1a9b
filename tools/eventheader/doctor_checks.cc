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
#include "libeventheader/base/ring_layout.h"
#include "tools/base/text.h"

namespace tools {
namespace {

using control::SessionStatus;

constexpr char kUsualPath[] = "/sys/kernel/tracing/user_events_data";
constexpr char kMountCommand[] = "mount -t tracefs tracefs /sys/kernel/tracing";
// Number of tracepoint ids: an id has 16 bits, and is not 0.
constexpr std::uint64_t kMaxTracepointIds = 65535;
// Bit numbers of capabilities.
constexpr int kCapDacOverride = 1;
constexpr int kCapDacReadSearch = 2;
constexpr int kCapIpcLock = 14;
constexpr int kCapSysAdmin = 21;
constexpr int kCapPerfmon = 38;

bool Has(const Identity& identity, int capability) {
  return (identity.capabilities >> capability & 1) != 0;
}

// Returns {major, minor} of a release such as "6.12.3-amd64", or no value if `release` has another
// form.
std::optional<std::pair<int, int>> ParseRelease(const std::string& release) {
  const std::vector<std::string> parts = absl::StrSplit(release, absl::ByAnyChar(".-"));
  std::pair<int, int> version;
  if (parts.size() < 2 || !absl::SimpleAtoi(parts[0], &version.first) ||
      !absl::SimpleAtoi(parts[1], &version.second)) {
    return std::nullopt;
  }
  return version;
}

// Returns the name of the subject (the process, unit or user that is examined) for messages.
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

// Returns whether a process with these rights may access a file. `bits` are the needed access bits
// in the position for others, such as S_IWOTH. `capabilities_count` states whether capabilities
// have an effect: in a user namespace, they have none on files of the machine.
bool May(const Identity& identity, const FileFacts& file, mode_t bits, bool capabilities_count) {
  if (capabilities_count && Has(identity, kCapDacOverride)) return true;
  if (capabilities_count && bits == S_IXOTH && Has(identity, kCapDacReadSearch)) return true;
  const bool is_member = std::find(identity.groups.begin(), identity.groups.end(), file.group) !=
                         identity.groups.end();
  const int shift = identity.user == file.user ? 6 : is_member ? 3 : 0;
  return (file.mode >> shift & bits) == bits;
}

// Returns the first file or folder on the path to user_events_data that the subject may not access.
// Returns null if there is none, or if an earlier file or folder on the path cannot be examined.
const FileFacts* Obstacle(const ProcessFacts& subject) {
  for (const FileFacts& file : subject.way) {
    const bool is_last = &file == &subject.way.back();
    if (file.error != 0) return nullptr;  // cannot be examined from here, or does not exist
    if (!May(*subject.identity, file, is_last ? S_IWOTH : S_IXOTH, subject.uid_map.empty())) {
      return &file;
    }
  }
  return nullptr;
}

bool HasUserEvents(const Facts& facts) { return facts.data && facts.data->error != ENOENT; }

// Returns whether `path` or a folder above it is in `paths`, a property of a unit: a list of paths
// that are separated by blanks and may begin with '-' or '+'.
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
             ? absl::StrCat("add '", line, "' to the unit of the service, and restart it")
             : absl::StrCat("run 'systemctl edit ", facts.unit_name, "', add '", line,
                            "' below [Service], and restart it");
}

// Checks whether the mounts of a running process let it write to user_events_data.
std::vector<Finding> CheckMounts(const Facts& facts) {
  const std::string name = SubjectName(facts);
  const std::vector<Mount>& mounts = *facts.subject->mounts;
  const Mount* const tracefs = TracefsMount(mounts);
  if (tracefs == nullptr) {
    return {{"sandbox", absl::StrCat("tracefs is mounted, but not visible to ", name),
             DropIn(facts, "BindPaths=/sys/kernel/tracing") +
                 "; a container needs '-v /sys/kernel/tracing:/tracing'"}};
  }
  const std::string data = tracefs->point + "/user_events_data";
  const Mount* const mount = MountOf(mounts, data);
  if (mount->type != "tracefs") {
    return {{"sandbox", absl::StrCat("something else is mounted over ", data, " for ", name),
             "remove this path from InaccessiblePaths= or TemporaryFileSystem= of the unit"}};
  }
  if (!mount->read_only) return {};
  return {{"sandbox",
           absl::StrCat(data, " is read-only for ", name,
                        ", for example because of ProtectKernelTunables=; its registrations fail"),
           DropIn(facts, absl::StrCat("ReadWritePaths=-", data))}};
}

// Returns whether the unit has failed, also if systemd is about to restart it.
bool HasFailed(const UnitFacts& unit) {
  const std::string state = UnitProperty(unit, "ActiveState");
  const std::string result = UnitProperty(unit, "Result");
  return state == "failed" || (state == "activating" && !result.empty() && result != "success");
}

// Checks whether the settings of a unit that is not running will let it write to user_events_data.
std::vector<Finding> CheckUnit(const Facts& facts) {
  const UnitFacts& unit = *facts.unit;
  const bool may_write = Covers(UnitProperty(unit, "ReadWritePaths"), kUsualPath);
  if (Covers(UnitProperty(unit, "InaccessiblePaths"), kUsualPath)) {
    return {{"sandbox", facts.unit_name + " hides tracefs by InaccessiblePaths=",
             "remove the path that contains /sys/kernel/tracing from this setting"}};
  }
  const bool has_root =
      !UnitProperty(unit, "RootDirectory").empty() || !UnitProperty(unit, "RootImage").empty();
  if (has_root && !Covers(UnitProperty(unit, "BindPaths"), kUsualPath) &&
      !absl::StrContains(UnitProperty(unit, "BindPaths"), "/sys/kernel/tracing")) {
    return {{"sandbox", facts.unit_name + " has its own root directory without tracefs",
             DropIn(facts, "BindPaths=/sys/kernel/tracing")}};
  }
  const bool is_read_only = UnitProperty(unit, "ProtectKernelTunables") == "yes" ||
                            Covers(UnitProperty(unit, "ReadOnlyPaths"), kUsualPath);
  if (!is_read_only || may_write) return {};
  return {{"sandbox",
           facts.unit_name + " has ProtectKernelTunables= or ReadOnlyPaths=, so tracefs is "
                             "read-only for it, and its registrations will fail",
           DropIn(facts, std::string("ReadWritePaths=-") + kUsualPath)}};
}

// Adds a finding if the process `name` has at most one free descriptor: the next file that it opens
// takes the last one.
void CheckFiles(const ProcessFacts& process, const std::string& name,
                std::vector<Finding>* findings) {
  if (process.open_files && process.open_files_limit &&
      *process.open_files + 1 >= *process.open_files_limit) {
    findings->push_back({"limits",
                         absl::StrCat(name, " has ", *process.open_files, " of ",
                                      *process.open_files_limit, " descriptors open"),
                         "raise its limit (LimitNOFILE= of its unit, or ulimit -n), and restart "
                         "it"});
  }
}

// Checks the daemon's limit of locked memory. The daemon's rings are locked memory. The kernel
// allows each user perf_event_mlock_kb KiB of rings for each CPU; the rest of the rings must fit
// into the limit of the process.
void CheckLockedMemory(const Facts& facts, const ProcessFacts& daemon,
                       std::vector<Finding>* findings) {
  if (!facts.perf_event_paranoid || *facts.perf_event_paranoid <= -1 || !daemon.identity ||
      Has(*daemon.identity, kCapIpcLock) || !daemon.locked_bytes_limit ||
      !facts.perf_event_mlock_kib || !facts.cpus || !facts.daemon.sessions.ok()) {
    return;
  }
  // Computes a lower bound of the bytes of rings: all sessions might share rings of the largest
  // size.
  std::uint64_t ring_bytes = 0;
  for (const SessionStatus& session : *facts.daemon.sessions) {
    ring_bytes = std::max(ring_bytes, session.ring_bytes);
  }
  const std::uint64_t needed = ring_bytes * *facts.cpus;
  const std::uint64_t allowed =
      *facts.perf_event_mlock_kib * 1024 * *facts.cpus + *daemon.locked_bytes_limit;
  if (needed <= allowed) return;
  findings->push_back(
      {"limits",
       absl::StrCat("the rings of nettraced need ", needed / 1024,
                    " KiB of locked memory, more than the limit of ", allowed / 1024, " KiB"),
       "set LimitMEMLOCK=infinity in its unit, as the package does, or a smaller ring_size in its "
       "sessions"});
}

Finding StateFinding(const SessionStatus& session) {
  const std::string why = session.error.empty() ? "" : ": " + session.error;
  switch (session.state) {
    case SessionStatus::State::kStopped:
      return {"sessions", absl::StrCat("session ", session.name, " is stopped", why),
              absl::StrCat("run 'nettrace ctl start ", session.name, "'")};
    case SessionStatus::State::kSuspended:
      return {"sessions",
              absl::StrCat("session ", session.name,
                           " is suspended, because its output is blocked; events are lost when its "
                           "queue is full",
                           why),
              "free disk space, restore its directory, or start the reader of its pipe"};
    default:
      return {"sessions", absl::StrCat("session ", session.name, " has failed", why),
              "fix the cause of the error; the session is retried automatically"};
  }
}

}  // namespace

std::string WhyNoUserEvents(const Facts& facts) {
  if (HasUserEvents(facts)) return "";
  const auto version = ParseRelease(facts.release);
  constexpr std::pair kFirst(6, 4);
  if (version && *version < kFirst) {
    return absl::StrCat("Linux ", facts.release, " has no user_events");
  }
  if (facts.config_user_events == false) {
    return absl::StrCat("Linux ", facts.release, " was configured without CONFIG_USER_EVENTS");
  }
  if (!facts.data) return "";  // tracefs is not mounted, which CheckTracefs reports
  return absl::StrCat(facts.data->path, " does not exist: the kernel has no user_events");
}

std::vector<Finding> CheckKernel(const Facts& facts) {
  const std::string why = WhyNoUserEvents(facts);
  if (why.empty() || !facts.ring_socket || facts.ring_socket->has_collector) return {};
  const RingSocketFacts& socket = *facts.ring_socket;
  return {{"kernel",
           absl::StrCat(why,
                        ", so services use shared memory, but no collector receives their "
                        "events: ",
                        socket.path, socket.exists ? " has no listener" : " does not exist"),
           "run 'nettrace record', or start a session of nettraced that selects services; with "
           "user_events, which need Linux 6.4 or newer and CONFIG_USER_EVENTS=y, services need no "
           "socket"}};
}

std::vector<Finding> CheckSocket(const Facts& facts) {
  if (!facts.ring_socket || !facts.ring_socket->has_collector || !facts.subject ||
      !facts.subject->identity) {
    return {};
  }
  const ProcessFacts& subject = *facts.subject;
  const std::string& path = facts.ring_socket->path;
  for (const FileFacts& file : subject.way_to_socket) {
    const bool is_last = &file == &subject.way_to_socket.back();
    if (file.error == ENOENT) {
      const std::string folder = path.substr(0, path.rfind('/'));
      // The default path is a link to a socket in the subfolder `services`. Mounts only this
      // subfolder, because the folder of the link also has the control socket.
      const bool is_link = path == eh::internal::ring::kSystemSocket;
      const std::string mount = absl::StrCat(folder, is_link ? "/services:" : ":", folder);
      return {{"socket",
               absl::StrCat("the socket of services, ", path, ", does not exist for ",
                            SubjectName(facts)),
               absl::StrCat("mount the directory of the socket where the service runs: '-v ", mount,
                            ":ro' of containers, BindReadOnlyPaths=", mount, " of units")}};
    }
    if (file.error != 0) return {};
    if (May(*subject.identity, file, is_last ? S_IWOTH : S_IXOTH, subject.uid_map.empty()))
      continue;
    return {{"socket",
             absl::StrFormat("%s may not %s %s (mode %04o, group %s)", SubjectName(facts),
                             is_last ? "connect to" : "pass through", file.path, file.mode & 07777,
                             GroupName(file.group)),
             "let all users connect: run the collector as root, or install its package, whose "
             "units make the socket; or run the service as the user of the collector"}};
  }
  return {};
}

std::vector<Finding> CheckTracefs(const Facts& facts) {
  if (TracefsMount(facts.mounts) != nullptr) return {};
  return {{"tracefs", "tracefs is not mounted",
           absl::StrCat(
               "run '", kMountCommand,
               "'; to mount it at each boot, 'systemctl enable --now sys-kernel-tracing.mount'")}};
}

std::vector<Finding> CheckSandbox(const Facts& facts) {
  if (!HasUserEvents(facts)) return {};
  if (facts.subject && facts.subject->mounts) return CheckMounts(facts);
  return facts.unit ? CheckUnit(facts) : std::vector<Finding>();
}

std::vector<Finding> CheckPermission(const Facts& facts) {
  if (!HasUserEvents(facts) || !facts.subject || !facts.subject->identity) return {};
  const ProcessFacts& subject = *facts.subject;
  // Permissions do not matter for an open file: the process opened it before they changed, or
  // received its descriptor from another process.
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
                 : absl::StrCat(
                       "run 'usermod -aG ", group, " ", facts.user_name,
                       "', and log in again; for a service, set SupplementaryGroups=", group)}};
  }
  const std::string folder = subject.way[subject.way.size() - 2].path;
  return {{"permission", what,
           absl::StrCat("give a group write access with 'systemd-sysusers && systemd-tmpfiles "
                        "--create' if nettrace-tools is installed, else with 'chmod 711 ",
                        folder, "; chgrp user_events ", subject.way.back().path, "; chmod 660 ",
                        subject.way.back().path, "', which is lost when tracefs is remounted")}};
}

std::vector<Finding> CheckUserNamespace(const Facts& facts) {
  if (!facts.subject || facts.subject->uid_map.empty()) return {};
  const ProcessFacts& subject = *facts.subject;
  if (subject.has_user_events_open || !subject.identity || Obstacle(subject) == nullptr) return {};
  return {{"user-namespace",
           absl::StrCat(SubjectName(facts), " is in a user namespace (", subject.uid_map,
                        "), so its root and its capabilities have no effect in tracefs"),
           "run it with a group of the host that may write to user_events_data (containers: "
           "--group-add), or outside the user namespace (systemd: PrivateUsers=no)"}};
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
    findings.push_back(
        {"limits",
         absl::StrCat("the maximum of ", *facts.user_events_max,
                      " tracepoints (kernel.user_events_max) is reached"),
         absl::StrCat("run 'sysctl kernel.user_events_max=", 2 * *facts.user_events_max,
                      "', or delete unused tracepoints with 'eventheader "
                      "unregister'")});
  }
  if (facts.all_tracepoints && *facts.all_tracepoints >= kMaxTracepointIds) {
    findings.push_back({"limits",
                        absl::StrCat("the kernel has ", *facts.all_tracepoints,
                                     " tracepoints, and no more ids for new ones"),
                        "delete unused tracepoints with 'eventheader unregister'"});
  }
  if (facts.perf_event_paranoid && *facts.perf_event_paranoid > -1 && facts.daemon.process &&
      facts.daemon.process->identity && !Has(*facts.daemon.process->identity, kCapPerfmon) &&
      !Has(*facts.daemon.process->identity, kCapSysAdmin)) {
    findings.push_back({"limits",
                        absl::StrCat("nettraced has no CAP_PERFMON, and kernel.perf_event_paranoid "
                                     "is ",
                                     *facts.perf_event_paranoid),
                        "set AmbientCapabilities=CAP_PERFMON CAP_DAC_READ_SEARCH in its unit, as "
                        "the package does"});
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
         absl::StrCat("tracepoint ", tracepoint.name, " has the fields '", *tracepoint.fields,
                      "' instead of those of EventHeader; services cannot register it"),
         absl::StrCat("delete it with 'eventheader unregister ", tracepoint.name,
                      "', and restart the service; if the tracepoint is in use, the command fails "
                      "and shows by whom")});
  }
  return findings;
}

std::vector<Finding> CheckRegistered(const Facts& facts) {
  if (facts.unit && HasFailed(*facts.unit)) {
    return {{"registered",
             absl::StrCat(facts.unit_name, " has failed (", UnitProperty(*facts.unit, "Result"),
                          "), so it has no tracepoint registered"),
             absl::StrCat("'journalctl -u ", facts.unit_name, "' shows the reason")}};
  }
  if (!HasUserEvents(facts) || !facts.subject || facts.subject->pid == 0 ||
      facts.subject->has_user_events_open || !facts.subject->open_files) {
    return {};
  }
  return {
      {"registered", absl::StrCat(SubjectName(facts), " has not registered any tracepoint"),
       "solve the problems above, and restart it; if there are none, check provider.status() in "
       "its code, and whether it uses libeventheader"}};
}

std::vector<Finding> CheckDaemon(const Facts& facts) {
  const absl::Status& status = facts.daemon.sessions.status();
  if (status.ok()) return {};
  if (!absl::IsNotFound(status)) {
    return {{"daemon", std::string(status.message()),
             absl::IsPermissionDenied(status) ? "run this as root, or as a member of group tracing"
                                              : "'systemctl status nettraced' shows more"}};
  }
  const UnitFacts& unit = facts.daemon.unit;
  const std::string state = UnitProperty(unit, "ActiveState");
  if (HasFailed(unit)) {
    const bool is_settings = UnitProperty(unit, "ExecMainStatus") == "78";
    return {{"daemon", absl::StrCat("nettraced has failed (", UnitProperty(unit, "Result"), ")"),
             is_settings ? "'nettraced --check-config' shows the errors in its settings"
                         : "'journalctl -u nettraced' shows the reason"}};
  }
  if (UnitProperty(unit, "LoadState") != "loaded") {
    return {{"daemon", "nettraced is not running, and systemd has no unit for it",
             "install it, or record with 'nettrace record'"}};
  }
  return {{"daemon", absl::StrCat("nettraced is not running (", state, ")"),
           "run 'systemctl enable --now nettraced'"}};
}

std::vector<Finding> CheckRefused(const Facts& facts) {
  std::vector<Finding> findings;
  for (const control::RefusedServices& refused : facts.daemon.refused) {
    const std::string user = refused.uid ? absl::StrCat(" of user ", *refused.uid) : "";
    const std::string last =
        refused.pid != 0 ? absl::StrCat(", the last one from process ", refused.pid) : "";
    findings.push_back(
        {"services",
         absl::StrCat("nettraced has refused ", base::Counted(refused.count, "connection"), user,
                      last, ": ", refused.message),
         refused.remedy});
  }
  return findings;
}

std::vector<Finding> CheckSessions(const Facts& facts) {
  if (!facts.daemon.sessions.ok()) return {};
  if (facts.daemon.sessions->empty()) {
    return {{"sessions", "nettraced has no session, so it records nothing",
             "define one in /etc/nettraced/NAME.toml, see nettraced.toml(5), and run 'systemctl "
             "reload nettraced'"}};
  }
  std::vector<Finding> findings;
  for (const SessionStatus& session : *facts.daemon.sessions) {
    if (session.state != SessionStatus::State::kRunning) findings.push_back(StateFinding(session));
    for (const std::string& selector : session.unmatched) {
      findings.push_back(
          {"selector",
           absl::StrCat("selector '", selector, "' of session ", session.name,
                        " matches no tracepoint"),
           absl::StrCat("compare it with 'eventheader list', or for kernel "
                        "tracepoints with /sys/kernel/tracing/available_events; if "
                        "its service has not run yet, start it",
                        HasUserEvents(facts) ? ", or use 'eventheader register'" : "")});
    }
    for (const std::string& tracepoint : session.left_out) {
      findings.push_back(
          {"left-out", absl::StrCat("session ", session.name, " leaves out ", tracepoint),
           "'nettrace ctl status " + session.name + "' shows all tracepoints that are left out"});
    }
  }
  return findings;
}

std::vector<Finding> CheckDotnet(const collector::DotnetSurvey& survey) {
  std::vector<Finding> findings;
  for (const collector::DotnetRuntime& runtime : survey.runtimes) {
    if (runtime.problem.empty()) continue;
    const std::string version =
        runtime.version.empty() ? "" : absl::StrCat(", .NET ", runtime.version);
    findings.push_back(
        {"dotnet",
         absl::StrCat("process ", runtime.pid, " (", runtime.name, version, "): ", runtime.problem),
         runtime.remedy});
  }
  return findings;
}

std::vector<Finding> Diagnose(const Facts& facts) {
  std::vector<Finding> all;
  for (const Check check :
       {CheckKernel, CheckSocket, CheckTracefs, CheckSandbox, CheckPermission, CheckUserNamespace,
        CheckLimits, CheckNames, CheckRegistered, CheckDaemon, CheckRefused, CheckSessions}) {
    std::vector<Finding> found = check(facts);
    std::move(found.begin(), found.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace tools
