// The user_events transport on a real kernel, read back from the ring of ftrace.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "eventheader/eventheader.h"
#include "eventheader/recording_transport.h"
#include "eventheader/user_events.h"

namespace eventheader {
namespace {

constexpr char kTracefs[] = "/sys/kernel/tracing/";

inline constinit Provider provider("Vm_Test");
constexpr Event<provider, "Everything", Traits{.level = Level::kWarning, .keyword = 1},
                Field<"number", int>, Field<"text", std::string_view>,
                Field<"list", std::vector<std::string>>, Field<"null", std::optional<int>>>
    everything;
constexpr Event<provider, "Text", Traits{.level = Level::kWarning, .keyword = 1},
                Field<"text", std::string_view>>
    text_event;

std::string ReadAvailable(const std::string& path) {
  std::string all;
  const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  char page[4096];
  for (ssize_t got; fd >= 0 && (got = read(fd, page, sizeof page)) > 0;) {
    all.append(page, static_cast<std::size_t>(got));
  }
  close(fd);
  return all;
}

void Put(const std::string& path, std::string_view text) {
  std::ofstream file(path);
  file << text << std::flush;
  ASSERT_TRUE(file) << path;
}

// The event's raw bytes as the kernel has them on all CPUs, and forgets them.
std::string TakeRings() {
  std::string all;
  for (const auto& cpu : std::filesystem::directory_iterator(std::string(kTracefs) + "per_cpu")) {
    all += ReadAvailable(cpu.path() / "trace_pipe_raw");
  }
  return all;
}

int Count(const std::string& where, const std::string& what) {
  int count = 0;
  for (std::size_t at = where.find(what); at != std::string::npos; at = where.find(what, at + 1)) {
    ++count;
  }
  return count;
}

std::vector<std::pair<int, std::string>> UserEventsDescriptors() {
  std::vector<std::pair<int, std::string>> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(entry.path(), error);
    if (target.ends_with("user_events_data")) {
      found.emplace_back(std::stoi(entry.path().filename()), target);
    }
  }
  return found;
}

class UserEventsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (access((std::string(kTracefs) + "user_events_data").c_str(), W_OK) != 0) {
      GTEST_SKIP() << "this kernel has no user_events, or they are not ours to use";
    }
    ASSERT_EQ(provider.Retry(), 0) << RegistrationErrorText(provider.status());
    Listen(true);
    TakeRings();
  }
  void TearDown() override {
    if (!IsSkipped()) Listen(false);
  }

  static void Listen(bool on) {
    Put(std::string(kTracefs) + "events/user_events/Vm_Test_L3K1/enable", on ? "1" : "0");
  }
};

TEST_F(UserEventsTest, ListenersTurnTheSetOnAndOff) {
  EXPECT_TRUE(everything.enabled());
  Listen(false);
  EXPECT_FALSE(everything.enabled());
  EXPECT_FALSE(provider.enabled());
  EXPECT_EQ(text_event.Write("x"), WriteResult::kDisabled);
}

TEST_F(UserEventsTest, KernelHasTheBytesThatTheRecordingTransportHas) {
  const auto write = [] {
    return everything.Write(Activity{ActivityId{std::byte{0x5A}}}, 17, "some text", {"a", "bc"},
                            std::nullopt);
  };
  ASSERT_EQ(write(), WriteResult::kWritten);
  const std::string rings = TakeRings();
  RecordingTransport transport;
  provider.SetTransport(&transport);
  write();
  ASSERT_EQ(provider.SetTransport(nullptr), 0);
  const auto records = transport.Take();
  ASSERT_EQ(records.size(), 1u);
  const std::string bytes(reinterpret_cast<const char*>(records[0].event.data()),
                          records[0].event.size());
  EXPECT_EQ(Count(rings, bytes), 1);
  Listen(true);
}

TEST_F(UserEventsTest, SizeLimitIsOursNotTheKernels) {
  const std::size_t overhead = 8 + 4 + 5 + 6 + 2;
  EXPECT_EQ(text_event.Write(std::string(kMaxEventSize - overhead, 'x')), WriteResult::kWritten);
  EXPECT_EQ(text_event.Write(std::string(kMaxEventSize - overhead + 1, 'x')), WriteResult::kTooBig);
}

