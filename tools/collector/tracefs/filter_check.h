// Checks the filter of a tracepoint, and returns the kernel's error message.
#ifndef TOOLS_COLLECTOR_TRACEFS_FILTER_CHECK_H_
#define TOOLS_COLLECTOR_TRACEFS_FILTER_CHECK_H_

#include <optional>
#include <string>

#include "tools/collector/tracefs/tracefs.h"

namespace collector {

// Lets the kernel parse filters. perf returns only EINVAL for an invalid filter. The kernel's
// message is available only in a `filter` file of tracefs, after the filter has been written to it.
// To change no existing filter, the filter is written in a separate instance of tracefs in which no
// tracepoint is enabled. The destructor removes the instance. Creating the instance takes 2 ms, and
// removing it takes 50 ms. Not thread-safe.
class FilterCheck {
 public:
  // The first call of Ask() creates the instance.
  explicit FilterCheck(const Tracefs& tracefs) : tracefs_(tracefs) {}
  ~FilterCheck();
  FilterCheck(const FilterCheck&) = delete;
  FilterCheck& operator=(const FilterCheck&) = delete;

  struct Answer {
    bool accepts = false;
    // The kernel's message on one line, if it refuses the filter.
    std::string message;
  };
  // Checks a filter. Returns no value if no instance can be created, for example because this
  // process may only read tracefs, or if the tracepoint does not exist.
  std::optional<Answer> Ask(const Tracefs::Name& name, const std::string& filter);

 private:
  const Tracefs& tracefs_;
  std::string instance_;  // path; "": not created
  bool is_refused_ = false;
};

// Returns the kernel's message in the text of a `filter` file after an error; "" if there is none.
// The text is the filter, a line with a ^ below the place of the error, and a line with the reason.
std::string FilterMessage(const std::string& text);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_TRACEFS_FILTER_CHECK_H_
