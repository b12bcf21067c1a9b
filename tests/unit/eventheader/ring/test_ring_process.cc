// Tests the ring transport in processes that fork, close descriptors, handle signals, end threads,
// limit their resources, and have collectors that hang.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "eventheader/eh.h"
#include "eventheader/eventheader_c.h"
#include "tests/support/wait_until.h"
#include "tests/unit/eventheader/ring/service_process.h"

namespace {

// Called once, before the next message Full or End is sent on the descriptor `fd`.
using Action = void (*)(int fd);
std::atomic<Action> before_full = nullptr;
std::atomic<Action> before_end = nullptr;
// Whether the kernel makes the queues of sockets as small as it can, as it does if the sysctl
// net.core.wmem_max is low: a queue has 4608 bytes.
bool has_small_queues = false;

}  // namespace

// Replaces the function of the C library, so that a test can act after libeventheader has checked a
// descriptor and before it uses the descriptor.
extern "C" ssize_t send(int fd, const void* bytes, size_t size, int flags) {
  using eh::internal::ring::MessageType;
  eh::internal::ring::Message message{};
  if (size == sizeof(message)) std::memcpy(&message, bytes, size);
  std::atomic<Action>* const before = message.type == MessageType::kFull  ? &before_full
                                      : message.type == MessageType::kEnd ? &before_end
                                                                          : nullptr;
  const Action action = before == nullptr ? nullptr : before->exchange(nullptr);
  if (action != nullptr) action(fd);
  return sendto(fd, bytes, size, flags, nullptr, 0);
}

// Replaces the function of the C library, for has_small_queues.
extern "C" int setsockopt(int fd, int level, int name, const void* value, socklen_t size) noexcept {
  constexpr int kLeast = 1;
  const bool is_queue = level == SOL_SOCKET && name == SO_SNDBUF;
  const void* const used = has_small_queues && is_queue ? &kLeast : value;
  return static_cast<int>(syscall(SYS_setsockopt, fd, level, name, used, size));
}

namespace {

namespace ring = eh::internal::ring;
using tests::RingClient;
using tests::RingCollector;
using tests::ServiceProcess;
using tests::SharedMemory;
using tests::TemporaryFolder;
using tests::WaitUntil;

#if defined(__SANITIZE_THREAD__)
constexpr bool kIsThreadSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool kIsThreadSanitizer = true;
#else
constexpr bool kIsThreadSanitizer = false;
#endif
#else
constexpr bool kIsThreadSanitizer = false;
#endif
#define SKIP_IF_CHILDREN_MAY_NOT_START_THREADS() \
  if (kIsThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer ends children that start threads"

// Statuses with which a service ends.
constexpr int kDone = 0;
constexpr int kWrong = 3;

class RingProcessTest : public ::testing::Test {
 protected:
  ~RingProcessTest() override {
    for (const char* name :
         {"EVENTHEADER_RING_SIZE", "EVENTHEADER_THREAD", "EVENTHEADER_TRANSPORT"}) {
      unsetenv(name);
    }
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/events";
  const SharedMemory shared_;
};

struct Service {
  eh::DynamicProvider provider{"Ring_Process"};
  eh::EventSet set{provider, eh::Level::kInformation, 1};
};

// Waits until the set is enabled and the collector has accepted the region or, if `enabled` is
// false, until the set is disabled. Returns false after about 60 s.
bool WaitForEnabled(const eh::EventSet& set, bool enabled = true) {
  for (int i = 0; i < 60'000; ++i) {
    const bool is_connected =
        eh::DescribeTransport(nullptr, 0) == eh::TransportState::kRingConnected;
    if (set.enabled() == enabled && (is_connected || !enabled)) return true;
    usleep(1000);
  }
  return false;
}

eh::WriteResult WriteOne(const eh::EventSet& set, std::string_view name = "One") {
  eh::DynamicEvent event;
  event.Reset(name);
  event.AddField("number", 1);
  return event.Write(set);
}

// Returns the value of a line of a thread's status, "" if there is none.
std::string StatusOf(pid_t pid, const std::string& tid, const std::string& key) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/task/" + tid + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(key + ":", 0) == 0)
      return line.substr(line.find_first_not_of(" \t", key.size() + 1));
  }
  return "";
}

// Returns the tid of the helper thread, "" if there is none.
std::string HelperOf(pid_t pid) {
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", error)) {
    std::string tid = entry.path().filename();
    if (StatusOf(pid, tid, "Name") == "eventheader") return tid;
  }
  return "";
}

// Returns whether this process has a helper thread. The number of threads does not show this,
// because sanitizers have threads, too.
bool HasHelper() { return !HelperOf(getpid()).empty(); }

TEST_F(RingProcessTest, WaitsForTheFolderAndTheSocketWithoutWakingUp) {
  const std::string path = folder_.path() + "/later/deeper/events";
  ServiceProcess service(path, [&] {
    const Service s;
    char text[256];
    if (s.set.status() != 0 || s.set.enabled()) return kWrong;
    if (eh::DescribeTransport(text, sizeof(text)) != eh::TransportState::kRingWaiting)
      return kWrong;
    if (std::string_view(text) != "ring: waiting for a collector at " + path) return kWrong;
    shared_[0] = 1;
    if (!WaitForEnabled(s.set)) return kWrong;
    while (eh::DescribeTransport(text, sizeof(text)) != eh::TransportState::kRingConnected) {
      usleep(1000);
    }
    return WriteOne(s.set) == eh::WriteResult::kWritten ? kDone : kWrong;
  });
  WaitUntil([&] { return shared_[0] != 0; });
  std::string helper;
  WaitUntil([&] { return !(helper = HelperOf(service.pid())).empty(); });
  EXPECT_EQ(StatusOf(service.pid(), helper, "SigBlk").substr(0, 9), "fffffffe7");
  usleep(200'000);
  const std::string switches = StatusOf(service.pid(), helper, "voluntary_ctxt_switches");
  sleep(3);
  EXPECT_EQ(StatusOf(service.pid(), helper, "voluntary_ctxt_switches"), switches);

  std::filesystem::create_directory(folder_.path() + "/later");
  usleep(20'000);
  std::filesystem::create_directory(folder_.path() + "/later/deeper");
  usleep(20'000);
  const RingCollector collector(path);
  const auto client = collector.Accept();
  client->Welcome();
  EXPECT_EQ(client->names(), std::vector<std::string>{"Ring_Process_L4K1"});
  client->EnableAll();
  EXPECT_EQ(service.Wait(), kDone);
  client->Drain();
  EXPECT_EQ(client->events.size(), 1u);
  EXPECT_EQ(client->events[0].tracepoint, "Ring_Process_L4K1");
}

TEST_F(RingProcessTest, SetsOfLaterRegistrationsReachTheCollector) {
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    Service s;
    while (shared_[3] == 0) usleep(1000);
    if (!s.set.enabled()) return kWrong;
    const eh::EventSet late(s.provider, eh::Level::kError, 0x10);
    // A new set is enabled until the collector has read its name.
    if (!late.enabled()) return kWrong;
    shared_[1] = 1;
    if (!WaitForEnabled(late, false)) return kWrong;
    shared_[2] = 1;
    if (!WaitForEnabled(late)) return kWrong;
    shared_[0] = 1;
    return WaitForEnabled(late, false) && !s.set.enabled() ? kDone : kWrong;
  });
  const auto client = collector.Accept();
  client->Welcome();
  client->EnableAll();
  shared_[3] = 1;
  ring::Message message{};
  ASSERT_TRUE(client->Receive(&message, nullptr));
  EXPECT_EQ(message.type, ring::MessageType::kSets);
  EXPECT_EQ(message.value, 2u);
  WaitUntil([&] { return shared_[1] != 0; });
  client->EnableAll(false);
  WaitUntil([&] { return shared_[2] != 0; });
  client->EnableAll();
  ASSERT_EQ(client->names().size(), 2u);
  EXPECT_EQ(client->names()[1], "Ring_Process_L2K10");
  EXPECT_EQ(client->region().CountUsers(1), 1u);
  WaitUntil([&] { return shared_[0] != 0; });
  client->EnableAll(false);
  EXPECT_EQ(service.Wait(), kDone);
}

TEST_F(RingProcessTest, FirstEventsReachTheCollectorAfterTheServiceHasEnded) {
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    const Service s;
    if (!s.set.enabled()) return kWrong;
    for (int i = 0; i < 20; ++i) {
      if (WriteOne(s.set) != eh::WriteResult::kWritten) return kWrong;
    }
    return kDone;
  });
  EXPECT_EQ(service.Wait(), kDone);
  const auto client = collector.Accept();
  ring::Message hello{};
  base::UniqueFd fd;
  ASSERT_TRUE(client->Receive(&hello, &fd));
  const auto region = collector::RingRegion::Open(std::move(fd), {});
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_FALSE((*region)->had_collector());
  int events = 0;
  EXPECT_FALSE((*region)->Read(
      1 << 20, [&](const collector::RingRecord& /*record*/) { return ++events != 0; },
      [](const collector::RingWriter& /*writer*/, std::uint64_t /*lost*/, std::uint64_t /*next*/) {
        ADD_FAILURE();
      }));
  EXPECT_EQ(events, 20);
}

