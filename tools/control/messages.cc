#include "tools/control/messages.h"

#include <rapidjson/error/en.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "tools/base/text.h"
#include "tools/control/losses.h"

namespace control {
namespace {

constexpr int kMaxDepth = 16;  // maximum nesting of arrays and objects

struct ErrorName {
  absl::StatusCode code;
  const char* name;
};
constexpr std::array kErrorNames = {
    ErrorName{absl::StatusCode::kNotFound, "NotFound"},
    ErrorName{absl::StatusCode::kInvalidArgument, "InvalidArgument"},
    ErrorName{absl::StatusCode::kAlreadyExists, "AlreadyExists"},
    ErrorName{absl::StatusCode::kFailedPrecondition, "FailedPrecondition"},
    ErrorName{absl::StatusCode::kPermissionDenied, "PermissionDenied"},
    ErrorName{absl::StatusCode::kResourceExhausted, "ResourceExhausted"},
    ErrorName{absl::StatusCode::kDeadlineExceeded, "DeadlineExceeded"},
    ErrorName{absl::StatusCode::kUnavailable, "Unavailable"},
    ErrorName{absl::StatusCode::kUnimplemented, "Unimplemented"},
    ErrorName{absl::StatusCode::kUnknown, "Failed"},
};

struct NameOfState {
  SessionStatus::State state;
  std::string_view name;
};
constexpr std::array kStateNames = {
    NameOfState{SessionStatus::State::kRunning, "running"},
    NameOfState{SessionStatus::State::kSuspended, "suspended"},
    NameOfState{SessionStatus::State::kFailed, "failed"},
    NameOfState{SessionStatus::State::kStopped, "stopped"},
};

constexpr std::string_view kCollectorDescription =
    R"(# The sessions of nettraced, which records events into NetTrace files.
interface net.nettrace.Collector

# Lost events. tracepoint is empty if it is not known.
type Loss (cpu: int, tracepoint: string, events: int)

# A process of .NET. reason says why all or some of its events are missing; it is empty if none are.
type DotnetProcess (
  pid: int,
  name: string,
  state: (noSocket, asked, enabled, refused, tooOld),
  reason: string,
  ended: bool,
  by: (userEvents, eventPipe)
)

# All counts are since the session started. Times are in UTC, in the form of RFC 3339. dropped
# counts events that were lost because the output was too slow; lost includes them. losses contains
# only the largest losses. discarded counts events that were still queued for a blocked output when
# the session stopped. cpuRate is the number of samples of CPU time per second and CPU, or 0. offCpu
# is true if times in which threads have no CPU are recorded. stacks has the selectors with stacks.
# dotnet has the providers of .NET. dotnetEnabled counts the processes of .NET that enabled their
# events, dotnetNotEnabled those that have not and are not expected to, and dotnetNotAsked those
# beyond the limit of processes. dotnetProcesses lists some: running processes, then the latest that
# ended.
type Session (
  name: string,
  kind: (files, pipe, flight),
  state: (running, suspended, failed, stopped),
  stateSince: ?string,
  started: ?string,
  error: string,
  errorTime: ?string,
  events: int,
  lost: int,
  dropped: int,
  discarded: int,
  undecoded: int,
  bytes: int,
  eventsPerSecond: float,
  bytesPerSecond: float,
  tracepoints: int,
  losses: []Loss,
  ringBytes: int,
  queueBytes: int,
  queueLimit: int,
  memoryBytes: int,
  files: int,
  fileBytes: int,
  currentFile: string,
  snapshots: int,
  snapshotsRefused: int,
  unmatched: []string,
  leftOut: []string,
  warnings: []string,
  cpuRate: int,
  offCpu: bool,
  stacks: []string,
  dotnet: []string,
  dotnetEnabled: int,
  dotnetNotEnabled: int,
  dotnetNotAsked: int,
  dotnetProcesses: []DotnetProcess
)

# Events that a service lost since it connected, by reason: no memory was free in its ring; a signal
# handler wrote the event while its thread wrote another one; too many threads were writing.
type ServiceLoss (reason: (ringFull, signalHandler, tooManyThreads), events: int)

# A tracepoint that a service has registered, and the sessions that have it enabled.
type ServiceTracepoint (name: string, sessions: []string)

# A service that passes its events through a ring in shared memory, because the kernel has no user_events
# or the service chose to. The kernel reports pid and uid; pid is 0 if the process has none in the
# daemon's pid namespace. name, executable and cgroup are empty if they are not known. ringBytes is
# the memory for events that the service may use. corrupt counts records that a correct service
# cannot have written. moreTracepoints is true if tracepoints contains only some of them. transport
# is memfd, or inline if the events come over the socket. inlineReason has the reason for inline.
type Service (
  pid: int,
  uid: int,
  name: string,
  executable: string,
  cgroup: string,
  started: ?string,
  connected: ?string,
  transport: string,
  inlineReason: string,
  ringBytes: int,
  events: int,
  lost: int,
  losses: []ServiceLoss,
  corrupt: int,
  tracepoints: []ServiceTracepoint,
  moreTracepoints: bool
)

# Connections of services that the daemon has refused or ended, of one user and for one reason. pid
# is the process of the last one, or 0; uid is null if it is not known. message has details of the
# last one.
type Refused (
  uid: ?int,
  pid: int,
  reason: string,
  message: string,
  remedy: string,
  count: int,
  last: ?string
)

# Returns all sessions, sorted by name.
method List() -> (sessions: []Session)

method Status(session: string) -> (session: Session)

# Starts a session that is stopped or has failed.
method Start(session: string) -> ()

# Starts the sessions in settings, the text of a file as in nettraced.toml(5).
method StartFrom(settings: string) -> (sessions: []string)

# Replies when the session's last file is complete.
method Stop(session: string) -> ()

# Completes the current file; a new one follows.
method Rotate(session: string) -> (path: string)

# Writes a file from a flight recorder. With after, the file includes the events of that number of
# milliseconds after the call.
method Snapshot(session: string, after: ?int) -> (path: string)

# Reads the settings again.
method Reload() -> ()

# Must be called with "upgrade". A NetTrace stream of the session's new events follows the reply. It
# ends with the session, or when the caller shuts down its side of the connection.
method Tail(session: string) -> ()

# Replies when all given conditions are met: the session is in state (default without other
# conditions: running), and has at least this number of files and of events. Fails with
# DeadlineExceeded after timeout milliseconds.
method Wait(session: string, state: ?string, files: ?int, events: ?int, timeout: ?int) -> (session: Session)

# Returns the services that are connected through rings in shared memory, and the latest refused
# connections. socket is the path that services connect to; if it is empty, whyNone has the reason.
method Services() -> (
  socket: string,
  whyNone: string,
  services: []Service,
  refused: []Refused
)

# Returns metrics as OpenMetrics text.
method Metrics() -> (text: string)

error NotFound (message: string)
error InvalidArgument (message: string)
error AlreadyExists (message: string)
error FailedPrecondition (message: string)
error PermissionDenied (message: string)
error ResourceExhausted (message: string)
error DeadlineExceeded (message: string)
error Unavailable (message: string)
error Unimplemented (message: string)
error Failed (message: string)
)";

// Copied from varlink.org.
constexpr std::string_view kServiceDescription =
    R"(# The Varlink Service Interface is provided by every varlink service. It
# describes the service and the interfaces it implements.
interface org.varlink.service

# Get a list of all the interfaces a service provides and information
# about the implementation.
method GetInfo() -> (
  vendor: string,
  product: string,
  version: string,
  url: string,
  interfaces: []string
)

# Get the description of an interface that is implemented by this service.
method GetInterfaceDescription(interface: string) -> (description: string)

# The requested interface was not found.
error InterfaceNotFound (interface: string)

# The requested method was not found
error MethodNotFound (method: string)

# The interface defines the requested method, but the service does not
# implement it.
error MethodNotImplemented (method: string)

# One of the passed parameters is invalid.
error InvalidParameter (parameter: string)
)";

