// Checks the promise that a disabled event is compiled to a load, a test and a branch.
#ifndef TESTS_BENCH_EVENTHEADER_DISASSEMBLY_H_
#define TESTS_BENCH_EVENTHEADER_DISASSEMBLY_H_

#include <string>

struct DisabledPath {
  int instructions = 0;  // Without the function's entry and exit.
  std::string error;     // Error message with the disassembly; "" if nothing is wrong.
};

// Reads `function` of `program` with objdump. The function must be x86-64 code. Apart from its
// entry and exit, it must load the provider's word, test it, and return if it is 0.
DisabledPath FindDisabledPath(const std::string& program, const std::string& function);

#endif  // TESTS_BENCH_EVENTHEADER_DISASSEMBLY_H_
