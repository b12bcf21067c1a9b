// Finds what stands out in a file: errors, slow activities, changes of durations and rates,
// processes that ended, losses and silence. Each finding is a sentence that the data supports. The
// thresholds are far outside of what random arrivals and durations produce.
#ifndef TOOLS_NETTRACE_REPORT_FINDINGS_H_
#define TOOLS_NETTRACE_REPORT_FINDINGS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nettrace/reader.h"
#include "tools/nettrace/report/report_model.h"

namespace tools::report {

struct Finding {
  enum class Topic : std::uint8_t {
    kErrors,
    kSlow,       // an activity that took much longer than usual
    kDurations,  // durations that changed
    kRates,      // a rate that changed
    kProcesses,
    kLosses,
    kSilence,
  };
  Topic topic = Topic::kErrors;
  std::string text;  // plain text
  // The events behind it: their times in ticks, inclusive, and what else they have in common.
  std::uint64_t from = 0;
  std::uint64_t until = 0;
  std::optional<std::size_t> kind;
  std::optional<std::size_t> process;
  bool only_errors = false;
  std::optional<std::size_t> activity;  // the rank of the activity that it is about
};

// Returns the findings, the most important ones of each topic, by topic. EndTotals must have been
// called. `reader` converts times.
std::vector<Finding> FindFindings(const nettrace::Reader& reader, const ReportModel& model);

// Returns the name of a topic for users, such as "Errors".
std::string_view TopicName(Finding::Topic topic);

}  // namespace tools::report

#endif  // TOOLS_NETTRACE_REPORT_FINDINGS_H_