// Returns whether at most kMaxDepth arrays and objects are nested. Brackets in strings do not
// count.
bool IsFlat(std::string_view json) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) return false;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return true;
}

// A constraint that Struct and const Struct satisfy, so that one function can visit members to read
// or to write them.
template <typename T, typename Struct>
concept IsEither = std::is_same_v<std::remove_const_t<T>, Struct>;

// Calls `visit(key, member)` for each member of a DotnetProcess or SessionStatus.
template <typename Visit>
void VisitMembers(IsEither<DotnetProcess> auto& process, const Visit& visit) {
  visit("pid", process.pid);
  visit("name", process.name);
  visit("state", process.state);
  visit("reason", process.reason);
  visit("ended", process.ended);
  visit("by", process.by);
}
template <typename Visit>
void VisitMembers(IsEither<SessionStatus> auto& session, const Visit& visit) {
  visit("name", session.name);
  visit("kind", session.kind);
  visit("state", session.state);
  visit("stateSince", session.state_since);
  visit("started", session.started);
  visit("error", session.error);
  visit("errorTime", session.error_time);
  visit("events", session.events);
  visit("lost", session.lost);
  visit("dropped", session.dropped);
  visit("discarded", session.discarded);
  visit("undecoded", session.undecoded);
  visit("bytes", session.bytes);
  visit("eventsPerSecond", session.events_per_second);
  visit("bytesPerSecond", session.bytes_per_second);
  visit("tracepoints", session.tracepoints);
  visit("losses", session.losses);
  visit("ringBytes", session.ring_bytes);
  visit("queueBytes", session.queue_bytes);
  visit("queueLimit", session.queue_limit);
  visit("memoryBytes", session.memory_bytes);
  visit("files", session.files);
  visit("fileBytes", session.file_bytes);
  visit("currentFile", session.current_file);
  visit("snapshots", session.snapshots);
  visit("snapshotsRefused", session.snapshots_refused);
  visit("unmatched", session.unmatched);
  visit("leftOut", session.left_out);
  visit("warnings", session.warnings);
  visit("cpuRate", session.cpu_rate);
  visit("offCpu", session.off_cpu);
  visit("stacks", session.stacks);
  visit("dotnet", session.dotnet);
  visit("dotnetEnabled", session.dotnet_enabled);
  visit("dotnetNotEnabled", session.dotnet_not_enabled);
  visit("dotnetNotAsked", session.dotnet_not_asked);
  visit("dotnetProcesses", session.dotnet_processes);
}

