// Selectors of the tracepoints to record: the `-e` arguments of `nettrace record`, and the entries
// of `select` in the settings of nettraced.
#ifndef TOOLS_COLLECTOR_SESSION_SELECTOR_H_
#define TOOLS_COLLECTOR_SESSION_SELECTOR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tools/collector/perf/stack_options.h"

namespace collector {

// Selects EventHeader tracepoints by provider, level and keyword, as in ETW, or tracepoints by
// their system and name.
struct Selector {
  enum class Kind {
    kProvider,    // by provider pattern, level and keyword masks
    kTracepoint,  // system:event; for system user_events the event may not exist yet
    kPattern,     // like kTracepoint, with patterns; PATTERN:* is also a provider pattern
  };
  Kind kind = Kind::kProvider;
  std::string text;  // the text that the user wrote, for messages

  // Shell pattern (* ? [..]) of the provider's name. If `kind` is kPattern or kTracepoint, it may
  // be "", which matches no provider.
  std::string provider;
  // Maximum level of events that match (1 critical error … 5 verbose); 255 matches all levels.
  std::uint8_t max_level = 255;
  // Mask of keywords. Events match if they have one of these keywords, or no keyword.
  std::uint64_t keyword_mask = ~std::uint64_t{0};
  // Mask of keywords. Events match if they have all of these keywords, or no keyword.
  std::uint64_t keyword_all = 0;

  // System and name of the tracepoint: exact names for kTracepoint, shell patterns for kPattern.
  std::string system;
  std::string event;

  // Stacks of the events; no value: none. If neither `user` nor `kernel` is set, StacksFor selects
  // the parts.
  std::optional<StackOptions> stacks;

  // Filter for the events, in the kernel's filter language; empty: all events.
  std::string filter;

  // Returns whether the selector can match tracepoints of user_events only.
  bool needs_user_events() const { return kind == Kind::kProvider || system == kUserEventsSystem; }
  // Returns whether the selector matches the tracepoint `name` of system user_events.
  bool MatchesUserEvent(const std::string& name) const;
  // Returns whether the selector may match tracepoints of the system `name`. Does not consider
  // provider patterns.
  bool MatchesSystem(const std::string& name) const;
  // Returns whether the selector matches the tracepoint by its system and name.
  bool MatchesTracepoint(const std::string& of_system, const std::string& name) const;

  // Returns MatchesUserEvent for tracepoints of the system user_events, and MatchesTracepoint for
  // all others.
  bool Matches(const std::string& of_system, const std::string& name) const;

  // Returns the stacks of the events of a tracepoint that the selector matches. By default, these
  // are the stacks of user space for user_events, and of user space and the kernel for all other
  // systems. The kernel part of a user_events stack would always be the same.
  StackOptions StacksFor(const std::string& of_system) const;

  static constexpr std::string_view kUserEventsSystem = "user_events";

  friend bool operator==(const Selector&, const Selector&) = default;
};

// Parses `Provider[:level[:keyword mask[:keywords all]]]`, an exact EventHeader tracepoint name
// (`Provider_LxKy`), `system:event`, or a pattern of `system:event`. base::ParseLevel parses the
// level. Masks are decimal or 0x hexadecimal; `*` as the first mask means all keywords.
//
// Text after a single colon is a level if it is valid as one, else the name or pattern of an event.
// `*` after a single colon means all levels of a provider and all events of a system, so that the
// selector does not match less than intended. The message of InvalidArgument says what is wrong and
// shows the accepted forms.
absl::StatusOr<Selector> ParseSelector(std::string_view text);

// Parses the value of --stacks: parts separated by commas, in any order. At most one of `user`,
// `kernel` and `both` selects the parts of the stack. `dwarf` copies the user stack and unwinds it,
// `stack=SIZE` sets the size of the copy, and `max=N` the maximum number of frames. An empty text
// selects the default stacks. `limit` is the maximum of N.
absl::StatusOr<StackOptions> ParseStacks(std::string_view text, std::uint16_t limit);

// Returns the text from which ParseStacks makes these stacks.
std::string StacksText(const StackOptions& stacks);

// The rate of samples if the user gives none. It is not a divisor of usual rates of timers, so that
// samples do not coincide with them.
inline constexpr std::string_view kUsualSampleRate = "997Hz";

// Parses a rate of samples, such as `997Hz` or `997`. `limit` is the maximum rate.
absl::StatusOr<std::uint32_t> ParseSampleRate(std::string_view text, std::uint32_t limit);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_SELECTOR_H_