TEST_F(RingProcessTest, SetsAreEnabledUntilTheCollectorHasAnswered) {
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    const Service s;
    if (!s.set.enabled()) return kWrong;
    // The collector has not answered, so few events have room.
    for (int i = 0; i < 100'000; ++i) WriteOne(s.set);
    const auto counters = s.provider.counters();
    if (counters.written + counters.failed != 100'000 || counters.failed == 0) return kWrong;
    shared_[0] = 1;
    return WaitForEnabled(s.set, false) ? kDone : kWrong;
  });
  WaitUntil([&] { return shared_[0] != 0; });
  const auto client = collector.Accept();
  client->Welcome();
  usleep(20'000);
  client->EnableAll(false);
  EXPECT_EQ(service.Wait(), kDone);
}

TEST_F(RingProcessTest, ARefusedServiceStaysOff) {
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    const Service s;
    if (!WaitForEnabled(s.set, false)) return kWrong;
    shared_[0] = 1;
    for (;;) {
      const bool is_enabled = s.set.enabled();
      if (shared_[1] != 0) break;
      if (is_enabled) return 4;
      usleep(100);
    }
    return WaitForEnabled(s.set) ? kDone : kWrong;
  });
  auto client = collector.Accept();
  ring::Message hello{};
  ASSERT_TRUE(client->Receive(&hello, nullptr));
  client->Send(ring::MessageType::kRefuse, 2);
  client.reset();
  WaitUntil([&] { return shared_[0] != 0; });
  // The service connects again, and is accepted.
  client = collector.Accept();
  client->Welcome();
  shared_[1] = 1;
  client->EnableAll();
  EXPECT_EQ(service.Wait(), kDone);
}

// The collector refuses a service with kBadRegion if the descriptor of the memory has not arrived.
TEST_F(RingProcessTest, AServiceExplainsThatTheCollectorCannotUseItsMemory) {
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    const Service s;
    if (s.set.status() != 0) return kWrong;
    char text[256];
    for (int i = 0; i < 10'000; ++i) {
      eh::DescribeTransport(text, sizeof(text));
      if (std::string_view(text) == "ring: refused by the collector at " + path_ +
                                        ": the collector cannot use the memory of the rings; "
                                        "update the collector or this program") {
        return WriteOne(s.set) == eh::WriteResult::kDisabled ? kDone : kWrong;
      }
      usleep(1000);
    }
    return kWrong;
  });
  const auto client = collector.Accept();
  ring::Message hello{};
  ASSERT_TRUE(client->Receive(&hello, nullptr));
  client->Send(ring::MessageType::kRefuse,
               static_cast<std::uint64_t>(ring::RefuseReason::kBadRegion));
  EXPECT_EQ(service.Wait(), kDone);
}

TEST_F(RingProcessTest, AForkedChildHasItsOwnRegion) {
  SKIP_IF_CHILDREN_MAY_NOT_START_THREADS();
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    const Service s;
    if (!WaitForEnabled(s.set)) return kWrong;
    if (WriteOne(s.set, "Parent") != eh::WriteResult::kWritten) return kWrong;
    const pid_t child = fork();
    if (child == 0) {
      // The first event in the child is not written. It starts the child's helper thread, which
      // connects to the collector.
      if (WriteOne(s.set, "First") != eh::WriteResult::kDisabled) _exit(kWrong);
      if (s.provider.counters().failed != 0) _exit(kWrong);
      if (!WaitForEnabled(s.set)) _exit(kWrong);
      _exit(WriteOne(s.set, "Child") == eh::WriteResult::kWritten ? kDone : kWrong);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != kDone) return kWrong;
    return WriteOne(s.set, "Parent") == eh::WriteResult::kWritten ? kDone : kWrong;
  });
  const auto parent = collector.Accept();
  parent->Welcome();
  parent->EnableAll();
  const auto child = collector.Accept();
  child->Welcome();
  EXPECT_NE(child->region().id(), parent->region().id());
  child->EnableAll();
  EXPECT_EQ(service.Wait(), kDone);
  child->Drain();
  parent->Drain();
  EXPECT_EQ(child->events.size(), 1u);
  EXPECT_EQ(parent->events.size(), 2u);
}

TEST_F(RingProcessTest, AChildWithoutForkHandlersWritesNothing) {
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    const Service s;
    if (!WaitForEnabled(s.set)) return kWrong;
    if (WriteOne(s.set) != eh::WriteResult::kWritten) return kWrong;
    const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    if (child == 0) {
      for (int i = 0; i < 100; ++i) {
        if (WriteOne(s.set) == eh::WriteResult::kWritten) _exit(kWrong);
      }
      _exit(kDone);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != kDone) return kWrong;
    return WriteOne(s.set) == eh::WriteResult::kWritten ? kDone : kWrong;
  });
  const auto client = collector.Accept();
  client->Welcome();
  client->EnableAll();
  EXPECT_EQ(service.Wait(), kDone);
  client->Drain();
  EXPECT_EQ(client->events.size(), 2u);
}

