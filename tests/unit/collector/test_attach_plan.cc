#include <gtest/gtest.h>

#include "tools/collector/session/attach_plan.h"

namespace collector {
namespace {

Tracefs::Name UserEvent(const std::string& name) { return {"user_events", name}; }

TEST(Filters, AreCombinedInParentheses) {
  EXPECT_EQ(BothFilters("", ""), "");
  EXPECT_EQ(BothFilters("a == 1", ""), "a == 1");
  EXPECT_EQ(BothFilters("", "a == 1"), "a == 1");
  EXPECT_EQ(BothFilters("a == 1 || b == 2", "c == 3"), "(a == 1 || b == 2) && (c == 3)");
  EXPECT_EQ(EitherFilter({}), "");
  EXPECT_EQ(EitherFilter({"a == 1"}), "a == 1");
  EXPECT_EQ(EitherFilter({"a == 1", "b == 2 && c == 3"}), "(a == 1) || (b == 2 && c == 3)");
}

TEST(Filters, MessageIsTheKernelsWithThePlace) {
  EXPECT_EQ(FilterMessage("nosuch == 1\n       ^\nparse_error: Field not found\n\n"),
            "Field not found, at '== 1'");
  EXPECT_EQ(FilterMessage("prev_comm ~ 1\n             ^\nparse_error: Expecting string field\n"),
            "Expecting string field, at its end");
  EXPECT_EQ(FilterMessage("none\n"), "");
  EXPECT_EQ(FilterMessage("a &&& 2\nError: (0)\n"), "");
  EXPECT_EQ(FilterMessage(""), "");
}

TEST(InTurns, ProvidersTakeTurnsAndKeepTheirOrder) {
  const std::vector<Tracefs::Name> names = InTurns({
      UserEvent("Loud_L1K1"),
      UserEvent("Loud_L1K2"),
      UserEvent("Loud_L1K4"),
      UserEvent("My_Service_L4K1"),
      {"sched", "sched_switch"},
      {"sched", "sched_wakeup"},
      UserEvent("My_Service_L5K1"),
  });
  ASSERT_EQ(names.size(), 7u);
  EXPECT_EQ(names[0].event, "Loud_L1K1");
  EXPECT_EQ(names[1].event, "My_Service_L4K1");
  EXPECT_EQ(names[2].event, "sched_switch");
  EXPECT_EQ(names[3].event, "Loud_L1K2");
  EXPECT_EQ(names[4].event, "sched_wakeup");
  EXPECT_EQ(names[5].event, "My_Service_L5K1");
  EXPECT_EQ(names[6].event, "Loud_L1K4");
}

TEST(InTurns, ProviderIsThatOfTheName) {
  EXPECT_EQ(ProviderOf(UserEvent("My_Service_L4K1")), "My_Service");
  EXPECT_EQ(ProviderOf(UserEvent("other_event")), "other");
  EXPECT_EQ(ProviderOf({"sched", "sched_switch"}), "sched");
  EXPECT_EQ(BeginningOf("Loud0123_L1K1"), "Loud");
  EXPECT_EQ(BeginningOf("_x"), "");
}

TEST(DescriptorBudget, WhatIsNotFreeIsRefusedWithTheLimitAndTheRemedy) {
  DescriptorBudget budget;
  budget.Set(1024, 8);
  const Tracefs::Name name = {"sched", "sched_switch"};
  ASSERT_TRUE(budget.Check(name, 4).ok());
  budget.Use(name, 4);
  ASSERT_TRUE(budget.Check(name, 4).ok());
  budget.Use(name, 4);
  const absl::Status refused = budget.Check(name, 4);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message(),
            "tracepoint sched:sched_switch needs 4 descriptors, and 0 of 1024 are left for "
            "tracepoints; raise the limit of open files (ulimit -Hn), or select fewer tracepoints");
}

TEST(DescriptorBudget, OneBeginningOfNamesLeavesAQuarterToOthers) {
  DescriptorBudget budget;
  budget.Set(1024, 100);
  std::size_t used = 0;
  while (used < 200 && budget.Check(UserEvent("Loud" + std::to_string(used) + "_L1K1"), 1).ok()) {
    budget.Use(UserEvent("Loud_L1K1"), 1);
    ++used;
  }
  EXPECT_EQ(used, 75u);
  EXPECT_NE(budget.Check(UserEvent("Loud_L1K1"), 1).message().find("begin with Loud"),
            absl::string_view::npos);
  // A system of the kernel has no author who might take it all.
  for (const Tracefs::Name& name : {UserEvent("My_L4K1"), Tracefs::Name{"sched", "sched_switch"}}) {
    EXPECT_TRUE(budget.Check(name, 1).ok());
  }
}

TEST(DescriptorBudget, LookSeesTheLimitOfThisProcess) {
  DescriptorBudget budget;
  budget.Look(1);
  EXPECT_TRUE(budget.Check({"sched", "sched_switch"}, 1).ok());
  EXPECT_FALSE(budget.Check({"sched", "sched_switch"}, std::size_t{1} << 40).ok());
}

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(LeftOut, IsCountedOnceAndTheFirstAreNamed) {
  LeftOut left_out;
  EXPECT_TRUE(left_out.is_empty());
  for (std::size_t i = 0; i < 2 * LeftOut::kMaxNamed; ++i) {
    const std::string name = "user_events:E" + std::to_string(i);
    left_out.Add(name, absl::InvalidArgumentError(name), kSecond);
    left_out.Add(name, absl::InvalidArgumentError(name), 2 * kSecond);
  }
  EXPECT_EQ(left_out.count(), 2 * LeftOut::kMaxNamed);
  EXPECT_EQ(left_out.names().size(), 2 * LeftOut::kMaxNamed);
  EXPECT_EQ(left_out.reasons().size(), LeftOut::kMaxNamed);
  EXPECT_EQ(left_out.reasons()[0], "user_events:E0");
}

TEST(LeftOut, IsTriedAgainLaterEachTime) {
  LeftOut left_out;
  const absl::Status why = absl::InvalidArgumentError("no");
  EXPECT_FALSE(left_out.IsTooEarly("a:b", 0));
  left_out.Add("a:b", why, 0);
  EXPECT_TRUE(left_out.IsTooEarly("a:b", kSecond - 1));
  EXPECT_FALSE(left_out.IsTooEarly("a:b", kSecond));
  left_out.Add("a:b", why, kSecond);
  EXPECT_TRUE(left_out.IsTooEarly("a:b", 3 * kSecond - 1));
  EXPECT_FALSE(left_out.IsTooEarly("a:b", 3 * kSecond));
  for (int i = 0; i < 20; ++i) left_out.Add("a:b", why, 0);
  EXPECT_TRUE(left_out.IsTooEarly("a:b", 60 * kSecond - 1));
  EXPECT_FALSE(left_out.IsTooEarly("a:b", 60 * kSecond));
}

TEST(LeftOut, WhatLacksDescriptorsIsTriedAgainEachSecond) {
  LeftOut left_out;
  for (int i = 0; i < 20; ++i) left_out.Add("a:b", absl::ResourceExhaustedError("none"), 0);
  EXPECT_TRUE(left_out.IsTooEarly("a:b", kSecond - 1));
  EXPECT_FALSE(left_out.IsTooEarly("a:b", kSecond));
  left_out.Remove("a:b");
  EXPECT_TRUE(left_out.is_empty());
  EXPECT_EQ(left_out.count(), 1u);
}

TEST(LeftOut, WhatWasAwayIsTriedAtOnce) {
  LeftOut left_out;
  for (const char* name : {"user_events:Here", "user_events:Gone", "sched:Gone"}) {
    left_out.Add(name, absl::InvalidArgumentError("no"), 0);
  }
  left_out.KeepOnly("user_events", {"Here", "Other"});
  EXPECT_TRUE(left_out.IsTooEarly("user_events:Here", 1));
  EXPECT_FALSE(left_out.IsTooEarly("user_events:Gone", 1));
  EXPECT_TRUE(left_out.IsTooEarly("sched:Gone", 1));
  // It is the same one as before for those who count.
  left_out.Add("user_events:Gone", absl::InvalidArgumentError("no"), 2);
  EXPECT_EQ(left_out.count(), 3u);
}

TEST(LeftOut, NamesThatAreKeptAreBounded) {
  LeftOut left_out;
  for (std::size_t i = 0; i < LeftOut::kMaxKept + 10; ++i) {
    left_out.Add("user_events:E" + std::to_string(i), absl::InvalidArgumentError("no"), 0);
  }
  EXPECT_EQ(left_out.count(), LeftOut::kMaxKept + 10);
  EXPECT_EQ(left_out.names().size(), LeftOut::kMaxKept);
}

}  // namespace
}  // namespace collector
