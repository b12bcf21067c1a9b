#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "nettrace/time_ordered_reader.h"
#include "tests/support/nettrace/stream_builder.h"

namespace nettrace {
namespace {

using Step = TimeOrderedReader::Step;

TEST(TimeOrderedReader, SortsWithinAnIntervalAndKeepsWhatEventsReferTo) {
  const Bytes stream = GoodStream();
  auto reader = Reader::Open(std::make_unique<MemorySource>(stream.span()));
  ASSERT_TRUE(reader.ok());
  TimeOrderedReader ordered(*std::move(reader));
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

TEST(TimeOrderedReader, AnIntervalThatIsTooLongIsSortedInParts) {
  const Bytes stream = GoodStream();
  auto reader = Reader::Open(std::make_unique<MemorySource>(stream.span()));
  TimeOrderedReader ordered(*std::move(reader), {.max_interval_bytes = 1});
  int events = 0;
  for (Step step = ordered.Next(); step != Step::kEnd; step = ordered.Next()) {
    events += step == Step::kEvent;
  }
  EXPECT_EQ(events, 5);
  EXPECT_TRUE(ordered.sorted_in_parts());
}

}  // namespace
}  // namespace nettrace
