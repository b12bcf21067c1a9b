#include "tools/nettraced/daemon.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/status_macros.h"
#include "tools/nettraced/config/read_settings.h"
#include "tools/nettraced/log.h"
#include "tools/nettraced/services_report.h"

namespace nettraced {
namespace {

using State = control::SessionStatus::State;

// Longest wait for a capture to report the state of its sessions. If it does not answer in time,
// the last known state is used.
constexpr absl::Duration kLookTime = absl::Milliseconds(500);
// Longest wait for a capture to describe its services, and shortest time between two descriptions.
// A description takes time of the capture's thread, and members of look_group (settings.h) may
// request descriptions at any rate.
constexpr absl::Duration kListTime = absl::Seconds(5);
constexpr absl::Duration kListEvery = absl::Milliseconds(100);
// Longest wait for sessions to complete a request.
constexpr absl::Duration kRequestTime = absl::Seconds(15);

template <typename T>
bool IsReadyBy(const std::future<T>& value, absl::Duration end) {
  const absl::Duration left = std::max(end - base::MonotonicNow(), absl::ZeroDuration());
  return value.wait_for(absl::ToChronoNanoseconds(left)) == std::future_status::ready;
}

template <typename T>
void WaitForAll(const std::vector<std::future<T>>& values) {
  const absl::Duration end = base::MonotonicNow() + kRequestTime;
  for (const std::future<T>& value : values) IsReadyBy(value, end);
}

absl::Status NoAnswer(absl::Duration limit = kRequestTime,
                      const char* then = "the request is executed when the session continues") {
  return absl::UnavailableError(
      absl::StrCat("no answer for ", absl::FormatDuration(limit), "; its disk may hang; ", then));
}

// Returns the answer of a session, or `none` if the answer does not come within `limit`.
template <typename T>
T AwaitOr(absl::Status none, std::future<T> answer, absl::Duration limit = kRequestTime) {
  if (!IsReadyBy(answer, base::MonotonicNow() + limit)) return none;
  return answer.get();
}

// Returns the answer of a session, or NoAnswer() if the answer does not come within `limit`.
template <typename T>
T Await(std::future<T> answer, absl::Duration limit = kRequestTime) {
  return AwaitOr(NoAnswer(limit), std::move(answer), limit);
}

std::size_t LargestRing(const std::vector<SessionSettings>& sessions) {
  std::size_t size = 0;
  for (const SessionSettings& session : sessions) {
    size = std::max(size, session.ring_size);
  }
  return size;
}

// Returns the path of the file of the pattern memory.
std::string MemoryPath(const std::string& state_directory) {
  return absl::StrCat(state_directory, "/remembered-names");
}

absl::Status Named(std::string_view session, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat("session ", std::string(session), ": ", status.message()));
}

}  // namespace

Daemon::Daemon(DaemonSettings settings, ReadSettings read, std::function<void()> on_change)
    : memory_(std::make_shared<collector::PatternMemory>(settings.remembered_names)),
      shared_(memory_),
      read_(std::move(read)),
      settings_(std::move(settings)) {
  shared_.on_change = std::move(on_change);
  shared_.captures.SetRings(settings_.rings, absl::StrCat(settings_.runtime_directory, "/events"));
  settings_error_ = std::string(settings_.errors.message());
}

void Daemon::StartAll() {
  const std::lock_guard changing(changing_);
  const std::string path = MemoryPath(settings_.state_directory);
  const absl::StatusOr<std::size_t> wrong = memory_->Load(path);
  if (!wrong.ok()) {
    // The message does not repeat the path, because the status names it. SaveMemory does the same.
    Log(LOG_WARNING,
        absl::StrCat("the remembered tracepoint names cannot be read: ", wrong.status().message(),
                     "; let the daemon's user read this file, or remove it"),
        {{"FILE", path}});
  } else if (*wrong != 0) {
    Log(LOG_WARNING,
        absl::StrCat(path, ": ", base::Counted(*wrong, "line"),
                     " ignored: invalid, a duplicate, or over the limit ",
                     "of names (remembered_names = ", settings_.remembered_names, ")"),
        {{"FILE", path}});
  }
  shared_.captures.SetSharedRingSize(LargestRing(settings_.sessions));
  std::vector<std::future<absl::Status>> started;
  shared_.captures.BeginStart();
  for (const SessionSettings& session : settings_.sessions) {
    started.push_back(Add(session, /*is_from_settings=*/true, session.start));
  }
  shared_.captures.EndStart();
  WaitForAll(started);
}

