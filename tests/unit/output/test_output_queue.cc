#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/nettrace/writer_to_string.h"
#include "tests/support/wait_until.h"
#include "tools/output/output_queue.h"

namespace output {
namespace {

using nettrace::testing::Span;

// Controls the inner sink, and records its calls in order: Append as the bytes, and Sync, Finish
// and BeginSection as <sync>, <end> and <section>.
class Log {
 public:
  void Add(std::string_view text) {
    const std::lock_guard lock(mutex_);
    text_ += text;
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  // Sets the status that the sink returns from now on.
  void SetStatus(const absl::Status& status) {
    const std::lock_guard lock(mutex_);
    status_ = status;
  }
  absl::Status status() const {
    const std::lock_guard lock(mutex_);
    return status_;
  }
  // While this is locked, calls of the sink block.
  std::mutex gate;
  std::atomic<bool> wants_section = false;
  std::atomic<bool> ended = false;
  std::atomic<int> flushes = 0;
  // Bytes that the sink still accepts.
  std::atomic<std::size_t> room = SIZE_MAX;
  std::atomic<int> refusals = 0;
  std::atomic<int> appends = 0;  // Calls that have begun.

 private:
  mutable std::mutex mutex_;
  std::string text_;
  absl::Status status_;
};

class LogSink : public nettrace::Sink {
 public:
  explicit LogSink(std::shared_ptr<Log> log) : log_(std::move(log)) {}
  ~LogSink() override { log_->ended = true; }
  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override {
    ++log_->appends;
    const std::lock_guard gate(log_->gate);
    absl::Status status = log_->status();
    *taken = status.ok() ? std::min(bytes.size(), log_->room.load()) : 0;
    log_->room -= *taken;
    log_->Add({reinterpret_cast<const char*>(bytes.data()), *taken});
    if (!status.ok() || *taken == bytes.size()) return status;
    ++log_->refusals;
    return absl::ResourceExhaustedError("no room");
  }
  absl::Status Flush() override {
    ++log_->flushes;
    return log_->status();
  }
  absl::Status Sync() override { return Mark("<sync>"); }
  absl::Status Finish() override { return Mark("<end>"); }
  absl::Status BeginSection() override {
    log_->wants_section = false;
    return Mark("<section>");
  }
  bool WantsSection() const override { return log_->wants_section; }

 private:
  absl::Status Mark(const char* mark) {
    absl::Status status = log_->status();
    if (status.ok()) log_->Add(mark);
    return status;
  }
  const std::shared_ptr<Log> log_;
};

class OutputQueueTest : public ::testing::Test {
 protected:
  void Open(OutputQueueOptions options = {}) {
    auto queue = OutputQueue::Create(std::make_unique<LogSink>(log_), std::move(options));
    ASSERT_TRUE(queue.ok()) << queue.status();
    queue_ = *std::move(queue);
    sink_ = std::make_unique<QueueSink>(queue_);
  }
  void Append(std::string_view text) {
    std::size_t taken = 0;
    ASSERT_TRUE(sink_->Append(Span(text), &taken).ok());
    ASSERT_EQ(taken, text.size());
  }

