#include "tools/collector/dotnet/dotnet_sessions.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
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
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/signals_blocked.h"
#include "tools/base/status_macros.h"
#include "tools/collector/dotnet/diagnostics_ipc.h"
#include "tools/collector/dotnet/diagnostics_socket.h"
#include "tools/collector/dotnet/socket_watch.h"
#include "tools/collector/identity/proc_files.h"

namespace collector {
namespace {

using State = DotnetProcess::State;

// Time between two searches for new processes. kSearch applies to the processes that the options
// name, and to the folder of sockets if it cannot be watched. kSearchAll applies to this folder
// even if it is watched, and to containers, which are searched by /proc and cost more.
constexpr absl::Duration kSearch = absl::Milliseconds(100);
constexpr absl::Duration kSearchAll = absl::Seconds(1);
// A process whose socket was just created may not accept connections yet. Time between two attempts
// to connect to the process, and time for which these attempts continue.
constexpr absl::Duration kTryFresh = absl::Milliseconds(5);
constexpr absl::Duration kFreshFor = absl::Seconds(2);
// Time after which a process that did not enable its events is asked again, and how often it is
// asked.
constexpr absl::Duration kTryAgain = absl::Seconds(1);
constexpr int kMaxTries = 3;
// A process is given up if it does not reply within this number times reply_within. It still
// enables its events if it replies later.
constexpr int kGiveUpAfter = 3;
// Number of replies kFailed after which a process is not asked again. Until then, the wait before
// the next request grows by kTryAgain / 2 with each of these replies.
constexpr int kMaxErrors = 8;
// Maximum number of names in the folder of sockets, and of processes in containers, that a search
// considers. Any user may create files in the folder.
constexpr std::size_t kMaxCandidates = 4096;

// Longest time that Stop waits for the thread.
constexpr std::chrono::seconds kStopWithin(5);
// Longest time that the thread waits until all processes have ended their sessions.
constexpr absl::Duration kEndSessionsWithin = absl::Seconds(2);

// Returns how many of `max` processes may be of one user. The rest is left for other users, because
// any user may start processes that claim to be runtimes.
constexpr std::size_t ShareOfUser(std::size_t max) { return max - max / 4; }

constexpr char kClosed[] = "it closed the connection without a reply";

// The requests, in the order in which a process gets them. A process that does not know a request
// gets the next one.
enum class Way : std::uint8_t { kTracepoints, kStream, kStreamOfOlder };
// Returns whether the cgroup `path`, which begins with '/', is `selected` or below it. `selected`
// is a path below the mount of cgroup v2, an absolute path, or a name. If it is a name, all cgroups
// of this name match, so the processes in all of them enable their events. perf records only one of
// these cgroups. From the others, events in tracepoints are not recorded, but events in streams
// (EventPipe) are.
bool IsInCgroup(absl::string_view path, absl::string_view selected) {
  selected = absl::StripSuffix(selected, "/");
  if (!absl::StrContains(selected, '/')) {
    const std::vector<absl::string_view> names = absl::StrSplit(path, '/');
    return std::find(names.begin(), names.end(), selected) != names.end();
  }
  absl::ConsumePrefix(&selected, "/sys/fs/cgroup");
  absl::ConsumePrefix(&selected, "/");
  absl::ConsumePrefix(&path, "/");
  return selected.empty() || path == selected ||
         (absl::ConsumePrefix(&path, selected) && absl::StartsWith(path, "/"));
}

struct Process {
  ProcessFacts facts;
  Way way = Way::kTracepoints;
  std::string folder;          // folder of its socket
  bool has_stream = false;     // its stream has begun and has not ended
  bool is_stopped = false;     // its stream ended because the recording ends
  absl::Duration session_end;  // time at which its connection or stream ended
  DotnetProcess shown;
  base::UniqueFd socket;
  std::size_t sent = 0;  // bytes of the request that were sent
  bool descriptor_sent = false;
  std::uint64_t session = 0;  // id that the process gave to its session
  std::string received;
  absl::Duration reply_due;  // time at which a missing reply is reported, or reported again
  int overdue = 0;           // number of these reports for the current request
  absl::Duration next_try;
  int tries = 0;
  int failures = 0;          // number of connections that could not be made
  int errors = 0;            // number of replies kFailed
  bool was_enabled = false;  // whether it has enabled its events at any time
  // Connection on which the process was asked for a perf map. Closed when the process replies, or
  // else at the time `map_give_up`.
  base::UniqueFd map_socket;
  std::string map_received;
  absl::Duration map_give_up;
  bool had_map = false;  // it had a perf map before the request, and keeps it after Stop

