// Writes events in bursts that the rings can hold, so that no event is lost, and measures the CPU
// time of an event. It prints "ready" when a collector records the event, and writes when a line
// arrives on standard input. Then it prints the median of the bursts in ns, and ends when standard
// input ends.
//   writer THREADS BURSTS EVENTS
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "events.h"

namespace {

// Time in which the collector empties the rings, in µs.
constexpr useconds_t kPause = 50'000;

double CpuNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int threads = std::atoi(argv[1]);
  const int bursts = std::atoi(argv[2]);
  const int events = std::atoi(argv[3]);
  // Ends this process after 60 s, even if the benchmark fails and does not end it.
  alarm(60);
  while (IsRecorded() == 0) usleep(1000);
  std::puts("ready");
  std::fflush(stdout);
  if (std::getchar() == EOF) return 1;
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, nullptr, static_cast<unsigned>(threads));
  std::vector<std::vector<double>> costs(static_cast<std::size_t>(threads));
  std::vector<std::thread> running;
  running.reserve(costs.size());
  for (std::vector<double>& mine : costs) {
    running.emplace_back([&] {
      for (int i = 0; i < bursts; ++i) {
        pthread_barrier_wait(&barrier);
        const double begin = CpuNanoseconds();
        WriteEvents(events);
        mine.push_back((CpuNanoseconds() - begin) / events);
        usleep(kPause);
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  std::vector<double> all;
  for (const std::vector<double>& mine : costs) all.insert(all.end(), mine.begin(), mine.end());
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2),
                   all.end());
  std::printf("%.2f\n", all[all.size() / 2]);
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
