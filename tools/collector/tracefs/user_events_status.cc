#include "tools/collector/tracefs/user_events_status.h"

#include <algorithm>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace collector {
namespace {

// Lines that together have this size or more, in bytes, are not the name of an event. The size is
// larger than the kernel accepts for a name with its fields.
constexpr std::size_t kMaxStatusName = 512;

// Removes the totals at the end of the text of user_events_status. Returns the number of entries
// that the totals state, or no value if there are no totals.
std::optional<std::size_t> TakeTotals(std::string_view* text) {
  // The last match is used, because a name may contain this text.
  constexpr std::string_view kTotals = "\nActive: ";
  const std::size_t totals = text->rfind(kTotals);
  if (totals == std::string_view::npos) return std::nullopt;
  const absl::string_view number(text->data() + totals + kTotals.size(),
                                 text->size() - totals - kTotals.size());
  std::size_t entries = 0;
  const bool is_number = absl::SimpleAtoi(number.substr(0, number.find('\n')), &entries);
  *text = text->substr(0, totals);
  return is_number ? std::optional(entries) : std::nullopt;
}

// Removes the first line of `*text`, and splits it into the name and the users of the event.
UserEvent TakeLine(std::string_view* text) {
  const std::size_t end = std::min(text->find('\n'), text->size());
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  constexpr std::string_view kUsedBy = " # Used by ";
  const std::size_t name = std::min(line.find(' '), line.size());
  const std::size_t users = line.find(kUsedBy);
  return {line.substr(0, name), users == std::string_view::npos
                                    ? std::string_view()
                                    : line.substr(users + kUsedBy.size())};
}

const char* EndOf(std::string_view text) { return text.data() + text.size(); }

}  // namespace

bool IsFolderName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos;
}

std::size_t ForEachUserEvent(std::string_view text,
                             const std::function<void(const UserEvent&)>& found,
                             const std::function<bool(std::string_view)>& exists) {
  const std::optional<std::size_t> entries = TakeTotals(&text);
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  if (entries && *entries == lines) {
    while (!text.empty()) found(TakeLine(&text));
    return 0;
  }
  std::size_t questions = 0;
  const auto ask = [&](std::string_view name) {
    return IsFolderName(name) && questions < kMaxQuestions && (++questions, exists(name));
  };
  std::size_t unclear = 0;
  const char* passed = text.data();  // lines up to here belong to entries
  while (!text.empty()) {
    const std::string_view from_here = text;
    const UserEvent line = TakeLine(&text);
    if (ask(line.name)) {
      found(line);
      continue;
    }
    // If this line begins a name with line feeds, the name continues in the following lines, up to
    // a line with users. The following lines are also checked separately, because this line may
    // begin no name.
    std::string_view rest = line.used_by.empty() ? text : std::string_view();
    while (!rest.empty() && questions < kMaxQuestions) {
      const UserEvent next = TakeLine(&rest);
      const auto size = static_cast<std::size_t>(EndOf(next.name) - from_here.data());
      if (size >= kMaxStatusName) break;
      const UserEvent whole = {from_here.substr(0, size), next.used_by};
      if (ask(whole.name)) {
        found(whole);
        passed = std::max(passed, EndOf(whole.name));
        break;
      }
      if (!next.used_by.empty()) break;
    }
    if (EndOf(line.name) <= passed) continue;
    ++unclear;
    if (questions == kMaxQuestions) found(line);
  }
  return unclear;
}

}  // namespace collector
