// `nettrace ctl`: requests to the daemon, over its control socket.
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tools/base/json_text.h"
#include "tools/base/read_file.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/cli/exit_codes.h"
#include "tools/cli/output_sink.h"
#include "tools/cli/signals.h"
#include "tools/cli/value_options.h"
#include "tools/control/client.h"
#include "tools/control/messages.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/commands.h"
#include "tools/nettrace/ctl_tables.h"

namespace tools {
namespace {

using control::ControlClient;
using control::SessionStatus;

// Maximum time for which the daemon may send nothing, in ms, after `nettrace ctl tail` has received
// a signal and asked the daemon to complete the stream.
constexpr int kTailEndTime = 5000;

struct CtlArguments {
  std::string socket = control::kControlPath;
  bool json = false;
  std::vector<std::string> sessions;
  std::vector<std::uint64_t> pids;
  std::string session;
  std::string from;
  std::optional<absl::Duration> after;
  std::string state;
  std::optional<absl::Duration> timeout;
  std::optional<std::uint64_t> files;
  std::optional<std::uint64_t> events;
};

// Builds the JSON object of a request's parameters.
class RequestText {
 public:
  RequestText() : json_(buffer_) { json_.StartObject(); }
  RequestText& Text(const char* key, std::string_view text) {
    base::PutText(&json_, key, text);
    return *this;
  }
  RequestText& Number(const char* key, std::uint64_t number) {
    json_.Key(key);
    json_.Uint64(number);
    return *this;
  }
  // Completes the object and returns its text. Must be called once, as the last function.
  std::string Finish() {
    json_.EndObject();
    return buffer_.GetString();
  }

