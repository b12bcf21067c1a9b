// Tests the sums of `nettrace report`, and how they are shown. tests/programs compares whole pages
// with `nettrace dump`.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nettrace/sink.h"
#include "nettrace/writer.h"
#include "tools/nettrace/report/even_sample.h"
#include "tools/nettrace/report/html.h"
#include "tools/nettrace/report/report_model.h"
#include "tools/nettrace/report/report_page.h"
#include "tools/nettrace/report/single_events.h"
#include "tools/nettrace/report/time_buckets.h"

namespace tools::report {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

std::vector<std::uint64_t> Counts(const TimeBuckets& buckets, std::size_t series) {
  const auto counts = buckets.counts(series);
  return {counts.begin(), counts.end()};
}

TEST(TimeBucketsTest, BucketsDoubleWhenTheyDoNotSuffice) {
  TimeBuckets buckets(4);
  buckets.AddSeries();
  EXPECT_EQ(buckets.size(), 0u);
  for (const std::uint64_t ticks : {100, 101, 102, 103}) buckets.Add(0, ticks, 1);
  EXPECT_EQ(buckets.width(), 1u);
  EXPECT_EQ(buckets.start(), 100u);
  EXPECT_EQ(Counts(buckets, 0), (std::vector<std::uint64_t>{1, 1, 1, 1}));
  buckets.Add(0, 104, 5);
  EXPECT_EQ(buckets.width(), 2u);
  EXPECT_EQ(buckets.start(), 100u);
  EXPECT_EQ(Counts(buckets, 0), (std::vector<std::uint64_t>{2, 2, 5}));
}

TEST(TimeBucketsTest, TimesMayGoBack) {
  TimeBuckets buckets(4);
  buckets.AddSeries();
  buckets.Add(0, 1000, 1);
  buckets.Add(0, 998, 2);
  EXPECT_EQ(buckets.start(), 998u);
  EXPECT_EQ(Counts(buckets, 0), (std::vector<std::uint64_t>{2, 0, 1}));
  buckets.Add(0, 0, 4);
  EXPECT_EQ(buckets.width(), 256u);
  EXPECT_EQ(Counts(buckets, 0), (std::vector<std::uint64_t>{4, 0, 0, 3}));
}

TEST(TimeBucketsTest, EveryTimeHasABucket) {
  TimeBuckets buckets(1024);
  buckets.AddSeries();
  for (const std::uint64_t ticks : {kMax, std::uint64_t{0}, kMax / 2}) buckets.Add(0, ticks, 1);
  EXPECT_EQ(buckets.size(), 1024u);
  EXPECT_EQ(buckets.counts(0)[0], 1u);
  EXPECT_EQ(buckets.counts(0)[511], 1u);
  EXPECT_EQ(buckets.counts(0)[1023], 1u);
}

TEST(TimeBucketsTest, SumsOfEachSeriesAreExact) {
  std::mt19937_64 random(1);
  TimeBuckets buckets(64);
  std::vector<std::uint64_t> sums;
  for (int i = 0; i < 20000; ++i) {
    if (i % 5000 == 0) {
      buckets.AddSeries();
      sums.push_back(0);
    }
    const std::size_t series = random() % sums.size();
    const std::uint64_t count = random() % 10;
    buckets.Add(series, random() >> (random() % 64), count);
    sums[series] += count;
  }
  for (std::size_t series = 0; series < sums.size(); ++series) {
    const auto counts = buckets.counts(series);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}), sums[series]);
  }
}

TEST(EvenSampleTest, KeepsAllAndThenEveryNth) {
  EvenSample<int> sample(4, 1000);
  const auto offer = [&sample](int thing, std::size_t size) {
    if (sample.Next()) sample.Add(thing, size);
  };
  const auto kept = [&sample] {
    std::vector<int> things;
    sample.ForEach([&things](int thing) { things.push_back(thing); });
    return things;
  };
  for (int i = 0; i < 4; ++i) offer(i, 1);
  EXPECT_EQ(kept(), (std::vector<int>{0, 1, 2, 3}));
  for (int i = 4; i < 20; ++i) offer(i, 1);
  EXPECT_EQ(kept(), (std::vector<int>{0, 8, 16}));
  EXPECT_EQ(sample.every(), 8u);
  EXPECT_EQ(sample.offered(), 20u);
}

