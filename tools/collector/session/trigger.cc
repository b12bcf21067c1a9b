#include "tools/collector/session/trigger.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/base/text.h"
#include "tools/base/values.h"
#include "tools/collector/session/selector.h"

namespace collector {
namespace {

constexpr std::size_t kMaxText = 4096;

bool IsSpace(char c) { return c == ' ' || c == '\t'; }

// Returns whether `c` may be in a field name that is not in quotes. Bytes of non-ASCII characters
// are permitted.
bool IsInName(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// Reads the text from its start to its end. After an error, error_ has the reason, and at_ is the
// place of the error.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<Trigger> Parse() {
    Trigger trigger;
    trigger.text = std::string(text_);
    if (text_.size() > kMaxText) {
      Fail(absl::StrCat("longer than ", kMaxText, " bytes (", text_.size(), ")"));
    } else if (ParseEvent(&trigger)) {
      ParseConditions(&trigger);
    }
    if (error_.empty()) return trigger;
    return absl::InvalidArgumentError(absl::StrCat(
        "trigger '", base::Printable(text_.substr(0, 200)), "', column ", at_ + 1, ": ", error_,
        "; use Provider:Event[:level] [where field == value [and ...]], e.g. "
        "'Shop:Request where status >= 500'"));
  }

 private:
  bool Fail(std::string_view why) {
    error_ = std::string(why);
    return false;
  }
  void SkipSpace() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
  }
  bool IsAtEnd() {
    SkipSpace();
    return at_ == text_.size();
  }
  bool Take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  // Takes the word `word` if no character of a name follows it.
  bool TakeWord(std::string_view word) {
    SkipSpace();
    const std::string_view rest = text_.substr(at_);
    if (!rest.starts_with(word)) return false;
    if (rest.size() > word.size() && IsInName(rest[word.size()])) return false;
    at_ += word.size();
    return true;
  }

  // Takes the text up to the next colon or space.
  std::string TakePart() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ':' && !IsSpace(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  bool ParseEvent(Trigger* trigger) {
    SkipSpace();
    trigger->provider = TakePart();
    if (trigger->provider.empty()) return Fail("the name of the provider is missing");
    if (!Take(":"))
      return Fail(
          "expected a colon and the name of an event after the provider; '*' matches any event");
    trigger->event = TakePart();
    if (trigger->event.empty())
      return Fail("the name of the event is missing; '*' matches any event");
    if (Take(":")) {
      const std::size_t begin = at_;
      const absl::StatusOr<std::uint8_t> level = base::ParseLevel(TakePart());
      if (!level.ok()) {
        at_ = begin;
        return Fail("the level is not 1..255, critical, error, warning, info or verbose");
      }
      trigger->max_level = *level;
    }
    if (at_ < text_.size() && text_[at_] == ':') return Fail("unexpected ':' after the level");
    return true;
  }

  bool ParseConditions(Trigger* trigger) {
    if (IsAtEnd()) return true;
    if (!TakeWord("where")) return Fail("expected 'where' or the end of the trigger");
    do {
      if (trigger->where.size() == Trigger::kMaxConditions) return Fail("more than 16 comparisons");
      if (!ParseCondition(&trigger->where.emplace_back())) return false;
    } while (TakeWord("and") || Take("&&"));
    return IsAtEnd() || Fail("expected 'and' or the end of the trigger");
  }

  bool ParseCondition(Trigger::Condition* condition) {
    do {
      SkipSpace();
      if (condition->field.size() == Trigger::kMaxDepth)
        return Fail("more than 15 dots in a field");
      if (!ParseName(&condition->field.emplace_back())) return false;
    } while (Take("."));
    SkipSpace();
    const std::size_t begin = at_;
    const std::optional<Trigger::Comparison> comparison = ParseComparison();
    if (!comparison) return Fail("expected one of == != < <= > >=");
    condition->comparison = *comparison;
    SkipSpace();
    if (!ParseValue(&condition->value)) return false;
    const bool has_order =
        *comparison != Trigger::Comparison::kEqual && *comparison != Trigger::Comparison::kNotEqual;
    if (has_order && (std::holds_alternative<bool>(condition->value) ||
                      std::holds_alternative<std::string>(condition->value))) {
      at_ = begin;
      return Fail("strings, true and false can be compared only with == or !=");
    }
    return true;
  }

  bool ParseName(std::string* name) {
    if (at_ < text_.size() && text_[at_] == '"') return ParseQuoted(name);
    const std::size_t begin = at_;
    while (at_ < text_.size() && IsInName(text_[at_])) ++at_;
    *name = std::string(text_.substr(begin, at_ - begin));
    return !name->empty() || Fail("expected the name of a field");
  }

  std::optional<Trigger::Comparison> ParseComparison() {
    using Comparison = Trigger::Comparison;
    if (Take("==")) return Comparison::kEqual;
    if (Take("!=")) return Comparison::kNotEqual;
    if (Take("<=")) return Comparison::kLessOrEqual;
    if (Take(">=")) return Comparison::kGreaterOrEqual;
    if (Take("<")) return Comparison::kLess;
    if (Take(">")) return Comparison::kGreater;
    return std::nullopt;
  }

  // Takes a quoted text, in which \" and \\ stand for " and \.
  bool ParseQuoted(std::string* value) {
    const std::size_t begin = at_;
    for (++at_; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c == '\\') {
        if (++at_ == text_.size()) break;
        c = text_[at_];
        if (c != '"' && c != '\\')
          return Fail("invalid escape in a string; \\\" and \\\\ are valid");
      }
      value->push_back(c);
    }
    at_ = begin;
    return Fail("the closing \" is missing");
  }

  bool ParseValue(Trigger::Value* value) {
    if (at_ < text_.size() && text_[at_] == '"') return ParseQuoted(&value->emplace<std::string>());
    const std::size_t begin = at_;
    const auto is_of_value = [](char c) { return IsInName(c) || c == '.' || c == '-' || c == '+'; };
    while (at_ < text_.size() && is_of_value(text_[at_])) ++at_;
    const std::string word(text_.substr(begin, at_ - begin));
    if (ParseWord(word, value)) return true;
    at_ = begin;
    return Fail("expected a number, true, false or a string in \"\"");
  }

  static bool ParseWord(const std::string& word, Trigger::Value* value) {
    if (word == "true" || word == "false") {
      *value = word == "true";
      return true;
    }
    const bool is_negative = word.starts_with('-');
    if (const auto number = base::ParseUint64(std::string_view(word).substr(is_negative))) {
      constexpr std::uint64_t kMaxSigned = std::uint64_t{1} << 63;
      if (is_negative && *number > kMaxSigned) return false;
      if (is_negative) {
        *value = static_cast<std::int64_t>(-*number);
      } else if (*number < kMaxSigned) {
        *value = static_cast<std::int64_t>(*number);
      } else {
        *value = *number;
      }
      return true;
    }
    double real = 0;
    if (word.empty() || word.find_first_not_of("0123456789.eE+-") != std::string::npos ||
        !absl::SimpleAtod(word, &real)) {
      return false;
    }
    *value = real;
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string error_;
};

}  // namespace

absl::StatusOr<Trigger> ParseTrigger(std::string_view text) { return Parser(text).Parse(); }

}  // namespace collector
