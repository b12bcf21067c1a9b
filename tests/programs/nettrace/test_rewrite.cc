#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "nettrace/reader.h"
#include "nettrace/time_ordered_reader.h"
#include "nettrace/verifier.h"
#include "nettrace/writer.h"
#include "tests/support/nettrace/stream_builder.h"
#include "tools/nettrace/rewrite.h"

namespace tools {
namespace {

using nettrace::Bytes;
using nettrace::Reader;
using Step = Reader::Step;

class RewriteTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // In memory where that is possible: each output is synced.
    const std::filesystem::path memory = "/dev/shm";
    folder_ =
        (std::filesystem::exists(memory) ? memory : std::filesystem::path(::testing::TempDir())) /
        ("rewrite-" + std::to_string(getpid()) + "-" +
         ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const char* name, std::span<const std::byte> bytes) {
    std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path;
  }
  std::string Output() const { return folder_ / "out.nettrace"; }

  static std::unique_ptr<nettrace::Source> FileSource(const std::string& path) {
    auto source = nettrace::FdSource::Open(path);
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? *std::move(source) : nullptr;
  }
  // Expects the file to be without fault, by the strict measure, and returns its counts.
  static Reader::Stats StatsOfCleanFile(const std::string& path) {
    const auto report = nettrace::Verify(FileSource(path));
    EXPECT_TRUE(report.ok()) << report.status();
    for (const nettrace::Finding& finding : report->findings) {
      ADD_FAILURE() << finding.rule->name << ": " << finding.explanation;
    }
    auto reader = Reader::Open(FileSource(path));
    EXPECT_TRUE(reader.ok());
    while ((*reader)->Next() != Step::kEnd) {
    }
    EXPECT_TRUE((*reader)->stats().complete);
    return (*reader)->stats();
  }

  std::filesystem::path folder_;
};

class RepairTest : public RewriteTest {
 protected:
  void ExpectRepairOfEveryCut(std::span<const std::byte> whole) {
    for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
      const auto bytes = whole.first(cut);
      auto reader = Reader::Open(std::make_unique<nettrace::MemorySource>(bytes));
      ASSERT_TRUE(reader.ok());
      while ((*reader)->Next() != Step::kEnd) {
      }
      const std::string input = Write("in.nettrace", bytes);
      ASSERT_EQ(RunRewrite({.command = "repair",
                            .inputs = {input},
                            .output = Output(),
                            .filter = {},
                            .accept_damage = true}),
                0)
          << "cut at " << cut;
      const Reader::Stats stats = StatsOfCleanFile(Output());
      EXPECT_EQ(stats.events, (*reader)->stats().events) << "cut at " << cut;
      EXPECT_EQ(stats.lost, (*reader)->stats().lost) << "cut at " << cut;
    }
  }
};

TEST_F(RepairTest, OfEveryCutIsCleanAndHasAllWholeBlocks) {
  ExpectRepairOfEveryCut(nettrace::GoodStream().span());
}