 private:
  rapidjson::StringBuffer buffer_;
  base::JsonWriter json_;
};

std::string OfSession(const std::string& session) {
  return RequestText().Text("session", session).Finish();
}

// Prints the message, which has one line for each error. Returns the exit code.
int Fail(const std::string& command, const absl::Status& status) {
  for (const absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    absl::FPrintF(stderr, "nettrace ctl %s: %s\n", command, base::Printable(std::string(line)));
  }
  return absl::IsDeadlineExceeded(status) ? cli::kExitTimedOut : cli::kExitFailed;
}

absl::Status WrongReply() {
  return absl::InternalError(
      "nettraced: its reply is malformed; restart nettraced after an upgrade");
}

absl::StatusOr<std::string> TextOf(const rapidjson::Document& reply, const char* name) {
  const auto found = reply.FindMember(name);
  if (found == reply.MemberEnd() || !found->value.IsString()) return WrongReply();
  return std::string(found->value.GetString(), found->value.GetStringLength());
}

absl::StatusOr<SessionStatus> SessionOf(const rapidjson::Document& reply) {
  const auto found = reply.FindMember("session");
  if (found == reply.MemberEnd()) return WrongReply();
  return control::ParseSession(found->value);
}

absl::StatusOr<std::vector<SessionStatus>> SessionsOf(const rapidjson::Document& reply) {
  const auto found = reply.FindMember("sessions");
  if (found == reply.MemberEnd() || !found->value.IsArray()) return WrongReply();
  std::vector<SessionStatus> sessions;
  for (const rapidjson::Value& json : found->value.GetArray()) {
    ASSIGN_OR_RETURN(SessionStatus session, control::ParseSession(json));
    sessions.push_back(std::move(session));
  }
  return sessions;
}

void PrintSessionJson(const SessionStatus& session) {
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  control::PutSession(&json, session);
  base::PrintJsonLine(buffer);
}

std::size_t TerminalWidth() {
  winsize size = {};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kAnyWidth;
}

// Prints all sessions, as JSON or as the text that `to_text` returns.
absl::Status PrintSessions(ControlClient* client, bool as_json,
                           std::string (*to_text)(const std::vector<SessionStatus>& sessions)) {
  ASSIGN_OR_RETURN(const auto reply, client->Call("List", "{}"));
  ASSIGN_OR_RETURN(const auto sessions, SessionsOf(reply));
  if (as_json) {
    for (const SessionStatus& session : sessions) PrintSessionJson(session);
  } else {
    std::fputs(to_text(sessions).c_str(), stdout);
  }
  return absl::OkStatus();
}

absl::Status PrintSession(const absl::StatusOr<rapidjson::Document>& reply, bool as_json) {
  if (!reply.ok()) return reply.status();
  ASSIGN_OR_RETURN(const auto session, SessionOf(*reply));
  if (as_json) {
    PrintSessionJson(session);
  } else {
    std::fputs(StatusDetails(session, absl::Now()).c_str(), stdout);
  }
  return absl::OkStatus();
}

// Prints the path in a reply.
absl::Status PrintPath(const absl::StatusOr<rapidjson::Document>& reply) {
  if (!reply.ok()) return reply.status();
  const auto path = TextOf(*reply, "path");
  if (path.ok()) std::puts(base::Printable(*path).c_str());
  return path.status();
}

// Returns the text of a settings file, or of standard input for "-".
absl::StatusOr<std::string> ReadSettings(const std::string& path) {
  // A longer text is cut to this size, which the daemon still rejects as too large.
  constexpr std::size_t kMax = control::kMaxRequest + 1;
  return path == "-" ? base::ReadOpenFile(STDIN_FILENO, kMax, path) : base::ReadFile(path, kMax);
}

absl::Status StartFrom(ControlClient* client, const CtlArguments& arguments) {
  ASSIGN_OR_RETURN(const auto settings, ReadSettings(arguments.from));
  const auto reply = client->Call("StartFrom", RequestText().Text("settings", settings).Finish());
  if (!reply.ok()) {
    const std::string file = InputName(arguments.from) + ": ";
    const std::string message(reply.status().message());
    return absl::Status(reply.status().code(),
                        file + absl::StrReplaceAll(message, {{"\n", "\n" + file}}));
  }
  const auto found = reply->FindMember("sessions");
  if (found == reply->MemberEnd() || !found->value.IsArray()) return WrongReply();
  for (const rapidjson::Value& name : found->value.GetArray()) {
    if (!name.IsString()) return WrongReply();
    std::puts(base::Printable({name.GetString(), name.GetStringLength()}).c_str());
  }
  return absl::OkStatus();
}

// Returns the duration in whole milliseconds, rounded up.
std::uint64_t ToMilliseconds(absl::Duration time) {
  return static_cast<std::uint64_t>(
      absl::ToInt64Milliseconds(absl::Ceil(time, absl::Milliseconds(1))));
}

absl::Status List(ControlClient* client, const CtlArguments& arguments) {
  return PrintSessions(client, arguments.json, [](const std::vector<SessionStatus>& sessions) {
    return ListText(sessions);
  });
}

absl::Status Status(ControlClient* client, const CtlArguments& arguments) {
  if (arguments.session.empty()) {
    return PrintSessions(client, arguments.json, [](const std::vector<SessionStatus>& sessions) {
      return StatusTable(sessions, absl::Now(), TerminalWidth());
    });
  }
  return PrintSession(client->Call("Status", OfSession(arguments.session)), arguments.json);
}

absl::Status Start(ControlClient* client, const CtlArguments& arguments) {
  if (!arguments.from.empty()) return StartFrom(client, arguments);
  return client->Call("Start", OfSession(arguments.session)).status();
}

absl::Status Stop(ControlClient* client, const CtlArguments& arguments) {
  return client->Call("Stop", OfSession(arguments.session)).status();
}

absl::Status Rotate(ControlClient* client, const CtlArguments& arguments) {
  return PrintPath(client->Call("Rotate", OfSession(arguments.session)));
}

absl::Status Snapshot(ControlClient* client, const CtlArguments& arguments) {
  RequestText request;
  request.Text("session", arguments.session);
  if (arguments.after) request.Number("after", ToMilliseconds(*arguments.after));
  return PrintPath(client->Call("Snapshot", request.Finish()));
}

absl::Status Reload(ControlClient* client, const CtlArguments& /*arguments*/) {
  return client->Call("Reload", "{}").status();
}

absl::Status Wait(ControlClient* client, const CtlArguments& arguments) {
  RequestText request;
  request.Text("session", arguments.session);
  if (!arguments.state.empty()) request.Text("state", arguments.state);
  if (arguments.files) request.Number("files", *arguments.files);
  if (arguments.events) request.Number("events", *arguments.events);
  if (arguments.timeout) request.Number("timeout", ToMilliseconds(*arguments.timeout));
  const auto reply = client->Call("Wait", request.Finish());
  if (!reply.ok() || !arguments.json) return reply.status();
  return PrintSession(reply, true);
}

absl::Status Metrics(ControlClient* client, const CtlArguments& /*arguments*/) {
  ASSIGN_OR_RETURN(const auto reply, client->Call("Metrics", "{}"));
  const auto text = TextOf(reply, "text");
  if (text.ok()) std::fwrite(text->data(), 1, text->size(), stdout);
  return text.status();
}

// Keeps only the services of these processes. Fails with NotFound if a process is not connected as
// a service.
absl::Status KeepServices(const std::vector<std::uint64_t>& pids,
                          control::ServicesStatus* services) {
  std::vector<control::ServiceStatus> kept;
  for (const std::uint64_t pid : pids) {
    const std::size_t before = kept.size();
    std::copy_if(services->services.begin(), services->services.end(), std::back_inserter(kept),
                 [pid](const control::ServiceStatus& service) { return service.pid == pid; });
    if (kept.size() != before) continue;
    return absl::NotFoundError(absl::StrCat(
        "process ", pid, " is not connected; 'nettrace ctl services' lists the services"));
  }
  services->services = std::move(kept);
  return absl::OkStatus();
}

absl::Status Services(ControlClient* client, const CtlArguments& arguments) {
  ASSIGN_OR_RETURN(const auto reply, client->Call("Services", "{}"));
  ASSIGN_OR_RETURN(control::ServicesStatus services, control::ParseServices(reply));
  if (!arguments.pids.empty()) RETURN_IF_ERROR(KeepServices(arguments.pids, &services));
  if (arguments.json) {
    rapidjson::StringBuffer buffer;
    base::JsonWriter json(buffer);
    json.StartObject();
    control::PutServices(&json, services);
    json.EndObject();
    base::PrintJsonLine(buffer);
  } else if (arguments.pids.empty()) {
    std::fputs(ServicesTable(services, absl::Now(), TerminalWidth()).c_str(), stdout);
  } else {
    for (const control::ServiceStatus& service : services.services) {
      std::fputs(ServiceDetails(service, absl::Now()).c_str(), stdout);
    }
  }
  return absl::OkStatus();
}

// Writes `first`, and then all bytes that arrive from `socket`, to standard output until the stream
// ends. After a signal, asks the daemon to complete the stream. Fails with Unavailable if the
// daemon then sends nothing for kTailEndTime, or after a second SIGINT. If standard output is
// closed before a signal, raises SIGPIPE, even while no bytes arrive.
absl::Status CopyStream(int socket, const std::string& first) {
  ASSIGN_OR_RETURN(auto output, cli::OpenOutputSink(cli::kStandardOutput, 0));
  std::size_t taken = 0;
  RETURN_IF_ERROR(output->Append(std::as_bytes(std::span(first)), &taken));
  for (bool is_ending = false;;) {
    std::array<pollfd, 3> fds = {
        pollfd{socket, POLLIN, 0},
        pollfd{is_ending ? cli::HurryDescriptor() : cli::StopDescriptor(), POLLIN, 0},
        pollfd{STDOUT_FILENO, 0, 0}};
    const int ready = poll(fds.data(), fds.size(), is_ending ? kTailEndTime : -1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0 || (is_ending && fds[1].revents != 0)) {
      return absl::UnavailableError(
          "the stream is incomplete, because nettraced sent nothing for 5 s or a second SIGINT "
          "arrived; the output of the session is not affected");
    }
    if ((fds[2].revents & POLLERR) != 0) {
      // The reader of standard output may close it after the last byte of the stream, before the
      // daemon closes the socket. This is no error.
      if (is_ending) return absl::OkStatus();
      raise(SIGPIPE);
      return base::ErrnoStatus(EPIPE, "standard output");
    }
    if (fds[1].revents != 0) {
      is_ending = true;
      shutdown(socket, SHUT_WR);
      continue;
    }
    std::array<std::byte, 65536> buffer;
    const ssize_t got = recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) {
      return base::ErrnoStatus(errno, "nettraced: its stream cannot be read",
                               "'nettrace ctl status' shows whether nettraced runs");
    }
    if (got == 0) return absl::OkStatus();
    RETURN_IF_ERROR(output->Append(std::span(buffer).first(static_cast<std::size_t>(got)), &taken));
  }
}

absl::Status Tail(ControlClient* client, const CtlArguments& arguments) {
  std::string first;
  ASSIGN_OR_RETURN(const auto socket,
                   std::move(*client).Upgrade("Tail", OfSession(arguments.session), &first));
  struct sigaction on_broken_pipe = {};
  sigaction(SIGPIPE, nullptr, &on_broken_pipe);
  RETURN_IF_ERROR(cli::CatchSignals());
  // CatchSignals has made this process ignore SIGPIPE. Restores the action of the signal, so that
  // it ends this process without a message if the reader closes the pipe, like `nettrace dump`.
  sigaction(SIGPIPE, &on_broken_pipe, nullptr);
  return CopyStream(socket.get(), first);
}

using Request = absl::Status (*)(ControlClient* client, const CtlArguments& arguments);

// Connects to the daemon and calls `request` once for each session of the command line, or once if
// it names no session. Continues after an error of one session. Prints errors. Returns kExitFailed
// if standard output cannot be written, else the exit code of the last error, or kExitOk.
int Run(const char* command, const CtlArguments& arguments, Request request) {
  absl::StatusOr<ControlClient> client = ControlClient::Connect(arguments.socket);
  if (!client.ok()) return Fail(command, client.status());
  int exit_code = cli::kExitOk;
  const auto call = [&](const CtlArguments& one) {
    const absl::Status status = request(&*client, one);
    if (!status.ok()) exit_code = Fail(command, status);
  };
  if (arguments.sessions.empty()) call(arguments);
  for (const std::string& session : arguments.sessions) {
    CtlArguments one = arguments;
    one.session = session;
    call(one);
  }
  return FinishOutput("ctl", exit_code);
}

// Returns an error if the command line is wrong in a way that CLI11 does not detect from the
// definitions of the options.
absl::Status CheckUsage(std::string_view command, const CtlArguments& arguments) {
  if (command == "start" && arguments.sessions.empty() && arguments.from.empty()) {
    return absl::InvalidArgumentError("no session given; name sessions, or use --from FILE");
  }
  if (command == "tail" && isatty(STDOUT_FILENO) == 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("standard output is a terminal; use 'nettrace ctl tail ", arguments.session,
                     " | nettrace dump -'"));
  }
  return absl::OkStatus();
}

