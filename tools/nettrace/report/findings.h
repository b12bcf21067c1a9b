// Finds what stands out in a file: errors, losses, slow activities, changed durations, rates and
// shares of errors, processes that ended, and kinds of events that paused for long (silence). The
// thresholds are so high that random arrivals and durations practically never cause a finding.
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

// A statement about the file for the report, and the events that it is about.
struct Finding {
  enum class Topic : std::uint8_t {
    kErrors,
    kErrorShare,  // a changed share of errors among the events or activities of a kind or provider
    kSlow,        // an activity that took much longer than usual
    kDurations,   // durations that changed
    kRates,       // a kind of events that was more frequent or rarer than usual
    kProcesses,
    kLosses,
    kSilence,
  };
  Topic topic = Topic::kErrors;
  std::string text;  // sentences, not HTML
  // The events that the finding is about: those from `from` to `until`, in ticks and inclusive,
  // that also match the members below. The finding's link in the report shows these events.
  std::uint64_t from = 0;
  std::uint64_t until = 0;
  std::optional<std::size_t> kind;      // row in ReportModel::kinds()
  std::optional<std::size_t> process;   // row in ReportModel::processes()
  std::optional<std::size_t> provider;  // index in ReportModel::providers()
  bool only_errors = false;
  // Rank in ReportModel::complete() of the activity that the finding is about.
  std::optional<std::size_t> activity;
};

// Returns the findings, grouped by topic. Must be called after ReportModel::EndTotals. `reader`
// converts ticks to times.
std::vector<Finding> FindFindings(const nettrace::Reader& reader, const ReportModel& model);

// Returns the name of a topic for users, such as "Errors".
std::string_view TopicName(Finding::Topic topic);

}  // namespace tools::report

#endif  // TOOLS_NETTRACE_REPORT_FINDINGS_H_
