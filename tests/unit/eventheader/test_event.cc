// Compares events of the recording transport with bytes written by hand from the specification.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "eventheader/eh.h"
#include "eventheader/testing/recording_transport.h"
#include "tests/support/eventheader/event_bytes.h"

namespace eh {
namespace {

using namespace std::string_literals;

inline constinit Provider event_provider("Test_Provider");
inline constinit Provider grouped("Test_Grouped", "mygroup");

constexpr Event<event_provider, "Empty", Traits{}> empty_event;
constexpr Event<event_provider, "Numbers", Traits{.level = Level::kVerbose, .keyword = 0x2A},
                Field<"b", bool>, Field<"i8", std::int8_t>, Field<"u16", std::uint16_t>,
                Field<"i32", std::int32_t>, Field<"u64", std::uint64_t>, Field<"f", float>,
                Field<"d", double>>
    numbers_event;
constexpr Event<event_provider, "Text",
                Traits{.level = Level::kError,
                       .opcode = Opcode::kActivityStart,
                       .id = 0x1234,
                       .version = 5,
                       .tag = 0x6789},
                Field<"s", std::string_view>>
    text_event;
constexpr Event<grouped, "Empty", Traits{}> grouped_event;

class EventTest : public ::testing::Test {
 protected:
  EventTest() {
    event_provider.SetTransport(&transport_);
    grouped.SetTransport(&transport_);
  }
  ~EventTest() override {
    event_provider.SetTransport(nullptr);
    grouped.SetTransport(nullptr);
  }

  // Returns the bytes of the only event that was written.
  std::string TakeOne(std::string* tracepoint = nullptr) {
    const auto records = transport_.Take();
    EXPECT_EQ(records.size(), 1u);
    if (records.size() != 1) return "";
    if (tracepoint != nullptr) *tracepoint = records[0].tracepoint;
    return testing::TextOfWritten(records[0].event);
  }

