// What writing an event costs, beside a memcpy of the same payloads in the same run.
//
//   bench_nettrace_writer [--json]
//
// The floor of a case: its payloads, copied one after another into a 256 KiB block, which is then
// begun anew, by the same memcpy that the writer uses. The sink takes everything and keeps nothing.
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nettrace/writer.h"

namespace {

using nettrace::EventRow;

constexpr std::size_t kEvents = 2'000'000;
constexpr std::size_t kBlock = 256 * 1024;
constexpr int kRuns = 3;  // the best one counts: the others were disturbed

bool json = false;

void Report(const std::string& name, const char* unit, double value, double floor) {
  const double ratio = floor > 0 ? value / floor : 0;
  if (json) {
    std::printf(
        "{\"bench\":\"nettrace writer\",\"case\":\"%s\",\"unit\":\"%s\",\"value\":%.3f,"
        "\"floor\":%.3f,\"ratio\":%.3f}\n",
        name.c_str(), unit, value, floor, ratio);
  } else {
    std::printf("%-52s %12.2f %-20s floor %10.2f  ratio %6.2f\n", name.c_str(), value, unit, floor,
                ratio);
  }
}

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "bench_nettrace_writer: %s\n", what.c_str());
  std::exit(1);
}

template <typename T>
T Check(absl::StatusOr<T> value) {
  if (!value.ok()) Fail(value.status().ToString());
  return *std::move(value);
}

void Check(const absl::Status& status) {
  if (!status.ok()) Fail(status.ToString());
}

// Instructions of this thread in user mode, where the machine counts them.
class InstructionCounter {
 public:
  InstructionCounter() {
    perf_event_attr attr = {};
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_HARDWARE;
    attr.config = PERF_COUNT_HW_INSTRUCTIONS;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    fd_ = static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  }
  InstructionCounter(const InstructionCounter&) = delete;
  InstructionCounter& operator=(const InstructionCounter&) = delete;
  ~InstructionCounter() {
    if (fd_ >= 0) close(fd_);
  }
  std::uint64_t Now() const {
    std::uint64_t count = 0;
    if (fd_ < 0 || read(fd_, &count, sizeof count) != sizeof count) return 0;
    return count;
  }

 private:
  int fd_;
};

struct Cost {
  double ns = 1e300;
  double instructions = 0;  // 0: not counted
};

// Of one of the `count` steps that `run` does.
Cost Measure(std::size_t count, const std::function<void()>& run) {
  static const InstructionCounter counter;
  Cost best;
  for (int i = 0; i < kRuns; ++i) {
    const std::uint64_t instructions = counter.Now();
    const auto begin = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    const double ns = time.count() / static_cast<double>(count);
    if (ns < best.ns) {
      best = {ns, static_cast<double>(counter.Now() - instructions) / static_cast<double>(count)};
    }
  }
  return best;
}

class NullSink : public nettrace::Sink {
 public:
  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override {
    *taken = bytes.size();
    return absl::OkStatus();
  }
};

