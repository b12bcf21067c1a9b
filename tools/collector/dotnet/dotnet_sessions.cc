#include "tools/collector/dotnet/dotnet_sessions.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/signals_blocked.h"
#include "tools/base/status_macros.h"
#include "tools/collector/dotnet/diagnostics_ipc.h"
#include "tools/collector/dotnet/diagnostics_socket.h"

namespace collector {
namespace {

using State = DotnetProcess::State;

// Time between two searches for new processes: in the folder of sockets, and in /proc, which costs
// more.
constexpr absl::Duration kSearch = absl::Milliseconds(100);
constexpr absl::Duration kSearchMounts = absl::Seconds(1);
// Time after which a process that did not enable its events is asked again, and how often it is
// asked.
constexpr absl::Duration kTryAgain = absl::Seconds(1);
constexpr int kMaxTries = 3;
// Maximum number of names in the folder of sockets, and of processes in containers, that a search
// considers. Any user may create files in the folder.
constexpr std::size_t kMaxCandidates = 4096;

constexpr char kClosed[] = "it closed the connection without a reply";

// The request that a process gets. A process that does not know one request is asked for the next.
enum class Way : std::uint8_t { kTracepoints, kStream, kStreamOfOlder };

struct Process {
  ProcessFacts facts;
  Way way = Way::kTracepoints;
  std::string folder;       // of its socket
  bool has_stream = false;  // the other thread reads its stream
  bool is_stopped = false;  // its stream ended because the recording ends
  DotnetProcess shown;
  base::UniqueFd socket;
  std::size_t sent = 0;  // bytes of the request
  bool descriptor_sent = false;
  std::string received;
  absl::Duration give_up;  // time at which a connection without a reply ends
  absl::Duration next_try;
  int tries = 0;

  bool awaits_reply() const { return socket.valid() && shown.state == State::kAsked; }
};

class Sessions : public DotnetSessions {
 public:
  explicit Sessions(DotnetOptions options)
      : options_(std::move(options)),
        requests_({MakeCollectRequest(options_.providers),
                   MakeStreamRequest(StreamRequest::kWithoutStacks, options_.providers),
                   MakeStreamRequest(StreamRequest::kAny, options_.providers)}) {}
  ~Sessions() override { Sessions::Stop(); }

  absl::Status Start() {
    wake_ = base::UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_.valid()) return base::ErrnoStatus(errno, "creating an eventfd");
    std::promise<pid_t> promise;
    std::future<pid_t> id = promise.get_future();
    const base::SignalsBlocked blocked;
    try {
      thread_ = std::thread([this, promise = std::move(promise)]() mutable {
        promise.set_value(static_cast<pid_t>(syscall(SYS_gettid)));
        Run();
      });
    } catch (const std::system_error& error) {
      return base::ErrnoStatus(error.code().value(), "starting a thread for .NET");
    }
    thread_id_ = id.get();
    return absl::OkStatus();
  }

  pid_t thread_id() const override { return thread_id_; }
  void Begin() override {
    has_begun_ = true;
    Wake();
  }
  void Stop() override {
    stops_ = true;
    Wake();
    if (thread_.joinable()) thread_.join();
    const std::lock_guard lock(mutex_);
    for (auto& [pid, process] : processes_) process.socket.reset();
  }
  DotnetReport Report() const override;

 private:
  void Wake() const {
    const std::uint64_t one = 1;
    if (write(wake_.get(), &one, sizeof one) < 0) return;  // it is already readable
  }
  void Run();
  void WaitForWork();
  void Search(absl::Duration now);
  void Consider(pid_t pid, absl::Duration now);
  void Try(Process* process, absl::Duration now);
  void Exchange(Process* process, absl::Duration now);
  // Sends the rest of the request. Returns an errno, or 0.
  int Send(Process* process);
  void Receive(Process* process, absl::Duration now);
  // Passes the connection of a process that has begun a stream on.
  void PassStream(Process* process, std::uint64_t session);
  // Records the ends of streams.
  void TakeEndsOfStreams();
  // Ends the connection of a process that does not know the request.
  void TryNextWay(Process* process, absl::Duration now);
  const std::string& RequestFor(const Process& process) const {
    return requests_[static_cast<std::size_t>(process.way)];
  }
  // Ends the connection of a process that did not enable its events.
  void Refuse(Process* process, State state, std::string reason, absl::Duration next_try);
  void DropEnded();
  void AddFinal(DotnetProcess shown);

