#include "measure.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bench {
namespace {

double CpuNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

}  // namespace

Options ParseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0) {
      options.json = true;
    } else if (std::strcmp(argv[i], "--instructions") == 0) {
      options.instructions = true;
    } else {
      std::fprintf(stderr, "usage: %s [--json] [--instructions]\n", argv[0]);
      std::exit(2);
    }
  }
  return options;
}

void Reporter::Report(const std::string& name, const char* unit, double value, double floor) const {
  const double ratio = floor > 0 ? value / floor : 0;
  const char* const format =
      json_ ? "{\"bench\":\"%s\",\"case\":\"%s\",\"unit\":\"%s\",\"value\":%.3f,\"floor\":%.3f,"
              "\"ratio\":%.3f}\n"
            : "%s: %-75s %-18s %12.2f  floor %12.2f  ratio %6.2f\n";
  std::printf(format, bench_.c_str(), name.c_str(), unit, value, floor, ratio);
  std::fflush(stdout);
}

InstructionCounter::InstructionCounter() {
  perf_event_attr attr = {};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_HARDWARE;
  attr.config = PERF_COUNT_HW_INSTRUCTIONS;
  attr.exclude_hv = 1;
  fd_ = static_cast<int>(syscall(SYS_perf_event_open, &attr, /*pid=*/0, /*cpu=*/-1, /*group_fd=*/-1,
                                 PERF_FLAG_FD_CLOEXEC));
}

InstructionCounter::~InstructionCounter() {
  if (valid()) close(fd_);
}

double InstructionCounter::Read() const {
  std::uint64_t count = 0;
  if (read(fd_, &count, sizeof count) != sizeof count) Fail("cannot read the instruction counter");
  return static_cast<double>(count);
}

void Measure(std::span<Body> bodies, std::size_t steps, int rounds,
             const InstructionCounter* counter) {
  const bool counts = counter != nullptr && counter->valid();
  const auto each = [steps](double all) { return all / static_cast<double>(steps); };
  for (int round = 0; round < rounds; ++round) {
    for (Body& body : bodies) {
      body.prepare();
      body.run();
      body.prepare();
      const double instructions = counts ? counter->Read() : 0;
      const double begin = CpuNanoseconds();
      body.run();
      body.cost = std::min(body.cost, each(CpuNanoseconds() - begin));
      if (counts)
        body.instructions = std::min(body.instructions, each(counter->Read() - instructions));
    }
  }
}

void Fail(const std::string& what) {
  std::fprintf(stderr, "bench: %s\n", what.c_str());
  std::exit(1);
}

void Check(const absl::Status& status) {
  if (!status.ok()) Fail(status.ToString());
}

}  // namespace bench