TEST(EvenSampleTest, SizeBoundsItToo) {
  EvenSample<int> sample(1000, 10);
  for (int i = 0; i < 10; ++i) {
    if (sample.Next()) sample.Add(i, 4);
  }
  EXPECT_LE(sample.count(), 2u);
  EXPECT_GE(sample.count(), 1u);
}

TEST(ReportHtmlTest, TextOfFilesIsEscaped) {
  EXPECT_EQ(HtmlText("<a href='\"&\">\x1b\xff"),
            "&lt;a href=&#39;&quot;&amp;&quot;&gt;\\u001b\xEF\xBF\xBD");
  EXPECT_EQ(ForScript("{\"a\":\"</script>&\"}"), "{\"a\":\"\\u003c/script\\u003e\\u0026\"}");
  HtmlTable table("id", "<caption>", {{"A"}, {"B", HtmlTable::Column::kNumber}});
  table.Text("<td>");
  table.Number(1234567);
  const std::string html = std::move(table).Finish();
  EXPECT_NE(html.find("<caption>&lt;caption&gt;</caption>"), html.npos);
  EXPECT_NE(html.find("<tr><th scope=\"row\">&lt;td&gt;</th><td class=\"number\" "
                      "data-value=\"1234567\">1,234,567</td></tr>"),
            html.npos)
      << html;
}

TEST(ReportHtmlTest, LongNamesEndBetweenCharacters) {
  EXPECT_EQ(ShortName(std::string(kMaxName, 'x')), std::string(kMaxName, 'x'));
  std::string text = "x";
  for (std::size_t i = 0; i < kMaxName; ++i) text += "ö";
  EXPECT_EQ(ShortName(text), text.substr(0, kMaxName - 1) + "…");
}

class ReportModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto sink = std::make_unique<nettrace::MemorySink>();
    const nettrace::MemorySink* const memory = sink.get();
    nettrace::TraceInfo info;
    info.sync_time = absl::FromUnixSeconds(1'800'000'000);
    auto writer = nettrace::Writer::Create(std::move(sink), info);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Finish().ok());
    auto reader = nettrace::Reader::Open(std::make_unique<nettrace::MemorySource>(
        std::vector<std::byte>(memory->bytes().begin(), memory->bytes().end())));
    ASSERT_TRUE(reader.ok());
    reader_ = *std::move(reader);
    Restart({});
  }

  void Restart(const Window& window) {
    model_ = std::make_unique<ReportModel>(*reader_, window, Limits());
  }

  // Adds an event to the first pass, and remembers the event for the second pass.
  void Add(const std::string& name, std::uint64_t ticks, std::uint8_t opcode = 0) {
    metadata_.provider = "P";
    metadata_.name = name;
    metadata_.opcode = opcode;
    added_.push_back({metadata_, thread_, labels_, ticks});
    model_->OnEvent(EventOf(added_.back()), names_);
    model_->OnRowsEnd();
  }

  struct Added {
    nettrace::EventMetadata metadata;
    nettrace::ThreadInfo thread;
    nettrace::Labels labels;
    std::uint64_t ticks;
  };
  static nettrace::Event EventOf(const Added& added) {
    nettrace::Event event;
    event.metadata = &added.metadata;
    event.thread = event.capture_thread = &added.thread;
    event.labels = &added.labels;
    event.timestamp = added.ticks;
    return event;
  }

  std::string Page(const ReportFacts& facts) const {
    nettrace::MemorySink sink;
    EXPECT_TRUE(WriteReportPage(*reader_, *model_, facts, &sink).ok());
    return {reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size()};
  }
  // Returns the number of notices about services with unknown losses.
  static std::size_t CountNotices(const std::string& page) {
    constexpr std::string_view kBegin = "<p class=\"notice\">Losses of ";
    std::size_t count = 0;
    for (std::size_t at = page.find(kBegin); at != page.npos; at = page.find(kBegin, at + 1)) {
      ++count;
    }
    return count;
  }

  // Runs the second pass. Returns the times of the selected events.
  std::vector<std::uint64_t> Select(std::size_t max_bytes) {
    if (model_->ends() == 0) model_->EndTotals();  // Tests with AddInterest have called it.
    model_->BeginSelection(max_bytes, [](const nettrace::Event&) { return "{}"; });
    for (const Added& added : added_) {
      model_->Select(EventOf(added), names_);
      model_->OnRowsEnd();
    }
    model_->EndSelection();
    std::vector<std::uint64_t> ticks;
    for (const SingleEvent* event : model_->single_events().InOrder())
      ticks.push_back(event->ticks);
    return ticks;
  }

  std::unique_ptr<nettrace::Reader> reader_;
  std::unique_ptr<ReportModel> model_;
  trace::ProcessNames names_;
  nettrace::EventMetadata metadata_;
  nettrace::ThreadInfo thread_;
  nettrace::Labels labels_;
  std::vector<Added> added_;
};