  RecordingTransport transport_;
};

TEST_F(EventTest, NoFields) {
  EXPECT_EQ(empty_event.Write(), WriteResult::kWritten);
  std::string tracepoint;
  EXPECT_EQ(TakeOne(&tracepoint),
            "\x07\0\0\0\0\0\0\x04"  // flags, version, id, tag, opcode, level
            "\x06\0\x01\0"          // 6 bytes of metadata
            "Empty\0"s);
  EXPECT_EQ(tracepoint, "Test_Provider_L4K0");
}

TEST_F(EventTest, Numbers) {
  EXPECT_EQ(numbers_event.Write(true, -2, 0x0102, -3, 0x0102030405060708, 1.0f, -2.0),
            WriteResult::kWritten);
  std::string tracepoint;
  EXPECT_EQ(TakeOne(&tracepoint),
            "\x07\0\0\0\0\0\0\x05"
            "\x29\0\x01\0"
            "Numbers\0"
            "b\0\x82\x07"
            "i8\0\x82\x02"
            "u16\0\x03"
            "i32\0\x84\x02"
            "u64\0\x05"
            "f\0\x84\x08"
            "d\0\x85\x08"
            "\x01"
            "\xFE"
            "\x02\x01"
            "\xFD\xFF\xFF\xFF"
            "\x08\x07\x06\x05\x04\x03\x02\x01"
            "\x00\x00\x80\x3F"
            "\x00\x00\x00\x00\x00\x00\x00\xC0"s);
  EXPECT_EQ(tracepoint, "Test_Provider_L5K2a");
}

TEST_F(EventTest, TextIdVersionTagAndOpcode) {
  text_event.Write("ab");
  EXPECT_EQ(TakeOne(),
            "\x07\x05\x34\x12\x89\x67\x01\x02"
            "\x08\0\x01\0"
            "Text\0s\0\x0A"
            "\x02\0ab"s);
  text_event.Write("");
  EXPECT_TRUE(TakeOne().ends_with("s\0\x0A\0\0"s));
  const std::string text = "from a std::string";
  text_event.Write(text);
  EXPECT_TRUE(TakeOne().ends_with("\x12\0"s + text));
}

TEST_F(EventTest, ActivityPrecedesTheMetadata) {
  ActivityId id;
  ActivityId related;
  for (unsigned i = 0; i < id.size(); ++i) {
    id[i] = static_cast<std::byte>('a' + i);
    related[i] = static_cast<std::byte>('A' + i);
  }
  empty_event.Write(Activity{id});
  EXPECT_EQ(TakeOne(),
            "\x07\0\0\0\0\0\0\x04"
            "\x10\0\x02\x80"
            "abcdefghijklmnop"
            "\x06\0\x01\0"
            "Empty\0"s);
  empty_event.Write(Activity{id, &related});
  EXPECT_EQ(TakeOne(),
            "\x07\0\0\0\0\0\0\x04"
            "\x20\0\x02\x80"
            "abcdefghijklmnopABCDEFGHIJKLMNOP"
            "\x06\0\x01\0"
            "Empty\0"s);
}

TEST_F(EventTest, GroupIsInTheTracepointsName) {
  grouped_event.Write();
  std::string tracepoint;
  TakeOne(&tracepoint);
  EXPECT_EQ(tracepoint, "Test_Grouped_L4K0Gmygroup");
}

TEST_F(EventTest, InvalidRunTimeNameOrGroupReportsAnError) {
  const auto status = [&](std::string_view name, std::string_view group) {
    DynamicProvider any(name, group);
    any.SetTransport(&transport_);
    const EventSet set(any, Level::kError, 1);
    return set.status();
  };
  EXPECT_EQ(status("Test_Any", "group1"), 0);
  for (const std::string_view name : {"", "1a", "a b", "a-b"}) EXPECT_EQ(status(name, ""), EINVAL);
  // A capital letter would begin another option.
  for (const std::string_view group : {"a b", "Group", "aGroup", "aZone"}) {
    EXPECT_EQ(status("Test_Any", group), EINVAL) << group;
  }
}

TEST_F(EventTest, NothingIsWrittenWhileDisabled) {
  transport_.SetEnabled(false);
  EXPECT_FALSE(event_provider.enabled());
  EXPECT_FALSE(empty_event.enabled());
  EXPECT_EQ(empty_event.Write(), WriteResult::kDisabled);
  EXPECT_TRUE(transport_.Take().empty());
  transport_.SetEnabled(true);
  EXPECT_TRUE(empty_event.enabled());
  EXPECT_EQ(empty_event.Write(), WriteResult::kWritten);
}

TEST_F(EventTest, LargestEventIsWrittenAndOneByteMoreIsRefusedAndCounted) {
  const std::size_t overhead = 8 + 4 + 8 + 2;  // header, extension, metadata, length
  const std::string fits(kMaxEventSize - overhead, 'x');
  const Provider::Counters before = event_provider.counters();
  EXPECT_EQ(text_event.Write(fits), WriteResult::kWritten);
  EXPECT_EQ(TakeOne().size(), kMaxEventSize);
  EXPECT_EQ(text_event.Write(fits + "x"), WriteResult::kTooBig);
  EXPECT_EQ(text_event.Write(std::string(100'000, 'x')), WriteResult::kTooBig);
  EXPECT_TRUE(transport_.Take().empty());
  EXPECT_EQ(event_provider.counters().written, before.written + 1);
  EXPECT_EQ(event_provider.counters().too_big, before.too_big + 2);
}

TEST_F(EventTest, FailedWriteIsCountedAndErrnoKept) {
  const Provider::Counters before = event_provider.counters();
  transport_.FailWrite(EFAULT);
  errno = 42;
  EXPECT_EQ(empty_event.Write(), WriteResult::kFailed);
  EXPECT_EQ(errno, 42);
  EXPECT_EQ(event_provider.counters().failed, before.failed + 1);
  EXPECT_EQ(event_provider.counters().last_error, EFAULT);
}

TEST_F(EventTest, FailedRegistrationIsSeenAndRetried) {
  RecordingTransport late;
  late.FailRegister(ENOENT);
  event_provider.SetTransport(&late);
  EXPECT_EQ(event_provider.status(), ENOENT);
  EXPECT_EQ(empty_event.Write(), WriteResult::kDisabled);
  late.FailRegister(0);
  EXPECT_EQ(event_provider.Retry(), 0);
  EXPECT_EQ(empty_event.Write(), WriteResult::kWritten);
  EXPECT_EQ(late.Take().size(), 1u);
  event_provider.SetTransport(&transport_);
}

// A program destroys its event sets at exit, when a transport on the stack of main() no longer
// exists.
TEST_F(EventTest, TransportMayBeDestroyedBeforeItsUsers) {
  const EventSet set(event_provider, Level::kVerbose, 0x99);
  {
    RecordingTransport short_lived;
    EXPECT_EQ(event_provider.SetTransport(&short_lived), 0);
    EXPECT_EQ(empty_event.Write(), WriteResult::kWritten);
  }
  EXPECT_EQ(empty_event.Write(), WriteResult::kDisabled);
  EXPECT_FALSE(event_provider.enabled());
  EXPECT_EQ(event_provider.status(), EOWNERDEAD);
  EXPECT_EQ(set.status(), EOWNERDEAD);
  EXPECT_EQ(event_provider.Retry(), EOWNERDEAD);
  EXPECT_EQ(std::string_view(RegistrationErrorText(EOWNERDEAD)).substr(0, 24),
            "the provider's transport");
  EXPECT_EQ(event_provider.SetTransport(&transport_), 0);
  EXPECT_EQ(empty_event.Write(), WriteResult::kWritten);
  EXPECT_EXIT(
      {
        event_provider.SetTransport(std::make_unique<RecordingTransport>().get());
        std::exit(event_provider.status() == EOWNERDEAD ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(EventTest, MoreSetsThanBitsAreRefusedWithoutHarm) {
  static constinit Provider many("Test_Many");
  many.SetTransport(&transport_);
  {
    std::vector<std::unique_ptr<EventSet>> sets;
    for (std::uint64_t keyword = 0; keyword < Provider::kMaxEventSets; ++keyword) {
      sets.push_back(std::make_unique<EventSet>(many, Level::kVerbose, keyword));
      EXPECT_EQ(sets.back()->status(), 0);
    }
    EXPECT_EQ(many.status(), 0);
    const EventSet one_more(many, Level::kVerbose, 1000);
    EXPECT_EQ(one_more.status(), ENOSPC);
    EXPECT_FALSE(one_more.enabled());
    EXPECT_EQ(many.status(), ENOSPC);
    EXPECT_TRUE(sets.front()->enabled());
    EXPECT_TRUE(sets.back()->enabled());
  }
  EXPECT_FALSE(many.enabled());
  many.SetTransport(nullptr);
}

TEST_F(EventTest, WritesWhileEnabledAndDisabled) {
  constexpr int kThreads = 4;
  constexpr int kEvents = 1000;
  std::atomic<int> written = 0;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&written] {
      for (int n = 0; n < kEvents; ++n) {
        if (text_event.Write("x") == WriteResult::kWritten) ++written;
      }
    });
  }
  for (int i = 0; i < 100; ++i) transport_.SetEnabled(i % 2 == 0);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(transport_.Take().size(), static_cast<std::size_t>(written));
}

}  // namespace
}  // namespace eh
