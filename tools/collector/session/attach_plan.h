// Plans how tracepoints are attached: with which filters, in which order, and which of them get
// file descriptors when there are too few for all.
#ifndef TOOLS_COLLECTOR_SESSION_ATTACH_PLAN_H_
#define TOOLS_COLLECTOR_SESSION_ATTACH_PLAN_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/collector/session/selector.h"
#include "tools/collector/tracefs/filter_check.h"
#include "tools/collector/tracefs/tracefs.h"

namespace collector {

// Returns a filter that accepts the events that both filters accept. Either may be empty, which
// accepts all events.
std::string BothFilters(const std::string& filter, const std::string& other);
// Returns a filter that accepts the events that at least one of `filters` accepts. None of
// `filters` may be empty.
std::string EitherFilter(const std::vector<std::string>& filters);

// Holds the selectors that match a tracepoint, and the filter for its events.
struct Selection {
  std::vector<std::size_t> selectors;  // indices of the matching selectors, without refused ones
  std::string filter;                  // filter for the events; empty: all events
  StackOptions stacks;                 // includes the stacks that each of the selectors requests
  absl::Status refused;                // OK, or why the filter of a matching selector was refused
};
// Finds the selectors that match the tracepoint, and makes the kernel check their filters. At least
// one selector must match. Fails with InvalidArgument if the kernel refuses the filter of a
// selector that names the tracepoint, or the filters of all selectors that match. Fails with
// another error if a filter cannot be checked.
absl::StatusOr<Selection> Select(const std::vector<Selector>& selectors, const Tracefs::Name& name,
                                 const Tracefs::Tracepoint& tracepoint, FilterCheck* check);

// Counts the descriptors that a recording may still open for tracepoints that patterns select.
//
// Some descriptors are reserved for the collector's own files. Any service may register tracepoints
// of user_events. The tracepoints of the first service could therefore leave no descriptors for
// later services. To prevent this, the tracepoints of user_events whose names begin with the same
// letters (ExtractLetters) may have at most three times as many descriptors as remain free.
class DescriptorBudget {
 public:
  static constexpr std::size_t kReserve = 64;

  // Creates the budget of a process that may have `limit` descriptors, and may still open `free` of
  // them. Each tracepoint needs `each` descriptors.
  DescriptorBudget(std::size_t limit, std::size_t free, std::size_t each)
      : limit_(limit), free_(free), each_(each) {}
  // Returns the budget of this process. Raises the process's limit of descriptors, as far as
  // permitted, if it is too low for `tracepoints` tracepoints.
  static DescriptorBudget OfProcess(std::size_t tracepoints, std::size_t each);

  // Counts a tracepoint that is already attached. Its descriptors belong to the share of the
  // letters that its name begins with; the constructor's `free` does not include them.
  void Count(const Tracefs::Name& name);
  // Returns OK if the descriptors of the tracepoint may be opened; otherwise ResourceExhausted,
  // whose message says what to do.
  absl::Status Check(const Tracefs::Name& name) const;
  // Subtracts the descriptors that have just been opened for the tracepoint from the free ones.
  // Counts them towards the share of the letters that its name begins with.
  void Use(const Tracefs::Name& name);

 private:
  std::size_t limit_;
  std::size_t free_;  // descriptors that may be opened, without the reserved ones
  std::size_t each_;
  // Descriptors of tracepoints of user_events, by the letters that their names begin with.
  std::map<std::string, std::size_t> used_;
};

// Returns the tracepoints in the order in which they are attached: the first one of each provider
// or system, then the second one of each, and so on. Tracepoints of the same provider or system
// keep their order.
std::vector<Tracefs::Name> InTurns(std::vector<Tracefs::Name> names);
// Returns the provider of an EventHeader tracepoint. For another tracepoint of user_events, returns
// the part of its name before the first '_'. For a tracepoint of another system, returns the
// system.
std::string ExtractProvider(const Tracefs::Name& name);
// Returns the letters before the first other character in the name of a tracepoint of user_events,
// such as "Shop" for "Shop_Orders_L4K1".
std::string ExtractLetters(const std::string& name);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_ATTACH_PLAN_H_
