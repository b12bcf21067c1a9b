// Tests the findings of `nettrace report`: traces in which errors, durations or processes change
// yield a finding, and random traces without a change yield none.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "nettrace/payload_encoder.h"
#include "nettrace/sink.h"
#include "nettrace/writer.h"
#include "tools/nettrace/report/change_detection.h"
#include "tools/nettrace/report/findings.h"
#include "tools/nettrace/report/report_model.h"

namespace tools::report {
namespace {

using Topic = Finding::Topic;

TEST(ChangeDetectionTest, BestSegmentHasTheLargestSum) {
  EXPECT_EQ(BestSegment(std::vector<double>{-1, 2, 3, -1, 4, -9, 5}), (Segment{1, 5}));
  EXPECT_EQ(BestSegment(std::vector<double>{-1, -2}), std::nullopt);
}

TEST(ChangeDetectionTest, RateChangeHasItsSegmentAndRates) {
  std::vector<std::uint64_t> counts(100, 50);
  EXPECT_EQ(FindRateChange(counts), std::nullopt);
  for (std::size_t i = 40; i < 45; ++i) counts[i] = 200;
  std::optional<RateChange> change = FindRateChange(counts);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->segment, (Segment{40, 45}));
  EXPECT_EQ(change->usual, 50);
  EXPECT_EQ(change->rate, 200);
  EXPECT_FALSE(change->from_start || change->until_end);
  for (std::size_t i = 0; i < 100; ++i) counts[i] = i < 70 ? 50 : 5;
  change = FindRateChange(counts);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->segment, (Segment{70, 99}));
  EXPECT_TRUE(change->until_end);
}

TEST(ChangeDetectionTest, BurstHasMostCountsInAShortTime) {
  std::vector<std::uint64_t> counts(1000, 0);
  for (std::size_t i = 0; i < 1000; i += 50) counts[i] = 1;
  EXPECT_EQ(FindBurst(counts), std::nullopt);
  for (std::size_t i = 500; i < 520; ++i) counts[i] = 9;
  EXPECT_EQ(FindBurst(counts), (Segment{500, 520}));
}

TEST(ChangeDetectionTest, ShareChangeHasItsSegmentAndShares) {
  std::vector<std::uint64_t> events(100, 1000);
  std::vector<std::uint64_t> errors(100, 10);
  EXPECT_EQ(FindShareChange(errors, events), std::nullopt);
  // More events with the same share are no change.
  for (std::size_t i = 40; i < 60; ++i) {
    events[i] = 5000;
    errors[i] = 50;
  }
  EXPECT_EQ(FindShareChange(errors, events), std::nullopt);
  for (std::size_t i = 70; i < 80; ++i) errors[i] = 60;
  std::optional<ShareChange> change = FindShareChange(errors, events);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->segment, (Segment{70, 80}));
  EXPECT_DOUBLE_EQ(change->usual, 0.01);
  EXPECT_DOUBLE_EQ(change->share, 0.06);
  EXPECT_FALSE(change->from_start || change->until_end);
  for (std::size_t i = 0; i < 100; ++i) errors[i] = events[i] / (i < 75 ? 20 : 100);
  change = FindShareChange(errors, events);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->segment, (Segment{75, 100}));
  EXPECT_TRUE(change->until_end);
  EXPECT_EQ(FindShareChange({}, {}), std::nullopt);
}

TEST(ChangeDetectionTest, TrendIsTheRankCorrelation) {
  EXPECT_EQ(TrendOf(std::vector<double>{1, 2, 5, 100}), 1);
  EXPECT_EQ(TrendOf(std::vector<double>{3, 2, 1}), -1);
  EXPECT_EQ(TrendOf(std::vector<double>{1, 1, 1}), 0);
  EXPECT_EQ(Median({5, 1, 100}), 5);
}

TEST(DurationsOverTimeTest, PercentilesAreCloseForEachPart) {
  DurationsOverTime durations;
  for (std::uint64_t i = 0; i < 1000; ++i) durations.Add(i, 1000 + i);
  const std::vector<DurationsOverTime::Part> parts = durations.Parts();
  ASSERT_EQ(parts.size(), 125u);
  DurationsOverTime::Part all;
  for (const DurationsOverTime::Part& part : parts) {
    EXPECT_EQ(part.count, 8u);
    all.Merge(part);
  }
  EXPECT_NEAR(all.Percentile(50), 1500, 0.12 * 1500);
  EXPECT_NEAR(all.Percentile(99), 1990, 0.12 * 1990);
  EXPECT_EQ(all.CountAbove(DurationsOverTime::BucketOf(1999)), 0u);
  EXPECT_EQ(all.CountAbove(DurationsOverTime::BucketOf(1)), 1000u);
}

