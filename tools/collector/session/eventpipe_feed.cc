#include "tools/collector/session/eventpipe_feed.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nettrace/format.h"
#include "tools/collector/perf/session_clock.h"
#include "tools/trace/thread_keys.h"

namespace collector {
namespace {

using Step = EventPipeStream::Step;

}  // namespace

EventPipeFeed::EventPipeFeed(EventPipeFeedOptions options, TaskTracker* tasks,
                             Distributor* distributor)
    : options_(std::move(options)),
      tasks_(tasks),
      distributor_(distributor),
      id_(distributor->AddDotnetStreams()),
      start_(SessionClockNow()) {
  distributor_->Give(id_, options_.session);
}

EventPipeFeed::~EventPipeFeed() {
  Abandon("the recording ended");
  distributor_->RemoveTracepoint(id_);
}

void EventPipeFeed::Receive() {
  for (EventPipeConnection& connection : options_.inbox->Take()) {
    const auto pid = static_cast<std::uint32_t>(connection.process.pid);
    if (options_.reads_processes) tasks_->Announce(pid, SessionClockNow());
    auto& stream =
        streams_.emplace_back(std::make_unique<Stream>(std::move(connection), next_stream_++));
    stream->name = absl::StrCat("dotnet:", pid);
  }
  const std::uint64_t now = SessionClockNow();
  for (const auto& stream : streams_) {
    stream->stream.Allow(kBytesAtOnce);
    Read(stream.get(), now);
  }
}

std::size_t EventPipeFeed::MaxWaiting() const {
  const std::size_t sharing = std::max<std::size_t>(streams_.size() * feeds_, 1);
  return std::min(kMaxWaitingOfStream, kMaxWaiting / sharing);
}

void EventPipeFeed::Read(Stream* stream, std::uint64_t now) {
  const std::size_t max = MaxWaiting();
  while (!stream->has_ended && stream->waiting < max) {
    switch (stream->stream.Next()) {
      case Step::kEvent:
        ReadEvent(stream, now);
        break;
      case Step::kSequencePoint:
        ReadLosses(stream, now);
        break;
      case Step::kWait:
        return;
      case Step::kEnd:
        stream->has_ended = true;
        break;
    }
  }
}

void EventPipeFeed::ReadEvent(Stream* stream, std::uint64_t now) {
  const nettrace::Event& event = stream->stream.reader().event();
  Waiting waiting;
  waiting.stream = stream;
  waiting.tid = ToNumber(event.thread_index);
  waiting.capture_tid = ToNumber(event.capture_thread_index);
  waiting.lost = event.lost_before;
  const auto [last, is_new] = stream->last_times.try_emplace(waiting.capture_tid, start_);
  // The runtime numbers the events of a thread from 1 in each stream, so a first number above 1
  // shows a loss. The reader does not report this loss, because it cannot know that it reads the
  // stream from its start.
  if (is_new) waiting.lost = event.sequence_number - 1;
  last->second = std::min(std::max(event.timestamp, last->second), now);
  waiting.timestamp = last->second;
  if (IsWanted(stream, event.metadata)) {
    waiting.processor = event.processor;
    waiting.kind = ToNumber(event.metadata_id);
    waiting.metadata = event.metadata;
    waiting.labels = *event.labels;
    waiting.payload.assign(event.payload.begin(), event.payload.end());
  }
  if (waiting.metadata != nullptr || waiting.lost != 0) Add(std::move(waiting));
}

void EventPipeFeed::ReadLosses(Stream* stream, std::uint64_t now) {
  const nettrace::SequencePoint& point = stream->stream.reader().sequence_point();
  for (const auto& loss : point.losses) {
    Waiting waiting;
    waiting.stream = stream;
    waiting.tid = waiting.capture_tid = ToNumber(loss.thread_index);
    waiting.lost = loss.count;
    std::uint64_t& last = stream->last_times.try_emplace(waiting.capture_tid, start_).first->second;
    last = waiting.timestamp = std::min(std::max(point.timestamp, last), now);
    Add(std::move(waiting));
  }
}

void EventPipeFeed::Add(Waiting waiting) {
  waiting.order = order_++;
  waiting.stream->waiting += waiting.bytes();
  waiting_.push_back(std::move(waiting));
  std::push_heap(waiting_.begin(), waiting_.end());
}

bool EventPipeFeed::IsWanted(Stream* stream, const nettrace::EventMetadata* metadata) const {
  if (metadata != stream->last_metadata) {
    const std::vector<std::string>& providers = options_.inbox->providers();
    stream->last_metadata = metadata;
    stream->is_last_wanted =
        std::any_of(providers.begin(), providers.end(), [metadata](const std::string& name) {
          return absl::EqualsIgnoreCase(name, metadata->provider);
        });
  }
  return stream->is_last_wanted;
}

std::uint64_t EventPipeFeed::Drain(std::uint64_t limit, bool is_bounded) {
  std::uint64_t passed = limit;
  for (std::size_t count = 0; !waiting_.empty() && waiting_.front().timestamp <= limit; ++count) {
    if (is_bounded && count >= kEventsAtOnce) {
      passed = waiting_.front().timestamp - 1;
      break;
    }
    std::pop_heap(waiting_.begin(), waiting_.end());
    Pass(waiting_.back());
    waiting_.back().stream->waiting -= waiting_.back().bytes();
    waiting_.pop_back();
  }
  RemoveEnded();
  return passed;
}

void EventPipeFeed::Pass(const Waiting& waiting) {
  Stream* const stream = waiting.stream;
  const Slot identity = FindThread(stream, waiting.tid).identity;
  Thread& thread = FindThread(stream, waiting.capture_tid);
  if (waiting.lost != 0) {
    distributor_->LoseOfStream(id_, thread.index, stream->name, waiting.lost, waiting.timestamp,
                               thread.number);
    thread.number += waiting.lost;
  }
  if (waiting.metadata == nullptr) return;
  options_.session->SetHasEventsOfStreams();
  SampleRecord sample;
  sample.pid = static_cast<std::uint32_t>(stream->stream.process().pid);
  sample.tid = static_cast<std::uint32_t>(waiting.tid);
  sample.raw = waiting.payload;
  const DotnetStreamEvent of_stream = {stream->number, waiting.kind, waiting.metadata,
                                       &waiting.labels};
  const std::uint32_t processor =
      waiting.processor <= options_.last_cpu ? waiting.processor : nettrace::kNoProcessor;
  distributor_->WriteOfRing(
      {thread.index, id_, identity, processor, thread.number++, {}, &of_stream}, sample,
      waiting.timestamp);
}

EventPipeFeed::Thread& EventPipeFeed::FindThread(Stream* stream, std::uint64_t tid) {
  const auto found = stream->threads.find(tid);
  if (found != stream->threads.end()) {
    found->second.used = ++stream->uses;
    return found->second;
  }
  if (stream->threads.size() >= kMaxThreads) {
    const auto oldest = std::min_element(
        stream->threads.begin(), stream->threads.end(),
        [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    RemoveThread(&oldest->second);
    stream->threads.erase(oldest);
  }
  Thread& thread = stream->threads[tid];
  thread.used = ++stream->uses;
  const auto pid = static_cast<std::uint32_t>(stream->stream.process().pid);
  // The thread may have been created, and may even have ended, since the kernel's records were last
  // applied.
  options_.update_tasks();
  thread.identity =
      tasks_->AddClaimed(pid, static_cast<std::uint32_t>(tid), trace::kEventPipeTransport);
  thread.index = distributor_->AddRingThread(absl::StrCat(".NET thread ", pid, "/", tid));
  return thread;
}

void EventPipeFeed::RemoveThread(Thread* thread) {
  distributor_->RemoveRingThread(thread->index);
  tasks_->ReleaseClaimed(&thread->identity);
}

void EventPipeFeed::RemoveEnded() {
  std::erase_if(streams_, [this](const auto& stream) {
    if (!stream->has_ended || stream->waiting != 0) return false;
    Remove(stream.get(), stream->stream.reason(), stream->stream.is_cut());
    return true;
  });
}

void EventPipeFeed::Remove(Stream* stream, const std::string& reason, bool is_cut) {
  for (auto& [tid, thread] : stream->threads) RemoveThread(&thread);
  stream->threads.clear();
  const ProcessFacts& process = stream->stream.process();
  options_.inbox->AddEnd({process.pid, process.start, reason, is_cut, stream->stream.was_asked()});
}

bool EventPipeFeed::IsWorthDraining() const {
  const std::size_t max = MaxWaiting();
  return std::any_of(streams_.begin(), streams_.end(), [max](const auto& stream) {
    return stream->stream.has_more() && stream->waiting < max;
  });
}

bool EventPipeFeed::RequestStop() {
  bool are_asked = true;
  for (const auto& stream : streams_) are_asked = stream->stream.RequestStop() && are_asked;
  return are_asked;
}

void EventPipeFeed::Abandon(const std::string& reason) {
  Receive();
  Drain(SessionClockNow(), /*is_bounded=*/false);
  for (const auto& stream : streams_) Remove(stream.get(), reason, /*is_cut=*/true);
  streams_.clear();
}

}  // namespace collector
