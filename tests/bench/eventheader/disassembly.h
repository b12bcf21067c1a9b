// Checks that compilers make of a disabled event what is promised: a load, a test and a branch.
#ifndef TESTS_BENCH_EVENTHEADER_DISASSEMBLY_H_
#define TESTS_BENCH_EVENTHEADER_DISASSEMBLY_H_

#include <string>

struct DisabledPath {
  int instructions = 0;  // besides the function's own entry and exit
  std::string error;     // what is wrong, with the disassembly; "" if nothing
};

// Reads `function` of `program` with objdump. It must be x86-64 code that, but for what every
// function has at its entry and exit, loads the provider's word, tests it and branches, and returns
// when it is 0.
DisabledPath FindDisabledPath(const std::string& program, const std::string& function);

#endif  // TESTS_BENCH_EVENTHEADER_DISASSEMBLY_H_
