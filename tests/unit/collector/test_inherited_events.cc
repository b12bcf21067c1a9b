#include <gtest/gtest.h>

#include "tools/collector/perf/inherited_events.h"

namespace collector {
namespace {

using State = InheritedEvents::State;

constexpr pid_t kMain = 100;

// Tests which threads have a perf event that threads inherit from their creators. The event was
// opened for the main thread between the times 1000 and 1010.
class InheritedEventsTest : public ::testing::Test {
 protected:
  InheritedEventsTest() { events_.Opened(kMain, 1000, 1010); }
  InheritedEvents events_;
};

TEST_F(InheritedEventsTest, ThreadForWhichItWasOpenedHasIt) {
  EXPECT_EQ(events_.Find(kMain), State::kHas);
}

TEST_F(InheritedEventsTest, UnknownThreadIsUnclear) {
  EXPECT_EQ(events_.Find(101), State::kUnclear);
}

TEST_F(InheritedEventsTest, ThreadCreatedBeforeTheOpeningLacksIt) {
  events_.Created(101, kMain, 999);
  EXPECT_EQ(events_.Find(101), State::kLacks);
  events_.Opened(101, 1020, 1030);
  EXPECT_EQ(events_.Find(101), State::kHas);
}

TEST_F(InheritedEventsTest, FirstThreadCreatedAfterTheOpeningIsUnclear) {
  // The creation of 102 was recorded after the event was opened, but may have begun before that.
  events_.Created(101, kMain, 1000);
  events_.Created(102, kMain, 1011);
  EXPECT_EQ(events_.Find(101), State::kUnclear);
  EXPECT_EQ(events_.Find(102), State::kUnclear);
}

TEST_F(InheritedEventsTest, SecondThreadCreatedAfterTheOpeningHasIt) {
  events_.Created(101, kMain, 1011);
  events_.Created(102, kMain, 1012);
  EXPECT_EQ(events_.Find(102), State::kHas);
  // The threads of each creator count separately: 201 is the first thread that 200 creates, so it
  // may lack the event.
  events_.Opened(200, 1020, 1030);
  events_.Created(201, 200, 1031);
  EXPECT_EQ(events_.Find(201), State::kUnclear);
}

TEST_F(InheritedEventsTest, RepeatedCreationCountsOnce) {
  events_.Created(101, kMain, 1011);
  events_.Created(101, kMain, 1011);
  EXPECT_EQ(events_.Find(101), State::kUnclear);
  events_.Created(102, kMain, 1012);
  events_.Created(101, kMain, 1011);
  EXPECT_EQ(events_.Find(101), State::kUnclear);
  EXPECT_EQ(events_.Find(102), State::kHas);
}

TEST_F(InheritedEventsTest, CreatorThatHasEndedDecidesForItsThreads) {
  events_.Created(101, kMain, 1011);
  events_.Created(102, kMain, 1012);  // has the event
  events_.Created(103, 102, 1013);
  EXPECT_EQ(events_.Find(103), State::kHas);
  events_.Created(111, 101, 1014);
  EXPECT_EQ(events_.Find(111), State::kUnclear);
  events_.Created(120, kMain, 900);  // lacks the event
  events_.Created(121, 120, 2000);
  EXPECT_EQ(events_.Find(121), State::kLacks);
}

TEST_F(InheritedEventsTest, ThreadOfACreatorThatEndedBeforeTheOpeningLacksIt) {
  events_.Created(101, 99, 998);
  EXPECT_EQ(events_.Find(101), State::kLacks);
}

TEST_F(InheritedEventsTest, ReusedTidIsTheLaterThread) {
  events_.Created(101, kMain, 900);
  events_.Created(102, kMain, 1011);
  events_.Created(101, kMain, 1012);
  EXPECT_EQ(events_.Find(101), State::kHas);
}

TEST_F(InheritedEventsTest, CircleOfCreatorsIsUnclear) {
  events_.Created(101, 102, 1011);
  events_.Created(102, 101, 1012);
  EXPECT_EQ(events_.Find(101), State::kUnclear);
}

}  // namespace
}  // namespace collector