// Adds subcommands to `nettrace ctl`.
class Commands {
 public:
  Commands(CLI::App* ctl, std::shared_ptr<CtlArguments> arguments, int* exit_code)
      : ctl_(ctl), arguments_(std::move(arguments)), exit_code_(exit_code) {}

  CLI::App* Add(const char* name, const char* description, const char* footer, Request request) {
    CLI::App* command = ctl_->add_subcommand(name, description);
    command->fallthrough();  // --socket may follow the subcommand
    command->footer(footer);
    command->callback([name, request, arguments = arguments_, exit_code = exit_code_] {
      if (const absl::Status status = CheckUsage(name, *arguments); !status.ok()) {
        Fail(name, status);
        *exit_code = cli::kExitUsage;
        return;
      }
      *exit_code = Run(name, *arguments, request);
    });
    return command;
  }
  void AddJson(CLI::App* command) {
    command->add_flag("--json", arguments_->json,
                      "Print one JSON object per line for each session");
  }
  CLI::Option* AddSessions(CLI::App* command) {
    return command->add_option("session", arguments_->sessions, "Names of sessions");
  }
  void AddSession(CLI::App* command) {
    command->add_option("session", arguments_->session, "Name of a session")->required();
  }

 private:
  CLI::App* const ctl_;
  const std::shared_ptr<CtlArguments> arguments_;
  int* const exit_code_;
};

