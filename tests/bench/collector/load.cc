// A load for recorders: threads that write events as fast as they can.
//
//   collector_load getppid|events THREADS COUNT
//
// getppid makes system calls; events writes EventHeader events of 8 fields, 3 of them strings, of
// provider Bench_Collector. The program prints "ready" once the tracepoint is registered, and
// starts when it reads a line from stdin. It prints the CPU time that all threads together used for
// COUNT events, in ns.
#include <eventheader/eh.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

namespace {

inline constinit eh::Provider provider("Bench_Collector");

template <eh::FixedString kName>
using Int = eh::Field<kName, std::int32_t>;
template <eh::FixedString kName>
using Text = eh::Field<kName, std::string_view>;

constexpr eh::Event<provider, "Bench8", eh::Traits{.keyword = 1}, Int<"number">, Int<"status">,
                    Int<"port">, Int<"bytes">, Int<"count">, Text<"path">, Text<"host">,
                    Text<"agent">>
    event;

std::int64_t CpuNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// Returns the CPU time in ns, or -1 if an event was not written.
std::int64_t Run(bool events, long count) {
  bool written = true;
  const std::int64_t begin = CpuNanoseconds();
  for (long i = 0; i < count; ++i) {
    if (events) {
      // The numbers vary as those of a service do. Equal numbers would compress better.
      const auto number = static_cast<std::int32_t>(i);
      const auto random = static_cast<std::uint32_t>(i) * 2654435761u;
      written &= event.Write(number, number % 16 == 0 ? 404 : 200, 80,
                             static_cast<std::int32_t>(random >> 16),
                             static_cast<std::int32_t>(random >> 30), "/index.html", "example.org",
                             "curl/7") == eh::WriteResult::kWritten;
    } else {
      syscall(SYS_getppid);
    }
  }
  return written ? CpuNanoseconds() - begin : -1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view kind = argc == 4 ? argv[1] : "";
  const long threads = argc == 4 ? std::strtol(argv[2], nullptr, 10) : 0;
  const long count = argc == 4 ? std::strtol(argv[3], nullptr, 10) : 0;
  if ((kind != "getppid" && kind != "events") || threads <= 0 || count % threads != 0) {
    std::fputs("usage: collector_load getppid|events THREADS COUNT\n", stderr);
    return 2;
  }
  const bool events = kind == "events";
  if (events && provider.status() != 0) {
    std::fprintf(stderr, "collector_load: %s\n", eh::RegistrationErrorText(provider.status()));
    return 1;
  }
  std::puts("ready");
  std::fflush(stdout);
  if (std::getchar() == EOF) return 1;

  std::vector<std::int64_t> times(static_cast<std::size_t>(threads));
  std::vector<std::thread> running;
  running.reserve(times.size());
  for (std::int64_t& time : times) {
    running.emplace_back([&time, events, each = count / threads] { time = Run(events, each); });
  }
  for (std::thread& thread : running) thread.join();
  std::int64_t total = 0;
  for (const std::int64_t time : times) {
    if (time < 0) {
      std::fputs("collector_load: an event was not written\n", stderr);
      return 1;
    }
    total += time;
  }
  std::printf("%lld\n", static_cast<long long>(total));
  return 0;
}
