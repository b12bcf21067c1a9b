#include "tools/control/dispatcher.h"

#include <rapidjson/document.h>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tools/base/json_text.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/control/messages.h"
#include "tools/control/metrics.h"

namespace control {
namespace {

// Interval at which the method Wait checks its condition.
constexpr absl::Duration kWaitInterval = absl::Milliseconds(100);
// Maximum values of parameters in ms: a year for `timeout` of the method Wait, an hour for `after`
// of the method Snapshot.
constexpr std::uint64_t kMaxTimeout = std::uint64_t{365} * 24 * 3600 * 1000;
constexpr std::uint64_t kMaxAfter = std::uint64_t{3600} * 1000;

// The parameters of all methods. The rows of kMethods list the parameters of each method.
struct Parameters {
  std::optional<std::string> session;
  std::optional<std::string> settings;
  std::optional<std::string> state;
  std::optional<std::string> interface;
  std::optional<std::uint64_t> after;    // ms
  std::optional<std::uint64_t> timeout;  // ms
  std::optional<std::uint64_t> files;
  std::optional<std::uint64_t> events;
};

// The input of a method. The method writes the members of the reply's parameters to `json`.
struct Call {
  Service* service;
  const std::string& version;
  const Parameters& parameters;
  Caller* caller;
  base::JsonWriter* json;

  std::string_view session() const { return *parameters.session; }
};

void PutTexts(base::JsonWriter* json, const char* key, const std::vector<std::string>& texts) {
  json->Key(key);
  json->StartArray();
  for (const std::string& text : texts) base::PutString(json, text);
  json->EndArray();
}

absl::Status GetInfo(const Call& call) {
  base::PutText(call.json, "vendor", "nettrace");
  base::PutText(call.json, "product", "nettraced");
  base::PutText(call.json, "version", call.version);
  base::PutText(call.json, "url", "");
  PutTexts(call.json, "interfaces", {kVarlinkInterface, kControlInterface});
  return absl::OkStatus();
}

absl::Status GetInterfaceDescription(const Call& call) {
  base::PutText(call.json, "description", InterfaceDescription(*call.parameters.interface));
  return absl::OkStatus();
}

absl::Status List(const Call& call) {
  call.json->Key("sessions");
  call.json->StartArray();
  for (const SessionStatus& session : call.service->List()) PutSession(call.json, session);
  call.json->EndArray();
  return absl::OkStatus();
}

absl::Status GetStatus(const Call& call) {
  ASSIGN_OR_RETURN(const SessionStatus session, call.service->Status(call.session()));
  call.json->Key("session");
  PutSession(call.json, session);
  return absl::OkStatus();
}

absl::Status Start(const Call& call) { return call.service->Start(call.session()); }

absl::Status StartFrom(const Call& call) {
  ASSIGN_OR_RETURN(const auto started, call.service->StartFrom(*call.parameters.settings));
  PutTexts(call.json, "sessions", started);
  return absl::OkStatus();
}

absl::Status Stop(const Call& call) { return call.service->Stop(call.session()); }

absl::Status PutPath(const Call& call, const absl::StatusOr<std::string>& path) {
  if (path.ok()) base::PutText(call.json, "path", *path);
  return path.status();
}

absl::Status Rotate(const Call& call) {
  return PutPath(call, call.service->Rotate(call.session()));
}

absl::Status Snapshot(const Call& call) {
  const auto after = absl::Milliseconds(call.parameters.after.value_or(0));
  return PutPath(call, call.service->Snapshot(call.session(), after));
}

absl::Status Reload(const Call& call) { return call.service->Reload(); }

absl::Status Metrics(const Call& call) {
  base::PutText(
      call.json, "text",
      FormatMetrics(call.service->List(), call.service->Services().value_or(ServicesStatus())));
  return absl::OkStatus();
}

absl::Status Services(const Call& call) {
  ASSIGN_OR_RETURN(const ServicesStatus services, call.service->Services());
  PutServices(call.json, services);
  return absl::OkStatus();
}

absl::Status Wait(const Call& call) {
  const Parameters& wanted = call.parameters;
  std::optional<SessionStatus::State> state;
  if (wanted.state) {
    ASSIGN_OR_RETURN(state, ParseState(*wanted.state));
  } else if (!wanted.files && !wanted.events) {
    state = SessionStatus::State::kRunning;
  }
  const absl::Time end =
      wanted.timeout ? absl::Now() + absl::Milliseconds(*wanted.timeout) : absl::InfiniteFuture();
  for (;;) {
    ASSIGN_OR_RETURN(const SessionStatus session, call.service->Status(call.session()));
    if ((!state || session.state == *state) && session.files >= wanted.files.value_or(0) &&
        session.events >= wanted.events.value_or(0)) {
      call.json->Key("session");
      PutSession(call.json, session);
      return absl::OkStatus();
    }
    const absl::Duration left = end - absl::Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat(
          "session ", base::Printable(session.name), " is ", std::string(StateName(session.state)),
          " with ", base::Counted(session.events, "event"), " and ",
          base::Counted(session.files, "file"), " after ", *wanted.timeout,
          " ms, so it does not meet the conditions; allow more time"));
    }
    if (!call.caller->Pause(std::min(kWaitInterval, left))) {
      return absl::CancelledError("the daemon is stopping");
    }
  }
}