void Daemon::StopAll() {
  std::vector<std::future<absl::Status>> stopped;
  for (const auto& [name, entry] : entries()) stopped.push_back(entry.controller->Stop());
  for (const auto& each : stopped) each.wait();
  SaveMemory();
}

void Daemon::SaveMemory() {
  const std::string path = MemoryPath(settings_.state_directory);
  if (const absl::Status status = memory_->Save(path); !status.ok()) {
    Log(LOG_WARNING,
        absl::StrCat("the remembered tracepoint names cannot be saved: ", status.message(),
                     "; let the daemon's user write to the state directory, or free disk space"),
        {{"FILE", path}});
  }
}

void Daemon::RotateAll() {
  std::vector<std::future<absl::StatusOr<std::string>>> rotated;
  for (const auto& [name, entry] : entries()) {
    if (entry.controller->settings().kind == SessionSettings::Kind::kFiles) {
      rotated.push_back(entry.controller->Rotate());
    }
  }
  WaitForAll(rotated);
}

void Daemon::SnapshotAll() {
  std::vector<std::future<absl::StatusOr<std::string>>> written;
  for (const auto& [name, entry] : entries()) {
    if (entry.controller->settings().kind == SessionSettings::Kind::kFlight) {
      written.push_back(entry.controller->Snapshot(absl::ZeroDuration()));
    }
  }
  WaitForAll(written);
}

std::string Daemon::StatusLine() {
  std::size_t collecting = 0;
  std::size_t failed = 0;
  std::size_t suspended = 0;
  double rate = 0;
  std::uint64_t lost = 0;
  for (const auto& [name, entry] : entries()) {
    const control::SessionStatus status = entry.controller->Status(absl::ZeroDuration());
    if (status.state == State::kFailed) ++failed;
    if (status.state == State::kSuspended) ++suspended;
    if (status.state == State::kRunning) ++collecting;
    rate += status.events_per_second;
    lost += status.lost;
  }
  std::string text = absl::StrCat("sessions: ", collecting, " running");
  if (suspended != 0) absl::StrAppend(&text, ", ", suspended, " suspended");
  if (failed != 0) absl::StrAppend(&text, ", ", failed, " failed");
  absl::StrAppendFormat(&text, "; %.0f events/s, %u lost", rate, lost);
  const std::lock_guard lock(mutex_);
  if (!settings_error_.empty()) {
    absl::StrAppend(&text, "; invalid settings: ", settings_error_);
  }
  return text;
}

std::vector<control::SessionStatus> Daemon::List() {
  const Entries all = entries();
  for (const auto& [name, entry] : all) entry.controller->RequestUpdate();
  const absl::Duration end = base::MonotonicNow() + kLookTime;
  std::vector<control::SessionStatus> list;
  for (const auto& [name, entry] : all) {
    list.push_back(
        entry.controller->Status(std::max(end - base::MonotonicNow(), absl::ZeroDuration())));
  }
  return list;
}

absl::StatusOr<control::SessionStatus> Daemon::Status(std::string_view session) {
  ASSIGN_OR_RETURN(const auto controller, Find(session));
  controller->RequestUpdate();
  return controller->Status(kLookTime);
}

absl::Status Daemon::Start(std::string_view session) {
  ASSIGN_OR_RETURN(const auto controller, Find(session));
  return Named(session, Await(controller->Start()));
}

absl::StatusOr<std::vector<std::string>> Daemon::StartFrom(std::string_view toml) {
  ASSIGN_OR_RETURN(const auto sessions,
                   ParseSessions(toml, "the request", settings_.state_directory));
  const std::lock_guard changing(changing_);
  for (const SessionSettings& session : sessions) {
    if (Find(session.name).ok()) {
      return absl::AlreadyExistsError(
          absl::StrCat("session ", session.name, " already exists; choose another name"));
    }
    RETURN_IF_ERROR(CheckFiles(session, entries()));
  }
  std::vector<std::string> names;
  std::vector<std::future<absl::Status>> started;
  for (const SessionSettings& session : sessions) {
    names.push_back(session.name);
    started.push_back(Add(session, /*is_from_settings=*/false, /*starts=*/true));
  }
  absl::Status failure;
  for (std::size_t i = 0; i < names.size(); ++i) {
    failure.Update(
        Named(names[i], AwaitOr(NoAnswer(kRequestTime, "the session is stopped when it continues"),
                                std::move(started[i]))));
  }
  if (failure.ok()) return names;
  Remove(names);
  return failure;
}