// Calls `visit(key, member)` for each member of the structs of ServicesStatus.
template <typename Visit>
void VisitMembers(IsEither<ServiceStatus::Tracepoint> auto& tracepoint, const Visit& visit) {
  visit("name", tracepoint.name);
  visit("sessions", tracepoint.sessions);
}
template <typename Visit>
void VisitMembers(IsEither<ServiceStatus::Loss> auto& loss, const Visit& visit) {
  visit("reason", loss.reason);
  visit("events", loss.events);
}
template <typename Visit>
void VisitMembers(IsEither<ServiceStatus> auto& service, const Visit& visit) {
  visit("pid", service.pid);
  visit("uid", service.uid);
  visit("name", service.name);
  visit("executable", service.executable);
  visit("cgroup", service.cgroup);
  visit("started", service.started);
  visit("connected", service.connected);
  visit("transport", service.transport);
  visit("inlineReason", service.inline_reason);
  visit("ringBytes", service.ring_bytes);
  visit("events", service.events);
  visit("lost", service.lost);
  visit("losses", service.losses);
  visit("corrupt", service.corrupt);
  visit("tracepoints", service.tracepoints);
  visit("moreTracepoints", service.has_more_tracepoints);
}
template <typename Visit>
void VisitMembers(IsEither<RefusedServices> auto& refused, const Visit& visit) {
  visit("uid", refused.uid);
  visit("pid", refused.pid);
  visit("reason", refused.reason);
  visit("message", refused.message);
  visit("remedy", refused.remedy);
  visit("count", refused.count);
  visit("last", refused.last);
}
template <typename Visit>
void VisitMembers(IsEither<ServicesStatus> auto& services, const Visit& visit) {
  visit("socket", services.socket);
  visit("whyNone", services.why_none);
  visit("services", services.services);
  visit("refused", services.refused);
}