std::unique_ptr<nettrace::Writer> MakeWriter(std::size_t threads, std::size_t metadata_rows) {
  auto writer =
      Check(nettrace::Writer::Create(std::make_unique<NullSink>(), nettrace::TraceInfo()));
  nettrace::EventMetadata metadata;
  metadata.name = "Event";
  for (std::size_t i = 0; i < metadata_rows; ++i) {
    metadata.event_id = static_cast<std::uint32_t>(1 + i % 50'000);
    metadata.provider = "Provider" + std::to_string(i / 50'000);
    Check(writer->AddMetadata(metadata).status());
  }
  for (std::size_t i = 0; i < threads; ++i) Check(writer->AddThread({}).status());
  return writer;
}

Cost MeasureFloor(std::size_t payload_size) {
  // The payloads lie one after another, as they do in a ring.
  const std::vector<std::byte> payloads(64 * (payload_size + 1), std::byte{1});
  const auto block = std::make_unique<std::byte[]>(kBlock);
  return Measure(kEvents, [&] {
    std::byte* out = block.get();
    for (std::size_t i = 0; i < kEvents; ++i) {
      if (static_cast<std::size_t>(block.get() + kBlock - out) < payload_size) out = block.get();
      std::memcpy(out, payloads.data() + (i % 64) * payload_size, payload_size);
      asm volatile("" : : "r"(out) : "memory");
      out += payload_size;
    }
  });
}

struct Case {
  std::size_t payload_size = 64;
  std::size_t threads = 1;
  bool labels = false;
  bool stacks = false;
  std::size_t metadata_rows = 1;
};

std::string Name(const Case& c) {
  return std::to_string(c.payload_size) + " bytes, " + std::to_string(c.threads) + " threads" +
         (c.labels ? ", labels" : "") + (c.stacks ? ", stacks" : "") +
         (c.metadata_rows > 1 ? ", " + std::to_string(c.metadata_rows) + " metadata rows" : "");
}

// Labels and stacks: looked up for each event, 256 different ones of each.
struct Interned {
  std::vector<nettrace::Labels> labels{256};
  std::vector<std::vector<std::uint64_t>> stacks;
  Interned() {
    for (std::size_t i = 0; i < 256; ++i) {
      labels[i].activity_id.emplace().fill(static_cast<std::byte>(i));
      stacks.emplace_back(20, i + 1);
    }
  }
};

Cost MeasureWriter(const Case& c, double* bytes_per_event) {
  const std::vector<std::byte> payloads(64 * (c.payload_size + 1), std::byte{1});
  const Interned interned;
  const auto writer = MakeWriter(c.threads, c.metadata_rows);
  std::uint64_t now = 0;
  const Cost cost = Measure(kEvents, [&] {
    EventRow row = {.metadata_id = 1, .capture_thread = 1, .thread = 1};
    for (std::size_t i = 0; i < kEvents; ++i) {
      row.timestamp = now += 100 + i % 1024;
      if (c.threads > 1) row.capture_thread = row.thread = 1 + i % c.threads;
      if (c.metadata_rows > 1) {
        row.metadata_id = static_cast<std::uint32_t>(1 + i * 7919 % c.metadata_rows);
      }
      if (c.labels) row.label_list_id = *writer->InternLabels(interned.labels[i % 256]);
      if (c.stacks) row.stack_id = *writer->InternStack(interned.stacks[i % 256]);
      const std::byte* payload = payloads.data() + (i % 64) * c.payload_size;
      const absl::Status status = writer->WriteEvent(row, {payload, c.payload_size});
      if (!status.ok()) [[unlikely]]
        Fail(status.ToString());
    }
    Check(writer->WriteSequencePoint(++now));
  });
  const nettrace::Writer::Stats& stats = writer->stats();
  *bytes_per_event = static_cast<double>(stats.bytes) / static_cast<double>(stats.events);
  return cost;
}

void Run(const Case& c) {
  const Cost floor = MeasureFloor(c.payload_size);
  double bytes = 0;
  const Cost cost = MeasureWriter(c, &bytes);
  Report(Name(c), "ns/event", cost.ns, floor.ns);
  if (cost.instructions > 0) {
    Report(Name(c), "instructions/event", cost.instructions, floor.instructions);
  }
  Report(Name(c), "events/s", 1e9 / cost.ns, 1e9 / floor.ns);
  Report(Name(c), "bytes/event", bytes, static_cast<double>(c.payload_size));
}

double PeakMemoryMiB() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// The floor: the peak at the first million.
void RunMemory() {
  const auto writer = MakeWriter(1, 1);
  const std::vector<std::byte> payload(64);
  EventRow row = {.metadata_id = 1, .capture_thread = 1, .thread = 1};
  double first = 0;
  for (const std::uint64_t millions : {1, 10, 100}) {
    while (writer->stats().events < millions * 1'000'000) {
      for (int i = 0; i < 1'000'000; ++i) {
        ++row.timestamp;
        Check(writer->WriteEvent(row, payload));
      }
      Check(writer->WriteSequencePoint(row.timestamp));
    }
    if (first == 0) first = PeakMemoryMiB();
    Report("peak memory, " + std::to_string(millions) + " million events", "MiB", PeakMemoryMiB(),
           first);
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0) {
      json = true;
    } else {
      std::fprintf(stderr, "usage: bench_nettrace_writer [--json]\n");
      return 2;
    }
  }
  RunMemory();  // first: the peak is the process's
  for (const std::size_t payload_size : {0, 16, 64, 512}) {
    for (const std::size_t threads : {1, 64}) {
      for (const bool more : {false, true}) {
        Run({.payload_size = payload_size, .threads = threads, .labels = more, .stacks = more});
      }
    }
  }
  Run({.labels = true});
  Run({.stacks = true});
  for (const std::size_t rows : {10, 1000, 100'000}) Run({.metadata_rows = rows});
  return 0;
}
