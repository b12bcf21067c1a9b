// A service whose threads write numbered events. It stores the progress of each thread in a shared
// file, so that the progress is known after a kill.
//   ring_writer FILE SERVICE THREADS EVENTS PAUSE
// SERVICE is the number of the service. Each thread writes EVENTS events; without end if EVENTS is
// 0. It sleeps for PAUSE microseconds after every 32 events; not at all if PAUSE is 0. The threads
// start when the tracepoint is enabled. If EVENTS is not 0, the service first waits until the
// collector has answered, prints "ready", and waits for the end of standard input.
//
// Thread THREAD of the service has 32 bytes in FILE, at 32 * (SERVICE * THREADS + THREAD): four
// 64-bit numbers in the machine's byte order. These are its tid, the calls of Write that have
// returned, those of them that wrote an event, and those that found the tracepoint disabled.
#include <eventheader/eh.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <thread>
#include <vector>

namespace {

inline constinit eh::Provider provider("Ring_Load");

constexpr eh::Event<provider, "Number", eh::Traits{.keyword = 1},
                    eh::Field<"service", std::uint32_t>, eh::Field<"thread", std::uint32_t>,
                    eh::Field<"number", std::uint64_t>, eh::Field<"text", std::string_view>>
    number;

struct Progress {
  std::atomic<std::uint64_t> tid;
  std::atomic<std::uint64_t> calls;
  std::atomic<std::uint64_t> written;
  std::atomic<std::uint64_t> disabled;
};
static_assert(sizeof(Progress) == 32);

// Maps the progress of the threads of a service. Returns null if the file is too short.
Progress* MapProgress(const char* path, std::uint32_t service, std::uint32_t threads) {
  const std::size_t bytes = sizeof(Progress) * (std::size_t{service} + 1) * threads;
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0 || lseek(fd, 0, SEEK_END) < static_cast<off_t>(bytes)) return nullptr;
  void* const map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (map == MAP_FAILED) return nullptr;
  return static_cast<Progress*>(map) + std::size_t{service} * threads;
}

void Write(std::uint32_t service, std::uint32_t thread, std::uint64_t events, std::uint32_t pause,
           Progress* progress) {
  progress->tid.store(static_cast<std::uint64_t>(gettid()));
  std::uint64_t written = 0;
  std::uint64_t disabled = 0;
  for (std::uint64_t i = 0; i < events; ++i) {
    // Various sizes, so that records end at all places of a chunk. ring_checker.cc has the same
    // rule.
    const std::string_view text = std::string_view("0123456789012345678901234567890123456789")
                                      .substr(0, (i * 7 + thread) % 40);
    const eh::WriteResult result = number.Write(service, thread, i, text);
    if (result == eh::WriteResult::kWritten) {
      progress->written.store(++written, std::memory_order_release);
    } else if (result == eh::WriteResult::kDisabled) {
      progress->disabled.store(++disabled, std::memory_order_release);
    }
    progress->calls.store(i + 1, std::memory_order_release);
    if (pause != 0 && i % 32 == 31) usleep(pause);
  }
}

std::uint32_t ToNumber(const char* digits) {
  return static_cast<std::uint32_t>(std::strtoul(digits, nullptr, 10));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  // This process ends with the test, even if the test fails.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::uint32_t service = ToNumber(argv[2]);
  const std::uint32_t thread_count = ToNumber(argv[3]);
  const bool ends = ToNumber(argv[4]) != 0;
  const std::uint64_t events = ends ? ToNumber(argv[4]) : std::numeric_limits<std::uint64_t>::max();
  Progress* const progress = MapProgress(argv[1], service, thread_count);
  if (progress == nullptr) {
    std::perror(argv[1]);
    return 1;
  }
  while (!number.enabled()) usleep(100);
  if (ends) {
    // Waits until the collector has answered. From then on, the service may use the whole ring.
    while (eh::DescribeTransport(nullptr, 0) != eh::TransportState::kRingConnected) usleep(100);
    std::puts("ready");
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
  }
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < thread_count; ++i) {
    threads.emplace_back(Write, service, i, events, ToNumber(argv[5]), progress + i);
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}
