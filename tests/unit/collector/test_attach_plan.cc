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
            "Expecting string field, at the end of the filter");
  EXPECT_EQ(FilterMessage("none\n"), "");
  EXPECT_EQ(FilterMessage("a &&& 2\nError: (0)\n"), "");
  EXPECT_EQ(FilterMessage(""), "");
}

TEST(InTurns, ProvidersTakeTurnsInOrder) {
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
  EXPECT_EQ(ExtractProvider(UserEvent("My_Service_L4K1")), "My_Service");
  EXPECT_EQ(ExtractProvider(UserEvent("other_event")), "other");
  EXPECT_EQ(ExtractProvider({"sched", "sched_switch"}), "sched");
  EXPECT_EQ(ExtractLetters("Loud0123_L1K1"), "Loud");
  EXPECT_EQ(ExtractLetters("_x"), "");
}

TEST(DescriptorBudget, RefusalNamesTheLimitAndTheRemedy) {
  DescriptorBudget budget(1024, 8, 4);
  const Tracefs::Name name = {"sched", "sched_switch"};
  ASSERT_TRUE(budget.Check(name).ok());
  budget.Use(name);
  ASSERT_TRUE(budget.Check(name).ok());
  budget.Use(name);
  const absl::Status refused = budget.Check(name);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      refused.message(),
      "tracepoint sched:sched_switch needs 4 descriptors, but only 0 of 1024 are left for "
      "tracepoints; raise the limit of open files (ulimit -Hn, or LimitNOFILE= in the unit of "
      "nettraced), or select fewer tracepoints");
}

TEST(DescriptorBudget, OneBeginningOfNamesLeavesAQuarterToOthers) {
  DescriptorBudget budget(1024, 100, 1);
  std::size_t used = 0;
  while (used < 200 && budget.Check(UserEvent("Loud" + std::to_string(used) + "_L1K1")).ok()) {
    budget.Use(UserEvent("Loud_L1K1"));
    ++used;
  }
  EXPECT_EQ(used, 75u);
  EXPECT_NE(budget.Check(UserEvent("Loud_L1K1")).message().find("begin with 'Loud'"),
            absl::string_view::npos);
  // Tracepoints with other names, and those of the kernel, still get descriptors.
  for (const Tracefs::Name& name : {UserEvent("My_L4K1"), Tracefs::Name{"sched", "sched_switch"}}) {
    EXPECT_TRUE(budget.Check(name).ok());
  }
}

TEST(DescriptorBudget, AttachedTracepointsCountForTheirShare) {
  DescriptorBudget budget(1024, 100, 1);
  for (int i = 0; i < 290; ++i) budget.Count(UserEvent("Loud_L1K1"));
  for (int i = 0; i < 7; ++i) budget.Use(UserEvent("Loud_L1K1"));
  EXPECT_FALSE(budget.Check(UserEvent("Loud_L1K1")).ok());
  EXPECT_TRUE(budget.Check(UserEvent("My_L4K1")).ok());
}

TEST(DescriptorBudget, IsThatOfThisProcess) {
  const Tracefs::Name name = {"sched", "sched_switch"};
  EXPECT_TRUE(DescriptorBudget::OfProcess(1, 1).Check(name).ok());
  EXPECT_FALSE(DescriptorBudget::OfProcess(1, std::size_t{1} << 40).Check(name).ok());
}

}  // namespace
}  // namespace collector
