#include "tools/nettraced/session_controller.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/status_macros.h"
#include "tools/nettraced/config/session_options.h"
#include "tools/nettraced/log.h"
#include "tools/trace/account_summary.h"

namespace nettraced {
namespace {

using State = control::SessionStatus::State;

// Longest time that a snapshot waits for the events up to now.
constexpr absl::Duration kSnapshotPatience = absl::Seconds(5);

const char* KindName(SessionSettings::Kind kind) {
  switch (kind) {
    case SessionSettings::Kind::kFiles:
      return "files";
    case SessionSettings::Kind::kPipe:
      return "pipe";
    case SessionSettings::Kind::kFlight:
      return "flight";
  }
  return "";
}

// Returns a text for each selector that has stacks: the selector, the parts of its stacks, and the
// maximum of frames.
std::vector<std::string> DescribeStacks(const std::vector<collector::Selector>& selectors) {
  std::vector<std::string> texts;
  for (const collector::Selector& selector : selectors) {
    if (!selector.stacks) continue;
    std::string parts = collector::StacksText(*selector.stacks);
    if (parts.empty()) parts = "default";
    texts.push_back(absl::StrCat(selector.text, ": ", parts));
  }
  return texts;
}

// Prepares the recording of .NET processes, if the settings have providers. Adds the selectors of
// their tracepoints to `options`.
absl::StatusOr<std::unique_ptr<collector::DotnetRecording>> PrepareDotnet(
    const SessionSettings& settings, collector::SessionOptions* options) {
  ASSIGN_OR_RETURN(auto providers, MakeDotnetProviders(settings));
  if (providers.empty()) return nullptr;
  ASSIGN_OR_RETURN(const std::string command, CommandFilter(settings.target.command));
  auto dotnet = std::make_unique<collector::DotnetRecording>();
  // The kernel's filter for `command` does not apply to events that come in EventPipe streams.
  if (command.empty()) dotnet->AllowStreams();
  collector::CaptureOptions target;
  target.target = ToTargetSelection(settings.target);
  const std::size_t before = options->selectors.size();
  if (absl::Status status = dotnet->Prepare(std::move(providers), "dotnet: ", &target, options);
      !status.ok()) {
    return absl::Status(
        status.code(),
        absl::StrCat(
            "dotnet: ", status.message(),
            command.empty() ? "" : "; or remove target.command, to record through EventPipe"));
  }
  for (std::size_t i = before; i < options->selectors.size(); ++i) {
    options->selectors[i].filter = command;
  }
  return dotnet;
}

// Copies the counts and states of .NET processes into the status.
void FillIn(const collector::DotnetRecording& dotnet, control::SessionStatus* status) {
  const collector::DotnetReport report = dotnet.ReadReport();
  status->dotnet_enabled = report.enabled;
  status->dotnet_not_enabled = report.not_enabled;
  status->dotnet_not_asked = report.not_asked;
  status->dotnet_processes.clear();
  for (const collector::DotnetProcess& process : report.processes) {
    if (status->dotnet_processes.size() == control::kMaxDotnetShown) break;
    status->dotnet_processes.push_back({static_cast<std::uint64_t>(process.pid), process.name,
                                        collector::DotnetStateName(process.state), process.reason,
                                        process.ended,
                                        process.by_stream ? "eventPipe" : "userEvents"});
  }
}

// Ends the streams of .NET processes of the session, and the connections to the processes. Waits
// for the processes on this thread, so that other sessions of the capture continue.
void EndDotnet(CaptureThread* capture, collector::Session* session,
               collector::DotnetRecording* dotnet) {
  constexpr absl::Duration kLongest = absl::Seconds(5);
  const absl::Duration end = base::MonotonicNow() + kLongest;
  bool has_ended = false;
  do {
    capture->Run([&has_ended, session](collector::Capture& with) {
      has_ended = with.RequestEndOfStreams(session);
    });
    if (!has_ended) absl::SleepFor(absl::Milliseconds(20));
  } while (!has_ended && capture->status().ok() && base::MonotonicNow() < end);
  capture->Run([session](collector::Capture& with) { with.AbandonStreams(session); });
  dotnet->WaitForEnds();
  dotnet->Stop();
}

absl::StatusOr<collector::SessionOptions> MakeOptions(const SessionSettings& settings,
                                                      const CapturePool::Place& place) {
  ASSIGN_OR_RETURN(auto selectors, MakeSelectors(settings));
  collector::SessionOptions options;
  options.name = settings.name;
  options.selectors = std::move(selectors);
  options.cpu_rate = settings.cpu_rate;
  options.off_cpu = settings.off_cpu;
  options.interval = settings.interval;
  // With 0, services with rings in user space need not keep their events until this session has
  // delivered them. With another value, a slow reader of a pipe or tail would make these services
  // keep the events of all sessions. Begin() sets another value for sessions that write files.
  options.longest_delivery = absl::ZeroDuration();
  options.only_rings = place.only_rings;
  if (place.only_rings) options.target = ToTargetSelection(settings.target);
  options.why_no_rings = place.why_no_rings;
  return options;
}

void LogForSession(const std::string& session, int priority, const std::string& what,
                   const absl::Status& error = absl::OkStatus()) {
  Log(priority,
      absl::StrCat("session ", session, " ", what, error.ok() ? "" : ": ", error.message()),
      {{"SESSION", session}, {"ERROR", std::string(error.message())}});
}

absl::Status NotRunning(const std::string& session) {
  return absl::FailedPreconditionError(
      absl::StrCat("it is not running; start it with 'nettrace ctl start ", session, "'"));
}

// Adapts a TailStream to the interface of the control server, which owns it.
class ServedTail : public control::Tail {
 public:
  explicit ServedTail(std::shared_ptr<TailStream> stream) : stream_(std::move(stream)) {}
  bool IsEnded() override { return stream_->IsEnded(); }

