#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/collector/numbered_stream.h"
#include "tests/support/nettrace/read_all.h"
#include "tools/output/output_queue.h"
#include "tools/output/pipe_sink.h"

namespace output {
namespace {

using collector::testing::AreNumbers;
using collector::testing::FileContents;
using collector::testing::NumberedStream;
using collector::testing::ReadContents;
using collector::testing::TemporaryDirectory;

class PipeSinkTest : public ::testing::Test {
 protected:
  PipeSinkTest() { mkfifo(path_.c_str(), 0600); }

  void Open() {
    const std::shared_ptr<Canceller> canceller = *Canceller::Create();
    auto sink = std::make_unique<PipeSink>(path_, canceller);
    state_ = sink->state();
    OutputQueueOptions options;
    options.limit = 256 << 10;
    options.cancel = [canceller] { canceller->Cancel(); };
    queue_ = *OutputQueue::Create(std::move(sink), std::move(options));
    stream_ = std::make_unique<NumberedStream>(std::make_unique<QueueSink>(queue_));
  }
  // Reads everything until the writer closes the pipe.
  std::future<FileContents> Read() {
    return std::async(std::launch::async, [path = path_] { return ReadContents(path); });
  }
  template <typename Condition>
  void Until(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "never happens";
      queue_->RetryNow();
      usleep(1'000);
    }
  }

  TemporaryDirectory temporary_;
  const std::string path_ = temporary_.path() + "/pipe";
  std::shared_ptr<const PipeState> state_;
  std::shared_ptr<OutputQueue> queue_;
  std::unique_ptr<NumberedStream> stream_;
};

TEST_F(PipeSinkTest, LateReaderGetsAllQueuedData) {
  Open();
  stream_->Write(100);
  ASSERT_NO_FATAL_FAILURE(Until([&] { return !queue_->stats().status.ok(); }));
  EXPECT_TRUE(absl::IsUnavailable(queue_->stats().status)) << queue_->stats().status;
  EXPECT_FALSE(state_->values().has_reader);
  auto reader = Read();
  ASSERT_NO_FATAL_FAILURE(Until([&] { return state_->values().has_reader; }));
  stream_->Write(100);
  ASSERT_TRUE(stream_->Finish().ok());
  EXPECT_EQ(queue_->Close(absl::Seconds(60)), 0u);
  const FileContents contents = reader.get();
  EXPECT_TRUE(contents.complete) << contents.status;
  EXPECT_TRUE(AreNumbers(contents.numbers, 0, 200));
}

TEST_F(PipeSinkTest, NextReaderGetsThePrologueAndThenWholeSections) {
  Open();
  {
    const base::UniqueFd first(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    ASSERT_TRUE(first.valid());
    stream_->Write(100);
    ASSERT_NO_FATAL_FAILURE(Until([&] { return queue_->stats().undelivered == 0; }));
  }
  // The rest of the section that the first reader had begun is dropped.
  stream_->Write(50);
  ASSERT_NO_FATAL_FAILURE(Until([&] { return state_->values().discarded != 0; }));
  std::uint64_t first = 0;
  ASSERT_NO_FATAL_FAILURE(Until([&] {
    stream_->Write(1);
    first = stream_->written();
    return stream_->sections() == 1;
  }));
  auto reader = Read();
  stream_->Write(100);
  ASSERT_NO_FATAL_FAILURE(Until([&] { return state_->values().has_reader; }));
  ASSERT_TRUE(stream_->Finish().ok());
  EXPECT_EQ(queue_->Close(absl::Seconds(60)), 0u);
  const FileContents contents = reader.get();
  EXPECT_TRUE(contents.complete) << contents.status;
  EXPECT_TRUE(AreNumbers(contents.numbers, first, stream_->written()));
  EXPECT_EQ(state_->values().readers, 2u);
}

TEST_F(PipeSinkTest, SlowReaderFillsTheQueueAndLosesNothing) {
  Open();
  const base::UniqueFd slow(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  for (int i = 0; i < 300; ++i) stream_->Write(100);
  EXPECT_TRUE(QueueSink(queue_).IsFull());
  ASSERT_NO_FATAL_FAILURE(Until([&] { return !queue_->stats().status.ok(); }));
  EXPECT_TRUE(absl::IsUnavailable(queue_->stats().status)) << queue_->stats().status;
  ASSERT_TRUE(stream_->Finish().ok());
  fcntl(slow.get(), F_SETFL, 0);
  auto reader = std::async(std::launch::async, [&] {
    return ReadContents(std::make_unique<nettrace::FdSource>(dup(slow.get()), "pipe"));
  });
  EXPECT_EQ(queue_->Close(absl::Seconds(60)), 0u);
  EXPECT_TRUE(AreNumbers(reader.get().numbers, 0, 30'000));
}

TEST_F(PipeSinkTest, CloseDoesNotWaitForAStalledReader) {
  Open();
  const base::UniqueFd slow(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  for (int i = 0; i < 300; ++i) stream_->Write(100);
  EXPECT_GT(queue_->Close(absl::Milliseconds(10)), 0u);
}

TEST_F(PipeSinkTest, OnlyAPipeIsWrittenTo) {
  ASSERT_EQ(unlink(path_.c_str()), 0);
  const auto status = [&] {
    PipeSink sink(path_, *Canceller::Create());
    EXPECT_TRUE(sink.BeginSection().ok());
    return sink.Flush();
  };
  EXPECT_TRUE(absl::IsNotFound(status())) << status();
  EXPECT_NE(status().message().find("mkfifo"), absl::string_view::npos) << status();
  std::ofstream(path_) << "x";
  EXPECT_TRUE(absl::IsFailedPrecondition(status())) << status();
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_EQ(symlink("/dev/null", path_.c_str()), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(status())) << status();
}

TEST(StreamSinkTest, PeerThatDisconnectedIsADistinctError) {
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  StreamSink sink(base::UniqueFd{sockets[0]}, "the socket", *Canceller::Create());
  const std::vector<std::byte> bytes(1000);
  std::size_t taken = 0;
  EXPECT_TRUE(sink.Append(bytes, &taken).ok());
  EXPECT_TRUE(sink.Flush().ok());
  close(sockets[1]);
  EXPECT_TRUE(absl::IsAborted(sink.Append(bytes, &taken)));
  EXPECT_TRUE(absl::IsAborted(sink.Flush()));
}

TEST(StreamSinkTest, WaitEndsWhenItIsCancelled) {
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  const base::UniqueFd peer(sockets[1]);
  const std::shared_ptr<Canceller> canceller = *Canceller::Create();
  StreamSink sink(base::UniqueFd{sockets[0]}, "the socket", canceller);
  canceller->Cancel();
  const std::vector<std::byte> bytes(10 << 20);
  std::size_t taken = 0;
  const absl::Status status = sink.Append(bytes, &taken);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_GT(taken, 0u);
  EXPECT_LT(taken, bytes.size());
}

}  // namespace
}  // namespace output