TEST_F(RingProcessTest, AForkWithinAWriteDoesNotCrash) {
  SKIP_IF_CHILDREN_MAY_NOT_START_THREADS();
  static eh::EventSet* forking = nullptr;
  static SharedMemory* const counts = new SharedMemory;
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    Service s;
    forking = &s.set;
    if (!WaitForEnabled(s.set)) return kWrong;
    static const pid_t parent = getpid();
    static int forks = 0;
    signal(SIGALRM, [](int) {
      if (getpid() != parent || ++forks > 40) return;
      if (fork() == 0) (*counts)[1].fetch_add(1);
    });
    const itimerval often{{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &often, nullptr);
    // The handler forks. Its children return into this loop, perhaps into the middle of a write.
    for (int i = 0; i < 1000'000 && forks <= 40 && getpid() == parent; ++i) WriteOne(*forking);
    if (getpid() != parent) {
      for (int i = 0; i < 100; ++i) WriteOne(*forking);
      (*counts)[2].fetch_add(1);
      return kDone;
    }
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
    for (int status = 0; waitpid(-1, &status, 0) > 0;) {
      if (!WIFEXITED(status) || WEXITSTATUS(status) != kDone) return kWrong;
    }
    return kDone;
  });
  const auto client = collector.Accept();
  client->Welcome();
  client->EnableAll();
  WaitUntil([&] {
    client->Drain();
    client->events.clear();
    return service.HasEnded();
  });
  EXPECT_EQ(service.Wait(), kDone);
  EXPECT_GT((*counts)[1], 0u);
  EXPECT_EQ((*counts)[1], (*counts)[2]);
  EXPECT_EQ(client->region().corrupt(), 0u);
}

TEST_F(RingProcessTest, EventsContinueAfterTheProgramClosesAllDescriptors) {
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    const Service s;
    if (!WaitForEnabled(s.set)) return kWrong;
    if (WriteOne(s.set) != eh::WriteResult::kWritten) return kWrong;
    close_range(3, ~0U, 0);
    // Other files get the numbers of the closed descriptors.
    for (int i = 0; i < 200; ++i) {
      if (open("/dev/null", O_RDWR) < 0) break;
    }
    // Waits until the library has sent a new region, and the collector has enabled the set again.
    while (shared_[0] == 0) usleep(1000);
    return WriteOne(s.set) == eh::WriteResult::kWritten ? kDone : kWrong;
  });
  const auto before = collector.Accept();
  before->Welcome();
  before->EnableAll();
  const auto after = collector.Accept();
  after->Welcome();
  after->EnableAll();
  shared_[0] = 1;
  EXPECT_EQ(service.Wait(), kDone);
  before->Drain();
  after->Drain();
  EXPECT_EQ(before->events.size(), 1u);
  EXPECT_EQ(after->events.size(), 1u);
}

TEST_F(RingProcessTest, ADaemonIsRecorded) {
  SKIP_IF_CHILDREN_MAY_NOT_START_THREADS();
  ServiceProcess service(path_, [&] {
    const Service s;
    // Waits until the helper thread runs. While a thread starts, AddressSanitizer allocates memory
    // in it, and a child of a fork at that moment would wait forever for the allocator's lock.
    while (!HasHelper()) usleep(1000);
    if (daemon(0, 0) != 0) return kWrong;
    close_range(3, ~0U, 0);
    shared_[0] = 1;
    // The first event after the fork is not written. It starts the daemon's helper thread.
    if (WriteOne(s.set) != eh::WriteResult::kDisabled || !WaitForEnabled(s.set)) return kWrong;
    shared_[1] = WriteOne(s.set) == eh::WriteResult::kWritten ? 1 : 2;
    return kDone;
  });
  EXPECT_EQ(service.Wait(), kDone);
  WaitUntil([&] { return shared_[0] != 0; });
  const RingCollector collector(path_);
  const auto client = collector.Accept();
  client->Welcome();
  client->EnableAll();
  WaitUntil([&] { return shared_[1] != 0; });
  EXPECT_EQ(shared_[1], 1u);
  client->Drain();
  EXPECT_EQ(client->events.size(), 1u);
}

TEST_F(RingProcessTest, SignalHandlersWriteDuringWrites) {
  static eh::EventSet* handled = nullptr;
  static std::atomic<std::uint64_t> by_handlers{0};
  const RingCollector collector(path_);
  setenv("EVENTHEADER_RING_SIZE", "64M", 1);
  ServiceProcess service(path_, [&] {
    Service s;
    handled = &s.set;
    if (!WaitForEnabled(s.set)) return kWrong;
    struct sigaction action {};
    action.sa_handler = [](int) {
      const int saved = errno;
      errno = 4711;
      WriteOne(*handled, "Handler");
      if (errno != 4711) _exit(kWrong);
      errno = saved;
      by_handlers.fetch_add(1);
    };
    sigaction(SIGALRM, &action, nullptr);
    // With ThreadSanitizer, handlers are so slow that a short interval would leave no time for the
    // main loop.
    constexpr suseconds_t kInterval = kIsThreadSanitizer ? 5000 : 100;
    const itimerval often{{0, kInterval}, {0, kInterval}};
    setitimer(ITIMER_REAL, &often, nullptr);
    errno = 1234;
    std::uint64_t by_main = 0;
    for (; by_main < 200'000; ++by_main) {
      if (WriteOne(s.set, "Main") == eh::WriteResult::kFailed) return kWrong;
      if (errno != 1234) return kWrong;
    }
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
    shared_[0] = by_main + by_handlers;
    return kDone;
  });
  const auto client = collector.Accept();
  client->Welcome(4096);
  client->EnableAll();
  EXPECT_EQ(service.Wait(), kDone);
  client->Drain();
  std::uint64_t lost = 0;
  for (const auto& [ordinal, number] : client->lost) lost += number;
  EXPECT_EQ(client->events.size() + lost, shared_[0]);
  std::map<std::uint64_t, std::uint64_t> next;
  std::uint64_t nested = 0;
  for (const auto& event : client->events) {
    EXPECT_EQ(event.number, next[event.writer.ordinal] + event.lost_before);
    next[event.writer.ordinal] = event.number + 1;
    if (event.writer.depth > 0) ++nested;
  }
  // ThreadSanitizer delays signals until a call of the C library, which may be outside of a write.
  if (!kIsThreadSanitizer) {
    EXPECT_GT(nested, 0u) << "no signal arrived within a write";
  }
}

TEST_F(RingProcessTest, ThreadsThatEndHandOverTheirChunks) {
  const RingCollector collector(path_);
  setenv("EVENTHEADER_RING_SIZE", "1M", 1);
  constexpr std::uint64_t kEnding = 1000;
  ServiceProcess service(path_, [&] {
    const Service s;
    if (!WaitForEnabled(s.set)) return kWrong;
    for (std::uint64_t i = 0; i < kEnding; ++i) {
      std::thread([&] { WriteOne(s.set); }).join();
      // There are 64 chunks, so at most 60 threads may be ahead of the collector, which frees the
      // chunks of threads that have ended.
      while (shared_[0] + 60 < i) usleep(100);
      shared_[1] = i + 1;
    }
    return kDone;
  });
  const auto client = collector.Accept();
  client->Welcome(64);
  client->EnableAll();
  WaitUntil([&] {
    client->Drain();
    shared_[0] = client->events.size();
    return service.HasEnded();
  });
  EXPECT_EQ(service.Wait(), kDone);
  client->Drain();
  EXPECT_EQ(client->events.size(), kEnding);
  std::set<std::uint64_t> writers;
  for (const auto& event : client->events) writers.insert(event.writer.ordinal);
  EXPECT_EQ(writers.size(), kEnding);
}

