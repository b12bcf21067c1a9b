// Threads that move from CPU to CPU and write numbered events on each. CPUs that are offline are
// skipped. Prints as JSON, for each thread and event, the times of CLOCK_MONOTONIC before and after
// the write, in ns.
#include <eventheader/eh.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr unsigned kThreads = 4;
// Events that are written on one CPU before the thread moves to the next one.
constexpr unsigned kAtOnce = 20;

inline constinit eh::Provider provider("Moving");
constexpr eh::Event<provider, "Step", eh::Traits{.keyword = 1}, eh::Field<"thread", std::uint32_t>,
                    eh::Field<"number", std::uint32_t>>
    step;

std::atomic<bool> stop = false;

struct Written {
  std::uint64_t before;
  std::uint64_t after;
};

std::uint64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void Run(std::uint32_t thread, std::vector<Written>* written) {
  const auto cpus = static_cast<unsigned>(sysconf(_SC_NPROCESSORS_CONF));
  for (unsigned turn = thread; !stop; ++turn) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(turn % cpus, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) continue;
    for (unsigned i = 0; i < kAtOnce; ++i) {
      const std::uint64_t before = Now();
      if (step.Write(thread, static_cast<std::uint32_t>(written->size())) !=
          eh::WriteResult::kWritten) {
        continue;
      }
      written->push_back({before, Now()});
    }
    usleep(2000);
  }
}

}  // namespace

// Stops itself with SIGSTOP, and writes from SIGCONT to SIGTERM.
int main() {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  raise(SIGSTOP);
  std::vector<std::vector<Written>> written(kThreads);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kThreads; ++i) threads.emplace_back(Run, i, &written[i]);
  int signal = 0;
  sigwait(&ends, &signal);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  std::printf("[");
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    std::printf(i == 0 ? "[" : ",[");
    for (std::size_t k = 0; k < written[i].size(); ++k) {
      std::printf("%s[%llu,%llu]", k == 0 ? "" : ",",
                  static_cast<unsigned long long>(written[i][k].before),
                  static_cast<unsigned long long>(written[i][k].after));
    }
    std::printf("]");
  }
  std::printf("]\n");
  return 0;
}
