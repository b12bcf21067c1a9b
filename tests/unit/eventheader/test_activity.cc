#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "eventheader/eh.h"
#include "eventheader/testing/recording_transport.h"

namespace eh {
namespace {

inline constinit Provider activity_provider("Test_Activity");
inline constexpr Event<activity_provider, "Start", Traits{.opcode = Opcode::kActivityStart},
                       Field<"n", std::uint8_t>>
    start_event;
inline constexpr Event<activity_provider, "Stop", Traits{.opcode = Opcode::kActivityStop}>
    stop_event;

constexpr char kParent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(ActivityIds, DifferFromEachOtherAcrossThreads) {
  constexpr int kThreads = 4;
  constexpr int kIds = 1000;
  std::vector<std::vector<ActivityId>> made(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (auto& ids : made) {
    threads.emplace_back([&ids] {
      for (int i = 0; i < kIds; ++i) ids.push_back(NewActivityId());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<ActivityId> all;
  for (const auto& ids : made) all.insert(ids.begin(), ids.end());
  EXPECT_EQ(all.size(), std::size_t{kThreads} * kIds);
  EXPECT_EQ(all.count(ActivityId{}), 0u);
}

TEST(ActivityIds, DifferBetweenParentAndChildren) {
  std::set<ActivityId> all = {NewActivityId()};
  for (int i = 0; i < 2; ++i) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      const ActivityId id = NewActivityId();
      _exit(write(ends[1], id.data(), id.size()) == sizeof(id) ? 0 : 1);
    }
    ActivityId id;
    EXPECT_EQ(read(ends[0], id.data(), id.size()), ssize_t{sizeof(id)});
    all.insert(id);
    waitpid(child, nullptr, 0);
    close(ends[0]);
    close(ends[1]);
  }
  all.insert(NewActivityId());
  EXPECT_EQ(all.size(), 4u);
}

// Returns the number of `size` bytes at `at`, least significant byte first.
std::uint64_t LittleEndian(const ActivityId& bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = size; i > 0; --i) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[at + i - 1]);
  }
  return value;
}

// Returns the bytes of the GUID that Windows and .NET make of a UUID.
ActivityId AsGuid(const ActivityId& id) {
  ActivityId guid = id;
  std::reverse(guid.begin(), guid.begin() + 4);
  std::reverse(guid.begin() + 4, guid.begin() + 6);
  std::reverse(guid.begin() + 6, guid.begin() + 8);
  return guid;
}

TEST(ActivityIds, AreActivityPathsOfOneNumber) {
  std::uint64_t last = 0;
  for (int i = 0; i < 1000; ++i) {
    const ActivityId guid = AsGuid(NewActivityId());
    const auto sum =
        LittleEndian(guid, 0, 4) + LittleEndian(guid, 4, 4) + LittleEndian(guid, 8, 4) + 0x599D99AD;
    ASSERT_EQ(LittleEndian(guid, 12, 4), sum & 0xFFFFFFFF);
    EXPECT_EQ(guid[0], std::byte{0xF0});                // a number of four bytes follows
    EXPECT_EQ(guid[5] & std::byte{0xF0}, std::byte{});  // the path ends
    const std::uint64_t number = LittleEndian(guid, 1, 4);
    if (i > 0) {
      EXPECT_EQ(number, last + 1);
    }
    last = number;
  }
}

TEST(ActivityIds, OfOneProcessHaveTheSameRandomBits) {
  const ActivityId one = AsGuid(NewActivityId());
  const ActivityId other = AsGuid(NewActivityId());
  EXPECT_TRUE(std::equal(one.begin() + 5, one.begin() + 12, other.begin() + 5));
  EXPECT_NE(LittleEndian(one, 5, 7), 0u);
}

TEST(ActivityIds, CurrentOneBelongsToTheThread) {
  const ActivityId id = NewActivityId();
  EXPECT_EQ(SetCurrentActivity(id), std::nullopt);
  std::thread([] { EXPECT_EQ(CurrentActivity(), std::nullopt); }).join();
  EXPECT_EQ(CurrentActivity(), id);
  EXPECT_EQ(SetCurrentActivity(std::nullopt), id);
}

TEST(ActivityScopes, WriteStartAndStopWithIdAndParent) {
  RecordingTransport transport;
  start_event.enabled();
  activity_provider.SetTransport(&transport);
  ActivityId outer_id;
  ActivityId inner_id;
  {
    const ActivityScope<start_event, stop_event> outer(std::uint8_t{1});
    outer_id = outer.id();
    {
      const ActivityScope<start_event, stop_event> inner(std::uint8_t{2});
      inner_id = inner.id();
      EXPECT_EQ(CurrentActivity(), inner_id);
    }
    EXPECT_EQ(CurrentActivity(), outer_id);
  }
  EXPECT_EQ(CurrentActivity(), std::nullopt);
  activity_provider.SetTransport(nullptr);
  struct Seen {
    std::uint8_t opcode;
    ActivityId id;
    bool operator==(const Seen&) const = default;
  };
  std::vector<Seen> seen;
  const auto records = transport.Take();
  for (const auto& record : records) {
    ActivityId id;
    std::copy_n(record.event.begin() + 12, id.size(), id.begin());
    seen.push_back({std::to_integer<std::uint8_t>(record.event[6]), id});
  }
  EXPECT_EQ(seen, (std::vector<Seen>{{1, outer_id}, {1, inner_id}, {2, inner_id}, {2, outer_id}}));
  // Only the inner start has a related id, that of its parent.
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[0].event[8], std::byte{16});
  ASSERT_EQ(records[1].event[8], std::byte{32});
  EXPECT_TRUE(std::equal(outer_id.begin(), outer_id.end(), records[1].event.begin() + 28));
}