// Builds a trace of requests in memory. A tick is a nanosecond.
class FindingsTest : public ::testing::Test {
 protected:
  static constexpr double kMillisecond = 1e6;
  static constexpr double kSecond = 1e9;
  enum Kind : std::size_t { kRequest, kRequestDone, kTick, kFailed, kStopFailed, kKinds };
  static constexpr std::uint8_t kErrorLevel = 2;
  static constexpr std::size_t kJobs = 9;  // further kinds of activities: Job0, Job1 and so on

  FindingsTest() {
    auto sink = std::make_unique<nettrace::MemorySink>();
    const nettrace::MemorySink* const memory = sink.get();
    nettrace::TraceInfo info;
    info.sync_time = absl::FromUnixSeconds(1'800'000'000);
    auto writer = *nettrace::Writer::Create(std::move(sink), info);
    EXPECT_TRUE(writer->Finish().ok());
    bytes_.assign(memory->bytes().begin(), memory->bytes().end());
    reader_ = *nettrace::Reader::Open(std::make_unique<nettrace::MemorySource>(bytes_));
    const char* const names[] = {"Request", "RequestDone", "Tick", "Failed", "RequestFailed"};
    for (std::size_t i = 0; i < kKinds; ++i) {
      kinds_[i].provider = "Shop";
      kinds_[i].name = names[i];
      kinds_[i].level = i == kFailed || i == kStopFailed ? kErrorLevel : 4;
      const bool is_stop = i == kRequestDone || i == kStopFailed;
      kinds_[i].opcode = static_cast<std::uint8_t>(i == kRequest ? 1 : is_stop ? 2 : 0);
    }
    for (std::size_t i = 0; i < kJobs; ++i) {
      for (const std::size_t opcode : {1, 2}) {
        nettrace::EventMetadata& kind = kinds_[KindOfJob(i, opcode)];
        kind.provider = "Shop";
        kind.name = absl::StrCat("Job", i, opcode == 1 ? "" : "Done");
        kind.level = 4;
        kind.opcode = static_cast<std::uint8_t>(opcode);
      }
    }
    thread_.process_id = 7;
    thread_.thread_id = 8;
  }
  static Kind KindOfJob(std::size_t job, std::size_t opcode) {
    return static_cast<Kind>(kKinds + 2 * job + opcode - 1);
  }

  // Adds an event, whose level may differ from that of its kind.
  void Add(Kind kind, double at, std::uint64_t activity = 0,
           std::optional<std::uint8_t> level = std::nullopt) {
    added_.push_back({static_cast<std::uint64_t>(at), kind, activity, level});
  }
  // Adds a request. `add_stop` adds its last event, and gets the time of this event and the number
  // of the activity.
  template <typename AddStop>
  void AddRequest(double at, double duration, AddStop add_stop) {
    Add(kRequest, at, ++requests_);
    add_stop(at + duration, requests_);
  }
  void AddRequest(double at, double duration) {
    ++requests_;
    Add(kRequest, at, requests_);
    Add(kRequestDone, at + duration, requests_);
  }
  void AddJob(std::size_t job, double at, double duration) {
    ++requests_;
    Add(KindOfJob(job, 1), at, requests_);
    Add(KindOfJob(job, 2), at + duration, requests_);
  }
  std::uint64_t requests() const { return requests_; }
  void SkipRequest() { ++requests_; }
  double Wait(double rate) { return std::exponential_distribution<>(rate)(random_) * kSecond; }
  double Duration(double median, double deviation) {
    return median * std::exp(std::normal_distribution<>(0, deviation)(random_));
  }
  // Adds requests at random times with random durations.
  void AddCalm(double seconds, double rate, double deviation) {
    for (double at = Wait(rate); at < seconds * kSecond; at += Wait(rate)) {
      AddRequest(at, Duration(3 * kMillisecond, deviation));
    }
  }

  // Adds an event that describes a process.
  void AddProcess(std::uint64_t pid, const char* event, double at, std::u16string name = u"web",
                  std::string host = "") {
    processes_.push_back(
        {static_cast<std::uint64_t>(at), pid, event, std::move(name), std::move(host)});
  }

  // Returns the findings of all events, and forgets the events. If `lost_at` is not 0, 100 events
  // are lost before the first event from that time on.
  std::vector<Finding> Find(std::uint64_t lost_at = 0) {
    std::stable_sort(added_.begin(), added_.end(),
                     [](const Added& a, const Added& b) { return a.ticks < b.ticks; });
    model_ = std::make_unique<ReportModel>(*reader_, Window(), Limits());
    nettrace::Labels labels;
    nettrace::Event event;
    event.thread = event.capture_thread = &thread_;
    event.labels = &labels;
    bool has_lost = lost_at == 0;
    auto process = processes_.begin();
    for (const Added& added : added_) {
      for (; process != processes_.end() && process->ticks <= added.ticks; ++process) {
        OnProcess(*process);
      }
      labels.level = added.level;
      labels.activity_id.reset();
      if (added.activity != 0) {
        labels.activity_id.emplace();
        std::memcpy(labels.activity_id->data(), &added.activity, sizeof added.activity);
      }
      event.metadata = &kinds_[added.kind];
      event.timestamp = added.ticks;
      if (!has_lost && added.ticks >= lost_at) model_->OnLoss(thread_, 100, added.ticks);
      has_lost = has_lost || added.ticks >= lost_at;
      model_->OnEvent(event, names_);
    }
    model_->EndTotals();
    added_.clear();
    processes_.clear();
    return FindFindings(*reader_, *model_);
  }

  static std::string TextsOf(const std::vector<Finding>& findings) {
    std::string texts;
    for (const Finding& finding : findings) absl::StrAppend(&texts, finding.text, "\n");
    return texts;
  }

  std::mt19937_64 random_{1};

 private:
  struct Added {
    std::uint64_t ticks;
    Kind kind;
    std::uint64_t activity;
    std::optional<std::uint8_t> level;
  };
  struct AddedProcess {
    std::uint64_t ticks;
    std::uint64_t pid;
    const char* event;
    std::u16string name;
    std::string host;
  };

  // Passes an event about a process to the model. Then passes an ordinary event of this process,
  // except after ProcessExit, because the model has rows only for processes with ordinary events.
  void OnProcess(const AddedProcess& added) {
    nettrace::ThreadInfo& thread = process_threads_[added.pid];
    thread.process_id = thread.thread_id = added.pid;
    thread.key_values.clear();
    if (!added.host.empty()) {
      thread.key_values.emplace_back(std::string(nettrace::kKeyHostName), added.host);
    }
    nettrace::EventMetadata metadata;
    metadata.provider = "Universal.System";
    metadata.name = added.event;
    metadata.fields = {nettrace::MakeField<std::u16string_view>("Name")};
    nettrace::PayloadEncoder payload(&metadata.fields);
    const auto bytes = payload.Utf16(added.name).Finish();
    ASSERT_TRUE(bytes.ok());
    nettrace::Labels labels;
    nettrace::Event event;
    event.metadata = &metadata;
    event.thread = event.capture_thread = &thread;
    event.labels = &labels;
    event.timestamp = added.ticks;
    event.payload = *bytes;
    names_.OnEvent(event);
    model_->OnProcessNamed();
    model_->OnProcessChange(event, names_);
    if (metadata.name == "ProcessExit") return;
    event.metadata = &kinds_[kTick];
    model_->OnEvent(event, names_);
    model_->OnRowsEnd();
  }

  std::vector<std::byte> bytes_;
  std::unique_ptr<nettrace::Reader> reader_;
  std::unique_ptr<ReportModel> model_;
  trace::ProcessNames names_;
  std::map<std::uint64_t, nettrace::ThreadInfo> process_threads_;
  std::vector<AddedProcess> processes_;
  nettrace::EventMetadata kinds_[kKinds + 2 * kJobs];
  nettrace::ThreadInfo thread_;
  std::vector<Added> added_;
  std::uint64_t requests_ = 0;
};

TEST_F(FindingsTest, RandomTracesHaveNoFinding) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    random_.seed(seed);
    // Few and many requests, short and long times, narrow and wide durations.
    AddCalm(20 + 50 * (seed % 7), std::vector<double>{0.5, 3, 20, 40}[seed % 4],
            0.2 + 0.25 * (seed % 6));
    if (seed % 3 == 0) {
      for (double at = 0; at < 20 * kSecond; at += 50 * kMillisecond) Add(kTick, at);
    }
    EXPECT_EQ(TextsOf(Find()), "");
  }
}