TEST_F(RingProcessTest, ALateThreadKeyWorks) {
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    pthread_key_t key;
    for (int i = 0; i < 40; ++i) pthread_key_create(&key, nullptr);
    const Service s;
    if (!WaitForEnabled(s.set)) return kWrong;
    const auto write = [&] {
      for (int i = 0; i < 500; ++i) WriteOne(s.set);
    };
    std::thread other(write);
    write();
    other.join();
    return kDone;
  });
  const auto client = collector.Accept();
  client->Welcome();
  client->EnableAll();
  EXPECT_EQ(service.Wait(), kDone);
  client->Drain();
  EXPECT_EQ(client->events.size(), 1000u);
  std::set<std::uint32_t> tids;
  for (const auto& event : client->events) tids.insert(event.writer.tid);
  EXPECT_EQ(tids.size(), 2u);
}

TEST_F(RingProcessTest, AFlushTakesTheChunksOfIdleThreads) {
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    const Service s;
    if (!WaitForEnabled(s.set)) return kWrong;
    std::vector<std::thread> threads;
    std::atomic<int> written{0};
    threads.reserve(8);
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        WriteOne(s.set);
        ++written;
        while (shared_[1] == 0) usleep(1000);
        WriteOne(s.set);
      });
    }
    while (written != 8) usleep(1000);
    shared_[0] = 1;
    for (std::thread& thread : threads) thread.join();
    return kDone;
  });
  const auto client = collector.Accept();
  client->Welcome(8);
  client->EnableAll();
  WaitUntil([&] { return shared_[0] != 0; });
  client->Drain();
  EXPECT_EQ(client->region().used_chunks(), 8u);
  EXPECT_EQ(client->region().complete_chunks(), 0u);
  client->Flush();
  client->Drain();
  EXPECT_EQ(client->region().complete_chunks(), 8u);
  client->Drain();
  EXPECT_EQ(client->region().used_chunks(), 0u);
  EXPECT_EQ(client->Ask(ring::MessageType::kGrow, ring::MessageType::kGrown, 100), 100u);
  shared_[1] = 1;
  EXPECT_EQ(service.Wait(), kDone);
  client->Drain();
  EXPECT_EQ(client->events.size(), 16u);
}

TEST_F(RingProcessTest, TheBellRingsOnceWhenChunksAreComplete) {
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    const Service s;
    if (!WaitForEnabled(s.set)) return kWrong;
    while (shared_[0] == 0) usleep(1000);
    for (int i = 0; i < 2000; ++i) WriteOne(s.set);
    return kDone;
  });
  const auto client = collector.Accept();
  client->Welcome();
  client->EnableAll();
  EXPECT_FALSE(client->region().ArmBell(3));
  shared_[0] = 1;
  ring::Message message{};
  ASSERT_TRUE(client->Receive(&message, nullptr));
  EXPECT_EQ(message.type, ring::MessageType::kFull);
  EXPECT_EQ(service.Wait(), kDone);
  while (client->Receive(&message, nullptr)) {
    EXPECT_NE(message.type, ring::MessageType::kFull) << "a second time";
  }
  EXPECT_TRUE(client->region().ArmBell(1)) << "chunks have been completed since";
}

TEST_F(RingProcessTest, ABellThatRingsAtTheEndOfAConnectionWritesToNoOtherFile) {
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    static const SharedMemory* shared = nullptr;
    static int pair[2] = {-1, -1};
    shared = &shared_;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) != 0) return kWrong;
    const Service s;
    if (!WaitForEnabled(s.set)) return kWrong;
    while (shared_[0] == 0) usleep(1000);
    before_full = [](int fd) {
      (*shared)[1] = 1;
      // Waits until the helper thread has ended the connection.
      while (eh::DescribeTransport(nullptr, 0) == eh::TransportState::kRingConnected) usleep(1000);
      // If the library has closed the descriptor, gives its number to another file, as another
      // thread of a program could.
      if (fcntl(fd, F_GETFD) < 0) dup2(pair[1], fd);
    };
    while (before_full != nullptr) WriteOne(s.set);
    char byte = 0;
    return recv(pair[0], &byte, 1, 0) < 0 && errno == EAGAIN ? kDone : kWrong;
  });
  const auto client = collector.Accept();
  client->Welcome();
  client->EnableAll();
  EXPECT_FALSE(client->region().ArmBell(1));
  shared_[0] = 1;
  tests::WaitUntil([&] { return shared_[1] != 0; });
  client->Close();
  EXPECT_EQ(service.Wait(), kDone);
}

TEST_F(RingProcessTest, TheBellRingsAfterTheProgramHasClosedIt) {
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    static int bell = -1;
    const Service s;
    if (!WaitForEnabled(s.set)) return kWrong;
    while (shared_[0] == 0) usleep(1000);
    before_full = [](int fd) { bell = fd; };
    for (int i = 0; i < 2000; ++i) WriteOne(s.set);
    if (bell < 0) return kWrong;
    // ThreadSanitizer reports close() as a race with the library's use of the descriptor, which is
    // what this test is about.
    syscall(SYS_close, bell);
    shared_[1] = 1;
    while (shared_[2] == 0) usleep(1000);
    for (int i = 0; i < 2000; ++i) WriteOne(s.set);
    return kDone;
  });
  const auto client = collector.Accept();
  client->Welcome();
  client->EnableAll();
  EXPECT_FALSE(client->region().ArmBell(1));
  shared_[0] = 1;
  ring::Message message{};
  ASSERT_TRUE(client->Receive(&message, nullptr));
  EXPECT_EQ(message.type, ring::MessageType::kFull);
  tests::WaitUntil([&] { return shared_[1] != 0; });
  client->Drain();
  // The next messages wake the helper thread, which then replaces the closed descriptor.
  client->Flush();
  client->EnableAll();
  client->Drain();
  EXPECT_FALSE(client->region().ArmBell(1));
  shared_[2] = 1;
  ASSERT_TRUE(client->Receive(&message, nullptr));
  EXPECT_EQ(message.type, ring::MessageType::kFull);
  EXPECT_EQ(service.Wait(), kDone);
}

TEST_F(RingProcessTest, ACollectorThatHangsDoesNotDelayTheService) {
  const RingCollector collector(path_);
  setenv("EVENTHEADER_RING_SIZE", "64K", 1);
  ServiceProcess service(path_, [&] {
    const Service s;
    if (!WaitForEnabled(s.set)) return kWrong;
    for (int i = 0; i < 100'000; ++i) WriteOne(s.set);
    const auto counters = s.provider.counters();
    return counters.written + counters.failed == 100'000 && counters.failed > 0 &&
                   counters.failed_by_errno[ENOBUFS] == counters.failed
               ? kDone
               : kWrong;
  });
  const auto client = collector.Accept();
  client->Welcome();
  client->EnableAll();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(service.Wait(), kDone);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST_F(RingProcessTest, SetsAreDisabledWhenTheCollectorEnds) {
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    const Service s;
    for (std::uint64_t i = 0; i < 3; ++i) {
      if (!WaitForEnabled(s.set)) return kWrong;
      shared_[0] = i + 1;
      if (!WaitForEnabled(s.set, false)) return kWrong;
      if (WriteOne(s.set) != eh::WriteResult::kDisabled) return kWrong;
    }
    return kDone;
  });
  for (std::uint64_t i = 0; i < 3; ++i) {
    const auto client = collector.Accept();
    client->Welcome();
    client->EnableAll();
    WaitUntil([&] { return shared_[0] == i + 1; });
  }
  EXPECT_EQ(service.Wait(), kDone);
}

