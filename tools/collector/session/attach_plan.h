// What is attached, and in which order: the filter of each tracepoint, and who gets the descriptors
// where there are not enough of them.
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

// `filter`, in parentheses, for the events of which `other` holds, too; either may be "".
std::string BothFilters(const std::string& filter, const std::string& other);
// A filter that lets through what one of them does; none of them is "".
std::string EitherFilter(const std::vector<std::string>& filters);

// The selectors that select a tracepoint, and what passes of its events.
struct Selection {
  std::vector<std::size_t> selectors;  // indices
  std::string filter;                  // "": all
  absl::Status refused;  // why a selector is not among them, if its filter is the reason
};
// Finds them, with the kernel's opinion of each filter. InvalidArgument if it refuses the filter of
// a selector that names the tracepoint, or those of all.
absl::StatusOr<Selection> Select(const std::vector<Selector>& selectors, const Tracefs::Name& name,
                                 const Tracefs::Tracepoint& tracepoint, FilterCheck* check);

// The descriptors that a recording may still open for tracepoints that patterns select.
//
// Some are kept back for files of the program itself. Of those of user_events, which any service
// may register, those with the same beginning of the name have at most three quarters of what is
// free for them: else the tracepoints of who comes first leave none for those of who comes later.
class DescriptorBudget {
 public:
  static constexpr std::size_t kReserve = 64;

  // `free` of the limit's descriptors may be opened; a tracepoint needs `each`.
  DescriptorBudget(std::size_t limit, std::size_t free, std::size_t each)
      : limit_(limit), free_(free), each_(each) {}
  // That of this process. Its limit is raised as far as it may be, if there are not enough for so
  // many tracepoints.
  static DescriptorBudget OfProcess(std::size_t tracepoints, std::size_t each);

  // A tracepoint that has its descriptors already.
  void Count(const Tracefs::Name& name);
  // Whether those of the tracepoint may be opened. ResourceExhausted says what to do.
  absl::Status Check(const Tracefs::Name& name) const;
  // They have been opened.
  void Use(const Tracefs::Name& name);

 private:
  std::size_t limit_;
  std::size_t free_;  // without those that are kept back
  std::size_t each_;
  std::map<std::string, std::size_t> used_;  // by BeginningOf, of user_events
};

// Puts tracepoints in the order in which they are attached: one of each provider or system in
// turns, and of each those first that come first.
std::vector<Tracefs::Name> InTurns(std::vector<Tracefs::Name> names);
// The provider of an EventHeader tracepoint, what is before the first _ of another of user_events,
// and the system of all others.
std::string ProviderOf(const Tracefs::Name& name);
// The letters with which the name of a tracepoint of user_events begins.
std::string BeginningOf(const std::string& name);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_ATTACH_PLAN_H_
