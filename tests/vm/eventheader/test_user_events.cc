// Tests writing to the kernel while tracepoints are enabled and disabled, processes fork, and sets
// are created and destroyed.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "eventheader/eh.h"
#include "tests/support/eventheader/kernel_trace.h"

namespace eh::testing {
namespace {

constinit Provider provider("Vm_Test");
constexpr Event<provider, "Text", Traits{.level = Level::kWarning, .keyword = 1},
                Field<"text", std::string_view>>
    text_event;

class UserEventsTest : public EnabledTest {
 protected:
  UserEventsTest() : EnabledTest(provider, "Vm_Test_L3K1") {}
};

TEST_F(UserEventsTest, EnablingTurnsTheSetOnAndOff) {
  EXPECT_TRUE(text_event.enabled());
  EXPECT_EQ(text_event.Write("heard"), WriteResult::kWritten);
  Enable(false);
  EXPECT_FALSE(text_event.enabled());
  EXPECT_FALSE(provider.enabled());
  EXPECT_EQ(text_event.Write("not heard"), WriteResult::kDisabled);
  const std::vector<KernelEvent> events = trace_->Take();
  EXPECT_EQ(CountText(events, "heard"), 1);
  EXPECT_EQ(events.size(), 1u);
}

TEST_F(UserEventsTest, BothSidesOfAForkContinue) {
  const std::uint64_t before = provider.counters().written;
  EXPECT_EQ(
      InChild([] {
        // The child creates and destroys a set, besides writing with a set of the parent.
        const EventSet own(provider, Level::kVerbose, 1);
        return text_event.Write("from the child") == WriteResult::kWritten && own.status() == 0 ? 0
                                                                                                : 1;
      }),
      0);
  EXPECT_EQ(text_event.Write("from the parent"), WriteResult::kWritten);
  const std::vector<KernelEvent> events = trace_->Take();
  EXPECT_EQ(CountText(events, "from the child"), 1);
  EXPECT_EQ(CountText(events, "from the parent"), 1);
  EXPECT_EQ(provider.counters().written - before, 1u);
}

TEST_F(UserEventsTest, EnablingReachesForkedProcesses) {
  Enable(false);
  int pipe_ends[2];
  ASSERT_EQ(pipe2(pipe_ends, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    char go;
    if (text_event.enabled() || read(pipe_ends[0], &go, 1) != 1) _exit(1);
    if (!Eventually([] { return text_event.enabled(); })) _exit(2);
    _exit(text_event.Write("from the child") == WriteResult::kWritten ? 0 : 3);
  }
  Enable();
  ASSERT_EQ(write(pipe_ends[1], "x", 1), 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  const std::vector<KernelEvent> events = trace_->Take();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].tid, child);
}

TEST_F(UserEventsTest, ForkWhileOthersRegisterLeavesTheChildAbleTo) {
  std::atomic<bool> stop = false;
  std::thread registers([&] {
    while (!stop) const EventSet set(provider, Level::kVerbose, 2);
  });
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(InChild([] {
                alarm(20);  // Ends the child if the creation of the set hangs.
                const EventSet set(provider, Level::kVerbose, 4);
                return set.status();
              }),
              0);
  }
  stop = true;
  registers.join();
}

TEST_F(UserEventsTest, SetsComeAndGoWhileOthersWrite) {
  constexpr int kThreads = 8;
  trace_->Clear();
  const std::uint64_t before = provider.counters().written;
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> written = 0;
  std::vector<std::thread> writers;
  writers.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    writers.emplace_back([&] {
      while (!stop) {
        EXPECT_EQ(text_event.Write("x"), WriteResult::kWritten);
        ++written;
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    const EventSet same(provider, Level::kWarning, 1);
    const EventSet other(provider, Level::kVerbose, static_cast<std::uint64_t>(i));
    EXPECT_EQ(same.status(), 0);
    EXPECT_EQ(other.status(), 0);
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(trace_->Count(), written);
  EXPECT_EQ(provider.counters().written - before, written);
}

}  // namespace
}  // namespace eh::testing
