// Measures an event that goes to rings in user space, beside its floor: a copy of its record and a
// reading of the clock. A forked process is the collector; it drains the rings between the measured
// runs, so that no run loses events.
//
// On this machine, the unit is nanoseconds, and instructions of user code. With --instructions, the
// program runs in the VM, where a nanosecond is an instruction, and whose kernel has user_events.
// There, the same event is also written by user_events, and its bytes by a bare write().
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "eventheader/eh.h"
#include "libeventheader/base/user_events.h"
#include "tests/bench/measure.h"
#include "tests/bench/ring/event8.h"
#include "tests/bench/step_counter.h"
#include "tests/support/eventheader/ring_collector.h"

namespace {

namespace ring = eh::internal::ring;

// Events of a run: 1 MiB of chunks holds all of them.
constexpr std::size_t kEvents = 2000;
constexpr int kRounds = 200;
constexpr std::uint64_t kChunks = 64;
constexpr char kName[] = "enabled, 8 fields, 3 strings";

struct Shared {
  std::atomic<std::uint64_t> wanted;     // number of drains that were requested
  std::atomic<std::uint64_t> drained;    // number of drains that are done
  std::atomic<std::size_t> event_bytes;  // size of the last event
  std::atomic<bool> ends;
};

// Repeats a step kEvents times.
template <typename Step>
std::function<void()> Repeated(Step step) {
  return [step] {
    for (std::size_t i = 0; i < kEvents; ++i) {
      step(i);
      asm volatile("" ::: "memory");
    }
  };
}

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
    if (!client->events.empty()) shared->event_bytes = client->events.back().bytes.size();
    client->events.clear();
    shared->drained = wanted;
  }
}

void WaitForDrain(Shared* shared) {
  const std::uint64_t wanted = shared->wanted.fetch_add(1) + 1;
  while (shared->drained < wanted) usleep(100);
}

