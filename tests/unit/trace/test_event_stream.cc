// Tests the steps in which programs read a stream: selected events, other events, and losses with
// their places.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nettrace/writer.h"
#include "tests/support/nettrace/open_bytes.h"
#include "tests/support/nettrace/stream_builder.h"
#include "tools/trace/event_stream.h"

namespace trace {
namespace {

using nettrace::Block;
using nettrace::BlockKind;
using nettrace::Bytes;
using Step = EventStream::Step;
using Steps = std::vector<std::string>;

// Returns a stream with events and losses of two threads. The event of thread 2 is earlier than the
// event before it in the file.
Bytes Stream() {
  Bytes stream = nettrace::Start();
  stream.Append(nettrace::MetadataBlock({{}, {.id = 2, .name = "Other"}}));
  stream.Append(nettrace::ThreadBlock({1, 2}));
  stream.Append(nettrace::EventBlock({{}, {.sequence = 4, .timestamp = 2020}}));
  stream.Append(nettrace::EventBlock(
      {{.metadata_id = 2, .capture_thread = 2, .thread = 2, .timestamp = 2010}}));
  stream.Append(Block(BlockKind::kRemoveThread, Bytes().Var(2).Var(4)));
  stream.Append(nettrace::SequencePointBlock(2030, 0, {{1, 9}}));
  return stream.Append(nettrace::End());
}

// Reads all steps, and describes them with their times in ticks.
Steps ReadAll(const Bytes& bytes, const EventStreamOptions& options) {
  EventStream stream(nettrace::testing::OpenBytes(bytes.span()), options);
  const auto time = [&](std::uint64_t ticks) { return stream.reader().TimeOf(ticks); };
  Steps steps;
  for (Step step = stream.Next(); step != Step::kEnd; step = stream.Next()) {
    EXPECT_EQ(stream.time(), time(stream.ticks()));
    if (step == Step::kLoss) {
      const Loss& loss = stream.loss();
      EXPECT_EQ(loss.time, stream.time());
      EXPECT_EQ(loss.capture_thread->thread_id,
                4242 + static_cast<std::uint32_t>(loss.capture_thread_index));
      steps.push_back(absl::StrCat(stream.ticks(), " thread ",
                                   static_cast<std::uint32_t>(loss.capture_thread_index), " lost ",
                                   loss.count, loss.next != nullptr ? " before an event" : ""));
      EXPECT_TRUE(loss.next == nullptr || loss.next->timestamp == stream.ticks());
    } else if (step == Step::kSequencePoint) {
      steps.push_back(absl::StrCat(stream.ticks(), " sequence point"));
    } else {
      EXPECT_EQ(stream.event().timestamp, stream.ticks());
      steps.push_back(absl::StrCat(stream.ticks(), step == Step::kEvent ? " " : " not ",
                                   stream.event().metadata->name));
    }
  }
  EXPECT_EQ(stream.Next(), Step::kEnd);
  EXPECT_TRUE(stream.sort_status().ok());
  EXPECT_TRUE(stream.reader().status().ok());
  return steps;
}

TEST(EventStreamTest, ReturnsEventsAndLossesInTheOrderOfTime) {
  EXPECT_EQ(ReadAll(Stream(), {}),
            (Steps{"2000 Event", "2010 Other", "2020 thread 1 lost 2 before an event", "2020 Event",
                   "2020 thread 2 lost 3", "2030 thread 1 lost 5", "2030 sequence point"}));
}

TEST(EventStreamTest, ReturnsStepsInTheOrderOfTheFile) {
  EXPECT_EQ(ReadAll(Stream(), {.file_order = true}),
            (Steps{"2000 Event", "2020 thread 1 lost 2 before an event", "2020 Event", "2010 Other",
                   "2010 thread 2 lost 3", "2030 thread 1 lost 5", "2030 sequence point"}));
}

TEST(EventStreamTest, ReturnsOtherEventsThatDoNotPassTheFilter) {
  EventFilter filter;
  filter.events = {"Other"};
  EXPECT_EQ(ReadAll(Stream(), {.filter = &filter}),
            (Steps{"2000 not Event", "2010 Other", "2020 thread 1 lost 2 before an event",
                   "2020 not Event", "2020 thread 2 lost 3", "2030 thread 1 lost 5",
                   "2030 sequence point"}));
}

TEST(EventStreamTest, SelectsLossesByTime) {
  const Bytes bytes = Stream();
  const auto clock = nettrace::testing::OpenBytes(bytes.span());
  EventFilter filter;
  filter.from = clock->TimeOf(2021);
  EXPECT_EQ(ReadAll(bytes, {.filter = &filter}),
            (Steps{"2000 not Event", "2010 not Other", "2020 not Event", "2030 thread 1 lost 5",
                   "2030 sequence point"}));
  filter.from = clock->TimeOf(2020);
  filter.to = clock->TimeOf(2021);
  EXPECT_EQ(ReadAll(bytes, {.filter = &filter}),
            (Steps{"2000 not Event", "2010 not Other", "2020 thread 1 lost 2 before an event",
                   "2020 Event", "2020 thread 2 lost 3", "2030 sequence point"}));
}

TEST(EventStreamTest, LossesBeforeTheFirstTimeAreAtTheBeginning) {
  Bytes bytes = nettrace::Start();
  bytes.Append(nettrace::ThreadBlock({1}));
  bytes.Append(Block(BlockKind::kRemoveThread, Bytes().Var(1).Var(4))).Append(nettrace::End());
  for (const bool file_order : {false, true}) {
    EventStream stream(nettrace::testing::OpenBytes(bytes.span()), {.file_order = file_order});
    ASSERT_EQ(stream.Next(), Step::kLoss);
    EXPECT_EQ(stream.loss().count, 4u);
    EXPECT_EQ(stream.loss().time, absl::InfinitePast());
    EXPECT_EQ(stream.ticks(), 0u);
    EXPECT_EQ(stream.Next(), Step::kEnd);
  }
}

TEST(EventStreamTest, ReportsWhereTheStreamIsCut) {
  const Bytes whole = Stream();
  EventStream stream(
      nettrace::testing::OpenBytes(whole.span().first(whole.size() - nettrace::End().size())));
  while (stream.Next() != Step::kEnd) continue;
  EXPECT_FALSE(stream.reader().status().ok());
  EXPECT_EQ(stream.reader().stats().events, 3u);
}

TEST(EventStreamTest, KnowsTheNameOfAProcessAtTheEventThatStatesIt) {
  const Bytes name =
      nettrace::FieldRow("Name", nettrace::Code(nettrace::TypeCode::kNullTerminatedUtf16String));
  Bytes bytes = nettrace::Start();
  bytes.Append(nettrace::MetadataBlock(
      {{},
       {.id = 2, .provider = "Universal.System", .name = "ExistingProcess", .fields = {name}}}));
  bytes.Append(nettrace::ThreadBlock({1}));
  bytes.Append(nettrace::EventBlock(
      {{},
       {.metadata_id = 2, .sequence = 2, .timestamp = 2001, .payload = Bytes().U16('x').U16(0)}}));
  bytes.Append(nettrace::End());
  ProcessNames names;
  EventStream stream(nettrace::testing::OpenBytes(bytes.span()), {.names = &names});
  ASSERT_EQ(stream.Next(), Step::kEvent);
  EXPECT_EQ(names.NameOf(*stream.event().thread), "");
  ASSERT_EQ(stream.Next(), Step::kEvent);
  EXPECT_EQ(names.NameOf(*stream.event().thread), "x");
}

}  // namespace
}  // namespace trace
