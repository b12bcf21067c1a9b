// Writes a trace for tests of `nettrace top`: services whose activities start and stop, on CPUs
// that lose events. Usage: write_activities FILE SEED ACTIVITIES
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "nettrace/sink.h"
#include "nettrace/writer.h"
#include "tools/trace/account.h"

namespace nettrace::testing {
namespace {

constexpr std::uint32_t kCpus = 4;
constexpr std::uint64_t kIntervalLength = 250'000'000;  // ticks of 1 ns

// Ends the program if a step failed: everything written here is valid.
void Must(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << "write_activities: " << status << "\n";
  std::exit(1);
}
template <typename T>
T Must(absl::StatusOr<T> value) {
  Must(value.status());
  return *std::move(value);
}

class Activities {
 public:
  Activities(const std::string& path, unsigned seed) : random_(seed) {
    TraceInfo info;
    info.sync_time = absl::FromUnixSeconds(1'795'000'000);
    info.sync_ticks = static_cast<std::int64_t>(now_);
    writer_ = Must(Writer::Create(Must(FdSink::Create(path)), info));
    for (std::uint32_t cpu = 0; cpu < kCpus; ++cpu) {
      cpus_.push_back(AddThread("CPU " + std::to_string(cpu), 0, 0));
    }
    for (std::uint64_t pid : {1200, 1300}) {
      for (std::uint64_t i = 0; i < 3; ++i) {
        threads_.push_back(AddThread(i == 0 ? "main" : "worker", pid, pid + i));
      }
    }
    for (const char* name : {"Request", "Query", "Save"}) {
      starts_.push_back(AddMetadata(name, 1));
      stops_.push_back(AddMetadata(std::string(name) + "Done", 2));
    }
    // `top` must show this name safely and in the right width: it has control characters, and
    // characters that are two columns wide.
    note_ = AddMetadata("Note \x1b[2J\xe6\x97\xa5\xe6\x9c\xac", 0);
    account_metadata_ =
        Must(writer_->AddMetadata(trace::AccountMetadata(trace::AccountEvent::Kind::kEventsLost)));
  }

  void Write(int activities) {
    while (activities > 0 || !open_.empty()) {
      now_ += 1 + Below(2'000'000);
      if (now_ >= interval_end_) EndInterval();
      const std::uint32_t choice = Below(10);
      if (activities > 0 && choice < 4) {
        --activities;
        Start();
      } else if (!open_.empty() && choice < 8) {
        Stop();
      } else if (choice < 9) {
        WriteEvent(note_, {}, Below(kCpus));
      } else if (Below(10) == 0) {
        Lose();
      }
    }
    EndInterval();
    Must(writer_->Finish());
  }

 private:
  struct Open {
    Guid activity;
    std::size_t kind;
  };

  std::uint32_t Below(std::uint32_t end) { return static_cast<std::uint32_t>(random_() % end); }

  ThreadIndex AddThread(const std::string& name, std::uint64_t pid, std::uint64_t tid) {
    ThreadInfo thread;
    thread.name = name;
    if (pid != 0) thread.process_id = pid;
    if (tid != 0) thread.thread_id = tid;
    return Must(writer_->AddThread(thread));
  }
  // The stops of "Save" are errors, "Query" warns, and the level of "Note" is unknown.
  static std::uint8_t LevelOf(const std::string& name) {
    if (name == "SaveDone") return 2;
    if (name == "Query") return 3;
    return name.starts_with("Note") ? 0 : 4;
  }
  MetadataId AddMetadata(const std::string& name, std::uint8_t opcode) {
    EventMetadata metadata;
    metadata.provider = name == "Query" || name == "QueryDone" ? "Database" : "Shop";
    metadata.event_id = ++event_id_;
    metadata.name = name;
    metadata.opcode = opcode;
    metadata.level = LevelOf(name);
    metadata.fields = {{"n", Type::Simple(TypeCode::kUInt32)}};
    return Must(writer_->AddMetadata(metadata));
  }

  void WriteEvent(MetadataId metadata, const Labels& labels, std::uint32_t cpu) {
    EventRow row;
    row.metadata_id = metadata;
    row.capture_thread = cpus_[cpu];
    row.thread = threads_[Below(static_cast<std::uint32_t>(threads_.size()))];
    row.processor = cpu;
    row.timestamp = now_;
    row.label_list_id = Must(writer_->InternLabels(labels));
    const std::uint32_t number = Below(1000);
    const std::vector<std::byte> payload = {std::byte(number & 0xFF), std::byte(number >> 8),
                                            std::byte{}, std::byte{}};
    Must(writer_->WriteEvent(row, payload));
  }
  void Start() {
    Guid activity = {};
    ++last_activity_;
    for (std::size_t i = 0; i < 4; ++i) activity[i] = std::byte(last_activity_ >> (8 * i) & 0xFF);
    // One start in ten has the id of an activity that is still open, as in recursive calls.
    if (!open_.empty() && Below(10) == 0) activity = open_.back().activity;
    Labels labels;
    // Every third activity is a child of the activity that started last and is still open.
    if (!open_.empty() && open_.back().activity != activity && last_activity_ % 3 == 0) {
      labels.related_activity_id = open_.back().activity;
    }
    open_.push_back({activity, Below(3)});
    labels.activity_id = activity;
    WriteEvent(starts_[open_.back().kind], labels, Below(kCpus));
  }
  // Stops an activity, on any CPU: mostly the oldest one, so that many are open at a time.
  void Stop() {
    const std::size_t i = Below(4) == 0 ? open_.size() - 1 : 0;
    Labels labels;
    labels.activity_id = open_[i].activity;
    WriteEvent(stops_[open_[i].kind], labels, Below(kCpus));
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void Lose() {
    const std::uint32_t cpu = Below(kCpus);
    const std::uint64_t count = 1 + Below(5);
    Must(writer_->AddLost(cpus_[cpu], count));
    trace::AccountEvent lost;
    lost.cpu = cpu;
    lost.count = count;
    static constexpr const char* kTracepoints[] = {"user_events:Shop_L4K0", "sched:sched_switch",
                                                   ""};
    lost.tracepoint = kTracepoints[Below(3)];
    losses_.push_back(lost);
  }
  // Ends an interval. The account is written at its end, by a separate capture thread.
  void EndInterval() {
    for (const trace::AccountEvent& lost : losses_) {
      if (account_thread_ == kNoThread) account_thread_ = AddThread("account", 0, 0);
      EventRow row;
      row.metadata_id = account_metadata_;
      row.capture_thread = row.thread = account_thread_;
      row.processor = kNoProcessor;
      row.timestamp = now_;
      Must(writer_->WriteEvent(row, Must(trace::AccountPayload(lost))));
    }
    losses_.clear();
    Must(writer_->WriteSequencePoint(now_));
    interval_end_ = now_ + kIntervalLength;
    ++now_;
  }

  std::mt19937 random_;
  std::uint64_t now_ = 5'000'000'000;
  std::uint64_t interval_end_ = now_ + kIntervalLength;
  std::unique_ptr<Writer> writer_;
  std::vector<ThreadIndex> cpus_;
  std::vector<ThreadIndex> threads_;
  std::vector<MetadataId> starts_;
  std::vector<MetadataId> stops_;
  MetadataId note_ = kNoMetadata;
  MetadataId account_metadata_ = kNoMetadata;
  ThreadIndex account_thread_ = kNoThread;
  std::uint32_t event_id_ = 0;
  std::uint32_t last_activity_ = 0;
  std::deque<Open> open_;
  std::vector<trace::AccountEvent> losses_;
};

}  // namespace
}  // namespace nettrace::testing

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: write_activities FILE SEED ACTIVITIES\n";
    return 2;
  }
  const auto seed = static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10));
  nettrace::testing::Activities(argv[1], seed).Write(std::atoi(argv[3]));
  return 0;
}