TEST_F(RingProcessTest, WithoutAThreadTheProgramPolls) {
  const RingCollector collector(path_);
  setenv("EVENTHEADER_THREAD", "0", 1);
  ServiceProcess service(path_, [&] {
    const Service s;
    if (s.set.status() != 0 || HasHelper()) return kWrong;
    // The set may be enabled before the service has read the message Welcome.
    while (eh_poll_transport() != EH_TRANSPORT_RING_CONNECTED || !s.set.enabled()) usleep(1000);
    if (HasHelper()) return kWrong;
    return WriteOne(s.set) == eh::WriteResult::kWritten ? kDone : kWrong;
  });
  const auto client = collector.Accept();
  client->Welcome();
  client->EnableAll();
  EXPECT_EQ(service.Wait(), kDone);
  client->Drain();
  EXPECT_EQ(client->events.size(), 1u);
}

TEST_F(RingProcessTest, CanBeSwitchedOff) {
  setenv("EVENTHEADER_TRANSPORT", "none", 1);
  ServiceProcess service(path_, [&] {
    const Service s;
    char text[128];
    if (s.set.status() != ECANCELED || HasHelper()) return kWrong;
    if (eh_describe_transport(text, sizeof(text)) != EH_TRANSPORT_OFF) return kWrong;
    if (std::string_view(text) != "none: switched off by EVENTHEADER_TRANSPORT=none") return kWrong;
    return WriteOne(s.set) == eh::WriteResult::kDisabled ? kDone : kWrong;
  });
  EXPECT_EQ(service.Wait(), kDone);
}

// Makes a system call of this process fail with EPERM. Returns whether that succeeded.
bool Deny(long call) {
  const sock_filter filter[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<std::uint32_t>(call)},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)),
                           const_cast<sock_filter*>(filter)};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_F(RingProcessTest, ASandboxThatDeniesSystemCallsIsExplained) {
  const RingCollector collector(path_);
  for (const long call : {SYS_socket, SYS_connect}) {
    SCOPED_TRACE(call);
    ServiceProcess service(path_, [&] {
      if (!Deny(call)) return kWrong;
      const Service s;
      if (s.set.status() != 0) return kWrong;
      char text[256];
      for (int i = 0; i < 10'000; ++i) {
        eh::DescribeTransport(text, sizeof(text));
        if (std::string_view(text).find(": Operation not permitted") != std::string_view::npos) {
          return WriteOne(s.set) == eh::WriteResult::kDisabled ? kDone : kWrong;
        }
        usleep(1000);
      }
      return kWrong;
    });
    EXPECT_EQ(service.Wait(), kDone);
  }
}

// Writes an event when the collector has connected, and waits until the test has received it.
// Returns kDone if the transport explains with `reason` why the connection is inline.
int RunInline(const SharedMemory& shared, std::string_view reason) {
  const Service s;
  if (!WaitForEnabled(s.set) || WriteOne(s.set) != eh::WriteResult::kWritten) return kWrong;
  char text[256];
  eh::DescribeTransport(text, sizeof(text));
  shared[0] = 1;
  while (shared[1] == 0) usleep(1000);
  return std::string_view(text).ends_with(reason) ? kDone : kWrong;
}

TEST_F(RingProcessTest, SendsEventsInlineIfMemoryOrDescriptorsCannotBeShared) {
  struct Case {
    long denied;
    const char* service_reason;
    const char* collector_reason;
  };
  const Case cases[] = {
      {SYS_memfd_create,
       "; events go over the socket, because memory cannot be shared: Operation not permitted",
       "the service cannot share memory: Operation not permitted"},
      {SYS_sendmsg,
       "; events go over the socket, because descriptors cannot be sent: Operation not permitted",
       "the service cannot send descriptors: Operation not permitted"},
      {-1, "; events go over the socket, because the collector received no descriptor",
       "the descriptor of the service's memory did not arrive"},
  };
  const RingCollector collector(path_);
  for (const Case& each : cases) {
    SCOPED_TRACE(each.collector_reason);
    shared_[0] = shared_[1] = 0;
    ServiceProcess service(path_, [&] {
      if (each.denied >= 0 && !Deny(each.denied)) return kWrong;
      return RunInline(shared_, each.service_reason);
    });
    const auto client = collector.Accept();
    client->drops_descriptors = true;
    client->Welcome();
    EXPECT_EQ(client->inline_reason, each.collector_reason);
    client->EnableAll();
    WaitUntil([&] { return shared_[0] != 0; });
    client->Flush();
    client->Drain();
    EXPECT_EQ(client->events.size(), 1u);
    shared_[1] = 1;
    EXPECT_EQ(service.Wait(), kDone);
  }
}

TEST_F(RingProcessTest, AnInlineConnectionRejectsPatchesOfOtherPlaces) {
  setenv("EVENTHEADER_TRANSPORT", "ring-inline", 1);
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    const Service s;
    while (shared_[0] == 0) usleep(1000);
    return kDone;
  });
  // Wrong Patches: of a part of the service page, of an incomplete chunk, of a part of the
  // collector page, of a part of a writer's counts, and with a size beyond the message.
  const ring::Patch patches[] = {{ring::kServiceOffset, 8},
                                 {ring::kControlsOffset, 4},
                                 {ring::kCollectorOffset, 8},
                                 {ring::kWritersOffset + 48, 12},
                                 {ring::kWritersOffset, ~0U}};
  for (const ring::Patch& patch : patches) {
    SCOPED_TRACE(patch.offset);
    const auto client = collector.Accept();
    client->Welcome();
    struct {
      ring::Message message;
      ring::Patch patch;
      std::uint64_t bytes[2];
    } bad = {{ring::kMessageMagic, ring::MessageType::kPatch, 0, ring::kVersion, 0}, patch, {}};
    ASSERT_EQ(send(client->socket(), &bad, sizeof(bad) - (patch.size <= 8 ? 8 : 0), MSG_NOSIGNAL),
              static_cast<ssize_t>(sizeof(bad) - (patch.size <= 8 ? 8 : 0)));
    // The service ends the connection, and connects again.
    ASSERT_TRUE(collector.WaitForClient());
  }
  shared_[0] = 1;
  EXPECT_EQ(service.Wait(), kDone);
}

TEST_F(RingProcessTest, AChildOfAnInlineServiceWithoutForkHandlersSendsNothingWhenItExits) {
  setenv("EVENTHEADER_TRANSPORT", "ring-inline", 1);
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    const Service s;
    if (!WaitForEnabled(s.set)) return kWrong;
    if (WriteOne(s.set) != eh::WriteResult::kWritten) return kWrong;
    const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    if (child == 0) exit(kDone);
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != kDone) return kWrong;
    return WriteOne(s.set) == eh::WriteResult::kWritten ? kDone : kWrong;
  });
  const auto client = collector.Accept();
  client->Welcome();
  client->EnableAll();
  EXPECT_EQ(service.Wait(), kDone);
  client->Drain();
  EXPECT_EQ(client->events.size(), 2u);
  // Neither the child nor _exit() of the service has sent the message End.
  EXPECT_FALSE(client->has_end);
}