 private:
  const std::shared_ptr<TailStream> stream_;
};

}  // namespace

SessionController::SessionController(SessionSettings settings, SharedState* shared)
    : settings_(std::move(settings)),
      shared_(shared),
      snapshot_limit_(settings_.flight.limit_count, settings_.flight.limit_time) {
  status_.name = settings_.name;
  status_.kind = KindName(settings_.kind);
  status_.cpu_rate = settings_.cpu_rate;
  status_.off_cpu = settings_.off_cpu;
  status_.stacks = DescribeStacks(settings_.select);
  status_.dotnet = settings_.dotnet;
  status_.state_since = absl::Now();
  waker_->controller = this;
  thread_ = std::thread([this] { Loop(); });
}

SessionController::~SessionController() {
  {
    const std::lock_guard lock(waker_->mutex);
    waker_->controller = nullptr;
  }
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void SessionController::Post(std::function<void()> request) {
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::move(request));
  }
  wake_.notify_one();
}

std::future<absl::Status> SessionController::Start() {
  auto promise = std::make_shared<std::promise<absl::Status>>();
  shared_->captures.BeginStart();
  Post([this, promise] {
    absl::Status status = absl::FailedPreconditionError("it is already running");
    if (running() == nullptr) {
      backoff_.Reset();
      logged_failure_ = absl::OkStatus();
      status = TryStart();
    }
    shared_->captures.EndStart();
    promise->set_value(std::move(status));
  });
  return promise->get_future();
}

std::future<absl::Status> SessionController::Stop() {
  auto promise = std::make_shared<std::promise<absl::Status>>();
  Post([this, promise] {
    next_try_ = absl::InfiniteDuration();
    const bool ran = running() != nullptr;
    const absl::Status status = End();
    if (ran) LogMessage(status.ok() ? LOG_INFO : LOG_ERR, "has stopped", status);
    SetState(State::kStopped, status);
    promise->set_value(status);
  });
  return promise->get_future();
}

std::future<absl::StatusOr<std::string>> SessionController::Rotate() {
  auto promise = std::make_shared<PathPromise>();
  Post([this, promise] { BeginRotation(promise); });
  return promise->get_future();
}