void AddLooking(Commands* commands, CtlArguments* arguments) {
  CLI::App* list =
      commands->Add("list", "List the sessions", "Example:\n  nettrace ctl list\n", List);
  commands->AddJson(list);
  CLI::App* status = commands->Add("status", "Show the state and the losses of sessions",
                                   "Without arguments, print one line for each session. With "
                                   "names of sessions, print all details of each.\n\n"
                                   "Examples:\n"
                                   "  nettrace ctl status\n"
                                   "  nettrace ctl status web\n"
                                   "  nettrace ctl status --json | jq -c '{name, state, lost}'\n",
                                   Status);
  commands->AddSessions(status);
  commands->AddJson(status);
  CLI::App* services =
      commands->Add("services", "Show the services that pass events through shared memory",
                    "Services use shared memory where the kernel has no user_events. Without a "
                    "process id, print one line for each service, and the services that were "
                    "refused, with the reasons. With process ids, print all details of each.\n\n"
                    "Examples:\n"
                    "  nettrace ctl services\n"
                    "  nettrace ctl services --json | jq '.services[] | {pid, name, lost}'\n",
                    Services);
  services->add_option("pid", arguments->pids, "Process ids of services");
  services->add_flag("--json", arguments->json, "Print one JSON object");
  CLI::App* tail = commands->Add(
      "tail", "Write a session's events to standard output live, in the NetTrace format",
      "If the reader is too slow, only this stream loses events, and it reports how many. SIGINT "
      "ends the stream.\n\n"
      "Examples:\n"
      "  nettrace ctl tail web | nettrace dump -\n"
      "  nettrace ctl tail web > now.nettrace\n",
      Tail);
  commands->AddSession(tail);
  CLI::App* wait = commands->Add(
      "wait", "Wait until a session is in a state, or has enough events or files",
      "All given conditions must hold. Without a condition, the session must be running.\n\n"
      "Exit code: 124 the conditions did not hold within --timeout; else as for 'nettrace ctl'.\n\n"
      "Examples:\n"
      "  nettrace ctl wait web --timeout 10s\n"
      "  nettrace ctl wait web --events 1 --timeout 1m\n",
      Wait);
  commands->AddSession(wait);
  commands->AddJson(wait);
  wait->add_option("--state", arguments->state,
                   "State to wait for: running, suspended, failed or stopped");
  wait->add_option("--events", arguments->events,
                   "Wait until the session has this many events since its start")
      ->check(CLI::NonNegativeNumber);
  wait->add_option("--files", arguments->files,
                   "Wait until the session has this many files on disk")
      ->check(CLI::NonNegativeNumber);
  cli::AddDurationOption(
      wait, "--timeout", absl::ZeroDuration(),
      [arguments](absl::Duration time) { arguments->timeout = time; },
      "Maximum time to wait, e.g. 500ms, 10s, 1h30m");
  commands->Add("metrics", "Print the counters of all sessions as OpenMetrics text",
                "Example:\n  nettrace ctl metrics > /var/lib/prometheus/nettraced.prom\n", Metrics);
}

