// Checks the events of ring_writer.cc in a .nettrace file: the numbers and values of each thread,
// and that each gap between its numbers is a loss that the file reports at this place.
//   ring_checker FILE
// Prints a JSON object on one line: {"complete", "events", "lost", "findings": [text, ...],
// "threads": [[pid, tid, service, thread, shown, lost, next], ...]}.
//
// `findings` has at most 20 texts. A thread's `next` is the number after its last event and the
// losses after it. `service` and `thread` are null if all events of the thread are lost.
//
// For each thread, these must be true:
// - The number of an event is that of the previous event, plus 1, plus the losses that the file
//   implies between the two, by gaps in the sequence numbers.
// - Times do not decrease.
// - The EventsLost events of the account state the same losses, in the same order. Each gap of an
//   EventsLost event begins at From or later, and before Until. Until is not after the event that
//   follows the last of these gaps.
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "nettrace/payload.h"
#include "nettrace/reader.h"
#include "nettrace/source.h"
#include "tools/trace/account.h"

namespace {

constexpr std::size_t kMaxFindings = 20;
constexpr std::string_view kDigits = "0123456789012345678901234567890123456789";
constexpr std::string_view kCaptureThread = "Ring of ";  // its name, before "PID/TID"
constexpr std::string_view kLosses = "ring:";            // in the account, before "PID/TID"

// Reads the fields of an event, in their order.
class FieldVisitor : public nettrace::PayloadVisitor {
 public:
  std::uint64_t service() const { return numbers_[0]; }
  std::uint64_t thread() const { return numbers_[1]; }
  std::uint64_t number() const { return numbers_[2]; }
  // Returns whether the event has the four fields, and the text follows from the others.
  bool IsRight() const {
    const std::string_view text = kDigits.substr(0, (number() * 7 + thread()) % kDigits.size());
    return count_ == 3 && texts_ == 1 && text_size_ == text.size() && is_text_;
  }

  void OnUInt(std::uint64_t value) override {
    if (count_ < 3) numbers_[count_] = value;
    ++count_;
  }
  void OnUtf8(std::span<const std::byte> units) override {
    ++texts_;
    text_size_ = units.size();
    is_text_ = units.size() < kDigits.size() &&
               std::memcmp(units.data(), kDigits.data(), units.size()) == 0;
  }

 private:
  std::uint64_t numbers_[3] = {};
  std::size_t count_ = 0;
  std::size_t texts_ = 0;
  std::size_t text_size_ = 0;
  bool is_text_ = false;
};

// Losses between two events of a thread. Times are ns since 1970.
struct Gap {
  // Time of the event before the gap; none if the thread has no event before it.
  std::optional<std::int64_t> previous;
  // Time of the event after the gap; none if the gap is followed by an event of the account, a
  // sequence point, or the removal of the thread.
  std::optional<std::int64_t> next;
  std::uint64_t count = 0;
};

struct ThreadState {
  std::string ids;                                                // "PID/TID"
  std::optional<std::pair<std::uint64_t, std::uint64_t>> writer;  // service and thread
  std::uint64_t shown = 0;
  std::uint64_t lost = 0;
  std::uint64_t next = 0;
  std::uint64_t timestamp = 0;  // of the last row, in ticks
};

class RingChecker {
 public:
  explicit RingChecker(nettrace::Reader* reader) : reader_(reader) {}

  void Run() {
    using Step = nettrace::Reader::Step;
    for (Step step = reader_->Next(); step != Step::kEnd; step = reader_->Next()) {
      if (step == Step::kEvent) {
        Add(reader_->event());
      } else if (step == Step::kSequencePoint) {
        for (const auto& loss : reader_->sequence_point().losses) {
          if (ThreadState* const state = Find(loss.thread_index, *loss.thread)) {
            Lose(state, loss.count, std::nullopt);
          }
        }
      } else {
        const nettrace::RemovedThread& removed = reader_->removed_thread();
        ThreadState* const state =
            removed.lost != 0 ? Find(removed.thread_index, *removed.thread) : nullptr;
        if (state != nullptr) Lose(state, removed.lost, std::nullopt);
        const auto found = states_.find(removed.thread_index);
        if (found == states_.end()) continue;
        ended_.push_back(std::move(found->second));
        states_.erase(found);
      }
    }
    for (auto& [index, state] : states_) ended_.push_back(std::move(state));
    CheckAccount();
  }

  void Print() const {
    const nettrace::Reader::Stats& stats = reader_->stats();
    std::uint64_t events = 0;
    std::uint64_t lost = 0;
    for (const ThreadState& state : ended_) {
      events += state.shown;
      lost += state.lost;
    }
    std::printf("{\"complete\":%s,\"events\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"findings\":[",
                stats.complete ? "true" : "false", events, lost);
    const char* separator = "";
    for (const std::string& finding : findings_) {
      std::printf("%s\"%s\"", std::exchange(separator, ","), finding.c_str());
    }
    std::printf("],\"threads\":[");
    separator = "";
    for (const ThreadState& state : ended_) {
      const std::size_t slash = state.ids.find('/');
      std::printf("%s[%s,%s,", std::exchange(separator, ","), state.ids.substr(0, slash).c_str(),
                  state.ids.substr(slash + 1).c_str());
      if (state.writer) {
        std::printf("%" PRIu64 ",%" PRIu64, state.writer->first, state.writer->second);
      } else {
        std::printf("null,null");
      }
      std::printf(",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", state.shown, state.lost, state.next);
    }
    std::printf("]}\n");
  }

 private:
  template <typename... Parts>
  void Report(const ThreadState& state, const Parts&... parts) {
    if (findings_.size() < kMaxFindings) {
      findings_.push_back(absl::StrCat("thread ", state.ids, ": ", parts...));
    }
  }