std::future<absl::StatusOr<std::string>> SessionController::Snapshot(absl::Duration after) {
  auto promise = std::make_shared<PathPromise>();
  Post([this, after, promise] { BeginSnapshot(after, promise); });
  return promise->get_future();
}

absl::StatusOr<std::unique_ptr<control::Tail>> SessionController::StartTail(base::UniqueFd socket,
                                                                            std::string first) {
  const std::shared_ptr<const Running> session = running();
  if (session == nullptr) return NotRunning(settings_.name);
  ASSIGN_OR_RETURN(auto options, MakeOptions(settings_, session->place));
  options.selectors.insert(options.selectors.end(), session->dotnet_selectors.begin(),
                           session->dotnet_selectors.end());
  options.streams_of = session->session;
  ASSIGN_OR_RETURN(auto tail, TailStream::Start(session->capture, std::move(options),
                                                std::move(socket), std::move(first)));
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(tails_, [](const auto& each) { return each.expired(); });
    tails_.push_back(tail);
    // If the session has ended since the call of running(), SessionController::End has ended the
    // tails of that time, without this one. It must then be ended here.
    if (running_ == session) return std::make_unique<ServedTail>(std::move(tail));
  }
  tail->End();
  return std::make_unique<ServedTail>(std::move(tail));
}

void SessionController::RequestUpdate() {
  const std::shared_ptr<const Running> session = running();
  if (session == nullptr) return;
  const std::uint64_t ticket = session->stats->NewTicket();
  session->capture->Post(
      [stats = session->stats, ticket](collector::Capture&) { stats->UpdateNow(ticket); });
  const std::lock_guard lock(mutex_);
  ticket_ = ticket;
}

control::SessionStatus SessionController::Status(absl::Duration limit) {
  std::shared_ptr<const Running> session;
  control::SessionStatus status;
  std::uint64_t ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    status = status_;
    session = running_;
    ticket = ticket_;
  }
  if (session == nullptr) return status;
  session->stats->WaitFor(ticket, limit);
  session->stats->FillIn(&status);
  session->output->FillIn(&status);
  if (session->dotnet != nullptr) FillIn(*session->dotnet, &status);
  status.ring_bytes = session->capture->ring_size();
  return status;
}

void SessionController::Notice() {
  {
    const std::lock_guard lock(mutex_);
    noticed_ = true;
  }
  wake_.notify_one();
}

std::shared_ptr<const SessionController::Running> SessionController::running() const {
  const std::lock_guard lock(mutex_);
  return running_;
}

absl::Duration SessionController::NextWork() const {
  // After a message about losses, LogLosses logs no more losses for kLogLossesEvery. If losses have
  // not been logged, the thread must wake after that time to log them.
  const bool owes_losses = running_ != nullptr && running_->stats->lost() != lost_logged_;
  return std::min({next_try_, snapshot_at_,
                   owes_losses ? losses_logged_at_ + kLogLossesEvery : absl::InfiniteDuration()});
}

void SessionController::Loop() {
  pthread_setname_np(pthread_self(), absl::StrCat("s:", settings_.name).substr(0, 15).c_str());
  std::unique_lock lock(mutex_);
  while (!ends_ || !requests_.empty()) {
    const auto is_woken = [this] { return ends_ || noticed_ || !requests_.empty(); };
    const absl::Duration next = NextWork();
    if (next == absl::InfiniteDuration()) {
      wake_.wait(lock, is_woken);
    } else {
      wake_.wait_for(lock, absl::ToChronoNanoseconds(next - base::MonotonicNow()), is_woken);
    }
    noticed_ = false;
    const auto requests = std::exchange(requests_, {});
    lock.unlock();
    for (const auto& request : requests) request();
    HandleReports();
    if (base::MonotonicNow() >= snapshot_at_) FinishSnapshot();
    if (base::MonotonicNow() >= next_try_) TryStart().IgnoreError();
    lock.lock();
  }
  lock.unlock();
  if (const absl::Status status = End(); !status.ok()) LogMessage(LOG_ERR, "has stopped", status);
}

