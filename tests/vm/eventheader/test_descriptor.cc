// Tests the descriptor of user_events_data in programs that close it: the library must never write
// into another file.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <thread>

#include "eventheader/eh.h"
#include "tests/support/eventheader/kernel_trace.h"

namespace eh::testing {
namespace {

constinit Provider provider("Vm_Descriptor");
constexpr Event<provider, "Text", Traits{.keyword = 1}, Field<"text", std::string_view>> text_event;

rlimit Limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}

int NewFile() {
  char name[] = "/tmp/foreignXXXXXX";
  const int file = mkstemp(name);
  unlink(name);
  return file;
}

bool IsEmpty(int file) {
  struct stat status;
  return fstat(file, &status) == 0 && status.st_size == 0;
}

// Child processes return the line of the failure, modulo 256, as their exit status.
#define CHECK_OR_RETURN(condition) \
  if (!(condition)) return __LINE__ % 256

class DescriptorTest : public EnabledTest {
 protected:
  DescriptorTest() : EnabledTest(provider, "Vm_Descriptor_L4K1") {}
};

TEST_F(DescriptorTest, IsOneClosedOnExecAndOutOfReach) {
  const std::vector<int> found = UserEventsDescriptors();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(fcntl(found[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  ASSERT_LT(Limit().rlim_cur, Limit().rlim_max);
  EXPECT_GE(static_cast<rlim_t>(found[0]), Limit().rlim_cur);
  EXPECT_EQ(dup2(0, found[0]), -1);
}

// Closes every descriptor below the soft limit, like many daemons.
int CloseUpToTheLimit() {
  for (rlim_t fd = 3; fd < Limit().rlim_cur; ++fd) close(static_cast<int>(fd));
  const int log = NewFile();
  CHECK_OR_RETURN(text_event.Write("goes on") == WriteResult::kWritten);
  CHECK_OR_RETURN(IsEmpty(log));
  return 0;
}

TEST_F(DescriptorTest, WritesContinueAfterClosingUpToTheLimit) {
  EXPECT_EQ(InChild(CloseUpToTheLimit), 0);
  EXPECT_EQ(CountText(trace_->Take(), "goes on"), 1);
}

// Closes all descriptors, opens a file at the number of the library's descriptor, and writes events
// `pause` microseconds later. No event may reach the file: the library must notice that the number
// was reused. Runs in a child process.
int CloseAllAndReuseTheNumber(useconds_t pause) {
  const std::vector<int> found = UserEventsDescriptors();
  rlimit limit = Limit();
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  close_range(3, ~0u, 0);
  const int file = NewFile();
  CHECK_OR_RETURN(found.size() == 1 && dup2(file, found[0]) == found[0]);
  usleep(pause);
  CHECK_OR_RETURN(text_event.enabled());
  for (int i = 0; i < 100; ++i) {
    CHECK_OR_RETURN(text_event.Write("must go nowhere") == WriteResult::kFailed);
  }
  CHECK_OR_RETURN(provider.counters().failed_by_errno[EBADF] == 100);
  CHECK_OR_RETURN(IsEmpty(file));
  CHECK_OR_RETURN(provider.Retry() == 0);
  CHECK_OR_RETURN(text_event.Write("after all") == WriteResult::kWritten);
  // Retry() has opened another descriptor, and has not closed the file.
  CHECK_OR_RETURN(IsEmpty(file) && fcntl(found[0], F_GETFD) >= 0 && IsEmpty(found[0]));
  return 0;
}

TEST_F(DescriptorTest, NeverWritesIntoAFileThatReusesTheNumber) {
  for (const useconds_t pause : {0, 10'000}) {
    EXPECT_EQ(InChild([pause] { return CloseAllAndReuseTheNumber(pause); }), 0);
    const std::vector<KernelEvent> events = trace_->Take();
    EXPECT_EQ(CountText(events, "must go nowhere"), 0);
    EXPECT_EQ(CountText(events, "after all"), 1);
  }
}

TEST_F(DescriptorTest, NorInTheSameProcessThatWroteBefore) {
  EXPECT_EQ(InChild([] {
              CHECK_OR_RETURN(text_event.Write("before") == WriteResult::kWritten);
              return CloseAllAndReuseTheNumber(10'000);
            }),
            0);
  EXPECT_EQ(CountText(trace_->Take(), "before"), 1);
}

// Makes the soft limit equal to the hard limit, so that the library must place its descriptor below
// both. Then closes this descriptor, and opens a file with the same number.
int ReuseTheNumberBelowTheLimit() {
  for (const int fd : UserEventsDescriptors()) close(fd);
  const rlimit limit = {256, 256};
  CHECK_OR_RETURN(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK_OR_RETURN(provider.Retry() == 0);
  const std::vector<int> found = UserEventsDescriptors();
  CHECK_OR_RETURN(found.size() == 1 && found[0] < 256);
  CHECK_OR_RETURN(fcntl(found[0], F_GETFD) == FD_CLOEXEC);
  CHECK_OR_RETURN(text_event.Write("below") == WriteResult::kWritten);
  return CloseAllAndReuseTheNumber(10'000);
}

TEST_F(DescriptorTest, NorWhereTheSoftLimitIsTheHardOne) {
  EXPECT_EQ(InChild(ReuseTheNumberBelowTheLimit), 0);
  const std::vector<KernelEvent> events = trace_->Take();
  EXPECT_EQ(CountText(events, "below"), 1);
  EXPECT_EQ(CountText(events, "must go nowhere"), 0);
}

// Closes all descriptors while threads write, and opens files until no number is left. Each file
// must stay empty.
int CloseAllWhileThreadsWrite() {
  const std::uint64_t before = provider.counters().written;
  std::atomic<bool> stop = false;
  std::vector<std::thread> writers;
  writers.reserve(4);
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([&] {
      while (!stop) text_event.Write("while");
    });
  }
  while (provider.counters().written == before) usleep(1'000);
  close_range(3, ~0u, 0);
  std::vector<int> files;
  for (int file; (file = NewFile()) >= 0;) files.push_back(file);
  usleep(50'000);
  stop = true;
  for (std::thread& writer : writers) writer.join();
  CHECK_OR_RETURN(files.size() > 1000);
  CHECK_OR_RETURN(std::all_of(files.begin(), files.end(), IsEmpty));
  CHECK_OR_RETURN(provider.counters().failed_by_errno[EBADF] > 0);
  return 0;
}

TEST_F(DescriptorTest, NeverWritesIntoFilesOpenedWhileThreadsWrite) {
  EXPECT_EQ(InChild(CloseAllWhileThreadsWrite), 0);
}

}  // namespace
}  // namespace eh::testing
