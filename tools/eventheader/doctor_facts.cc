#include "tools/eventheader/doctor_facts.h"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "libeventheader/base/ring_layout.h"
#include "tools/base/read_file.h"
#include "tools/base/status_macros.h"
#include "tools/collector/perf/cpu_list.h"
#include "tools/collector/ring/ring_server.h"
#include "tools/control/client.h"
#include "tools/control/messages.h"
#include "tools/eventheader/command_output.h"
#include "tools/eventheader/ring_tracepoints.h"

namespace tools {
namespace {

// Maximum number of bytes that are read of a text. Kernel configurations and the output of
// systemctl are shorter.
constexpr std::size_t kMaxText = std::size_t{1} << 20;
// Maximum time to wait for an answer of the daemon. It answers within 15 s even if a disk hangs.
constexpr absl::Duration kPatience = absl::Seconds(20);

// The properties that are requested from systemd for a unit.
constexpr char kProperties[] =
    "--property=LoadState,ActiveState,Result,ExecMainStatus,MainPID,ProtectKernelTunables,"
    "ReadWritePaths,ReadOnlyPaths,InaccessiblePaths,BindPaths,RootDirectory,RootImage";

// Returns the text of a file, up to kMaxText bytes. Returns no value if it cannot be read.
std::optional<std::string> ReadText(const std::string& path) {
  absl::StatusOr<std::string> text = base::ReadFile(path, kMaxText);
  if (!text.ok()) return std::nullopt;
  return *std::move(text);
}

std::string FirstLine(const std::string& path) {
  const std::string text = ReadText(path).value_or("");
  return text.substr(0, text.find('\n'));
}

template <typename Number>
std::optional<Number> ReadNumber(const std::string& path) {
  Number number = 0;
  if (!absl::SimpleAtoi(FirstLine(path), &number)) return std::nullopt;
  return number;
}

// Returns the number of lines of a file. Returns no value if the file cannot be read.
std::optional<std::uint64_t> CountLines(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
}

std::optional<std::string> ReadCompressed(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rbe"), gzclose);
  if (file == nullptr) return std::nullopt;
  std::string text(kMaxText, '\0');
  const int got = gzread(file.get(), text.data(), static_cast<unsigned>(text.size()));
  if (got <= 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(got));
  return text;
}

std::optional<bool> ReadConfig(const std::string& root, const std::string& release) {
  if (const auto text = ReadCompressed(root + "/proc/config.gz")) return HasConfigUserEvents(*text);
  for (const std::string& path :
       {absl::StrCat("/boot/config-", release), absl::StrCat("/lib/modules/", release, "/config"),
        absl::StrCat("/usr/lib/modules/", release, "/config")}) {
    if (const auto text = ReadText(root + path)) return HasConfigUserEvents(*text);
  }
  return std::nullopt;
}

FileFacts Look(const std::string& root, const std::string& path) {
  FileFacts facts;
  facts.path = path;
  struct stat status = {};
  if (stat((root + path).c_str(), &status) != 0) {
    facts.error = errno;
  } else {
    facts.user = status.st_uid;
    facts.group = status.st_gid;
    facts.mode = status.st_mode;
  }
  return facts;
}

// Returns the facts of each folder on the way to the file at `path`, and of the file.
std::vector<FileFacts> LookAlong(const std::string& root, const std::string& path) {
  std::vector<FileFacts> way = {Look(root, "/")};
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    way.push_back(Look(root, path.substr(0, slash)));
  }
  way.push_back(Look(root, path));
  return way;
}

std::string DataPath(const std::vector<Mount>& mounts) {
  const Mount* const tracefs = TracefsMount(mounts);
  return tracefs == nullptr ? "" : tracefs->point + "/user_events_data";
}

// Returns the soft limit `name` from the text of /proc/PID/limits. Returns no value if it is absent
// or "unlimited".
std::optional<std::uint64_t> SoftLimit(std::string_view limits, absl::string_view name) {
  for (absl::string_view line :
       absl::StrSplit(absl::string_view(limits.data(), limits.size()), '\n')) {
    if (!absl::ConsumePrefix(&line, name)) continue;
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    std::uint64_t limit = 0;
    if (!words.empty() && absl::SimpleAtoi(words[0], &limit)) return limit;
  }
  return std::nullopt;
}

void LookAtFiles(const std::string& proc, ProcessFacts* facts) {
  std::error_code error;
  std::uint64_t count = 0;
  for (std::filesystem::directory_iterator entry(proc + "/fd", error), end; !error && entry != end;
       entry.increment(error)) {
    ++count;
    std::error_code unread;
    const auto target = std::filesystem::read_symlink(entry->path(), unread).native();
    if (absl::EndsWith(target, "/user_events_data")) facts->has_user_events_open = true;
  }
  if (!error) facts->open_files = count;
}

// Returns the facts of a process; `pid` may be "self". Returns no value if there is no such
// process.
std::optional<ProcessFacts> LookAtProcess(const std::string& root, const std::string& pid) {
  const std::string proc = absl::StrCat(root, "/proc/", pid);
  std::error_code error;
  if (!std::filesystem::is_directory(proc, error)) return std::nullopt;
  ProcessFacts facts;
  if (!absl::SimpleAtoi(pid, &facts.pid)) facts.pid = getpid();
  facts.name = FirstLine(proc + "/comm");
  if (const auto status = ReadText(proc + "/status")) facts.identity = ParseProcessStatus(*status);
  if (const auto mounts = ReadText(proc + "/mountinfo"); mounts && !mounts->empty()) {
    facts.mounts = ParseMountInfo(*mounts);
    const std::string data = DataPath(*facts.mounts);
    if (!data.empty()) facts.way = LookAlong(proc + "/root", data);
  }
  const std::string map = ReadText(proc + "/uid_map").value_or("");
  const std::vector<std::string> words =
      absl::StrSplit(map, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  if (!words.empty() && words != std::vector<std::string>{"0", "0", "4294967295"}) {
    facts.uid_map = absl::StrCat("its user ", words[0], " is user ",
                                 words.size() > 1 ? words[1] : "?", " of the machine");
  }
  const std::string limits = ReadText(proc + "/limits").value_or("");
  facts.open_files_limit = SoftLimit(limits, "Max open files");
  facts.locked_bytes_limit = SoftLimit(limits, "Max locked memory");
  LookAtFiles(proc, &facts);
  return facts;
}

absl::StatusOr<std::vector<control::SessionStatus>> AskDaemon(const std::string& socket) {
  ASSIGN_OR_RETURN(auto client, control::ControlClient::Connect(socket, kPatience));
  ASSIGN_OR_RETURN(const auto reply, client.Call("List", "{}"));
  const auto found = reply.FindMember("sessions");
  if (found == reply.MemberEnd() || !found->value.IsArray()) {
    return absl::InternalError(
        "nettraced: its reply has no array 'sessions'; nettraced and this program may have "
        "different versions: restart nettraced after an upgrade");
  }
  std::vector<control::SessionStatus> sessions;
  for (const rapidjson::Value& value : found->value.GetArray()) {
    ASSIGN_OR_RETURN(auto session, control::ParseSession(value));
    sessions.push_back(std::move(session));
  }
  return sessions;
}

// Returns the daemon's services, with the connections that it has refused within the last hour.
// Returns none if the daemon does not answer.
control::ServicesStatus AskForServices(const std::string& socket) {
  auto services = ServicesClient(socket).List();
  if (!services.ok()) return {};
  const absl::Time since = absl::Now() - absl::Hours(1);
  std::erase_if(services->refused,
                [since](const control::RefusedServices& each) { return each.last < since; });
  return *std::move(services);
}

// Returns the rights of a user's processes: all capabilities for root, none for other users.
// Returns no value if there is no such user.
std::optional<Identity> IdentityOfUser(const std::string& name) {
  const passwd* const entry = getpwnam(name.c_str());
  if (entry == nullptr) return std::nullopt;
  Identity identity;
  identity.user = entry->pw_uid;
  int count = 1024;
  identity.groups.resize(static_cast<std::size_t>(count));
  if (getgrouplist(name.c_str(), entry->pw_gid, identity.groups.data(), &count) < 0) {
    count = 0;
  }
  identity.groups.resize(static_cast<std::size_t>(count));
  if (identity.user == 0) identity.capabilities = ~std::uint64_t{0};
  return identity;
}

// Returns the facts of a process that this program would start for the user. Such a process has
// the mounts and limits of this program. Returns no value if /proc is not mounted.
std::optional<ProcessFacts> LookAtUser(const std::string& root, const std::string& name) {
  auto facts = LookAtProcess(root, "self");
  if (!facts) return std::nullopt;
  facts->identity = IdentityOfUser(name);
  facts->name = name;
  facts->pid = 0;
  facts->open_files.reset();
  return facts;
}

// Examines the socket that services of this machine use: $EVENTHEADER_SOCKET, or else the socket in
// /run.
RingSocketFacts LookAtRingSocket() {
  RingSocketFacts facts;
  const std::string chosen = collector::ChosenRingSocket();
  facts.path = chosen.empty() ? eh::internal::ring::kSystemSocket : chosen;
  struct stat status;
  facts.exists = stat(facts.path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
  // The path may be a link, but the kernel lists the path to which systemd has bound the socket.
  std::error_code error;
  const std::filesystem::path socket = std::filesystem::canonical(facts.path, error);
  // Searches the kernel's list of sockets first, because a connection would start nettraced if only
  // systemd listens. The list lacks sockets of other network namespaces, and shows the temporary
  // names under which collectors create sockets. HasCollector tries to connect to such sockets.
  facts.has_collector =
      facts.exists && (ListsListener(ReadText("/proc/net/unix").value_or(""), socket.string()) ||
                       collector::HasCollector(facts.path));
  return facts;
}

}  // namespace

bool ListsListener(std::string_view text, std::string_view path) {
  // Example of the line of a listening socket: "ffff8881: 00000002 00000000 00010000 0005 01 12345
  // /run/nettraced/events", where 00010000 is __SO_ACCEPTCON.
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::MaxSplits(absl::ByAnyChar(" "), 7), absl::SkipEmpty());
    if (words.size() == 8 && words[3] == "00010000" &&
        words[7] == absl::string_view(path.data(), path.size())) {
      return true;
    }
  }
  return false;
}

