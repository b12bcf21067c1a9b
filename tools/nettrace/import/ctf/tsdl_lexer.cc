#include "tools/nettrace/import/ctf/tsdl_lexer.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace tools::importing::ctf {
namespace {

bool IsWordByte(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$';
}

bool IsOctal(char c) { return c >= '0' && c <= '7'; }

// Removes at most `max` digits of `base` from the front of `text` and returns their value. Returns
// nullopt if there are none.
std::optional<unsigned> TakeDigits(std::string_view* text, int base, std::size_t max) {
  unsigned value = 0;
  const std::string_view digits = text->substr(0, max);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc()) return std::nullopt;
  text->remove_prefix(static_cast<std::size_t>(end - digits.data()));
  return value;
}

// Removes the characters that follow a backslash from `text`, and appends the character that they
// stand for to `out`. Returns false if they are not a known escape.
bool TakeEscape(std::string_view* text, std::string* out) {
  if (text->empty()) return false;
  const char c = text->front();
  if (IsOctal(c)) {
    *out += static_cast<char>(*TakeDigits(text, 8, 3));
    return true;
  }
  text->remove_prefix(1);
  if (c == 'x') {
    const std::optional<unsigned> value = TakeDigits(text, 16, 2);
    if (value) *out += static_cast<char>(*value);
    return value.has_value();
  }
  constexpr std::string_view kNames = "abfnrtv";
  constexpr std::string_view kValues = "\a\b\f\n\r\t\v";
  const std::size_t place = kNames.find(c);
  if (place == kNames.npos && absl::ascii_isalnum(static_cast<unsigned char>(c))) return false;
  *out += place == kNames.npos ? c : kValues[place];
  return true;
}

}  // namespace

absl::Status ErrorAt(std::size_t line, std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("line ", line, ": ", absl::string_view(why.data(), why.size())));
}

absl::Status Lexer::Error(std::string_view why) const { return ErrorAt(line_, why); }

absl::Status Lexer::SkipSpace() {
  while (!rest_.empty()) {
    if (rest_.starts_with("/*")) {
      const std::size_t end = rest_.find("*/", 2);
      if (end == rest_.npos) return Error("a comment has no '*/' at its end");
      line_ += static_cast<std::size_t>(std::count(rest_.begin(), rest_.begin() + end, '\n'));
      rest_.remove_prefix(end + 2);
    } else if (rest_.starts_with("//")) {
      rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
    } else if (absl::ascii_isspace(static_cast<unsigned char>(rest_.front()))) {
      if (rest_.front() == '\n') ++line_;
      rest_.remove_prefix(1);
    } else {
      break;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Token> Lexer::TakeNumber() {
  Token token{.kind = Token::Kind::kNumber, .line = line_};
  int base = 10;
  if (rest_.starts_with("0x") || rest_.starts_with("0X")) {
    base = 16;
    rest_.remove_prefix(2);
  } else if (rest_.starts_with("0b") || rest_.starts_with("0B")) {
    base = 2;
    rest_.remove_prefix(2);
  } else if (rest_.size() > 1 && rest_[0] == '0' && IsOctal(rest_[1])) {
    base = 8;
  }
  const char* const begin = rest_.data();
  const auto [end, error] = std::from_chars(begin, begin + rest_.size(), token.number, base);
  if (error != std::errc())
    return Error(error == std::errc::result_out_of_range ? "a number does not fit into 64 bits"
                                                         : "a number has no digits");
  rest_.remove_prefix(static_cast<std::size_t>(end - begin));
  while (!rest_.empty() && std::string_view("uUlL").find(rest_.front()) != std::string_view::npos) {
    rest_.remove_prefix(1);
  }
  if (!rest_.empty() && IsWordByte(rest_.front())) return Error("a number ends in letters");
  return token;
}

absl::StatusOr<Token> Lexer::TakeText(char quote) {
  Token token{.kind = Token::Kind::kText, .line = line_};
  rest_.remove_prefix(1);
  while (!rest_.empty() && rest_.front() != quote && rest_.front() != '\n') {
    if (token.text.size() >= kMaxWord) {
      return Error(absl::StrCat("a string literal is longer than ", kMaxWord, " bytes"));
    }
    const char c = rest_.front();
    rest_.remove_prefix(1);
    if (c != '\\') {
      token.text += c;
    } else if (!TakeEscape(&rest_, &token.text)) {
      return Error("a string literal has an invalid escape sequence; valid are e.g. \\n and \\x41");
    }
  }
  if (rest_.empty() || rest_.front() != quote) {
    return Error("a string literal has no closing quote on its line");
  }
  rest_.remove_prefix(1);
  return token;
}

absl::StatusOr<Token> Lexer::Next() {
  RETURN_IF_ERROR(SkipSpace());
  Token token{.line = line_};
  if (rest_.empty()) return token;
  const char c = rest_.front();
  if (absl::ascii_isdigit(static_cast<unsigned char>(c))) return TakeNumber();
  if (c == '"' || c == '\'') return TakeText(c);
  std::size_t size = 0;
  if (IsWordByte(c)) {
    token.kind = Token::Kind::kWord;
    while (size < rest_.size() && IsWordByte(rest_[size])) ++size;
    if (size > kMaxWord) return Error(absl::StrCat("a name is longer than ", kMaxWord, " bytes"));
  } else {
    token.kind = Token::Kind::kSign;
    size = rest_.starts_with("...")                             ? 3
           : rest_.starts_with(":=") || rest_.starts_with("->") ? 2
                                                                : 1;
    if (size == 1 && std::string_view("{}[]()<>;:,=.*+-").find(c) == std::string_view::npos) {
      return Error(absl::StrCat("unexpected byte 0x",
                                absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2)));
    }
  }
  token.text = std::string(rest_.substr(0, size));
  rest_.remove_prefix(size);
  return token;
}

}  // namespace tools::importing::ctf
