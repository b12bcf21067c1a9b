#include "tools/eventheader/registrations.h"

#include <array>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "eventheader/tracepoint_name.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"

namespace tools {
namespace {

using collector::UserEventDefinition;

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }
std::string_view View(absl::string_view text) { return {text.data(), text.size()}; }

// Maximum count of numbers in a range. There are only 255 levels, so this limits only ranges of
// keywords.
constexpr std::uint64_t kMaxRange = 256;

// Parses a list such as "1-4,8" of numbers from `min` to `max`. Fails with InvalidArgument for a
// wrong number, for a range of more than kMaxRange numbers, and if an element of the list follows
// more than kMaxTracepoints numbers. The result has at most kMaxTracepoints + kMaxRange numbers.
absl::StatusOr<std::vector<std::uint64_t>> ParseNumbers(const char* what, const std::string& text,
                                                        std::uint64_t min, std::uint64_t max) {
  std::vector<std::uint64_t> numbers;
  const auto wrong = [&](absl::string_view part) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " ", text, ": invalid number or range '", part, "'; use ", min, " to ", max,
        ", and in a range the smaller number first, e.g. '1-4', '1,2,4' or "
        "'0x1,0x2'"));
  };
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> range =
        absl::StrSplit(part, absl::MaxSplits('-', 1));
    const bool is_range = range.first.size() != part.size();
    const auto first = base::ParseUint64(View(range.first));
    const auto last = is_range ? base::ParseUint64(View(range.second)) : first;
    if (!first || !last || *first < min || *last > max || *first > *last) return wrong(part);
    if (*last - *first >= kMaxRange) {
      return absl::InvalidArgumentError(absl::StrCat(what, " ", text, ": the range '", part,
                                                     "' has more than ", kMaxRange,
                                                     " numbers; split it"));
    }
    if (numbers.size() > Registrations::kMaxTracepoints) {
      return absl::InvalidArgumentError(absl::StrCat(what, " ", text, ": more than ",
                                                     Registrations::kMaxTracepoints,
                                                     " numbers, the maximum; use fewer"));
    }
    for (std::uint64_t number = *first;; ++number) {
      numbers.push_back(number);
      if (number == *last) break;
    }
  }
  return numbers;
}

// Parses the words of a line after the provider's name. Fails with InvalidArgument for an unknown
// option or a missing value.
absl::StatusOr<ProviderSets> ParseSets(const std::vector<absl::string_view>& words) {
  ProviderSets sets;
  for (std::size_t i = 1; i < words.size(); i += 2) {
    std::string* value = words[i] == "--levels"     ? &sets.levels
                         : words[i] == "--keywords" ? &sets.keywords
                         : words[i] == "--group"    ? &sets.group
                                                    : nullptr;
    if (value == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown option '", words[i], "'; use --levels, --keywords and --group"));
    }
    if (i + 1 == words.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(words[i], ": missing value; put it after the option"));
    }
    *value = std::string(words[i + 1]);
  }
  return sets;
}

// Returns the line without its comment. A # within a word does not begin a comment, so that no name
// is cut silently.
absl::string_view WithoutComment(absl::string_view line) {
  for (std::size_t at = line.find('#'); at != absl::string_view::npos;
       at = line.find('#', at + 1)) {
    if (at == 0 || absl::ascii_isspace(static_cast<unsigned char>(line[at - 1]))) {
      return line.substr(0, at);
    }
  }
  return line;
}

}  // namespace

void Registrations::AddError(const std::string& origin, std::string_view message) {
  ++error_count_;
  if (errors_.size() >= kMaxErrors) return;
  errors_.push_back(origin.empty() ? std::string(message)
                                   : absl::StrCat(origin, ": ", View(message)));
}

