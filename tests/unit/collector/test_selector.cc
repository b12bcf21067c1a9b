#include <gtest/gtest.h>

#include "tools/collector/session/selector.h"

namespace collector {
namespace {

Selector ParseGoodSelector(const char* text) {
  absl::StatusOr<Selector> selector = ParseSelector(text);
  EXPECT_TRUE(selector.ok()) << text << ": " << selector.status();
  return selector.ok() ? *selector : Selector();
}

TEST(Selector, ProviderAloneSelectsEverything) {
  const Selector selector = ParseGoodSelector("MyCompany_MyService");
  EXPECT_TRUE(selector.MatchesUserEvent("MyCompany_MyService_L1K0"));
  EXPECT_TRUE(selector.MatchesUserEvent("MyCompany_MyService_LffKffffffffffffffff"));
  EXPECT_TRUE(selector.MatchesUserEvent("MyCompany_MyService_L5K1Gperf"));
  EXPECT_FALSE(selector.MatchesUserEvent("MyCompany_MyService2_L1K0"));
  EXPECT_FALSE(selector.MatchesUserEvent("MyCompany_MyService"));
}

TEST(Selector, LevelIsAMaximum) {
  const Selector selector = ParseGoodSelector("P:warning");
  EXPECT_TRUE(selector.MatchesUserEvent("P_L1K0"));
  EXPECT_TRUE(selector.MatchesUserEvent("P_L3K0"));
  EXPECT_FALSE(selector.MatchesUserEvent("P_L4K0"));
}

TEST(Selector, KeywordMatchesIfAnyBitIsCommonOrTheEventHasNone) {
  const Selector selector = ParseGoodSelector("P:5:0x6");
  EXPECT_TRUE(selector.MatchesUserEvent("P_L5K2"));
  EXPECT_TRUE(selector.MatchesUserEvent("P_L5K5"));
  EXPECT_TRUE(selector.MatchesUserEvent("P_L5K0"));
  EXPECT_FALSE(selector.MatchesUserEvent("P_L5K1"));
}

TEST(Selector, AllKeywordsAreDemandedOfEventsThatHaveAny) {
  const Selector selector = ParseGoodSelector("P:5:*:0x6");
  EXPECT_TRUE(selector.MatchesUserEvent("P_L5K6"));
  EXPECT_TRUE(selector.MatchesUserEvent("P_L5Kf"));
  EXPECT_TRUE(selector.MatchesUserEvent("P_L5K0"));
  EXPECT_FALSE(selector.MatchesUserEvent("P_L5K2"));
  EXPECT_FALSE(selector.MatchesUserEvent("P_L5K9"));
  const Selector both = ParseGoodSelector("P:5:0x8:0x2");
  EXPECT_TRUE(both.MatchesUserEvent("P_L5Ka"));
  EXPECT_FALSE(both.MatchesUserEvent("P_L5K2"));
  EXPECT_FALSE(both.MatchesUserEvent("P_L5K8"));
}

TEST(Selector, PatternMatchesTheProviderOnly) {
  const Selector selector = ParseGoodSelector("MyCompany_*:*:*");
  EXPECT_TRUE(selector.MatchesUserEvent("MyCompany_A_L1K0"));
  EXPECT_FALSE(selector.MatchesUserEvent("Other_L1K0"));
}

TEST(Selector, ExactTracepointNameIsThatTracepoint) {
  const Selector selector = ParseGoodSelector("P_L4K1");
  EXPECT_EQ(selector.kind, Selector::Kind::kTracepoint);
  EXPECT_EQ(selector.system, "user_events");
  EXPECT_TRUE(selector.MatchesUserEvent("P_L4K1"));
  EXPECT_FALSE(selector.MatchesUserEvent("P_L4K3"));
}

TEST(Selector, SystemAndEvent) {
  const Selector selector = ParseGoodSelector("sched:sched_switch");
  EXPECT_EQ(selector.kind, Selector::Kind::kTracepoint);
  EXPECT_EQ(selector.system, "sched");
  EXPECT_EQ(selector.event, "sched_switch");
  EXPECT_FALSE(selector.needs_user_events());
}

TEST(Selector, PatternOfTracepoints) {
  for (const char* text : {"sched:sched_*", "s?hed:sched_switch", "[st]ched:*_switch"}) {
    const Selector selector = ParseGoodSelector(text);
    EXPECT_EQ(selector.kind, Selector::Kind::kPattern) << text;
    EXPECT_TRUE(selector.MatchesTracepoint("sched", "sched_switch")) << text;
    EXPECT_FALSE(selector.MatchesTracepoint("sched", "other")) << text;
    EXPECT_FALSE(selector.MatchesTracepoint("irq", "sched_switch")) << text;
    EXPECT_FALSE(selector.MatchesUserEvent("sched_L1K0")) << text;
    EXPECT_FALSE(selector.needs_user_events()) << text;
  }
}

TEST(Selector, PatternOfTheTracepointsOfUserEvents) {
  const Selector selector = ParseGoodSelector("user_events:My*_L4*");
  EXPECT_TRUE(selector.needs_user_events());
  EXPECT_TRUE(selector.MatchesUserEvent("MyCompany_L4K1"));
  EXPECT_FALSE(selector.MatchesUserEvent("MyCompany_L5K1"));
  EXPECT_TRUE(ParseGoodSelector("user_events:*").MatchesUserEvent("no_eventheader_name"));
}

TEST(Selector, StarAfterTheColonIsAllOfASystemAndAllOfAProvider) {
  const Selector sched = ParseGoodSelector("sched:*");
  EXPECT_TRUE(sched.MatchesTracepoint("sched", "sched_switch"));
  EXPECT_TRUE(sched.MatchesUserEvent("sched_L1K0"));
  EXPECT_FALSE(sched.MatchesUserEvent("other_L1K0"));
  EXPECT_FALSE(sched.needs_user_events());
  const Selector all = ParseGoodSelector("*:*");
  EXPECT_TRUE(all.MatchesTracepoint("irq", "irq_handler_entry"));
  EXPECT_TRUE(all.MatchesUserEvent("P_L5K1"));
  EXPECT_TRUE(all.MatchesUserEvent("no_eventheader_name"));
}

TEST(Selector, LevelAfterThePatternOfAProviderIsALevel) {
  for (const char* text : {"My*:4", "My*:info", "My*:*:0x1", "My*"}) {
    const Selector selector = ParseGoodSelector(text);
    EXPECT_EQ(selector.kind, Selector::Kind::kProvider) << text;
    EXPECT_TRUE(selector.MatchesUserEvent("MyCompany_L4K1")) << text;
    EXPECT_FALSE(selector.MatchesTracepoint("MySystem", "event")) << text;
  }
}

TEST(Selector, ErrorsShowTheForms) {
  for (const char* text : {"",
                           ":",
                           "P:",
                           "P:0",
                           "P:256",
                           "P:1:x",
                           "P:1:0x1:2:3",
                           "P:1:0x1:*",
                           "P:1:0x1:",
                           "P Q",
                           "sched:a/b",
                           "P:0x1:",
                           "../x:y",
                           "P:1:0x10000000000000000",
                           "sched:",
                           ":*",
                           "*:",
                           "*:a b",
                           "../*:x*",
                           "sched:sched_*:3",
                           "a:b:c*"}) {
    const absl::StatusOr<Selector> selector = ParseSelector(text);
    ASSERT_FALSE(selector.ok()) << text;
    EXPECT_TRUE(absl::IsInvalidArgument(selector.status()));
    EXPECT_NE(selector.status().message().find("use Provider"), absl::string_view::npos);
  }
}

TEST(Stacks, PartsAndMaximumAreParsed) {
  EXPECT_EQ(*ParseStacks("", 127), StackOptions());
  EXPECT_EQ(*ParseStacks("user", 127), (StackOptions{true, false, 0}));
  EXPECT_EQ(*ParseStacks("kernel,max=127", 127), (StackOptions{false, true, 127}));
  EXPECT_EQ(*ParseStacks("max=1,both", 127), (StackOptions{true, true, 1}));
  EXPECT_EQ(*ParseStacks("max=5", 127), (StackOptions{false, false, 5}));
  EXPECT_EQ(*ParseStacks("dwarf", 127), (StackOptions{false, false, 0, 8192}));
  EXPECT_EQ(*ParseStacks("stack=16KiB,both,dwarf,max=9", 127),
            (StackOptions{true, true, 9, 16384}));
  for (const char* text : {"x", "user,kernel", "max=", "max=0", "max=128", "max=-1", "User",
                           "stack=8KiB", "kernel,dwarf", "dwarf,stack=", "dwarf,stack=512",
                           "dwarf,stack=57KiB", "dwarf,stack=1025"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseStacks(text, 127).status())) << text;
  }
  EXPECT_NE(ParseStacks("max=128", 127).status().message().find("1 to 127"),
            absl::string_view::npos);
}

TEST(Stacks, HaveATextThatParsesBack) {
  for (const std::string text : {"", "user", "kernel", "both", "max=30", "user,max=30",
                                 "both,max=1", "dwarf", "user,dwarf,max=5", "dwarf,stack=16384B"}) {
    EXPECT_EQ(StacksText(*ParseStacks(text, 127)), text);
  }
}

TEST(SampleRate, IsANumberWithOrWithoutItsUnit) {
  EXPECT_EQ(*ParseSampleRate("997Hz", 1000), 997u);
  EXPECT_EQ(*ParseSampleRate("1", 1000), 1u);
  EXPECT_EQ(*ParseSampleRate("1000Hz", 1000), 1000u);
  for (const char* text : {"", "Hz", "0", "0Hz", "1001", "-1", "+1", " 1", "1 Hz", "1hz", "1kHz",
                           "1.5", "99999999999999999999"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseSampleRate(text, 1000).status())) << text;
  }
  EXPECT_NE(ParseSampleRate("1001", 1000).status().message().find("1Hz to 1000Hz"),
            absl::string_view::npos);
}

TEST(Stacks, UsualPartsDependOnTheSystem) {
  Selector selector;
  EXPECT_FALSE(selector.StacksFor("sched").any());
  selector.stacks = StackOptions{false, false, 9};
  EXPECT_EQ(selector.StacksFor("user_events"), (StackOptions{true, false, 9}));
  EXPECT_EQ(selector.StacksFor("sched"), (StackOptions{true, true, 9}));
  selector.stacks = StackOptions{false, true, 0};
  EXPECT_EQ(selector.StacksFor("user_events"), (StackOptions{false, true, 0}));
}

}  // namespace
}  // namespace collector
