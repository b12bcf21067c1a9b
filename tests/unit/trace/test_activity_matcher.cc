// Tests how starts and stops of activities are matched, and that open activities are bounded.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>

#include "eventheader/wire.h"
#include "tools/trace/activity_matcher.h"
#include "tools/trace/timeline.h"

namespace trace {
namespace {

// An event of activity `number`. Number 0 means no activity.
class ActivityEvent {
 public:
  ActivityEvent(eh::Opcode opcode, std::uint64_t number, const char* name = "E") {
    metadata_.opcode = static_cast<std::uint8_t>(opcode);
    metadata_.name = name;
    if (number != 0) std::memcpy(labels_.activity_id.emplace().data(), &number, sizeof number);
    event_.metadata = &metadata_;
    event_.labels = &labels_;
    event_.thread = &thread_;
  }
  ActivityEvent(const ActivityEvent&) = delete;
  ActivityEvent& operator=(const ActivityEvent&) = delete;
  const nettrace::Event& get() const { return event_; }

 private:
  nettrace::EventMetadata metadata_;
  nettrace::Labels labels_;
  nettrace::ThreadInfo thread_;
  nettrace::Event event_;
};

constexpr eh::Opcode kStart = eh::Opcode::kActivityStart;
constexpr eh::Opcode kStop = eh::Opcode::kActivityStop;

TEST(ActivityMatcherTest, OnlyEventsWithOpcodeAndActivityBeginOrEnd) {
  EXPECT_TRUE(BeginsActivity(ActivityEvent(kStart, 1).get()));
  EXPECT_FALSE(EndsActivity(ActivityEvent(kStart, 1).get()));
  EXPECT_TRUE(EndsActivity(ActivityEvent(kStop, 1).get()));
  EXPECT_FALSE(BeginsActivity(ActivityEvent(kStop, 1).get()));
  EXPECT_FALSE(BeginsActivity(ActivityEvent(kStart, 0).get()));
  EXPECT_FALSE(EndsActivity(ActivityEvent(kStop, 0).get()));
  EXPECT_FALSE(BeginsActivity(ActivityEvent(eh::Opcode::kInfo, 1).get()));
}

TEST(ActivityMatcherTest, StopEndsTheLatestBeginOfItsActivity) {
  ActivityMatcher<int> open;
  open.Add(ActivityEvent(kStart, 1).get(), 10);
  open.Add(ActivityEvent(kStart, 2).get(), 20);
  const ActivityEvent start(kStart, 1);
  const nettrace::Guid& id = *start.get().labels->activity_id;
  open.Add(start.get(), 11);
  EXPECT_EQ(open.open(), 3u);
  ASSERT_NE(open.Find(id), nullptr);
  EXPECT_EQ(*open.Find(id), 11);
  const ActivityEvent stop(kStop, 1);
  EXPECT_EQ(open.Take(stop.get()), 11);
  EXPECT_EQ(open.Take(stop.get()), 10);
  EXPECT_EQ(open.Find(id), nullptr);
  EXPECT_EQ(open.Take(stop.get()), std::nullopt);
  EXPECT_EQ(open.unmatched(), 1u);
  EXPECT_EQ(open.open(), 1u);
}

TEST(ActivityMatcherTest, ForgetsAllWhenTooManyAreOpen) {
  ActivityMatcher<std::uint64_t> open;
  for (std::uint64_t i = 1; i <= kMaxOpenActivities; ++i) {
    open.Add(ActivityEvent(kStart, i).get(), i);
  }
  EXPECT_EQ(open.open(), kMaxOpenActivities);
  EXPECT_EQ(open.forgotten(), 0u);
  open.Add(ActivityEvent(kStart, kMaxOpenActivities + 1).get(), 0);
  EXPECT_EQ(open.open(), 1u);
  EXPECT_EQ(open.forgotten(), kMaxOpenActivities);
  EXPECT_EQ(open.Take(ActivityEvent(kStop, 1).get()), std::nullopt);
  EXPECT_EQ(open.Take(ActivityEvent(kStop, kMaxOpenActivities + 1).get()), 0u);
}

TEST(OpenSlicesTest, AnEndClosesTheInnermostSlice) {
  OpenSlices slices;
  const absl::Time time = absl::UnixEpoch();
  slices.Begin(ActivityEvent(kStart, 1, "Request").get(), time, {7, 8});
  slices.Begin(ActivityEvent(kStart, 1, "Parse").get(), time + absl::Seconds(1), {7, 8});
  const auto inner = slices.End(ActivityEvent(kStop, 1, "Done").get());
  ASSERT_TRUE(inner.has_value());
  EXPECT_EQ(inner->name, "Parse");
  EXPECT_EQ(inner->begin, time + absl::Seconds(1));
  const auto outer = slices.End(ActivityEvent(kStop, 1, "Done").get());
  ASSERT_TRUE(outer.has_value());
  EXPECT_EQ(outer->name, "Request");
  EXPECT_EQ(slices.End(ActivityEvent(kStop, 1, "Done").get()), std::nullopt);
}

}  // namespace
}  // namespace trace
