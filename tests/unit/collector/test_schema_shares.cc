#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tools/collector/convert/schema_shares.h"

namespace collector {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint32_t kPidsPerUser = 100;
constexpr std::size_t kBytes = 1000;

constexpr SchemaShares::Limits kSmall = {
    .sum = {400, 400'000},
    .provider = {200, 200'000},
    .user = {160, 160'000},
    .process = {100, 100'000},
    .user_pace = {1e9, 0},
    .process_pace = {1e9, 0},
};

struct EventKind : SchemaShares::Entry {
  int number = 0;
  std::uint32_t pid = 0;
  SchemaShares::Provider* provider = nullptr;
  std::size_t bytes = 0;
};

// Holds kinds of events in a SchemaShares, and a separate list of them, with which tests compare
// its counts.
class Kinds {
 public:
  explicit Kinds(const SchemaShares::Limits& limits = kSmall)
      : shares(
            limits,
            [this](SchemaShares::Entry* entry) {
              EventKind* const kind = static_cast<EventKind*>(entry);
              if (on_evict) on_evict(kind);
              EXPECT_EQ(kinds.erase(kind->number), 1u);
            },
            [this](std::uint32_t pid) { return UserOf(pid); }) {}

  EventKind* Add(std::uint32_t pid, SchemaShares::Provider* provider, std::size_t bytes = kBytes,
                 const EventKind* keep = nullptr) {
    if (!shares.MayAdd(pid, 0, now)) return nullptr;
    auto kind = std::make_unique<EventKind>();
    kind->number = next++;
    kind->pid = pid;
    kind->provider = provider;
    kind->bytes = bytes;
    EventKind* const added = kind.get();
    kinds[added->number] = std::move(kind);
    shares.Add(added, provider, bytes, keep);
    return added;
  }
  bool Has(int number) const { return kinds.contains(number); }
  template <typename Condition>
  std::size_t Count(const Condition& condition) const {
    return static_cast<std::size_t>(std::count_if(
        kinds.begin(), kinds.end(), [&](const auto& kind) { return condition(*kind.second); }));
  }
  std::size_t OfProcess(std::uint32_t pid) const {
    return Count([pid](const EventKind& kind) { return kind.pid == pid; });
  }
  std::optional<std::uint32_t> UserOf(std::uint32_t pid) const {
    if (ended.contains(pid)) return std::nullopt;
    return pid / kPidsPerUser;
  }

  std::map<int, std::unique_ptr<EventKind>> kinds;
  std::set<std::uint32_t> ended;
  std::function<void(EventKind*)> on_evict;
  std::uint64_t now = kSecond;
  int next = 0;
  SchemaShares shares;
};

TEST(SchemaShares, ProcessOverItsShareEvictsItsOldestEntry) {
  Kinds kinds;
  SchemaShares::Provider* const provider = kinds.shares.AddProvider("P");
  for (int i = 0; i < 10; ++i) kinds.Add(1, provider);
  for (int i = 0; i < 500; ++i) kinds.Add(2, provider);
  EXPECT_EQ(kinds.OfProcess(1), 10u);
  EXPECT_LE(kinds.OfProcess(2), 100u);
  EXPECT_GE(kinds.OfProcess(2), 90u);
  EXPECT_TRUE(kinds.Has(509));
  EXPECT_FALSE(kinds.Has(10));
  EXPECT_EQ(kinds.shares.entries(), kinds.kinds.size());
}

TEST(SchemaShares, KeepsUsedEntries) {
  Kinds kinds;
  SchemaShares::Provider* const provider = kinds.shares.AddProvider("P");
  EventKind* const used = kinds.Add(1, provider);
  for (int i = 0; i < 500; ++i) {
    kinds.Add(1, provider);
    if (i % 50 == 0) kinds.shares.Use(used);
  }
  EXPECT_TRUE(kinds.Has(used->number));
}

TEST(SchemaShares, AgeChangesBeforeAnyEviction) {
  Kinds kinds({.user_pace = {1e9, 0}, .process_pace = {1e9, 0}});
  SchemaShares::Provider* const provider = kinds.shares.AddProvider("P");
  std::uint64_t age = kinds.shares.age();
  std::vector<int> evicted;
  kinds.on_evict = [&](EventKind* kind) { evicted.push_back(kind->number); };
  // The entry is always in use. The loop marks it as used once for each value of age(), like a
  // caller that caches entries.
  EventKind* const used = kinds.Add(1, provider);
  int ages = 0;
  for (int i = 0; i < 50'000; ++i) {
    kinds.Add(1, provider);
    if (kinds.shares.age() == age) continue;
    age = kinds.shares.age();
    ++ages;
    kinds.shares.Use(used);
  }
  EXPECT_FALSE(evicted.empty());
  EXPECT_TRUE(kinds.Has(used->number));
  EXPECT_LT(ages, 500);
}

TEST(SchemaShares, EvictsFromTheLargestProcessOfAUser) {
  Kinds kinds;
  SchemaShares::Provider* const provider = kinds.shares.AddProvider("P");
  for (int i = 0; i < 20; ++i) kinds.Add(1, provider);
  for (int i = 0; i < 90; ++i) kinds.Add(2, provider);
  for (int i = 0; i < 60; ++i) kinds.Add(3, kinds.shares.AddProvider("Q"));
  EXPECT_EQ(kinds.OfProcess(1), 20u);
  EXPECT_EQ(kinds.OfProcess(3), 60u);
  EXPECT_LT(kinds.OfProcess(2), 90u);
}

TEST(SchemaShares, EvictsFromTheLargestUser) {
  Kinds kinds;
  const auto own_provider = [&](std::uint32_t pid) {
    return kinds.shares.AddProvider("P" + std::to_string(pid));
  };
  for (int i = 0; i < 5; ++i) kinds.Add(500, own_provider(500));
  for (std::uint32_t pid : {0, 1, 100, 101, 200, 201}) {
    for (int i = 0; i < 75; ++i) kinds.Add(pid, own_provider(pid));
  }
  EXPECT_EQ(kinds.OfProcess(500), 5u);
  EXPECT_LE(kinds.kinds.size(), 400u);
  EXPECT_GT(kinds.kinds.size(), 350u);
}

TEST(SchemaShares, ManySmallProcessesPayTogether) {
  Kinds kinds;
  for (int i = 0; i < 5; ++i) kinds.Add(5000, kinds.shares.AddProvider("Good"));
  for (std::uint32_t pid = 1; pid < 5000; ++pid) {
    if (pid % kPidsPerUser < 40) kinds.Add(pid, kinds.shares.AddProvider("P"));
  }
  EXPECT_LE(kinds.kinds.size(), 400u);
  EXPECT_EQ(kinds.OfProcess(5000), 5u);
}

TEST(SchemaShares, NamesOfProvidersThatDifferInCaseAreOne) {
  Kinds kinds;
  EXPECT_EQ(kinds.shares.AddProvider("Provider"), kinds.shares.AddProvider("PROVIDER"));
  EXPECT_NE(kinds.shares.AddProvider("Provider"), kinds.shares.AddProvider("Provider2"));
}

TEST(SchemaShares, ForgetsRemovedProviders) {
  Kinds kinds;
  SchemaShares::Provider* const stays = kinds.shares.AddProvider("Provider");
  for (int i = 0; i < 100; ++i) {
    kinds.shares.RemoveProvider(kinds.shares.AddProvider("P" + std::to_string(i)));
  }
  EXPECT_EQ(kinds.shares.AddProvider("provider"), stays);
  kinds.shares.RemoveProvider(stays);
  EXPECT_EQ(kinds.shares.providers(), 1u);
  kinds.shares.RemoveProvider(stays);
  EXPECT_EQ(kinds.shares.providers(), 0u);
}

TEST(SchemaShares, LargeEntriesCountByTheirBytes) {
  Kinds kinds;
  SchemaShares::Provider* const provider = kinds.shares.AddProvider("P");
  for (int i = 0; i < 20; ++i) kinds.Add(1, provider, 30'000);
  EXPECT_LE(kinds.shares.bytes(), 100'000u);
  EXPECT_EQ(kinds.OfProcess(1), 3u);
}

TEST(SchemaShares, NeverEvictsTheEntryToKeep) {
  Kinds kinds;
  SchemaShares::Provider* const provider = kinds.shares.AddProvider("P");
  EventKind* const kept = kinds.Add(1, provider);
  for (int i = 0; i < 1000; ++i) {
    const int added = kinds.Add(1, provider, 40'000, kept)->number;
    ASSERT_TRUE(kinds.Has(kept->number));
    ASSERT_TRUE(kinds.Has(added));
  }
}

TEST(SchemaShares, LimitsThePaceOfFastProcesses) {
  Kinds kinds({.user_pace = {150, 30}, .process_pace = {100, 20}});
  SchemaShares::Provider* const provider = kinds.shares.AddProvider("P");
  const auto add_many = [&](std::uint32_t pid) {
    int added = 0;
    for (int i = 0; i < 1000; ++i) added += kinds.Add(pid, provider) != nullptr ? 1 : 0;
    return added;
  };
  EXPECT_EQ(add_many(1), 100);
  EXPECT_EQ(add_many(2), 50);     // the rest of the user's share
  EXPECT_EQ(add_many(101), 100);  // another user
  kinds.now += 2 * kSecond;
  EXPECT_EQ(add_many(1), 40);
  EXPECT_EQ(add_many(2), 20);
  kinds.now += 3600 * kSecond;
  EXPECT_EQ(add_many(1), 100);
}

TEST(SchemaShares, LargeMetadataUsesMoreOfThePace) {
  Kinds kinds({.user_pace = {100, 0}, .process_pace = {100, 0}});
  int added = 0;
  while (kinds.shares.MayAdd(1, 8000, kinds.now)) ++added;
  EXPECT_EQ(added, 6);
}

TEST(SchemaShares, ReusedPidHasASeparateShare) {
  std::uint32_t user = 1;
  SchemaShares shares(
      {.process_pace = {5, 0}}, [](SchemaShares::Entry*) {},
      [&user](std::uint32_t) { return std::optional(user); });
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(shares.MayAdd(7, 0, kSecond));
  EXPECT_FALSE(shares.MayAdd(7, 0, kSecond));
  user = 2;
  EXPECT_FALSE(shares.MayAdd(7, 0, kSecond));
  EXPECT_TRUE(shares.MayAdd(7, 0, 3 * kSecond));
}

TEST(SchemaShares, ForgetsEndedProcesses) {
  Kinds kinds({.sum = {400, 400'000}});
  SchemaShares::Provider* const provider = kinds.shares.AddProvider("P");
  for (std::uint32_t pid = 1; pid < 40'000; ++pid) {
    if (pid % 3 == 0) kinds.ended.insert(pid);
    kinds.now += kSecond / 100;
    kinds.Add(pid, provider);
    ASSERT_LT(kinds.shares.payers(), 10'000u);
  }
  EXPECT_LE(kinds.kinds.size(), 400u);
}

// After any sequence of calls, the sums match the entries, and the bounds hold.
TEST(SchemaShares, SumsAreRightAfterAnything) {
  std::mt19937 generator(1);
  const auto below = [&](std::size_t limit) { return generator() % limit; };
  Kinds kinds;
  const auto any = [&]() {
    return std::next(kinds.kinds.begin(), static_cast<std::ptrdiff_t>(below(kinds.kinds.size())))
        ->second.get();
  };
  // Removing some entries removes others, as a schema removes its forms.
  int kept = -1;
  kinds.on_evict = [&](EventKind* kind) {
    if (kind->number % 5 != 0) return;
    for (int follower = kind->number + 1; follower < kind->number + 3; ++follower) {
      const auto found = kinds.kinds.find(follower);
      if (found == kinds.kinds.end() || follower == kept || follower == kinds.next - 1) continue;
      kinds.shares.Remove(found->second.get());
      kinds.kinds.erase(found);
    }
  };
  for (int i = 0; i < 20'000; ++i) {
    kinds.now += below(kSecond / 10);
    switch (kinds.kinds.empty() ? 0 : below(8)) {
      case 6:
        kinds.shares.Use(any());
        break;
      case 7: {
        EventKind* const kind = any();
        kinds.shares.Remove(kind);
        kinds.shares.Remove(kind);
        kinds.kinds.erase(kind->number);
        break;
      }
      default: {
        const auto pid = static_cast<std::uint32_t>(below(600));
        if (below(20) == 0) kinds.ended.insert(pid);
        if (below(20) == 0) kinds.ended.erase(pid);
        const EventKind* const keep = kinds.kinds.empty() || below(2) == 0 ? nullptr : any();
        kept = keep == nullptr ? -1 : keep->number;
        const EventKind* const added =
            kinds.Add(pid, kinds.shares.AddProvider("P" + std::to_string(below(4))),
                      below(50) == 0 ? 30'000 : below(3000), keep);
        ASSERT_TRUE(kinds.Has(added->number));
        ASSERT_TRUE(kept < 0 || kinds.Has(kept));
      }
    }
    // Only every eighth step is checked, because the check takes longer than many steps.
    if (i % 8 != 0) continue;
    std::size_t bytes = 0;
    std::map<SchemaShares::Provider*, std::size_t> of_providers;
    std::map<std::uint32_t, std::size_t> of_processes;
    for (const auto& [number, kind] : kinds.kinds) {
      bytes += kind->bytes;
      of_providers[kind->provider] += kind->bytes;
      of_processes[kind->pid] += kind->bytes;
    }
    ASSERT_EQ(kinds.shares.entries(), kinds.kinds.size());
    ASSERT_EQ(kinds.shares.bytes(), bytes);
    ASSERT_LE(bytes, 400'000u);
    ASSERT_LE(kinds.kinds.size(), 400u);
    for (const auto& [provider, held] : of_providers) ASSERT_LE(held, 200'000u);
    // An earlier process with the same pid may also hold up to 100,000 bytes.
    for (const auto& [pid, held] : of_processes) ASSERT_LE(held, 2 * 100'000u);
  }
}

}  // namespace
}  // namespace collector
