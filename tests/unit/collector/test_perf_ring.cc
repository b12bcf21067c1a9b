// Tests the ring reader on memory with the layout of the kernel's rings.
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

  // Writes a sample whose raw data is `number` and padding up to `raw_size`.
  void PutSample(std::uint64_t time, std::uint32_t number, std::uint32_t raw_size = 4) {
    std::vector<std::byte> raw(raw_size);
    Set(&raw, 0, number);
    Put(Sample(10, 11, time, raw));
  }

  void PutLost(std::uint64_t time, std::uint64_t lost) { Put(Lost(time, lost)); }
};

// Bytes of a sample with 4 bytes of raw data.
constexpr std::size_t kSampleSize = 40;

// Returns the numbers of the samples up to `limit`.
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

TEST(PerfRing, KnowsHowFullItMayHaveBeen) {
  FakeRing fake(4096);
  PerfRing ring = fake.reader();
  EXPECT_EQ(ring.TakeFullest(), 0u);
  for (std::uint32_t i = 0; i < 10; ++i) fake.PutSample(i, i);
  Drain(&ring, 4);
  EXPECT_EQ(ring.TakeFullest(), 10 * kSampleSize);
  EXPECT_EQ(ring.TakeFullest(), 0u);
  Drain(&ring, kAll);
  EXPECT_EQ(ring.TakeFullest(), 5 * kSampleSize);
  // The ring's fill level includes samples that arrive while the ring is read.
  fake.PutSample(20, 20);
  ring.Drain(kAll, [&](const PerfRecord&) {
    if (fake.control()->data_head < 50 * kSampleSize) fake.PutSample(21, 21);
  });
  EXPECT_EQ(ring.TakeFullest(), 2 * kSampleSize);
  // TakeFullest() returns the maximum of several reads. Records out of order count too.
  Drain(&ring, kAll);
  fake.PutSample(40, 40);
  fake.PutSample(30, 30);
  fake.PutSample(50, 50);
  Drain(&ring, kAll);
  fake.PutSample(60, 60);
  Drain(&ring, kAll);
  EXPECT_EQ(ring.TakeFullest(), 3 * kSampleSize);
}

TEST(PerfRing, EmptyRingGivesNothing) {
  FakeRing fake(4096);
  PerfRing ring = fake.reader();
  EXPECT_EQ(Drain(&ring, kAll), Numbers{});
}