std::string UnitProperty(const UnitFacts& unit, const std::string& name) {
  const auto found = unit.find(name);
  return found == unit.end() ? "" : found->second;
}

std::optional<Identity> ParseProcessStatus(std::string_view text) {
  Identity identity;
  bool has_user = false;
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    std::uint32_t id = 0;
    // The columns are the real, effective, saved and file system ids. The last one determines
    // access to files.
    if (words.size() == 5 && words[0] == "Uid:" && absl::SimpleAtoi(words[4], &id)) {
      identity.user = id;
      has_user = true;
    } else if (words.size() == 5 && words[0] == "Gid:" && absl::SimpleAtoi(words[4], &id)) {
      identity.groups.push_back(id);
    } else if (!words.empty() && words[0] == "Groups:") {
      for (std::size_t i = 1; i < words.size(); ++i) {
        if (absl::SimpleAtoi(words[i], &id)) identity.groups.push_back(id);
      }
    } else if (words.size() == 2 && words[0] == "CapEff:") {
      if (!absl::SimpleHexAtoi(words[1], &identity.capabilities)) return std::nullopt;
    }
  }
  if (!has_user) return std::nullopt;
  return identity;
}

UnitFacts ParseUnitProperties(std::string_view text) {
  UnitFacts unit;
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> property =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    unit[std::string(property.first)] = std::string(property.second);
  }
  return unit;
}