void PutValue(base::JsonWriter* json, std::string_view text) { base::PutString(json, text); }
// Limits the number to the range of varlink's integers, which are signed.
void PutValue(base::JsonWriter* json, std::uint64_t number) {
  json->Uint64(std::min<std::uint64_t>(number, std::numeric_limits<std::int64_t>::max()));
}
void PutValue(base::JsonWriter* json, const std::optional<std::uint64_t>& number) {
  if (number) {
    PutValue(json, *number);
  } else {
    json->Null();
  }
}
void PutValue(base::JsonWriter* json, bool flag) { json->Bool(flag); }
void PutValue(base::JsonWriter* json, double number) {
  json->Double(std::isfinite(number) ? number : 0);
}
void PutValue(base::JsonWriter* json, SessionStatus::State state) {
  base::PutString(json, StateName(state));
}
void PutValue(base::JsonWriter* json, absl::Time time) {
  if (time == absl::InfinitePast() || time == absl::InfiniteFuture()) {
    json->Null();
  } else {
    base::PutString(json, base::FormatUtc(time));
  }
}
void PutValue(base::JsonWriter* json, const std::vector<std::string>& texts) {
  json->StartArray();
  for (const std::string& text : texts) base::PutString(json, text);
  json->EndArray();
}
void PutValue(base::JsonWriter* json, const LossTable& losses) {
  json->StartArray();
  for (const Loss& loss : LargestLosses(losses, kMaxLossesSent)) {
    json->StartObject();
    json->Key("cpu");
    json->Uint(loss.cpu);
    base::PutText(json, "tracepoint", loss.tracepoint);
    json->Key("events");
    PutValue(json, loss.events);
    json->EndObject();
  }
  json->EndArray();
}

template <typename Struct>
void PutValue(base::JsonWriter* json, const std::vector<Struct>& list);
// Writes the members of a struct into the object that is open in `json`.
template <typename Struct>
void PutMembers(base::JsonWriter* json, const Struct& from) {
  VisitMembers(from, [json](const char* key, const auto& member) {
    json->Key(key);
    PutValue(json, member);
  });
}
template <typename Struct>
void PutValue(base::JsonWriter* json, const std::vector<Struct>& list) {
  json->StartArray();
  for (const Struct& each : list) {
    json->StartObject();
    PutMembers(json, each);
    json->EndObject();
  }
  json->EndArray();
}

bool GetValue(const rapidjson::Value& json, std::string* text) {
  if (!json.IsString()) return false;
  text->assign(json.GetString(), json.GetStringLength());
  return true;
}
bool GetValue(const rapidjson::Value& json, std::uint64_t* number) {
  if (!json.IsUint64()) return false;
  *number = json.GetUint64();
  return true;
}
bool GetValue(const rapidjson::Value& json, std::optional<std::uint64_t>* number) {
  if (json.IsNull()) return true;
  return GetValue(json, &number->emplace());
}
bool GetValue(const rapidjson::Value& json, bool* flag) {
  if (!json.IsBool()) return false;
  *flag = json.GetBool();
  return true;
}
bool GetValue(const rapidjson::Value& json, double* number) {
  if (!json.IsNumber()) return false;
  *number = json.GetDouble();
  return true;
}
bool GetValue(const rapidjson::Value& json, SessionStatus::State* state) {
  std::string name;
  if (!GetValue(json, &name)) return false;
  const absl::StatusOr<SessionStatus::State> parsed = ParseState(name);
  if (parsed.ok()) *state = *parsed;
  return parsed.ok();
}
bool GetValue(const rapidjson::Value& json, absl::Time* time) {
  std::string text;
  if (json.IsNull()) return true;
  return GetValue(json, &text) && absl::ParseTime(absl::RFC3339_full, text, time, nullptr);
}
bool GetValue(const rapidjson::Value& json, std::vector<std::string>* texts) {
  if (!json.IsArray()) return false;
  for (const rapidjson::Value& text : json.GetArray()) {
    if (!GetValue(text, &texts->emplace_back())) return false;
  }
  return true;
}
bool GetValue(const rapidjson::Value& json, LossTable* losses) {
  if (!json.IsArray()) return false;
  for (const rapidjson::Value& loss : json.GetArray()) {
    if (!loss.IsObject()) return false;
    const auto cpu = loss.FindMember("cpu");
    const auto tracepoint = loss.FindMember("tracepoint");
    const auto events = loss.FindMember("events");
    const auto end = loss.MemberEnd();
    if (cpu == end || tracepoint == end || events == end || !cpu->value.IsUint()) return false;
    std::string name;
    std::uint64_t count = 0;
    if (!GetValue(tracepoint->value, &name) || !GetValue(events->value, &count)) return false;
    (*losses)[{cpu->value.GetUint(), std::move(name)}] += count;
  }
  return true;
}