TEST_F(FindingsTest, NoFindingForNoEvents) {
  EXPECT_EQ(TextsOf(Find()), "");
  Add(kTick, 5);
  EXPECT_EQ(TextsOf(Find()), "");
}

TEST_F(FindingsTest, ErrorsHaveTheirTimesAndProcess) {
  AddCalm(600, 20, 0.5);
  for (int i = 0; i < 240; ++i) Add(kFailed, 250 * kSecond + 50 * kMillisecond * i);
  std::vector<Finding> findings = Find();
  ASSERT_EQ(findings.size(), 1u) << TextsOf(findings);
  EXPECT_EQ(findings[0].topic, Topic::kErrors);
  EXPECT_TRUE(findings[0].only_errors);
  EXPECT_EQ(findings[0].from, 250'000'000'000u);
  EXPECT_EQ(findings[0].until, 261'950'000'000u);
  EXPECT_EQ(findings[0].text.find("240 errors: Failed (Shop), all from 08:04:"), 0u)
      << findings[0].text;
  EXPECT_NE(findings[0].text.find("(11.9 s), in process 7."), std::string::npos)
      << findings[0].text;
  // Random errors are not a burst.
  AddCalm(600, 20, 0.5);
  for (double at = Wait(0.2); at < 600 * kSecond; at += Wait(0.2)) Add(kFailed, at);
  findings = Find();
  ASSERT_EQ(findings.size(), 1u) << TextsOf(findings);
  EXPECT_EQ(findings[0].text.find("In that time"), std::string::npos) << findings[0].text;
}

TEST_F(FindingsTest, ConstantShareOfErrorsIsNoChange) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    random_.seed(seed);
    const double share = std::vector<double>{0.002, 0.01, 0.05, 0.3}[seed % 4];
    // The load is five times as high for a while.
    for (double at = Wait(20); at < 200 * kSecond;) {
      AddRequest(at, Duration(3 * kMillisecond, 0.3));
      if (std::bernoulli_distribution(share)(random_)) Add(kFailed, at);
      at += Wait(at > 80 * kSecond && at < 120 * kSecond ? 100 : 20);
    }
    for (const Finding& finding : Find()) {
      EXPECT_NE(finding.topic, Topic::kErrorShare) << finding.text;
    }
  }
}

