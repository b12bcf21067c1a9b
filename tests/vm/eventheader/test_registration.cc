// Tests what can be registered and what cannot, how a program sees the failure, and how it
// recovers.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <memory>

#include "eventheader/eh.h"
#include "tests/support/eventheader/kernel_trace.h"

namespace eh::testing {
namespace {

class Registration : public KernelTest {};

std::string Remedy(int error) { return RegistrationErrorText(error); }

TEST_F(Registration, ReportsAConflictingNameAndRetriesOnceItIsFree) {
  auto definition = std::make_unique<Definition>("Vm_Foreign_L4K0", "u32 other");
  DynamicProvider foreign("Vm_Foreign");
  const EventSet set(foreign, Level::kInformation, 0);
  const EventSet other(foreign, Level::kWarning, 0);
  EXPECT_EQ(set.status(), EADDRINUSE);
  EXPECT_EQ(other.status(), 0);
  EXPECT_EQ(foreign.status(), EADDRINUSE);
  EXPECT_EQ(foreign.Retry(), EADDRINUSE);
  EXPECT_NE(Remedy(EADDRINUSE).find("eventheader unregister NAME"), std::string::npos);
  EXPECT_NE(Remedy(EADDRINUSE).find("rename the provider"), std::string::npos);
  // The tracepoint with other fields must receive nothing.
  TraceInstance trace;
  trace.Enable("Vm_Foreign_L4K0");
  DynamicEvent event;
  event.AddField("f", 1);
  EXPECT_EQ(event.Write(set), WriteResult::kDisabled);
  EXPECT_EQ(trace.Take().size(), 0u);
  trace.Enable("Vm_Foreign_L4K0", false);

  definition.reset();
  ASSERT_TRUE(IsGone("Vm_Foreign_L4K0"));
  EXPECT_EQ(foreign.Retry(), 0);
  EXPECT_EQ(set.status(), 0);
  trace.Enable("Vm_Foreign_L4K0");
  EXPECT_EQ(event.Write(set), WriteResult::kWritten);
  EXPECT_EQ(trace.Take().size(), 1u);
}

TEST_F(Registration, LongestNameRegistersAndItsEventsArrive) {
  const std::string options = "G" + std::string(24, 'g');
  const std::string suffix = "_LffKffffffffffffffff" + options;
  const std::string name(kMaxTracepointName - suffix.size(), 'n');
  DynamicProvider longest(name, std::string_view(options).substr(1));
  const EventSet set(longest, Level{0xFF}, ~std::uint64_t{0});
  ASSERT_EQ(set.status(), 0) << Remedy(set.status());
  EXPECT_EQ((name + suffix).size(), kMaxTracepointName);
  TraceInstance trace;
  trace.Enable(name + suffix);
  DynamicEvent event;
  event.Reset("InTheLongest");
  EXPECT_EQ(event.Write(set), WriteResult::kWritten);
  EXPECT_EQ(CountText(trace.Take(), "InTheLongest"), 1);
}

TEST_F(Registration, NameOfOneMoreIsRefused) {
  const std::string name(kMaxTracepointName - std::string("_L4K0").size(), 'n');
  DynamicProvider longest(name);
  const EventSet fits(longest, Level::kInformation, 0);
  const EventSet too_long(longest, Level::kInformation, 0x10);
  EXPECT_EQ(fits.status(), 0);
  EXPECT_EQ(too_long.status(), EINVAL);
  EXPECT_EQ(longest.status(), EINVAL);
  EXPECT_NE(Remedy(EINVAL).find("too long"), std::string::npos);
}

TEST_F(Registration, SixtyFourSetsShareAnEnableWordAndTheNextFails) {
  DynamicProvider provider("Vm_Many");
  std::vector<std::unique_ptr<EventSet>> sets;
  for (unsigned bit = 0; bit < ProviderBase::kMaxEventSets; ++bit) {
    sets.push_back(std::make_unique<EventSet>(provider, Level::kVerbose, std::uint64_t{1} << bit));
    ASSERT_EQ(sets.back()->status(), 0) << bit;
  }
  EXPECT_EQ(provider.status(), 0);
  EventSet one_more(provider, Level::kError, 0);
  EXPECT_EQ(one_more.status(), ENOSPC);
  EXPECT_EQ(provider.status(), ENOSPC);
  EXPECT_NE(Remedy(ENOSPC).find("64 sets"), std::string::npos);

  // Event sets have different bits: when one is enabled, the kernel sets only its bit.
  TraceInstance trace;
  DynamicEvent event;
  event.AddField("f", 1);
  for (const unsigned bit : {0, 1, 31, 32, 62, 63}) {
    std::ostringstream name;
    name << "Vm_Many_L5K" << std::hex << (std::uint64_t{1} << bit);
    trace.Enable(name.str());
    for (unsigned other = 0; other < ProviderBase::kMaxEventSets; ++other) {
      ASSERT_EQ(sets[other]->enabled(), other == bit) << bit << " " << other;
    }
    EXPECT_EQ(event.Write(*sets[bit]), WriteResult::kWritten);
    trace.Enable(name.str(), false);
  }
  EXPECT_FALSE(provider.enabled());
  EXPECT_EQ(trace.Take().size(), 6u);

  // When a set is destroyed, the set that exceeded the maximum can be registered.
  sets[17].reset();
  EXPECT_EQ(provider.Retry(), 0);
  EXPECT_EQ(one_more.status(), 0);
  trace.Enable("Vm_Many_L2K0");
  EXPECT_EQ(event.Write(one_more), WriteResult::kWritten);
}

TEST_F(Registration, ReportsTheSystemsLimitOfEvents) {
  const std::string limit = "/proc/sys/kernel/user_events_max";
  const std::string before = GetText(limit);
  PutText(limit, "1");
  DynamicProvider provider("Vm_Limit");
  const EventSet set(provider, Level::kInformation, 0);
  EXPECT_EQ(set.status(), EMFILE);
  EXPECT_NE(Remedy(EMFILE).find("user_events_max"), std::string::npos);
  PutText(limit, before);
  EXPECT_EQ(provider.Retry(), 0);
}

TEST_F(Registration, LastSetOfATracepointTakesItAlong) {
  DynamicProvider provider("Vm_Shared");
  TraceInstance trace;
  DynamicEvent event;
  event.AddField("f", 1);
  auto first = std::make_unique<EventSet>(provider, Level::kInformation, 1);
  auto second = std::make_unique<EventSet>(provider, Level::kInformation, 1);
  trace.Enable("Vm_Shared_L4K1");
  first.reset();
  EXPECT_EQ(event.Write(*second), WriteResult::kWritten);
  EXPECT_EQ(trace.Take().size(), 1u);
  second.reset();
  EXPECT_FALSE(provider.enabled());
}

}  // namespace
}  // namespace eh::testing