TEST_F(ReportModelTest, RowsAreBoundedAndSumsAreNot) {
  const std::uint64_t kMany = Limits().rows + 100;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    thread_.process_id = thread_.thread_id = i;
    Add("E" + std::to_string(i), i);
  }
  const auto check = [](const auto& rows) {
    ASSERT_EQ(rows.size(), Limits().rows + 1);
    EXPECT_EQ(rows.front().events, 1u);
    EXPECT_EQ(rows.back().events, 100u);
    EXPECT_EQ(rows.back().first, Limits().rows);
    EXPECT_EQ(rows.back().last, kMany - 1);
    EXPECT_EQ(rows.back().name, "(others)");
  };
  check(model_->kinds());
  check(model_->processes());
  check(model_->threads());
  EXPECT_EQ(model_->all().events, kMany);
}

TEST_F(ReportModelTest, StopEndsTheLatestStartOfItsActivity) {
  Add("WithoutActivity", 1, 1);
  labels_.activity_id.emplace();
  Add("Outer", 10, 1);
  Add("Inner", 20, 1);
  Add("InnerDone", 25, 2);
  Add("OuterDone", 110, 2);
  Add("Alone", 120, 2);
  Add("Outer", 130, 1);
  ASSERT_EQ(model_->durations().size(), 2u);
  const Durations& outer = model_->durations()[0];
  EXPECT_EQ(model_->kinds()[*outer.kind].name, "Outer");
  EXPECT_EQ(outer.begun, 2u);
  EXPECT_EQ(outer.histogram.count(), 1u);
  EXPECT_EQ(outer.histogram.max(), 100u);
  EXPECT_EQ(model_->durations()[1].histogram.max(), 5u);
  EXPECT_EQ(model_->ends_alone(), 1u);
  Select(100000);
  std::vector<std::uint64_t> begins;
  for (const CompleteActivity& complete : model_->complete()) {
    begins.push_back(complete.activity.begin);
  }
  EXPECT_EQ(begins, (std::vector<std::uint64_t>{10, 20}));
}

TEST_F(ReportModelTest, OpenActivitiesAreBounded) {
  labels_.activity_id.emplace();
  for (std::uint64_t i = 0; i <= trace::kMaxOpenActivities; ++i) Add("E", i, 1);
  Add("Done", trace::kMaxOpenActivities + 10,
      2);  // Ends the activity that began after the others were forgotten.
  Add("Done", trace::kMaxOpenActivities + 20, 2);
  EXPECT_EQ(model_->durations()[0].begun, trace::kMaxOpenActivities + 1);
  EXPECT_EQ(model_->durations()[0].histogram.count(), 1u);
  EXPECT_EQ(model_->ends_alone(), 1u);
}

TEST_F(ReportModelTest, TheWindowChoosesSingleEventsAndNoSums) {
  Restart({reader_->TimeOf(10), reader_->TimeOf(20)});
  for (std::uint64_t ticks = 0; ticks < 30; ++ticks) Add("E", ticks);
  EXPECT_EQ(model_->all().events, 30u);
  const std::vector<std::uint64_t> ticks = Select(100000);
  ASSERT_EQ(ticks.size(), 10u);
  EXPECT_EQ(ticks.front(), 10u);
  EXPECT_EQ(ticks.back(), 19u);
  EXPECT_EQ(model_->in_window(), 10u);
}

