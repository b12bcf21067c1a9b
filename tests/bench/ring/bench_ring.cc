// Measures an event that goes to rings in user space, beside its floor: a copy of its record and a
// reading of the clock. A forked process is the collector; it drains the rings between the measured
// runs, so that no run loses events.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "eventheader/eh.h"
#include "tests/bench/measure.h"
#include "tests/support/eventheader/ring_collector.h"

namespace {

// Events of a run: 1 MiB of chunks holds all of them.
constexpr std::size_t kEvents = 2000;
constexpr int kRounds = 200;
constexpr std::uint64_t kChunks = 64;

struct Shared {
  std::atomic<std::uint64_t> wanted;   // drains
  std::atomic<std::uint64_t> drained;  // drains
  std::atomic<bool> ends;
};

struct Input {
  std::int32_t numbers[5] = {1, 200, 80, 4096, 3};
  std::string path = "/index.html", host = "example.org", agent = "curl/7";
} input;

template <eh::FixedString kName>
using Int = eh::Field<kName, std::int32_t>;
template <eh::FixedString kName>
using Text = eh::Field<kName, std::string_view>;

void RunCollector(const std::string& path, Shared* shared, int ready) {
  const tests::RingCollector collector(path);
  static_cast<void>(!write(ready, "", 1));
  const auto client = collector.Accept();
  client->Welcome(kChunks);
  client->EnableAll();
  while (!shared->ends) {
    const std::uint64_t wanted = shared->wanted;
    if (shared->drained == wanted) {
      usleep(100);
      continue;
    }
    client->Drain();
    client->events.clear();
    shared->drained = wanted;
  }
}

void WaitForDrain(Shared* shared) {
  const std::uint64_t wanted = shared->wanted.fetch_add(1) + 1;
  while (shared->drained < wanted) usleep(100);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::ParseOptions(argc, argv);
  const tests::TemporaryFolder folder;
  const std::string path = folder.path() + "/events";
  auto* const shared =
      new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
          Shared{};
  int ready[2];
  if (pipe(ready) != 0) bench::Fail("pipe");
  const pid_t collector = fork();
  if (collector == 0) {
    RunCollector(path, shared, ready[1]);
    _exit(0);
  }
  char byte;
  if (read(ready[0], &byte, 1) != 1) bench::Fail("the collector has ended");
  setenv("EVENTHEADER_TRANSPORT", "ring", 1);
  setenv("EVENTHEADER_SOCKET", path.c_str(), 1);
  static eh::DynamicProvider provider("Bench_Ring");
  constexpr eh::Traits kTraits{.keyword = 1};
  static constexpr eh::Event<provider, "Bench8", kTraits, Int<"number">, Int<"status">, Int<"port">,
                             Int<"bytes">, Int<"count">, Text<"path">, Text<"host">, Text<"agent">>
      event;
  const auto write_one = [] {
    const auto& n = input.numbers;
    return event.Write(n[0], n[1], n[2], n[3], n[4], input.path, input.host, input.agent) ==
           eh::WriteResult::kWritten;
  };
  // Static events are registered before main, without the variables above.
  provider.SetTransport(nullptr);
  for (int i = 0; !provider.enabled(); ++i) {
    if (i == 100'000) bench::Fail("the collector does not enable the event");
    usleep(100);
  }

  constexpr std::size_t kRecord = 24 + 176;
  static std::array<std::byte, kRecord> record{};
  std::vector<std::byte> chunk(kEvents * kRecord);
  const bench::InstructionCounter counter;
  std::vector<bench::Body> bodies(3);
  bodies[0].prepare = [shared] { WaitForDrain(shared); };
  bodies[0].run = [&] {
    for (std::size_t i = 0; i < kEvents; ++i) {
      if (!write_one()) bench::Fail("an event was not written");
    }
  };
  bodies[1].run = [&] {
    for (std::size_t i = 0; i < kEvents; ++i) {
      timespec now;
      clock_gettime(CLOCK_MONOTONIC, &now);
      std::memcpy(record.data(), &now, sizeof(now));
      std::memcpy(chunk.data() + i * kRecord, record.data(), kRecord);
      asm volatile("" ::: "memory");
    }
  };
  bodies[2].run = [&] {
    for (std::size_t i = 0; i < kEvents; ++i) {
      timespec now;
      clock_gettime(CLOCK_MONOTONIC, &now);
      asm volatile("" : : "r"(&now) : "memory");
    }
  };
  // All chunks are in use and in the caches from here on.
  for (int i = 0; i < 10; ++i) {
    bodies[0].prepare();
    bodies[0].run();
  }
  bench::Measure(bodies, kEvents, options.instructions ? 5 : kRounds, &counter);
  const bench::Reporter reporter("ring", options.json);
  const char* const unit = options.instructions ? "instructions" : "ns";
  reporter.Report("enabled, 8 fields, 3 strings", unit, bodies[0].cost, bodies[1].cost);
  reporter.Report("without the clock", unit, bodies[0].cost - bodies[2].cost,
                  bodies[1].cost - bodies[2].cost);
  if (counter.valid()) {
    reporter.Report("instructions", "instructions", bodies[0].instructions, bodies[1].instructions);
    reporter.Report("instructions without the clock", "instructions",
                    bodies[0].instructions - bodies[2].instructions,
                    bodies[1].instructions - bodies[2].instructions);
  }
  // Several threads at once, in ns of wall-clock time for an event of one thread.
  for (const unsigned threads : {1U, 2U, 8U}) {
    if (options.instructions) break;
    double best = 1e9;
    for (int round = 0; round < 20; ++round) {
      WaitForDrain(shared);
      std::vector<std::thread> running;
      std::vector<double> costs(threads);
      for (unsigned t = 0; t < threads; ++t) {
        running.emplace_back([&, t] {
          timespec begin;
          timespec end;
          clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
          for (std::size_t i = 0; i < kEvents / threads; ++i) write_one();
          clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
          costs[t] = (static_cast<double>(end.tv_sec - begin.tv_sec) * 1e9 +
                      static_cast<double>(end.tv_nsec - begin.tv_nsec)) /
                     static_cast<double>(kEvents / threads);
        });
      }
      for (std::thread& thread : running) thread.join();
      double sum = 0;
      for (const double cost : costs) sum += cost;
      best = std::min(best, sum / threads);
    }
    reporter.Report("CPU time with " + std::to_string(threads) + " threads", "ns", best,
                    bodies[1].cost);
  }
  shared->ends = true;
  waitpid(collector, nullptr, 0);
  return 0;
}
