// Tests the reader of a stream of .NET against a process that sends too little, too much or
// something other than a stream.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "nettrace/format.h"
#include "tests/support/source_root.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/dotnet/eventpipe_stream.h"

namespace collector {
namespace {

using Step = EventPipeStream::Step;

// Offsets of the time and the frequency of the clock in the Trace block, which begins at the same
// place in each stream of V4.
constexpr std::size_t kTicksAt = 69;
constexpr std::size_t kFrequencyAt = 77;

void Put(std::uint64_t number, std::size_t at, std::string* bytes) {
  for (std::size_t i = 0; i < sizeof number; ++i) {
    (*bytes)[at + i] = static_cast<char>(number >> (8 * i));
  }
}

class EventPipeStreamTest : public ::testing::Test {
 protected:
  EventPipeStreamTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    peer_ = base::UniqueFd(ends[1]);
    EventPipeConnection connection;
    connection.process.pid = getpid();
    connection.folder = "/nowhere";
    connection.socket = base::UniqueFd(ends[0]);
    stream_.emplace(std::move(connection));
  }

  // Returns a stream of V4 whose clock is that of this process.
  static std::string Stream() {
    std::ifstream file(tests::SourcePath("tests/fuzz/nettrace/corpus/v4"), std::ios::binary);
    EXPECT_TRUE(file.is_open());
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    Put(base::Nanoseconds(base::MonotonicNow()), kTicksAt, &bytes);
    Put(1'000'000'000, kFrequencyAt, &bytes);
    return bytes;
  }
  void Send(std::string_view bytes) {
    ASSERT_EQ(send(peer_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // Reads all steps that have arrived. Returns the last one, kWait or kEnd.
  Step ReadAll() {
    stream_->Allow(1 << 20);
    while (true) {
      const Step step = stream_->Next();
      if (step == Step::kEvent) ++events_;
      if (step == Step::kWait || step == Step::kEnd) return step;
    }
  }

  base::UniqueFd peer_;
  std::optional<EventPipeStream> stream_;
  std::size_t events_ = 0;
};

TEST_F(EventPipeStreamTest, ReadsAStreamThatArrivesInPieces) {
  const std::string bytes = Stream();
  for (const char byte : bytes) {
    Send({&byte, 1});
    ReadAll();
  }
  EXPECT_EQ(stream_->Next(), Step::kEnd);
  EXPECT_EQ(stream_->reason(), "");
  EXPECT_FALSE(stream_->is_cut());
  EXPECT_GT(events_, 0u);
  EXPECT_EQ(events_, stream_->reader().stats().events);
}

TEST_F(EventPipeStreamTest, WaitsForARestThatDoesNotArrive) {
  const std::string bytes = Stream();
  Send(std::string_view(bytes).substr(0, bytes.size() - 20));
  EXPECT_EQ(ReadAll(), Step::kWait);
  EXPECT_EQ(ReadAll(), Step::kWait);
  EXPECT_FALSE(stream_->has_more());
}

TEST_F(EventPipeStreamTest, ReportsACut) {
  const std::string bytes = Stream();
  Send(std::string_view(bytes).substr(0, bytes.size() - 20));
  peer_.reset();
  EXPECT_EQ(ReadAll(), Step::kEnd);
  EXPECT_TRUE(stream_->is_cut());
  EXPECT_EQ(stream_->reason(), "its stream was cut; its last events may be missing");
  EXPECT_GT(events_, 0u);
}

TEST_F(EventPipeStreamTest, ReportsBytesThatAreNoStream) {
  Send(std::string(1000, 'x'));
  EXPECT_EQ(ReadAll(), Step::kEnd);
  EXPECT_FALSE(stream_->is_cut());
  EXPECT_NE(stream_->reason().find("its stream cannot be read: not a NetTrace file"),
            std::string::npos)
      << stream_->reason();
  EXPECT_EQ(ReadAll(), Step::kEnd);
}

TEST_F(EventPipeStreamTest, ReportsDamage) {
  std::string bytes = Stream();
  bytes[bytes.size() / 2] ^= '\x7F';
  bytes[102] = 'x';  // the tag of the first object after the Trace block
  Send(bytes);
  EXPECT_EQ(ReadAll(), Step::kEnd);
  EXPECT_NE(stream_->reason().find("its stream cannot be read: "), std::string::npos);
  EXPECT_EQ(events_, 0u);
}

TEST_F(EventPipeStreamTest, ReportsALargeBlockBeforeItHasArrived) {
  // A block of 1 GiB.
  const std::string start = Stream().substr(0, 102);
  std::string type = std::string("\5\5\1\4\0\0\0\4\0\0\0\x0A\0\0\0", 15) + "EventBlock\6";
  Send(start + type + std::string("\0\0\0\x40\0\0\0", 7));
  EXPECT_EQ(ReadAll(), Step::kEnd);
  EXPECT_NE(stream_->reason().find("a block of 1073741824 bytes"), std::string::npos)
      << stream_->reason();
}

TEST_F(EventPipeStreamTest, ReceivesNoMoreThanAllowed) {
  Send(std::string(100'000, 'N'));
  stream_->Allow(10);
  EXPECT_EQ(stream_->Next(), Step::kWait);
  EXPECT_TRUE(stream_->has_more());
  EXPECT_EQ(ReadAll(), Step::kEnd);
}

TEST_F(EventPipeStreamTest, RefusesAnotherClock) {
  std::string bytes = Stream();
  Put(1, kTicksAt, &bytes);
  Send(bytes);
  EXPECT_EQ(ReadAll(), Step::kEnd);
  EXPECT_NE(stream_->reason().find("its clock is not that of the collector"), std::string::npos);
  EXPECT_EQ(events_, 0u);
}

TEST_F(EventPipeStreamTest, RefusesAnotherVersion) {
  std::ifstream file(tests::SourcePath("tests/fuzz/nettrace/corpus/v6-one-of-everything"),
                     std::ios::binary);
  Send(std::string(std::istreambuf_iterator<char>(file), {}));
  EXPECT_EQ(ReadAll(), Step::kEnd);
  EXPECT_NE(stream_->reason().find("version 6"), std::string::npos) << stream_->reason();
}

TEST_F(EventPipeStreamTest, CannotAskAProcessWithoutASocketToStop) {
  EXPECT_FALSE(stream_->RequestStop());
  EXPECT_FALSE(stream_->was_asked());
}

}  // namespace
}  // namespace collector
