// Tests that a random trace is read as it was written.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>

#include "libnettrace-writer/core/little_endian.h"
#include "nettrace/payload.h"
#include "nettrace/reader.h"
#include "nettrace/verifier.h"
#include "tests/support/nettrace/random_trace.h"
#include "tests/support/nettrace/random_values.h"
#include "tests/support/nettrace/writer_to_string.h"

namespace nettrace {
namespace {

using testing::JsonText;
using testing::RandomFor;
using testing::RandomTrace;
using testing::WrittenEvent;

constexpr int kSteps = 400;

template <typename A, typename B>
bool Same(const A& a, const B& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

void ExpectRead(const Event& event, const WrittenEvent& expected) {
  EXPECT_EQ(*event.metadata, expected.metadata);
  EXPECT_EQ(event.metadata_id, expected.row.metadata_id);
  EXPECT_EQ(*event.thread, expected.thread);
  EXPECT_EQ(*event.capture_thread, expected.capture_thread);
  EXPECT_EQ(event.thread_index, expected.row.thread);
  EXPECT_EQ(event.processor, expected.row.processor);
  EXPECT_EQ(event.timestamp, expected.row.timestamp);
  EXPECT_EQ(*event.labels, expected.labels);
  std::vector<std::byte> stack(sizeof(std::uint64_t) * expected.stack.size());
  for (std::size_t i = 0; i < expected.stack.size(); ++i) {
    internal::StoreLittleEndian(expected.stack[i], &stack[sizeof(std::uint64_t) * i]);
  }
  EXPECT_TRUE(Same(event.stack, stack));
  EXPECT_TRUE(Same(event.payload, expected.payload));
  if (!expected.json) return;
  JsonText values;
  EXPECT_TRUE(VisitPayload(event.metadata->fields, event.payload, &values).ok());
  EXPECT_EQ(values.Finish(), *expected.json);
}

void ExpectRead(const RandomTrace& trace) {
  auto reader = Reader::Open(std::make_unique<MemorySource>(testing::Span(trace.bytes())));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->trace().sync_time, trace.info().sync_time);
  EXPECT_EQ((*reader)->trace().sync_ticks, trace.info().sync_ticks);
  EXPECT_EQ((*reader)->trace().ticks_per_second, trace.info().ticks_per_second);
  EXPECT_EQ((*reader)->trace().key_values, trace.info().key_values);

  std::map<ThreadIndex, std::deque<WrittenEvent>> expected = trace.events();
  for (auto step = (*reader)->Next(); step != Reader::Step::kEnd; step = (*reader)->Next()) {
    if (step != Reader::Step::kEvent) continue;
    std::deque<WrittenEvent>& of_thread = expected[(*reader)->event().capture_thread_index];
    ASSERT_FALSE(of_thread.empty());
    ExpectRead((*reader)->event(), of_thread.front());
    of_thread.pop_front();
  }
  for (const auto& [thread, rest] : expected) EXPECT_TRUE(rest.empty()) << ToNumber(thread);
  const Reader::Stats& stats = (*reader)->stats();
  EXPECT_TRUE(stats.complete);
  EXPECT_EQ(stats.events, trace.stats().events);
  EXPECT_EQ(stats.lost, trace.lost());
  EXPECT_EQ(stats.threads, trace.stats().threads);
  EXPECT_EQ(stats.metadata, trace.stats().metadata);
  EXPECT_EQ(stats.sequence_points, trace.stats().sequence_points);
  EXPECT_EQ(stats.bytes, trace.stats().bytes);
}

std::vector<Finding> FindingsIn(const RandomTrace& trace) {
  const auto report = Verify(std::make_unique<MemorySource>(testing::Span(trace.bytes())));
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? report->findings : std::vector<Finding>();
}

class WriterRoundTrip : public ::testing::TestWithParam<unsigned> {};

TEST_P(WriterRoundTrip, ReadsBackWrittenTraces) {
  RandomTrace trace(GetParam(), RandomFor::kAnyReader);
  trace.Write(kSteps);
  ASSERT_TRUE(trace.status().ok()) << trace.status();
  ExpectRead(trace);
  // The traces have hazards, because they are not for TraceEvent, and payloads of random bytes.
  // There must be no other findings.
  for (const Finding& finding : FindingsIn(trace)) {
    if (finding.rule->severity == Severity::kHazard) continue;
    EXPECT_STREQ(finding.rule->name, "payload") << finding.explanation;
  }
}

TEST_P(WriterRoundTrip, ReadsBackStrictTracesWithoutFindings) {
  RandomTrace trace(GetParam(), RandomFor::kTraceEvent);
  trace.Write(kSteps);
  ASSERT_TRUE(trace.status().ok()) << trace.status();
  ExpectRead(trace);
  for (const auto& [thread, events] : trace.events()) {
    for (const WrittenEvent& event : events) EXPECT_TRUE(event.json.has_value());
  }
  for (const Finding& finding : FindingsIn(trace)) {
    ADD_FAILURE() << finding.rule->name << " at " << finding.offset << ": " << finding.explanation;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, WriterRoundTrip, ::testing::Range(1U, 41U));

}  // namespace
}  // namespace nettrace
