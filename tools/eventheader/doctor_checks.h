// The checks of `eventheader doctor`. They find the causes of missing events in Facts. Apart from
// the names of groups, they read nothing from the machine.
#ifndef TOOLS_EVENTHEADER_DOCTOR_CHECKS_H_
#define TOOLS_EVENTHEADER_DOCTOR_CHECKS_H_

#include <string>
#include <vector>

#include "tools/collector/dotnet/dotnet_survey.h"
#include "tools/eventheader/doctor_facts.h"

namespace tools {

struct Finding {
  std::string check;    // a word for scripts, e.g. "permission"
  std::string problem;  // a sentence without its period that says what is wrong
  std::string remedy;   // a sentence without its period that says what to do
};

// A check, which returns its findings. It returns none if a fact that it needs has no value.
using Check = std::vector<Finding> (*)(const Facts& facts);

std::vector<Finding> CheckKernel(const Facts& facts);
std::vector<Finding> CheckSocket(const Facts& facts);
std::vector<Finding> CheckTracefs(const Facts& facts);
std::vector<Finding> CheckSandbox(const Facts& facts);
std::vector<Finding> CheckPermission(const Facts& facts);
std::vector<Finding> CheckUserNamespace(const Facts& facts);
std::vector<Finding> CheckLimits(const Facts& facts);
std::vector<Finding> CheckNames(const Facts& facts);
std::vector<Finding> CheckRegistered(const Facts& facts);
std::vector<Finding> CheckDaemon(const Facts& facts);
std::vector<Finding> CheckRefused(const Facts& facts);
std::vector<Finding> CheckSessions(const Facts& facts);

// Returns a finding for each .NET process that cannot write events for a collector.
std::vector<Finding> CheckDotnet(const collector::DotnetSurvey& survey);

// Returns the reason why the kernel has no user_events; "" if it has them, or if that is unknown.
std::string WhyNoUserEvents(const Facts& facts);

// Runs all checks. Findings are in the order in which to fix them: fixing an earlier finding may
// also remove a later finding.
std::vector<Finding> Diagnose(const Facts& facts);

}  // namespace tools

#endif  // TOOLS_EVENTHEADER_DOCTOR_CHECKS_H_
