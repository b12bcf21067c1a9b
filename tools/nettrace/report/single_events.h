// Selects the single events of a page within a number of bytes. Notable events come first; the
// rest of the bytes goes to the kinds of events in equal shares, so that rare kinds are complete.
#ifndef TOOLS_NETTRACE_REPORT_SINGLE_EVENTS_H_
#define TOOLS_NETTRACE_REPORT_SINGLE_EVENTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tools::report {

// Why an event is on the page, in the order in which an event is offered. Each reason has a
// guaranteed share of the bytes, and uses the bytes that other reasons do not need.
enum class Reason : std::uint8_t {
  kError,     // level 1 or 2; by kind
  kActivity,  // inside of one of the slowest activities; by the rank of the activity
  kNear,      // next to a loss or a change; by its number
  kSample,    // by kind
};
inline constexpr std::size_t kReasons = 4;

struct SingleEvent {
  std::uint64_t ticks = 0;
  std::size_t kind = 0;
  std::size_t thread = 0;
  std::string json;  // in the form of ForScript
};

class SingleEvents {
 public:
  // Bytes that an event needs on a page besides its JSON.
  static constexpr std::size_t kRowBytes = 96;

  explicit SingleEvents(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  // Counts an event of the group `key` of a reason. Returns whether to pass the event to Add.
  bool Wants(Reason reason, std::size_t key);
  // Adds an event that Wants has counted. If the events then have too many bytes, removes events
  // where a reason uses most of its share: every second event of the largest group, or all events
  // of the activity with the highest rank.
  void Add(Reason reason, std::size_t key, SingleEvent event);

  struct Group {
    std::uint64_t offered = 0;
    std::uint64_t every = 1;  // the group has every n-th of its offered events; 0: none
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
  struct Part {
    std::size_t bytes = 0;
    Groups groups;
  };

  static std::size_t Index(Reason reason) { return static_cast<std::size_t>(reason); }
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
