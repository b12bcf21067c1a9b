// Tests the counts of `nettrace top` with small examples: rows, losses, durations and rates. Memory
// must be bounded without losing counts. tests/programs compares whole files with `nettrace dump`.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nettrace/sink.h"
#include "nettrace/writer.h"
#include "tests/support/nettrace/open_bytes.h"
#include "tests/unit/nettrace_tool/stacks_trace.h"
#include "tools/nettrace/top/model.h"
#include "tools/nettrace/top/recent_durations.h"
#include "tools/trace/account.h"

namespace tools::top {
namespace {

constexpr std::uint8_t kStart = 1;
constexpr std::uint8_t kStop = 2;

class ModelTest : public ::testing::Test {
 protected:
  // Opens an empty trace, for its clock of nanoseconds.
  void SetUp() override {
    auto sink = std::make_unique<nettrace::MemorySink>();
    const nettrace::MemorySink* const memory = sink.get();
    nettrace::TraceInfo info;
    info.sync_time = absl::FromUnixSeconds(1'800'000'000);
    auto writer = nettrace::Writer::Create(std::move(sink), info);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Finish().ok());
    bytes_.assign(memory->bytes().begin(), memory->bytes().end());
    auto reader = nettrace::Reader::Open(std::make_unique<nettrace::MemorySource>(bytes_));
    ASSERT_TRUE(reader.ok());
    reader_ = *std::move(reader);
    cpu_.name = "CPU 0";
    Restart({});
  }

  void Restart(const ModelOptions& options) { model_ = std::make_unique<Model>(options, names_); }

  struct Facts {
    const char* name = "E";
    const char* provider = "P";
    std::uint64_t pid = 7;
    std::uint64_t ticks = 0;
    std::uint8_t opcode = 0;
    std::uint64_t activity = 0;  // 0: none
    std::uint64_t lost_before = 0;
    std::size_t bytes = 4;
    std::uint8_t level = 0;
  };
  void Add(const Facts& facts) {
    metadata_.push_back(std::make_unique<nettrace::EventMetadata>());
    metadata_.back()->provider = facts.provider;
    metadata_.back()->name = facts.name;
    metadata_.back()->opcode = facts.opcode;
    metadata_.back()->level = facts.level;
    threads_.push_back(std::make_unique<nettrace::ThreadInfo>());
    threads_.back()->process_id = facts.pid;
    threads_.back()->thread_id = facts.pid + 1;
    labels_.push_back(std::make_unique<nettrace::Labels>());
    if (facts.activity != 0) {
      nettrace::Guid& id = labels_.back()->activity_id.emplace();
      std::memcpy(id.data(), &facts.activity, sizeof facts.activity);
    }
    const std::vector<std::byte> payload(facts.bytes);
    nettrace::Event event;
    event.metadata = metadata_.back().get();
    event.thread = threads_.back().get();
    event.capture_thread = &cpu_;
    event.labels = labels_.back().get();
    event.timestamp = facts.ticks;
    event.payload = payload;
    if (facts.lost_before != 0) Lose(cpu_, facts.lost_before);
    model_->OnEvent(*reader_, event);
  }
  void Lose(const nettrace::ThreadInfo& capture_thread, std::uint64_t count) {
    trace::Loss loss;
    loss.capture_thread = &capture_thread;
    loss.count = count;
    model_->OnLoss(loss);
  }
  // Adds an activity that ends at tick `end`. Tick 0 is at the beginning of a step (kStep).
  void AddActivity(std::uint64_t end, std::uint64_t duration, const char* name = "Request") {
    Add({.name = name, .ticks = end - duration, .opcode = kStart, .activity = 1});
    Add({.name = "Stop", .ticks = end, .opcode = kStop, .activity = 1});
  }
  void EndInterval(std::uint64_t ticks) {
    model_->OnSequencePoint(*reader_, reader_->TimeOf(ticks));
  }
  void AddAccountedLoss(const char* tracepoint, std::uint64_t count, std::uint32_t cpu = 0) {
    trace::AccountEvent lost;
    lost.cpu = cpu;
    lost.count = count;
    lost.tracepoint = tracepoint;
    const nettrace::EventMetadata metadata = trace::AccountMetadata(lost.kind);
    const std::vector<std::byte> payload = *trace::AccountPayload(lost);
    const nettrace::Labels none;
    nettrace::Event event;
    event.metadata = &metadata;
    event.thread = event.capture_thread = &cpu_;
    event.processor = nettrace::kNoProcessor;
    event.labels = &none;
    event.payload = payload;
    model_->OnAccount(event);
    EndInterval(0);  // After this, the model does not use the local variables.
  }