void SessionController::HandleReports() {
  const std::shared_ptr<const Running> session = running();
  if (session == nullptr) return;
  for (const std::string& warning : session->stats->TakeWarnings())
    LogMessage(LOG_WARNING, absl::StrCat("has a warning: ", warning));
  LogLosses();
  AnswerTrigger();
  absl::Status failure = session->capture->status();
  if (failure.ok()) failure = session->stats->status();
  if (!failure.ok()) {
    if (const absl::Status status = End(); !status.ok()) LogMessage(LOG_ERR, "has ended", status);
    // If the session ran for longer than the longest wait between retries before it failed, the
    // waits begin with the shortest one again.
    if (base::MonotonicNow() - started_ > Backoff::kLongest) backoff_.Reset();
    return Fail(failure, "has failed");
  }
  const bool takes_nothing = session->stats->is_suspended() || session->output->is_failing();
  const State state = takes_nothing ? State::kSuspended : State::kRunning;
  {
    const std::lock_guard lock(mutex_);
    if (status_.state == state) return;
  }
  SetState(state);
}

void SessionController::AnswerTrigger() {
  std::optional<std::size_t> trigger;
  {
    const std::lock_guard lock(mutex_);
    trigger.swap(trigger_);
  }
  // A snapshot that is already scheduled also answers this trigger.
  if (!trigger || snapshot_at_ != absl::InfiniteDuration()) return;
  const std::string& text = settings_.flight.triggers[*trigger].text;
  if (snapshot_limit_.Take(base::MonotonicNow())) {
    snapshot_at_ = base::MonotonicNow() + settings_.flight.after;
    refusal_logged_ = false;
    LogMessage(LOG_NOTICE, absl::StrCat("will write a snapshot for the trigger: ", text));
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    ++status_.snapshots_refused;
  }
  if (std::exchange(refusal_logged_, true)) return;
  LogMessage(LOG_WARNING,
             absl::StrCat("writes no snapshot this time for its trigger '", text,
                          "': the maximum is ", settings_.flight.limit_count, " in ",
                          absl::FormatDuration(settings_.flight.limit_time),
                          " (limit_count, limit_time); further refusals are only counted"));
}

void SessionController::LogLosses() {
  const std::uint64_t lost = running()->stats->lost();
  if (lost == lost_logged_ || base::MonotonicNow() - losses_logged_at_ < kLogLossesEvery) return;
  Log(LOG_WARNING,
      absl::StrCat("session ", settings_.name, ": ", base::Counted(lost - lost_logged_, "event"),
                   " lost; 'nettrace ctl status ", settings_.name, "' shows where"),
      {{"SESSION", settings_.name}, {"LOST", absl::StrCat(lost - lost_logged_)}});
  lost_logged_ = lost;
  losses_logged_at_ = base::MonotonicNow();
}

absl::Status SessionController::TryStart() {
  next_try_ = absl::InfiniteDuration();
  absl::Status status;
  try {
    status = Begin();
  } catch (const std::bad_alloc&) {
    status = absl::ResourceExhaustedError(
        "not enough memory; lower ring_size or queue_bytes of sessions");
  }
  if (!status.ok()) {
    Fail(status, "cannot start");
    return status;
  }
  started_ = base::MonotonicNow();
  logged_failure_ = absl::OkStatus();
  SetState(State::kRunning);
  LogMessage(LOG_INFO, "collects");
  return status;
}

void SessionController::Fail(const absl::Status& status, const char* what) {
  const absl::Duration wait = backoff_.Next();
  next_try_ = base::MonotonicNow() + wait;
  SetState(State::kFailed, status);
  if (status == logged_failure_) return;
  logged_failure_ = status;
  LogMessage(LOG_ERR, what,
             absl::Status(status.code(),
                          absl::StrCat(status.message(), "; retrying in ",
                                       absl::FormatDuration(wait), ", later retries are at most ",
                                       absl::FormatDuration(Backoff::kLongest),
                                       " apart"
                                       "; the same error is not logged again")));
}

