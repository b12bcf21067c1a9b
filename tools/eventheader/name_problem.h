// What is wrong with a name that is to be an EventHeader tracepoint's.
#ifndef TOOLS_EVENTHEADER_NAME_PROBLEM_H_
#define TOOLS_EVENTHEADER_NAME_PROBLEM_H_

#include <string>
#include <string_view>

namespace tools {

// One sentence, with the name that was probably meant if there is such; "" if nothing is wrong.
std::string NameProblem(std::string_view name);

}  // namespace tools

#endif  // TOOLS_EVENTHEADER_NAME_PROBLEM_H_
