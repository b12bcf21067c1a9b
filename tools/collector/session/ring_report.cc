#include "tools/collector/session/ring_report.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/time/clock.h"
#include "tools/base/monotonic_clock.h"
#include "tools/collector/identity/proc_files.h"
#include "tools/collector/session/ring_feed.h"

namespace collector {
namespace {

RingReport::Process ReadProcess(const RingClient& connection) {
  const auto pid = static_cast<std::uint32_t>(connection.pid());
  if (pid == 0) return {};
  RingReport::Process process;
  if (const std::optional<ProcThread> thread = ReadProcThread(pid, pid)) {
    process.name = thread->name;
  }
  process.executable = ReadProcExecutable(pid);
  process.cgroup = ReadProcCgroup(pid);
  if (const std::optional<absl::Duration> start = ReadProcStart(pid)) {
    process.started = absl::Now() - (base::Uptime() - *start);
  }
  // If the process has ended, the values that were read may be those of another process with its
  // pid.
  return connection.IsAlive() ? process : RingReport::Process();
}

}  // namespace

RingReport::Losses RingFeed::LossesOf(const Client& client) {
  RingReport::Losses lost;
  lost.nested = std::min(client.connection->region().lost_nested(), client.lost);
  lost.without_writer = client.lost_without_writer;
  lost.full = client.lost - std::min(client.lost, lost.nested + lost.without_writer);
  return lost;
}

void RingFeed::AddTo(const Client& client, RingReport::Totals* totals) {
  const RingReport::Losses lost = LossesOf(client);
  totals->events += client.events_read;
  totals->lost.full += lost.full;
  totals->lost.nested += lost.nested;
  totals->lost.without_writer += lost.without_writer;
  totals->corrupt += client.connection->region().corrupt();
}

RingReport::Service RingFeed::Describe(Client* client, std::size_t most_tracepoints) {
  const RingClient& connection = *client->connection;
  const RingRegion& region = client->connection->region();
  if (!client->process) client->process = ReadProcess(connection);
  RingReport::Service service;
  service.pid = connection.pid();
  service.uid = connection.uid();
  service.process = *client->process;
  service.connected =
      absl::Now() - (base::MonotonicNow() - absl::Nanoseconds(connection.connected_at()));
  service.inline_reason = connection.inline_reason();
  service.ring_bytes = connection.chunk_bytes();
  service.events = client->events_read;
  service.lost = LossesOf(*client);
  service.corrupt = region.corrupt();
  // Collects the sessions of each tracepoint by its name, because a service that registers a name
  // again may get another index for it.
  std::map<std::string, std::set<std::string>> sessions;
  const std::uint32_t count = region.CountNames();
  std::size_t read = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (region.CountUsers(i) == 0) continue;
    if (read++ == most_tracepoints) {
      service.has_more_tracepoints = true;
      break;
    }
    std::string name = region.ReadName(i);
    if (name.empty()) continue;
    std::set<std::string>& names = sessions[std::move(name)];
    if (i >= client->sets.size() || client->sets[i] == nullptr) continue;
    for (const SessionWriter* session : client->sets[i]->sessions) {
      if (!client->IsExcludedFrom(session)) names.insert(session->name());
    }
  }
  for (auto& [name, names] : sessions) {
    service.tracepoints.push_back({name, {names.begin(), names.end()}});
  }
  return service;
}

RingReport RingFeed::Report() {
  RingReport report;
  report.socket = server_->path();
  report.refusals = server_->refusals().Latest();
  report.totals = ended_;
  report.totals.refused = server_->refusals().by_reason();
  const std::size_t most = RingReport::kMaxTracepoints / std::max<std::size_t>(clients_.size(), 1);
  for (auto& [number, client] : clients_) {
    AddTo(client, &report.totals);
    if (client.connection->state() != RingClient::State::kConnected) continue;
    report.services.push_back(Describe(&client, std::max<std::size_t>(most, 1)));
  }
  return report;
}

}  // namespace collector
