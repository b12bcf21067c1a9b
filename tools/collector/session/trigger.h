// Defines the events at which an action is triggered. For example, a flight recorder writes its
// file when one of them occurs.
//
// A trigger is one line of text:
//   Shop:OrderFailed                              an event by provider and name
//   Shop:*:error                                  shell patterns, and a maximum level
//   Shop:Request where status >= 500 and host.name == "a"
//   sched:sched_process_exit where prio < 100     a kernel tracepoint by system and name
// A comparison has a field on its left side and a number, true, false or a quoted text on its right
// side. Fields have the names that they have in the file; a dot separates a struct from its field.
// A comparison of an array holds if it holds for one element.
#ifndef TOOLS_COLLECTOR_SESSION_TRIGGER_H_
#define TOOLS_COLLECTOR_SESSION_TRIGGER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace collector {

struct Trigger {
  // Maximum number of conditions of one trigger.
  static constexpr std::size_t kMaxConditions = 16;
  static constexpr std::size_t kMaxDepth = 16;  // maximum number of names in Condition::field

  enum class Comparison : std::uint8_t {
    kEqual,
    kNotEqual,
    kLess,
    kLessOrEqual,
    kGreater,
    kGreaterOrEqual,
  };
  // A number has the first of the three numeric types that can represent it.
  using Value = std::variant<bool, std::int64_t, std::uint64_t, double, std::string>;
  struct Condition {
    std::vector<std::string> field;  // names of the enclosing structs, then of the field
    Comparison comparison = Comparison::kEqual;
    Value value;

    friend bool operator==(const Condition&, const Condition&) = default;
  };

  std::string text;      // the text that the user wrote, for messages
  std::string provider;  // shell pattern of the provider, or of a kernel tracepoint's system
  std::string event;     // shell pattern of the event's name
  // Maximum level of events that match. If it is not 255, events without a level do not match.
  std::uint8_t max_level = 255;
  std::vector<Condition> where;  // conditions; an event matches if all of them hold

  friend bool operator==(const Trigger&, const Trigger&) = default;
};

// Parses a trigger. The message of InvalidArgument says what is wrong and at which column of the
// text, counted from 1.
absl::StatusOr<Trigger> ParseTrigger(std::string_view text);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_TRIGGER_H_
