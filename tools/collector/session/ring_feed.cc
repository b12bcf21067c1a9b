#include "tools/collector/session/ring_feed.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "nettrace/format.h"
#include "tools/base/status_macros.h"
#include "tools/collector/identity/proc_files.h"
#include "tools/collector/perf/session_clock.h"
#include "tools/collector/tracefs/tracefs.h"
#include "tools/trace/thread_keys.h"

namespace collector {
namespace {

namespace ring = eh::internal::ring;
using ring::MessageType;

// Maximum number of threads of a client. A correct service has no more at a time. The events of
// further threads are recorded as events of one unknown thread.
constexpr std::size_t kMaxThreads = ring::kMaxWriters;
// Maximum time from an event of an inline connection to its arrival, in ns: the service sends
// events at least every 50 ms.
constexpr std::uint64_t kInlineDelay = 100'000'000;
// Minimum time between two Flush messages to a client, in ns.
constexpr std::uint64_t kFlushEvery = 100'000'000;
// Services keep their events when a collector crashes. Maximum time for which these events wait for
// sessions that are about to start, in ns.
constexpr std::uint64_t kLongestWait = 10'000'000'000;
// Time after which a filter reads the name of a thread again, in ns.
constexpr std::uint64_t kCommFor = 100'000'000;
// Minimum time between two periodic searches for followed cgroups, in ns. A report of inotify
// causes a search at once.
constexpr std::uint64_t kFollowEvery = 900'000'000;
// Time within which a service must connect again after an inline connection has ended without the
// message End, in ns. Otherwise the events that it has not sent are taken as lost.
constexpr std::uint64_t kReconnectTime = 10'000'000'000;
// Reasons in the account for events that were not sent.
constexpr char kEndedEarly[] = "its connection ended before it had sent all events";
constexpr char kIsSilent[] = "it did not send its last events when the recording ended";
constexpr char kReadBefore[] =
    "the collector was killed after it had read events that may be in no file of this session";
// Time for which the positions of services that have not connected yet are kept, in ns. A service
// tries to connect at least every 5 s.
constexpr std::uint64_t kConnectTime = 60'000'000'000;
// Maximum number of events of a writer that PassMissing counts as lost.
constexpr std::uint64_t kMostMissing = std::uint64_t{1} << 40;

std::string ToText(const std::string& name) {
  return absl::StrCat(std::string(Selector::kUserEventsSystem), ":", name);
}

bool Contains(const std::vector<SessionWriter*>& sessions, const SessionWriter* session) {
  return std::find(sessions.begin(), sessions.end(), session) != sessions.end();
}

trace::RingRegionId IdOf(const RingRegion& region) {
  trace::RingRegionId id;
  std::copy_n(reinterpret_cast<const std::byte*>(region.id().data()), id.size(), id.begin());
  return id;
}

// Returns whether the selector selects all tracepoints of one system, whose name has the form of a
// kernel system's name.
bool NamesKernelSystem(const Selector& selector) {
  return selector.kind == Selector::Kind::kPattern && selector.provider == selector.system &&
         selector.system != Selector::kUserEventsSystem &&
         std::all_of(selector.system.begin(), selector.system.end(), [](unsigned char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_';
         });
}

bool NeedsKernelFor(const Selector& selector) {
  return !MayMatchServices(selector) || NamesKernelSystem(selector);
}

}  // namespace

std::string WhyServicesUseRings() {
  const char* const chosen = secure_getenv("EVENTHEADER_TRANSPORT");
  const std::string choice = chosen == nullptr ? "" : chosen;
  if (choice == "ring" || choice == "ring-inline") {
    return absl::StrCat("EVENTHEADER_TRANSPORT is ", choice);
  }
  const absl::StatusOr<Tracefs> tracefs = Tracefs::Find();
  if (tracefs.ok()) return tracefs->HasUserEvents() ? "" : "the kernel has no user_events";
  if (absl::IsNotFound(tracefs.status())) return "tracefs is not mounted";
  // Tracefs is mounted but not readable. A setting that every user can see shows whether the kernel
  // has user_events. It exists since Linux 6.4, the first version in which user_events are not
  // marked as broken.
  constexpr const char* kSettings = "/proc/sys/kernel";
  const std::string limit = absl::StrCat(kSettings, "/user_events_max");
  const bool is_missing = access(limit.c_str(), F_OK) != 0 && errno == ENOENT;
  return is_missing && access(kSettings, F_OK) == 0 ? "the kernel has no user_events" : "";
}

bool MayMatchServices(const Selector& selector) {
  return selector.needs_user_events() ||
         (selector.kind == Selector::Kind::kPattern &&
          (!selector.provider.empty() ||
           selector.MatchesSystem(std::string(Selector::kUserEventsSystem))));
}

bool NeedsKernel(const std::vector<Selector>& selectors) {
  return std::any_of(selectors.begin(), selectors.end(), NeedsKernelFor);
}

absl::Status CheckKernel(const std::vector<Selector>& selectors, const absl::Status& kernel) {
  const auto found = std::find_if(selectors.begin(), selectors.end(), NeedsKernelFor);
  if (kernel.ok() || found == selectors.end()) return absl::OkStatus();
  std::string message =
      absl::StrCat("selector '", found->text, "' needs the kernel's events: ", kernel.message());
  if (NamesKernelSystem(*found)) {
    absl::StrAppend(&message, "; to record a service's provider of this name, use '", found->system,
                    "'");
  }
  return absl::Status(kernel.code(), message);
}

absl::StatusOr<std::unique_ptr<RingFeed>> RingFeed::Open(RingFeedOptions options,
                                                         TaskTracker* tasks,
                                                         Distributor* distributor) {
  ASSIGN_OR_RETURN(std::unique_ptr<RingServer> server, RingServer::Listen(options.server));
  auto feed = std::unique_ptr<RingFeed>(new RingFeed(std::move(options), tasks, distributor));
  feed->server_ = std::move(server);
  return feed;
}

RingFeed::~RingFeed() {
  // The message Bye makes services disable their tracepoints at once, before their connections end.
  for (auto& [number, client] : clients_) {
    if (client.connection->state() != RingClient::State::kConnected) continue;
    client.connection->region().DisableAll();
    client.connection->Send(MessageType::kBye, 0);
  }
}

bool RingFeed::HasArrivals() const {
  pollfd ready{fd(), POLLIN, 0};
  return poll(&ready, 1, 0) == 1;
}

void RingFeed::Connected(RingClient* connection) {
  Client& client = clients_[connection->number()];
  client.connection = connection;
  client.connected_at = SessionClockNow();
  client.is_target = options_.target.Includes(connection->pid());
  for (SessionWriter* session : sessions_) {
    session->ring_target().Follow(/*is_due=*/false);
    CheckTarget(&client, session);
  }
  client.has_kept = connection->region().had_collector() && connection->region().WasUsed();
  client.kept_for = sessions_;
  FindPredecessor(&client);
  if (options_.reads_processes && connection->pid() > 0) {
    tasks_->Announce(static_cast<std::uint32_t>(connection->pid()), client.connected_at);
  }
  SetsChanged(connection);
  // Makes IsWorthDraining return true, because the service may have written events before it
  // connected.
  client.is_filled = true;
}

bool RingFeed::HaveSameRegion(const RingClient& a, const RingClient& b) {
  return a.pid() == b.pid() && a.region().id() == b.region().id();
}

void RingFeed::FindPredecessor(Client* client) {
  const RingClient& connection = *client->connection;
  for (auto& [number, other] : clients_) {
    if (number == connection.number()) break;
    if (other.connection->region().id() != connection.region().id()) continue;
    client->predecessor = number;
    // Takes nothing over from another process, which could state the id of this service's region.
    if (!HaveSameRegion(*other.connection, connection)) continue;
    client->sent_before = std::max(client->sent_before, SentUntil(other));
    ClearUnsent(&other);
  }
}

void RingFeed::SetsChanged(RingClient* connection) {
  Client& client = clients_[connection->number()];
  ReadSets(&client);
  // Enable is also needed if no session selects the new sets: the service enables new sets until
  // it receives the collector's choice.
  Enable(&client);
}

void RingFeed::Disconnected(RingClient* connection) {
  // Makes IsWorthDraining return true, so that Drain reads the remaining events of the service
  // soon.
  Client& client = clients_[connection->number()];
  client.is_filled = true;
  const bool is_continued = std::any_of(clients_.begin(), clients_.end(), [&](const auto& each) {
    return each.first > connection->number() &&
           HaveSameRegion(*each.second.connection, *connection);
  });
  if (!connection->inline_reason().empty() && !connection->has_end() && !is_continued) {
    client.unsent = {SentUntil(client), options_.reconnect_clock()};
  }
  if (options_.reads_processes) tasks_->RecordsWereLost();
}

bool RingFeed::CheckTarget(Client* client, SessionWriter* session) {
  const bool was_excluded = client->IsExcludedFrom(session);
  if (session->ring_target().Includes(client->connection->pid())) {
    std::erase(client->excluded, session);
    return was_excluded;
  }
  if (!was_excluded) client->excluded.push_back(session);
  return false;
}

void RingFeed::SetCgroups(std::vector<CgroupFolder> cgroups) {
  options_.target.SetCgroups(std::move(cgroups));
  for (auto& [number, client] : clients_) {
    if (client.is_target || !options_.target.Includes(client.connection->pid())) continue;
    client.is_target = true;
    ReadSetsAgain(&client);
    Enable(&client);
  }
}

void RingFeed::FollowTargets(std::uint64_t now) {
  const bool is_due = now >= next_follow_;
  if (is_due) next_follow_ = now + kFollowEvery;
  for (SessionWriter* session : sessions_) {
    if (!session->ring_target().Follow(is_due)) continue;
    for (auto& [number, client] : clients_) {
      if (!client.IsExcludedFrom(session) || !CheckTarget(&client, session)) continue;
      ReadSetsAgain(&client);
      Enable(&client);
    }
  }
}

void RingFeed::ReadSetsAgain(Client* client) {
  client->connection->region().RewindNames();
  ReadSets(client);
}

bool RingFeed::Selects(SessionWriter* session, const std::string& name) {
  const std::vector<Selector>& selectors = session->tracepoints().selectors();
  bool selects = false;
  absl::Status refused;
  for (std::size_t i = 0; i < selectors.size(); ++i) {
    if (!selectors[i].Matches(std::string(Selector::kUserEventsSystem), name)) continue;
    const std::string& filter = selectors[i].filter;
    const absl::Status status =
        filter.empty() ? absl::OkStatus() : RingFilter::Parse(filter).status();
    selects = selects || status.ok();
    if (!status.ok()) {
      refused.Update(absl::InvalidArgumentError(
          absl::StrCat("the filter '", filter, "' cannot be used: ", status.message())));
    }
  }
  if (!selects && !refused.ok()) {
    session->tracepoints().Skip(
        ToText(name),
        absl::StrCat("tracepoint ", ToText(name), ": its events come through shared memory, and ",
                     refused.message()));
  }
  return selects;
}

std::vector<RingFilter> RingFeed::FiltersOf(SessionWriter* session, const std::string& name) {
  std::vector<RingFilter> filters;
  for (const Selector& selector : session->tracepoints().selectors()) {
    if (!selector.Matches(std::string(Selector::kUserEventsSystem), name)) continue;
    if (selector.filter.empty()) return {};
    absl::StatusOr<RingFilter> filter = RingFilter::Parse(selector.filter);
    if (filter.ok()) filters.push_back(*std::move(filter));
  }
  return filters;
}

void RingFeed::Give(Set* set, SessionWriter* session) {
  set->sessions.push_back(session);
  distributor_->Give(set->id, session);
  const std::vector<Selector>& selectors = session->tracepoints().selectors();
  for (std::size_t i = 0; i < selectors.size(); ++i) {
    const std::string& filter = selectors[i].filter;
    if (selectors[i].Matches(std::string(Selector::kUserEventsSystem), set->name) &&
        (filter.empty() || RingFilter::Parse(filter).ok())) {
      session->tracepoints().SetMatched(i);
    }
  }
  std::vector<RingFilter> filters = FiltersOf(session, set->name);
  if (!filters.empty()) set->filters.emplace_back(session, std::move(filters));
  session->tracepoints().SetRecorded(ToText(set->name));
}

RingFeed::Set* RingFeed::FindSet(const std::string& name, uid_t user) {
  const auto found = sets_.find(name);
  if (found != sets_.end()) return &found->second;
  std::vector<SessionWriter*> wanting;
  for (SessionWriter* session : sessions_) {
    if (Selects(session, name)) wanting.push_back(session);
  }
  if (wanting.empty()) return nullptr;
  std::string why;
  if (owned_[user] >= options_.tracepoints_of_user) {
    why = absl::StrCat("tracepoint ", ToText(name), ": ", options_.tracepoints_of_user,
                       " tracepoints of the services of user ", user,
                       " are recorded, which is the maximum for a user; select fewer");
  }
  const absl::StatusOr<int> id =
      why.empty() ? distributor_->AddRingTracepoint(name) : absl::ResourceExhaustedError(why);
  if (!id.ok()) {
    for (SessionWriter* session : wanting) {
      session->tracepoints().Skip(ToText(name), std::string(id.status().message()));
    }
    return nullptr;
  }
  ++owned_[user];
  Set& set = sets_[name];
  set.name = name;
  set.id = *id;
  set.owner = user;
  for (SessionWriter* session : wanting) Give(&set, session);
  return &set;
}

bool RingFeed::ReadSets(Client* client) {
  RingClient& connection = *client->connection;
  bool has_new = false;
  connection.region().ReadNames(ring::kMaxSets, [&](std::uint32_t index, std::string_view name) {
    if (index >= client->sets.size()) client->sets.resize(index + 1);
    if (name.empty() || !client->is_target || client->sets[index] != nullptr) return;
    Set* const set = FindSet(std::string(name), connection.uid());
    if (set == nullptr) return;
    client->sets[index] = set;
    ++set->clients;
    has_new = true;
  });
  return has_new;
}

void RingFeed::Enable(Client* client, const SessionWriter* without) {
  client->sessions.clear();
  RingClient& connection = *client->connection;
  for (std::size_t i = 0; i < client->sets.size(); ++i) {
    bool is_on = false;
    if (client->sets[i] != nullptr) {
      for (SessionWriter* session : client->sets[i]->sessions) {
        if (client->IsExcludedFrom(session)) continue;
        if (!Contains(client->sessions, session)) client->sessions.push_back(session);
        is_on = is_on || session != without;
      }
    }
    connection.region().SetEnabled(static_cast<std::uint32_t>(i), is_on);
  }
  connection.region().PublishEnabled();
  connection.Send(MessageType::kEnable, ++client->enable_number);
}

bool RingFeed::IsBlocked(const Client& client) const {
  // The service has reconnected with the same region. The client of its previous connection still
  // reads the region, and must be removed first.
  if (client.predecessor != 0 && clients_.contains(client.predecessor)) return true;
  return client.has_kept && !client.was_read && options_.expects_sessions &&
         options_.expects_sessions() && SessionClockNow() < client.connected_at + kLongestWait;
}

void RingFeed::Add(SessionWriter* session) {
  sessions_.push_back(session);
  UnusedPositions& unused = unused_positions_[session];
  unused = {session->TakeRecordedRings(), SessionClockNow() + kConnectTime};
  for (auto& [name, set] : sets_) {
    if (Selects(session, name)) Give(&set, session);
  }
  for (auto& [number, client] : clients_) {
    CheckTarget(&client, session);
    // All names must be read again, because ReadSets does not keep names that no session selects.
    ReadSetsAgain(&client);
    Enable(&client);
    bool continues = client.has_kept;
    if (client.was_read) {
      // Other sessions have read the region, so the events after this session's positions are gone.
      // If its previous recording was interrupted, TakePositions counts them as lost, and the
      // session continues with the events that are left. Otherwise it records only new events, and
      // needs no positions.
      continues = TakePositions(&client, session) &&
                  unused.rings.ending == trace::RecordedRings::Ending::kInterrupted;
      if (!continues) {
        std::erase_if(client.positions, [&](const auto& each) { return each.session == session; });
      }
    }
    if (continues) client.kept_for.push_back(session);
  }
  WritePositions(session);
}

void RingFeed::Disable(const SessionWriter* session) {
  for (auto& [number, client] : clients_) {
    if (Contains(client.sessions, session)) Enable(&client, session);
  }
}

void RingFeed::Remove(const SessionWriter* session) {
  std::erase(sessions_, session);
  std::erase_if(unused_positions_, [session](const auto& each) { return each.first == session; });
  for (auto& [name, set] : sets_) {
    std::erase(set.sessions, session);
    std::erase_if(set.filters, [session](const auto& each) { return each.first == session; });
  }
  for (auto& [number, client] : clients_) {
    std::erase(client.sessions, session);
    std::erase(client.kept_for, session);
    std::erase(client.excluded, session);
    std::erase_if(client.positions,
                  [session](const auto& each) { return each.session == session; });
    for (Set*& set : client.sets) {
      if (set != nullptr && set->sessions.empty()) Leave(std::exchange(set, nullptr));
    }
    // Services that have connected since Disable was called still have tracepoints enabled for this
    // session.
    if (client.connection->state() == RingClient::State::kConnected) Enable(&client);
  }
}

void RingFeed::Leave(Set* set) {
  if (--set->clients != 0) return;
  distributor_->RemoveTracepoint(set->id);
  if (--owned_[set->owner] == 0) owned_.erase(set->owner);
  sets_.erase(sets_.find(set->name));
}

bool RingFeed::HaveConfirmed() const {
  return std::all_of(clients_.begin(), clients_.end(), [](const auto& each) {
    const Client& client = each.second;
    return client.is_silent || client.connection->state() != RingClient::State::kConnected ||
           client.connection->has_end() || client.connection->enabled() == client.enable_number;
  });
}

void RingFeed::StopWaiting() {
  for (auto& [number, client] : clients_) {
    client.is_silent = client.connection->enabled() != client.enable_number;
  }
}

RingFeed::Thread& RingFeed::SearchThread(Client* client, const RingWriter& writer) {
  const bool is_known =
      client->threads.contains(writer.ordinal) || client->threads.size() < kMaxThreads;
  const RingWriter named = is_known ? writer : RingWriter();
  const auto [entry, is_new] = client->threads.try_emplace(named.ordinal);
  Thread& thread = entry->second;
  if (!is_new) return thread;
  const auto pid = static_cast<std::uint32_t>(client->connection->pid());
  thread.ordinal = named.ordinal;
  thread.tid = named.tid;
  // The thread may have been created, and may even have ended, since the kernel's records were last
  // applied.
  options_.update_tasks();
  thread.identity = tasks_->AddClaimed(pid, named.tid, trace::kRingTransport);
  if (const std::vector<pid_t>& tids = options_.target.tids(); !tids.empty()) {
    const auto tid = static_cast<pid_t>(tasks_->InfoOf(thread.identity).thread_id.value_or(0));
    thread.is_target = std::find(tids.begin(), tids.end(), tid) != tids.end();
  }
  thread.name = absl::StrCat("ring:", pid, "/", named.tid);
  thread.index = distributor_->AddRingThread(
      absl::StrCat("Ring of ", pid, "/", named.tid, named.depth == 0 ? "" : ", in signal handlers"),
      trace::RingThreadSource({IdOf(client->connection->region()), named.ordinal}));
  return thread;
}

const std::string& RingFeed::CommOf(const Client& client, Thread* thread,
                                    std::uint64_t timestamp) const {
  if (thread->comm_read != 0 && timestamp < thread->comm_read + kCommFor) return thread->comm;
  const nettrace::ThreadInfo& info = tasks_->InfoOf(thread->identity);
  if (const std::optional<ProcThread> now =
          ReadProcThread(static_cast<std::uint32_t>(client.connection->pid()),
                         static_cast<std::uint32_t>(info.thread_id.value_or(0)))) {
    thread->comm = now->name;
  } else if (thread->comm_read == 0) {
    thread->comm = info.name.value_or("");
  }
  thread->comm_read = timestamp;
  return thread->comm;
}

void RingFeed::EraseThread(Client* client, std::uint64_t ordinal) {
  const auto found = client->threads.find(ordinal);
  if (found == client->threads.end()) return;
  RemoveThread(&found->second);
  client->threads.erase(found);
  client->last_thread = nullptr;
}

void RingFeed::RemoveThread(Thread* thread) {
  distributor_->RemoveRingThread(thread->index);
  tasks_->ReleaseClaimed(&thread->identity);
}

void RingFeed::AccountUnsent(Client* client, std::uint64_t now) {
  if (!client->unsent) return;
  const bool may_connect =
      client->connection->IsAlive() && now < client->unsent->until + kReconnectTime;
  if (may_connect) return;
  for (SessionWriter* session : client->sessions) {
    session->ServiceUnknown(client->connection->pid(), client->unsent->since, client->unsent->until,
                            kEndedEarly);
  }
  ClearUnsent(client);
}

void RingFeed::ClearUnsent(Client* client) {
  client->unsent.reset();
  // Makes Mark() and GiveBack() run once more for a client that has been read to its end.
  // GiveBack() then removes the client.
  client->can_mark = client->can_mark || client->is_final;
}

void RingFeed::AccountUnsent(SessionWriter* session) const {
  for (const auto& [number, client] : clients_) {
    const RingClient& connection = *client.connection;
    if (!Contains(client.sessions, session) || connection.inline_reason().empty()) continue;
    if (client.unsent) {
      session->ServiceUnknown(connection.pid(), client.unsent->since, client.unsent->until,
                              kEndedEarly);
    } else if (connection.state() == RingClient::State::kConnected && !connection.has_end() &&
               connection.enabled() != client.enable_number) {
      session->ServiceUnknown(connection.pid(), SentUntil(client), SessionClockNow(), kIsSilent);
    }
  }
}

std::uint64_t RingFeed::Drain(std::uint64_t limit, bool extends) {
  latest_ = limit;
  const std::uint64_t now = options_.reconnect_clock();
  std::vector<std::uint64_t> over;
  for (auto& [number, client] : clients_) {
    // Without a session, reads no events, so that the events that services have kept since a crash
    // of the previous collector stay in their regions. Services write no more events once they have
    // received the message Enable, because it then enables no tracepoint.
    if (sessions_.empty()) {
      if (client.connection->state() == RingClient::State::kGone) over.push_back(number);
      continue;
    }
    AccountUnsent(&client, now);
    if (client.is_final || IsBlocked(client)) continue;
    Read(&client, extends ? std::numeric_limits<std::uint64_t>::max() : limit);
  }
  for (const std::uint64_t number : over) Forget(number);
  return latest_;
}

void RingFeed::Read(Client* client, std::uint64_t limit) {
  RingClient& connection = *client->connection;
  RingRegion& region = connection.region();
  std::uint64_t now = SessionClockNow();
  const bool was_gone = connection.state() == RingClient::State::kGone;
  if (!client->was_read) {
    for (SessionWriter* session : sessions_) TakePositions(client, session);
  }
  client->was_read = true;
  client->has_more = region.Read(
      options_.server.bytes_of_client + (std::size_t{1} << 20),
      [&](const RingRecord& record) {
        Thread& thread = FindThread(client, record.writer);
        if (record.timestamp > now) now = SessionClockNow();
        std::uint64_t time = std::min(std::max(record.timestamp, thread.last), now);
        if (time > limit && !IsDue(&thread, record.number, limit, &time)) return false;
        thread.last = time;
        ++client->events_read;
        client->lost += record.lost_before;
        // The service may have added the set after the last call of Serve, so its name is read now.
        if (record.set >= client->sets.size() && ReadSets(client)) Enable(client);
        Pass(client, &thread,
             {record.writer.ordinal, record.number, time, record.lost_before, record.set,
              record.cpu},
             record.event.data(), record.event.size());
        return true;
      },
      // Losses after the last event of a writer are passed even if they may be later than `limit`:
      // their time is not known.
      [&](const RingWriter& writer, std::uint64_t lost, std::uint64_t next) {
        Thread& thread = FindThread(client, writer);
        client->lost += lost;
        if (writer.ordinal == 0) client->lost_without_writer += lost;
        thread.last = std::max(thread.last, now);
        Pass(client, &thread,
             {writer.ordinal, next, thread.last, lost, ring::kMaxSets, ring::kUnknownCpu}, nullptr,
             0);
      });
  client->is_final = was_gone && !client->has_more && !region.left_events();
  client->can_mark = true;
  client->is_filled = region.ArmBell(region.usable_chunks() / 4) || client->has_more;
  const std::uint32_t held = region.used_chunks() - region.complete_chunks();
  if (held > region.usable_chunks() / 4 * 3 && now >= client->next_flush) {
    client->next_flush = now + kFlushEvery;
    connection.Send(MessageType::kFlush, 0);
  }
}

bool RingFeed::IsDue(Thread* thread, std::uint64_t number, std::uint64_t limit,
                     std::uint64_t* time) {
  if (thread->left != number) {
    thread->left = number;
    thread->left_time = *time;
  }
  *time = std::max(thread->left_time, thread->last);
  return *time <= limit;
}

bool RingFeed::TakePositions(Client* client, SessionWriter* session) {
  const trace::RingRegionId id = IdOf(client->connection->region());
  trace::RecordedRings& rings = unused_positions_[session].rings;
  SessionPositions own = {session, {}};
  const auto begin = rings.positions.lower_bound({id, 0});
  auto end = begin;
  for (; end != rings.positions.end() && end->first.region == id; ++end) {
    own.positions.emplace(end->first.ordinal, end->second);
  }
  rings.positions.erase(begin, end);
  PassMissing(client, &own, rings.ending);
  if (own.positions.empty()) return false;
  client->positions.push_back(std::move(own));
  return true;
}

void RingFeed::PassMissing(Client* client, SessionPositions* of_session,
                           trace::RecordedRings::Ending ending) {
  using Ending = trace::RecordedRings::Ending;
  SessionWriter* const session = of_session->session;
  const bool is_recorded = Contains(client->sessions, session);
  const std::uint64_t now = SessionClockNow();
  bool is_unknown = false;
  for (const RingRegion::Progress& writer : client->connection->region().ReadProgress()) {
    const auto found = of_session->positions.find(writer.writer.ordinal);
    if (found == of_session->positions.end()) {
      is_unknown = true;
      continue;
    }
    if (writer.number <= found->second.number) continue;
    is_unknown = is_unknown || ending == Ending::kInterruptedEarly;
    trace::RingPosition& position = found->second;
    const std::uint64_t missing = writer.number - position.number;
    const std::uint64_t skipped = std::min(missing, position.skip);
    std::uint64_t lost = missing - skipped;
    position.number = writer.number;
    position.skip -= skipped;
    if (position.skip == 0) lost += std::exchange(position.owed, 0);
    Thread& thread = FindThread(client, writer.writer);
    if (thread.ordinal == writer.writer.ordinal) thread.next = std::max(thread.next, writer.number);
    thread.has_moved = true;
    // Does not count more than kMostMissing events, which only a faulty service can have lost.
    if (ending == Ending::kInterrupted && lost != 0 && lost <= kMostMissing && thread.is_target &&
        is_recorded) {
      session->LoseOfRing(thread.index, thread.name, lost, now,
                          writer.number - std::min(writer.number, lost), /*is_kept=*/true);
    }
    if (!writer.has_ended) continue;
    of_session->positions.erase(found);
    EraseThread(client, writer.writer.ordinal);
  }
  if (is_unknown && is_recorded && ending != Ending::kEnded) {
    session->ServiceUnknown(client->connection->pid(), /*since=*/0, now, kReadBefore);
  }
}

std::uint64_t RingFeed::ApplyPosition(SessionPositions* of_session, const Part& part,
                                      bool gets_event, std::vector<SessionWriter*>* without) {
  const auto found = of_session->positions.find(part.ordinal);
  if (found == of_session->positions.end() || part.number == RingRegion::kNoNumber) {
    return part.lost;
  }
  trace::RingPosition& position = found->second;
  const bool has_event = part.set != ring::kMaxSets;
  const std::uint64_t first = part.number - std::min(part.number, part.lost);
  const std::uint64_t after = part.number + (has_event ? 1 : 0);
  if (first > position.number) {
    // PassMissing has moved the position to the first event that the region had, so the service has
    // changed its memory since. The position is useless, and all losses of the part count.
    of_session->positions.erase(found);
    return part.lost;
  }
  std::uint64_t lost = part.lost - std::min(part.lost, position.number - first);
  const std::uint64_t skipped = std::min(lost, position.skip);
  lost -= skipped;
  position.skip -= skipped;
  if (has_event && part.number < position.number) {
    without->push_back(of_session->session);
  } else if (has_event && gets_event && position.skip != 0) {
    --position.skip;
    without->push_back(of_session->session);
  }
  if (after < position.number) return lost;
  position.number = after;
  if (position.skip != 0) return lost;
  lost += position.owed;
  of_session->positions.erase(found);
  return lost;
}

void RingFeed::ApplyFilters(const Client& client, Thread* thread, const Set& set,
                            const SampleRecord& sample, std::uint64_t timestamp) {
  for (const auto& [session, filters] : set.filters) {
    const auto accepts = [&](const RingFilter& filter) {
      const std::string_view comm =
          filter.uses_comm() ? CommOf(client, thread, timestamp) : std::string_view();
      return filter.Accepts(sample.raw, sample.tid, comm);
    };
    if (std::none_of(filters.begin(), filters.end(), accepts)) without_.push_back(session);
  }
}

void RingFeed::PassLosses(Client* client, const Thread& thread, const Part& part, const Set* set) {
  for (SessionWriter* session : client->sessions) {
    std::uint64_t lost = part.lost;
    for (SessionPositions& each : client->positions) {
      if (each.session != session) continue;
      const bool gets_event =
          set != nullptr && Contains(set->sessions, session) && !Contains(without_, session);
      lost = ApplyPosition(&each, part, gets_event, &without_);
    }
    if (lost == 0) continue;
    const std::uint64_t number = part.number == RingRegion::kNoNumber
                                     ? thread.next
                                     : part.number - std::min(part.number, lost);
    session->LoseOfRing(thread.index, thread.name, lost, part.timestamp, number,
                        Contains(client->kept_for, session));
  }
}

void RingFeed::Pass(Client* client, Thread* thread, const Part& part, const std::byte* event,
                    std::size_t size) {
  const bool has_event = part.set != ring::kMaxSets;
  if (part.number != RingRegion::kNoNumber && part.ordinal == thread->ordinal) {
    thread->next = part.number + (has_event ? 1 : 0);
  }
  thread->has_moved = true;
  if (!thread->is_target) return;
  if (has_event) latest_ = std::max(latest_, part.timestamp);
  SampleRecord sample;
  sample.pid = static_cast<std::uint32_t>(client->connection->pid());
  sample.tid = thread->tid;
  sample.raw = {event, size};
  const Set* const set =
      has_event && part.set < client->sets.size() ? client->sets[part.set] : nullptr;
  const std::vector<SessionWriter*>* without = &client->excluded;
  const bool has_filters = set != nullptr && !set->filters.empty();
  if (has_filters || part.lost != 0 || !client->positions.empty()) [[unlikely]] {
    without_ = client->excluded;
    without = &without_;
    if (has_filters) ApplyFilters(*client, thread, *set, sample, part.timestamp);
    if (part.lost != 0 || !client->positions.empty()) PassLosses(client, *thread, part, set);
  }
  if (set == nullptr) return;
  const std::uint32_t processor = part.cpu <= options_.last_cpu ? part.cpu : nettrace::kNoProcessor;
  distributor_->WriteOfRing(
      {thread->index, set->id, thread->identity, processor, part.number, client->kept_for}, sample,
      part.timestamp, *without);
}

void RingFeed::WritePositions(SessionWriter* session, bool all) {
  if (!session->has_ring_positions()) return;
  trace::RingRecord record;
  for (auto& [number, client] : clients_) {
    const trace::RingRegionId id = IdOf(client.connection->region());
    // Positions of the previous collector that the client's writers have not passed yet.
    std::map<std::uint64_t, trace::RingPosition> left;
    for (const SessionPositions& each : client.positions) {
      if (each.session == session) left = each.positions;
    }
    for (const auto& [ordinal, thread] : client.threads) {
      if (!all && !thread.has_moved) continue;
      const auto found = left.find(ordinal);
      std::optional<trace::RingPositionEntry> entry = session->FindRingUnits(thread.index);
      // A writer from which the session has got no event or loss yet also needs a position, so that
      // its events are counted if a crash loses them.
      if (!entry && found == left.end() && !Contains(client.sessions, session)) continue;
      if (!entry) entry.emplace();
      entry->number = thread.next;
      if (found != left.end()) {
        entry->number = std::max(thread.next, found->second.number);
        entry->skip = found->second.skip;
        entry->owed = found->second.owed;
        left.erase(found);
      }
      record[{id, ordinal}] = *entry;
    }
    if (!all) continue;
    for (const auto& [ordinal, position] : left) {
      record[{id, ordinal}] = {position.number, 0, 0, position.skip, position.owed};
    }
  }
  const UnusedPositions& unused = unused_positions_[session];
  if (all && SessionClockNow() < unused.until) {
    for (const auto& [writer, position] : unused.rings.positions) {
      record[writer] = {position.number, 0, 0, position.skip, position.owed};
    }
  }
  if (all || !record.empty()) session->WriteRingPositions(record);
}

bool RingFeed::CanMark() const {
  return std::any_of(clients_.begin(), clients_.end(),
                     [](const auto& each) { return each.second.can_mark; });
}

void RingFeed::Mark() {
  for (SessionWriter* session : sessions_) WritePositions(session, /*all=*/false);
  for (auto& [number, client] : clients_) {
    for (auto& [ordinal, thread] : client.threads) thread.has_moved = false;
    if (!client.can_mark) continue;
    client.marked_threads = client.connection->region().Mark();
    client.can_mark = false;
    client.is_marked = true;
  }
}

void RingFeed::GiveBack() {
  std::vector<std::uint64_t> over;
  for (auto& [number, client] : clients_) {
    if (!client.is_marked) continue;
    GiveBack(&client);
    if (client.is_final && !client.can_mark && !client.unsent) over.push_back(number);
  }
  for (const std::uint64_t number : over) Forget(number);
}

void RingFeed::GiveBack(Client* client) {
  for (const std::uint64_t ordinal : client->marked_threads) EraseThread(client, ordinal);
  client->marked_threads.clear();
  client->connection->region().GiveBackMarked();
  client->connection->SendChanges();
  client->is_marked = false;
}

void RingFeed::Forget(std::uint64_t number) {
  const auto found = clients_.find(number);
  Client& client = found->second;
  for (auto& [ordinal, thread] : client.threads) RemoveThread(&thread);
  for (Set* set : client.sets) {
    if (set != nullptr) Leave(set);
  }
  AddTo(client, &ended_);
  server_->Release(client.connection);
  clients_.erase(found);
}

std::uint64_t RingFeed::delay() const {
  const bool any_is_inline = std::any_of(clients_.begin(), clients_.end(), [](const auto& each) {
    return !each.second.connection->inline_reason().empty();
  });
  return any_is_inline ? kInlineDelay : 0;
}

bool RingFeed::IsWorthDraining() const {
  return !sessions_.empty() &&
         std::any_of(clients_.begin(), clients_.end(), [this](const auto& each) {
           return each.second.is_filled && !IsBlocked(each.second);
         });
}

bool RingFeed::IsPressed() const {
  return std::any_of(clients_.begin(), clients_.end(), [](const auto& each) {
    const RingRegion& region = each.second.connection->region();
    return region.complete_chunks() > region.usable_chunks() / 2;
  });
}

}  // namespace collector
