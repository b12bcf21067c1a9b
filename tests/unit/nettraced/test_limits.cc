// Tests how often the daemon retries and answers triggers, and when it treats a thread as hung.
#include <gtest/gtest.h>

#include <vector>

#include "absl/time/time.h"
#include "tools/nettraced/backoff.h"
#include "tools/nettraced/heartbeat.h"
#include "tools/nettraced/rate_limit.h"

namespace nettraced {
namespace {

TEST(BackoffTest, WaitsGrowToTheMaximumAndRestartAfterASuccess) {
  Backoff backoff;
  std::vector<absl::Duration> waits;
  waits.reserve(7);
  for (int i = 0; i < 7; ++i) waits.push_back(backoff.Next());
  EXPECT_EQ(waits, (std::vector<absl::Duration>{
                       absl::Seconds(1), absl::Seconds(2), absl::Seconds(4), absl::Seconds(8),
                       absl::Seconds(16), absl::Seconds(30), absl::Seconds(30)}));
  backoff.Reset();
  EXPECT_EQ(backoff.Next(), absl::Seconds(1));
}

TEST(RateLimitTest, NoSpanOfTheTimeHasMoreThanTheCount) {
  RateLimit limit(2, absl::Seconds(10));
  EXPECT_TRUE(limit.Take(absl::Seconds(100)));
  EXPECT_TRUE(limit.Take(absl::Seconds(109)));
  EXPECT_FALSE(limit.Take(absl::Seconds(109)));
  // At 110 s, the request of 100 s no longer counts. The refused request never counts. At 118 s,
  // the requests of 109 s and 110 s count.
  EXPECT_TRUE(limit.Take(absl::Seconds(110)));
  EXPECT_FALSE(limit.Take(absl::Seconds(118)));
  EXPECT_TRUE(limit.Take(absl::Seconds(119)));
}

TEST(RateLimitTest, ACountOfZeroIsNever) {
  RateLimit limit(0, absl::Seconds(10));
  EXPECT_FALSE(limit.Take(absl::Seconds(100)));
}

TEST(HeartbeatTest, AThreadIsAliveForThePeriodAfterEachStamp) {
  Heartbeat heartbeat(absl::Seconds(10));
  EXPECT_TRUE(heartbeat.IsAlive(absl::Seconds(12), absl::Seconds(3)));
  EXPECT_FALSE(heartbeat.IsAlive(absl::Seconds(13), absl::Seconds(3)));
  heartbeat.Stamp(absl::Seconds(13));
  EXPECT_TRUE(heartbeat.IsAlive(absl::Seconds(15), absl::Seconds(3)));
}

TEST(HeartbeatTest, WorkMayTakeLongerAndAnEndedThreadIsNotHung) {
  Heartbeat heartbeat(absl::Seconds(10));
  heartbeat.BeginWork(absl::Seconds(10));
  EXPECT_TRUE(heartbeat.IsAlive(absl::Seconds(12) + Heartbeat::kWorkTime, absl::Seconds(3)));
  EXPECT_FALSE(heartbeat.IsAlive(absl::Seconds(13) + Heartbeat::kWorkTime, absl::Seconds(3)));
  heartbeat.EndWork(absl::Seconds(20));
  EXPECT_FALSE(heartbeat.IsAlive(absl::Seconds(23), absl::Seconds(3)));
  heartbeat.End();
  EXPECT_TRUE(heartbeat.IsAlive(absl::Hours(1), absl::Seconds(3)));
}

}  // namespace
}  // namespace nettraced