TEST_F(RingProcessTest, AnInlineServiceSendsItsLastEventsWhenItExits) {
  setenv("EVENTHEADER_TRANSPORT", "ring-inline", 1);
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    // The set is never unregistered, so that only exit() sends the event.
    const auto* const s = new Service;
    if (!WaitForEnabled(s->set)) return kWrong;
    if (WriteOne(s->set) != eh::WriteResult::kWritten) return kWrong;
    exit(kDone);
  });
  const auto client = collector.Accept();
  client->Welcome();
  client->EnableAll();
  EXPECT_EQ(service.Wait(), kDone);
  client->Drain();
  EXPECT_EQ(client->events.size(), 1u);
  EXPECT_TRUE(client->has_end);
}

TEST_F(RingProcessTest, AnInlineServiceThatGivesUpStatesItsCounts) {
  SKIP_IF_CHILDREN_MAY_NOT_START_THREADS();
  setenv("EVENTHEADER_TRANSPORT", "ring-inline", 1);
  const RingCollector collector(path_);
  constexpr std::uint64_t kLateThreads = 300;
  ServiceProcess service(path_, [&] {
    const auto* const s = new Service;
    if (!WaitForEnabled(s->set)) return kWrong;
    // Waits for the end of EnableAll(), which reads from the socket, and so would make room in it.
    while (shared_[3] == 0) usleep(1000);
    // Fills the chunks and the socket, which the collector no longer reads.
    while (WriteOne(s->set) == eh::WriteResult::kWritten) {
    }
    // Further threads lose their events. The collector does not know the writers of these threads.
    for (std::uint64_t i = 0; i < kLateThreads; ++i) {
      std::thread([s] { WriteOne(s->set); }).join();
    }
    const eh::Provider::Counters counters = s->provider.counters();
    shared_[0] = counters.written;
    shared_[1] = counters.failed;
    exit(kDone);
  });
  const auto client = collector.Accept();
  client->Welcome(/*chunks=*/64);
  client->EnableAll();
  shared_[3] = 1;
  EXPECT_EQ(service.Wait(), kDone);
  client->Drain();
  EXPECT_TRUE(client->has_end);
  std::uint64_t lost = 0;
  for (const auto& [writer, count] : client->lost) lost += count;
  EXPECT_GE(shared_[1], kLateThreads);
  EXPECT_GT(lost, shared_[1]);
  EXPECT_EQ(client->events.size() + lost, shared_[0] + shared_[1]);
}

// Writes an event with a text of this length.
eh::WriteResult WriteText(const eh::EventSet& set, std::size_t length) {
  eh::DynamicEvent event;
  event.Reset("Text");
  event.AddField("text", std::string(length, 'x'));
  return event.Write(set);
}

// The service must send shorter messages: one of ring::kMaxPayload bytes does not fit into the
// socket's queue.
TEST_F(RingProcessTest, AnInlineServiceSendsAllEventsThroughASmallQueue) {
  setenv("EVENTHEADER_TRANSPORT", "ring-inline", 1);
  const RingCollector collector(path_);
  constexpr std::uint64_t kEvents = 200;
  ServiceProcess service(path_, [&] {
    has_small_queues = true;
    const auto* const s = new Service;
    if (!WaitForEnabled(s->set)) return kWrong;
    for (std::uint64_t i = 0; i < kEvents; ++i) {
      if (WriteText(s->set, i * 39) != eh::WriteResult::kWritten) return kWrong;
    }
    exit(kDone);
  });
  const auto client = collector.Accept();
  client->Welcome(/*chunks=*/128);
  client->EnableAll();
  WaitUntil([&] {
    client->Drain();
    return service.HasEnded();
  });
  EXPECT_EQ(service.Wait(), kDone);
  client->Drain();
  EXPECT_TRUE(client->has_end);
  ASSERT_EQ(client->events.size(), kEvents);
  for (std::uint64_t i = 0; i < kEvents; ++i) EXPECT_EQ(client->events[i].number, i);
  for (const auto& [writer, lost] : client->lost) EXPECT_EQ(lost, 0u);
}

// The collector ends the connection of a service that does not read its messages. Here it takes no
// events, so that the service waits a second for room in its queue, and must read messages then.
TEST_F(RingProcessTest, AnInlineServiceReadsMessagesWhileItSendsItsLastEvents) {
  setenv("EVENTHEADER_TRANSPORT", "ring-inline", 1);
  const RingCollector collector(path_);
  // Events whose bytes exceed the queue of the socket several times.
  constexpr std::uint64_t kEvents = 200;
  ServiceProcess service(path_, [&] {
    const auto* const s = new Service;
    if (!WaitForEnabled(s->set)) return kWrong;
    // Waits for the end of EnableAll(), which reads from the socket, and so would make room in it.
    while (shared_[0] == 0) usleep(1000);
    for (std::uint64_t i = 0; i < kEvents; ++i) {
      if (WriteText(s->set, 4000) != eh::WriteResult::kWritten) return kWrong;
    }
    shared_[1] = 1;
    exit(kDone);
  });
  const auto client = collector.Accept();
  client->Welcome(/*chunks=*/64);
  client->EnableAll();
  shared_[0] = 1;
  WaitUntil([&] { return shared_[1] != 0 || service.HasEnded(); });
  int messages = 0;
  WaitUntil([&] {
    int unread = 0;
    if (ioctl(client->socket(), SIOCOUTQ, &unread) != 0 || unread != 0) return service.HasEnded();
    client->Send(ring::MessageType::kPatch, 0);
    ++messages;
    return service.HasEnded();
  });
  EXPECT_EQ(service.Wait(), kDone);
  // Before it ended, the helper thread may have read one or two.
  EXPECT_GE(messages, 5);
}

// The collector reads nothing until the service has failed to send its counts: the queue is full,
// and the service cannot make it larger. The service must then not send End, even if the queue has
// room again, because End states that the counts which the collector has are final.
TEST_F(RingProcessTest, AnInlineServiceThatCannotSendItsCountsSendsNoEnd) {
  setenv("EVENTHEADER_TRANSPORT", "ring-inline", 1);
  const RingCollector collector(path_);
  static const SharedMemory* shared;
  shared = &shared_;
  ServiceProcess service(path_, [&] {
    has_small_queues = true;
    const auto* const s = new Service;
    if (!WaitForEnabled(s->set)) return kWrong;
    // Waits for the end of EnableAll(), which reads from the socket, and so would make room in it.
    while (shared_[3] == 0) usleep(1000);
    while (WriteText(s->set, 4000) == eh::WriteResult::kWritten) {
    }
    shared_[0] = s->provider.counters().written + s->provider.counters().failed;
    before_end = [](int /*fd*/) {
      (*shared)[1] = 1;
      while ((*shared)[2] == 0) usleep(1000);
    };
    exit(kDone);
  });
  const auto client = collector.Accept();
  client->Welcome(/*chunks=*/64);
  client->EnableAll();
  shared_[3] = 1;
  WaitUntil([&] { return shared_[1] != 0 || service.HasEnded(); });
  client->Drain();
  shared_[2] = 1;
  EXPECT_EQ(service.Wait(), kDone);
  client->Drain();
  EXPECT_FALSE(client->has_end);
  std::uint64_t lost = 0;
  for (const auto& [writer, count] : client->lost) lost += count;
  EXPECT_LT(client->events.size() + lost, shared_[0]);
}