  bool awaits_reply() const { return socket.valid() && shown.state == State::kAsked; }
};

// Runs the thread that finds and asks processes. It outlives the DotnetSessions if the thread
// hangs, for example in a file system.
class Worker {
 public:
  explicit Worker(DotnetOptions options)
      : options_(std::move(options)),
        requests_({MakeCollectRequest(options_.providers),
                   MakeStreamRequest(StreamRequest::kWithoutStacks, options_.providers),
                   MakeStreamRequest(StreamRequest::kAny, options_.providers)}),
        watch_(options_.folder) {}

  // Starts the thread. `self` must be this object, which the thread keeps alive until the thread
  // ends.
  absl::Status Start(std::shared_ptr<Worker> self);
  pid_t thread_id() const { return thread_id_; }
  void Begin() {
    has_begun_ = true;
    Wake();
  }
  void Stop();
  DotnetReport Report() const {
    const std::lock_guard lock(mutex_);
    return report_;
  }
  std::uint64_t report_number() const { return report_number_; }

 private:
  // A process whose socket was just created.
  struct Fresh {
    ProcessFacts facts;
    absl::Duration until;  // end of the attempts every kTryFresh
  };

  void Wake() const {
    const std::uint64_t one = 1;
    if (write(wake_.get(), &one, sizeof one) < 0) return;  // it is already readable
  }
  void Run();
  void WaitForWork();
  void ReadWatch(absl::Duration now);
  void TryFresh(absl::Duration now);
  void Search(absl::Duration now);
  bool Wants(pid_t pid) const;
  void Consider(pid_t pid, absl::Duration now);
  // Returns why a process of the user cannot have a stream now; "" if it can.
  std::string WhyNoStream(uid_t user) const;
  void Try(Process* process, absl::Duration now);
  void Exchange(Process* process, absl::Duration now);
  // Sends the rest of the request and, unless it is for a stream, a descriptor of user_events_data.
  // Returns an errno, or 0.
  int Send(Process* process);
  void Receive(Process* process, absl::Duration now);
  // Asks the process for a perf map. A process that cannot be asked has none.
  void RequestPerfMap(Process* process, absl::Duration now);
  void ReceivePerfMapReply(Process* process, absl::Duration now);
  void EndPerfMaps();
  // Asks the processes to end their sessions, and waits until they have, or for at most
  // kEndSessionsWithin.
  void EndSessions();
  // Passes the connection of a process that has begun a stream to the thread that reads streams.
  void PassStream(Process* process);
  // Records the ends of streams.
  void TakeEndsOfStreams(absl::Duration now);
  // Ends the connection of a process that does not know the request. If there is another request,
  // connects again and sends that.
  void TryNextWay(Process* process, absl::Duration now);
  const std::string& RequestFor(const Process& process) const {
    return requests_[static_cast<std::size_t>(process.way)];
  }
  // Ends the connection of a process that did not enable its events.
  void Refuse(Process* process, State state, std::string reason, absl::Duration next_try);
  void DropEnded(absl::Duration now);
  void LeaveOut(const Process& process);
  void ForgetNotAsked();
  void AddFinal(Process* process);
  // Makes the current state visible to other threads, if it has changed.
  void Publish();

  const DotnetOptions options_;
  const std::array<std::string, 3> requests_;  // by Way
  base::UniqueFd wake_;
  std::thread thread_;
  pid_t thread_id_ = 0;
  std::atomic<bool> has_begun_ = false;
  std::atomic<bool> stops_ = false;
  std::atomic<std::uint64_t> report_number_ = 0;

  // Members that only the thread uses.
  SocketWatch watch_;
  absl::Duration next_search_ = absl::ZeroDuration();
  absl::Duration next_search_all_ = absl::ZeroDuration();
  absl::Duration next_drop_ = absl::ZeroDuration();
  std::map<pid_t, Fresh> fresh_;
  std::map<pid_t, Process> processes_;        // processes that have not ended, by pid
  std::deque<DotnetProcess> ended_;           // the latest first
  std::map<pid_t, std::uint64_t> not_asked_;  // start times of the processes that LeaveOut counts
  DotnetReport totals_;                       // counts only, of processes that have ended
  bool changed_ = false;                      // state has changed since the last Publish