bool HasConfigUserEvents(std::string_view config) {
  return config.find("\nCONFIG_USER_EVENTS=y\n") != std::string_view::npos;
}

FactSources MachineSources(const std::string& socket) {
  FactSources sources;
  sources.show_unit = [](const std::string& unit) {
    return ParseUnitProperties(
        OutputOf({"systemctl", "show", "--no-pager", kProperties, "--", unit}).value_or(""));
  };
  sources.daemon_sessions = [socket] { return AskDaemon(socket); };
  sources.services = [socket] { return AskForServices(socket); };
  sources.ring_socket = LookAtRingSocket;
  sources.tracepoints = []() -> absl::StatusOr<std::vector<Tracepoint>> {
    ASSIGN_OR_RETURN(const auto tracefs, FindUserEvents());
    ASSIGN_OR_RETURN(auto list, ListTracepoints(tracefs, {}));
    return std::move(list.tracepoints);
  };
  return sources;
}

absl::StatusOr<Subject> ParseSubject(const std::string& text, const FactSources& sources) {
  Subject subject;
  if (text.empty()) return subject;
  if (absl::SimpleAtoi(text, &subject.pid) && subject.pid > 0) {
    if (LookAtProcess(sources.root, std::to_string(subject.pid))) return subject;
    return absl::InvalidArgumentError(
        absl::StrCat("--for: there is no process ", text, "; use the id of a running process"));
  }
  subject.pid = 0;
  // Tries a unit before a user: if a unit has a dynamic user, both have the same name.
  const std::string unit = absl::StrContains(text, ".") ? text : text + ".service";
  if (UnitProperty(sources.show_unit(unit), "LoadState") == "loaded") {
    subject.unit = unit;
  } else if (getpwnam(text.c_str()) != nullptr) {
    subject.user = text;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("--for: '", text,
                     "' is not a process id, a user or a loaded unit of systemd; "
                     "'systemctl list-units --all' lists the units"));
  }
  return subject;
}