absl::Status SessionController::Begin() {
  if (absl::Status limits = CheckKernelLimits(settings_); !limits.ok()) return limits;
  const CapturePool::Place place = shared_->captures.Choose(settings_);
  ASSIGN_OR_RETURN(auto options, MakeOptions(settings_, place));
  ASSIGN_OR_RETURN(auto capture, shared_->captures.Get(settings_, place));
  const std::size_t selected = options.selectors.size();
  auto session = std::make_shared<Running>();
  session->place = place;
  session->capture = std::move(capture);
  ASSIGN_OR_RETURN(session->dotnet, PrepareDotnet(settings_, &options));
  if (session->dotnet != nullptr) {
    session->dotnet_selectors.assign(options.selectors.begin() + std::ptrdiff_t(selected),
                                     options.selectors.end());
  }
  session->stats = std::make_shared<SessionStats>([this] { Notice(); });
  // The function uses `waker_` instead of `this`, because the output's thread may outlive this
  // object if it hangs.
  auto output = OutputChain::Open(
      settings_, [name = settings_.name, waker = waker_](const absl::Status& written) {
        if (written.ok()) {
          LogForSession(name, LOG_NOTICE, "writes again");
        } else {
          LogForSession(
              name, LOG_ERR,
              "cannot write and retries; events wait in memory, and are counted as lost when the "
              "queue is full",
              written);
        }
        const std::lock_guard lock(waker->mutex);
        if (waker->controller != nullptr) waker->controller->Notice();
      });
  if (!output.ok()) return output.status();
  session->output = *std::move(output);
  if (settings_.kind == SessionSettings::Kind::kFiles) {
    options.has_ring_positions = true;
    options.longest_delivery = collector::SessionOptions().longest_delivery;
  }
  options.recorded_rings = session->output->TakeRecordedRings();
  options.triggers = settings_.flight.triggers;
  options.fire = [this](std::size_t trigger, std::uint64_t) {
    {
      const std::lock_guard lock(mutex_);
      trigger_ = trigger;
    }
    Notice();
  };
  absl::Status status;
  session->capture->Run([&](collector::Capture& with) {
    const auto started = with.StartSession(
        std::move(options), [&]() -> absl::StatusOr<std::unique_ptr<nettrace::Sink>> {
          return session->output->MakeSink();
        });
    if (!started.ok()) {
      status = started.status();
      return;
    }
    session->session = *started;
    session->stats->SetSession(*started);
    if (session->dotnet != nullptr) session->dotnet->Begin(*started);
    session->capture->AddObserver(session.get(),
                                  [this, capture = session->capture.get(), stats = session->stats,
                                   dotnet = session->dotnet.get(), writer = session->session] {
                                    if (!capture->status().ok()) return Notice();
                                    if (dotnet != nullptr) dotnet->ReportGivenUp(writer);
                                    stats->UpdateIfDue(base::MonotonicNow());
                                  });
  });
  if (session->session == nullptr) {
    return status.ok() ? session->capture->status() : status;
  }
  if (session->dotnet != nullptr && !session->dotnet->why_only_streams().ok()) {
    LogMessage(LOG_INFO, "records the events of .NET through EventPipe, without stacks",
               session->dotnet->why_only_streams());
  }
  lost_logged_ = 0;
  const std::lock_guard lock(mutex_);
  running_ = std::move(session);
  status_.started = absl::Now();
  status_.snapshots_refused = 0;
  status_.discarded = 0;
  return absl::OkStatus();
}