// Writes events in the calling thread until most of its chunk is used. The chunk stays incomplete.
bool FillMostOfAChunk(const eh::EventSet& set) {
  eh::DynamicEvent event;
  event.Reset("Filler");
  event.AddField("text", std::string(500, 'x'));
  for (int i = 0; i < 25; ++i) {
    if (event.Write(set) != eh::WriteResult::kWritten) return false;
  }
  return true;
}

TEST_F(RingProcessTest, AnInlineServiceStatesAccountedEventsBeforeItSendsThemAgain) {
  setenv("EVENTHEADER_TRANSPORT", "ring-inline", 1);
  constexpr std::size_t kWriters = 6;
  constexpr std::size_t kEvents = kWriters * 25;
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    const Service s;
    if (!WaitForEnabled(s.set)) return kWrong;
    std::atomic<bool> failed = false;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kWriters; ++i) {
      threads.emplace_back([&] {
        failed = failed || !FillMostOfAChunk(s.set);
        while (shared_[0] == 0) usleep(1000);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return failed ? kWrong : kDone;
  });
  auto first = collector.Accept();
  first->Welcome();
  first->EnableAll();
  WaitUntil([&] {
    first->Drain();
    return first->events.size() == kEvents;
  });
  // Waits for an answer, so that the service has stored which events this collector has read.
  first->EnableAll();
  first.reset();
  const auto second = collector.Accept();
  second->Welcome();
  int patches = 0;
  std::size_t events = 0;
  std::uint64_t lost = 0;
  for (ring::Message message{}; message.type != ring::MessageType::kSets;) {
    ASSERT_TRUE(second->Receive(&message, nullptr));
    if (message.type == ring::MessageType::kPatch) ++patches;
    second->region().Read(
        1 << 20, [&](const collector::RingRecord&) { return ++events > 0; },
        [&](const collector::RingWriter&, std::uint64_t number, std::uint64_t) { lost += number; });
  }
  EXPECT_GE(patches, 3) << "the events fit into too few messages to test their order";
  EXPECT_EQ(events, 0u);
  EXPECT_EQ(lost, 0u);
  shared_[0] = 1;
  EXPECT_EQ(service.Wait(), kDone);
}

TEST_F(RingProcessTest, AnInlineServiceSendsANewWriterBeforeItsChunks) {
  setenv("EVENTHEADER_TRANSPORT", "ring-inline", 1);
  setenv("EVENTHEADER_THREAD", "0", 1);
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    const Service s;
    while (shared_[0] == 0) {
      eh::PollTransport();
      usleep(1000);
    }
    bool is_written = true;
    std::thread([&] {
      for (int i = 0; i < 3; ++i) is_written = is_written && FillMostOfAChunk(s.set);
    }).join();
    eh::PollTransport();
    shared_[1] = 1;
    while (shared_[2] == 0) usleep(1000);
    while (shared_[3] == 0) {
      eh::PollTransport();
      usleep(1000);
    }
    return is_written ? kDone : kWrong;
  });
  auto first = collector.Accept();
  first->Welcome();
  first->EnableAll();
  shared_[0] = 1;
  WaitUntil([&] { return shared_[1] != 0; });
  // The first collector reads the first message that has events, frees its chunk, and disconnects.
  std::size_t events = 0;
  for (ring::Message message{}; events == 0;) {
    ASSERT_TRUE(first->Receive(&message, nullptr));
    first->region().Read(
        1 << 20, [&](const collector::RingRecord&) { return ++events > 0; },
        [&](const collector::RingWriter&, std::uint64_t, std::uint64_t) { ADD_FAILURE(); });
  }
  EXPECT_LT(events, 75u) << "all events fit into a message";
  first->region().GiveBack();
  first->SendChanges();
  first.reset();
  shared_[2] = 1;
  const auto second = collector.Accept();
  second->Welcome();
  second->EnableAll();
  second->Drain();
  EXPECT_EQ(events + second->events.size(), 75u);
  for (const auto& [ordinal, lost] : second->lost) EXPECT_EQ(lost, 0u);
  shared_[3] = 1;
  EXPECT_EQ(service.Wait(), kDone);
}

TEST_F(RingProcessTest, AnInlineServiceReadsTheLastMessagesOfACollectorThatHasEnded) {
  setenv("EVENTHEADER_TRANSPORT", "ring-inline", 1);
  setenv("EVENTHEADER_THREAD", "0", 1);
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    const Service s;
    while (eh::PollTransport() != eh::TransportState::kRingConnected || !s.set.enabled()) {
      usleep(1000);
    }
    for (int i = 0; i < 10; ++i) {
      if (WriteOne(s.set) != eh::WriteResult::kWritten) return kWrong;
    }
    while (shared_[0] == 0) {
      eh::PollTransport();
      usleep(1000);
    }
    // The collector closes its socket without reading this event.
    if (WriteOne(s.set, "Last") != eh::WriteResult::kWritten) return kWrong;
    eh::PollTransport();
    shared_[1] = 1;
    while (shared_[2] == 0) usleep(1000);
    while (shared_[3] == 0) {
      eh::PollTransport();
      usleep(1000);
    }
    return kDone;
  });
  auto first = collector.Accept();
  first->Welcome();
  first->EnableAll();
  WaitUntil([&] {
    first->Drain(/*give_back=*/false);
    return first->events.size() == 10;
  });
  shared_[0] = 1;
  WaitUntil([&] { return shared_[1] != 0; });
  first->region().GiveBack();
  first->SendChanges();
  first.reset();
  shared_[2] = 1;
  const auto second = collector.Accept();
  second->Welcome();
  second->EnableAll();
  second->Drain();
  EXPECT_EQ(second->events.size(), 1u);
  shared_[3] = 1;
  EXPECT_EQ(service.Wait(), kDone);
}

// Sanitizers need more address space than this test leaves.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(RingProcessTest, LimitsOfMemoryMakeTheRegionSmaller) {
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    const Service s;
    // Leaves 8 MiB of address space, half of what a region takes by default.
    std::ifstream sizes("/proc/self/statm");
    rlim_t pages = 0;
    sizes >> pages;
    const rlimit limit{pages * 4096 + (8 << 20), RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
    shared_[0] = 1;
    if (!WaitForEnabled(s.set)) return kWrong;
    return WriteOne(s.set) == eh::WriteResult::kWritten ? kDone : kWrong;
  });
  WaitUntil([&] { return shared_[0] != 0; });
  const auto client = collector.Accept();
  client->Welcome();
  EXPECT_LE(client->region().chunk_count(), 1024u);
  client->EnableAll();
  EXPECT_EQ(service.Wait(), kDone);
}
#endif