  // Returns the numbers of the row with this name or pid.
  RowNumbers Row(View view, std::string_view name) {
    const Snapshot snapshot = model_->TakeSnapshot();
    for (const SnapshotRow& row : snapshot.of(view).rows) {
      const std::string& shown = view == View::kProvider ? row.name.provider : row.name.name;
      if (shown == name || (row.name.pid && std::to_string(*row.name.pid) == name)) {
        return row.numbers;
      }
    }
    ADD_FAILURE() << "the view has no row " << name;
    return {};
  }
  // Expects that the numbers of each view add up to the total, except those of functions.
  void ExpectWhole() {
    const Snapshot snapshot = model_->TakeSnapshot();
    for (std::size_t i = 0; i < kSingleViews; ++i) {
      const SnapshotView& view = snapshot.views[i];
      RowNumbers sum = view.others;
      sum.lost += view.lost_unknown;
      for (const SnapshotRow& row : view.rows) {
        sum.events += row.numbers.events;
        sum.errors += row.numbers.errors;
        sum.bytes += row.numbers.bytes;
        sum.lost += row.numbers.lost;
        sum.durations += row.numbers.durations;
        sum.max = std::max(sum.max, row.numbers.max);
      }
      EXPECT_EQ(sum.events, snapshot.total.events);
      EXPECT_EQ(sum.errors, snapshot.total.errors);
      EXPECT_EQ(sum.bytes, snapshot.total.bytes);
      EXPECT_EQ(sum.lost, snapshot.total.lost);
      EXPECT_EQ(sum.durations, snapshot.total.durations);
      EXPECT_EQ(sum.max, snapshot.total.max);
    }
  }