// Names of the parameters of a method.
using Names = std::span<const std::string_view>;

struct Method {
  std::string_view interface;
  std::string_view name;
  Access access;
  Names required;
  Names optional;
  absl::Status (*run)(const Call& call);  // null for Tail, which returns a stream
};

constexpr Names kNone;
constexpr std::string_view kSession[] = {"session"};
constexpr std::string_view kSettings[] = {"settings"};
constexpr std::string_view kInterface[] = {"interface"};
constexpr std::string_view kAfter[] = {"after"};
constexpr std::string_view kConditions[] = {"state", "files", "events", "timeout"};

constexpr Method kMethods[] = {
    {kVarlinkInterface, "GetInfo", Access::kLook, kNone, kNone, GetInfo},
    {kVarlinkInterface, "GetInterfaceDescription", Access::kLook, kInterface, kNone,
     GetInterfaceDescription},
    {kControlInterface, "List", Access::kLook, kNone, kNone, List},
    {kControlInterface, "Status", Access::kLook, kSession, kNone, GetStatus},
    {kControlInterface, "Metrics", Access::kLook, kNone, kNone, Metrics},
    {kControlInterface, "Services", Access::kLook, kNone, kNone, Services},
    {kControlInterface, "Wait", Access::kLook, kSession, kConditions, Wait},
    {kControlInterface, "Tail", Access::kLook, kSession, kNone, nullptr},
    {kControlInterface, "Start", Access::kChange, kSession, kNone, Start},
    {kControlInterface, "StartFrom", Access::kChange, kSettings, kNone, StartFrom},
    {kControlInterface, "Stop", Access::kChange, kSession, kNone, Stop},
    {kControlInterface, "Rotate", Access::kChange, kSession, kNone, Rotate},
    {kControlInterface, "Snapshot", Access::kChange, kSession, kAfter, Snapshot},
    {kControlInterface, "Reload", Access::kChange, kNone, kNone, Reload},
};

struct Request {
  std::string name;  // method, including its interface
  const Method* method = nullptr;
  bool oneway = false;
  bool upgrade = false;
  Parameters parameters;
};