// Reads the members of a struct. Missing members keep their values. Returns the name of a member
// that has the wrong type, or "".
template <typename Struct>
std::string GetMembers(const rapidjson::Value& json, Struct* to);
template <typename Struct>
bool GetValue(const rapidjson::Value& json, std::vector<Struct>* list) {
  if (!json.IsArray()) return false;
  for (const rapidjson::Value& each : json.GetArray()) {
    if (!each.IsObject() || !GetMembers(each, &list->emplace_back()).empty()) return false;
  }
  return true;
}
template <typename Struct>
std::string GetMembers(const rapidjson::Value& json, Struct* to) {
  std::string wrong;
  VisitMembers(*to, [&](const char* key, auto& member) {
    const auto found = json.FindMember(key);
    if (found != json.MemberEnd() && !GetValue(found->value, &member)) wrong = key;
  });
  return wrong;
}

}  // namespace

std::string_view InterfaceDescription(std::string_view interface) {
  if (interface == kControlInterface) return kCollectorDescription;
  if (interface == kVarlinkInterface) return kServiceDescription;
  return "";
}

absl::Status InvalidReply(std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("nettraced: its reply is invalid: ", std::string(why),
                   "; restart nettraced after an upgrade"));
}

absl::StatusOr<rapidjson::Document> ParseMessage(std::string_view message) {
  if (!IsFlat(message)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the message has more than ", kMaxDepth,
                     " levels of nested arrays and objects, the maximum"));
  }
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(
      message.data(), message.size());
  if (document.HasParseError()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the message is not JSON: at byte ", document.GetErrorOffset(), ": ",
        absl::StripSuffix(rapidjson::GetParseError_En(document.GetParseError()), ".")));
  }
  if (!document.IsObject()) return absl::InvalidArgumentError("the message is not a JSON object");
  return document;
}

std::string ErrorNameOf(absl::StatusCode code) {
  for (const ErrorName& error : kErrorNames) {
    if (error.code == code) return absl::StrCat(kControlInterface, ".", error.name);
  }
  return absl::StrCat(kControlInterface, ".Failed");
}

absl::StatusCode CodeOfErrorName(std::string_view name) {
  for (const ErrorName& error : kErrorNames) {
    if (name == absl::StrCat(kControlInterface, ".", error.name)) return error.code;
  }
  return absl::StatusCode::kUnknown;
}

std::string_view StateName(SessionStatus::State state) {
  for (const NameOfState& known : kStateNames) {
    if (known.state == state) return known.name;
  }
  return "";
}

absl::StatusOr<SessionStatus::State> ParseState(std::string_view name) {
  for (const NameOfState& known : kStateNames) {
    if (known.name == name) return known.state;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", base::Printable(name), "' is not a state; use running, suspended, failed or stopped"));
}

void PutSession(base::JsonWriter* json, const SessionStatus& session) {
  json->StartObject();
  PutMembers(json, session);
  json->EndObject();
}

absl::StatusOr<SessionStatus> ParseSession(const rapidjson::Value& json) {
  if (!json.IsObject()) return InvalidReply("a session is not a JSON object");
  SessionStatus session;
  session.state_since = absl::InfinitePast();
  const std::string wrong = GetMembers(json, &session);
  if (wrong.empty()) return session;
  return InvalidReply(absl::StrCat("a session's '", wrong, "' has the wrong type"));
}

void PutServices(base::JsonWriter* json, const ServicesStatus& services) {
  PutMembers(json, services);
}

absl::StatusOr<ServicesStatus> ParseServices(const rapidjson::Value& json) {
  if (!json.IsObject()) return InvalidReply("the services are not a JSON object");
  ServicesStatus services;
  const std::string wrong = GetMembers(json, &services);
  if (wrong.empty()) return services;
  return InvalidReply(absl::StrCat("the '", wrong, "' have the wrong type"));
}

}  // namespace control
