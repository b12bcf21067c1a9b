// The recorder on this machine's own kernel: every hit of a tracepoint is an event or counted as
// lost.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "nettrace/reader.h"
#include "nettrace/source.h"
#include "tools/collector/session/recorder.h"

namespace collector {
namespace {

constexpr char kTracepoint[] = "syscalls:sys_enter_getppid";

// Calls the traced system call `calls` times in each of `threads` threads.
class Load {
 public:
  Load(int threads, int calls) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, calls] {
        for (int call = 0; call < calls; ++call) syscall(SYS_getppid);
        ++finished_;
      });
    }
  }
  ~Load() {
    for (std::thread& thread : threads_) thread.join();
  }
  bool finished() const { return finished_ == static_cast<int>(threads_.size()); }

 private:
  std::atomic<int> finished_ = 0;
  std::vector<std::thread> threads_;
};

class RecorderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<Tracefs> tracefs = Tracefs::Find();
    if (!tracefs.ok()) GTEST_SKIP() << tracefs.status().message();
    if (!tracefs->ReadTracepoint("syscalls", "sys_enter_getppid").ok()) {
      GTEST_SKIP() << "this kernel has no system call tracepoints (CONFIG_FTRACE_SYSCALLS)";
    }
  }

  // Records kTracepoint while `threads` threads call it `calls` times each.
  RecorderSummary Record(RecorderOptions options, int threads, int calls) {
    options.selectors = {*ParseSelector(kTracepoint)};
    const nettrace::MemorySink* file = nullptr;
    auto recorder = Recorder::Start(options, [&file] {
      auto sink = std::make_unique<nettrace::MemorySink>();
      file = sink.get();
      return sink;
    });
    EXPECT_TRUE(recorder.ok()) << recorder.status();
    if (!recorder.ok()) return {};
    {
      const Load load(threads, calls);
      while (!load.finished()) {
        if (!polls_) continue;
        const absl::Status status = (*recorder)->Poll(absl::Milliseconds(10));
        EXPECT_TRUE(status.ok()) << status;
      }
    }
    const absl::StatusOr<RecorderSummary> summary = (*recorder)->Finish();
    EXPECT_TRUE(summary.ok()) << summary.status();
    ReadIntervals(*file);
    return summary.ok() ? *summary : RecorderSummary();
  }

  // Reads how many events, and how much time, are between two sequence points at most.
  void ReadIntervals(const nettrace::MemorySink& file) {
    auto reader = nettrace::Reader::Open(std::make_unique<nettrace::MemorySource>(file.bytes()));
    ASSERT_TRUE(reader.ok()) << reader.status();
    using Step = nettrace::Reader::Step;
    std::uint64_t events = 0;
    std::uint64_t first = ~std::uint64_t{0};
    for (Step step = (*reader)->Next(); step != Step::kEnd; step = (*reader)->Next()) {
      if (step == Step::kEvent) {
        ++events;
        first = std::min(first, (*reader)->event().timestamp);
        most_events_ = std::max(most_events_, events);
        longest_ = std::max(longest_, (*reader)->event().timestamp - first);
      } else if (step == Step::kSequencePoint) {
        events = 0;
        first = ~std::uint64_t{0};
      }
    }
    EXPECT_TRUE((*reader)->status().ok()) << (*reader)->status();
  }

  bool polls_ = true;  // the rings are drained while the load runs
  std::uint64_t most_events_ = 0;
  std::uint64_t longest_ = 0;  // ns
};

TEST_F(RecorderTest, EveryHitIsAnEventWhereTheRingsHoldThem) {
  RecorderOptions options;
  options.ring_size = 16 << 20;
  const RecorderSummary summary = Record(options, 4, 25'000);
  EXPECT_GE(summary.events, 100'000u);
  EXPECT_EQ(summary.lost, 0u);
  EXPECT_EQ(summary.undecoded, 0u);
  ASSERT_TRUE(summary.hits.has_value());
  EXPECT_EQ(*summary.hits, summary.events);
}

TEST_F(RecorderTest, EventsAndLostAreTheHitsWhereTheRingsAreTooSmall) {
  RecorderOptions options;
  options.ring_size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const RecorderSummary summary = Record(options, 4, 100'000);
  EXPECT_GT(summary.lost, 0u);
  ASSERT_TRUE(summary.hits.has_value());
  EXPECT_EQ(*summary.hits, summary.events + summary.lost);
  EXPECT_GE(*summary.hits, 400'000u);
}

TEST_F(RecorderTest, SequencePointsComeAsOftenAsAsked) {
  RecorderOptions options;
  options.ring_size = 16 << 20;
  options.interval = absl::Milliseconds(10);
  options.slack = absl::Milliseconds(1);
  const RecorderSummary summary = Record(options, 2, 400'000);
  EXPECT_GT(summary.sequence_points, 3u);
  ASSERT_TRUE(summary.hits.has_value());
  EXPECT_EQ(*summary.hits, summary.events + summary.lost);
}

TEST_F(RecorderTest, IntervalsHaveNoMoreThanReadersCanHold) {
  RecorderOptions options;
  options.ring_size = 16 << 20;
  const RecorderSummary summary = Record(options, 2, 400'000);
  EXPECT_EQ(summary.lost, 0u);
  EXPECT_GE(summary.sequence_points, 800'000 / SampleWriter::kEventsPerInterval);
  EXPECT_LE(most_events_, SampleWriter::kEventsPerInterval);
  EXPECT_LE(longest_, 1'000'000'000u);
}

TEST_F(RecorderTest, RecorderThatWasAwayEndsTheIntervalsThatItMissed) {
  RecorderOptions options;
  options.ring_size = 16 << 20;
  options.interval = absl::Milliseconds(50);
  polls_ = false;
  const RecorderSummary summary = Record(options, 2, 200'000);
  EXPECT_GE(summary.events + summary.lost, 400'000u);
  EXPECT_GE(summary.sequence_points, summary.events / SampleWriter::kEventsPerInterval);
  EXPECT_LE(most_events_, SampleWriter::kEventsPerInterval);
  EXPECT_LE(longest_, 50'000'000u);
  EXPECT_EQ(summary.late, 0u);
}

TEST_F(RecorderTest, TracepointThatPerfMayNotSampleLeavesNoFile) {
  RecorderOptions options;
  options.selectors = {*ParseSelector("irq_vectors:irq_work_exit")};
  if (!Tracefs::Find()->ReadTracepoint("irq_vectors", "irq_work_exit").ok()) {
    GTEST_SKIP() << "this kernel has no such tracepoint (irq_vectors:irq_work_exit)";
  }
  bool made_sink = false;
  const auto recorder = Recorder::Start(options, [&] {
    made_sink = true;
    return std::make_unique<nettrace::MemorySink>();
  });
  ASSERT_FALSE(recorder.ok());
  EXPECT_NE(recorder.status().message().find("irq_work_exit"), absl::string_view::npos);
  EXPECT_FALSE(made_sink);
}

TEST_F(RecorderTest, UnknownTracepointIsNamed) {
  RecorderOptions options;
  options.selectors = {*ParseSelector("syscalls:sys_enter_nosuchcall")};
  bool made_sink = false;
  const auto recorder = Recorder::Start(options, [&] {
    made_sink = true;
    return std::make_unique<nettrace::MemorySink>();
  });
  ASSERT_FALSE(recorder.ok());
  EXPECT_NE(recorder.status().message().find("sys_enter_nosuchcall does not exist"),
            absl::string_view::npos);
  EXPECT_FALSE(made_sink);
}

}  // namespace
}  // namespace collector
