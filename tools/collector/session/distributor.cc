#include "tools/collector/session/distributor.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "libnettrace-writer/core/traceevent.h"
#include "tools/base/status_macros.h"

namespace collector {

void Distributor::AddCpu(int number) {
  cpus_.push_back({number});
  for (const Subscriber& subscriber : subscribers_) subscriber.session->AddCpu(number, 0);
}

std::size_t Distributor::AddRingThread(const std::string& name, const std::string& source) {
  std::size_t index = cpus_.size();
  if (free_ring_threads_.empty()) {
    cpus_.push_back({CollectorEvents::kNoCpu, 0, 0, /*is_ring_thread=*/true});
  } else {
    index = free_ring_threads_.back();
    free_ring_threads_.pop_back();
  }
  cpus_[index].name = name;
  cpus_[index].source = source;
  for (const Subscriber& subscriber : subscribers_) {
    subscriber.session->SetRingThread(index, name, source);
  }
  return index;
}

int Distributor::FindRingId() {
  if (free_ring_tracepoints_.empty()) {
    free_ring_tracepoints_.push_back(kFirstRingTracepoint +
                                     static_cast<int>(ring_tracepoints_.size()));
    ring_tracepoints_.emplace_back();
  }
  return free_ring_tracepoints_.back();
}

absl::StatusOr<int> Distributor::AddRingTracepoint(const std::string& name, bool is_counted) {
  const int id = FindRingId();
  RETURN_IF_ERROR(converter_.AddRingTracepoint(id, name));
  free_ring_tracepoints_.pop_back();
  At(id) = Tracepoint();
  At(id).was_known = true;
  At(id).is_tracepoint = is_counted;
  At(id).name = absl::StrCat(std::string(Selector::kUserEventsSystem), ":", name);
  return id;
}

int Distributor::AddDotnetStreams() {
  const int id = FindRingId();
  converter_.AddDotnetStreams(id);
  free_ring_tracepoints_.pop_back();
  At(id) = Tracepoint();
  At(id).was_known = true;
  At(id).is_tracepoint = false;
  At(id).name = "dotnet";
  return id;
}

bool Distributor::WriteOfRing(const RingEvent& event, const SampleRecord& sample,
                              std::uint64_t timestamp, std::span<SessionWriter* const> without) {
  const std::vector<SessionWriter*>& sessions = At(event.id).sessions;
  const ConvertedEvent* converted = nullptr;
  for (SessionWriter* session : sessions) {
    if (std::find(without.begin(), without.end(), session) != without.end()) continue;
    const bool is_kept =
        std::find(event.kept_for.begin(), event.kept_for.end(), session) != event.kept_for.end();
    if (session->is_suspended()) {
      session->Drop(event.index, timestamp, is_kept);
      continue;
    }
    if (converted == nullptr) {
      converted = event.of_stream == nullptr
                      ? &converter_.ConvertOfThread(event.id, event.thread, sample, timestamp)
                      : &converter_.ConvertOfStream(event.id, event.thread, *event.of_stream,
                                                    sample, timestamp);
    }
    session->WriteOfRing(event.index, *converted, event.processor, event.number, is_kept);
  }
  return !sessions.empty();
}

void Distributor::LoseOfStream(int id, std::size_t index, std::string_view name,
                               std::uint64_t count, std::uint64_t until, std::uint64_t number) {
  for (SessionWriter* session : At(id).sessions) {
    session->LoseOfRing(index, name, count, until, number, /*is_kept=*/false);
  }
}

void Distributor::WriteValue(std::size_t index, int id, const SampleRecord& sample,
                             std::uint64_t timestamp, std::uint32_t processor,
                             std::uint64_t value) {
  const ConvertedEvent* event = nullptr;
  for (SessionWriter* session : At(id).sessions) {
    if (session->is_suspended()) {
      session->Drop(index, timestamp);
      continue;
    }
    if (event == nullptr) event = &converter_.ConvertValue(id, sample, timestamp, value);
    session->WriteOfRing(index, *event, processor, values_, /*is_kept=*/false);
  }
  ++values_;
}

void Distributor::LoseValues(std::size_t index, int id, std::uint64_t count, std::uint64_t until) {
  const Tracepoint& tracepoint = At(id);
  for (SessionWriter* session : tracepoint.sessions) {
    session->LoseOfRing(index, tracepoint.name, count, until, values_, /*is_kept=*/false);
  }
  values_ += count;
}

void Distributor::Begin(SessionWriter* session, std::uint64_t start) {
  session->Begin(start, tasks_);
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    const Cpu& cpu = cpus_[i];
    if (cpu.is_ring_thread) {
      session->SetRingThread(i, cpu.name, cpu.source);
    } else {
      session->AddCpu(cpu.number, std::max(cpu.lost, cpu.reported));
    }
  }
  // Removes the process events from before the first session, because no session gets them.
  if (subscribers_.empty()) tasks_->processes().Take(start);
  std::uint64_t last = 0;
  for (const ProcessEvent& event : tasks_->processes().Existing(start)) {
    session->WriteProcessEvent(event, tasks_->Find(event.pid, event.pid, event.timestamp));
    last = event.number;
  }
  subscribers_.push_back({session, last + 1});
  changed_ = true;
}

