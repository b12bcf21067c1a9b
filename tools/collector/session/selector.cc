#include "tools/collector/session/selector.h"

#include <fnmatch.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "eventheader/tracepoint_name.h"
#include "tools/base/text.h"
#include "tools/base/values.h"
#include "tools/collector/perf/user_registers.h"

namespace collector {
namespace {

// Returns whether `text` is not empty and consists of letters, digits, "_-." and the characters in
// `also`.
bool IsName(std::string_view text, std::string_view also) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [also](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.' ||
           also.find(c) != std::string_view::npos;
  });
}

constexpr std::string_view kPatternCharacters = "*?[]!^";

bool IsPattern(std::string_view text) {
  return text.find_first_of("*?[") != std::string_view::npos;
}

bool MatchesPattern(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

absl::Status Bad(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("selector '", std::string(text), "': ", std::string(why),
                   "; use Provider[:level[:keyword mask[:keywords all]]], Provider_LxKy, "
                   "system:event or a pattern of it, such as 'sched:*'"));
}

}  // namespace

bool Selector::MatchesUserEvent(const std::string& name) const {
  if (MatchesTracepoint(std::string(kUserEventsSystem), name)) return true;
  if (provider.empty()) return false;
  const auto parsed = eh::ParseTracepointName(name);
  if (!parsed) return false;
  if (parsed->level > max_level) return false;
  if (parsed->keyword != 0 &&
      ((parsed->keyword & keyword_mask) == 0 || (parsed->keyword & keyword_all) != keyword_all)) {
    return false;
  }
  return MatchesPattern(provider, std::string(parsed->provider));
}

bool Selector::MatchesSystem(const std::string& name) const {
  if (kind == Kind::kTracepoint) return system == name;
  return kind == Kind::kPattern && MatchesPattern(system, name);
}

bool Selector::MatchesTracepoint(const std::string& of_system, const std::string& name) const {
  if (!MatchesSystem(of_system)) return false;
  return kind == Kind::kTracepoint ? event == name : MatchesPattern(event, name);
}

bool Selector::Matches(const std::string& of_system, const std::string& name) const {
  return of_system == kUserEventsSystem ? MatchesUserEvent(name)
                                        : MatchesTracepoint(of_system, name);
}

absl::StatusOr<Selector> ParseSelector(std::string_view text) {
  Selector selector;
  selector.text = std::string(text);
  const std::vector<std::string> parts =
      absl::StrSplit(absl::string_view(text.data(), text.size()), ':');
  if (parts.size() > 4) return Bad(text, "it has more than 3 colons");

  const absl::StatusOr<std::uint8_t> level =
      parts.size() >= 2 ? base::ParseLevel(parts[1]) : base::kAllLevels;
  if (parts.size() == 2 &&
      (parts[1] == "*" || (!level.ok() && (IsPattern(parts[0]) || IsPattern(parts[1]))))) {
    if (!IsName(parts[0], kPatternCharacters) || !IsName(parts[1], kPatternCharacters)) {
      return Bad(text, "the pattern of the system or of the event is invalid");
    }
    selector.kind = Selector::Kind::kPattern;
    selector.system = parts[0];
    selector.event = parts[1];
    if (parts[1] == "*") selector.provider = parts[0];
    return selector;
  }
  if (parts.size() == 2 && !level.ok()) {
    if (!IsName(parts[0], "") || !IsName(parts[1], "") ||
        absl::ascii_isdigit(static_cast<unsigned char>(parts[1][0]))) {
      return Bad(text, "the colon must be followed by a level or the name of an event");
    }
    selector.kind = Selector::Kind::kTracepoint;
    selector.system = parts[0];
    selector.event = parts[1];
    return selector;
  }
  if (parts.size() == 1 && eh::ParseTracepointName(text)) {
    selector.kind = Selector::Kind::kTracepoint;
    selector.system = std::string(Selector::kUserEventsSystem);
    selector.event = selector.text;
    return selector;
  }
  if (!IsName(parts[0], kPatternCharacters))
    return Bad(text, "the provider is empty or not a name");
  selector.provider = parts[0];
  if (!level.ok())
    return Bad(text, "the level is not 1..255, critical, error, warning, info or verbose");
  selector.max_level = *level;
  if (parts.size() >= 3) {
    const std::optional<std::uint64_t> mask =
        parts[2] == "*" ? ~std::uint64_t{0} : base::ParseUint64(parts[2]);
    if (!mask) return Bad(text, "the keyword mask is not a number");
    selector.keyword_mask = *mask;
  }
  if (parts.size() == 4) {
    const std::optional<std::uint64_t> all = base::ParseUint64(parts[3]);
    if (!all) return Bad(text, "the mask of keywords that must all be set is not a number");
    selector.keyword_all = *all;
  }
  return selector;
}