  const DotnetOptions options_;
  const std::array<std::string, 3> requests_;  // by Way
  base::UniqueFd wake_;
  std::thread thread_;
  pid_t thread_id_ = 0;
  std::atomic<bool> has_begun_ = false;
  std::atomic<bool> stops_ = false;
  absl::Duration next_mounts_ = absl::ZeroDuration();
  absl::Duration next_drop_ = absl::ZeroDuration();

  mutable std::mutex mutex_;            // for all members below
  std::map<pid_t, Process> processes_;  // that have not ended
  DotnetReport ended_;
};

DotnetReport Sessions::Report() const {
  const std::lock_guard lock(mutex_);
  DotnetReport report = ended_;
  for (const auto& [pid, process] : processes_) {
    if (report.processes.size() < DotnetReport::kMaxProcesses) {
      report.processes.push_back(process.shown);
    } else {
      ++report.not_listed;
    }
  }
  return report;
}

void Sessions::Run() {
  while (!stops_) {
    WaitForWork();
    if (stops_ || !has_begun_) continue;
    const std::lock_guard lock(mutex_);
    const absl::Duration now = base::MonotonicNow();
    for (auto& [pid, process] : processes_) {
      if (process.socket.valid()) Exchange(&process, now);
    }
    TakeEndsOfStreams();
    DropEnded();
    Search(now);
  }
}

void Sessions::WaitForWork() {
  std::vector<pollfd> waits = {{wake_.get(), POLLIN, 0}};
  for (const auto& [pid, process] : processes_) {
    if (!process.socket.valid()) continue;
    const bool sends = process.awaits_reply() &&
                       (!process.descriptor_sent || process.sent < RequestFor(process).size());
    waits.push_back(
        {process.socket.get(), static_cast<short>(sends ? POLLIN | POLLOUT : POLLIN), 0});
  }
  const int limit = has_begun_ ? static_cast<int>(absl::ToInt64Milliseconds(kSearch)) : -1;
  if (poll(waits.data(), waits.size(), limit) <= 0) return;
  std::uint64_t count = 0;
  if (read(wake_.get(), &count, sizeof count) < 0) return;  // another descriptor is ready
}

void Sessions::Search(absl::Duration now) {
  if (!options_.pids.empty()) {
    for (const pid_t pid : options_.pids) Consider(pid, now);
    return;
  }
  for (const pid_t pid : ListDiagnosticsSockets(options_.folder, kMaxCandidates)) {
    Consider(pid, now);
  }
  if (now < next_mounts_) return;
  next_mounts_ = now + kSearchMounts;
  for (const pid_t pid : ListProcessesWithOtherMounts(kMaxCandidates)) Consider(pid, now);
}

// Connects to the process if it has a socket, was not asked before, or is due for another try.
void Sessions::Consider(pid_t pid, absl::Duration now) {
  auto known = processes_.find(pid);
  if (known != processes_.end() &&
      (known->second.socket.valid() || known->second.has_stream ||
       known->second.tries >= kMaxTries || now < known->second.next_try)) {
    return;
  }
  std::optional<ProcessFacts> facts = ReadProcessFacts(pid);
  if (!facts) return;
  if (known != processes_.end() && known->second.facts.start != facts->start) {
    known->second.shown.ended = true;
    AddFinal(std::move(known->second.shown));
    processes_.erase(known);
    known = processes_.end();
  }
  if (known != processes_.end()) return Try(&known->second, now);
  if (processes_.size() >= DotnetReport::kMaxProcesses) return;
  Process process;
  process.shown.pid = pid;
  process.shown.name = facts->name;
  process.facts = *std::move(facts);
  if (!options_.open_data) process.way = Way::kStream;
  Try(&process, now);
  // Most processes in containers have no socket, and are not .NET's.
  if (process.shown.state != State::kNoSocket || !options_.pids.empty()) {
    processes_.emplace(pid, std::move(process));
  }
}

void Sessions::Try(Process* process, absl::Duration now) {
  if (process->way != Way::kTracepoints && options_.streams->is_full()) {
    return Refuse(process, State::kRefused,
                  absl::StrCat(EventPipeInbox::kMaxStreams, " processes have streams already"),
                  now + kTryAgain);
  }
  process->folder = options_.folder;
  absl::StatusOr<base::UniqueFd> socket = ConnectDiagnostics(process->facts, process->folder);
  if (absl::IsNotFound(socket.status()) && !options_.pids.empty()) {
    process->folder = ReadTemporaryFolder(process->facts.pid);
    if (!process->folder.empty()) socket = ConnectDiagnostics(process->facts, process->folder);
  }
  if (absl::IsNotFound(socket.status())) {
    if (process->shown.state != State::kNoSocket) return;
    process->shown.reason =
        "it has no diagnostics socket: it is no .NET process, or DOTNET_EnableDiagnostics=0 is set";
    return;
  }
  if (!socket.ok()) {
    return Refuse(process, State::kRefused, std::string(socket.status().message()),
                  now + kTryAgain);
  }
  ++process->tries;
  process->socket = *std::move(socket);
  process->sent = 0;
  process->descriptor_sent = process->way != Way::kTracepoints;
  process->received.clear();
  process->give_up = now + options_.reply_within;
  process->shown.state = State::kAsked;
  process->shown.reason = "its runtime has not replied yet";
  Exchange(process, now);
}

void Sessions::Exchange(Process* process, absl::Duration now) {
  if (process->awaits_reply()) {
    if (const int error = Send(process); error != 0 && error != EAGAIN && error != EPIPE) {
      return Refuse(process, State::kRefused,
                    std::string(base::ErrnoStatus(error, "the request cannot be sent").message()),
                    now + kTryAgain);
    }
  }
  Receive(process, now);
  if (process->awaits_reply() && now >= process->give_up) {
    Refuse(process, State::kRefused,
           absl::StrCat("its runtime did not reply within ",
                        absl::FormatDuration(options_.reply_within)),
           now + kTryAgain);
  }
}

int Sessions::Send(Process* process) {
  const std::string& request = RequestFor(*process);
  while (process->sent < request.size()) {
    const ssize_t sent = send(process->socket.get(), request.data() + process->sent,
                              request.size() - process->sent, MSG_NOSIGNAL);
    if (sent < 0) return errno;
    process->sent += static_cast<std::size_t>(sent);
  }
  if (process->descriptor_sent) return 0;
  const int opened = options_.open_data();
  if (opened < 0) return -opened;
  const base::UniqueFd data(opened);
  const int error = SendDescriptor(process->socket.get(), data.get());
  process->descriptor_sent = error == 0;
  return error;
}

void Sessions::Receive(Process* process, absl::Duration now) {
  constexpr char kInvalid[] = "its diagnostics socket sent bytes that are no reply";
  std::array<char, kMaxReply + 1> bytes;
  // A stream begins after the reply, which is as long as the longest one.
  const std::size_t room =
      process->way == Way::kTracepoints ? bytes.size() : kMaxReply - process->received.size();
  const ssize_t got = recv(process->socket.get(), bytes.data(), room, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    if (process->shown.state == State::kEnabled) {
      process->socket.reset();
      process->tries = kMaxTries;
      process->shown.ended = true;
      return;
    }
    return Refuse(process, State::kRefused, kClosed, now + kTryAgain);
  }
  process->received.append(bytes.data(), static_cast<std::size_t>(got));
  const DiagnosticsReply reply = ParseDiagnosticsReply(process->received);
  // Nothing follows a reply.
  if (reply.kind == DiagnosticsReply::Kind::kInvalid || process->received.size() > kMaxReply) {
    process->tries = kMaxTries;
    return Refuse(process, State::kRefused, kInvalid, now);
  }
  if (reply.kind == DiagnosticsReply::Kind::kStarted) {
    process->shown.state = State::kEnabled;
    process->shown.reason.clear();
    if (process->way != Way::kTracepoints) PassStream(process, reply.session);
  }
  if (reply.kind == DiagnosticsReply::Kind::kError) {
    process->tries = kMaxTries;
    if (reply.error == kUnknownCommand) return TryNextWay(process, now);
    Refuse(process, State::kRefused,
           absl::StrFormat("its runtime refused with error 0x%08X", reply.error), now);
  }
}

void Sessions::PassStream(Process* process, std::uint64_t session) {
  process->has_stream = true;
  process->shown.by_stream = true;
  options_.streams->Add(
      {process->facts, process->folder, std::exchange(process->socket, base::UniqueFd()), session});
}

void Sessions::TakeEndsOfStreams() {
  if (options_.streams == nullptr) return;
  for (EventPipeInbox::End& end : options_.streams->TakeEnds()) {
    const auto found = processes_.find(end.pid);
    if (found == processes_.end() || found->second.facts.start != end.start) continue;
    Process& process = found->second;
    process.has_stream = false;
    process.is_stopped = end.was_asked;
    process.tries = kMaxTries;
    process.shown.reason = std::move(end.reason);
    if (!process.shown.reason.empty() && !end.is_cut) process.shown.state = State::kRefused;
    process.shown.ended = true;  // DropEnded checks whether this is so
  }
}

void Sessions::TryNextWay(Process* process, absl::Duration now) {
  if (options_.streams == nullptr) {
    return Refuse(process, State::kTooOld, "its runtime is older than .NET 10", now);
  }
  if (process->way == Way::kStreamOfOlder) {
    return Refuse(process, State::kTooOld, "its runtime is older than .NET Core 3.1", now);
  }
  process->way = static_cast<Way>(static_cast<int>(process->way) + 1);
  process->tries = 0;
  Refuse(process, State::kAsked, "its runtime has not replied yet", now);
}

void Sessions::Refuse(Process* process, State state, std::string reason, absl::Duration next_try) {
  process->socket.reset();
  process->shown.state = state;
  process->shown.reason = std::move(reason);
  process->next_try = next_try;
}

// Moves processes that have ended to the report.
void Sessions::DropEnded() {
  const absl::Duration now = base::MonotonicNow();
  const bool checks_all = now >= next_drop_;
  if (checks_all) next_drop_ = now + kTryAgain;
  for (auto known = processes_.begin(); known != processes_.end();) {
    Process& process = known->second;
    const bool may_have_ended =
        !process.has_stream && (process.shown.ended || (checks_all && !process.socket.valid()));
    if (may_have_ended) {
      const std::optional<ProcessFacts> facts = ReadProcessFacts(process.facts.pid);
      process.shown.ended = !facts || facts->start != process.facts.start;
      if (process.shown.ended) {
        AddFinal(std::move(process.shown));
        known = processes_.erase(known);
        continue;
      }
      if (process.shown.state == State::kEnabled && !process.socket.valid() &&
          !process.is_stopped) {
        process.shown.state = State::kRefused;
        if (process.shown.reason.empty()) {
          process.shown.reason = "its runtime ended the session early";
        }
      }
    }
    ++known;
  }
}

void Sessions::AddFinal(DotnetProcess shown) {
  // A process that ended before it could reply shows no fault.
  if (shown.state == State::kAsked || (shown.state == State::kRefused && shown.reason == kClosed)) {
    shown.state = State::kRefused;
    shown.reason = "it ended before it replied";
  }
  if (ended_.processes.size() < DotnetReport::kMaxProcesses) {
    ended_.processes.push_back(std::move(shown));
  } else {
    ++ended_.not_listed;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<DotnetSessions>> DotnetSessions::Create(DotnetOptions options) {
  auto sessions = std::make_unique<Sessions>(std::move(options));
  RETURN_IF_ERROR(sessions->Start());
  return sessions;
}

}  // namespace collector