TEST_F(FindingsTest, ConstantOutcomesAreNoChange) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    random_.seed(seed);
    std::bernoulli_distribution fails(std::vector<double>{0.002, 0.02, 0.3}[seed % 3]);
    for (double at = Wait(20); at < 200 * kSecond;
         at += Wait(at > 80 * kSecond && at < 120 * kSecond ? 100 : 20)) {
      AddRequest(at, Duration(3 * kMillisecond, 0.3), [&](double stop, std::uint64_t activity) {
        Add(fails(random_) ? kStopFailed : kRequestDone, stop, activity);
      });
      Add(kTick, at, 0, fails(random_) ? std::optional(kErrorLevel) : std::nullopt);
    }
    for (const Finding& finding : Find()) {
      EXPECT_NE(finding.topic, Topic::kErrorShare) << finding.text;
    }
  }
}

// Makes traces with 40 steps a second for 10 minutes, and returns the findings about shares of
// errors. `add` adds the events of a step; its second argument is whether the step is between 400 s
// and 450 s, when tests add more errors.
class SharesTest : public FindingsTest {
 protected:
  template <typename AddStep>
  std::vector<Finding> FindShares(AddStep add) {
    for (double at = Wait(40); at < 600 * kSecond; at += Wait(40)) {
      add(at, at >= 400 * kSecond && at < 450 * kSecond);
    }
    std::vector<Finding> found;
    for (Finding& finding : Find()) {
      if (finding.topic == Topic::kErrorShare) found.push_back(std::move(finding));
    }
    return found;
  }
  bool Chance(double part) { return std::bernoulli_distribution(part)(random_); }
  static void ExpectTimes(const Finding& finding) {
    EXPECT_NEAR(static_cast<double>(finding.from), 400 * kSecond, 18 * kSecond);
    EXPECT_NEAR(static_cast<double>(finding.until), 450 * kSecond, 18 * kSecond);
    EXPECT_NE(finding.text.find(" The start and the end of this time are exact to "),
              std::string::npos)
        << finding.text;
  }
};

