#include "tools/nettraced/session_stats.h"

#include <chrono>
#include <utility>

namespace nettraced {

void SessionStats::UpdateIfDue(absl::Duration now) {
  if (session_ == nullptr) return;
  const bool is_urgent = session_->status().ok() != status().ok();
  if (!is_urgent && now - updated_ < kUpdateEvery) return;
  updated_ = now;
  const bool is_news = Take();
  {
    const std::lock_guard lock(mutex_);
    if (samples_.size() == kSamples) samples_.pop_front();
    samples_.push_back({now, summary_.events, summary_.bytes});
  }
  if (is_news) notice_();
}

void SessionStats::UpdateNow(std::uint64_t ticket) {
  const bool is_news = session_ != nullptr && Take();
  {
    const std::lock_guard lock(mutex_);
    seen_ticket_ = ticket;
    seen_.notify_all();
  }
  if (is_news) notice_();
}

bool SessionStats::Take() {
  collector::SessionSummary summary = session_->Summarize();
  const bool suspended = session_->is_suspended();
  const std::lock_guard lock(mutex_);
  const bool is_news = summary.lost != summary_.lost ||
                       summary.warnings.size() != summary_.warnings.size() ||
                       suspended != suspended_ || summary.status != summary_.status;
  summary_ = std::move(summary);
  suspended_ = suspended;
  return is_news;
}

std::uint64_t SessionStats::NewTicket() {
  const std::lock_guard lock(mutex_);
  return ++last_ticket_;
}

void SessionStats::WaitFor(std::uint64_t ticket, absl::Duration limit) {
  std::unique_lock lock(mutex_);
  seen_.wait_for(lock, absl::ToChronoNanoseconds(limit),
                 [this, ticket] { return seen_ticket_ >= ticket; });
}

absl::Status SessionStats::status() const {
  const std::lock_guard lock(mutex_);
  return summary_.status;
}

bool SessionStats::is_suspended() const {
  const std::lock_guard lock(mutex_);
  return suspended_;
}

std::uint64_t SessionStats::lost() const {
  const std::lock_guard lock(mutex_);
  return summary_.lost;
}

std::vector<std::string> SessionStats::TakeWarnings() {
  const std::lock_guard lock(mutex_);
  const std::vector<std::string>& all = summary_.warnings;
  std::vector<std::string> rest(all.begin() + static_cast<std::ptrdiff_t>(warnings_taken_),
                                all.end());
  warnings_taken_ = all.size();
  return rest;
}

void SessionStats::FillIn(control::SessionStatus* status) const {
  const std::lock_guard lock(mutex_);
  status->events = summary_.events;
  status->lost = summary_.lost;
  status->dropped = summary_.dropped;
  status->undecoded = summary_.undecoded;
  status->tracepoints = summary_.tracepoints;
  status->losses = summary_.account.losses();
  status->unmatched = summary_.unmatched;
  status->left_out = summary_.skipped_tracepoints.reasons();
  status->warnings = summary_.warnings;
  if (samples_.size() < 2) return;
  const double seconds = absl::ToDoubleSeconds(samples_.back().time - samples_.front().time);
  if (seconds <= 0) return;
  const auto rate = [seconds](std::uint64_t last, std::uint64_t first) {
    return static_cast<double>(last - first) / seconds;
  };
  status->events_per_second = rate(samples_.back().events, samples_.front().events);
  status->bytes_per_second = rate(samples_.back().bytes, samples_.front().bytes);
}

}  // namespace nettraced
