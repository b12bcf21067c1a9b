// Selectors of the tracepoints to record: the `-e` arguments of `nettrace record`.
#ifndef TOOLS_COLLECTOR_SESSION_SELECTOR_H_
#define TOOLS_COLLECTOR_SESSION_SELECTOR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace collector {

// Selects EventHeader tracepoints by provider, level and keyword, as in ETW, or tracepoints by
// their system and name.
struct Selector {
  enum class Kind {
    kProvider,    // provider pattern, level, keyword mask
    kTracepoint,  // system:event; for system user_events the event may not exist yet
    kPattern,     // the same with patterns; PATTERN:* is both, this and a provider pattern
  };
  Kind kind = Kind::kProvider;
  std::string text;  // as given, for messages

  // Patterns are those of a shell (* ? [..]).
  //
  // kProvider: for the provider's name; kPattern: the same, or "" if it matches no provider.
  std::string provider;
  // Events of a level up to this one match (1 critical error … 5 verbose); 255 is all.
  std::uint8_t max_level = 255;
  // Events with a keyword in common with the mask match, and those with no keyword.
  std::uint64_t keyword_mask = ~std::uint64_t{0};
  // Of those with a keyword, events match that have all of these.
  std::uint64_t keyword_all = 0;

  // kTracepoint: names; kPattern: patterns.
  std::string system;
  std::string event;

  // What passes of the events, in the kernel's filter language; "": all.
  std::string filter;

  // The selector can only ever match tracepoints of user_events.
  bool needs_user_events() const { return kind == Kind::kProvider || system == kUserEventsSystem; }
  // Whether the tracepoint `name` of system user_events is selected.
  bool MatchesUserEvent(const std::string& name) const;
  // Whether some tracepoint of the system may be selected by its name.
  bool MatchesSystem(const std::string& name) const;
  // Whether the tracepoint of another system is selected.
  bool MatchesTracepoint(const std::string& of_system, const std::string& name) const;

  // Whether it is selected, whatever its system is.
  bool Matches(const std::string& of_system, const std::string& name) const;

  static constexpr std::string_view kUserEventsSystem = "user_events";

  friend bool operator==(const Selector&, const Selector&) = default;
};

// The level that `text` is: 1..255, a name (critical, error, warning, info, verbose), or `*` for
// all.
std::optional<std::uint8_t> ParseLevel(std::string_view text);

// Parses `Provider[:level[:keyword mask[:keywords all]]]`, an exact EventHeader tracepoint name
// (`Provider_LxKy`), `system:event`, or a pattern of the latter. The level is one of ParseLevel;
// masks are decimal or 0x hexadecimal, and `*` in the place of the first is all.
// What follows a single colon is a level if it can be one, else the name or pattern of an event;
// `*` is both, so that nothing is selected less than meant. InvalidArgument says what is wrong and
// shows the forms.
absl::StatusOr<Selector> ParseSelector(std::string_view text);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_SELECTOR_H_