TEST_F(SharesTest, ErrorsOfAKindAreComparedWithEventsOfTheProvider) {
  for (const auto& [outside, inside, verb] : std::vector<std::tuple<double, double, const char*>>{
           {0.02, 0.2, "frequent"}, {0.2, 0.02, "rare"}}) {
    const std::vector<Finding> findings =
        FindShares([&, o = outside, i = inside](double at, bool is_worse) {
          AddRequest(at, Duration(3 * kMillisecond, 0.3));
          if (Chance(is_worse ? i : o)) Add(kFailed, at);
        });
    ASSERT_EQ(findings.size(), 1u) << TextsOf(findings);
    ExpectTimes(findings[0]);
    EXPECT_EQ(findings[0].provider, std::nullopt);
    EXPECT_TRUE(findings[0].kind);
    EXPECT_EQ(findings[0].text.find(absl::StrCat("Failed (Shop) was ", verb, " from 08:0")), 0u)
        << findings[0].text;
    EXPECT_NE(findings[0].text.find(" % of the events of its provider, instead of the usual "),
              std::string::npos)
        << findings[0].text;
  }
}

TEST_F(SharesTest, ConstantErrorsDoNotHideThoseOfAnotherKind) {
  const std::vector<Finding> findings = FindShares([&](double at, bool is_worse) {
    AddRequest(at, Duration(3 * kMillisecond, 0.3));
    if (Chance(0.5)) Add(kTick, at, 0, kErrorLevel);
    if (Chance(is_worse ? 0.2 : 0.04)) Add(kFailed, at);
  });
  ASSERT_EQ(findings.size(), 1u) << TextsOf(findings);
  ExpectTimes(findings[0]);
  EXPECT_EQ(findings[0].text.find("Failed (Shop) was frequent"), 0u) << findings[0].text;
}

TEST_F(SharesTest, ErrorsAreComparedWithOtherLevelsOfTheSameName) {
  const std::vector<Finding> findings = FindShares([&](double at, bool is_worse) {
    Add(kRequest, at);
    const bool has_failed = Chance(is_worse ? 0.2 : 0.04);
    Add(kTick, at, 0, has_failed ? std::optional(kErrorLevel) : std::nullopt);
  });
  ASSERT_EQ(findings.size(), 1u) << TextsOf(findings);
  ExpectTimes(findings[0]);
  EXPECT_TRUE(findings[0].kind);
  EXPECT_EQ(findings[0].text.find("Errors of Tick (Shop) were frequent from 08:0"), 0u)
      << findings[0].text;
  EXPECT_NE(findings[0].text.find(" % of its events, instead of the usual "), std::string::npos);
}

TEST_F(SharesTest, ActivitiesFailByTheirStopOrByAnEventInside) {
  for (const bool is_stop : {true, false}) {
    SCOPED_TRACE(is_stop);
    const std::vector<Finding> findings = FindShares([&](double at, bool is_worse) {
      const bool has_failed = Chance(is_worse ? 0.2 : 0.04);
      AddRequest(at, kMillisecond, [&](double stop, std::uint64_t activity) {
        if (has_failed && !is_stop) Add(kFailed, at + 1, activity);
        Add(kRequestDone, stop, activity,
            has_failed && is_stop ? std::optional(kErrorLevel) : std::nullopt);
      });
    });
    ASSERT_FALSE(findings.empty());
    ExpectTimes(findings[0]);
    EXPECT_TRUE(findings[0].only_errors);
    EXPECT_EQ(TextsOf(findings).find("Request (Shop) failed often from 08:0") != std::string::npos,
              true)
        << TextsOf(findings);
    EXPECT_NE(TextsOf(findings).find(" % of these activities had an error, instead of the usual "),
              std::string::npos);
    // If the stops are the errors, the changes of the stops and of the provider are part of this
    // finding. Otherwise, the errors are a second finding.
    EXPECT_EQ(findings.size(), is_stop ? 1u : 2u) << TextsOf(findings);
  }
}

TEST_F(SharesTest, ErrorsOfManyKindsAreOneOfTheProvider) {
  std::size_t job = 0;
  const std::vector<Finding> findings = FindShares([&](double at, bool is_worse) {
    AddRequest(at, kMillisecond);
    if (Chance(is_worse ? 0.18 : 0.05)) Add(KindOfJob(job++ % kJobs, 1), at, 0, kErrorLevel);
  });
  ASSERT_EQ(findings.size(), 1u) << TextsOf(findings);
  ExpectTimes(findings[0]);
  EXPECT_EQ(findings[0].provider, 0u);
  EXPECT_EQ(findings[0].text.find("Errors of Shop were frequent from 08:0"), 0u)
      << findings[0].text;
}

