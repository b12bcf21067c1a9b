// What `eventheader doctor` finds: causes for which nothing is collected, judged from facts alone.
#ifndef TOOLS_EVENTHEADER_DOCTOR_CHECKS_H_
#define TOOLS_EVENTHEADER_DOCTOR_CHECKS_H_

#include <string>
#include <vector>

#include "tools/eventheader/doctor_facts.h"

namespace tools {

struct Finding {
  std::string check;    // a word, which scripts know: "permission"
  std::string problem;  // what is wrong, in a sentence
  std::string remedy;   // what to do
};

// A check looks at the facts that it needs; where they have no value, it finds nothing.
using Check = std::vector<Finding> (*)(const Facts& facts);

std::vector<Finding> CheckKernel(const Facts& facts);
std::vector<Finding> CheckTracefs(const Facts& facts);
std::vector<Finding> CheckSandbox(const Facts& facts);
std::vector<Finding> CheckPermission(const Facts& facts);
std::vector<Finding> CheckUserNamespace(const Facts& facts);
std::vector<Finding> CheckLimits(const Facts& facts);
std::vector<Finding> CheckNames(const Facts& facts);
std::vector<Finding> CheckRegistered(const Facts& facts);
std::vector<Finding> CheckDaemon(const Facts& facts);
std::vector<Finding> CheckSessions(const Facts& facts);

// All checks, in the order in which what they find is to be mended: a later cause may be gone with
// an earlier one.
std::vector<Finding> Diagnose(const Facts& facts);

}  // namespace tools

#endif  // TOOLS_EVENTHEADER_DOCTOR_CHECKS_H_