bool Contains(Names names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string_view TextOf(const rapidjson::Value& json) {
  return {json.GetString(), json.GetStringLength()};
}

bool GetText(const rapidjson::Value& json, std::optional<std::string>* text) {
  if (!json.IsString()) return false;
  *text = std::string(TextOf(json));
  return true;
}

bool GetNumber(const rapidjson::Value& json, std::optional<std::uint64_t>* number,
               std::uint64_t largest) {
  if (!json.IsUint64() || json.GetUint64() > largest) return false;
  *number = json.GetUint64();
  return true;
}

bool GetParameter(std::string_view name, const rapidjson::Value& json, Parameters* parameters) {
  if (name == "session") return GetText(json, &parameters->session);
  if (name == "settings") return GetText(json, &parameters->settings);
  if (name == "state") return GetText(json, &parameters->state);
  if (name == "interface") return GetText(json, &parameters->interface);
  if (name == "after") return GetNumber(json, &parameters->after, kMaxAfter);
  if (name == "timeout") return GetNumber(json, &parameters->timeout, kMaxTimeout);
  if (name == "files") return GetNumber(json, &parameters->files, UINT64_MAX);
  return GetNumber(json, &parameters->events, UINT64_MAX);
}

// Reads the parameters of `method`. Returns the name of a parameter that is missing, unknown or
// wrong, or nullopt if all are right. The client chooses the names of unknown parameters, so the
// returned name may be "". An optional parameter may be null.
std::optional<std::string> GetParameters(const rapidjson::Value* json, const Method& method,
                                         Parameters* parameters) {
  std::vector<std::string_view> missing(method.required.begin(), method.required.end());
  if (json != nullptr) {
    if (!json->IsObject()) return "parameters";
    for (const auto& member : json->GetObject()) {
      const std::string_view name = TextOf(member.name);
      const bool is_optional = Contains(method.optional, name);
      if (!is_optional && !Contains(method.required, name)) return std::string(name);
      if (is_optional && member.value.IsNull()) continue;
      if (!GetParameter(name, member.value, parameters)) return std::string(name);
      std::erase(missing, name);
    }
  }
  if (missing.empty()) return std::nullopt;
  return std::string(missing.front());
}

// Reads a boolean member; a missing member leaves `*flag` unchanged. Returns false if the member is
// not a boolean.
bool GetFlag(const rapidjson::Value& message, const char* name, bool* flag) {
  const auto found = message.FindMember(name);
  if (found == message.MemberEnd()) return true;
  if (!found->value.IsBool()) return false;
  *flag = found->value.GetBool();
  return true;
}

const rapidjson::Value* FindMember(const rapidjson::Value& message, const char* name) {
  const auto found = message.FindMember(name);
  return found == message.MemberEnd() ? nullptr : &found->value;
}

std::string MessageText(const rapidjson::StringBuffer& json) {
  return std::string(json.GetString(), json.GetSize() + 1);  // with its NUL
}

// Returns the message for the error `error`, which has one parameter: `parameter`, with the value
// `value`.
std::string NamedError(std::string_view error, const char* parameter, std::string_view value) {
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  json.StartObject();
  base::PutText(&json, "error", error);
  json.Key("parameters");
  json.StartObject();
  base::PutText(&json, parameter, value);
  json.EndObject();
  json.EndObject();
  return MessageText(buffer);
}

// Returns the message of an error that varlink itself defines.
std::string VarlinkError(std::string_view name, const char* parameter, std::string_view value) {
  return NamedError(absl::StrCat(kVarlinkInterface, ".", std::string(name)), parameter, value);
}

// Writes a reply that is not an error.
class ReplyWriter {
 public:
  ReplyWriter() : json_(buffer_) {
    json_.StartObject();
    json_.Key("parameters");
    json_.StartObject();
  }
  // Returns the writer for the members of the reply's parameters.
  base::JsonWriter* json() { return &json_; }
  // Completes the message and returns it. Must be called once, as the last function.
  std::string Finish() {
    json_.EndObject();
    json_.EndObject();
    return MessageText(buffer_);
  }

 private:
  rapidjson::StringBuffer buffer_;
  base::JsonWriter json_;
};

absl::StatusOr<std::unique_ptr<Tail>> StartTail(const Call& call, const Request& request) {
  if (!request.upgrade || request.oneway) {
    return absl::FailedPreconditionError(
        "Tail must be called with \"upgrade\": its reply is followed by a NetTrace stream");
  }
  ASSIGN_OR_RETURN(base::UniqueFd socket, call.caller->DuplicateSocket());
  return call.service->StartTail(call.session(), std::move(socket), ReplyWriter().Finish());
}

// Reads the name of the method and the flags of the message. FindMethod sets Request::method and
// reads the parameters.
absl::StatusOr<Request> ParseRequest(const rapidjson::Document& json) {
  Request request;
  const rapidjson::Value* method = FindMember(json, "method");
  if (method == nullptr || !method->IsString() || !GetFlag(json, "oneway", &request.oneway) ||
      !GetFlag(json, "upgrade", &request.upgrade)) {
    return absl::InvalidArgumentError(
        "the message is not a varlink request; \"method\" must be a string, and \"oneway\" and "
        "\"upgrade\" must be true or false");
  }
  request.name = TextOf(*method);
  return request;
}

// Finds the request's method, and reads its parameters from `json`. Returns the error message to
// reply with, or "" if there is no error.
std::string FindMethod(const rapidjson::Document& json, Request* request) {
  const std::string_view full_name = request->name;
  const std::size_t dot = full_name.rfind('.');
  const std::string_view interface = full_name.substr(0, dot == full_name.npos ? 0 : dot);
  const std::string_view name = full_name.substr(dot == full_name.npos ? 0 : dot + 1);
  for (const Method& method : kMethods) {
    if (method.interface == interface && method.name == name) request->method = &method;
  }
  if (InterfaceDescription(interface).empty()) {
    return VarlinkError("InterfaceNotFound", "interface", interface);
  }
  if (request->method == nullptr) return VarlinkError("MethodNotFound", "method", name);
  const std::optional<std::string> wrong =
      GetParameters(FindMember(json, "parameters"), *request->method, &request->parameters);
  if (wrong) return VarlinkError("InvalidParameter", "parameter", *wrong);
  const std::string described = request->parameters.interface.value_or(kControlInterface);
  if (InterfaceDescription(described).empty()) {
    return VarlinkError("InterfaceNotFound", "interface", described);
  }
  return "";
}

// Carries out a request for which FindMethod has returned "". The reply is the error
// PermissionDenied if the caller lacks the access that the method needs.
Reply Run(const Request& request, const Call& call, ReplyWriter* writer) {
  const Method& method = *request.method;
  Reply reply;
  if (method.access == Access::kChange) {
    reply.change = absl::StrCat(std::string(method.name), request.parameters.session ? " " : "",
                                base::Printable(request.parameters.session.value_or("")));
  }
  if (call.caller->access() < method.access) {
    reply.status = absl::PermissionDeniedError(
        absl::StrCat(std::string(method.name),
                     " is allowed only for root, the daemon's user and members of control_group"));
  } else if (method.run != nullptr) {
    reply.status = method.run(call);
    if (reply.status.ok()) reply.message = writer->Finish();
  } else {
    auto tail = StartTail(call, request);
    reply.status = tail.status();
    if (tail.ok()) reply.tail = *std::move(tail);
  }
  if (!reply.status.ok()) reply.message = ErrorMessage(reply.status);
  return reply;
}

Reply LastReply(const absl::Status& status) {
  Reply reply;
  reply.message = ErrorMessage(status);
  reply.status = status;
  reply.is_last = true;
  return reply;
}

}  // namespace

std::string ErrorMessage(const absl::Status& status) {
  return NamedError(ErrorNameOf(status.code()), "message",
                    std::string_view(status.message().data(), status.message().size()));
}

Reply Dispatcher::Handle(std::string_view message, Caller* caller) const {
  const absl::StatusOr<rapidjson::Document> json = ParseMessage(message);
  if (!json.ok()) return LastReply(json.status());
  absl::StatusOr<Request> request = ParseRequest(*json);
  if (!request.ok()) return LastReply(request.status());
  Reply reply;
  reply.message = FindMethod(*json, &*request);
  if (reply.message.empty()) {
    ReplyWriter writer;
    const Call call = {service_, version_, request->parameters, caller, writer.json()};
    reply = Run(*request, call, &writer);
  }
  if (request->oneway) reply.message.clear();
  return reply;
}

}  // namespace control