std::vector<int> Distributor::Remove(SessionWriter* session) {
  std::erase_if(subscribers_,
                [session](const Subscriber& subscriber) { return subscriber.session == session; });
  for (Tracepoint& tracepoint : ring_tracepoints_) std::erase(tracepoint.sessions, session);
  std::vector<int> without;
  for (std::size_t id = 0; id < tracepoints_.size(); ++id) {
    std::vector<SessionWriter*>& sessions = tracepoints_[id].sessions;
    if (std::erase(sessions, session) != 0 && sessions.empty()) {
      without.push_back(static_cast<int>(id));
    }
  }
  changed_ = true;
  return without;
}

absl::Status Distributor::AddTracepoint(int id, const std::string& system, const std::string& event,
                                        const std::string& format) {
  if (converter_.Knows(static_cast<std::uint16_t>(id))) return absl::OkStatus();
  RETURN_IF_ERROR(converter_.AddTracepoint(id, system, event, format));
  const auto index = static_cast<std::size_t>(id);
  if (index >= tracepoints_.size()) tracepoints_.resize(index + 1);
  Tracepoint& tracepoint = tracepoints_[index];
  tracepoint = Tracepoint();
  tracepoint.was_known = true;
  tracepoint.is_kernels = system != Selector::kUserEventsSystem;
  tracepoint.name = absl::StrCat(system, ":", event);
  changed_ = true;
  return absl::OkStatus();
}

void Distributor::AddUniversalEvent(int id, const std::string& name) {
  converter_.AddUniversalEvent(id, name);
  const auto index = static_cast<std::size_t>(id);
  if (index >= tracepoints_.size()) tracepoints_.resize(index + 1);
  Tracepoint& tracepoint = tracepoints_[index];
  tracepoint = Tracepoint();
  tracepoint.was_known = true;
  tracepoint.is_tracepoint = false;
  tracepoint.name =
      absl::StrCat(std::string(nettrace::internal::traceevent::kUniversalEvents), ":", name);
  changed_ = true;
}

void Distributor::RemoveTracepoint(int id) {
  At(id).sessions.clear();
  converter_.RemoveTracepoint(id);
  if (id >= kFirstRingTracepoint) free_ring_tracepoints_.push_back(id);
  changed_ = true;
}

void Distributor::Give(int id, SessionWriter* session) {
  std::vector<SessionWriter*>& sessions = At(id).sessions;
  if (std::find(sessions.begin(), sessions.end(), session) != sessions.end()) return;
  sessions.push_back(session);
  if (At(id).is_tracepoint) session->AddTracepoint();
  changed_ = true;
}

const std::vector<SessionWriter*>& Distributor::FindSessions(int id) const {
  return tracepoints_[static_cast<std::size_t>(id)].sessions;
}