  std::vector<std::byte> bytes_;
  std::unique_ptr<nettrace::Reader> reader_;
  trace::ProcessNames names_;
  std::unique_ptr<Model> model_;
  nettrace::ThreadInfo cpu_;
  // Kept alive as long as a reader would keep them.
  std::vector<std::unique_ptr<nettrace::EventMetadata>> metadata_;
  std::vector<std::unique_ptr<nettrace::ThreadInfo>> threads_;
  std::vector<std::unique_ptr<nettrace::Labels>> labels_;
};

// Events of OpenTelemetry's exporters share a row of metadata, and have their names as values.
TEST_F(ModelTest, LogRecordsAreCountedByTheirNames) {
  using nettrace::Type;
  using nettrace::TypeCode;
  const Type text = Type::Array(Type::Simple(TypeCode::kUtf8CodeUnit));
  nettrace::EventMetadata metadata;
  metadata.provider = "P";
  metadata.name = "Log";
  metadata.level = 2;
  metadata.fields = {{"__csver__", Type::Simple(TypeCode::kUInt16)},
                     {"PartB", Type::Object({{"_typeName", text}, {"name", text}})}};
  nettrace::ThreadInfo thread;
  thread.process_id = thread.thread_id = 7;
  const nettrace::Labels labels;
  const auto add = [&](const std::string& type, const std::string& name) {
    std::string payload("\0\4", 2);
    for (const std::string& value : {type, name}) {
      payload += static_cast<char>(value.size());
      payload += '\0';
      payload += value;
    }
    nettrace::Event event;
    event.metadata = &metadata;
    event.thread = event.capture_thread = &thread;
    event.labels = &labels;
    event.payload = std::as_bytes(std::span(payload));
    model_->OnEvent(*reader_, event);
  };
  for (const char* name : {"A", "B", "A"}) add("Log", name);
  add("Log", "");
  add("Other", "A");
  EXPECT_EQ(Row(View::kEvent, "A").events, 2U);
  EXPECT_EQ(Row(View::kEvent, "A").errors, 2U);
  EXPECT_EQ(Row(View::kEvent, "B").events, 1U);
  EXPECT_EQ(Row(View::kEvent, "Log").events, 2U);
  EXPECT_EQ(Row(View::kProvider, "P").events, 5U);
  ExpectWhole();
  EndInterval(1'000'000'000);
  add("Log", "A");
  EXPECT_EQ(Row(View::kEvent, "A").events, 3U);
}

TEST_F(ModelTest, RowsOfEachViewAddUpToAll) {
  Add({.name = "A", .provider = "P", .pid = 7, .bytes = 1});
  Add({.name = "A", .provider = "Q", .pid = 7, .bytes = 10});
  Add({.name = "B", .provider = "Q", .pid = 9, .bytes = 100});
  EXPECT_EQ(Row(View::kProvider, "P").events, 1U);
  EXPECT_EQ(Row(View::kProvider, "Q").bytes, 110U);
  EXPECT_EQ(Row(View::kEvent, "B").events, 1U);
  EXPECT_EQ(Row(View::kProcess, "7").events, 2U);
  EXPECT_EQ(Row(View::kThread, "9").bytes, 100U);
  EXPECT_EQ(Row(View::kCpu, "CPU 0").events, 3U);
  EXPECT_EQ(model_->TakeSnapshot().of(View::kEvent).rows.size(), 3U);
  ExpectWhole();
}

TEST_F(ModelTest, DurationsGoFromStartToStopAndCountWhereTheyStarted) {
  Add({.name = "Start", .pid = 7, .ticks = 100, .opcode = kStart, .activity = 1});
  Add({.name = "Start", .pid = 7, .ticks = 120, .opcode = kStart, .activity = 2});
  Add({.name = "Stop", .pid = 9, .ticks = 150, .opcode = kStop, .activity = 1});
  EXPECT_EQ(model_->TakeSnapshot().open, 1U);
  Add({.name = "Stop", .pid = 9, .ticks = 130, .opcode = kStop, .activity = 2});
  EXPECT_EQ(Row(View::kEvent, "Start").durations, 2U);
  EXPECT_EQ(Row(View::kEvent, "Start").p50, 10U);
  EXPECT_EQ(Row(View::kEvent, "Start").max, 50U);
  EXPECT_EQ(Row(View::kEvent, "Stop").durations, 0U);
  EXPECT_EQ(Row(View::kProcess, "7").durations, 2U);
  EXPECT_EQ(Row(View::kProcess, "9").durations, 0U);
  EXPECT_EQ(model_->TakeSnapshot().open, 0U);
  EXPECT_EQ(model_->TakeSnapshot().unmatched, 0U);
  ExpectWhole();
}

TEST_F(ModelTest, StopEndsTheLatestStartOfItsActivity) {
  Add({.name = "Outer", .ticks = 1, .opcode = kStart, .activity = 1});
  Add({.name = "Inner", .ticks = 2, .opcode = kStart, .activity = 1});
  Add({.ticks = 5, .opcode = kStop, .activity = 1});
  Add({.ticks = 9, .opcode = kStop, .activity = 1});
  Add({.ticks = 10, .opcode = kStop, .activity = 1});
  Add({.ticks = 11, .opcode = kStop});
  EXPECT_EQ(Row(View::kEvent, "Inner").max, 3U);
  EXPECT_EQ(Row(View::kEvent, "Outer").max, 8U);
  EXPECT_EQ(model_->TakeSnapshot().unmatched, 1U);  // The event at 11 has no activity id.
}

TEST_F(ModelTest, RowsBeyondTheBoundCountAsOthers) {
  Restart({.max_rows = 4});
  for (int i = 0; i < 5; ++i) Add({.name = "Busy", .provider = "Busy", .pid = 1});
  std::vector<std::string> names;
  names.reserve(50);
  for (int i = 0; i < 50; ++i) names.push_back("Rare" + std::to_string(i));
  for (std::size_t i = 0; i < names.size(); ++i) {
    Add({.name = names[i].c_str(),
         .provider = names[i].c_str(),
         .pid = 100 + 10 * i,
         .ticks = 100 + i,
         .opcode = kStart,
         .activity = i + 1,
         .lost_before = i == 10 ? 3U : 0U});
  }
  // Most of these rows were removed, so the durations of their activities count as those of others.
  for (std::size_t i = 0; i < names.size(); ++i) {
    Add({.name = "Busy",
         .provider = "Busy",
         .pid = 1,
         .ticks = 1000,
         .opcode = kStop,
         .activity = i + 1});
  }
  const Snapshot snapshot = model_->TakeSnapshot();
  for (const View view : {View::kProvider, View::kEvent, View::kProcess, View::kThread}) {
    EXPECT_LE(snapshot.of(view).rows.size(), 4U);
    EXPECT_GE(snapshot.of(view).other_rows, 46U);
    EXPECT_GE(snapshot.of(view).others.durations, 46U);
    EXPECT_EQ(snapshot.of(view).others.max, 900U);
  }
  EXPECT_EQ(Row(View::kEvent, "Busy").events, 55U);
  EXPECT_EQ(snapshot.total.durations, 50U);
  ExpectWhole();
}

TEST_F(ModelTest, OpenActivitiesAreBounded) {
  constexpr std::uint64_t kStarts = trace::kMaxOpenActivities + 2;
  for (std::uint64_t i = 1; i <= kStarts; ++i) Add({.ticks = i, .opcode = kStart, .activity = i});
  EXPECT_EQ(model_->TakeSnapshot().open, 2U);
  EXPECT_EQ(model_->TakeSnapshot().forgotten, trace::kMaxOpenActivities);
  Add({.ticks = kStarts + 5, .opcode = kStop, .activity = 1});
  Add({.ticks = kStarts + 6, .opcode = kStop, .activity = kStarts});
  EXPECT_EQ(model_->TakeSnapshot().unmatched, 1U);
  EXPECT_EQ(model_->TakeSnapshot().total.max, 6U);
}

TEST_F(ModelTest, LossesCountInTheRowsThatTheFileNames) {
  Add({.lost_before = 10});
  nettrace::ThreadInfo thread;
  thread.process_id = 7;
  thread.thread_id = 8;
  Lose(thread, 5);
  EndInterval(0);
  Lose(cpu_, 100);
  AddAccountedLoss("sched:sched_switch", 4);
  AddAccountedLoss("user_events:P_L4K1", 2);
  AddAccountedLoss("", 1);
  AddAccountedLoss("ring:7/8", 5, trace::kRingCpu);
  const Snapshot snapshot = model_->TakeSnapshot();
  EXPECT_EQ(snapshot.total.lost, 115U);
  EXPECT_EQ(snapshot.total.events, 1U);
  EXPECT_EQ(Row(View::kCpu, "CPU 0").lost, 110U);
  EXPECT_EQ(Row(View::kProcess, "7").lost, 5U);
  EXPECT_EQ(snapshot.of(View::kThread).lost_unknown, 110U);
  EXPECT_EQ(Row(View::kEvent, "sched_switch").lost, 4U);
  EXPECT_EQ(Row(View::kProvider, "sched").lost, 4U);
  EXPECT_EQ(Row(View::kProvider, "P").lost, 2U);
  EXPECT_EQ(snapshot.of(View::kProvider).lost_unknown, 109U);
  EXPECT_EQ(snapshot.of(View::kProvider).rows.size(), 2U);  // P and sched, not ring
  ExpectWhole();
}

TEST_F(ModelTest, RatesAreOfTheTracesTime) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  for (std::uint64_t i = 0; i < 6; ++i) Add({.ticks = i});
  EndInterval(kSecond / 2);  // Too short for a rate.
  EXPECT_EQ(Row(View::kEvent, "E").rate, 0);
  for (std::uint64_t i = 0; i < 4; ++i) Add({.ticks = kSecond});
  EndInterval(2 * kSecond);
  EXPECT_EQ(Row(View::kEvent, "E").rate, 5);
  EXPECT_EQ(model_->TakeSnapshot().byte_rate, 20);
  model_->BeIdle();
  EXPECT_EQ(Row(View::kEvent, "E").rate, 0);
  Add({.ticks = 5 * kSecond});
  model_->Finish(*reader_);
  EXPECT_EQ(Row(View::kEvent, "E").rate, 11.0 / 5);
  EXPECT_TRUE(model_->TakeSnapshot().is_finished);
}

TEST_F(ModelTest, ErrorsAreCountedByLevel) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  Add({.name = "Mixed", .level = 4});
  Add({.name = "Mixed", .level = 2});
  Add({.name = "Mixed", .level = 5});
  Add({.name = "Mixed", .level = 0});
  Add({.name = "Worse", .level = 1});
  Add({.name = "Fine", .level = 3});
  Add({.name = "Unknown", .level = 0});
  EndInterval(2 * kSecond);
  EXPECT_EQ(Row(View::kEvent, "Mixed").errors, 1U);
  EXPECT_EQ(Row(View::kLevel, "error").events, 1U);
  EXPECT_EQ(Row(View::kLevel, "-").events, 2U);
  EXPECT_EQ(Row(View::kLevel, "critical").error_rate, 0.5);
  EXPECT_EQ(Row(View::kEvent, "Mixed").error_rate, 0.5);
  EXPECT_EQ(Row(View::kEvent, "Mixed").level, 2);
  EXPECT_EQ(Row(View::kEvent, "Worse").error_rate, 0.5);
  EXPECT_EQ(Row(View::kEvent, "Fine").error_rate, 0);
  EXPECT_EQ(Row(View::kEvent, "Fine").level, 3);
  EXPECT_EQ(Row(View::kEvent, "Unknown").level, 0);
  EXPECT_EQ(Row(View::kProvider, "P").errors, 2U);
  EXPECT_EQ(Row(View::kProvider, "P").level, 1);
  EXPECT_EQ(model_->TakeSnapshot().total.error_rate, 1);
  EndInterval(3 * kSecond);
  EXPECT_EQ(Row(View::kEvent, "Mixed").error_rate, 0);
  Add({.name = "Mixed", .ticks = 4 * kSecond, .level = 1});
  model_->BeIdle();
  EXPECT_EQ(Row(View::kEvent, "Mixed").error_rate, 0);
  model_->Finish(*reader_);
  EXPECT_EQ(Row(View::kEvent, "Mixed").error_rate, 2.0 / 4);
  EXPECT_EQ(model_->TakeSnapshot().total.errors, 3U);
  ExpectWhole();
}

// Returns the smallest duration that `percent` % of the durations do not exceed.
std::uint64_t Percentile(std::vector<std::uint64_t> durations, std::size_t percent) {
  std::sort(durations.begin(), durations.end());
  return durations[(durations.size() * percent + 99) / 100 - 1];
}

TEST_F(ModelTest, MinutesAreComparedByExactPercentiles) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  // Each duration below 64 ns has a separate bucket, so percentiles of these durations are exact.
  std::vector<std::uint64_t> before;
  std::vector<std::uint64_t> last;
  for (std::uint64_t i = 0; i < 177; ++i) {
    before.push_back(i * 7 % 31);
    AddActivity(60 * kSecond + i * kSecond / 3, before.back());
  }
  for (std::uint64_t i = 0; i < 354; ++i) {
    last.push_back(10 + i * 11 % 53);
    AddActivity(120 * kSecond + i * kSecond / 6, last.back());
  }
  const RowNumbers row = Row(View::kEvent, "Request");
  EXPECT_EQ(row.minute.durations, last.size());
  EXPECT_EQ(row.minute.p50, Percentile(last, 50));
  EXPECT_EQ(row.minute.p99, Percentile(last, 99));
  EXPECT_EQ(row.minute_before.durations, before.size());
  EXPECT_EQ(row.minute_before.p50, Percentile(before, 50));
  EXPECT_EQ(row.minute_before.p99, Percentile(before, 99));
  for (std::size_t i = 0; i < kSingleViews; ++i) {
    const View view = kViews[i];
    std::uint64_t durations = 0;
    const Snapshot snapshot = model_->TakeSnapshot();
    for (const SnapshotRow& one : snapshot.of(view).rows) durations += one.numbers.minute.durations;
    EXPECT_EQ(durations, last.size());
  }
  EXPECT_EQ(model_->TakeSnapshot().total.minute_before.p99, row.minute_before.p99);
}