absl::Status Daemon::Stop(std::string_view session) {
  ASSIGN_OR_RETURN(const auto controller, Find(session));
  std::future<absl::Status> stopped = controller->Stop();
  if (!IsReadyBy(stopped, base::MonotonicNow() + kRequestTime)) return Named(session, NoAnswer());
  absl::Status status = Named(session, stopped.get());
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(session);
  if (entry != entries_.end() && entry->second.controller == controller &&
      !entry->second.is_from_settings) {
    entries_.erase(entry);
  }
  return status;
}

absl::StatusOr<std::string> Daemon::Rotate(std::string_view session) {
  ASSIGN_OR_RETURN(const auto controller, Find(session));
  auto path = Await(controller->Rotate());
  if (!path.ok()) return Named(session, path.status());
  return path;
}

absl::StatusOr<std::string> Daemon::Snapshot(std::string_view session, absl::Duration after) {
  ASSIGN_OR_RETURN(const auto controller, Find(session));
  auto path = Await(controller->Snapshot(after), kRequestTime + after);
  if (!path.ok()) return Named(session, path.status());
  return path;
}

absl::StatusOr<std::unique_ptr<control::Tail>> Daemon::StartTail(std::string_view session,
                                                                 base::UniqueFd socket,
                                                                 std::string first) {
  ASSIGN_OR_RETURN(const auto controller, Find(session));
  auto tail = controller->StartTail(std::move(socket), std::move(first));
  if (!tail.ok()) return Named(session, tail.status());
  return tail;
}

absl::Status Daemon::Reload() {
  const std::lock_guard changing(changing_);
  absl::Status status = ReloadLocked();
  // Any other error means that a session has not stopped in time.
  const bool is_wrong = absl::IsInvalidArgument(status);
  if (status.ok()) {
    Log(LOG_INFO, "the settings have been reloaded");
  } else {
    Log(LOG_ERR,
        absl::StrCat(
            is_wrong ? "invalid settings; the sessions of the files named here stay as they were: "
                     : "the settings have been reloaded, except for sessions that hang: ",
            status.message()),
        {{"ERROR", std::string(status.message())}});
  }
  const std::lock_guard lock(mutex_);
  settings_error_ = is_wrong ? std::string(status.message()) : "";
  return status;
}

absl::StatusOr<control::ServicesStatus> Daemon::Services() {
  const std::lock_guard listing(listing_);
  if (base::MonotonicNow() - services_listed_ >= kListEvery) {
    services_ = ListServices();
    services_listed_ = base::MonotonicNow();
  }
  return services_;
}

absl::StatusOr<control::ServicesStatus> Daemon::ListServices() const {
  const std::shared_ptr<CaptureThread> capture = shared_.captures.GetOfServices();
  control::ServicesStatus services;
  if (capture != nullptr) {
    auto promise = std::make_shared<std::promise<collector::RingReport>>();
    std::future<collector::RingReport> report = promise->get_future();
    capture->Post([promise = std::move(promise)](collector::Capture& open) {
      promise->set_value(open.ReportServices());
    });
    if (!IsReadyBy(report, base::MonotonicNow() + kListTime)) {
      return absl::UnavailableError(absl::StrCat("the capture has not answered for ",
                                                 absl::FormatDuration(kListTime),
                                                 "; try again later"));
    }
    try {
      services = ToServicesStatus(report.get());
    } catch (const std::future_error&) {
      return absl::ResourceExhaustedError(
          "the capture has too little memory for the list of services; try again later");
    }
  }
  if (!services.socket.empty()) return services;
  services.why_none = shared_.captures.WhyNoRings();
  if (services.why_none.empty()) {
    services.why_none = "no running session records services";
  }
  return services;
}

absl::Status Daemon::CheckFiles(const SessionSettings& session, const Entries& others) const {
  const SessionSettings placed = InDirectory(session, settings_.state_directory);
  for (const auto& [name, entry] : others) {
    if (!ShareFiles(placed, entry.controller->settings())) continue;
    return absl::AlreadyExistsError(absl::StrCat(session.origin, ": session '", session.name, "' ",
                                                 kSharesFiles, " session '", name, "'; ",
                                                 kSharesFilesRemedy));
  }
  return absl::OkStatus();
}