TEST_F(FindingsTest, OneSlowActivityIsFound) {
  AddCalm(600, 40, 0.5);
  AddRequest(300 * kSecond, 3 * kSecond);
  const std::vector<Finding> findings = Find();
  ASSERT_EQ(findings.size(), 1u) << TextsOf(findings);
  EXPECT_EQ(findings[0].topic, Topic::kSlow);
  EXPECT_EQ(findings[0].from, 300'000'000'000u);
  EXPECT_EQ(findings[0].until, 303'000'000'000u);
  EXPECT_EQ(findings[0].text.find("One of "), 0u) << findings[0].text;
  EXPECT_NE(findings[0].text.find(" Request (Shop) took 3.00 s, at "), std::string::npos)
      << findings[0].text;
}

TEST_F(FindingsTest, SlowTimeIsFound) {
  AddCalm(300, 40, 0.5);
  for (int i = 0; i < 100; ++i)
    AddRequest((150 + 0.1 * i) * kSecond, Duration(300 * kMillisecond, 0.3));
  const std::vector<Finding> findings = Find();
  ASSERT_EQ(findings.size(), 1u) << TextsOf(findings);
  EXPECT_EQ(findings[0].topic, Topic::kDurations);
  EXPECT_NEAR(static_cast<double>(findings[0].from), 150 * kSecond, 5 * kSecond);
  EXPECT_NEAR(static_cast<double>(findings[0].until), 160 * kSecond, 5 * kSecond);
}

TEST_F(FindingsTest, SlowerAndSlowerIsATrend) {
  for (double at = Wait(20); at < 300 * kSecond; at += Wait(20)) {
    AddRequest(at, Duration(3 * kMillisecond * (1 + at / (100 * kSecond)), 0.5));
  }
  const std::vector<Finding> findings = Find();
  ASSERT_EQ(findings.size(), 1u) << TextsOf(findings);
  EXPECT_EQ(
      findings[0].text.find("Request (Shop) became steadily slower: half took at most about "), 0u)
      << findings[0].text;
}

TEST_F(FindingsTest, LargestChangesOfDurationsAreShownAndTheOthersCounted) {
  // The jobs become slower by different factors. Job 0 has the smallest, and Job 8 the largest.
  for (std::size_t job = 0; job < kJobs; ++job) {
    for (double at = Wait(20); at < 100 * kSecond; at += Wait(20)) {
      const double factor = std::pow(1.5, static_cast<double>(2 + job) * at / (100 * kSecond));
      AddJob(job, at, Duration(3 * kMillisecond * factor, 0.1));
    }
  }
  const std::vector<Finding> findings = Find();
  ASSERT_EQ(findings.size(), 6u) << TextsOf(findings);
  for (std::size_t i = 0; i < findings.size(); ++i) {
    EXPECT_EQ(findings[i].topic, Topic::kDurations);
    EXPECT_EQ(findings[i].text.find("more of this topic") == std::string::npos, i != 5);
  }
  EXPECT_EQ(findings[0].text.find("Job8 (Shop) became steadily slower"), 0u) << findings[0].text;
  EXPECT_NE(findings[5].text.find(" There are 3 more of this topic."), std::string::npos)
      << findings[5].text;
}

TEST_F(FindingsTest, ChangedRateOfSeveralKindsIsOneFinding) {
  AddCalm(300, 20, 0.3);
  for (double at = Wait(20); at < 300 * kSecond; at += Wait(20)) Add(kTick, at);
  for (double at = 200 * kSecond; at < 220 * kSecond; at += Wait(200)) {
    AddRequest(at, Duration(3 * kMillisecond, 0.3));
    Add(kTick, at);
  }
  const std::vector<Finding> findings = Find();
  ASSERT_EQ(findings.size(), 1u) << TextsOf(findings);
  EXPECT_EQ(findings[0].topic, Topic::kRates);
  EXPECT_NE(findings[0].text.find("was frequent from "), std::string::npos) << findings[0].text;
  EXPECT_NE(findings[0].text.find(" (Shop) changed at the same time."), std::string::npos)
      << findings[0].text;
}

TEST_F(FindingsTest, LowerRateIsFoundUnlessEventsWereLost) {
  const auto add = [this] {
    for (double at = Wait(50); at < 300 * kSecond; at += Wait(50)) {
      if (at < 100 * kSecond || at > 130 * kSecond || requests() % 5 == 0) {
        AddRequest(at, Duration(3 * kMillisecond, 0.3));
      } else {
        SkipRequest();
      }
    }
  };
  add();
  std::vector<Finding> findings = Find();
  ASSERT_EQ(findings.size(), 1u) << TextsOf(findings);
  EXPECT_NE(findings[0].text.find("Request (Shop) was rare from "), std::string::npos)
      << findings[0].text;
  add();
  findings = Find(115'000'000'000);
  ASSERT_EQ(findings.size(), 1u) << TextsOf(findings);
  EXPECT_EQ(findings[0].topic, Topic::kLosses);
}

TEST_F(FindingsTest, SilenceOfARhythmIsFoundUnlessEventsWereLost) {
  const auto add = [this] {
    for (int i = 0; i < 3000; ++i) {
      if (i < 1500 || i > 1530) Add(kTick, 100 * kMillisecond * i);
    }
  };
  add();
  std::vector<Finding> findings = Find();
  ASSERT_EQ(findings.size(), 1u) << TextsOf(findings);
  EXPECT_EQ(findings[0].topic, Topic::kSilence);
  EXPECT_EQ(findings[0].from, 149'900'000'000u);
  EXPECT_EQ(findings[0].until, 153'100'000'000u);
  add();
  findings = Find(152'000'000'000);
  ASSERT_EQ(findings.size(), 1u) << TextsOf(findings);
  EXPECT_EQ(findings[0].topic, Topic::kLosses);
  EXPECT_EQ(findings[0].text.find("100 events were lost from "), 0u) << findings[0].text;
}

TEST_F(FindingsTest, ServiceThatBeginsAgainIsFound) {
  AddCalm(600, 20, 0.5);
  AddProcess(100, "ExistingProcess", 0);
  AddProcess(100, "ProcessExit", 200 * kSecond);
  AddProcess(900, "ProcessCreate", 202.5 * kSecond);
  AddProcess(900, "ProcessExit", 400 * kSecond);
  AddProcess(901, "ProcessCreate", 401 * kSecond);
  EXPECT_EQ(
      TextsOf(Find()),
      "Process 100 web ended at 08:03:20.000, and began again as process 900 2.50 s later.\n"
      "Process 900 web ended at 08:06:40.000, and began again as process 901 1.00 s later.\n");
}

TEST_F(FindingsTest, StartIsTheRestartOfOneProcess) {
  AddCalm(600, 20, 0.5);
  AddProcess(100, "ExistingProcess", 0);
  AddProcess(100, "ProcessExit", 200 * kSecond);
  AddProcess(101, "ExistingProcess", 201 * kSecond);
  AddProcess(101, "ProcessExit", 300 * kSecond);
  AddProcess(900, "ProcessCreate", 302.5 * kSecond);
  EXPECT_EQ(TextsOf(Find()),
            "Process 101 web ended at 08:05:00.000, and began again as process 900 2.50 s later.\n"
            "Process 100 web ended at 08:03:20.000.\n");
}

TEST_F(FindingsTest, LaterProcessOfTheSameNameIsNoRestart) {
  const std::string ended = "Process 100 web ended at 08:03:20.000.\n";
  const auto add = [this](const char* first, double begin) {
    AddCalm(600, 20, 0.5);
    AddProcess(100, first, begin);
  };
  // Another process with the same name ran at the same time.
  add("ExistingProcess", 0);
  AddProcess(101, "ExistingProcess", 0);
  AddProcess(100, "ProcessExit", 200 * kSecond);
  AddProcess(900, "ProcessCreate", 300 * kSecond);
  EXPECT_EQ(TextsOf(Find()), ended);
  // The process that ended had begun during the recording, so it may be a command of a script.
  add("ProcessCreate", 10 * kSecond);
  AddProcess(100, "ProcessExit", 200 * kSecond);
  AddProcess(900, "ProcessCreate", 300 * kSecond);
  EXPECT_EQ(TextsOf(Find()), ended);
  // The later process ended soon.
  add("ExistingProcess", 0);
  AddProcess(100, "ProcessExit", 200 * kSecond);
  AddProcess(900, "ProcessCreate", 300 * kSecond);
  AddProcess(900, "ProcessExit", 301 * kSecond);
  EXPECT_EQ(TextsOf(Find()), ended +
                                 "1 short-lived process ended, after less than 60.0 s, a tenth of "
                                 "the recording: web.\n");
  // The later process has another name after it has executed a program.
  add("ExistingProcess", 0);
  AddProcess(100, "ProcessExit", 200 * kSecond);
  AddProcess(900, "ProcessCreate", 300 * kSecond);
  AddProcess(900, "ProcessExit", 301 * kSecond);
  AddProcess(900, "ProcessCreate", 301 * kSecond, u"rm");
  EXPECT_EQ(TextsOf(Find()), ended);
  // The two events of the execution have the same time, and come in any order.
  add("ExistingProcess", 0);
  AddProcess(100, "ProcessExit", 200 * kSecond);
  AddProcess(900, "ProcessCreate", 300 * kSecond);
  AddProcess(900, "ProcessCreate", 301 * kSecond, u"rm");
  AddProcess(900, "ProcessExit", 301 * kSecond);
  EXPECT_EQ(TextsOf(Find()), ended);
}

TEST_F(FindingsTest, HostsThatAreNotDistinguishedHaveNoRestart) {
  const auto find = [this](std::size_t hosts) {
    AddCalm(600, 20, 0.5);
    for (std::size_t i = 0; i < hosts; ++i) {
      AddProcess(i, "ExistingProcess", 0, u"other", absl::StrCat("host", i));
    }
    AddProcess(1000, "ExistingProcess", 1, u"web", "a");
    AddProcess(1000, "ProcessExit", 200 * kSecond, u"web", "a");
    AddProcess(1001, "ProcessCreate", 201 * kSecond, u"web", hosts == 1 ? "a" : "b");
    return TextsOf(Find());
  };
  EXPECT_NE(find(1).find(", and began again as process 1001 1.00 s later."), std::string::npos);
  const std::string texts = find(trace::Hosts::kMax);
  EXPECT_NE(texts.find("Process 1000"), std::string::npos) << texts;
  EXPECT_EQ(texts.find("began again"), std::string::npos) << texts;
}

TEST_F(FindingsTest, ShortLivesAreOneSentence) {
  AddCalm(600, 20, 0.5);
  for (std::uint64_t i = 0; i < 50; ++i) {
    const double at = (10 + 10 * static_cast<double>(i)) * kSecond;
    AddProcess(1000 + i, "ProcessCreate", at, i < 30 ? u"rm" : u"mv");
    AddProcess(1000 + i, "ProcessExit", at + kSecond);
  }
  const std::vector<Finding> findings = Find();
  EXPECT_EQ(
      TextsOf(findings),
      "50 short-lived processes ended, each after less than 60.0 s, a tenth of the recording: "
      "30 of them rm.\n");
  EXPECT_EQ(findings[0].from, 10'000'000'000u);
  EXPECT_EQ(findings[0].until, 501'000'000'000u);
}

TEST_F(FindingsTest, ManyLivesAreCounted) {
  AddCalm(600, 20, 0.5);
  AddProcess(1, "ExistingProcess", 0);
  for (std::uint64_t i = 0; i < kMaxLives + 4; ++i) {
    const double at = (10 + 0.01 * static_cast<double>(i)) * kSecond;
    AddProcess(1000 + i, "ProcessCreate", at, u"rm");
    AddProcess(1000 + i, "ProcessExit", at + kMillisecond);
  }
  // The report compares only the first kMaxLives processes, so it does not know whether process 2
  // replaces process 1.
  AddProcess(1, "ProcessExit", 200 * kSecond);
  AddProcess(2, "ProcessCreate", 201 * kSecond);
  EXPECT_EQ(TextsOf(Find()),
            "Process 1 web ended at 08:03:20.000.\n"
            "9,999 short-lived processes ended, each after less than 60.0 s, a tenth of the "
            "recording: rm. 5 more processes ended; this page compares only the first 10,000 "
            "processes.\n");
}

TEST_F(FindingsTest, StartOfAProgramIsNoSilence) {
  for (int i = 0; i < 500; ++i) Add(kTick, kMillisecond * i);
  AddCalm(100, 20, 0.5);
  EXPECT_EQ(TextsOf(Find()), "");
}

}  // namespace
}  // namespace tools::report