TEST_F(ModelTest, LongDurationsOfMinutesHaveTheErrorOfTheHistogram) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  std::vector<std::uint64_t> last;
  for (std::uint64_t i = 0; i < 500; ++i) {
    last.push_back(1000 + i * i * 7919);
    AddActivity(100 * kSecond + i * kSecond / 10, last.back());
  }
  const RowNumbers row = Row(View::kEvent, "Request");
  for (const auto& [shown, percent] : {std::pair(row.minute.p50, 50), {row.minute.p99, 99}}) {
    const auto exact = static_cast<double>(Percentile(last, static_cast<std::size_t>(percent)));
    EXPECT_NEAR(static_cast<double>(shown), exact, exact * trace::DurationHistogram::kMaxError);
  }
}

TEST_F(ModelTest, MinutesAdvanceInStepsWithTheStream) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  AddActivity(2 * kSecond, 10);
  const auto counts = [this] {
    const RowNumbers row = Row(View::kEvent, "Request");
    return std::pair(row.minute.durations, row.minute_before.durations);
  };
  EndInterval(59 * kSecond);
  EXPECT_EQ(counts(), (std::pair<std::uint64_t, std::uint64_t>(1, 0)));
  EndInterval(60 * kSecond);
  EXPECT_EQ(counts(), (std::pair<std::uint64_t, std::uint64_t>(0, 1)));
  EndInterval(119 * kSecond);
  EXPECT_EQ(counts(), (std::pair<std::uint64_t, std::uint64_t>(0, 1)));
  EndInterval(120 * kSecond);
  EXPECT_EQ(counts(), (std::pair<std::uint64_t, std::uint64_t>(0, 0)));
  EXPECT_EQ(Row(View::kEvent, "Request").durations, 1U);
  // An activity counts in the minute in which it ended, even if its last event arrives late.
  AddActivity(121 * kSecond, 20);
  AddActivity(58 * kSecond, 30);
  EXPECT_EQ(Row(View::kEvent, "Request").minute.p99, 20U);
  EXPECT_EQ(counts(), (std::pair<std::uint64_t, std::uint64_t>(1, 1)));
  EndInterval(170 * kSecond);
  AddActivity(70 * kSecond, 40);
  EXPECT_EQ(Row(View::kEvent, "Request").minute_before.p99, 40U);
  // At the end, the last minute is that of the last event, however long the stream was silent.
  EndInterval(4000 * kSecond);
  EXPECT_EQ(counts(), (std::pair<std::uint64_t, std::uint64_t>(0, 0)));
  model_->Finish(*reader_);
  EXPECT_EQ(counts(), (std::pair<std::uint64_t, std::uint64_t>(2, 1)));
}

