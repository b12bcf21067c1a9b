// Explains why a name is not valid for an EventHeader tracepoint.
#ifndef TOOLS_EVENTHEADER_NAME_PROBLEM_H_
#define TOOLS_EVENTHEADER_NAME_PROBLEM_H_

#include <string>
#include <string_view>

namespace tools {

// Returns one sentence that states the problem, and the name that was probably meant if the
// function finds one. Returns "" if the name is valid.
std::string NameProblem(std::string_view name);

}  // namespace tools

#endif  // TOOLS_EVENTHEADER_NAME_PROBLEM_H_
