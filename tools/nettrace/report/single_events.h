// Selects the events that a report shows individually, within a limit of bytes. Notable events,
// such as errors, have priority. The kinds of events share the remaining bytes equally, so that
// rare kinds are complete.
#ifndef TOOLS_NETTRACE_REPORT_SINGLE_EVENTS_H_
#define TOOLS_NETTRACE_REPORT_SINGLE_EVENTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tools::report {

// A reason to show an event individually. ReportModel tries the reasons in this order. Each reason
// has a share of the bytes, and may also use the bytes that other reasons do not need. Besides,
// only errors may take bytes from another share: that of the samples.
// The events of a reason form groups, and each group has a key.
enum class Reason : std::uint8_t {
  kError,     // the level is 1 or 2; the key is the kind of the event
  kActivity,  // the event is inside of a slow or typical activity; the key is the activity's rank
  kNear,      // the event is near a loss or within a finding; the key differs for each of them
  kSample,    // any event; the key is its kind
};
inline constexpr std::size_t kReasons = 4;

struct SingleEvent {
  std::uint64_t ticks = 0;
  std::size_t kind = 0;
  std::size_t thread = 0;
  bool is_error = false;
  std::string json;  // the event, escaped by ForScript
};

class SingleEvents {
 public:
  // Maximum bytes that an event needs on the page besides its JSON: time, kind and thread.
  static constexpr std::size_t kRowBytes = 96;

  static constexpr std::size_t kLeastSample = 5;  // minimum share of the samples, in percent

  explicit SingleEvents(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  // Counts an event of the group `key` of a reason. Returns whether to pass the event to Add.
  bool Wants(Reason reason, std::size_t key);
  // Adds an event for which Wants returned true. While all events together exceed the limit,
  // removes events of the reason that uses the largest percentage of its share. Removes every
  // second event of the reason's largest group or, for kActivity, usually all events of the
  // activity with the highest rank. Errors use the bytes of the samples as well, except for
  // kLeastSample percent of all bytes.
  void Add(Reason reason, std::size_t key, SingleEvent event);

  struct Group {
    std::uint64_t offered = 0;  // events that Wants has counted
    std::uint64_t every = 1;    // n, if the group keeps each n-th offered event; 0 if it keeps none
    std::size_t bytes = 0;
    std::vector<SingleEvent> events;
  };
  using Groups = std::map<std::size_t, Group>;
  const Groups& groups(Reason reason) const { return parts_[Index(reason)].groups; }
  std::size_t count() const { return count_; }
  std::size_t bytes() const { return bytes_; }
  // Returns all events in order of time. The pointers are valid until the next Add.
  std::vector<const SingleEvent*> InOrder() const;

 private:
  // The events of one reason.
  struct Part {
    std::size_t bytes = 0;
    Groups groups;
  };

  static constexpr std::size_t Index(Reason reason) { return static_cast<std::size_t>(reason); }
  // Returns the index of the part from which Shrink removes events.
  std::size_t PartToShrink() const;
  // Removes events of one group, as Add describes it.
  void Shrink();
  void Drop(Part* part, Group* group);
  void Halve(Part* part, Group* group);

  std::size_t max_bytes_;
  std::array<Part, kReasons> parts_;
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace tools::report

#endif  // TOOLS_NETTRACE_REPORT_SINGLE_EVENTS_H_
