// What is attached, and in which order: the filter of each tracepoint, and who gets the descriptors
// where there are not enough of them.
#ifndef TOOLS_COLLECTOR_SESSION_ATTACH_PLAN_H_
#define TOOLS_COLLECTOR_SESSION_ATTACH_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
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

  // Looks how many are free, and raises the limit as far as this process may if there are not
  // `wanted`. To be called before a number of tracepoints is attached.
  void Look(std::size_t wanted);
  // For tests: of a limit of `limit`, `free` are free.
  void Set(std::size_t limit, std::size_t free);

  // Whether `count` descriptors may be opened for the tracepoint. ResourceExhausted says what to
  // do.
  absl::Status Check(const Tracefs::Name& name, std::size_t count) const;
  // They have been opened.
  void Use(const Tracefs::Name& name, std::size_t count);

 private:
  std::size_t limit_ = 0;
  std::size_t free_ = 0;                     // without those that are kept back
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

// The tracepoints that patterns select and that are not recorded.
class LeftOut {
 public:
  static constexpr std::size_t kMaxNamed = 20;
  static constexpr std::size_t kMaxKept = 10'000;

  // Notes that "system:event" is left out at `now`, in ns, and why.
  void Add(const std::string& name, const absl::Status& why, std::uint64_t now);
  // It is recorded.
  void Remove(const std::string& name);
  // Whether it is not yet time to try it again. One that lacks descriptors is tried again each
  // second, as they may have come free. For others it takes longer each time, up to a minute: all
  // that can have changed is its definition, and it costs the more the more there are of them.
  bool IsTooEarly(const std::string& name, std::uint64_t now) const;
  // Lets those of the system that are not in `there`, sorted, be tried at once when they return.
  void KeepOnly(const std::string& system, const std::vector<std::string>& there);

  bool is_empty() const { return names_.empty(); }
  // Those that are left out, the first kMaxKept, and how many have ever been.
  const std::set<std::string>& names() const { return names_; }
  std::size_t count() const { return count_; }
  // What was wrong with the first kMaxNamed of all.
  const std::vector<std::string>& reasons() const { return reasons_; }

 private:
  struct Note {
    std::uint64_t next = 0;  // when it is tried again, and how long after the time before
    std::uint64_t wait = 0;
  };
  std::map<std::string, Note> notes_;
  std::set<std::string> names_;
  std::vector<std::string> reasons_;
  std::size_t count_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_ATTACH_PLAN_H_