TEST(PerfRing, ReturnsRecordsOnceAndFreesTheirSpace) {
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
  EXPECT_EQ(ring.fill(), kSampleSize);
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

TEST(PerfRing, FreesSpaceDuringALongDrain) {
  FakeRing fake(1 << 16);
  PerfRing ring = fake.reader();
  for (std::uint32_t i = 0; i < 1000; ++i) fake.PutSample(i, i);
  std::size_t seen = 0;
  ring.Drain(kAll, [&](const PerfRecord&) {
    if (++seen == 600) {
      EXPECT_LE(ring.fill(), 600u * kSampleSize);
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

// Returns the number of each sample, and 0 for each other record, in the order of delivery.
Numbers DrainAll(PerfRing* ring, std::uint64_t limit) {
  Numbers seen;
  ring->Drain(limit, [&](const PerfRecord& record) {
    SampleRecord sample;
    std::uint32_t number = 0;
    if (ParseSample(record, &sample)) std::memcpy(&number, sample.raw.data(), sizeof number);
    seen.push_back(number);
  });
  return seen;
}

// A LOST record precedes the next record in the ring, but can have a later timestamp, because the
// kernel reads the clock for the next record first.
TEST(PerfRing, LossStandsBeforeTheRecordThatFollowsItInTheRing) {
  FakeRing fake(4096);
  PerfRing ring = fake.reader();
  fake.PutSample(1, 1);
  fake.PutLost(11, 17);
  fake.PutSample(10, 2);
  fake.PutSample(12, 3);
  EXPECT_EQ(DrainAll(&ring, 9), (Numbers{1}));
  EXPECT_EQ(DrainAll(&ring, 10), (Numbers{0, 2}));
  EXPECT_EQ(DrainAll(&ring, kAll), (Numbers{3}));

  // The loss also stays before sample 4, which follows it in the ring, if the reader has to sort
  // the samples and keeps a copy of sample 4 until a later call.
  fake.PutSample(30, 5);
  fake.PutLost(31, 17);
  fake.PutSample(28, 4);
  fake.PutSample(20, 2);
  EXPECT_EQ(DrainAll(&ring, 25), (Numbers{2}));
  EXPECT_EQ(DrainAll(&ring, 28), (Numbers{0, 4}));
  EXPECT_EQ(DrainAll(&ring, kAll), (Numbers{5}));
  EXPECT_EQ(ring.corrupt(), 0u);
}

TEST(PerfRing, RecordsInOrderAreHandedOutWhereTheyLie) {
  FakeRing fake(4096);
  PerfRing ring = fake.reader();
  for (std::uint32_t i = 0; i < 100; ++i) fake.PutSample(i, i);
  std::size_t seen = 0;
  ring.Drain(kAll, [&](const PerfRecord& record) {
    EXPECT_EQ(record.bytes.data(), fake.data() + kSampleSize * seen);
    ++seen;
  });
  EXPECT_EQ(seen, 100u);
}

// The reader searches the first 64 records after the limit for a late record. A late record after
// those is delivered by the next call.
TEST(PerfRing, LateRecordIsLookedForPastTheLimit) {
  for (const std::uint32_t between : {0U, 1U, 63U, 64U, 100U}) {
    FakeRing fake(8192);
    PerfRing ring = fake.reader();
    fake.PutSample(1, 1);
    for (std::uint32_t i = 0; i < between; ++i) fake.PutSample(20 + i, 100 + i);
    fake.PutSample(2, 2);
    const bool found = between < PerfRing::kLookAhead;
    EXPECT_EQ(Drain(&ring, 10), found ? (Numbers{1, 2}) : (Numbers{1})) << between;
    const Numbers rest = DrainAll(&ring, kAll);
    EXPECT_EQ(rest.size(), between + (found ? 0 : 1)) << between;
    EXPECT_EQ(ring.fill(), 0u);
  }
}

TEST(PerfRing, UnalignedSizeIsCountedAndPassedOver) {
  for (const __u16 size : {__u16{4}, __u16{33}, __u16{36}}) {
    FakeRing fake(4096);
    PerfRing ring = fake.reader();
    fake.PutSample(1, 1);
    std::vector<std::byte> bytes(40);
    FakeRing::Set(&bytes, 0, perf_event_header{PERF_RECORD_SAMPLE, 0, size});
    fake.Put(bytes);
    EXPECT_EQ(Drain(&ring, kAll), Numbers{1});
    EXPECT_EQ(ring.corrupt(), 1u);
    fake.PutSample(2, 2);
    EXPECT_EQ(Drain(&ring, kAll), Numbers{2});
  }
}

TEST(PerfRing, SampleWithoutATimestampIsCountedAndLeftOut) {
  FakeRing fake(4096);
  PerfRing ring = fake.reader();
  fake.PutSample(1, 1);
  std::vector<std::byte> bytes(16);
  FakeRing::Set(&bytes, 0, perf_event_header{PERF_RECORD_SAMPLE, 0, 16});
  fake.Put(bytes);
  fake.PutSample(2, 2);
  EXPECT_EQ(Drain(&ring, kAll), (Numbers{1, 2}));
  EXPECT_EQ(ring.corrupt(), 1u);
}

TEST(PerfRing, BadSizeIsCountedAndPassedOver) {
  FakeRing fake(4096);
  PerfRing ring = fake.reader();
  fake.PutSample(1, 1);
  fake.Put(std::vector<std::byte>(32));  // A header with size 0.
  EXPECT_EQ(Drain(&ring, kAll), Numbers{1});
  EXPECT_EQ(ring.corrupt(), 1u);
  fake.PutSample(2, 2);
  EXPECT_EQ(Drain(&ring, kAll), Numbers{2});
}

TEST(PerfRing, RefusesARawSizeBeyondTheRecord) {
  FakeRing fake(4096);
  PerfRing ring = fake.reader();
  std::vector<std::byte> bytes(40);
  FakeRing::Set(&bytes, 0, perf_event_header{PERF_RECORD_SAMPLE, 0, 40});
  FakeRing::Set(&bytes, FakeRing::kRawSizeOffset, std::uint32_t{5});
  fake.Put(bytes);
  ring.Drain(kAll, [&](const PerfRecord& record) {
    SampleRecord sample;
    EXPECT_FALSE(ParseSample(record, &sample));
  });
}

TEST(PerfRing, PeekShowsWaitingRecordsWithoutRemovingThem) {
  FakeRing fake(4096);
  PerfRing ring = fake.reader();
  // Enough rounds that a record crosses the end of the ring.
  for (int round = 0; round < 5; ++round) {
    for (std::uint32_t i = 0; i < 30; ++i) fake.PutSample(100 + i, i);
    for (int look = 0; look < 2; ++look) {
      std::uint32_t seen = 0;
      ring.Peek([&seen](const PerfRecord& record) {
        EXPECT_EQ(record.timestamp, 100 + seen);
        EXPECT_EQ(record.bytes.size(), kSampleSize);
        ++seen;
      });
      EXPECT_EQ(seen, 30u);
    }
    EXPECT_EQ(Drain(&ring, kAll).size(), 30u);
    ring.Peek([](const PerfRecord&) { ADD_FAILURE() << "the record has been drained"; });
  }
}

// Each record is delivered once, whatever the order in the ring and whatever the limits.
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
