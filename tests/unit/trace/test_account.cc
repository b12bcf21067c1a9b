// Tests the events of NetTrace.Collector: they are parsed as they were written, also from payloads
// of other versions, and AccountSummary adds them up.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/trace/account.h"
#include "tools/trace/account_summary.h"

namespace trace {
namespace {

using AccountKind = AccountEvent::Kind;

// Returns the event that a reader parses from a payload.
std::optional<AccountEvent> Parse(const nettrace::EventMetadata& metadata,
                                  const std::vector<std::byte>& payload) {
  nettrace::Event event;
  event.processor = nettrace::kNoProcessor;
  event.metadata = &metadata;
  event.payload = payload;
  return ParseAccount(event);
}

std::string SummaryJson(const AccountSummary& summary) {
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  json.StartObject();
  PutAccount(summary, &json);
  json.EndObject();
  return buffer.GetString();
}

TEST(Account, EveryEventReadsBackUnchanged) {
  const AccountEvent events[] = {
      {AccountKind::kEventsLost, 4095, std::uint64_t{1} << 63, "sched:sched_switch", "", 5, 6},
      {AccountKind::kEventsLost, 0, 1, "", "", 5, 6},
      {AccountKind::kCpuOffline, 7, 0, "", "", 5, 0},
      {AccountKind::kCpuOnline, 7, 0, "", "", 5, 6},
      {AccountKind::kCpuOnline, 7, 0, "", "why", 5, 0},
      {AccountKind::kTracepointLeftOut, 0, 0, "a:b", "ü", 0, 0},
      {AccountKind::kAccountUnknown, 0, 0, "", "", 5, 6},
      {AccountKind::kEventsDropped, 3, 9, "", "the output is full", 5, 6},
      {AccountKind::kSectionBegan, 3, 9, "", "", 0, 0, 2, 4},
      {AccountKind::kTracepointMet, 0, 0, "a:b", "", 0, 6},
      {AccountKind::kTargetCame, 0, 0, "", "why", 5, 6},
      {AccountKind::kSamplesThrottled, 3, 9, "", "", 5, 6},
      {AccountKind::kStacksSkipped, 0, 9, "", "", 5, 6},
      {AccountKind::kServiceUnknown, 0, 0, "ring:7", "why", 5, 6},
  };
  for (const AccountEvent& event : events) {
    const auto payload = AccountPayload(event);
    ASSERT_TRUE(payload.ok()) << payload.status();
    const nettrace::EventMetadata metadata = AccountMetadata(event.kind);
    EXPECT_EQ(metadata.provider, kAccountProvider);
    const std::optional<AccountEvent> parsed = Parse(metadata, *payload);
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(*parsed, event) << metadata.name;
  }
}

TEST(Account, EventsOfServicesAreNotAccountEvents) {
  const nettrace::EventMetadata metadata = AccountMetadata(AccountKind::kAccountUnknown);
  const std::vector<std::byte> payload =
      *AccountPayload({AccountKind::kAccountUnknown, 0, 0, "", "", 5, 6});
  nettrace::Event event;
  event.metadata = &metadata;
  event.payload = payload;
  event.processor = 0;
  EXPECT_FALSE(IsAccount(event));
  EXPECT_FALSE(ParseAccount(event).has_value());
}

TEST(Account, RefusesOtherEvents) {
  const AccountEvent event = {AccountKind::kAccountUnknown, 0, 0, "", "", 5, 6};
  const std::vector<std::byte> payload = *AccountPayload(event);
  const nettrace::EventMetadata good = AccountMetadata(event.kind);
  nettrace::EventMetadata other = good;
  other.provider = "NetTrace";
  EXPECT_FALSE(Parse(other, payload).has_value());
  other = good;
  other.name = "Other";
  EXPECT_FALSE(Parse(other, payload).has_value());
  other = good;
  other.fields.pop_back();
  EXPECT_FALSE(Parse(other, payload).has_value());
  other = good;
  other.fields[0].type.code = nettrace::TypeCode::kInt64;
  EXPECT_FALSE(Parse(other, payload).has_value());
  EXPECT_FALSE(Parse(good, {payload.begin(), payload.end() - 1}).has_value());
  // A later version may have more fields.
  other = good;
  other.fields.push_back(
      {"More", nettrace::Type::Array(nettrace::Type::Simple(nettrace::TypeCode::kByte))});
  std::vector<std::byte> longer = payload;
  longer.resize(payload.size() + 2);
  EXPECT_EQ(Parse(other, longer), event);
}

TEST(AccountSummary, LossesAddUpByCpuAndTracepointAndByInterval) {
  AccountSummary summary;
  summary.Add({AccountKind::kEventsLost, 1, 5, "a:b", "", 100, 200});
  summary.Add({AccountKind::kEventsLost, 0, 2, "a:c", "", 90, 200});
  summary.Add({AccountKind::kEventsLost, 1, 1, "a:b", "", 250, 300});
  summary.Add({AccountKind::kEventsLost, 1, 4, "", "", 250, 300});
  EXPECT_EQ(summary.lost(), 12u);
  EXPECT_EQ(
      SummaryJson(summary),
      R"({"losses":[{"cpu":0,"tracepoint":"a:c","count":2},)"
      R"({"cpu":1,"tracepoint":null,"count":4},{"cpu":1,"tracepoint":"a:b","count":6}],)"
      R"("lossesLeftOut":0,"lossIntervals":[)"
      R"({"from":"1970-01-01T00:00:00.000000090Z","until":"1970-01-01T00:00:00.000000200Z","count":7},)"
      R"({"from":"1970-01-01T00:00:00.000000250Z","until":"1970-01-01T00:00:00.000000300Z","count":5}],)"
      R"("lossIntervalsLeftOut":0,"cpuChanges":[],"cpuChangesLeftOut":0,)"
      R"("unknownServices":[],"unknownServicesLeftOut":0,)"
      R"("throttled":0,"stacksSkipped":0})");
}

TEST(AccountSummary, CountsDroppedEventsAsLost) {
  AccountSummary summary;
  summary.Add({AccountKind::kEventsLost, 1, 5, "a:b", "", 100, 200});
  summary.Add({AccountKind::kEventsDropped, 1, 3, "", "the output is full", 200, 300});
  summary.Add({AccountKind::kSectionBegan, 1, 50, "", "", 0, 0, 1, 8});
  EXPECT_EQ(summary.lost(), 8u);
  EXPECT_EQ(summary.dropped(), 3u);
  EXPECT_EQ(summary.dropped_reason(), "the output is full");
}

TEST(AccountSummary, FirstSectionHasTheCountsBefore) {
  AccountSummary summary;
  EXPECT_FALSE(summary.section().has_value());
  summary.Add({AccountKind::kSectionBegan, 1, 70, "", "", 0, 0, 3, 9});
  summary.Add({AccountKind::kSectionBegan, 0, 50, "", "", 0, 0, 2, 8});
  summary.Add({AccountKind::kSectionBegan, 1, 40, "", "", 0, 0, 2, 1});
  ASSERT_TRUE(summary.section().has_value());
  EXPECT_EQ(summary.section()->number, 2u);
  EXPECT_EQ(summary.section()->events_before, 90u);
  EXPECT_EQ(summary.section()->lost_before, 9u);
}

TEST(AccountSummary, CpuChangesAreListed) {
  AccountSummary summary;
  summary.Add({AccountKind::kCpuOffline, 1, 0, "", "", 100, 0});
  summary.Add({AccountKind::kCpuOnline, 1, 0, "", "", 100, 200});
  summary.Add({AccountKind::kCpuOnline, 2, 0, "", "why", 100, 0});
  EXPECT_EQ(
      SummaryJson(summary),
      R"({"losses":[],"lossesLeftOut":0,"lossIntervals":[],"lossIntervalsLeftOut":0,"cpuChanges":[)"
      R"({"cpu":1,"online":false,"since":"1970-01-01T00:00:00.000000100Z","until":null},)"
      R"({"cpu":1,"online":true,"since":"1970-01-01T00:00:00.000000100Z",)"
      R"("until":"1970-01-01T00:00:00.000000200Z"},)"
      R"({"cpu":2,"online":true,"since":"1970-01-01T00:00:00.000000100Z","until":null,"reason":"why"}],)"
      R"("cpuChangesLeftOut":0,"unknownServices":[],"unknownServicesLeftOut":0,)"
      R"("throttled":0,"stacksSkipped":0})");
}

TEST(AccountSummary, ServicesWithUnknownLossesAreListed) {
  AccountSummary summary;
  summary.Add({AccountKind::kServiceUnknown, 0, 0, "ring:7", "why", 100, 200});
  summary.Add({AccountKind::kServiceUnknown, 0, 0, "", "why", 0, 300});
  EXPECT_EQ(
      SummaryJson(summary),
      R"({"losses":[],"lossesLeftOut":0,"lossIntervals":[],"lossIntervalsLeftOut":0,"cpuChanges":[],)"
      R"("cpuChangesLeftOut":0,"unknownServices":[{"tracepoint":"ring:7",)"
      R"("since":"1970-01-01T00:00:00.000000100Z","until":"1970-01-01T00:00:00.000000200Z",)"
      R"("reason":"why"},{"tracepoint":null,"since":null,"until":"1970-01-01T00:00:00.000000300Z",)"
      R"("reason":"why"}],"unknownServicesLeftOut":0,"throttled":0,"stacksSkipped":0})");
  // Unknown losses of a service do not make the losses of the whole file unknown.
  EXPECT_FALSE(summary.unknown().has_value());
}

TEST(AccountSummary, MemoryIsBoundedAndSumsAreExact) {
  AccountSummary summary;
  constexpr std::uint64_t kMany = 40'000;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    summary.Add({AccountKind::kEventsLost, static_cast<std::uint32_t>(i), 2, "a:b", "", i, i + 1});
    summary.Add({AccountKind::kCpuOffline, 1, 0, "", "", 1, 0});
    summary.Add({AccountKind::kServiceUnknown, 0, 0, "ring:7", "why", 1, 2});
  }
  EXPECT_EQ(summary.unknown_services().size(), AccountSummary::kMaxUnknownServices);
  EXPECT_EQ(summary.unknown_services_left_out(), kMany - AccountSummary::kMaxUnknownServices);
  EXPECT_EQ(summary.losses().size(), AccountSummary::kMaxLosses);
  EXPECT_EQ(summary.lost(), 2 * kMany);
  EXPECT_EQ(summary.losses_left_out(), 2 * (kMany - AccountSummary::kMaxLosses));
  EXPECT_EQ(summary.intervals().size(), AccountSummary::kMaxIntervals);
  EXPECT_EQ(summary.intervals_left_out(), kMany - AccountSummary::kMaxIntervals);
  EXPECT_EQ(summary.cpu_changes().size(), AccountSummary::kMaxCpuChanges);
  EXPECT_EQ(summary.cpu_changes_left_out(), kMany - AccountSummary::kMaxCpuChanges);
}

TEST(AccountSummary, UnknownTimeSpansFromTheFirstToTheLast) {
  AccountSummary summary;
  EXPECT_FALSE(summary.unknown().has_value());
  summary.Add({AccountKind::kAccountUnknown, 0, 0, "", "", 500, 600});
  summary.Add({AccountKind::kAccountUnknown, 0, 0, "", "", 100, 200});
  ASSERT_TRUE(summary.unknown().has_value());
  EXPECT_EQ(summary.unknown()->since, 100u);
  EXPECT_EQ(summary.unknown()->until, 600u);
  summary.Add({AccountKind::kAccountUnknown, 0, 0, "", "", 150, 0});
  EXPECT_EQ(summary.unknown()->until, 0u);  // the time is unknown
}

}  // namespace
}  // namespace trace
