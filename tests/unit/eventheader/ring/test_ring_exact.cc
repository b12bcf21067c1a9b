// Tests that every event that a service writes to its rings arrives once, or is counted as lost: at
// full speed, when the service is killed, and when collectors end. The tests run with shared
// memory, and with events that are sent over the socket.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "eventheader/eh.h"
#include "tests/support/wait_until.h"
#include "tests/unit/eventheader/ring/service_process.h"

namespace {

using tests::RingClient;
using tests::RingCollector;
using tests::ServiceProcess;
using tests::SharedMemory;
using tests::TemporaryFolder;

constexpr int kThreads = 4;

// Tries to write `most` numbered events to a set. Stores in `tried` the number of calls that have
// returned, and in `accepted`, unless it is null, the number of calls that have written an event.
void WriteNumbers(const eh::EventSet& set, std::uint64_t thread, std::uint64_t most,
                  std::atomic<std::uint64_t>& tried, std::atomic<std::uint64_t>* accepted) {
  eh::DynamicEvent event;
  std::uint64_t written = 0;
  for (std::uint64_t i = 0; i < most; ++i) {
    event.Reset("Number");
    event.AddField("thread", thread);
    event.AddField("number", i);
    // Various sizes, so that records end at all places of a chunk.
    event.AddField("text", std::string_view("0123456789012345678901234567890123456789")
                               .substr(0, (i * 7 + thread) % 40));
    if (event.Write(set) == eh::WriteResult::kWritten) ++written;
    tried.store(i + 1, std::memory_order_release);
    if (accepted != nullptr) accepted->store(written, std::memory_order_release);
  }
}

// Waits until the collector has accepted the service's rings. Before that, the service can use only
// a part of their memory, and would lose more events.
void WaitForWelcome() {
  while (eh::DescribeTransport(nullptr, 0) != eh::TransportState::kRingConnected) usleep(100);
}

// Runs the service: waits until its set is enabled, and then writes in four threads.
int RunNumbers(std::uint64_t most, const SharedMemory& shared) {
  eh::DynamicProvider provider("Ring_Exact");
  const eh::EventSet set(provider, eh::Level::kInformation, 1);
  if (set.status() != 0) return 1;
  WaitForWelcome();
  while (!set.enabled()) usleep(100);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] { WriteNumbers(set, t, most, shared[t], &shared[kThreads + t]); });
  }
  for (std::thread& thread : threads) thread.join();
  shared[63] = 1;
  // Waits until the test has read everything.
  while (shared[62] == 0) usleep(1000);
  return 0;
}

struct Number {
  std::uint64_t thread;
  std::uint64_t number;
};
// Returns the first two fields, and checks the size of the text.
Number NumberIn(const RingClient::Event& event) {
  // The event has a header of 8 bytes, an extension header of 4 bytes, and the metadata: the names
  // "Number", "thread", "number" and "text", with types after the last three.
  const std::size_t metadata =
      static_cast<std::size_t>(event.bytes[8]) | static_cast<std::size_t>(event.bytes[9]) << 8;
  Number number{};
  const std::byte* const data = event.bytes.data() + 12 + metadata;
  std::memcpy(&number, data, sizeof(number));
  std::uint16_t size = 0;
  std::memcpy(&size, data + 16, sizeof(size));
  EXPECT_EQ(size, (number.number * 7 + number.thread) % 40);
  EXPECT_EQ(event.bytes.size(), 12 + metadata + 18 + size);
  EXPECT_EQ(std::memcmp(data + 18, "0123456789012345678901234567890123456789", size), 0);
  return number;
}

// Checks that the numbers of each writer increase, and that gaps are the losses that were reported.
class Checker {
 public:
  void Check(RingClient* client) {
    for (const RingClient::Event& event : client->events) {
      const Number number = NumberIn(event);
      auto& writer = writers_[event.writer.ordinal];
      EXPECT_EQ(event.number, number.number);
      EXPECT_EQ(writer.next + event.lost_before, event.number) << "writer " << event.writer.ordinal;
      EXPECT_GE(event.timestamp, writer.timestamp);
      writer.timestamp = event.timestamp;
      writer.next = event.number + 1;
      writer.thread = number.thread;
      ++writer.shown;
      EXPECT_EQ(event.tracepoint, "Ring_Exact_L4K1");
      if (::testing::Test::HasFailure()) return;
    }
    client->events.clear();
  }
  struct Writer {
    std::uint64_t next = 0;
    std::uint64_t shown = 0;
    std::uint64_t thread = 0;
    std::uint64_t timestamp = 0;
  };
  const std::map<std::uint64_t, Writer>& writers() const { return writers_; }