Facts GatherFacts(const Subject& subject, const FactSources& sources) {
  const std::string& root = sources.root;
  Facts facts;
  facts.release = FirstLine(root + "/proc/sys/kernel/osrelease");
  facts.config_user_events = ReadConfig(root, facts.release);
  facts.mounts = ParseMountInfo(ReadText(root + "/proc/self/mountinfo").value_or(""));
  if (const std::string data = DataPath(facts.mounts); !data.empty()) {
    facts.data = Look(root, data);
    if (facts.data->error != ENOENT) facts.tracepoints = sources.tracepoints();
    const std::string folder = root + data.substr(0, data.rfind('/'));
    facts.all_tracepoints = CountLines(folder + "/available_events");
  }
  if (!facts.data || facts.data->error == ENOENT) facts.ring_socket = sources.ring_socket();
  facts.user_events_max = ReadNumber<std::uint64_t>(root + "/proc/sys/kernel/user_events_max");
  facts.perf_event_paranoid = ReadNumber<int>(root + "/proc/sys/kernel/perf_event_paranoid");
  facts.perf_event_mlock_kib =
      ReadNumber<std::uint64_t>(root + "/proc/sys/kernel/perf_event_mlock_kb");
  const auto cpus = collector::ParseCpuList(FirstLine(root + "/sys/devices/system/cpu/online"));
  if (cpus.ok()) facts.cpus = cpus->size();

  if (subject.pid != 0) facts.subject = LookAtProcess(root, std::to_string(subject.pid));
  facts.user_name = subject.user;
  if (!subject.user.empty()) facts.subject = LookAtUser(root, subject.user);
  facts.unit_name = subject.unit;
  if (!subject.unit.empty()) {
    facts.unit = sources.show_unit(subject.unit);
    const std::string pid = UnitProperty(*facts.unit, "MainPID");
    if (!pid.empty() && pid != "0") facts.subject = LookAtProcess(root, pid);
  }

  if (facts.ring_socket && facts.subject) {
    const std::string proc = absl::StrCat(
        root, "/proc/",
        facts.subject->pid == 0 ? std::string("self") : std::to_string(facts.subject->pid));
    facts.subject->way_to_socket = LookAlong(proc + "/root", facts.ring_socket->path);
  }
  facts.daemon.sessions = sources.daemon_sessions();
  if (facts.daemon.sessions.ok() && sources.services) {
    control::ServicesStatus services = sources.services();
    facts.daemon.refused = std::move(services.refused);
    for (control::ServiceStatus& service : services.services) {
      if (service.transport == "inline") facts.daemon.inline_services.push_back(std::move(service));
    }
  }
  facts.daemon.unit = sources.show_unit("nettraced.service");
  const std::string pid = UnitProperty(facts.daemon.unit, "MainPID");
  if (!pid.empty() && pid != "0") facts.daemon.process = LookAtProcess(root, pid);
  return facts;
}

}  // namespace tools
