#include "tools/collector/session/session.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/collector/base/status_util.h"

namespace collector {

Session::Session(SessionOptions options) : options_(std::move(options)) {
  options_.interval = std::max(options_.interval, absl::Milliseconds(1));
  matched_.resize(options_.selectors.size());
}

std::vector<std::string> Session::Unmatched() const {
  std::vector<std::string> unmatched;
  for (std::size_t i = 0; i < options_.selectors.size(); ++i) {
    if (!matched_[i]) unmatched.push_back(options_.selectors[i].text);
  }
  return unmatched;
}

SessionSummary Session::Summary() const {
  SessionSummary summary;
  summary.status = status_;
  summary.unmatched = Unmatched();
  summary.left_out = left_out_;
  const nettrace::Writer::Stats& stats = writer_->stats();
  summary.process_events = trace_->stats().process_events;
  summary.events = stats.events - summary.process_events;
  summary.lost = stats.lost;
  summary.undecoded = trace_->stats().undecoded;
  summary.late = trace_->stats().late;
  summary.bytes = stats.bytes;
  summary.threads = stats.threads;
  summary.sequence_points = stats.sequence_points;
  summary.events_written = stats.events_written;
  summary.events_missing = stats.events - stats.events_written + stats.events_dropped;
  return summary;
}

absl::Status Session::Open(const SinkFactory& make_sink, const nettrace::TraceInfo& info) {
  absl::StatusOr<std::unique_ptr<nettrace::Sink>> sink = make_sink();
  if (!sink.ok()) return sink.status();
  nettrace::WriterOptions options;
  // The labels of one round are bounded by the rings; the interval is closed at its end.
  options.max_labels = std::size_t{1} << 24;
  options.max_label_bytes = std::size_t{1} << 30;
  options.max_metadata = TraceWriter::kMaxMetadata;
  absl::StatusOr<std::unique_ptr<nettrace::Writer>> writer =
      nettrace::Writer::Create(*std::move(sink), info, options);
  if (!writer.ok()) return writer.status();
  writer_ = *std::move(writer);
  return absl::OkStatus();
}

void Session::Begin(std::uint64_t start, SampleConverter* converter, const TaskTracker* tasks) {
  trace_ = std::make_unique<TraceWriter>(writer_.get(), converter, tasks, start);
  first_ = start + 1;
  length_ = std::numeric_limits<std::uint64_t>::max() - start;
  StartInterval(start);
}

void Session::StartInterval(std::uint64_t timestamp) {
  interval_start_ = timestamp;
  interval_events_ = stats().events;
  interval_lost_ = stats().lost;
  interval_end_ =
      timestamp + static_cast<std::uint64_t>(absl::ToInt64Nanoseconds(options_.interval));
}

void Session::AddCpu(int number, std::uint64_t lost) {
  trace_->AddCpu(number);
  losses_.push_back({lost, 0});
}

void Session::EndAt(std::uint64_t end) {
  if (is_running()) length_ = std::max(end, first_) + 1 - first_;
}

void Session::WriteProcessEvent(const ProcessEvent& event, Slot thread) {
  if (is_running()) Check(trace_->WriteProcessEvent(event, thread));
}

void Session::LostInPlace(std::size_t cpu, std::uint64_t total) {
  Losses& losses = losses_[cpu];
  if (!wants_all_ || total <= losses.settled) return;
  AddLost(cpu, total - losses.settled);
  losses = {total, 0};
}

void Session::SettleLosses(std::size_t cpu, std::uint64_t total, bool finally) {
  Losses& losses = losses_[cpu];
  if (wants_all_ && !finally) return;
  if (wants_all_) {
    if (total > losses.settled) AddLost(cpu, total - losses.settled);
  } else if (losses.own != 0) {
    AddLost(cpu, losses.own);
  }
  losses = {std::max(total, losses.settled), 0};
}

void Session::AddLost(std::size_t cpu, std::uint64_t count) {
  if (is_running()) Check(trace_->AddLost(cpu, count));
}

void Session::EndInterval(std::uint64_t timestamp) {
  if (!is_running()) return;
  if (IsIntervalEmpty()) return StartInterval(timestamp);
  absl::Status status = trace_->WriteSequencePoint(timestamp);
  if (status.ok()) status = writer_->Flush();
  StartInterval(timestamp);
  Check(status);
}

void Session::Finish(std::uint64_t timestamp) {
  if (!is_running()) return;
  absl::Status status = trace_->WriteSequencePoint(std::max(timestamp, interval_start_ + 1));
  if (status.ok()) status = writer_->Finish();
  if (!status.ok()) return Fail(status);
  length_ = 0;
}

// Whatever it is told from here on, it writes nothing.
void Session::Fail(const absl::Status& status) {
  status_ = status;
  length_ = 0;
}

}  // namespace collector
