// The measuring functions of the benchmarks, and the output of their results.
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

// The command line: [--json] [--instructions]. Any other argument ends the program with status 2.
struct Options {
  bool json = false;
  // True if the program runs in the VM in which one nanosecond is one instruction.
  bool instructions = false;
};
Options ParseOptions(int argc, char** argv);

// Prints results, each as a line of a table or of JSON.
class Reporter {
 public:
  Reporter(std::string bench, bool json) : bench_(std::move(bench)), json_(json) {}
  // `floor` is the lower bound of `value`, in the same unit; 0 if there is none.
  void Report(const std::string& name, const char* unit, double value, double floor) const;

 private:
  std::string bench_;
  bool json_;
};

struct Body {
  std::function<void()> run;
  std::function<void()> prepare = [] {};  // Called before each run; not measured.
  // Cost of one step, in ns of this thread's CPU time.
  double cost = std::numeric_limits<double>::max();
  // Instructions of one step, user and kernel together, if an InstructionCounter counts them.
  double instructions = std::numeric_limits<double>::max();
};

// Counts this thread's instructions, user and kernel together, with the processor's hardware
// counter.
class InstructionCounter {
 public:
  InstructionCounter();
  InstructionCounter(const InstructionCounter&) = delete;
  InstructionCounter& operator=(const InstructionCounter&) = delete;
  ~InstructionCounter();

  // False if the machine has no hardware counter, or does not let this process read it.
  bool valid() const { return fd_ >= 0; }
  double Read() const;

 private:
  int fd_;
};

// Runs `bodies` in turns, `rounds` times. In each round a body runs once to fill the caches and
// once to be measured. The least time counts, because other processes can only add time. A run has
// `steps` steps.
void Measure(std::span<Body> bodies, std::size_t steps, int rounds,
             const InstructionCounter* counter = nullptr);

// Prints an error message and ends the program.
[[noreturn]] void Fail(const std::string& what);
void Check(const absl::Status& status);

template <typename T>
T Check(absl::StatusOr<T> value) {
  Check(value.status());
  return *std::move(value);
}

}  // namespace bench

#endif  // TESTS_BENCH_MEASURE_H_
