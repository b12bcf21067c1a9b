// Splits TSDL, the language of a CTF 1.8 trace's metadata, into tokens.
#ifndef TOOLS_NETTRACE_IMPORT_CTF_TSDL_LEXER_H_
#define TOOLS_NETTRACE_IMPORT_CTF_TSDL_LEXER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tools::importing::ctf {

struct Token {
  enum class Kind : std::uint8_t { kEnd, kWord, kNumber, kText, kSign };
  Kind kind = Kind::kEnd;
  std::string text = {};     // for a kText, without quotes and with decoded escapes
  std::uint64_t number = 0;  // for kNumber
  std::size_t line = 1;

  bool IsSign(std::string_view sign) const { return kind == Kind::kSign && text == sign; }
  bool IsWord(std::string_view word) const { return kind == Kind::kWord && text == word; }
};

// Maximum size of a word or text, in bytes.
inline constexpr std::size_t kMaxWord = 64 << 10;

// Splits a text into tokens. Next returns one token after another, and kEnd after the last token.
class Lexer {
 public:
  // `text` must outlive this object.
  explicit Lexer(std::string_view text) : rest_(text) {}

  // Returns the next token. Fails with InvalidArgument, "line N: REASON".
  absl::StatusOr<Token> Next();

 private:
  absl::Status Error(std::string_view why) const;
  absl::Status SkipSpace();
  absl::StatusOr<Token> TakeNumber();
  absl::StatusOr<Token> TakeText(char quote);

  std::string_view rest_;
  std::size_t line_ = 1;
};

// Returns InvalidArgument, "line N: REASON".
absl::Status ErrorAt(std::size_t line, std::string_view why);

}  // namespace tools::importing::ctf

#endif  // TOOLS_NETTRACE_IMPORT_CTF_TSDL_LEXER_H_