TEST_F(UserEventsTest, BothSidesOfAForkGoOn) {
  const pid_t child = fork();
  if (child == 0) _exit(text_event.Write("from the child") == WriteResult::kWritten ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(text_event.Write("from the parent"), WriteResult::kWritten);
  const std::string rings = TakeRings();
  EXPECT_EQ(Count(rings, "from the child"), 1);
  EXPECT_EQ(Count(rings, "from the parent"), 1);
}

TEST_F(UserEventsTest, DescriptorIsClosedOnExecAndOutOfReach) {
  const auto found = UserEventsDescriptors();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(fcntl(found[0].first, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur == limit.rlim_max) GTEST_SKIP() << "soft and hard limit are the same";
  EXPECT_GE(static_cast<rlim_t>(found[0].first), limit.rlim_cur);
  EXPECT_EQ(dup2(0, found[0].first), -1);
}

// In a child: what it does to its descriptors stays there.
void CloseAllAndReuseTheNumbers() {
  const auto found = UserEventsDescriptors();
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  close_range(3, ~0u, 0);
  char name[] = "/tmp/foreignXXXXXX";
  const int file = mkstemp(name);
  if (found.size() != 1 || dup2(file, found[0].first) < 0) _exit(10);
  usleep(10'000);  // the check is made at most once in about 0.1 ms
  if (!text_event.enabled()) _exit(11);
  for (int i = 0; i < 100; ++i) {
    if (text_event.Write("must go nowhere") != WriteResult::kFailed) _exit(12);
  }
  if (provider.counters().failed_by_errno[EBADF] != 100) _exit(13);
  struct stat status;
  if (fstat(file, &status) != 0 || status.st_size != 0) _exit(14);
  if (provider.Retry() != 0) _exit(15);
  if (text_event.Write("after all") != WriteResult::kWritten) _exit(16);
  if (fstat(file, &status) != 0 || status.st_size != 0) _exit(17);
  _exit(0);
}

TEST_F(UserEventsTest, NothingGoesIntoAFileThatHasGotOurNumber) {
  const pid_t child = fork();
  if (child == 0) CloseAllAndReuseTheNumbers();
  int status = -1;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const std::string rings = TakeRings();
  EXPECT_EQ(Count(rings, "must go nowhere"), 0);
  EXPECT_EQ(Count(rings, "after all"), 1);
}

TEST_F(UserEventsTest, NameDefinedOtherwiseIsReportedAndRetriedOnceItIsFree) {
  const int fd = user_events::OpenData();
  ASSERT_GE(fd, 0);
  alignas(8) static std::uint64_t word = 0;
  std::uint32_t index = 0;
  ASSERT_EQ(user_events::Register(fd, "Vm_Foreign_L4K0 u32 other", &word, 0, 0, &index), 0);
  AnyProvider foreign("Vm_Foreign");
  const EventSet set(foreign, Level::kInformation, 0);
  EXPECT_EQ(set.status(), EADDRINUSE);
  EXPECT_EQ(foreign.status(), EADDRINUSE);
  EXPECT_NE(std::string(RegistrationErrorText(EADDRINUSE)).find("user_events_status"),
            std::string::npos);
  EXPECT_EQ(user_events::Unregister(fd, &word, 0), 0);
  close(fd);
  int status = -1;
  for (int i = 0; i < 100 && status != 0; ++i) {  // the kernel deletes it a little later
    usleep(10'000);
    status = foreign.Retry();
  }
  EXPECT_EQ(status, 0);
}

TEST_F(UserEventsTest, LongestNameRegisters) {
  const std::string name(kMaxTracepointName - std::string("_L4K0").size(), 'n');
  AnyProvider longest(name);
  const EventSet set(longest, Level::kInformation, 0);
  EXPECT_EQ(set.status(), 0);
}

TEST_F(UserEventsTest, SetsComeAndGoWhileOthersWrite) {
  std::atomic<bool> stop = false;
  std::atomic<int> failed = 0;
  std::vector<std::thread> writers;
  writers.reserve(8);
  for (int i = 0; i < 8; ++i) {
    writers.emplace_back([&] {
      while (!stop) failed += text_event.Write("x") == WriteResult::kFailed;
    });
  }
  for (int i = 0; i < 200; ++i) {
    const EventSet twin(provider, Level::kWarning, 1);
    const EventSet other(provider, Level::kVerbose, static_cast<std::uint64_t>(i));
    EXPECT_EQ(twin.status(), 0);
    EXPECT_EQ(other.status(), 0);
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(text_event.Write("x"), WriteResult::kWritten);
}

}  // namespace
}  // namespace eventheader