TEST_F(RepairTest, OfEveryCutOfV4AndV5IsACleanV6File) {
  for (const char* version : {"v4", "v5"}) {
    std::ifstream file(std::filesystem::path(CORPUS_DIR) / version, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    ASSERT_FALSE(bytes.empty()) << version;
    ExpectRepairOfEveryCut(std::as_bytes(std::span(bytes)));
  }
}

TEST_F(RewriteTest, RepairKeepsTheCountsOfLostEvents) {
  const Bytes stream = nettrace::Start()
                           .Append(nettrace::MetadataBlock({{}}))
                           .Append(nettrace::ThreadBlock({1, 2}))
                           .Append(nettrace::EventBlock({{.sequence = 4}, {.sequence = 10}}))
                           .Append(nettrace::SequencePointBlock(3000, 0, {{1, 12}, {2, 7}}));
  const std::string input = Write("in.nettrace", stream.span());
  ASSERT_EQ(RunRewrite({.command = "repair",
                        .inputs = {input},
                        .output = Output(),
                        .filter = {},
                        .accept_damage = true}),
            0);
  const Reader::Stats stats = StatsOfCleanFile(Output());
  EXPECT_EQ(stats.events, 2u);
  EXPECT_EQ(stats.lost, 3u + 5 + 2 + 7);
}

TEST_F(RewriteTest, RepairKeepsWhatAThreadLostThatHadNoEvent) {
  const Bytes stream = nettrace::Start()
                           .Append(nettrace::MetadataBlock({{}}))
                           .Append(nettrace::ThreadBlock({1, 5'000'001}))
                           .Append(nettrace::EventBlock({{}}))
                           .Append(nettrace::Block(nettrace::BlockKind::kRemoveThread,
                                                   Bytes().Var(5'000'001).Var(11)))
                           .Append(nettrace::End());
  const std::string input = Write("in.nettrace", stream.span());
  ASSERT_EQ(RunRewrite({.command = "repair", .inputs = {input}, .output = Output(), .filter = {}}),
            0);
  EXPECT_EQ(StatsOfCleanFile(Output()).lost, 11u);
}

// The format has a DateTime of 16 bytes; only the reference reader has not.
TEST_F(RewriteTest, ADateTimeIsCopiedAsItIs) {
  const Bytes stream =
      nettrace::Start()
          .Append(
              nettrace::MetadataBlock({{.fields = {nettrace::FieldRow(
                                            "f", nettrace::Code(nettrace::TypeCode::kDateTime))}}}))
          .Append(nettrace::ThreadBlock({1}))
          .Append(nettrace::EventBlock({{.payload = Bytes().Raw(std::string(16, '\1'))}}))
          .Append(nettrace::End());
  const std::string input = Write("in.nettrace", stream.span());
  ASSERT_EQ(RunRewrite({.command = "cut", .inputs = {input}, .output = Output(), .filter = {}}), 0);
  auto reader = Reader::Open(FileSource(Output()));
  ASSERT_EQ((*reader)->Next(), Step::kEvent);
  EXPECT_EQ((*reader)->event().metadata->fields[0].type.code, nettrace::TypeCode::kDateTime);
  EXPECT_EQ((*reader)->event().payload.size(), 16u);
}

// There is no event behind these losses that could tell of them.
TEST_F(RewriteTest, CutKeepsLossesAtTheEnd) {
  const Bytes stream = nettrace::Start()
                           .Append(nettrace::MetadataBlock({{}}))
                           .Append(nettrace::ThreadBlock({1}))
                           .Append(nettrace::EventBlock({{.sequence = 3}}))
                           .Append(nettrace::SequencePointBlock(2000))
                           .Append(nettrace::EventBlock({{.sequence = 8}}))
                           .Append(nettrace::End());
  const std::string input = Write("in.nettrace", stream.span());
  EventFilter nothing;
  nothing.events = {"None"};
  ASSERT_EQ(
      RunRewrite({.command = "cut", .inputs = {input}, .output = Output(), .filter = nothing}), 0);
  const Reader::Stats stats = StatsOfCleanFile(Output());
  EXPECT_EQ(stats.events, 0u);
  EXPECT_EQ(stats.lost, 2u + 4);
}

TEST_F(RewriteTest, AnEventThatIsOutOfOrderIsLostInTheCopy) {
  const Bytes stream = nettrace::Start()
                           .Append(nettrace::MetadataBlock({{}}))
                           .Append(nettrace::ThreadBlock({1}))
                           .Append(nettrace::EventBlock({{}}))
                           .Append(nettrace::SequencePointBlock(3000))
                           .Append(nettrace::EventBlock({{.sequence = 2, .timestamp = 2500}}))
                           .Append(nettrace::End());
  const std::string input = Write("in.nettrace", stream.span());
  ASSERT_EQ(RunRewrite({.command = "repair", .inputs = {input}, .output = Output(), .filter = {}}),
            0);
  const Reader::Stats stats = StatsOfCleanFile(Output());
  EXPECT_EQ(stats.events, 1u);
  EXPECT_EQ(stats.lost, 1u);
}

TEST_F(RewriteTest, CutKeepsLossesThatAreTogetherMoreThanOneGapCanTell) {
  constexpr std::uint32_t kGap = 1u << 30;
  const Bytes stream =
      nettrace::Start()
          .Append(nettrace::MetadataBlock({{}, {.id = 2, .event_id = 8}}))
          .Append(nettrace::ThreadBlock({1}))
          .Append(nettrace::EventBlock({{.metadata_id = 1},
                                        {.metadata_id = 2, .sequence = kGap + 2},
                                        {.metadata_id = 2, .sequence = 2 * kGap + 3},
                                        {.metadata_id = 1, .sequence = 3 * kGap + 4}}))
          .Append(nettrace::End());
  const std::string input = Write("in.nettrace", stream.span());
  EventFilter nothing;
  nothing.events = {"None"};
  ASSERT_EQ(
      RunRewrite({.command = "cut", .inputs = {input}, .output = Output(), .filter = nothing}), 0);
  const Reader::Stats stats = StatsOfCleanFile(Output());
  EXPECT_EQ(stats.events, 0u);
  EXPECT_EQ(stats.lost, 3 * std::uint64_t{kGap});
}

TEST_F(RewriteTest, AThreadIndexThatIsUsedAgainStaysTwoThreads) {
  constexpr std::uint64_t kIndex = 5'000'001;
  const auto thread = [](std::uint64_t pid, std::string_view name) {
    return nettrace::Block(nettrace::BlockKind::kThread,
                           Bytes().Row(nettrace::ThreadRowBytes(kIndex, pid, pid, name)));
  };
  const Bytes stream =
      nettrace::Start()
          .Append(nettrace::MetadataBlock({{}}))
          .Append(thread(7, "first"))
          .Append(nettrace::EventBlock({{.capture_thread = kIndex, .thread = kIndex}}))
          .Append(nettrace::Block(nettrace::BlockKind::kRemoveThread, Bytes().Var(kIndex).Var(1)))
          .Append(thread(8, "second"))
          .Append(nettrace::EventBlock(
              {{.capture_thread = kIndex, .thread = kIndex, .timestamp = 3000}}))
          .Append(nettrace::End());
  const std::string input = Write("in.nettrace", stream.span());
  ASSERT_EQ(RunRewrite({.command = "repair", .inputs = {input}, .output = Output(), .filter = {}}),
            0);
  StatsOfCleanFile(Output());
  auto reader = Reader::Open(FileSource(Output()));
  std::vector<std::pair<std::string, std::uint64_t>> threads;
  for (Step step = (*reader)->Next(); step != Step::kEnd; step = (*reader)->Next()) {
    if (step != Step::kEvent) continue;
    const nettrace::ThreadInfo& info = *(*reader)->event().thread;
    threads.emplace_back(info.name.value_or(""), info.process_id.value_or(0));
  }
  EXPECT_EQ(threads,
            (std::vector<std::pair<std::string, std::uint64_t>>{{"first", 7}, {"second", 8}}));
}

TEST_F(RewriteTest, CutOfADamagedFileWritesNothing) {
  const Bytes good = nettrace::GoodStream();
  const std::string input = Write("in.nettrace", good.span().first(good.size() - 5));
  EXPECT_NE(RunRewrite({.command = "cut", .inputs = {input}, .output = Output(), .filter = {}}), 0);
  EXPECT_FALSE(std::filesystem::exists(Output()));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1)
      << "only the input is there";
}