absl::Status SessionController::End() {
  const std::shared_ptr<const Running> session = running();
  if (session == nullptr) return absl::OkStatus();
  if (snapshot_at_ != absl::InfiniteDuration()) FinishSnapshot();
  std::vector<std::weak_ptr<TailStream>> tails;
  {
    const std::lock_guard lock(mutex_);
    running_ = nullptr;
    tails.swap(tails_);
  }
  for (const auto& each : tails) {
    if (const auto tail = each.lock()) tail->End();
  }
  if (session->dotnet != nullptr) {
    EndDotnet(session->capture.get(), session->session, session->dotnet.get());
  }
  collector::SessionSummary summary;
  std::unique_ptr<collector::Session> stopped;
  session->capture->Run([&](collector::Capture& capture) {
    session->capture->RemoveObserver(session.get());
    if (session->dotnet != nullptr) session->dotnet->Report(session->session);
    summary = capture.StopSession(session->session, &stopped);
    session->stats->SetSession(nullptr);
  });
  if (summary.account.throttled() != 0) {
    LogMessage(LOG_WARNING,
               absl::StrCat("lacks samples of CPU time: the kernel stopped the samples of a CPU ",
                            base::Counted(summary.account.throttled(), "time"),
                            ", for up to 10 ms each; use a lower rate"));
  }
  if (const auto& services = summary.account.unknown_services(); !services.empty()) {
    LogMessage(
        LOG_WARNING,
        absl::StrCat(
            "does not know the losses of ",
            base::Counted(services.size() + summary.account.unknown_services_left_out(), "service"),
            ", the first: ", trace::UnknownServiceText(services.front())));
  }
  absl::Status closed = session->output->Close(shared_->hurry);
  const std::uint64_t discarded =
      closed.ok() || stopped == nullptr ? 0 : stopped->CountUndelivered();
  if (!closed.ok()) {
    closed = absl::DataLossError(
        absl::StrCat(closed.message(), "; ", discarded, " events were discarded"));
  }
  {
    // Keeps the final totals in the status.
    const std::lock_guard lock(mutex_);
    session->stats->FillIn(&status_);
    session->output->FillIn(&status_);
    if (session->dotnet != nullptr) FillIn(*session->dotnet, &status_);
    status_.events = summary.events;
    status_.lost = summary.lost;
    status_.discarded = discarded;
    status_.events_per_second = status_.bytes_per_second = 0;
  }
  return summary.status.ok() ? closed : summary.status;
}

void SessionController::BeginRotation(const std::shared_ptr<PathPromise>& promise) {
  const std::shared_ptr<const Running> session = running();
  if (session == nullptr) {
    promise->set_value(NotRunning(settings_.name));
    return;
  }
  const absl::Status status = session->output->Rotate(
      [promise](absl::StatusOr<std::string> path) { promise->set_value(std::move(path)); });
  if (!status.ok()) {
    promise->set_value(status);
    return;
  }
  session->capture->Post([session](collector::Capture&) {
    if (session->stats->has_session()) session->session->RequestSection();
  });
}

void SessionController::BeginSnapshot(absl::Duration after, std::shared_ptr<PathPromise> promise) {
  const std::shared_ptr<const Running> session = running();
  if (session == nullptr) {
    promise->set_value(NotRunning(settings_.name));
    return;
  }
  const absl::Duration at = base::MonotonicNow() + after;
  snapshot_at_ = snapshot_at_ == absl::InfiniteDuration() ? at : std::max(snapshot_at_, at);
  snapshot_for_.push_back(std::move(promise));
}

void SessionController::FinishSnapshot() {
  snapshot_at_ = absl::InfiniteDuration();
  const std::shared_ptr<const Running> session = running();
  session->capture->Post([session](collector::Capture&) {
    if (session->stats->has_session()) session->session->RequestSection();
  });
  const absl::StatusOr<std::string> path = session->output->WriteSnapshot(kSnapshotPatience);
  if (path.ok()) {
    Log(LOG_NOTICE, absl::StrCat("session ", settings_.name, ": snapshot ", *path),
        {{"SESSION", settings_.name}, {"FILE", *path}});
  } else {
    LogMessage(LOG_ERR, "could not write a snapshot", path.status());
  }
  for (const auto& promise : std::exchange(snapshot_for_, {})) promise->set_value(path);
}

void SessionController::SetState(State state, const absl::Status& error) {
  const absl::Time now = absl::Now();
  {
    const std::lock_guard lock(mutex_);
    if (status_.state != state) status_.state_since = now;
    status_.state = state;
    if (!error.ok()) {
      status_.error = std::string(error.message());
      status_.error_time = now;
    }
  }
  shared_->on_change();
}

void SessionController::LogMessage(int priority, const std::string& what,
                                   const absl::Status& error) {
  LogForSession(settings_.name, priority, what, error);
}

}  // namespace nettraced
