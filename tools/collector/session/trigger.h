// The events that something is to be done at: a flight recorder writes its file when one comes.
//
// A trigger is one line of text:
//   Shop:OrderFailed                              an event by provider and name
//   Shop:*:error                                  patterns of a shell, and a level at most
//   Shop:Request where status >= 500 and host.name == "a"
//   sched:sched_process_exit where prio < 100     a kernel tracepoint by system and name
// Comparisons are of a field, which is named as in the file, a field of a struct after a dot, with
// a number, true, false, or a text in quotes. Of an array, it is to hold for one of the elements.
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
  // Of one trigger.
  static constexpr std::size_t kMaxConditions = 16;
  static constexpr std::size_t kMaxDepth = 16;  // names of one field

  enum class Comparison : std::uint8_t {
    kEqual,
    kNotEqual,
    kLess,
    kLessOrEqual,
    kGreater,
    kGreaterOrEqual,
  };
  // Numbers are of the first type here that holds them.
  using Value = std::variant<bool, std::int64_t, std::uint64_t, double, std::string>;
  struct Condition {
    std::vector<std::string> field;  // its name, after those of the structs that it is in
    Comparison comparison = Comparison::kEqual;
    Value value;

    friend bool operator==(const Condition&, const Condition&) = default;
  };

  std::string text;      // as given, for messages
  std::string provider;  // pattern; of a kernel tracepoint the system
  std::string event;     // pattern
  // Events of a level up to this one match, and, if it is not 255, only those that have one.
  std::uint8_t max_level = 255;
  std::vector<Condition> where;  // all are to hold

  friend bool operator==(const Trigger&, const Trigger&) = default;
};

// InvalidArgument says what is wrong at which column of the text, counted from 1.
absl::StatusOr<Trigger> ParseTrigger(std::string_view text);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_TRIGGER_H_