  const std::shared_ptr<Log> log_ = std::make_shared<Log>();
  std::shared_ptr<OutputQueue> queue_;
  std::unique_ptr<QueueSink> sink_;
};

TEST_F(OutputQueueTest, BytesAndMarksKeepTheirOrder) {
  for (const WhenFull when_full : {WhenFull::kWait, WhenFull::kTake}) {
    log_->SetStatus(absl::OkStatus());
    Open({.when_full = when_full});
    const std::string before = log_->text();
    std::string expected;
    for (int i = 0; i < 50; ++i) {
      const std::string part(static_cast<std::size_t>(i) * 7919 % 300'000,
                             static_cast<char>('a' + i % 26));
      Append(part);
      expected += part;
      if (i % 3 == 0) {
        ASSERT_TRUE(sink_->Flush().ok());
      }
      if (i % 5 == 0) {
        ASSERT_TRUE(sink_->BeginSection().ok());
        expected += "<section>";
      }
      if (i % 7 == 0) {
        ASSERT_TRUE(sink_->Sync().ok());
        expected += "<sync>";
      }
    }
    ASSERT_TRUE(sink_->Finish().ok());
    expected += "<end>";
    EXPECT_TRUE(queue_->WaitUntilDelivered(absl::Seconds(60)));
    EXPECT_TRUE(log_->text() == before + expected);
    EXPECT_EQ(queue_->stats().undelivered, 0u);
    EXPECT_EQ(queue_->Close(absl::Seconds(60)), 0u);
    EXPECT_TRUE(log_->ended) << "the inner sink is still there";
  }
}

TEST_F(OutputQueueTest, FullQueueAcceptsDataAndStaysFullUntilHalfEmpty) {
  Open({.limit = 1 << 20});
  const std::string text(300'000, 'x');
  {
    const std::lock_guard gate(log_->gate);
    for (int i = 0; i < 3; ++i) Append(text);
    EXPECT_FALSE(sink_->IsFull());
    for (int i = 0; i < 7; ++i) Append(text);
    EXPECT_TRUE(sink_->IsFull());
    EXPECT_EQ(queue_->stats().appended, 3'000'000u);
    EXPECT_EQ(queue_->stats().undelivered, 3'000'000u);
  }
  // The queue stays full until it is at half of the limit.
  while (sink_->IsFull()) std::this_thread::yield();
  EXPECT_LE(queue_->stats().queued, std::uint64_t{1} << 19);
  EXPECT_TRUE(queue_->WaitUntilDelivered(absl::Seconds(60)));
  EXPECT_EQ(log_->text().size(), 3'000'000u);
}

TEST_F(OutputQueueTest, KeepsErrorsAndRetriesUnwrittenData) {
  std::vector<absl::Status> reported;
  Open({.on_status = [&](const absl::Status& status) { reported.push_back(status); }});
  const absl::Status full = absl::ResourceExhaustedError("the disk is full");
  log_->SetStatus(full);
  Append("some bytes");
  ASSERT_TRUE(sink_->Flush().ok());
  ASSERT_NO_FATAL_FAILURE(tests::WaitUntil([&] { return !queue_->stats().status.ok(); }));
  OutputQueue::Stats stats = queue_->stats();
  EXPECT_EQ(stats.status, full);
  EXPECT_LE(stats.stuck_since, absl::Now());
  EXPECT_EQ(stats.undelivered, 10u);
  EXPECT_FALSE(queue_->WaitUntilDelivered(absl::Milliseconds(10)));
  log_->SetStatus(absl::OkStatus());
  queue_->RetryNow();
  EXPECT_TRUE(queue_->WaitUntilDelivered(absl::Seconds(60)));
  EXPECT_EQ(log_->text(), "some bytes");
  stats = queue_->stats();
  EXPECT_TRUE(stats.status.ok());
  EXPECT_EQ(stats.stuck_since, absl::InfiniteFuture());
  EXPECT_EQ(stats.last_error, full);
  queue_->Close(absl::ZeroDuration());
  EXPECT_EQ(reported, (std::vector<absl::Status>{full, absl::OkStatus()}));
}

// The queue must not flush before it retries: a successful flush would make the sink appear to work
// again, although it accepts no data.
TEST_F(OutputQueueTest, RetriesTheRestOfAPieceWithoutAMark) {
  std::vector<absl::Status> reported;
  Open({.limit = OutputQueue::kPiece,
        .on_status = [&](const absl::Status& status) { reported.push_back(status); }});
  log_->room = 1000;
  Append(std::string(OutputQueue::kPiece, 'x'));
  ASSERT_NO_FATAL_FAILURE(tests::WaitUntil([&] { return log_->refusals > 0; }));
  EXPECT_TRUE(sink_->IsFull());
  ASSERT_NO_FATAL_FAILURE(tests::WaitUntil([&] {
    queue_->RetryNow();
    return log_->refusals > 2;
  }));
  EXPECT_EQ(log_->flushes, 0);
  log_->room = SIZE_MAX;
  ASSERT_NO_FATAL_FAILURE(tests::WaitUntil([&] { return !sink_->IsFull(); }));
  EXPECT_EQ(log_->text().size(), OutputQueue::kPiece);
  queue_->Close(absl::ZeroDuration());
  EXPECT_EQ(reported,
            (std::vector<absl::Status>{absl::ResourceExhaustedError("no room"), absl::OkStatus()}));
}

TEST_F(OutputQueueTest, TriesAgainBySelf) {
  Open();
  log_->SetStatus(absl::UnavailableError("nobody reads"));
  Append("bytes");
  ASSERT_TRUE(sink_->Flush().ok());
  ASSERT_NO_FATAL_FAILURE(tests::WaitUntil([&] { return !queue_->stats().status.ok(); }));
  log_->SetStatus(absl::OkStatus());
  ASSERT_NO_FATAL_FAILURE(tests::WaitUntil([&] { return log_->text() == "bytes"; }));
}

TEST_F(OutputQueueTest, ClosesInTimeAndReportsUndeliveredData) {
  Open();
  log_->SetStatus(absl::UnavailableError("nobody reads"));
  Append("12345");
  const absl::Time begin = absl::Now();
  EXPECT_EQ(queue_->Close(absl::Milliseconds(50)), 5u);
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(50));
  EXPECT_TRUE(log_->ended);
  std::size_t taken = 0;
  EXPECT_TRUE(absl::IsCancelled(sink_->Append(Span("x"), &taken)));
  EXPECT_TRUE(absl::IsCancelled(sink_->Flush()));
  EXPECT_EQ(queue_->stats().undelivered, 5u);
}

TEST_F(OutputQueueTest, CloseCancelsACallThatDoesNotReturn) {
  std::unique_lock gate(log_->gate);
  Open({.cancel = [&] { gate.unlock(); }});
  Append("12345");
  ASSERT_TRUE(sink_->Flush().ok());
  ASSERT_NO_FATAL_FAILURE(tests::WaitUntil([&] { return log_->appends != 0; }));
  EXPECT_EQ(queue_->Close(absl::Milliseconds(20)), 0u);
  EXPECT_TRUE(log_->ended);
}

TEST_F(OutputQueueTest, CloseDoesNotWaitForACallThatCannotBeCancelled) {
  std::unique_lock gate(log_->gate);
  Open();
  Append("12345");
  ASSERT_TRUE(sink_->Flush().ok());
  ASSERT_NO_FATAL_FAILURE(tests::WaitUntil([&] { return log_->appends != 0; }));
  EXPECT_EQ(queue_->Close(absl::Milliseconds(20)), 5u);
  EXPECT_FALSE(log_->ended);
  sink_.reset();
  queue_.reset();
  gate.unlock();
  ASSERT_NO_FATAL_FAILURE(tests::WaitUntil([&] { return log_->ended.load(); }));
}

TEST_F(OutputQueueTest, PassesOnThatASectionIsWantedUntilItHasBegun) {
  Open();
  EXPECT_FALSE(sink_->WantsSection());
  log_->wants_section = true;
  ASSERT_NO_FATAL_FAILURE(tests::WaitUntil([&] { return sink_->WantsSection(); }))
      << "though nothing is written";
  const std::lock_guard gate(log_->gate);
  Append("x");
  ASSERT_TRUE(sink_->Flush().ok());
  ASSERT_TRUE(sink_->BeginSection().ok());
  EXPECT_FALSE(sink_->WantsSection()) << "of an answer from before";
}

TEST_F(OutputQueueTest, FlushesTheInnerSinkWhileIdle) {
  Open();
  ASSERT_NO_FATAL_FAILURE(tests::WaitUntil([&] { return log_->flushes != 0; }));
}

TEST_F(OutputQueueTest, ThreadHasAnIdThatIsNotTheCallers) {
  Open();
  EXPECT_GT(queue_->thread_id(), 0);
  EXPECT_NE(queue_->thread_id(), gettid());
}

}  // namespace
}  // namespace output