void AddChanging(Commands* commands, CtlArguments* arguments) {
  CLI::App* start =
      commands->Add("start", "Start stopped sessions, or the sessions of a file",
                    "Sessions started with --from exist until the daemon ends. Their names are "
                    "printed.\n\n"
                    "Examples:\n"
                    "  nettrace ctl start web\n"
                    "  nettrace ctl start --from debug.toml\n",
                    Start);
  CLI::Option* sessions = commands->AddSessions(start);
  CLI::Option* from =
      start->add_option("--from", arguments->from,
                        "File with sessions, in the format of nettraced.toml(5); - is standard "
                        "input");
  sessions->excludes(from);
  CLI::App* stop =
      commands->Add("stop", "Stop sessions, and return when their last files are complete",
                    "Example:\n  nettrace ctl stop web\n", Stop);
  commands->AddSessions(stop)->required();
  CLI::App* rotate = commands->Add("rotate",
                                   "Complete the current files of sessions, print their paths and "
                                   "start new files",
                                   "Example:\n  cp \"$(nettrace ctl rotate web)\" /tmp\n", Rotate);
  commands->AddSessions(rotate)->required();
  CLI::App* snapshot = commands->Add(
      "snapshot", "Write the contents of flight recorders to files, and print the paths",
      "A flight recorder is a session that keeps the most recent events in memory.\n\n"
      "Example:\n  nettrace ctl snapshot box --after 2s\n",
      Snapshot);
  commands->AddSessions(snapshot)->required();
  cli::AddDurationOption(
      snapshot, "--after", absl::ZeroDuration(),
      [arguments](absl::Duration time) { arguments->after = time; },
      "Also include events that occur within this time after the request, e.g. 2s");
  commands->Add("reload", "Make the daemon read its settings again",
                "Sessions whose settings are unchanged continue without losing an event.\n\n"
                "Example:\n"
                "  nettrace ctl reload\n",
                Reload);
}

}  // namespace

void AddCtl(CLI::App& app, int* exit_code) {
  auto arguments = std::make_shared<CtlArguments>();
  CLI::App* ctl = app.add_subcommand("ctl", "Query and control nettraced, the daemon");
  ctl->require_subcommand(1);
  ctl->add_option("--socket", arguments->socket, "Control socket of the daemon")
      ->capture_default_str();
  ctl->footer(
      "Members of the daemon's look_group may use list, status, services, tail, wait and metrics. "
      "Root, the daemon's user and members of its control_group may use all commands.\n\n"
      "Exit code: 0 done; 1 failed, and standard error shows the reason; 2 wrong usage; 124 "
      "'wait' has reached its --timeout.\n\n"
      "Examples:\n"
      "  nettrace ctl status\n"
      "  nettrace ctl tail web | nettrace dump -\n"
      "  nettrace ctl snapshot box --after 2s\n");
  Commands commands(ctl, arguments, exit_code);
  AddLooking(&commands, arguments.get());
  AddChanging(&commands, arguments.get());
}

}  // namespace tools
