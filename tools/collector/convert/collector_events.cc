#include "tools/collector/convert/collector_events.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "nettrace/format.h"
#include "tools/base/status_macros.h"

namespace collector {

using trace::AccountEvent;

void CollectorEvents::Open(nettrace::Writer* writer, const nettrace::TraceInfo& trace) {
  writer_ = writer;
  clock_offset_ = absl::ToUnixNanos(trace.sync_time) - trace.sync_ticks;
}

std::uint64_t CollectorEvents::UnixTime(std::uint64_t ticks) const {
  return ticks == 0 ? 0 : ticks + static_cast<std::uint64_t>(clock_offset_);
}

void CollectorEvents::EventsLost(int cpu, std::string_view tracepoint, std::uint64_t count,
                                 std::uint64_t from, std::uint64_t until) {
  AccountEvent event;
  event.kind = AccountEvent::Kind::kEventsLost;
  event.cpu = static_cast<std::uint32_t>(cpu);
  event.count = count;
  event.tracepoint = std::string(tracepoint);
  event.since = from;
  event.until = until;
  if (losses_waiting_ >= kMaxLosses) {
    event.tracepoint.clear();
    const auto same = std::find_if(waiting_.rbegin(), waiting_.rend(), [&](const Waiting& other) {
      return other.event.kind == event.kind && other.event.cpu == event.cpu &&
             other.event.tracepoint.empty();
    });
    if (same != waiting_.rend()) {
      same->event.count += count;
      same->event.since = std::min(same->event.since, event.since);
      same->event.until = same->time = std::max(same->event.until, event.until);
      return;
    }
  }
  ++losses_waiting_;
  waiting_.push_back({until, std::move(event)});
}

void CollectorEvents::CpuChanged(int cpu, bool online, std::uint64_t since, std::uint64_t until,
                                 std::string_view error) {
  waiting_.push_back(
      {std::max(since, until),
       {.kind = online ? AccountEvent::Kind::kCpuOnline : AccountEvent::Kind::kCpuOffline,
        .cpu = static_cast<std::uint32_t>(cpu),
        .reason = std::string(error),
        .since = since,
        .until = until}});
}

void CollectorEvents::TargetCame(std::uint64_t since, std::uint64_t until, std::string_view error) {
  waiting_.push_back({std::max(since, until),
                      {.kind = AccountEvent::Kind::kTargetCame,
                       .reason = std::string(error),
                       .since = since,
                       .until = until}});
}

void CollectorEvents::SamplesThrottled(int cpu, std::uint64_t count, std::uint64_t from,
                                       std::uint64_t until) {
  waiting_.push_back({until,
                      {.kind = AccountEvent::Kind::kSamplesThrottled,
                       .cpu = static_cast<std::uint32_t>(cpu),
                       .count = count,
                       .since = from,
                       .until = until}});
}

void CollectorEvents::StacksSkipped(std::uint64_t count, std::uint64_t from, std::uint64_t until) {
  waiting_.push_back({until,
                      {.kind = AccountEvent::Kind::kStacksSkipped,
                       .count = count,
                       .since = from,
                       .until = until}});
}

void CollectorEvents::ServiceUnknown(std::string_view service, std::uint64_t since,
                                     std::uint64_t until, std::string_view reason) {
  AccountEvent event;
  event.kind = AccountEvent::Kind::kServiceUnknown;
  event.tracepoint = std::string(service);
  event.reason = std::string(reason);
  event.since = since;
  event.until = until;
  if (unknown_services_waiting_ >= kMaxUnknownServices) {
    event.tracepoint.clear();
    const auto same = std::find_if(waiting_.rbegin(), waiting_.rend(), [&](const Waiting& other) {
      return other.event.kind == event.kind && other.event.tracepoint.empty();
    });
    if (same != waiting_.rend()) {
      same->event.since = std::min(same->event.since, since);
      same->event.until = same->time = std::max(same->event.until, until);
      return;
    }
  }
  ++unknown_services_waiting_;
  waiting_.push_back({until, std::move(event)});
}

void CollectorEvents::TracepointLeftOut(std::string_view tracepoint, std::string_view reason,
                                        std::uint64_t time) {
  if (left_out_ >= kMaxLeftOut) return;
  ++left_out_;
  waiting_.push_back({time,
                      {.kind = AccountEvent::Kind::kTracepointLeftOut,
                       .tracepoint = std::string(tracepoint),
                       .reason = std::string(reason)}});
}

void CollectorEvents::TracepointMet(std::string_view tracepoint, std::uint64_t time) {
  if (met_ >= kMaxMet) return;
  ++met_;
  waiting_.push_back({time,
                      {.kind = AccountEvent::Kind::kTracepointMet,
                       .tracepoint = std::string(tracepoint),
                       .until = time}});
}

void CollectorEvents::EventsDropped(int cpu, std::uint64_t count, std::uint64_t from,
                                    std::uint64_t until, std::string_view reason) {
  waiting_.push_back({until,
                      {.kind = AccountEvent::Kind::kEventsDropped,
                       .cpu = static_cast<std::uint32_t>(cpu),
                       .count = count,
                       .reason = std::string(reason),
                       .since = from,
                       .until = until}});
}

void CollectorEvents::SectionBegan(int cpu, std::uint64_t section, std::uint64_t events,
                                   std::uint64_t lost, std::uint64_t time) {
  waiting_.push_back({time,
                      {.kind = AccountEvent::Kind::kSectionBegan,
                       .cpu = static_cast<std::uint32_t>(cpu),
                       .count = events,
                       .section = section,
                       .lost = lost}});
}

absl::Status CollectorEvents::Write(std::uint64_t limit) {
  std::stable_sort(waiting_.begin(), waiting_.end(),
                   [](const Waiting& a, const Waiting& b) { return a.time < b.time; });
  losses_waiting_ = 0;
  unknown_services_waiting_ = 0;
  for (Waiting& waiting : std::exchange(waiting_, {})) {
    absl::StatusOr<nettrace::MetadataId> row = MetadataRow(waiting.event.kind);
    if (absl::IsResourceExhausted(row.status())) {
      // The file has no metadata row or no event id of this provider left. The event waits until
      // metadata is flushed.
      waiting_.push_back(std::move(waiting));
      continue;
    }
    if (!row.ok()) return row.status();
    RETURN_IF_ERROR(WriteOne(*row, std::move(waiting), limit));
  }
  earliest_ = std::max(earliest_, limit);
  return absl::OkStatus();
}

absl::StatusOr<nettrace::MetadataId> CollectorEvents::MetadataRow(AccountEvent::Kind kind) {
  nettrace::MetadataId& row = rows_[static_cast<std::size_t>(kind)];
  if (row == nettrace::kNoMetadata) {
    ASSIGN_OR_RETURN(row, AddRow(trace::AccountMetadata(kind)));
  }
  return row;
}

absl::StatusOr<nettrace::MetadataId> CollectorEvents::AddRow(nettrace::EventMetadata metadata) {
  // Chooses another id if another row of this provider already has the id.
  const std::optional<std::uint32_t> id = writer_->ChooseEventId(metadata);
  if (!id)
    return absl::ResourceExhaustedError(
        "no event id of the provider is left; a sequence point must flush the metadata rows first");
  metadata.event_id = *id;
  return writer_->AddMetadata(metadata);
}

absl::Status CollectorEvents::WriteRingPositions(const trace::RingRecord& record) {
  if (positions_row_ == nettrace::kNoMetadata) {
    const absl::StatusOr<nettrace::MetadataId> row = AddRow(trace::RingPositionsMetadata());
    if (absl::IsResourceExhausted(row.status())) return absl::OkStatus();
    if (!row.ok()) return row.status();
    positions_row_ = *row;
  }
  for (const std::vector<std::byte>& payload : trace::RingPositionsPayloads(record)) {
    RETURN_IF_ERROR(WritePayload(positions_row_, earliest_, payload));
  }
  return absl::OkStatus();
}

absl::Status CollectorEvents::WriteOne(nettrace::MetadataId metadata_id, Waiting waiting,
                                       std::uint64_t limit) {
  AccountEvent& event = waiting.event;
  event.since = UnixTime(event.since);
  event.until = UnixTime(event.until);
  ASSIGN_OR_RETURN(const std::vector<std::byte> payload, trace::AccountPayload(event));
  RETURN_IF_ERROR(
      WritePayload(metadata_id, std::max(std::min(waiting.time, limit), earliest_), payload));
  summary_.Add(event);
  return absl::OkStatus();
}

absl::Status CollectorEvents::WritePayload(nettrace::MetadataId metadata_id,
                                           std::uint64_t timestamp,
                                           std::span<const std::byte> payload) {
  if (capture_thread_ == nettrace::kNoThread) {
    nettrace::ThreadInfo info;
    info.name = "collector";
    ASSIGN_OR_RETURN(capture_thread_, writer_->AddThread(info));
    writer_->CountApart(capture_thread_);
  }
  nettrace::EventRow row;
  row.metadata_id = metadata_id;
  row.capture_thread = row.thread = capture_thread_;
  row.processor = nettrace::kNoProcessor;
  row.timestamp = earliest_ = timestamp;
  RETURN_IF_ERROR(writer_->WriteEvent(row, payload));
  ++written_;
  return absl::OkStatus();
}

}  // namespace collector