std::vector<int> Distributor::FindTracepoints(const SessionWriter* session) const {
  std::vector<int> ids;
  for (std::size_t id = 0; id < tracepoints_.size(); ++id) {
    const std::vector<SessionWriter*>& sessions = tracepoints_[id].sessions;
    if (std::find(sessions.begin(), sessions.end(), session) != sessions.end()) {
      ids.push_back(static_cast<int>(id));
    }
  }
  return ids;
}

void Distributor::UpdateWantsAll() {
  if (!changed_) return;
  changed_ = false;
  for (const Subscriber& subscriber : subscribers_) {
    bool all = true;
    for (std::size_t id = 0; losses_are_counted_ && all && id < tracepoints_.size(); ++id) {
      const std::vector<SessionWriter*>& sessions = tracepoints_[id].sessions;
      all = !converter_.Knows(static_cast<std::uint16_t>(id)) ||
            std::find(sessions.begin(), sessions.end(), subscriber.session) != sessions.end();
    }
    subscriber.session->SetWantsAll(all);
  }
}

void Distributor::CountUnknown(std::size_t cpu) {
  for (const Subscriber& subscriber : subscribers_) subscriber.session->AddLost(cpu, 1);
}

void Distributor::WriteToActive(const std::vector<SessionWriter*>& sessions, std::size_t cpu,
                                std::uint16_t id, const SampleRecord& sample,
                                std::uint64_t timestamp) {
  const ConvertedEvent* event = nullptr;
  for (SessionWriter* session : sessions) {
    if (session->is_suspended()) {
      session->Drop(cpu, timestamp);
      continue;
    }
    if (event == nullptr) event = &converter_.Convert(id, sample, timestamp);
    session->Write(cpu, *event);
  }
}

void Distributor::FollowSinks(std::uint64_t drained) {
  any_suspended_ = false;
  for (const Subscriber& subscriber : subscribers_) {
    subscriber.session->FollowSink(drained);
    any_suspended_ = any_suspended_ || subscriber.session->is_suspended();
  }
}

void Distributor::WriteProcesses(SessionWriter* session, std::uint64_t timestamp) {
  for (const ProcessEvent& event : tasks_->processes().Alive(timestamp)) {
    session->WriteProcessEvent(event, tasks_->Find(event.pid, event.pid, event.timestamp));
  }
}

void Distributor::LostInPlace(std::size_t cpu, std::uint64_t total) {
  UpdateWantsAll();
  cpus_[cpu].reported = total;
  for (const Subscriber& subscriber : subscribers_) subscriber.session->LostInPlace(cpu, total);
}

void Distributor::CountLost(std::size_t cpu, int id, std::uint64_t count,
                            const CountingTime& time) {
  cpus_[cpu].lost += count;
  const Tracepoint& tracepoint = tracepoints_[static_cast<std::size_t>(id)];
  for (SessionWriter* session : tracepoint.sessions) {
    session->CountLost(cpu, tracepoint.name, count, time);
  }
}

void Distributor::SettleLosses() {
  UpdateWantsAll();
  for (const Subscriber& subscriber : subscribers_) {
    for (std::size_t cpu = 0; cpu < cpus_.size() && !cpus_[cpu].is_ring_thread; ++cpu) {
      subscriber.session->SettleLosses(cpu, cpus_[cpu].lost);
    }
  }
}

void Distributor::WriteProcessEvents(std::uint64_t limit) {
  for (const ProcessEvent& event : tasks_->processes().Take(limit)) {
    // At the time of an exit, the pid may already belong to another process. The thread is
    // therefore looked up 1 ns earlier.
    const bool exited = event.kind == ProcessEvent::Kind::kExited;
    const Slot thread = tasks_->Find(event.pid, event.pid, event.timestamp - (exited ? 1 : 0));
    for (const Subscriber& subscriber : subscribers_) {
      if (event.number < subscriber.first_process_event) continue;
      subscriber.session->WriteProcessEvent(event, thread);
    }
  }
}

}  // namespace collector
