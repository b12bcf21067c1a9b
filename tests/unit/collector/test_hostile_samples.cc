// Tests samples that any process may have written, from the ring to the file: each becomes an event
// of the file.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "nettrace/reader.h"
#include "nettrace/sink.h"
#include "tests/support/collector/memory_ring.h"
#include "tests/support/collector/sample_trace.h"
#include "tests/support/collector/tracepoint_format.h"

namespace collector {
namespace {

using namespace std::string_literals;

// Returns a tracepoint's record of an event with numbers, texts, an array, a struct, and an
// activity if `in_activity`.
std::string GoodRecord(bool in_activity) {
  const std::string metadata = "Name\0a\0\x04"s + "s\0\x0A"s + "b\0\x43"s + "t\0\x81\2"s +
                               "c\0\x02"s + "u\0\x0B"s + "d\0\x05"s;
  std::string record = "\x07\0\0\0\0\0\0\0"s + "\x07\0\0\0\0\0\0\4"s;
  if (in_activity) record += "\x10\0\x02\x80"s + std::string(16, '\x33');
  record += static_cast<char>(metadata.size());
  record += "\0\x01\0"s + metadata;
  return record + "4444" + "\7\0seventy"s +
         "\2\0"
         "2233"
         "1"
         "\1\0"
         "v\0"
         "88888888"s;
}

TEST(HostileSamples, EachIsAnEventWhateverItsBytes) {
  std::mt19937 generator(1);
  const auto below = [&](std::size_t limit) { return generator() % limit; };
  auto sink = std::make_unique<nettrace::MemorySink>();
  const nettrace::MemorySink* const file = sink.get();
  auto writer = nettrace::Writer::Create(std::move(sink), {});
  ASSERT_TRUE(writer.ok());
  TaskTracker tasks;
  testing::SampleTrace samples(writer->get(), &tasks, {0});
  ASSERT_TRUE(
      samples.AddTracepoint(7, "user_events", "P_L4K2", EventHeaderFormat(7, "P_L4K2")).ok());

  MemoryRing memory(1 << 14);
  memory.StartAt(below(1000) * 8);
  PerfRing ring = memory.reader();
  std::uint64_t time = 1;
  std::uint64_t written = 0;
  for (int round = 0; round < 3000; ++round) {
    for (std::size_t i = below(20); i > 0; --i) {
      std::string record = GoodRecord(below(2) == 0);
      // The first 8 bytes of the record come from the kernel, so only the event is changed.
      for (std::size_t changes = below(4); changes > 0; --changes) {
        record[8 + below(record.size() - 8)] = static_cast<char>(below(256));
      }
      if (below(4) == 0) record.resize(8 + below(record.size() - 8));
      time += below(3);
      memory.Put(MemoryRing::Sample(1000, 4'000'000 + static_cast<std::uint32_t>(below(3)),
                                    time - below(2), std::as_bytes(std::span(record))));
      ++written;
    }
    const std::uint64_t limit = below(3) == 0 ? PerfRing::kNoLimit : time - below(3);
    ring.Drain(limit, [&](const PerfRecord& record) {
      SampleRecord sample;
      ASSERT_TRUE(ParseSample(record, &sample));
      EXPECT_TRUE(samples.Write(0, sample, record.timestamp).ok());
    });
    if (below(50) == 0) {
      EXPECT_TRUE(samples.WriteSequencePoint(++time).ok());
    }
  }
  ring.Drain(PerfRing::kNoLimit, [&](const PerfRecord& record) {
    SampleRecord sample;
    ASSERT_TRUE(ParseSample(record, &sample));
    EXPECT_TRUE(samples.Write(0, sample, record.timestamp).ok());
  });
  EXPECT_EQ(ring.corrupt(), 0u);
  EXPECT_EQ((*writer)->stats().events, written);
  EXPECT_GT(samples.stats().undecoded, 0u);
  EXPECT_LT(samples.stats().undecoded, written);
  ASSERT_TRUE((*writer)->Finish().ok());

  auto reader = nettrace::Reader::Open(std::make_unique<nettrace::MemorySource>(file->bytes()));
  ASSERT_TRUE(reader.ok());
  std::uint64_t shown = 0;
  for (auto step = (*reader)->Next(); step != nettrace::Reader::Step::kEnd;
       step = (*reader)->Next()) {
    if (step == nettrace::Reader::Step::kEvent) ++shown;
  }
  EXPECT_TRUE((*reader)->status().ok()) << (*reader)->status();
  EXPECT_EQ(shown, written);
  EXPECT_EQ((*reader)->stats().lost, 0u);
}

}  // namespace
}  // namespace collector
