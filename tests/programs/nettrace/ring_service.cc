// A service for the test of rings. It prints "enabled" when its tracepoints are enabled, and waits
// for a line on standard input. Then it writes events whose values follow from their numbers,
// prints how many were written and lost, and waits for the end of standard input.
//   ring_service THREADS EVENTS
//   ring_service EVENTS            writes at once, in the main thread, and ends
#include <eventheader/eh.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

inline constinit eh::Provider provider("Ring_Service");

constexpr eh::Event<provider, "Numbers", eh::Traits{.keyword = 1},
                    eh::Field<"thread", std::uint32_t>, eh::Field<"number", std::int64_t>,
                    eh::Field<"half", double>, eh::Field<"even", bool>,
                    eh::Field<"text", std::string_view>>
    numbers;
constexpr eh::Event<provider, "Failed", eh::Traits{.level = eh::Level::kError, .keyword = 2},
                    eh::Field<"number", std::int64_t>, eh::Field<"error", eh::Errno>>
    failed;

void Write(std::uint32_t thread, int events) {
  pthread_setname_np(pthread_self(), ("writer-" + std::to_string(thread)).c_str());
  for (int i = 0; i < events; ++i) {
    if (i % 10 == 9) {
      failed.Write(i, 2);
    } else {
      numbers.Write(thread, i, i / 2.0, i % 2 == 0, "text " + std::to_string(i));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) {
    Write(0, std::atoi(argv[1]));
    return 0;
  }
  if (argc != 3) return 2;
  const auto threads = static_cast<std::uint32_t>(std::atoi(argv[1]));
  const int events = std::atoi(argv[2]);
  // Ends this process after 60 s, even if the test fails and does not end it.
  alarm(60);
  while (!numbers.enabled() || !failed.enabled()) usleep(1000);
  std::puts("enabled");
  std::fflush(stdout);
  if (std::getchar() == EOF) return 1;
  std::vector<std::thread> writers;
  for (std::uint32_t t = 0; t < threads; ++t) writers.emplace_back(Write, t, events);
  for (std::thread& writer : writers) writer.join();
  const eh::Provider::Counters counters = provider.counters();
  std::printf("%llu %llu\n", static_cast<unsigned long long>(counters.written),
              static_cast<unsigned long long>(counters.failed));
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