  mutable std::mutex mutex_;  // for the members below
  std::condition_variable end_;
  bool ended_running_ = false;
  DotnetReport report_;
};

absl::Status Worker::Start(std::shared_ptr<Worker> self) {
  wake_ = base::UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.valid()) return base::ErrnoStatus(errno, "creating an eventfd");
  std::promise<pid_t> promise;
  std::future<pid_t> id = promise.get_future();
  const base::SignalsBlocked blocked;
  try {
    thread_ = std::thread([self = std::move(self), promise = std::move(promise)]() mutable {
      promise.set_value(static_cast<pid_t>(syscall(SYS_gettid)));
      self->Run();
    });
  } catch (const std::system_error& error) {
    return base::ErrnoStatus(error.code().value(), "starting a thread for .NET");
  }
  thread_id_ = id.get();
  return absl::OkStatus();
}

void Worker::Stop() {
  stops_ = true;
  Wake();
  if (!thread_.joinable()) return;
  std::unique_lock lock(mutex_);
  const bool has_ended = end_.wait_for(lock, kStopWithin, [this] { return ended_running_; });
  lock.unlock();
  if (has_ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void Worker::Publish() {
  if (!std::exchange(changed_, false)) return;
  DotnetReport report = totals_;
  report.not_asked += not_asked_.size();
  for (const auto& [pid, process] : processes_) {
    report.processes.push_back(process.shown);
    if (process.shown.given_up && !process.was_enabled) ++report.not_enabled;
  }
  const std::size_t left = DotnetReport::kMaxProcesses - report.processes.size();
  const std::size_t shown = std::min(left, ended_.size());
  report.processes.insert(report.processes.end(), ended_.begin(),
                          ended_.begin() + static_cast<std::ptrdiff_t>(shown));
  report.not_listed += ended_.size() - shown;
  const std::lock_guard lock(mutex_);
  report_ = std::move(report);
  ++report_number_;
}

void Worker::Run() {
  pthread_setname_np(pthread_self(), "dotnet");
  while (!stops_) {
    WaitForWork();
    if (stops_ || !has_begun_) continue;
    const absl::Duration now = base::MonotonicNow();
    for (auto& [pid, process] : processes_) {
      if (process.socket.valid()) Exchange(&process, now);
      if (process.map_socket.valid()) ReceivePerfMapReply(&process, now);
    }
    TakeEndsOfStreams(now);
    DropEnded(now);
    ReadWatch(now);
    TryFresh(now);
    Search(now);
    Publish();
  }
  EndPerfMaps();
  EndSessions();
  processes_.clear();
  const std::lock_guard lock(mutex_);
  ended_running_ = true;
  end_.notify_all();
}

void Worker::WaitForWork() {
  std::vector<pollfd> waits = {{wake_.get(), POLLIN, 0}, {watch_.fd(), POLLIN, 0}};
  for (const auto& [pid, process] : processes_) {
    if (process.map_socket.valid()) waits.push_back({process.map_socket.get(), POLLIN, 0});
    if (!process.socket.valid()) continue;
    const bool sends = process.awaits_reply() &&
                       (!process.descriptor_sent || process.sent < RequestFor(process).size());
    waits.push_back(
        {process.socket.get(), static_cast<short>(sends ? POLLIN | POLLOUT : POLLIN), 0});
  }
  const absl::Duration limit = fresh_.empty() ? kSearch : kTryFresh;
  const int limit_ms = has_begun_ ? static_cast<int>(absl::ToInt64Milliseconds(limit)) : -1;
  if (poll(waits.data(), waits.size(), limit_ms) <= 0) return;
  std::uint64_t count = 0;
  if (read(wake_.get(), &count, sizeof count) < 0) return;  // another descriptor is ready
}

// Notes the processes whose sockets were just created.
void Worker::ReadWatch(absl::Duration now) {
  if (!options_.pids.empty()) return;
  bool is_incomplete = false;
  const std::vector<SocketName> names = watch_.Read(&is_incomplete);
  // Bounds the work of this thread if a process creates files with names of sockets all the time.
  if (!names.empty()) absl::SleepFor(absl::Milliseconds(1));
  for (const SocketName& name : names) {
    if (fresh_.size() >= kMaxCandidates) is_incomplete = true;
    if (is_incomplete) break;
    // Another process may have created the file.
    std::optional<ProcessFacts> facts = ReadProcessFacts(name.pid);
    if (!facts || facts->start != name.start || !Wants(name.pid)) continue;
    fresh_.insert_or_assign(name.pid, Fresh{*std::move(facts), now + kFreshFor});
  }
  if (is_incomplete) next_search_all_ = now;
}

void Worker::TryFresh(absl::Duration now) {
  for (auto fresh = fresh_.begin(); fresh != fresh_.end();) {
    const pid_t pid = fresh->first;
    Consider(pid, now);
    const std::optional<ProcessFacts> facts = ReadProcessFacts(pid);
    const bool has_ended = !facts || facts->start != fresh->second.facts.start;
    const auto known = processes_.find(pid);
    const bool is_known =
        (known != processes_.end() && known->second.facts.start == fresh->second.facts.start) ||
        not_asked_.contains(pid);
    if (has_ended && !is_known) {
      Process process;
      process.shown = {.pid = pid,
                       .start = fresh->second.facts.start,
                       .name = fresh->second.facts.name,
                       .state = State::kRefused,
                       .reason = "it ended before the request was sent"};
      AddFinal(&process);
    }
    fresh = has_ended || is_known || now >= fresh->second.until ? fresh_.erase(fresh)
                                                                : std::next(fresh);
  }
}

void Worker::Search(absl::Duration now) {
  if (now < next_search_) return;
  next_search_ = now + kSearch;
  if (!options_.pids.empty()) {
    for (const pid_t pid : options_.pids) Consider(pid, now);
    return;
  }
  const bool searches_all = now >= next_search_all_;
  if (watch_.fd() < 0 || searches_all) {
    for (const pid_t pid : ListDiagnosticsSockets(options_.folder, kMaxCandidates)) {
      Consider(pid, now);
    }
  }
  if (!searches_all) return;
  next_search_all_ = now + kSearchAll;
  for (const pid_t pid : ListProcessesWithOtherFolder(options_.folder, kMaxCandidates)) {
    Consider(pid, now);
  }
}

// Returns whether the process is in one of the cgroups to which the options restrict processes.
bool Worker::Wants(pid_t pid) const {
  if (options_.cgroups.empty() || !options_.pids.empty()) return true;
  const std::string path = ReadProcCgroup(static_cast<std::uint32_t>(pid));
  return std::any_of(options_.cgroups.begin(), options_.cgroups.end(),
                     [&path](const std::string& each) { return IsInCgroup(path, each); });
}

// Connects to the process if it was not asked before, or is due for another attempt.
void Worker::Consider(pid_t pid, absl::Duration now) {
  auto known = processes_.find(pid);
  if (known != processes_.end() &&
      (known->second.socket.valid() || known->second.has_stream ||
       known->second.tries >= kMaxTries || now < known->second.next_try)) {
    return;
  }
  std::optional<ProcessFacts> facts = ReadProcessFacts(pid);
  if (!facts || (known == processes_.end() && !Wants(pid))) return;
  if (known != processes_.end() && known->second.facts.start != facts->start) {
    known->second.shown.ended = true;
    AddFinal(&known->second);
    processes_.erase(known);
    known = processes_.end();
  }
  if (known != processes_.end()) return Try(&known->second, now);
  const std::size_t of_user = static_cast<std::size_t>(
      std::count_if(processes_.begin(), processes_.end(),
                    [&](const auto& each) { return each.second.facts.user == facts->user; }));
  const bool is_full =
      processes_.size() >= options_.max_processes || of_user >= ShareOfUser(options_.max_processes);
  Process process;
  process.shown.pid = pid;
  process.shown.start = facts->start;
  process.shown.name = facts->name;
  process.facts = *std::move(facts);
  if (!options_.open_data) process.way = Way::kStream;
  if (is_full) return LeaveOut(process);
  Try(&process, now);
  // Forgets a process without a socket, unless the options name it: most processes in containers
  // are not .NET processes.
  if (process.shown.state != State::kNoSocket || !options_.pids.empty()) {
    not_asked_.erase(pid);
    changed_ = true;
    processes_.emplace(pid, std::move(process));
  }
}

std::string Worker::WhyNoStream(uid_t user) const {
  if (options_.streams->is_full()) {
    return absl::StrCat("the limit of ", EventPipeInbox::kMaxStreams, " streams is reached");
  }
  constexpr std::size_t kShare = ShareOfUser(EventPipeInbox::kMaxStreams);
  const auto of_user =
      std::count_if(processes_.begin(), processes_.end(), [user](const auto& each) {
        return each.second.has_stream && each.second.facts.user == user;
      });
  if (static_cast<std::size_t>(of_user) < kShare) return "";
  return absl::StrCat("its user has reached the limit of ", kShare, " streams");
}

void Worker::Try(Process* process, absl::Duration now) {
  if (process->way != Way::kTracepoints) {
    std::string why = WhyNoStream(process->facts.user);
    if (!why.empty()) return Refuse(process, State::kRefused, std::move(why), now + kTryAgain);
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
    if (++process->failures >= kMaxTries) process->shown.given_up = true;
    return Refuse(process, State::kRefused, std::string(socket.status().message()),
                  now + kTryAgain);
  }
  ++process->tries;
  process->socket = *std::move(socket);
  process->sent = 0;
  process->descriptor_sent = process->way != Way::kTracepoints;
  process->received.clear();
  process->reply_due = now + options_.reply_within;
  process->overdue = 0;
  process->shown.state = State::kAsked;
  process->shown.reason = "its runtime has not replied yet";
  process->shown.given_up = false;
  changed_ = true;
  Exchange(process, now);
}

void Worker::Exchange(Process* process, absl::Duration now) {
  if (process->awaits_reply()) {
    if (const int error = Send(process); error != 0 && error != EAGAIN && error != EPIPE) {
      return Refuse(
          process, State::kRefused,
          std::string(
              base::ErrnoStatus(error, "the request for its events cannot be sent").message()),
          now + kTryAgain);
    }
  }
  Receive(process, now);
  // Waits for the reply even if it is late: a runtime that works on a request starts the session
  // although the connection has ended. A second request would then start a session while this one
  // ends, and .NET 10 sometimes leaves EventSources disabled after that.
  if (process->awaits_reply() && now >= process->reply_due) {
    process->shown.reason = absl::StrCat("its runtime did not reply within ",
                                         absl::FormatDuration(options_.reply_within));
    process->shown.given_up = ++process->overdue >= kGiveUpAfter;
    process->reply_due = now + options_.reply_within;
    changed_ = true;
  }
}

int Worker::Send(Process* process) {
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

void Worker::Receive(Process* process, absl::Duration now) {
  constexpr char kInvalid[] = "its diagnostics socket sent bytes that are no reply";
  std::array<char, kMaxReply + 1> bytes;
  // A stream follows its reply on the same connection. The bytes of the stream must stay in the
  // socket for the thread that reads streams. A reply that begins a stream has kMaxReply bytes, so
  // no more bytes are read.
  const std::size_t room =
      process->way == Way::kTracepoints ? bytes.size() : kMaxReply - process->received.size();
  const ssize_t got = recv(process->socket.get(), bytes.data(), room, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    if (process->shown.state == State::kEnabled) {
      process->socket.reset();
      process->tries = kMaxTries;
      process->session_end = now;
      process->shown.ended = true;  // assumed here; DropEnded checks it
      return;
    }
    return Refuse(process, State::kRefused, kClosed, now + kTryAgain);
  }
  process->received.append(bytes.data(), static_cast<std::size_t>(got));
  const DiagnosticsReply reply = ParseDiagnosticsReply(process->received);
  // More bytes than the longest reply are an error.
  if (reply.kind == DiagnosticsReply::Kind::kInvalid || process->received.size() > kMaxReply) {
    process->tries = kMaxTries;
    return Refuse(process, State::kRefused, kInvalid, now);
  }
  if (reply.kind == DiagnosticsReply::Kind::kStarted) {
    process->shown.state = State::kEnabled;
    process->shown.reason.clear();
    process->shown.given_up = false;
    process->session = reply.session;
    if (!std::exchange(process->was_enabled, true)) ++totals_.enabled;
    changed_ = true;
    if (process->way != Way::kTracepoints) PassStream(process);
    if (options_.perf_maps) RequestPerfMap(process, now);
  }
  if (reply.kind == DiagnosticsReply::Kind::kError) {
    process->tries = kMaxTries;
    if (reply.error == kUnknownCommand) return TryNextWay(process, now);
    if (reply.error == kFailed && ++process->errors < kMaxErrors) process->tries = 0;
    Refuse(process, State::kRefused,
           absl::StrFormat("its runtime refused the request with error 0x%08X", reply.error),
           now + process->errors * kTryAgain / 2);
  }
}

void Worker::RequestPerfMap(Process* process, absl::Duration now) {
  absl::StatusOr<base::UniqueFd> socket = ConnectDiagnostics(process->facts, process->folder);
  if (!socket.ok()) return;
  const std::string map =
      absl::StrCat("/proc/", process->facts.pid, "/root/tmp/perf-", process->facts.own_pid, ".map");
  process->had_map = faccessat(AT_FDCWD, map.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  const std::string request = MakePerfMapRequest(/*enable=*/true);
  if (send(socket->get(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    return;
  }
  process->map_socket = *std::move(socket);
  process->map_received.clear();
  process->map_give_up = now + options_.reply_within;
}

void Worker::ReceivePerfMapReply(Process* process, absl::Duration now) {
  std::array<char, kMaxReply> bytes;
  const ssize_t got =
      recv(process->map_socket.get(), bytes.data(), kMaxReply - process->map_received.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    if (now >= process->map_give_up) process->map_socket.reset();
    return;
  }
  if (got > 0) process->map_received.append(bytes.data(), static_cast<std::size_t>(got));
  const DiagnosticsReply reply =
      ParseDiagnosticsReply(process->map_received, RequestKind::kPerfMap);
  if (got > 0 && reply.kind == DiagnosticsReply::Kind::kIncomplete) return;
  process->map_socket.reset();
  process->shown.has_perf_map = reply.kind == DiagnosticsReply::Kind::kStarted;
  changed_ = true;
}

void Worker::EndPerfMaps() {
  const std::string request = MakePerfMapRequest(/*enable=*/false);
  for (const auto& [pid, process] : processes_) {
    if (!process.shown.has_perf_map || process.had_map) continue;
    const absl::StatusOr<base::UniqueFd> socket = ConnectDiagnostics(process.facts, process.folder);
    // The process reads the request although the connection ends before it replies.
    if (socket.ok() && send(socket->get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) {
      continue;  // The process continues to write its perf map.
    }
  }
}

// A session also ends when its connection ends. But its runtime then still works on the end of the
// session while another collector may already request the next one, and .NET 10 sometimes leaves
// EventSources disabled after that. A runtime replies to this request when the session has ended.
void Worker::EndSessions() {
  std::vector<base::UniqueFd> sockets;
  for (const auto& [pid, process] : processes_) {
    if (!process.socket.valid() || process.shown.state != State::kEnabled) continue;
    absl::StatusOr<base::UniqueFd> socket = ConnectDiagnostics(process.facts, process.folder);
    const std::string request = MakeStopRequest(process.session);
    if (socket.ok() && send(socket->get(), request.data(), request.size(), MSG_NOSIGNAL) ==
                           static_cast<ssize_t>(request.size())) {
      sockets.push_back(*std::move(socket));
    }
  }
  const absl::Duration end =
      base::MonotonicNow() + std::min(kEndSessionsWithin, options_.reply_within);
  for (const base::UniqueFd& socket : sockets) {
    const absl::Duration left = std::max(end - base::MonotonicNow(), absl::ZeroDuration());
    pollfd reply = {socket.get(), POLLIN, 0};
    poll(&reply, 1, static_cast<int>(absl::ToInt64Milliseconds(left)));
  }
}

void Worker::PassStream(Process* process) {
  process->has_stream = true;
  process->shown.by_stream = true;
  options_.streams->Add({process->facts, process->folder,
                         std::exchange(process->socket, base::UniqueFd()), process->session});
}

void Worker::TakeEndsOfStreams(absl::Duration now) {
  if (options_.streams == nullptr) return;
  for (EventPipeInbox::End& end : options_.streams->TakeEnds()) {
    const auto found = processes_.find(end.pid);
    if (found == processes_.end() || found->second.facts.start != end.start) continue;
    Process& process = found->second;
    process.has_stream = false;
    process.is_stopped = end.was_asked;
    process.session_end = now;
    process.tries = kMaxTries;
    process.shown.reason = std::move(end.reason);
    if (!process.shown.reason.empty() && !end.is_cut) {
      process.shown.state = State::kRefused;
      process.shown.given_up = true;
    }
    process.shown.ended = true;  // assumed here; DropEnded checks it
    changed_ = true;
  }
}

void Worker::TryNextWay(Process* process, absl::Duration now) {
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

void Worker::Refuse(Process* process, State state, std::string reason, absl::Duration next_try) {
  process->socket.reset();
  process->shown.state = state;
  process->shown.reason = std::move(reason);
  if (process->tries >= kMaxTries) process->shown.given_up = true;
  process->next_try = next_try;
  changed_ = true;
}

// Moves processes that have ended to the report.
void Worker::DropEnded(absl::Duration now) {
  const bool checks_all = now >= next_drop_;
  if (checks_all) {
    next_drop_ = now + kTryAgain;
    ForgetNotAsked();
  }
  for (auto known = processes_.begin(); known != processes_.end();) {
    Process& process = known->second;
    const bool may_have_ended =
        !process.has_stream && (process.shown.ended || (checks_all && !process.socket.valid()));
    if (may_have_ended) {
      const std::optional<ProcessFacts> facts = ReadProcessFacts(process.facts.pid);
      process.shown.ended = !facts || facts->start != process.facts.start;
      if (process.shown.ended) {
        AddFinal(&process);
        known = processes_.erase(known);
        continue;
      }
      // A process that exits ends its session first, and may exit seconds later on a busy machine.
      // Therefore its session has ended early only if the process still exists after reply_within.
      const bool is_ending = now < process.session_end + options_.reply_within;
      if (process.shown.state == State::kEnabled && !process.socket.valid() &&
          !process.is_stopped && !is_ending) {
        process.shown.state = State::kRefused;
        if (process.shown.reason.empty()) {
          process.shown.reason = "its runtime ended the session early";
        }
        process.shown.given_up = true;
        changed_ = true;
      }
    }
    ++known;
  }
}

// Counts a process that is not asked, because the limit of processes is reached. Ignores a process
// without a diagnostics socket.
void Worker::LeaveOut(const Process& process) {
  if (not_asked_.size() >= kMaxCandidates || not_asked_.contains(process.facts.pid)) return;
  if (!ConnectDiagnostics(process.facts, options_.folder).ok()) return;
  not_asked_.emplace(process.facts.pid, process.facts.start);
  changed_ = true;
}

// Moves processes of not_asked_ that have ended to the totals.
void Worker::ForgetNotAsked() {
  totals_.not_asked += std::erase_if(not_asked_, [](const auto& each) {
    const std::optional<ProcessFacts> facts = ReadProcessFacts(each.first);
    return !facts || facts->start != each.second;
  });
}

void Worker::AddFinal(Process* process) {
  DotnetProcess shown = std::move(process->shown);
  // The reason for the missing reply is the end of the process, and not a fault of its runtime.
  if (shown.state == State::kAsked || (shown.state == State::kRefused && shown.reason == kClosed)) {
    shown.state = State::kRefused;
    shown.reason = "it ended before it replied";
  }
  shown.ended = shown.given_up = true;
  if (!process->was_enabled) ++totals_.not_enabled;
  ended_.push_front(std::move(shown));
  if (ended_.size() > DotnetReport::kMaxProcesses) {
    ended_.pop_back();
    ++totals_.not_listed;
  }
  changed_ = true;
}

// Implements DotnetSessions with a Worker.
class Sessions : public DotnetSessions {
 public:
  explicit Sessions(std::shared_ptr<Worker> worker) : worker_(std::move(worker)) {}
  ~Sessions() override { worker_->Stop(); }

  pid_t thread_id() const override { return worker_->thread_id(); }
  void Begin() override { worker_->Begin(); }
  void Stop() override { worker_->Stop(); }
  DotnetReport Report() const override { return worker_->Report(); }
  std::uint64_t report_number() const override { return worker_->report_number(); }

 private:
  const std::shared_ptr<Worker> worker_;
};

}  // namespace

const char* DotnetStateName(State state) {
  switch (state) {
    case State::kNoSocket:
      return "noSocket";
    case State::kAsked:
      return "asked";
    case State::kEnabled:
      return "enabled";
    case State::kRefused:
      return "refused";
    case State::kTooOld:
      return "tooOld";
  }
  return "";
}

absl::StatusOr<std::unique_ptr<DotnetSessions>> DotnetSessions::Create(DotnetOptions options) {
  auto worker = std::make_shared<Worker>(std::move(options));
  RETURN_IF_ERROR(worker->Start(worker));
  return std::make_unique<Sessions>(std::move(worker));
}

}  // namespace collector
