#include "tools/collector/session/journal_feed.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nettrace/format.h"
#include "tools/collector/perf/session_clock.h"
#include "tools/trace/thread_keys.h"

namespace collector {

JournalFeed::JournalFeed(JournalFeedOptions options, TaskTracker* tasks, Distributor* distributor)
    : options_(std::move(options)),
      tasks_(tasks),
      distributor_(distributor),
      last_(options_.start) {
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    ids_[i] = *distributor_->AddRingTracepoint(absl::StrCat(kJournalProvider, "_L", i + 1, "K1"),
                                               /*is_counted=*/false);
    distributor_->Give(ids_[i], options_.session);
  }
  thread_.index = distributor_->AddRingThread("journal");
}

JournalFeed::~JournalFeed() {
  for (auto& [key, process] : processes_) tasks_->ReleaseClaimed(&process.identity);
  distributor_->RemoveRingThread(thread_.index);
  if (has_suppressing_) distributor_->RemoveRingThread(suppressing_.index);
  for (const int id : ids_) distributor_->RemoveTracepoint(id);
}

void JournalFeed::Receive() {
  if (waiting_.size() >= kMaxWaiting) return;
  for (JournalEntry& entry : options_.reader->Take()) {
    const std::uint64_t now = SessionClockNow();
    if (entry.timestamp < options_.start) continue;
    last_ = entry.timestamp = std::min(std::max(entry.timestamp, last_), now);
    waiting_.push_back(std::move(entry));
  }
}

std::uint64_t JournalFeed::Drain(std::uint64_t limit, bool is_bounded) {
  for (std::size_t count = 0; !waiting_.empty() && waiting_.front().timestamp <= limit; ++count) {
    if (is_bounded && count >= kEventsAtOnce) return waiting_.front().timestamp - 1;
    Pass(waiting_.front());
    waiting_.pop_front();
  }
  return limit;
}

void JournalFeed::Pass(const JournalEntry& entry) {
  options_.session->SetHasEventsOfStreams();
  if (entry.deleted != 0) Lose(&thread_, kDeletedEntries, entry.deleted, entry.timestamp);
  if (entry.suppressed != 0) {
    if (!has_suppressing_) {
      has_suppressing_ = true;
      suppressing_.index = distributor_->AddRingThread("journal, suppressed messages");
    }
    Lose(&suppressing_, kSuppressedMessages, entry.suppressed, entry.timestamp);
  }
  if (entry.level == 0) return;
  const Slot identity = FindProcess(entry);
  SampleRecord sample;
  sample.pid = sample.tid = entry.pid;
  sample.raw = entry.event;
  const int id = ids_[std::min<std::size_t>(entry.level, ids_.size()) - 1];
  distributor_->WriteOfRing({thread_.index, id, identity, nettrace::kNoProcessor, thread_.number++},
                            sample, entry.timestamp);
}

void JournalFeed::Lose(Thread* thread, std::string_view name, std::uint64_t count,
                       std::uint64_t until) {
  options_.session->LoseOfRing(thread->index, name, count, until, thread->number,
                               /*is_kept=*/false);
  thread->number += count;
}

Slot JournalFeed::FindProcess(const JournalEntry& entry) {
  const auto [found, is_new] = processes_.try_emplace({entry.pid, entry.command});
  if (is_new) {
    if (options_.reads_processes && entry.pid != 0) {
      tasks_->Announce(entry.pid, SessionClockNow());
    } else {
      // The process may have been created, and may even have ended, since the kernel's records were
      // last applied.
      options_.update_tasks();
    }
    found->second.identity =
        tasks_->AddReported(entry.pid, entry.command, trace::kJournalTransport);
  }
  found->second.used = ++uses_;
  const Slot identity = found->second.identity;
  if (processes_.size() > kMaxProcesses) {
    const auto oldest = std::min_element(
        processes_.begin(), processes_.end(),
        [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    tasks_->ReleaseClaimed(&oldest->second.identity);
    processes_.erase(oldest);
  }
  return identity;
}

bool JournalFeed::RequestStop() {
  options_.reader->RequestStop();
  return true;
}

void JournalFeed::Abandon(const std::string& reason) {
  Receive();
  Drain(SessionClockNow(), /*is_bounded=*/false);
  const JournalReport report = options_.reader->Report();
  const std::string why =
      report.reason.empty() && options_.reader->is_active() ? reason : report.reason;
  if (!why.empty()) {
    options_.session->LeaveOut("journal", absl::StrCat("entries of the journal: ", why));
  }
  if (report.other_boot != 0) {
    options_.session->LeaveOut(
        "journal:boot", absl::StrCat("entries of the journal from another boot, which have no "
                                     "time on the clock of this boot (number of entries: ",
                                     report.other_boot, ")"));
  }
  if (report.maybe_deleted != 0) {
    options_.session->LeaveOut(
        "journal:maybe",
        absl::StrCat(
            "entries of the journal that were deleted before they were read, and may have been of "
            "the selected units (number of entries: ",
            report.maybe_deleted, "); raise SystemMaxUse= and RuntimeMaxUse= in journald.conf"));
  }
}

}  // namespace collector