TEST(RecentDurations, ABudgetLimitsTheEntries) {
  RecentDurations::Budget budget = {.used = RecentDurations::Budget::kMaxEntries - 2};
  RecentDurations durations;
  for (const std::uint64_t duration : {10, 20, 12, 17, 40, 3}) durations.Add(5, duration, &budget);
  EXPECT_EQ(durations.CountEntries(), 2U);
  const Minutes minutes = durations.At(5);
  EXPECT_EQ(minutes.last.count(), 6U);
  EXPECT_EQ(minutes.last.Percentile(50), 10U);  // the entry of 10, 12 and 3
  EXPECT_EQ(minutes.last.Percentile(51), 20U);  // the entry of 20, 17 and 40
  // If the budget is used up, a step still has one entry.
  durations.Add(6, 30, &budget);
  EXPECT_EQ(durations.At(6).last.count(), 7U);
  EXPECT_EQ(durations.CountEntries(), 3U);
}

TEST(RecentDurations, StepsAreBounded) {
  RecentDurations::Budget budget;
  RecentDurations durations;
  for (StepNumber step = 1000; step > 0; --step) durations.Add(step, 1, &budget);
  EXPECT_EQ(durations.CountEntries(), 24U);
  for (StepNumber step = 1000; step < 2000; ++step) durations.Add(step, 1, &budget);
  EXPECT_EQ(durations.CountEntries(), 24U);
  EXPECT_EQ(durations.At(1999).last.count(), 12U);
  durations.Add(1'000'000, 1, &budget);
  EXPECT_EQ(durations.CountEntries(), 1U);
  RecentDurations other;
  other.Add(1'000'001, 2, &budget);
  durations.Merge(other, &budget);
  EXPECT_EQ(durations.At(1'000'001).last.max(), 2U);
  durations.Forget(2'000'000);
  EXPECT_EQ(durations.CountEntries(), 0U);
}