StackOptions Selector::StacksFor(const std::string& of_system) const {
  StackOptions result = stacks.value_or(StackOptions());
  if (!stacks || result.any()) return result;
  result.user = true;
  result.kernel = of_system != kUserEventsSystem;
  return result;
}

absl::StatusOr<StackOptions> ParseStacks(std::string_view text, std::uint16_t limit) {
  StackOptions stacks;
  std::uint16_t copied_bytes = 0;
  const absl::string_view parts(text.data(), text.size());
  const auto fail = [parts](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat("invalid stacks \"", parts, "\": ", what...));
  };
  for (const absl::string_view part : absl::StrSplit(parts, ',', absl::SkipEmpty())) {
    std::uint32_t frames = 0;
    if (absl::StartsWith(part, "max=")) {
      if (!absl::SimpleAtoi(part.substr(4), &frames) || frames == 0 || frames > limit) {
        return fail("max= takes 1 to ", limit,
                    "; raise kernel.perf_event_max_stack for longer stacks, of up to 8190 frames");
      }
      stacks.max_frames = static_cast<std::uint16_t>(frames);
    } else if (absl::StartsWith(part, "stack=")) {
      const absl::string_view size = part.substr(6);
      const absl::StatusOr<std::uint64_t> bytes = base::ParseSize({size.data(), size.size()});
      if (!bytes.ok() || *bytes < StackOptions::kLeastCopy || *bytes > StackOptions::kMostCopy ||
          *bytes % 8 != 0) {
        return fail("stack= takes 1KiB to 56KiB, a multiple of 8 bytes");
      }
      copied_bytes = static_cast<std::uint16_t>(*bytes);
    } else if (part == "dwarf") {
      if (!CanCopyStacks()) return fail("dwarf needs x86-64 or arm64");
      stacks.copied_bytes = StackOptions::kUsualCopy;
    } else if (!stacks.any() && (part == "user" || part == "kernel" || part == "both")) {
      stacks.user = part != "kernel";
      stacks.kernel = part != "user";
    } else {
      return fail("examples: user, kernel, both, dwarf, max=30, user,max=30, dwarf,stack=16KiB");
    }
  }
  if (copied_bytes != 0 && stacks.copied_bytes == 0) return fail("stack= needs dwarf");
  if (stacks.copied_bytes != 0 && stacks.any() && !stacks.user) {
    return fail(
        "dwarf is for user stacks; use 'dwarf' or 'user,dwarf', or 'both,dwarf' to have "
        "kernel stacks, too");
  }
  if (copied_bytes != 0) stacks.copied_bytes = copied_bytes;
  return stacks;
}

std::string StacksText(const StackOptions& stacks) {
  std::string text;
  if (stacks.any()) text = !stacks.kernel ? "user" : stacks.user ? "both" : "kernel";
  const auto add = [&text](const auto&... part) {
    absl::StrAppend(&text, text.empty() ? "" : ",", part...);
  };
  if (stacks.copied_bytes != 0) add("dwarf");
  if (stacks.copied_bytes != 0 && stacks.copied_bytes != StackOptions::kUsualCopy) {
    add("stack=", stacks.copied_bytes, "B");
  }
  if (stacks.max_frames != 0) add("max=", stacks.max_frames);
  return text;
}

absl::StatusOr<std::uint32_t> ParseSampleRate(std::string_view text, std::uint32_t limit) {
  absl::string_view number(text.data(), text.size());
  absl::ConsumeSuffix(&number, "Hz");
  std::uint32_t rate = 0;
  const bool is_number = !number.empty() && std::all_of(number.begin(), number.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
  if (!is_number || !absl::SimpleAtoi(number, &rate) || rate == 0 || rate > limit) {
    return absl::InvalidArgumentError(absl::StrCat(
        "invalid rate \"", absl::string_view(text.data(), text.size()), "\": use 1Hz to ", limit,
        "Hz, for example 997Hz; kernel.perf_event_max_sample_rate of the recorded "
        "machine is the limit"));
  }
  return rate;
}

}  // namespace collector