  std::int64_t TimeOf(std::uint64_t ticks) const {
    return absl::ToUnixNanos(reader_->TimeOf(ticks));
  }

  // Returns the state of a capture thread; null if it is not the ring of a thread.
  ThreadState* Find(nettrace::ThreadIndex index, const nettrace::ThreadInfo& info) {
    const auto found = states_.find(index);
    if (found != states_.end()) return &found->second;
    if (!info.name || !info.name->starts_with(kCaptureThread)) return nullptr;
    ThreadState& state = states_[index];
    state.ids = info.name->substr(kCaptureThread.size());
    return &state;
  }

  void Add(const nettrace::Event& event) {
    ThreadState* const state = Find(event.capture_thread_index, *event.capture_thread);
    const bool is_account = trace::IsAccount(event);
    if (state != nullptr) {
      // If an account event follows the losses, the time after the gap is unknown: the event may
      // have the time of the last event before the losses.
      if (event.lost_before != 0) {
        Lose(state, event.lost_before, is_account ? std::nullopt : std::optional(event.timestamp));
      }
      if (event.timestamp < state->timestamp) {
        Report(*state, "number ", state->next, " is earlier than the event before it");
      }
      state->timestamp = event.timestamp;
    }
    if (is_account) {
      std::optional<trace::AccountEvent> account = trace::ParseAccount(event);
      if (account && account->kind == trace::AccountEvent::Kind::kEventsLost) {
        account_.push_back(*std::move(account));
      }
      return;
    }
    if (state == nullptr) return;
    FieldVisitor fields;
    const absl::Status status =
        nettrace::VisitPayload(event.metadata->fields, event.payload, &fields);
    if (!status.ok() || !fields.IsRight() || event.metadata->name != "Number") {
      return Report(*state, "the event after number ", state->next, " has wrong values");
    }
    const std::pair writer(fields.service(), fields.thread());
    if (state->writer.value_or(writer) != writer) {
      Report(*state, "number ", fields.number(), " is of another thread");
    }
    state->writer = writer;
    const std::string ids = absl::StrCat(event.thread->process_id.value_or(0), "/",
                                         event.thread->thread_id.value_or(0));
    if (ids != state->ids) Report(*state, "number ", fields.number(), " is shown for ", ids);
    if (fields.number() != state->next) {
      Report(*state, "number ", fields.number(), " in place of ", state->next);
    }
    state->next = fields.number() + 1;
    ++state->shown;
  }

  // Adds losses after the last event of the thread. `ticks` is the time of the next event; nullopt
  // if an event of the account, a sequence point or the removal of the thread comes before it.
  void Lose(ThreadState* state, std::uint64_t count, std::optional<std::uint64_t> ticks) {
    state->next += count;
    state->lost += count;
    Gap gap;
    if (state->shown != 0) gap.previous = TimeOf(state->timestamp);
    if (ticks) gap.next = TimeOf(*ticks);
    gap.count = count;
    gaps_[state->ids].push_back(gap);
  }

  // Compares the account with the gaps.
  void CheckAccount() {
    for (const trace::AccountEvent& event : account_) {
      ThreadState named;
      named.ids = event.tracepoint;
      if (!event.tracepoint.starts_with(kLosses)) {
        Report(named, event.count, " losses of EventsLost are not of a ring");
        continue;
      }
      named.ids = event.tracepoint.substr(kLosses.size());
      std::deque<Gap>& gaps = gaps_[named.ids];
      std::uint64_t left = event.count;
      const auto since = static_cast<std::int64_t>(event.since);
      const auto until = static_cast<std::int64_t>(event.until);
      while (left != 0 && !gaps.empty() && gaps.front().count <= left) {
        const Gap gap = gaps.front();
        gaps.pop_front();
        left -= gap.count;
        // Gaps before the last one are followed by an event that is not after Until. The event
        // after the last gap may be later, because the collector may notice the losses before the
        // service writes that event.
        const bool is_before =
            left != 0 ? !gap.next || *gap.next <= until : !gap.next || until <= *gap.next;
        const std::int64_t previous = gap.previous.value_or(since);
        if (since > previous || previous > until || !is_before) {
          Report(named, gap.count, " losses after ", previous, " and before ", gap.next.value_or(0),
                 " are in an EventsLost event from ", since, " until ", until);
        }
      }
      if (left != 0) Report(named, "EventsLost states ", left, " more losses than the gaps");
    }
    for (const auto& [ids, gaps] : gaps_) {
      if (gaps.empty()) continue;
      ThreadState named;
      named.ids = ids;
      Report(named, gaps.size(), " gaps have no EventsLost event");
    }
  }

  nettrace::Reader* const reader_;
  std::map<nettrace::ThreadIndex, ThreadState> states_;
  std::vector<ThreadState> ended_;
  std::vector<trace::AccountEvent> account_;
  std::map<std::string, std::deque<Gap>> gaps_;  // by the ids of the thread
  std::vector<std::string> findings_;
};

absl::Status CheckFile(const char* path) {
  auto source = nettrace::FdSource::Open(path);
  if (!source.ok()) return source.status();
  auto reader = nettrace::Reader::Open(*std::move(source));
  if (!reader.ok()) return reader.status();
  RingChecker checker(reader->get());
  checker.Run();
  if (!(*reader)->status().ok()) return (*reader)->status();
  checker.Print();
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: ring_checker FILE\n", stderr);
    return 2;
  }
  const absl::Status status = CheckFile(argv[1]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "ring_checker: %s: %s\n", argv[1], status.ToString().c_str());
  return 1;
}
