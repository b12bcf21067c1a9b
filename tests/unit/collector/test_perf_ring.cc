// The ring reader on memory laid out as the kernel does.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/support/collector/memory_ring.h"
#include "tools/collector/perf/perf_ring.h"

namespace collector {
namespace {

class FakeRing : public MemoryRing {
 public:
  using MemoryRing::MemoryRing;

  // A sample whose raw data is `number` and padding up to `raw_size`.
  void PutSample(std::uint64_t time, std::uint32_t number, std::uint32_t raw_size = 4) {
    std::vector<std::byte> raw(raw_size);
    Set(&raw, 0, number);
    Put(Sample(10, 11, time, raw));
  }

  void PutLost(std::uint64_t time, std::uint64_t lost) {
    std::vector<std::byte> bytes(40);
    Set(&bytes, 0, perf_event_header{PERF_RECORD_LOST, 0, 40});
    Set(&bytes, 16, lost);
    Set(&bytes, 32, time);
    Put(bytes);
  }
};

// The numbers of the samples that come up to `limit`.
std::vector<std::uint32_t> Drain(PerfRing* ring, std::uint64_t limit) {
  std::vector<std::uint32_t> numbers;
  std::uint64_t last = 0;
  ring->Drain(limit, [&](const PerfRecord& record) {
    EXPECT_GE(record.timestamp, last);
    EXPECT_LE(record.timestamp, limit);
    last = record.timestamp;
    SampleRecord sample;
    ASSERT_TRUE(ParseSample(record, &sample));
    EXPECT_EQ(sample.pid, 10u);
    EXPECT_EQ(sample.tid, 11u);
    std::uint32_t number;
    ASSERT_GE(sample.raw.size(), sizeof number);
    std::memcpy(&number, sample.raw.data(), sizeof number);
    numbers.push_back(number);
  });
  return numbers;
}

using Numbers = std::vector<std::uint32_t>;
constexpr std::uint64_t kAll = ~std::uint64_t{0};

TEST(PerfRing, EmptyRingGivesNothing) {
  FakeRing fake(4096);
  PerfRing ring = fake.reader();
  EXPECT_EQ(Drain(&ring, kAll), Numbers{});
}

TEST(PerfRing, RecordsComeOnceAndTheirSpaceGoesBack) {
  FakeRing fake(4096);
  PerfRing ring = fake.reader();
  fake.PutSample(1, 1);
  fake.PutSample(2, 2);
  EXPECT_EQ(Drain(&ring, kAll), (Numbers{1, 2}));
  EXPECT_EQ(ring.fill(), 0u);
  EXPECT_EQ(Drain(&ring, kAll), Numbers{});
}

TEST(PerfRing, RecordAcrossTheEndIsWhole) {
  FakeRing fake(4096);
  for (std::uint64_t start = 4096 - 64; start <= 4096; start += 8) {
    fake.StartAt(start);
    PerfRing ring = fake.reader();
    fake.PutSample(1, 7, 36);
    fake.PutSample(2, 8, 36);
    EXPECT_EQ(Drain(&ring, kAll), (Numbers{7, 8})) << start;
  }
}

TEST(PerfRing, LaterThanTheLimitStays) {
  FakeRing fake(4096);
  PerfRing ring = fake.reader();
  fake.PutSample(1, 1);
  fake.PutSample(5, 2);
  EXPECT_EQ(Drain(&ring, 4), Numbers{1});
  EXPECT_EQ(ring.fill(), 32u);
  EXPECT_EQ(Drain(&ring, 5), Numbers{2});
}

TEST(PerfRing, InterruptBetweenTimestampAndPlaceIsPutRight) {
  FakeRing fake(4096);
  PerfRing ring = fake.reader();
  fake.PutSample(10, 2);
  fake.PutSample(12, 3);
  fake.PutSample(9, 1);
  EXPECT_EQ(Drain(&ring, kAll), (Numbers{1, 2, 3}));
}

TEST(PerfRing, EarlierRecordAfterTheLimitIsFoundAndTheLaterOnesComeLater) {
  FakeRing fake(4096);
  PerfRing ring = fake.reader();
  fake.PutSample(1, 1);
  fake.PutSample(20, 4);
  fake.PutSample(21, 5);
  fake.PutSample(2, 2);
  fake.PutSample(22, 6);
  EXPECT_EQ(Drain(&ring, 10), (Numbers{1, 2}));
  fake.PutSample(11, 3);
  EXPECT_EQ(Drain(&ring, 20), (Numbers{3, 4}));
  EXPECT_EQ(Drain(&ring, kAll), (Numbers{5, 6}));
  EXPECT_EQ(ring.fill(), 0u);
}

TEST(PerfRing, EqualTimestampsKeepTheirOrder) {
  FakeRing fake(4096);
  PerfRing ring = fake.reader();
  for (std::uint32_t i = 0; i < 50; ++i) fake.PutSample(i < 40 ? 5 : 4, i);
  const Numbers numbers = Drain(&ring, kAll);
  ASSERT_EQ(numbers.size(), 50u);
  for (std::uint32_t i = 0; i < 10; ++i) EXPECT_EQ(numbers[i], 40 + i);
  for (std::uint32_t i = 10; i < 50; ++i) EXPECT_EQ(numbers[i], i - 10);
}

TEST(PerfRing, SpaceGoesBackDuringALongDrain) {
  FakeRing fake(1 << 16);
  PerfRing ring = fake.reader();
  for (std::uint32_t i = 0; i < 1000; ++i) fake.PutSample(i, i);
  std::size_t seen = 0;
  ring.Drain(kAll, [&](const PerfRecord&) {
    if (++seen == 600) {
      EXPECT_LE(ring.fill(), 500u * 32);
    }
  });
  EXPECT_EQ(seen, 1000u);
}

TEST(PerfRing, LostRecordHasItsPlaceInTime) {
  FakeRing fake(4096);
  PerfRing ring = fake.reader();
  fake.PutSample(1, 1);
  fake.PutLost(2, 17);
  std::vector<std::uint32_t> types;
  ring.Drain(kAll, [&](const PerfRecord& record) { types.push_back(record.type()); });
  EXPECT_EQ(types, (Numbers{PERF_RECORD_SAMPLE, PERF_RECORD_LOST}));
}

TEST(PerfRing, BadSizeIsCountedAndPassedOver) {
  FakeRing fake(4096);
  PerfRing ring = fake.reader();
  fake.PutSample(1, 1);
  fake.Put(std::vector<std::byte>(32));  // a header of size 0
  EXPECT_EQ(Drain(&ring, kAll), Numbers{1});
  EXPECT_EQ(ring.corrupt(), 1u);
  fake.PutSample(2, 2);
  EXPECT_EQ(Drain(&ring, kAll), Numbers{2});
}

TEST(PerfRing, RawSizeBeyondTheRecordIsNoSample) {
  FakeRing fake(4096);
  PerfRing ring = fake.reader();
  std::vector<std::byte> bytes(32);
  FakeRing::Set(&bytes, 0, perf_event_header{PERF_RECORD_SAMPLE, 0, 32});
  FakeRing::Set(&bytes, 24, std::uint32_t{5});
  fake.Put(bytes);
  ring.Drain(kAll, [&](const PerfRecord& record) {
    SampleRecord sample;
    EXPECT_FALSE(ParseSample(record, &sample));
  });
}

// Whatever the order in the ring and wherever the limits fall: each record once, in time order as
// far as kLookAhead reaches.
TEST(PerfRing, RandomOrdersAndLimits) {
  std::mt19937 generator(1);
  const auto random = [&] { return static_cast<std::uint32_t>(generator()); };
  for (int round = 0; round < 200; ++round) {
    FakeRing fake(8192);
    fake.StartAt(random() % 1024 * 8);
    PerfRing ring = fake.reader();
    std::uint32_t written = 0;
    std::uint64_t time = 100;
    Numbers all;
    for (int step = 0; step < 20; ++step) {
      for (std::uint32_t i = random() % 20; i > 0 && ring.fill() < 7000; --i) {
        time += random() % 3;
        fake.PutSample(time - random() % 5, written++, 4 + random() % 4 * 8);
      }
      const Numbers some = Drain(&ring, time - random() % 20);
      all.insert(all.end(), some.begin(), some.end());
    }
    const Numbers rest = Drain(&ring, kAll);
    all.insert(all.end(), rest.begin(), rest.end());
    std::sort(all.begin(), all.end());
    ASSERT_EQ(all.size(), written);
    for (std::uint32_t i = 0; i < written; ++i) ASSERT_EQ(all[i], i);
    EXPECT_EQ(ring.corrupt(), 0u);
  }
}

}  // namespace
}  // namespace collector
