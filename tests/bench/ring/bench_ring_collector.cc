// Measures what the collector costs for each event that comes by a ring in user space, from the
// service's region to a sink that discards its data. A child process, which runs this program with
// --service, is the service. It writes the events between the measured runs.
//
//   bench_ring_collector [--json] [--instructions]
//
// The floor is a copy of the events' bytes, which every recorder must make, even one that does not
// examine its input.
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "eventheader/eh.h"
#include "libeventheader/base/ring_layout.h"
#include "nettrace/sink.h"
#include "tests/bench/measure.h"
#include "tests/bench/ring/event8.h"
#include "tests/support/eventheader/ring_collector.h"
#include "tools/collector/session/capture.h"
#include "tools/collector/session/selector.h"

namespace {

namespace ring = eh::internal::ring;

constexpr std::size_t kThreads = 4;
// Events of a run: a quarter of the events after which the collector ends an interval
// (TraceWriter::kFullInterval), so each fourth run ends an interval.
constexpr std::size_t kEvents = 4096;
// Bytes of an event of the service.
constexpr std::size_t kEventBytes = 152;

struct Shared {
  std::atomic<std::uint64_t> wanted;   // number of runs that were requested
  std::atomic<std::uint64_t> written;  // number of runs that are complete, summed over the threads
  std::atomic<bool> ready;
};

inline constinit eh::Provider provider("Bench_Ring_Collector");
constexpr bench::Event8<provider> event;

void WriteRuns(Shared* shared) {
  for (std::uint64_t run = 0;; ++run) {
    while (shared->wanted == run) usleep(100);
    for (std::size_t i = 0; i < kEvents / kThreads; ++i) bench::Write8(event);
    ++shared->written;
  }
}

// Maps the memory that the two processes share.
Shared* Map(int fd) {
  void* const map =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, /*offset=*/0);
  if (map == MAP_FAILED) bench::Fail("cannot map the shared memory");
  return static_cast<Shared*>(map);
}

[[noreturn]] void RunService(Shared* shared) {
  // The service ends with the benchmark, even if the benchmark fails.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (eh::DescribeTransport(nullptr, 0) != eh::TransportState::kRingConnected ||
         !event.enabled()) {
    usleep(100);
  }
  shared->ready = true;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (std::size_t i = 0; i < kThreads; ++i) threads.emplace_back([shared] { WriteRuns(shared); });
  for (std::thread& thread : threads) thread.join();
  std::abort();
}

class NullSink : public nettrace::Sink {
 public:
  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override {
    *taken = bytes.size();
    return absl::OkStatus();
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--service") RunService(Map(std::atoi(argv[2])));
  const bench::Options options = bench::ParseOptions(argc, argv);
  const char* const unit = options.instructions ? "instructions" : "ns";
  const bench::Reporter reporter("ring-collector", options.json);
  const tests::TemporaryFolder folder;
  const std::string path = folder.path() + "/events";
  const int fd = memfd_create("bench", /*flags=*/0);  // Inherited by the service.
  if (fd < 0 || ftruncate(fd, sizeof(Shared)) != 0) bench::Fail("cannot make the shared memory");
  auto* const shared = new (Map(fd)) Shared{};
  const pid_t service = fork();
  if (service == 0) {
    // The event is registered before main, and needs these variables then.
    setenv("EVENTHEADER_TRANSPORT", "ring", 1);
    setenv("EVENTHEADER_SOCKET", path.c_str(), 1);
    execl(argv[0], argv[0], "--service", std::to_string(fd).c_str(), nullptr);
    _exit(1);
  }

  collector::CaptureOptions capture_options;
  capture_options.rings.emplace();
  capture_options.rings->path = path;
  capture_options.tracepoints = false;
  const auto capture = bench::Check(collector::Capture::Open(capture_options));
  collector::SessionOptions session_options;
  session_options.selectors.push_back(
      bench::Check(collector::ParseSelector("Bench_Ring_Collector")));
  collector::Session* const session =
      bench::Check(capture->StartSession(std::move(session_options), [] {
        return absl::StatusOr<std::unique_ptr<nettrace::Sink>>(std::make_unique<NullSink>());
      }));
  const auto poll = [&] { bench::Check(capture->Poll(absl::Milliseconds(10))); };
  while (!shared->ready) poll();

  std::uint64_t runs = 0;
  const auto write = [&] {
    shared->wanted = ++runs;
    while (shared->written != runs * kThreads) usleep(100);
  };
  std::vector<std::byte> from(kEvents * kEventBytes);
  std::vector<std::byte> to(from.size());
  std::vector<bench::Body> bodies(2);
  bodies[0].prepare = write;
  bodies[0].run = [&] {
    while (session->events() < runs * kEvents &&
           session->events() + session->Summarize().lost < runs * kEvents) {
      poll();
    }
  };
  bodies[1].run = [&] {
    std::memcpy(to.data(), from.data(), from.size());
    asm volatile("" ::: "memory");
  };
  const bench::InstructionCounter counter;
  bench::Measure(bodies, kEvents, options.instructions ? 8 : 200, &counter);
  reporter.Report("an event, 8 fields, 3 strings", unit, bodies[0].cost, bodies[1].cost);
  if (counter.valid()) {
    reporter.Report("an event, 8 fields, 3 strings", "instructions", bodies[0].instructions,
                    bodies[1].instructions);
  }
  const collector::SessionSummary summary = capture->StopSession(session);
  bench::Check(summary.status);
  kill(service, SIGKILL);
  waitpid(service, nullptr, 0);
  reporter.Report("lost events", "events", static_cast<double>(summary.lost), 0);
  // An event that is not converted costs less, so the figures would be too small.
  if (summary.lost != 0 || summary.undecoded != 0 || summary.late != 0) {
    bench::Fail(std::to_string(summary.lost) + " events were lost, " +
                std::to_string(summary.undecoded) + " not decoded and " +
                std::to_string(summary.late) + " late");
  }
  return 0;
}