TEST(ActivityScopes, StopWritesItsFieldsOnce) {
  static constexpr Event<activity_provider, "Stop", Traits{.opcode = Opcode::kActivityStop},
                         Field<"status", std::uint8_t>, Field<"text", std::string_view>>
      stop_with_fields;
  RecordingTransport transport;
  stop_with_fields.enabled();
  activity_provider.SetTransport(&transport);
  {
    ActivityScope<start_event, stop_with_fields> scope(std::uint8_t{1});
    scope.Stop(std::uint8_t{200}, "ok");
    scope.Stop(std::uint8_t{201}, "no");
    EXPECT_EQ(CurrentActivity(), scope.id());
  }
  { const ActivityScope<start_event, stop_with_fields> left_early(std::uint8_t{1}); }
  activity_provider.SetTransport(nullptr);
  const auto records = transport.Take();
  ASSERT_EQ(records.size(), 4u);
  const auto end_of = [&](std::size_t record, std::size_t size) {
    const auto& event = records[record].event;
    return std::string(reinterpret_cast<const char*>(event.data() + event.size() - size), size);
  };
  EXPECT_EQ(end_of(1, 5), std::string("\xC8\x02\0ok", 5));
  EXPECT_EQ(end_of(3, 3), std::string("\0\0\0", 3));
}

TEST(TraceParent, FormatsUnchangedAfterParsing) {
  const auto context = TraceContext::Parse(kParent);
  ASSERT_TRUE(context);
  const auto text = context->Format();
  EXPECT_EQ(std::string(text.data(), text.size()), kParent);
  const auto trace_id = context->TraceIdText();
  EXPECT_EQ(std::string(trace_id.data(), trace_id.size()), "0af7651916cd43dd8448eb211c80319c");
  const auto span_id = context->SpanIdText();
  EXPECT_EQ(std::string(span_id.data(), span_id.size()), "b7ad6b7169203331");
}

TEST(TraceParent, PassesNoFlagsOnThatItsVersionHasNot) {
  const auto context = TraceContext::Parse("cc" + std::string(kParent + 2, 51) + "ff-future");
  ASSERT_TRUE(context);
  EXPECT_EQ(context->flags, 0xFF);
  const auto text = context->Format();
  EXPECT_EQ(std::string(text.data(), text.size()), kParent);
}

TEST(TraceParent, OutOfFormIsIgnored) {
  const std::string good = kParent;
  const auto with = [&](std::size_t at, char c) {
    std::string text = good;
    text[at] = c;
    return text;
  };
  EXPECT_FALSE(TraceContext::Parse(""));
  EXPECT_FALSE(TraceContext::Parse(good.substr(0, 54)));
  EXPECT_FALSE(TraceContext::Parse(good + "-00"));
  EXPECT_FALSE(TraceContext::Parse(with(2, '_')));
  EXPECT_FALSE(TraceContext::Parse(with(4, 'A')));
  EXPECT_FALSE(TraceContext::Parse(with(40, 'x')));
  EXPECT_FALSE(TraceContext::Parse("ff" + good.substr(2)));
  EXPECT_FALSE(TraceContext::Parse("00-00000000000000000000000000000000-b7ad6b7169203331-01"));
  EXPECT_FALSE(TraceContext::Parse("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"));
  EXPECT_TRUE(TraceContext::Parse("01" + good.substr(2) + "-more"));
  EXPECT_FALSE(TraceContext::Parse("01" + good.substr(2) + "more"));
}

TEST(TraceParent, ChildKeepsTheTrace) {
  const TraceContext root = TraceContext::New();
  const TraceContext child = root.NewChild();
  EXPECT_EQ(child.trace_id, root.trace_id);
  EXPECT_NE(child.parent_id, root.parent_id);
  EXPECT_EQ(child.flags, root.flags);
}

}  // namespace
}  // namespace eh