 private:
  std::map<std::uint64_t, Writer> writers_;
};

class RingExactTest : public ::testing::TestWithParam<const char*> {
 protected:
  RingExactTest() { setenv("EVENTHEADER_TRANSPORT", GetParam(), 1); }
  ~RingExactTest() override {
    unsetenv("EVENTHEADER_RING_SIZE");
    unsetenv("EVENTHEADER_TRANSPORT");
  }
  static bool IsInline() { return std::string_view(GetParam()) == "ring-inline"; }

  // Runs the service at full speed. If `leaves_one_of` is not 0, the collector leaves one of
  // `leaves_one_of` events in the region for a later reading. Returns the number of lost events.
  std::uint64_t RunAtFullSpeed(const char* size, std::uint64_t most, std::uint64_t chunks,
                               std::uint64_t leaves_one_of = 0) {
    setenv("EVENTHEADER_RING_SIZE", size, 1);
    ServiceProcess service(path_, [&] { return RunNumbers(most, shared_); });
    const auto client = collector_.Accept();
    client->Welcome(chunks);
    client->EnableAll();
    Checker checker;
    std::uint64_t left = 0;
    bool is_done = false;
    while (!is_done) {
      is_done = shared_[63] != 0;
      client->leaves_one_of = is_done ? 0 : leaves_one_of;
      client->Drain();
      left += client->region().left_events() ? 1 : 0;
      checker.Check(client.get());
      if (HasFailure()) return 0;
    }
    EXPECT_EQ(client->inline_reason.empty(), !IsInline());
    // Flush waits for an answer of the service, which arrives after its last events.
    client->Flush();
    client->Drain();
    checker.Check(client.get());
    std::uint64_t lost = 0;
    for (const auto& [ordinal, writer] : checker.writers()) {
      EXPECT_EQ(writer.shown + client->lost[ordinal], most) << "thread " << writer.thread;
      EXPECT_EQ(writer.shown, shared_[kThreads + writer.thread]) << "as the service counts";
    }
    // All events of a thread may be lost, because it never found a free chunk.
    EXPECT_EQ(client->lost.size(), std::size_t{kThreads});
    for (const auto& [ordinal, number] : client->lost) {
      EXPECT_TRUE(number == most || checker.writers().contains(ordinal));
      lost += number;
    }
    EXPECT_EQ(client->region().corrupt(), 0u);
    // With fewer chunks than requested, a large ring could lose events, too.
    EXPECT_EQ(client->region().usable_chunks(), chunks) << "the service has not enough memory";
    EXPECT_EQ(left != 0, leaves_one_of != 0);
    shared_[62] = 1;
    EXPECT_EQ(service.Wait(), 0);
    return lost;
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/events";
  const RingCollector collector_{path_};
  const SharedMemory shared_;
};

TEST_P(RingExactTest, ShownAndLostEventsAreThoseWrittenIntoASmallRing) {
  RunAtFullSpeed("128K", 100'000, 8);
}

TEST_P(RingExactTest, ShownAndLostEventsAreThoseWrittenIntoALargeRing) {
  EXPECT_EQ(RunAtFullSpeed("256M", 100'000, 16'384), 0u);
}

TEST_P(RingExactTest, PassesEventsThatWereNotTakenFromASmallRingAgain) {
  RunAtFullSpeed("128K", 100'000, 8, 100);
}

TEST_P(RingExactTest, PassesEventsThatWereNotTakenFromALargeRingAgain) {
  EXPECT_EQ(RunAtFullSpeed("256M", 100'000, 16'384, 1000), 0u);
}

TEST_P(RingExactTest, LossesAtTheEndAreReported) {
  // The collector reads only when the service has ended.
  setenv("EVENTHEADER_RING_SIZE", "64K", 1);
  ServiceProcess service(path_, [&] { return RunNumbers(10'000, shared_); });
  const auto client = collector_.Accept();
  client->Welcome();
  client->EnableAll();
  tests::WaitUntil([&] { return shared_[63] != 0; });
  client->Flush();
  shared_[62] = 1;
  EXPECT_EQ(service.Wait(), 0);
  client->Drain();
  Checker checker;
  checker.Check(client.get());
  std::uint64_t shown = 0;
  std::uint64_t lost = 0;
  for (const auto& [ordinal, writer] : checker.writers()) shown += writer.shown;
  for (const auto& [ordinal, number] : client->lost) lost += number;
  EXPECT_GT(shown, 0u);
  EXPECT_EQ(shown + lost, 40'000u);
  // A second reading finds nothing new.
  client->lost.clear();
  client->Drain();
  EXPECT_TRUE(client->events.empty());
  for (const auto& [ordinal, number] : client->lost) EXPECT_EQ(number, 0u);
}

TEST_P(RingExactTest, AKilledServiceLosesNoCommittedEvent) {
  setenv("EVENTHEADER_RING_SIZE", "512K", 1);
  std::mt19937 random(20261125);
  for (int round = 0; round < 25; ++round) {
    SCOPED_TRACE(round);
    for (int i = 0; i < 64; ++i) shared_[static_cast<std::size_t>(i)] = 0;
    ServiceProcess service(path_, [&] { return RunNumbers(~std::uint64_t{0}, shared_); });
    const auto client = collector_.Accept();
    client->Welcome();
    client->EnableAll();
    Checker checker;
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 20'000);
    while (std::chrono::steady_clock::now() < end) {
      client->Drain();
      checker.Check(client.get());
    }
    service.Kill();
    service.Wait();
    client->Drain();
    checker.Check(client.get());
    EXPECT_EQ(client->region().corrupt(), 0u);
    for (const auto& [ordinal, writer] : checker.writers()) {
      // The last call may have committed its event without having returned.
      const std::uint64_t tried = shared_[writer.thread];
      const std::uint64_t found = writer.shown + client->lost[ordinal];
      EXPECT_LE(found, tried + 1) << "thread " << writer.thread;
      // On an inline connection, events that the service has not sent yet are lost with it.
      if (IsInline()) continue;
      EXPECT_GE(found, tried) << "thread " << writer.thread;
      EXPECT_GE(writer.shown, shared_[kThreads + writer.thread]);
    }
    if (HasFailure()) return;
  }
}

TEST_P(RingExactTest, CollectorsThatEndPassOnEveryEventOnce) {
  setenv("EVENTHEADER_RING_SIZE", "64M", 1);
  constexpr std::uint64_t kMost = 50'000;
  ServiceProcess service(path_, [&] {
    eh::DynamicProvider provider("Ring_Exact");
    const eh::EventSet set(provider, eh::Level::kInformation, 1);
    WaitForWelcome();
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        eh::DynamicEvent event;
        for (std::uint64_t i = 0; i < kMost;) {
          event.Reset("Number");
          event.AddField("thread", t);
          event.AddField("number", i);
          event.AddField("text", std::string_view("0123456789012345678901234567890123456789")
                                     .substr(0, (i * 7 + t) % 40));
          // Without a collector, the set is disabled, and the loop tries the same event again.
          if (event.Write(set) == eh::WriteResult::kWritten) ++i;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    shared_[63] = 1;
    while (shared_[62] == 0) usleep(1000);
    return 0;
  });
  // For each writer, the number of the first event that no collector has read. A real collector
  // takes it from its files. An event may have been read although its chunk was not given back.
  std::map<std::uint64_t, std::uint64_t> next;
  std::array<std::uint8_t, 16> id{};
  std::uint64_t shown = 0;
  std::mt19937 random(4711);
  for (int round = 0; round < 200; ++round) {
    const auto client = collector_.Accept();
    client->Welcome(4096);
    if (round == 0) id = client->region().id();
    EXPECT_EQ(client->region().id(), id) << "the service hands over the same memory";
    client->EnableAll();
    const bool is_last = shared_[63] != 0;
    // On an inline connection, the answer to Flush arrives after the last events.
    if (is_last) client->Flush();
    for (unsigned i = 0; i < 1 + random() % 3; ++i) {
      client->Drain(is_last || random() % 2 == 0);
      ASSERT_EQ(client->region().usable_chunks(), 4096u) << "the service has not enough memory";
      for (const RingClient::Event& event : client->events) {
        ASSERT_EQ(event.lost_before, 0u);
        ASSERT_EQ(NumberIn(event).number, event.number);
        // The file has the events that an earlier collector read and did not give back.
        if (event.number < next[event.writer.ordinal]) continue;
        ASSERT_EQ(event.number, next[event.writer.ordinal]);
        ++next[event.writer.ordinal];
        ++shown;
      }
      client->events.clear();
    }
    if (is_last) break;
  }
  EXPECT_EQ(shared_[63], 1u);
  EXPECT_EQ(shown, kThreads * kMost);
  shared_[62] = 1;
  EXPECT_EQ(service.Wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(Transports, RingExactTest, ::testing::Values("ring", "ring-inline"),
                         [](const auto& each) {
                           return std::string_view(each.param) == "ring" ? "Shared" : "Inline";
                         });

}  // namespace
