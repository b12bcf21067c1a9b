// Tests the sums of `nettrace report`, and how they are shown. tests/programs compares whole pages
// with `nettrace dump`.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "nettrace/sink.h"
#include "nettrace/writer.h"
#include "tools/nettrace/report/even_sample.h"
#include "tools/nettrace/report/html.h"
#include "tools/nettrace/report/report_model.h"
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
    model_ = std::make_unique<ReportModel>(*reader_, window,
                                           [](const nettrace::Event&) { return "{}"; });
  }

  void Add(const std::string& name, std::uint64_t ticks, std::uint8_t opcode = 0) {
    metadata_.provider = "P";
    metadata_.name = name;
    metadata_.opcode = opcode;
    nettrace::Event event;
    event.metadata = &metadata_;
    event.thread = event.capture_thread = &thread_;
    event.labels = &labels_;
    event.timestamp = ticks;
    model_->OnEvent(event, names_);
    model_->OnRowsEnd();
  }

  std::unique_ptr<nettrace::Reader> reader_;
  std::unique_ptr<ReportModel> model_;
  trace::ProcessNames names_;
  nettrace::EventMetadata metadata_;
  nettrace::ThreadInfo thread_;
  nettrace::Labels labels_;
};

TEST_F(ReportModelTest, RowsAreBoundedAndSumsAreNot) {
  constexpr std::uint64_t kMany = kMaxRows + 100;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    thread_.process_id = thread_.thread_id = i;
    Add("E" + std::to_string(i), i);
  }
  const auto check = [](const auto& rows) {
    ASSERT_EQ(rows.size(), kMaxRows + 1);
    EXPECT_EQ(rows.front().events, 1u);
    EXPECT_EQ(rows.back().events, 100u);
    EXPECT_EQ(rows.back().first, kMaxRows);
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
  std::vector<std::uint64_t> begins;
  model_->activities().ForEach([&begins](const Activity& a) { begins.push_back(a.begin); });
  EXPECT_EQ(begins, (std::vector<std::uint64_t>{20, 10}));
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
  std::vector<std::uint64_t> ticks;
  model_->single_events().ForEach([&ticks](const SingleEvent& e) { ticks.push_back(e.ticks); });
  ASSERT_EQ(ticks.size(), 10u);
  EXPECT_EQ(ticks.front(), 10u);
  EXPECT_EQ(ticks.back(), 19u);
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

}  // namespace
}  // namespace tools::report