TEST_F(RingProcessTest, ALimitOfFileSizesDoesNotEndTheService) {
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    const rlimit limit{8 << 20, 8 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    const Service s;
    if (!WaitForEnabled(s.set)) return kWrong;
    return WriteOne(s.set) == eh::WriteResult::kWritten ? kDone : kWrong;
  });
  const auto client = collector.Accept();
  client->Welcome();
  EXPECT_LT(client->region().chunk_count(), 512u);
  client->EnableAll();
  EXPECT_EQ(service.Wait(), kDone);
}

TEST_F(RingProcessTest, APluginLeavesNothingBehindWhenItIsUnloaded) {
  const RingCollector collector(path_);
  constexpr int kRounds = 10;
  ServiceProcess service(path_, [&] {
    const auto count_files = [] {
      return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                           std::filesystem::directory_iterator());
    };
    const auto files = count_files();
    for (int i = 0; i < kRounds; ++i) {
      void* const plugin = dlopen(RING_PLUGIN, RTLD_NOW | RTLD_LOCAL);
      if (plugin == nullptr) return kWrong;
      const auto write = reinterpret_cast<int (*)()>(dlsym(plugin, "WriteFromPlugin"));
      if (write == nullptr) return kWrong;
      int written = 0;
      // Also writes in a thread that ends after the plugin is unloaded.
      std::atomic<bool> ends{false};
      std::atomic<bool> has_written{false};
      std::thread thread([&] {
        while (write() != 1) usleep(1000);
        has_written = true;
        while (!ends) usleep(1000);
      });
      while ((written = write()) == 0 || !has_written) usleep(1000);
      dlclose(plugin);
      if (dlopen(RING_PLUGIN, RTLD_NOW | RTLD_NOLOAD) != nullptr) return 4;
      ends = true;
      thread.join();
      // A thread that has been joined is in /proc until the kernel has removed it.
      for (int waits = 0; HasHelper(); ++waits) {
        if (waits == 60'000) return 5;
        usleep(1000);
      }
    }
    return count_files() == files ? kDone : 6;
  });
  std::vector<std::unique_ptr<RingClient>> clients;
  // The sets are enabled before the collector accepts the connection, so the service may end before
  // its last connection is accepted.
  WaitUntil([&] {
    const bool has_ended = service.HasEnded();
    if (!collector.WaitForClient(10)) return has_ended;
    clients.push_back(collector.Accept());
    clients.back()->Welcome();
    clients.back()->EnableAll();
    return false;
  });
  EXPECT_EQ(service.Wait(), kDone);
  EXPECT_EQ(clients.size(), std::size_t{kRounds});
  for (const auto& client : clients) {
    client->Drain();
    EXPECT_GE(client->events.size(), 2u);
    EXPECT_EQ(client->events[0].tracepoint, "Ring_Plugin_L4K1");
  }
}

// An event of the plugin. Its thread, and its number in this thread, determine its contents.
struct PluginEvent {
  std::uint32_t thread;
  std::uint64_t number;

  bool has_text() const { return number % 8 == 0; }
  std::string text() const { return std::string(number / 8 % 600, thread == 0 ? 'a' : 'b'); }
  // Returns the name of the event with its NUL, and the payload.
  std::string bytes() const {
    std::string bytes;
    const auto put = [&bytes](const auto& raw) {
      bytes.append(reinterpret_cast<const char*>(&raw), sizeof(raw));
    };
    if (!has_text()) return std::string("AnEventWithoutFields", sizeof("AnEventWithoutFields"));
    const std::string value = text();
    const auto size = static_cast<std::uint16_t>(value.size());
    bytes.append("Texts", sizeof("Texts"));
    put(thread);
    put(size);
    bytes += value;
    put(number);
    put(size);
    return bytes + value;
  }
  bool has_activity() const { return has_text() && number / 8 % 2 != 0; }
};

// Returns the part of the received bytes that PluginEvent::bytes() has.
std::string BytesOf(const RingClient::Event& event, const PluginEvent& expected) {
  const std::string_view bytes(reinterpret_cast<const char*>(event.bytes.data()),
                               event.bytes.size());
  const std::size_t extension = 8 + (expected.has_activity() ? 4 + 16 : 0);
  std::uint16_t metadata = 0;
  if (bytes.size() < extension + 4) return "too short";
  std::memcpy(&metadata, bytes.data() + extension, sizeof(metadata));
  if (bytes.size() < extension + 4 + metadata) return "too short";
  const std::string_view name = bytes.substr(extension + 4, metadata);
  return std::string(name.substr(0, name.find('\0') + 1)) +
         std::string(bytes.substr(extension + 4 + metadata));
}

// Writes the events of a thread. Repeats each event until it is written: the set may not be enabled
// yet, or all chunks may be full. Returns false if the plugin lacks a function.
bool WritePluginEvents(void* plugin, std::uint32_t thread, std::uint64_t events) {
  const auto texts =
      reinterpret_cast<int (*)(std::uint32_t, std::uint64_t, const char*, std::size_t, int)>(
          dlsym(plugin, "WriteTextsFromPlugin"));
  const auto nothing = reinterpret_cast<int (*)()>(dlsym(plugin, "WriteNothingFromPlugin"));
  if (texts == nullptr || nothing == nullptr) return false;
  for (std::uint64_t i = 0; i < events; ++i) {
    const PluginEvent event{thread, i};
    const std::string text = event.text();
    while ((event.has_text()
                ? texts(thread, i, text.data(), text.size(), event.has_activity() ? 1 : 0)
                : nothing()) != 1) {
      usleep(100);
    }
  }
  return true;
}

// Records end at all places of a chunk. The library assembles events in the chunk, except the
// largest ones. Two threads write, so that a write past the end of a chunk damages an event of the
// other thread.
TEST_F(RingProcessTest, StaticEventsOfAllSizesArriveUnchanged) {
  constexpr std::uint64_t kEvents = 20'000;
  constexpr std::uint32_t kWriters = 2;
  const RingCollector collector(path_);
  ServiceProcess service(path_, [&] {
    void* const plugin = dlopen(RING_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) return kWrong;
    std::atomic<bool> is_complete{true};
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < kWriters; ++t) {
      threads.emplace_back([&, t] {
        if (!WritePluginEvents(plugin, t, kEvents)) is_complete = false;
      });
    }
    for (std::thread& thread : threads) thread.join();
    shared_[0] = 1;
    while (shared_[1] == 0) usleep(1000);
    return is_complete ? kDone : kWrong;
  });
  const auto client = collector.Accept();
  client->Welcome(8);
  client->EnableAll();
  std::map<std::uint64_t, PluginEvent> writers;  // by ordinal: the next event
  for (bool is_done = false; !is_done && !HasFailure();) {
    is_done = shared_[0] != 0;
    client->Drain();
    for (const RingClient::Event& event : client->events) {
      const auto [writer, is_new] = writers.try_emplace(event.writer.ordinal);
      PluginEvent& next = writer->second;
      const std::string bytes = BytesOf(event, next);
      if (is_new) next.thread = static_cast<unsigned char>(bytes[sizeof("Texts")]);
      ASSERT_EQ(bytes, next.bytes()) << "event " << next.number;
      ++next.number;
    }
    client->events.clear();
  }
  EXPECT_EQ(writers.size(), std::size_t{kWriters});
  for (const auto& [ordinal, next] : writers) EXPECT_EQ(next.number, kEvents);
  shared_[1] = 1;
  EXPECT_EQ(service.Wait(), kDone);
}

}  // namespace
