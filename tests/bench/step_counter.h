// Counts instructions by single-stepping a thread, for machines without hardware counters.
#ifndef TESTS_BENCH_STEP_COUNTER_H_
#define TESTS_BENCH_STEP_COUNTER_H_

#include <functional>

namespace bench {

// Returns the number of instructions that the calling thread executes in `body`. Does not count
// those of the kernel and, on x86-64, of the vDSO, which reads the clock: their number varies. A
// forked process traces the thread, so `body` runs a thousand times slower than otherwise. Returns
// a negative number if this process cannot be traced.
double CountInstructions(const std::function<void()>& body);

}  // namespace bench

#endif  // TESTS_BENCH_STEP_COUNTER_H_