absl::Status Daemon::ReloadLocked() {
  ASSIGN_OR_RETURN(DaemonSettings settings, read_());
  const Entries before = entries();
  // Sessions whose settings are in invalid files continue unchanged, whatever the valid files
  // contain.
  const auto is_wrong = [&settings](const Entry& entry) {
    const std::vector<std::string>& wrong = settings.wrong_files;
    return std::find(wrong.begin(), wrong.end(), entry.controller->settings().file) != wrong.end();
  };
  Entries staying = before;
  std::erase_if(staying, [&is_wrong](const auto& entry) {
    return entry.second.is_from_settings && !is_wrong(entry.second);
  });
  std::vector<std::string> errors;
  if (!settings.errors.ok()) errors.emplace_back(settings.errors.message());
  std::vector<const SessionSettings*> added;
  std::vector<std::string> removed;
  for (const SessionSettings& session : settings.sessions) {
    const auto known = before.find(session.name);
    if (known != before.end() && !known->second.is_from_settings) {
      errors.push_back(absl::StrCat(session.origin, ": session ", session.name,
                                    " was already started with 'nettrace ctl start --from'; run "
                                    "'nettrace ctl stop ",
                                    session.name, "', and reload again"));
      continue;
    }
    Entries others = staying;
    others.erase(session.name);
    if (const absl::Status status = CheckFiles(session, others); !status.ok()) {
      errors.emplace_back(status.message());
      continue;
    }
    if (known == before.end()) {
      added.push_back(&session);
    } else if (!InDirectory(session, settings_.state_directory)
                    .SameAs(known->second.controller->settings())) {
      added.push_back(&session);
      removed.push_back(session.name);
    }
  }
  for (const auto& known : before) {
    const bool is_there =
        std::any_of(settings.sessions.begin(), settings.sessions.end(),
                    [&known](const auto& session) { return session.name == known.first; });
    if (known.second.is_from_settings && !is_there && !is_wrong(known.second)) {
      removed.push_back(known.first);
    }
  }
  const std::vector<std::string> hanging = Remove(removed);
  std::erase_if(added, [&hanging](const SessionSettings* session) {
    return std::find(hanging.begin(), hanging.end(), session->name) != hanging.end();
  });
  shared_.captures.SetSharedRingSize(LargestRing(settings.sessions));
  std::vector<std::future<absl::Status>> started;
  started.reserve(added.size());
  for (const SessionSettings* session : added) {
    started.push_back(Add(*session, /*is_from_settings=*/true, session->start));
  }
  WaitForAll(started);
  if (!errors.empty()) return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
  if (hanging.empty()) return absl::OkStatus();
  return Named(
      absl::StrJoin(hanging, ", "),
      NoAnswer(kRequestTime, "reload again when 'nettrace ctl status' shows it as stopped"));
}

std::future<absl::Status> Daemon::Add(const SessionSettings& session, bool is_from_settings,
                                      bool starts) {
  std::shared_ptr<SessionController> controller;
  try {
    controller = std::make_shared<SessionController>(
        InDirectory(session, settings_.state_directory), &shared_);
  } catch (const std::system_error& error) {
    const std::string what = absl::StrCat("its thread cannot be created: ", error.what(),
                                          "; raise TasksMax= of nettraced.service");
    Log(LOG_ERR, absl::StrCat("session ", session.name, " cannot start: ", what),
        {{"SESSION", session.name}, {"ERROR", what}});
    std::promise<absl::Status> failed;
    failed.set_value(absl::ResourceExhaustedError(what));
    return failed.get_future();
  }
  {
    const std::lock_guard lock(mutex_);
    entries_.emplace(session.name, Entry{controller, is_from_settings});
  }
  if (starts) return controller->Start();
  std::promise<absl::Status> stopped;
  stopped.set_value(absl::OkStatus());
  return stopped.get_future();
}

std::vector<std::string> Daemon::Remove(const std::vector<std::string>& names) {
  const Entries all = entries();
  std::map<std::string, std::future<absl::Status>> stopped;
  for (const std::string& name : names) {
    const auto entry = all.find(name);
    if (entry != all.end()) stopped.emplace(name, entry->second.controller->Stop());
  }
  const absl::Duration end = base::MonotonicNow() + kRequestTime;
  std::vector<std::string> hanging;
  for (const auto& [name, status] : stopped) {
    if (!IsReadyBy(status, end)) hanging.push_back(name);
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [name, status] : stopped) {
    if (std::find(hanging.begin(), hanging.end(), name) == hanging.end()) entries_.erase(name);
  }
  return hanging;
}

Daemon::Entries Daemon::entries() const {
  const std::lock_guard lock(mutex_);
  return entries_;
}

absl::StatusOr<std::shared_ptr<SessionController>> Daemon::Find(std::string_view session) const {
  const std::lock_guard lock(mutex_);
  if (const auto entry = entries_.find(session); entry != entries_.end()) {
    return entry->second.controller;
  }
  return absl::NotFoundError(absl::StrCat("there is no session '", std::string(session),
                                          "'; 'nettrace ctl list' lists the sessions"));
}

}  // namespace nettraced