TEST_F(ReportModelTest, RareKindsAreCompleteAndOthersAreSampled) {
  for (std::uint64_t i = 0; i < 2000; ++i) Add(i % 100 == 7 ? "Rare" : "Frequent", i);
  const std::size_t size = SingleEvents::kRowBytes + 2;
  const std::vector<std::uint64_t> ticks = Select(200 * size);
  EXPECT_LE(ticks.size(), 200u);
  EXPECT_GE(ticks.size(), 100u);
  EXPECT_EQ(std::count_if(ticks.begin(), ticks.end(), [](auto t) { return t % 100 == 7; }), 20);
  const SingleEvents::Groups& groups = model_->single_events().groups(Reason::kSample);
  EXPECT_EQ(groups.at(1).every, 1u);
  EXPECT_EQ(groups.at(0).every, 16u);
  EXPECT_LE(model_->single_events().bytes(), 200 * size);
}

TEST_F(ReportModelTest, ErrorsAreCompleteWithinTheirShare) {
  for (std::uint64_t i = 0; i < 2000; ++i) {
    metadata_.level = i % 40 == 3 ? 2 : 4;
    Add("E", i);
  }
  const std::size_t size = SingleEvents::kRowBytes + 2;
  const std::vector<std::uint64_t> ticks = Select(150 * size);
  EXPECT_EQ(std::count_if(ticks.begin(), ticks.end(), [](auto t) { return t % 40 == 3; }), 50);
  EXPECT_EQ(model_->kinds()[0].errors(), 50u);
  EXPECT_LE(ticks.size(), 150u);
}

TEST_F(ReportModelTest, ErrorsDisplaceTheSampleDownToItsFloor) {
  for (std::uint64_t i = 0; i < 3000; ++i) {
    metadata_.level = i % 3 == 0 ? 2 : 4;
    Add(i % 3 == 0 ? "Failed" : "E", i);
  }
  const std::size_t size = SingleEvents::kRowBytes + 2;
  // 1000 errors need 80 % of the bytes.
  const std::vector<std::uint64_t> ticks = Select(1250 * size);
  EXPECT_EQ(std::count_if(ticks.begin(), ticks.end(), [](auto t) { return t % 3 == 0; }), 1000);
  EXPECT_GE(ticks.size(), 1125u);
  EXPECT_LE(ticks.size(), 1250u);
  // Each single event states whether it is an error.
  for (const SingleEvent* event : model_->single_events().InOrder()) {
    EXPECT_EQ(event->is_error, event->ticks % 3 == 0);
  }
}

TEST_F(ReportModelTest, SampleKeepsItsFloorBesideErrors) {
  for (std::uint64_t i = 0; i < 6000; ++i) {
    metadata_.level = i % 2 == 0 ? 2 : 4;
    Add(i % 2 == 0 ? "Failed" : "E", i);
  }
  const std::vector<std::uint64_t> ticks = Select(1000 * (SingleEvents::kRowBytes + 2));
  const auto samples = std::count_if(ticks.begin(), ticks.end(), [](auto t) { return t % 2 == 1; });
  // The sample keeps 5 % of the bytes, which are 50 events: 25 errors and 25 others.
  EXPECT_GE(samples, 25);
  EXPECT_GE(ticks.size() - static_cast<std::size_t>(samples), 400u);
}

