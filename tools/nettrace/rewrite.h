// Writing a file anew from what can be read of others: repair, cut and merge.
#ifndef TOOLS_NETTRACE_REWRITE_H_
#define TOOLS_NETTRACE_REWRITE_H_

#include <string>
#include <vector>

#include "nettrace/time_ordered_reader.h"
#include "tools/nettrace/event_filter.h"

namespace tools {

struct Rewrite {
  const char* command = "";  // for messages
  std::vector<std::string> inputs;
  std::string output;
  EventFilter filter;
  // Whether what could be read of a damaged input is good enough: that is what repair is for.
  bool accept_damage = false;
  nettrace::TimeOrderOptions sorting = {};  // of the inputs
};

// Writes the events of all inputs, in the order of time as far as they are sorted, to the output,
// which appears by rename, whole or not at all. Prints what was done, and errors; returns the exit
// code.
int RunRewrite(const Rewrite& rewrite);

}  // namespace tools

#endif  // TOOLS_NETTRACE_REWRITE_H_