// Connects the event's provider to the collector at `path`.
void EnableByRing(eh::DynamicProvider& provider, const std::string& path) {
  setenv("EVENTHEADER_TRANSPORT", "ring", 1);
  setenv("EVENTHEADER_SOCKET", path.c_str(), 1);
  // Registers the event again: it was registered before main(), without these variables.
  provider.SetTransport(nullptr);
  // Waits until the collector has accepted the region. The event is enabled earlier, but may then
  // use fewer chunks than a run needs.
  for (int i = 0; eh::DescribeTransport(nullptr, 0) != eh::TransportState::kRingConnected ||
                  !provider.enabled();
       ++i) {
    if (i == 100'000) bench::Fail("the collector does not enable the event");
    usleep(100);
  }
}

void ReadClock(timespec* now) { clock_gettime(CLOCK_MONOTONIC, now); }

// Measures the same event by user_events, and a bare write() of its bytes. Reports to `reporter`.
void MeasureUserEvents(const bench::Reporter& reporter, std::size_t event_bytes) {
  namespace user_events = eh::internal::user_events;
  setenv("EVENTHEADER_TRANSPORT", "user_events", 1);
  static eh::DynamicProvider provider("Bench_User_Events");
  static constexpr bench::Event8<provider> event;
  provider.SetTransport(nullptr);
  char path[4096];
  if (user_events::FindTracefsFile("events/user_events/Bench_User_Events_L4K1/enable", path) != 0)
    bench::Fail("cannot find tracefs; mount it at /sys/kernel/tracing");
  std::ofstream(path) << "1" << std::flush;
  if (!provider.enabled()) bench::Fail("user_events does not enable the event");
  const int fd = user_events::OpenData();
  char command[user_events::kMaxCommand];
  alignas(8) static std::uint64_t word;
  alignas(8) static std::byte bytes[eh::kRecordPrefix + 1024];
  const std::size_t size = eh::kRecordPrefix + event_bytes;
  std::uint32_t index = 0;
  if (fd < 0 || !user_events::FormatCommand("Bench_User_Events_L4K1", command) ||
      user_events::Register(fd, command, &word, 0, 0, &index) != 0) {
    bench::Fail("cannot register Bench_User_Events_L4K1 with user_events");
  }
  std::memcpy(bytes, &index, sizeof(index));
  std::vector<bench::Body> bodies(2);
  bodies[0].run = Repeated([](std::size_t) {
    if (!bench::Write8(event)) bench::Fail("an event was not written");
  });
  bodies[1].run = Repeated([fd, size](std::size_t) {
    if (write(fd, bytes, size) < 0) bench::Fail("an event was not written");
  });
  bench::Measure(bodies, kEvents, 5);
  reporter.Report("the same by user_events, beside a bare write()", "instructions", bodies[0].cost,
                  bodies[1].cost);
  user_events::Unregister(fd, &word, 0);
  close(fd);
}

// Counts the instructions of a step of each body.
void CountInstructions(std::vector<bench::Body>* bodies) {
  for (bench::Body& body : *bodies) {
    body.prepare();
    body.instructions = bench::CountInstructions(body.run) / static_cast<double>(kEvents);
    if (body.instructions < 0)
      bench::Fail("cannot count instructions: no permission to trace this process (ptrace)");
  }
}

// Measures a call of the event while no collector records it, beside an empty loop. Fails if the
// call executes more than a load, a test and a branch.
template <typename Write>
void MeasureDisabled(const bench::Reporter& reporter, bool in_instructions, Write write) {
  std::vector<bench::Body> bodies(2);
  bodies[0].run = Repeated(write);
  bodies[1].run = Repeated([](std::size_t) {});
  bench::Measure(bodies, kEvents, in_instructions ? 5 : kRounds);
  reporter.Report("disabled", in_instructions ? "instructions" : "ns", bodies[0].cost,
                  bodies[1].cost);
  double instructions = bodies[0].cost - bodies[1].cost;
  if (!in_instructions) {
    CountInstructions(&bodies);
    instructions = bodies[0].instructions - bodies[1].instructions;
    reporter.Report("disabled", "instructions", bodies[0].instructions, bodies[1].instructions);
  }
  if (instructions > 3.1) {
    bench::Fail("a disabled event executes " + std::to_string(instructions) +
                " instructions more than a loop without it");
  }
}

// Returns the CPU time of an event, in ns, while `threads` threads write events: the least average
// of several rounds.
double MeasureThreads(unsigned threads, const std::function<void()>& drain,
                      const std::function<void()>& write_one) {
  double best = std::numeric_limits<double>::max();
  for (int round = 0; round < 20; ++round) {
    drain();
    std::vector<std::thread> running;
    std::vector<double> costs(threads);
    running.reserve(costs.size());
    for (double& cost : costs) {
      running.emplace_back([&] {
        timespec begin;
        timespec end;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
        for (std::size_t i = 0; i < kEvents / threads; ++i) write_one();
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        cost = (static_cast<double>(end.tv_sec - begin.tv_sec) * 1e9 +
                static_cast<double>(end.tv_nsec - begin.tv_nsec)) /
               static_cast<double>(kEvents / threads);
      });
    }
    for (std::thread& thread : running) thread.join();
    double sum = 0;
    for (const double cost : costs) sum += cost;
    best = std::min(best, sum / threads);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::ParseOptions(argc, argv);
  const char* const unit = options.instructions ? "instructions" : "ns";
  const bench::Reporter reporter("ring", options.json);
  const tests::TemporaryFolder folder;
  const std::string path = folder.path() + "/events";
  auto* const shared =
      new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
          Shared{};
  int ready[2];
  if (pipe(ready) != 0) bench::Fail("cannot make a pipe");
  const pid_t collector = fork();
  if (collector == 0) {
    // The collector ends with the benchmark, even if the benchmark fails.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    RunCollector(path, shared, ready[1]);
    _exit(0);
  }
  char byte;
  if (read(ready[0], &byte, 1) != 1) bench::Fail("the collector has ended");
  static eh::DynamicProvider provider("Bench_Ring");
  static constexpr bench::Event8<provider> event;
  EnableByRing(provider, path);
  const auto drain = [shared] { WaitForDrain(shared); };
  const auto write_one = [](std::size_t) {
    if (!bench::Write8(event)) bench::Fail("an event was not written");
  };

  // All chunks are in use and in the caches from here on.
  for (int i = 0; i < 10; ++i) {
    for (std::size_t k = 0; k < kEvents; ++k) write_one(k);
    drain();
  }
  const std::size_t record_bytes =
      ring::RecordBytes(static_cast<std::uint32_t>(shared->event_bytes));
  std::vector<std::byte> record(record_bytes);
  std::vector<std::byte> chunk(kEvents * record_bytes);
  std::vector<bench::Body> bodies(3);
  bodies[0].prepare = drain;
  bodies[0].run = Repeated(write_one);
  bodies[1].run = Repeated([&](std::size_t i) {
    timespec now;
    ReadClock(&now);
    std::memcpy(record.data(), &now, sizeof(now));
    std::memcpy(chunk.data() + i * record_bytes, record.data(), record_bytes);
  });
  bodies[2].run = Repeated([](std::size_t) {
    timespec now;
    ReadClock(&now);
    asm volatile("" : : "r"(&now) : "memory");
  });
  bench::Measure(bodies, kEvents, options.instructions ? 5 : kRounds);
  reporter.Report(kName, unit, bodies[0].cost, bodies[1].cost);
  reporter.Report("the same without the clock", unit, bodies[0].cost - bodies[2].cost,
                  bodies[1].cost - bodies[2].cost);
  if (options.instructions) {
    MeasureUserEvents(reporter, shared->event_bytes);
  } else {
    CountInstructions(&bodies);
    reporter.Report("the same without the clock", "instructions",
                    bodies[0].instructions - bodies[2].instructions,
                    bodies[1].instructions - bodies[2].instructions);
    for (const unsigned threads : {1U, 2U, 8U}) {
      reporter.Report("the same by each of " + std::to_string(threads) + " threads, CPU time", unit,
                      MeasureThreads(threads, drain, [&] { write_one(0); }), bodies[1].cost);
    }
  }

  shared->ends = true;
  waitpid(collector, nullptr, 0);
  while (provider.enabled()) usleep(100);
  MeasureDisabled(reporter, options.instructions, [](std::size_t) {
    static_cast<void>(event.Write(1, 200, 80, 4096, 3, "/index.html", "example.org", "curl/7"));
  });
  return 0;
}