TEST_F(ReportModelTest, EventsAroundEndsOfAnInterestAreComplete) {
  for (std::uint64_t i = 0; i < 20000; ++i) {
    metadata_.level = i % 1000 == 999 ? 2 : 4;
    Add("E", i);
  }
  model_->EndTotals();
  model_->AddInterest(5000, 9000, true);
  model_->AddInterest(9000, 9010, false);
  EXPECT_EQ(model_->ends(), 3u);
  const std::size_t size = SingleEvents::kRowBytes + 2;
  const std::vector<std::uint64_t> ticks = Select(1000 * size);
  const std::set<std::uint64_t> kept(ticks.begin(), ticks.end());
  EXPECT_EQ(kept.size(), ticks.size());
  for (const std::uint64_t end : {5000, 9000, 9010}) {
    for (std::uint64_t i = end - kNeighbors + 1; i <= end + kNeighbors; ++i) {
      EXPECT_TRUE(kept.contains(i)) << i;
    }
  }
  EXPECT_FALSE(kept.contains(5000 + 3 * kNeighbors) && kept.contains(5001 + 3 * kNeighbors));
  // The sample covers the whole time.
  EXPECT_LT(*kept.begin(), 200u);
  EXPECT_GT(*kept.rbegin(), 19800u);
  EXPECT_LE(model_->single_events().bytes(), 1000 * size);
}

TEST_F(ReportModelTest, EventsAroundTheLastEndAreComplete) {
  for (std::uint64_t i = 0; i < 5000; ++i) Add("E", i);
  model_->EndTotals();
  model_->AddInterest(0, 4999, false);
  const std::vector<std::uint64_t> ticks = Select(200 * (SingleEvents::kRowBytes + 2));
  const std::set<std::uint64_t> kept(ticks.begin(), ticks.end());
  for (std::uint64_t i = 0; i < kNeighbors; ++i) {
    EXPECT_TRUE(kept.contains(i)) << i;
    EXPECT_TRUE(kept.contains(4999 - i)) << i;
  }
}

TEST_F(ReportModelTest, SlowestActivitiesKeepTheirEvents) {
  nettrace::Guid id = {};
  const auto activity = [&](std::uint8_t number, std::uint64_t begin, std::uint64_t end) {
    id.fill(std::byte{number});
    labels_.activity_id = id;
    thread_.thread_id = number;
    Add("Request", begin, 1);
    for (std::uint64_t i = begin + 1; i < end; ++i) {
      // Every third event has no activity id. Its thread shows that it belongs to the activity.
      labels_.activity_id = i % 3 == 0 ? std::nullopt : std::optional(id);
      Add("Step", i);
    }
    labels_.activity_id = id;
    Add("Done", end, 2);
  };
  for (std::uint8_t i = 0; i < 100; ++i) activity(1, i * 100, i * 100 + 10);
  activity(2, 20000, 20050);
  // An event of activity 3, on another thread, names activity 2 as its related activity.
  labels_.related_activity_id = id;
  id.fill(std::byte{3});
  labels_.activity_id = id;
  thread_.thread_id = 9;
  added_.insert(added_.end() - 20, {metadata_, thread_, labels_, 20031});
  for (std::uint8_t i = 0; i < 100; ++i) activity(4, 30000 + i * 100, 30000 + i * 100 + 10);
  const std::vector<std::uint64_t> ticks = Select(400 * (SingleEvents::kRowBytes + 2));
  ASSERT_FALSE(model_->complete().empty());
  EXPECT_EQ(model_->complete()[0].activity.begin, 20000u);
  EXPECT_EQ(model_->complete()[0].events, 52u);
  EXPECT_EQ(model_->single_events().groups(Reason::kActivity).at(0).every, 1u);
  EXPECT_EQ(std::count_if(ticks.begin(), ticks.end(), [](auto t) { return t / 1000 == 20; }), 52);
  EXPECT_LE(ticks.size(), 400u);
}