TEST_F(RewriteTest, CutTakesTheEventsOfAThread) {
  const std::string input = Write("in.nettrace", nettrace::GoodStream().span());
  EventFilter filter;
  filter.tids = {4244};  // of thread 2
  ASSERT_EQ(RunRewrite({.command = "cut", .inputs = {input}, .output = Output(), .filter = filter}),
            0);
  const Reader::Stats stats = StatsOfCleanFile(Output());
  EXPECT_EQ(stats.events, 2u);
  EXPECT_EQ(stats.lost, 0u) << "what was left out is not lost";
}

TEST_F(RewriteTest, MergeBringsTheClocksTogether) {
  const auto one_event = [](std::int64_t sync, std::int64_t frequency, std::uint64_t time) {
    return nettrace::Start({.sync_ticks = sync, .frequency = frequency})
        .Append(nettrace::MetadataBlock({{}}))
        .Append(nettrace::ThreadBlock({1}))
        .Append(nettrace::EventBlock({{.timestamp = time}}))
        .Append(nettrace::End());
  };
  // 2 seconds, and 1 second, after the same sync time.
  const std::string later = Write("a", one_event(1000, 1'000'000'000, 2'000'001'000).span());
  const std::string earlier = Write("b", one_event(5, 10, 15).span());
  ASSERT_EQ(RunRewrite(
                {.command = "merge", .inputs = {later, earlier}, .output = Output(), .filter = {}}),
            0);
  const Reader::Stats stats = StatsOfCleanFile(Output());
  EXPECT_EQ(stats.events, 2u);
  EXPECT_EQ(stats.metadata, 1u) << "both files' rows are the same";
  EXPECT_EQ(stats.first_timestamp, 1'000'001'000u);
  EXPECT_EQ(stats.last_timestamp, 2'000'001'000u);
}

TEST_F(RewriteTest, MergeHasTheKeyValuesOfAllFiles) {
  const auto file = [this](const char* name, std::string cpus, std::string pid, std::string key) {
    const nettrace::TraceInfo info = {.sync_time = absl::FromUnixSeconds(1'700'000'000),
                                      .key_values = {{"HardwareThreadCount", std::move(cpus)},
                                                     {"ProcessId", std::move(pid)},
                                                     {std::move(key), name}}};
    std::string path = folder_ / name;
    EXPECT_TRUE((*nettrace::Writer::Create(*nettrace::FdSink::Create(path), info))->Finish().ok());
    return path;
  };
  const std::vector<std::string> inputs = {file("a", "2", "7", "A"), file("b", "64", "7", "B"),
                                           file("c", "8", "9", "A")};
  ASSERT_EQ(RunRewrite({.command = "merge", .inputs = inputs, .output = Output(), .filter = {}}),
            0);
  auto reader = Reader::Open(FileSource(Output()));
  EXPECT_EQ((*reader)->trace().key_values,
            (nettrace::KeyValues{{"HardwareThreadCount", "64"}, {"A", "a"}, {"B", "b"}}));
}

// Whichever comes first on the command line: also the one whose clock had not begun at the time of
// the other's events.
TEST_F(RewriteTest, MergeKeepsTheOrderOfFilesFromBeforeTheFirstOnesClock) {
  const auto one_event = [](int month, std::int64_t sync, std::uint64_t time) {
    return nettrace::Start({.month = month, .sync_ticks = sync})
        .Append(nettrace::MetadataBlock({{}}))
        .Append(nettrace::ThreadBlock({1}))
        .Append(nettrace::EventBlock({{.timestamp = time}, {.sequence = 2, .timestamp = time + 5}}))
        .Append(nettrace::End());
  };
  const std::string november = Write("november", one_event(11, 1000, 2000).span());
  const std::string october = Write("october", one_event(10, 7'000'000, 7'000'500).span());
  for (const auto& inputs : {std::vector{november, october}, std::vector{october, november}}) {
    ASSERT_EQ(RunRewrite({.command = "merge", .inputs = inputs, .output = Output(), .filter = {}}),
              0);
    StatsOfCleanFile(Output());
    auto reader = Reader::Open(FileSource(Output()));
    std::vector<absl::Duration> since_october;
    const absl::Time start =
        absl::FromCivil(absl::CivilSecond(2026, 10, 21, 10), absl::UTCTimeZone());
    while ((*reader)->Next() == Step::kEvent) {
      since_october.push_back((*reader)->TimeOf((*reader)->event().timestamp) - start);
    }
    const absl::Duration half = absl::Milliseconds(500);
    const absl::Duration later = absl::Hours(24 * 31) + half;
    EXPECT_EQ(since_october,
              (std::vector{half + absl::Nanoseconds(500), half + absl::Nanoseconds(505),
                           later + absl::Nanoseconds(1000), later + absl::Nanoseconds(1005)}));
  }
}

// Where an interval is too long to be sorted as a whole, a sequence point in the midst of it would
// leave no place for the earlier events that are still to come.
TEST_F(RewriteTest, NoEventOfAnIntervalThatIsSortedInPartsIsLost) {
  Bytes one_interval = nettrace::Start();
  one_interval.Append(nettrace::MetadataBlock({{}})).Append(nettrace::ThreadBlock({1, 2}));
  for (std::uint32_t thread : {1, 2}) {
    std::vector<nettrace::EventFields> events;
    for (std::uint32_t i = 1; i <= 4; ++i) {
      events.push_back({.sequence = i,
                        .capture_thread = thread,
                        .thread = thread,
                        .timestamp = 2000 + 5 * i + thread});
    }
    one_interval.Append(nettrace::EventBlock(events));
  }
  one_interval.Append(nettrace::End());
  const std::string input = Write("in.nettrace", one_interval.span());
  const std::string other = Write("other.nettrace", nettrace::GoodStream().span());
  ASSERT_EQ(RunRewrite({.command = "merge",
                        .inputs = {input, other},
                        .output = Output(),
                        .filter = {},
                        .sorting = {.max_interval_bytes = 1}}),
            0);
  const Reader::Stats stats = StatsOfCleanFile(Output());
  EXPECT_EQ(stats.events, 8u + 5);
  EXPECT_EQ(stats.lost, 0u);
}

// Writing more than that fails, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    before_handler_ = signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, before_handler_);
  }

 private:
  rlimit before_ = {};
  sighandler_t before_handler_ = SIG_DFL;
};

TEST_F(RewriteTest, AnOutputThatCannotBeWrittenLeavesTheOldOne) {
  const std::string input = Write("in.nettrace", nettrace::GoodStream().span());
  const std::string old = Write("out.nettrace", Bytes().Raw("the old one").span());
  {
    const FileSizeLimit limit(100);
    EXPECT_EQ(RunRewrite({.command = "cut", .inputs = {input}, .output = old, .filter = {}}), 1);
  }
  EXPECT_EQ(std::filesystem::file_size(old), 11u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2)
      << "nothing else is left behind";
  EXPECT_EQ(RunRewrite({.command = "cut", .inputs = {input}, .output = old, .filter = {}}), 0);
  EXPECT_EQ(StatsOfCleanFile(old).events, 5u);
}

TEST_F(RewriteTest, TheInputMayBeTheOutput) {
  const std::string file = Write("in.nettrace", nettrace::GoodStream().span());
  EXPECT_EQ(RunRewrite({.command = "cut", .inputs = {file}, .output = file, .filter = {}}), 0);
  EXPECT_EQ(StatsOfCleanFile(file).events, 5u);
}

TEST_F(RewriteTest, WhatIsNoFileIsNotReplaced) {
  const std::string input = Write("in.nettrace", nettrace::GoodStream().span());
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(RunRewrite({.command = "cut", .inputs = {input}, .output = pipe, .filter = {}}), 1);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_EQ(RunRewrite({.command = "cut", .inputs = {input}, .output = "-", .filter = {}}), 2);
}

TEST(TimeOrder, SortsWithinAnIntervalAndKeepsWhatEventsReferTo) {
  const Bytes stream = nettrace::GoodStream();
  auto reader = Reader::Open(std::make_unique<nettrace::MemorySource>(stream.span()));
  ASSERT_TRUE(reader.ok());
  nettrace::TimeOrderedReader ordered(*std::move(reader));
  std::vector<std::uint64_t> times;
  std::vector<std::size_t> stacks;
  for (Step step = ordered.Next(); step != Step::kEnd; step = ordered.Next()) {
    if (step == Step::kSequencePoint) times.push_back(0);
    if (step != Step::kEvent) continue;
    times.push_back(ordered.event().timestamp);
    stacks.push_back(ordered.event().stack.size());
    EXPECT_EQ(ordered.event().thread->process_id, 4242u);
  }
  EXPECT_EQ(times, (std::vector<std::uint64_t>{2000, 2005, 2010, 0, 2015, 2020, 0}));
  EXPECT_EQ(stacks, (std::vector<std::size_t>{0, 0, 16, 0, 0}));
}

TEST(TimeOrder, AnIntervalThatIsTooLongIsSortedInParts) {
  const Bytes stream = nettrace::GoodStream();
  auto reader = Reader::Open(std::make_unique<nettrace::MemorySource>(stream.span()));
  nettrace::TimeOrderedReader ordered(*std::move(reader), {.max_interval_bytes = 1});
  int events = 0;
  for (Step step = ordered.Next(); step != Step::kEnd; step = ordered.Next()) {
    events += step == Step::kEvent;
  }
  EXPECT_EQ(events, 5);
  EXPECT_TRUE(ordered.sorted_in_parts());
}

}  // namespace
}  // namespace tools
