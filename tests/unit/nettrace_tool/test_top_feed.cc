// Tests the thread that reads a stream for `nettrace top`. It never blocks readers of its numbers,
// and it ends on request, even while no data arrives.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "nettrace/sink.h"
#include "nettrace/writer.h"
#include "tools/nettrace/top/feed.h"

namespace tools::top {
namespace {

constexpr std::uint64_t kIntervals = 50;
constexpr std::uint64_t kEventsOfInterval = 100;

std::vector<std::byte> Stream() {
  auto sink = std::make_unique<nettrace::MemorySink>();
  const nettrace::MemorySink* const memory = sink.get();
  nettrace::TraceInfo info;
  auto writer = *nettrace::Writer::Create(std::move(sink), info);
  nettrace::EventMetadata metadata;
  metadata.provider = "P";
  metadata.name = "E";
  metadata.event_id = 1;
  nettrace::EventRow row;
  row.metadata_id = *writer->AddMetadata(metadata);
  nettrace::ThreadInfo thread;
  thread.name = "main";
  row.capture_thread = row.thread = *writer->AddThread(thread);
  for (std::uint64_t interval = 1; interval <= kIntervals; ++interval) {
    for (std::uint64_t i = 0; i < kEventsOfInterval; ++i) {
      row.timestamp = interval * 1'000'000'000 + i;
      EXPECT_TRUE(writer->WriteEvent(row, {}).ok());
    }
    EXPECT_TRUE(writer->WriteSequencePoint(row.timestamp + 1).ok());
  }
  EXPECT_TRUE(writer->Finish().ok());
  return {memory->bytes().begin(), memory->bytes().end()};
}

void WaitFor(int descriptor) {
  pollfd fd = {descriptor, POLLIN, 0};
  EXPECT_EQ(poll(&fd, 1, 60'000), 1);
}

class FeedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> fds = {-1, -1};
    ASSERT_EQ(pipe(fds.data()), 0);
    input_ = base::UniqueFd(fds[1]);
    ModelOptions options;
    options.keeps_events = true;
    feed_ = std::make_unique<Feed>(options, trace::EventFilter());
    ASSERT_TRUE(feed_->Start(base::UniqueFd(fds[0])).ok());
  }
  void Write(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t written =
          write(input_.get(), bytes.data(), std::min<std::size_t>(bytes.size(), 99));
      ASSERT_GT(written, 0);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }

  base::UniqueFd input_;
  std::unique_ptr<Feed> feed_;
};

TEST_F(FeedTest, NumbersCanBeLookedAtWhileItReads) {
  const std::vector<std::byte> stream = Stream();
  std::thread writer([&] {
    Write(stream);
    input_.reset();
  });
  pollfd ended = {feed_->ended_descriptor(), POLLIN, 0};
  std::uint64_t last = 0;
  while (poll(&ended, 1, 0) == 0) {
    const Snapshot snapshot = feed_->TakeSnapshot();
    EXPECT_GE(snapshot.total.events, last);
    last = snapshot.total.events;
    for (const SnapshotRow& row : snapshot.of(View::kEvent).rows) {
      EXPECT_LE(feed_->LastEvents(View::kEvent, row.key).size(), Model::kKeptEvents);
    }
  }
  writer.join();
  EXPECT_TRUE(feed_->end().is_open);
  EXPECT_TRUE(feed_->end().is_complete);
  EXPECT_FALSE(feed_->end().is_stopped);
  EXPECT_TRUE(feed_->end().status.ok()) << feed_->end().status;
  EXPECT_EQ(feed_->TakeSnapshot().total.events, kIntervals * kEventsOfInterval);
  EXPECT_EQ(feed_->events(), kIntervals * kEventsOfInterval);
}

TEST_F(FeedTest, EndsOnRequestAndKeepsReceivedEvents) {
  const std::vector<std::byte> stream = Stream();
  Write(std::span(stream).first(stream.size() / 2));
  WaitFor(feed_->begun_descriptor());
  while (feed_->events() == 0) std::this_thread::yield();
  feed_->Stop();
  WaitFor(feed_->ended_descriptor());
  EXPECT_TRUE(feed_->end().is_stopped);
  EXPECT_FALSE(feed_->end().is_complete);
  EXPECT_TRUE(absl::IsCancelled(feed_->end().status)) << feed_->end().status;
  EXPECT_GT(feed_->TakeSnapshot().total.events, 0U);
}

TEST_F(FeedTest, EndsBeforeAnyData) {
  EXPECT_FALSE(feed_->has_begun());
  EXPECT_EQ(feed_->TakeSnapshot().total.events, 0U);
  feed_.reset();
}

TEST_F(FeedTest, ReportsOtherData) {
  Write(std::as_bytes(std::span("this is no trace at all")));
  input_.reset();
  WaitFor(feed_->ended_descriptor());
  EXPECT_FALSE(feed_->end().is_open);
  EXPECT_FALSE(feed_->end().status.ok());
}

}  // namespace
}  // namespace tools::top
