// How the benchmarks measure and what they print.
#ifndef TESTS_BENCH_MEASURE_H_
#define TESTS_BENCH_MEASURE_H_

#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace bench {

// The command line: [--json] [--instructions]. Exits with 2 after any other.
struct Options {
  bool json = false;
  // In the VM whose nanoseconds are instructions.
  bool instructions = false;
};
Options ParseOptions(int argc, char** argv);

// Prints one result: a line of a table, or of JSON. `floor` 0: there is none.
class Reporter {
 public:
  Reporter(std::string bench, bool json) : bench_(std::move(bench)), json_(json) {}
  void Report(const std::string& name, const char* unit, double value, double floor) const;

 private:
  std::string bench_;
  bool json_;
};

struct Body {
  std::function<void()> run;
  std::function<void()> prepare = [] {};  // before each run; not measured
  // What one step of it cost, in nanoseconds of this thread's CPU time.
  double cost = std::numeric_limits<double>::max();
  // Its instructions, user and kernel together, where an InstructionCounter counts them.
  double instructions = std::numeric_limits<double>::max();
};

// Counts this thread's instructions, user and kernel together, by the processor's own counter.
class InstructionCounter {
 public:
  InstructionCounter();
  InstructionCounter(const InstructionCounter&) = delete;
  InstructionCounter& operator=(const InstructionCounter&) = delete;
  ~InstructionCounter();

  // False if the machine has no such counter, or does not let this process read it.
  bool valid() const { return fd_ >= 0; }
  double Read() const;

 private:
  int fd_;
};

// Runs `bodies` in turns, `rounds` times, each once to have in the caches what it uses and once to
// be measured. The least time counts: what else runs on the machine only ever adds. A run does
// `steps` of what is measured.
void Measure(std::span<Body> bodies, std::size_t steps, int rounds,
             const InstructionCounter* counter = nullptr);

// Ends the program with what is wrong.
[[noreturn]] void Fail(const std::string& what);
void Check(const absl::Status& status);

template <typename T>
T Check(absl::StatusOr<T> value) {
  Check(value.status());
  return *std::move(value);
}

}  // namespace bench

#endif  // TESTS_BENCH_MEASURE_H_
