// What the kernel says of a tracepoint's filter.
#ifndef TOOLS_COLLECTOR_TRACEFS_FILTER_CHECK_H_
#define TOOLS_COLLECTOR_TRACEFS_FILTER_CHECK_H_

#include <optional>
#include <string>

#include "tools/collector/tracefs/tracefs.h"

namespace collector {

// Has the kernel parse filters. perf gets no more than EINVAL of it; the words are only in a file
// of tracefs, `filter`, to which the filter is written. So that nobody's filters are changed, that
// is done in an instance of tracefs that is made for it, in which nothing is enabled, and which is
// removed with the object. It takes 2 ms to make and 50 ms to remove. Not thread-safe.
class FilterCheck {
 public:
  // Makes no instance yet.
  explicit FilterCheck(const Tracefs& tracefs) : tracefs_(tracefs) {}
  ~FilterCheck();
  FilterCheck(const FilterCheck&) = delete;
  FilterCheck& operator=(const FilterCheck&) = delete;

  struct Answer {
    bool accepts = false;
    // If it does not: the kernel's words, in one line.
    std::string message;
  };
  // No value if no instance can be made, as when this process may only read tracefs, or the
  // tracepoint is not there.
  std::optional<Answer> Ask(const Tracefs::Name& name, const std::string& filter);

 private:
  const Tracefs& tracefs_;
  std::string instance_;  // "": not made
  bool is_refused_ = false;
};

// The kernel's words in the text of a `filter` file after an error: the filter, a line with a ^
// below the place of the error, and one that says what it is. "" if there are none.
std::string FilterMessage(const std::string& text);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_TRACEFS_FILTER_CHECK_H_