TEST_F(ModelTest, RemovedRowsKeepTheirMinutes) {
  Restart({.max_rows = 4});
  std::vector<std::string> names;
  names.reserve(50);
  for (int i = 0; i < 50; ++i) names.push_back("Rare" + std::to_string(i));
  for (std::size_t i = 0; i < names.size(); ++i) AddActivity(1000 + i, 10, names[i].c_str());
  const Snapshot snapshot = model_->TakeSnapshot();
  std::uint64_t durations = snapshot.of(View::kEvent).others.minute.durations;
  for (const SnapshotRow& row : snapshot.of(View::kEvent).rows) {
    durations += row.numbers.minute.durations;
  }
  EXPECT_EQ(durations, names.size());
  EXPECT_EQ(snapshot.total.minute.p99, 10U);
}

TEST_F(ModelTest, LastEventsOfARowAreKeptAsText) {
  Restart({.keeps_events = true});
  for (std::uint64_t i = 0; i < 3; ++i) {
    Add({.name = "\x1b[2J", .ticks = i, .bytes = i == 1 ? 100'000U : 4U});
  }
  EndInterval(10);
  for (std::uint64_t i = 0; i < 2 * Model::kKeptEvents; ++i)
    Add({.name = "Other", .ticks = 20 + i});
  EndInterval(100);
  const Snapshot snapshot = model_->TakeSnapshot();
  for (const SnapshotRow& row : snapshot.of(View::kEvent).rows) {
    const std::vector<std::string> events = model_->LastEvents(View::kEvent, row.key);
    if (row.name.name == "Other") {
      ASSERT_EQ(events.size(), Model::kKeptEvents);
      EXPECT_NE(events.back().find(".000000067Z"), std::string::npos) << events.back();
      continue;
    }
    ASSERT_EQ(events.size(), 3U);
    EXPECT_NE(events[0].find("P \\u001b[2J"), std::string::npos) << events[0];
    for (const std::string& event : events) EXPECT_LE(event.size(), Model::kMaxEventText + 2);
  }
  EXPECT_TRUE(model_->LastEvents(View::kEvent, "no such row").empty());
}

TEST_F(ModelTest, NamesAreCut) {
  const std::string name(1 << 20, 'x');
  Add({.name = name.c_str(), .provider = name.c_str()});
  const Snapshot snapshot = model_->TakeSnapshot();
  EXPECT_EQ(snapshot.of(View::kEvent).rows[0].name.name.size(), RowName::kMaxName);
  EXPECT_LE(snapshot.of(View::kEvent).rows[0].key.size(), 2 * RowName::kMaxName + 1);
}

// Returns the numbers of events and of self by function, after the events have been counted.
std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> Functions(
    const std::vector<stacks_trace::TraceEvent>& events, const ModelOptions& options) {
  const nettrace::Bytes stream = stacks_trace::Stream(events);
  const auto reader = nettrace::testing::OpenBytes(stream.span());
  const trace::ProcessNames names;
  Model model(options, names);
  while (reader->Next() != nettrace::Reader::Step::kEnd) {
    model.OnCode(reader->event());
    if (reader->event().metadata->provider == "Shop") model.OnEvent(*reader, reader->event());
  }
  model.Finish(*reader);
  const Snapshot snapshot = model.TakeSnapshot();
  const SnapshotView& view = snapshot.of(View::kFunction);
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> functions;
  for (const SnapshotRow& row : view.rows) {
    functions[row.name.name] = {row.numbers.events, row.numbers.self};
  }
  if (view.other_rows != 0) functions["others"] = {view.others.events, view.others.self};
  return functions;
}

using FunctionCounts = std::map<std::string, std::pair<std::uint64_t, std::uint64_t>>;

TEST(FunctionsOfModel, CountEventsAtTheLeafAndAnywhereOnTheStack) {
  using stacks_trace::Sale;
  EXPECT_EQ(Functions(stacks_trace::WithCode({Sale(1), Sale(2), Sale(4), Sale(3), Sale(0)}),
                      {.keeps_events = true}),
            (FunctionCounts{{"shop!shop::Send()", {2, 2}},
                            {"shop!main", {3, 0}},
                            {"vmlinux!write", {1, 1}},
                            {"shop!?", {1, 1}},
                            {"?", {1, 0}}}));
}

TEST(FunctionsOfModel, RowsBeyondTheLimitAreCombined) {
  using stacks_trace::Sale;
  const FunctionCounts functions =
      Functions(stacks_trace::WithCode({Sale(1), Sale(4), Sale(3), Sale(1)}), {.max_rows = 2});
  std::uint64_t events = 0;
  std::uint64_t self = 0;
  for (const auto& [name, counts] : functions) {
    events += counts.first;
    self += counts.second;
  }
  EXPECT_EQ(events, 8U);  // each event has two functions
  EXPECT_EQ(self, 4U);
  EXPECT_LE(functions.size(), 3U);
}

}  // namespace
}  // namespace tools::top