void Registrations::AddDefinition(UserEventDefinition definition, const std::string& origin) {
  const auto [entry, is_new] = by_name_.try_emplace(definition.name, definitions_.size());
  if (!is_new) {
    const UserEventDefinition& other = definitions_[entry->second];
    if (other == definition) return;
    const std::string& place = origins_[definition.name];
    AddError(origin, absl::StrCat(definition.name, " is defined as '", other.fields, "' ",
                                  place.empty() ? "before" : absl::StrCat("in ", place),
                                  ", here as '", definition.fields, "'; remove one of them"));
    return;
  }
  if (definitions_.size() == kMaxTracepoints) {
    by_name_.erase(entry);
    // Reports the error once, not for each further tracepoint.
    const std::string message = absl::StrCat(
        "more than ", kMaxTracepoints, " tracepoints, the maximum of one command; register fewer");
    if (errors_.empty() || !absl::StrContains(errors_.back(), message)) AddError(origin, message);
    return;
  }
  if (!origin.empty()) origins_[definition.name] = origin;
  definitions_.push_back(std::move(definition));
}

absl::Status Registrations::AddProvider(std::string_view provider, const ProviderSets& sets,
                                        const std::string& origin) {
  if (!eh::IsValidProviderName(provider)) {
    return absl::InvalidArgumentError(
        absl::StrCat("invalid provider name '", View(provider),
                     "'; use letters, digits and _, and do not start with a digit"));
  }
  if (sets.levels.empty() || sets.keywords.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(View(provider), ": a provider needs --levels and --keywords, e.g. '",
                     View(provider), " --levels 1-4 --keywords 0x1'"));
  }
  if (!eh::IsValidGroup(sets.group)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--group ", sets.group, ": use lower-case letters and digits"));
  }
  ASSIGN_OR_RETURN(const auto levels, ParseNumbers("--levels", sets.levels, 1, 255));
  ASSIGN_OR_RETURN(const auto keywords,
                   ParseNumbers("--keywords", sets.keywords, 0, ~std::uint64_t{0}));
  if (levels.size() * keywords.size() > kMaxTracepoints) {
    return absl::InvalidArgumentError(absl::StrCat(
        View(provider), ": levels and keywords result in ", levels.size() * keywords.size(),
        " tracepoints; the maximum is ", kMaxTracepoints, "; use fewer of them"));
  }
  const std::string options = sets.group.empty() ? "" : "G" + sets.group;
  for (const std::uint64_t level : levels) {
    for (const std::uint64_t keyword : keywords) {
      std::array<char, eh::kMaxTracepointName + 1> name;
      const std::size_t size = eh::FormatTracepointName(
          {provider, static_cast<std::uint8_t>(level), keyword, options}, name);
      if (size == 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            View(provider), ": a tracepoint name would have more than ", eh::kMaxTracepointName,
            " characters; shorten the name of the provider or the group"));
      }
      AddDefinition({.name = std::string(name.data(), size)}, origin);
    }
  }
  return absl::OkStatus();
}

void Registrations::AddWord(std::string_view word, const ProviderSets& sets) {
  const bool is_definition = word.find_first_of(" \t;") != std::string_view::npos;
  if (!sets.empty() && !is_definition && !eh::ParseTracepointName(word)) {
    if (const absl::Status status = AddProvider(word, sets, ""); !status.ok()) {
      AddError("", View(status.message()));
    }
    return;
  }
  AddLine(word, "");
}

void Registrations::AddLine(std::string_view line, const std::string& origin) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(View(line), absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (words.size() > 1 && absl::StartsWith(words[1], "--")) {
    const auto sets = ParseSets(words);
    const absl::Status status =
        sets.ok() ? AddProvider(View(words[0]), *sets, origin) : sets.status();
    if (!status.ok()) AddError(origin, View(status.message()));
    return;
  }
  auto definition = collector::ParseUserEventDefinition(line);
  if (definition.ok()) {
    AddDefinition(*std::move(definition), origin);
  } else {
    AddError(origin, View(definition.status().message()));
  }
}

void Registrations::AddText(std::string_view text, const std::string& file) {
  if (text.size() > kMaxText) {
    AddError(file, absl::StrCat("the text has more than ", kMaxText,
                                " bytes; split it into several files"));
    return;
  }
  std::size_t number = 0;
  for (const absl::string_view line : absl::StrSplit(View(text), '\n')) {
    ++number;
    const absl::string_view content = absl::StripAsciiWhitespace(WithoutComment(line));
    if (!content.empty()) AddLine(View(content), absl::StrCat(file, ":", number));
  }
}

}  // namespace tools