TEST_F(ReportModelTest, TypicalActivityIsNearTheMedianWithAllEvents) {
  std::uint64_t at = 0;
  for (std::uint64_t i = 1; i <= 500; ++i) {
    nettrace::Guid id = {};
    id[0] = static_cast<std::byte>(i);
    id[1] = static_cast<std::byte>(i >> 8);
    labels_.activity_id = id;
    // The durations are 1 to 500 in a mixed order.
    const std::uint64_t duration = i * 211 % 503;
    Add("Request", at, 1);
    Add("Step", at + duration / 2);
    Add("Done", at + duration, 2);
    at += 1000;
  }
  const std::vector<std::uint64_t> ticks = Select(100 * (SingleEvents::kRowBytes + 2));
  ASSERT_EQ(model_->complete().size(), kSlowest + 1);
  const CompleteActivity& typical = model_->complete()[1];  // follows the slowest activity
  ASSERT_TRUE(typical.is_typical);
  EXPECT_NEAR(static_cast<double>(typical.activity.ticks()), 250, 500.0 / 32);
  EXPECT_EQ(typical.events, 3u);
  ASSERT_EQ(typical.nodes.size(), 1u);
  EXPECT_EQ(typical.nodes[0].self, typical.activity.ticks());
  for (const std::uint64_t time :
       {typical.activity.begin, typical.activity.begin + typical.activity.ticks() / 2,
        typical.activity.end}) {
    EXPECT_TRUE(std::binary_search(ticks.begin(), ticks.end(), time)) << time;
  }
  const auto typicals = std::count_if(model_->complete().begin(), model_->complete().end(),
                                      [](const CompleteActivity& one) { return one.is_typical; });
  EXPECT_EQ(typicals, 1);
}

TEST_F(ReportModelTest, TreesTogetherAreBoundedAndTheSlowestStay) {
  model_ = std::make_unique<ReportModel>(*reader_, Window(), Limits{.tree_nodes = 12});
  nettrace::Guid id = {};
  const auto request = [&](std::uint8_t number, std::uint64_t begin, std::uint64_t end) {
    id.fill(std::byte{number});
    const nettrace::Guid outer = id;
    labels_.activity_id = outer;
    Add("Request", begin, 1);
    for (std::uint64_t i = 0; i < 5; ++i) {
      id[1] = static_cast<std::byte>(200 + i);
      labels_.activity_id = id;
      labels_.related_activity_id = outer;
      Add("Call", begin + 1 + 2 * i, 1);
      labels_.related_activity_id.reset();
      Add("CallDone", begin + 2 + 2 * i, 2);
    }
    labels_.activity_id = outer;
    Add("RequestDone", end, 2);
  };
  request(1, 0, 500);
  request(2, 1000, 1900);
  request(3, 2000, 2300);
  Select(1000000);
  ASSERT_GE(model_->complete().size(), 3u);
  const CompleteActivity& slowest = model_->complete()[0];
  EXPECT_EQ(slowest.activity.begin, 1000u);
  ASSERT_EQ(slowest.nodes.size(), 6u);
  EXPECT_EQ(slowest.nodes[0].self, 895u);
  EXPECT_EQ(slowest.left_out, 0u);
  std::size_t nodes = 0;
  for (const CompleteActivity& complete : model_->complete()) nodes += complete.nodes.size();
  EXPECT_LE(nodes, 12u);
  const CompleteActivity& last = model_->complete().back();
  EXPECT_TRUE(last.nodes.empty());
}

TEST_F(ReportModelTest, EventsNextToLossesAreSelected) {
  for (std::uint64_t i = 0; i < 3000; ++i) {
    Add("E", i);
    if (i == 1500) model_->OnLoss(thread_, 7, i);
  }
  const std::vector<std::uint64_t> ticks = Select(400 * (SingleEvents::kRowBytes + 2));
  for (std::uint64_t i = 1500 - kNeighbors + 1; i <= 1500 + kNeighbors; ++i) {
    EXPECT_TRUE(std::binary_search(ticks.begin(), ticks.end(), i)) << i;
  }
}

TEST_F(ReportModelTest, NamesThatNeedTooManyBytesShareARow) {
  model_ = std::make_unique<ReportModel>(*reader_, Window(), Limits{.name_bytes = 1000});
  // The page writes '<' as \u003c, which is 6 bytes, so two of these names exceed name_bytes.
  for (std::uint64_t i = 0; i < 30; ++i) Add(std::string(90, '<') + std::to_string(i), i);
  ASSERT_EQ(model_->kinds().size(), 2u);
  EXPECT_EQ(model_->kinds()[1].name, "(others)");
  EXPECT_EQ(model_->kinds()[1].events, 29u);
}

