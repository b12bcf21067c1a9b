#include "tools/eventheader/name_problem.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "eventheader/tracepoint_name.h"

namespace tools {
namespace {

struct Numbers {
  std::uint64_t level = 0;
  std::uint64_t keyword = 0;
  std::string_view options;
};

// Removes `letter`, in upper or lower case, and the hex digits after it from the front of `*text`.
// Returns the value of the digits, or nullopt if `*text` does not begin with the letter and digits,
// or if the value needs more than 64 bits.
std::optional<std::uint64_t> TakeNumber(char letter, std::string_view* text) {
  if (text->empty() || absl::ascii_toupper(static_cast<unsigned char>(text->front())) != letter) {
    return std::nullopt;
  }
  std::size_t end = 1;
  while (end < text->size() && absl::ascii_isxdigit(static_cast<unsigned char>((*text)[end]))) {
    ++end;
  }
  std::uint64_t number = 0;
  if (!absl::SimpleHexAtoi(absl::string_view(text->data() + 1, end - 1), &number)) {
    return std::nullopt;
  }
  text->remove_prefix(end);
  return number;
}

// Parses the level, keyword and options of a name, such as "L4K1Goptions". Accepts upper and lower
// case and leading zeros.
std::optional<Numbers> ParseNumbers(std::string_view text) {
  const auto level = TakeNumber('L', &text);
  if (!level) return std::nullopt;
  const auto keyword = TakeNumber('K', &text);
  if (!keyword) return std::nullopt;
  return Numbers{*level, *keyword, text};
}

}  // namespace

std::string NameProblem(std::string_view name) {
  if (eh::ParseTracepointName(name)) return "";
  if (name.size() > eh::kMaxTracepointName) {
    return absl::StrCat("it has ", name.size(), " characters; the maximum is ",
                        eh::kMaxTracepointName);
  }
  const std::size_t underscore = name.rfind('_');
  const auto numbers = underscore == std::string_view::npos
                           ? std::nullopt
                           : ParseNumbers(name.substr(underscore + 1));
  if (!numbers) return "missing suffix _L<level>K<keyword>; example: MyCompany_MyService_L4K1";
  const std::string_view provider = name.substr(0, underscore);
  if (!eh::IsValidProviderName(provider)) {
    return "invalid provider name; use letters, digits and _, and do not start with a digit";
  }
  if (numbers->level == 0 || numbers->level > 255) {
    return "invalid level; use hexadecimal digits, 1 to ff";
  }
  if (!eh::AreValidOptions(numbers->options)) {
    return "invalid options; use upper-case letters in ascending order, each followed by any "
           "number of lower-case letters and digits";
  }
  std::array<char, eh::kMaxTracepointName + 1> right;
  const std::size_t size = eh::FormatTracepointName(
      {provider, static_cast<std::uint8_t>(numbers->level), numbers->keyword, numbers->options},
      right);
  return absl::StrCat(
      "level and keyword must be lower-case hexadecimal without leading zeros; use '",
      absl::string_view(right.data(), size), "'");
}

}  // namespace tools