TEST(SingleEventsTest, LeastSlowActivitiesAreRemovedWhole) {
  SingleEvents events(1000);
  const auto add = [&events](std::size_t rank, std::uint64_t ticks) {
    if (events.Wants(Reason::kActivity, rank))
      events.Add(Reason::kActivity, rank, {ticks, 0, 0, false, "{}"});
  };
  for (std::uint64_t ticks = 0; ticks < 9; ++ticks) add(ticks % 3, ticks);
  for (std::uint64_t ticks = 9; ticks < 20; ++ticks) add(0, ticks);
  EXPECT_EQ(events.groups(Reason::kActivity).at(2).every, 0u);
  EXPECT_TRUE(events.groups(Reason::kActivity).at(2).events.empty());
  EXPECT_LE(events.bytes(), 1000u);
  EXPECT_EQ(events.InOrder().size(), events.count());
}

TEST_F(ReportModelTest, LossesAreAtTheirTimes) {
  thread_.name = "CPU 1";
  Add("E", 100);
  model_->OnLoss(thread_, 0, 5000);  // No loss.
  model_->OnLoss(thread_, 7, 90);
  EXPECT_EQ(model_->lost(), 7u);
  EXPECT_EQ(model_->start(), 90u);
  EXPECT_EQ(model_->end(), 100u);
  EXPECT_EQ(model_->over_time().counts(0)[0], 7u);
  ASSERT_EQ(model_->losses().size(), 1u);
  EXPECT_EQ(model_->losses()[0].of, "CPU 1");
}

TEST_F(ReportModelTest, LossesOfRingsHaveNoCpu) {
  model_->EndTotals();
  ReportFacts facts;
  trace::AccountEvent lost;
  lost.tracepoint = "ring:7/8";
  lost.count = 5;
  facts.account.Add(lost);
  lost.cpu = trace::kRingCpu;
  facts.account.Add(lost);
  const std::string page = Page(facts);
  EXPECT_NE(page.find("<td>0</td>"), page.npos);
  EXPECT_NE(page.find("<td>none (ring)</td>"), page.npos);
  EXPECT_EQ(page.find("4294967295"), page.npos);
}

// The texts come from a file, which may contain any text, so the page must escape them.
TEST_F(ReportModelTest, NoticeHasServicesWithUnknownLosses) {
  model_->EndTotals();
  trace::AccountEvent unknown;
  unknown.kind = trace::AccountEvent::Kind::kServiceUnknown;
  unknown.tracepoint = "ring:7<b>";
  unknown.since = 1'500'000'000;
  unknown.until = 2'250'000'000;
  unknown.reason = "</p><script>alert('\"&\"')</script>\x1b\xff";
  ReportFacts facts;
  facts.account.Add(unknown);
  const std::string text =
      "ring:7&lt;b&gt; from 1970-01-01T00:00:01.500000000Z to 1970-01-01T00:00:02.250000000Z: "
      "&lt;/p&gt;&lt;script&gt;alert(&#39;&quot;&amp;&quot;&#39;)&lt;/script&gt;"
      "\\u001b\xEF\xBF\xBD.</p>\n";
  const std::string page = Page(facts);
  const std::string notice =
      "<p class=\"notice\">Losses of 1 service are unknown, the first: " + text;
  EXPECT_NE(page.find(notice), page.npos) << page.substr(page.find("class=\"notice\""), 1000);
  EXPECT_EQ(CountNotices(page), 1U);
  EXPECT_EQ(page.find("ring:7<b>"), page.npos);
  EXPECT_EQ(page.find("<script>alert"), page.npos);

  // All services are counted, also those that the summary leaves out.
  unknown.tracepoint = "ring:8";
  for (std::size_t i = 0; i < trace::AccountSummary::kMaxUnknownServices; ++i) {
    facts.account.Add(unknown);
  }
  const std::string all = Page(facts);
  EXPECT_NE(all.find("Losses of 1001 services are unknown, the first: " + text), all.npos);
  EXPECT_EQ(CountNotices(all), 1U);
  EXPECT_EQ(all.find("ring:8"), all.npos);
}

TEST_F(ReportModelTest, NoNoticeIfNoServiceHasUnknownLosses) {
  model_->EndTotals();
  EXPECT_EQ(CountNotices(Page({})), 0U);
}

}  // namespace
}  // namespace tools::report
