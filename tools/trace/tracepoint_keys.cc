#include "tools/trace/tracepoint_keys.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace trace {
namespace {

// Maximum number of pieces in all notes of a row.
constexpr std::size_t kMaxRowPieces = 4 * kMaxNotePieces;

constexpr std::string_view kHex = "hex";
constexpr std::array<std::string_view, 3> kUnary = {"!", "~", "-"};
// The parser takes the first operator that matches, so "<=" must be before its prefix "<".
constexpr std::array<std::string_view, 18> kBinary = {
    "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "<",
    ">",  "&",  "|",  "^",  "+",  "-",  "*",  "/",  "%"};

void AppendText(std::string_view text, std::string* out) {
  *out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') *out += '\\';
    if (c != '\0') *out += c;
  }
  *out += '"';
}

void AppendNumber(std::uint64_t number, bool is_unsigned, std::string* out) {
  if (is_unsigned) {
    absl::StrAppend(out, number, "u");
  } else {
    absl::StrAppend(out, static_cast<std::int64_t>(number));
  }
}

// NOLINTNEXTLINE(misc-no-recursion): recurses at most kMaxNoteDepth times.
void AppendPiece(const SymbolPiece& piece, std::string* out) {
  switch (piece.kind) {
    case SymbolPiece::Kind::kText:
      AppendText(piece.text, out);
      return;
    case SymbolPiece::Kind::kNumber:
      AppendNumber(piece.number, piece.is_unsigned, out);
      return;
    case SymbolPiece::Kind::kField:
      *out += piece.text;
      return;
    case SymbolPiece::Kind::kElement:
      absl::StrAppend(out, piece.text, "[", piece.number, "]");
      return;
    case SymbolPiece::Kind::kUnary:
      absl::StrAppend(out, "(", piece.text);
      AppendPiece(piece.arguments[0], out);
      *out += ')';
      return;
    case SymbolPiece::Kind::kBinary:
      *out += '(';
      AppendPiece(piece.arguments[0], out);
      *out += piece.text;
      AppendPiece(piece.arguments[1], out);
      *out += ')';
      return;
    case SymbolPiece::Kind::kConditional:
      *out += '(';
      AppendPiece(piece.arguments[0], out);
      *out += '?';
      AppendPiece(piece.arguments[1], out);
      *out += ':';
      AppendPiece(piece.arguments[2], out);
      *out += ')';
      return;
    case SymbolPiece::Kind::kCall:
      absl::StrAppend(out, piece.text, "(");
      for (std::size_t i = 0; i < piece.arguments.size(); ++i) {
        if (i != 0) *out += ',';
        AppendPiece(piece.arguments[i], out);
      }
      for (const auto& [number, text] : piece.names) {
        *out += ',';
        AppendNumber(number, /*is_unsigned=*/false, out);
        *out += '=';
        AppendText(text, out);
      }
      *out += ')';
      return;
  }
}

class Parser {
 public:
  Parser(std::string_view text, std::size_t max_pieces) : text_(text), pieces_left_(max_pieces) {}

  bool AtEnd() const { return text_.empty(); }
  std::size_t pieces_left() const { return pieces_left_; }

  bool Take(std::string_view token) {
    if (text_.substr(0, token.size()) != token) return false;
    text_.remove_prefix(token.size());
    return true;
  }

  // NOLINTNEXTLINE(misc-no-recursion): recurses at most kMaxNoteDepth times.
  bool TakePiece(int depth, SymbolPiece* piece) {
    if (depth >= kMaxNoteDepth || !Count() || text_.empty()) return false;
    const char first = text_.front();
    if (first == '"') {
      piece->kind = SymbolPiece::Kind::kText;
      return TakeText(&piece->text);
    }
    if (first == '(') return TakeOperation(depth, piece);
    if (first == '-' || absl::ascii_isdigit(static_cast<unsigned char>(first))) {
      piece->kind = SymbolPiece::Kind::kNumber;
      return TakeNumber(&piece->number, &piece->is_unsigned);
    }
    if (!TakeName(&piece->text)) return false;
    if (Take("(")) return TakeCall(depth, piece);
    piece->kind = SymbolPiece::Kind::kField;
    if (!Take("[")) return true;
    piece->kind = SymbolPiece::Kind::kElement;
    return text_.substr(0, 1) != "-" && TakeNumber(&piece->number, &piece->is_unsigned) &&
           !piece->is_unsigned && Take("]");
  }

 private:
  bool Count() {
    if (pieces_left_ == 0) return false;
    --pieces_left_;
    return true;
  }

  bool TakeText(std::string* out) {
    if (!Take("\"")) return false;
    while (!text_.empty()) {
      char c = text_.front();
      text_.remove_prefix(1);
      if (c == '"') return true;
      if (c == '\\') {
        if (text_.empty()) return false;
        c = text_.front();
        text_.remove_prefix(1);
        if (c != '"' && c != '\\') return false;
      }
      *out += c;
    }
    return false;
  }

  bool TakeNumber(std::uint64_t* number, bool* is_unsigned) {
    const std::size_t sign = text_.substr(0, 1) == "-" ? 1 : 0;
    const auto* const end = std::find_if_not(text_.begin() + sign, text_.end(), [](char c) {
      return absl::ascii_isdigit(static_cast<unsigned char>(c));
    });
    const absl::string_view digits(text_.data(), static_cast<std::size_t>(end - text_.begin()));
    text_.remove_prefix(digits.size());
    *is_unsigned = Take("u");
    if (*is_unsigned) return sign == 0 && absl::SimpleAtoi(digits, number);
    std::int64_t value = 0;
    // The number 0 has no sign, so "-0" is invalid.
    if (!absl::SimpleAtoi(digits, &value) || (value == 0 && sign != 0)) return false;
    *number = static_cast<std::uint64_t>(value);
    return true;
  }

  bool TakeName(std::string* out) {
    const std::size_t size = static_cast<std::size_t>(
        std::find_if_not(
            text_.begin(), text_.end(),
            [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }) -
        text_.begin());
    *out = std::string(text_.substr(0, size));
    text_.remove_prefix(size);
    return IsNoteName(*out);
  }

  // Returns whether the text begins with a minus that is the sign of an operation's first argument,
  // as in (-5+X). In (-5), the minus is the operator, because each operation has an operator.
  bool IsNegativeArgument() const {
    std::string_view rest = text_;
    const auto take_digits = [&rest] {
      const std::size_t end = std::min(rest.find_first_not_of("0123456789"), rest.size());
      rest.remove_prefix(end);
      return end != 0;
    };
    if (rest.substr(0, 1) != "-") return false;
    rest.remove_prefix(1);
    if (!take_digits()) return false;
    if (rest.substr(0, 1) == "u") rest.remove_prefix(1);
    return rest.substr(0, 1) != ")";
  }

  // NOLINTNEXTLINE(misc-no-recursion): recurses at most kMaxNoteDepth times.
  bool TakeOperation(int depth, SymbolPiece* piece) {
    Take("(");
    const bool is_number = IsNegativeArgument();
    for (const std::string_view op : kUnary) {
      if ((op == "-" && is_number) || !Take(op)) continue;
      piece->kind = SymbolPiece::Kind::kUnary;
      piece->text = std::string(op);
      return TakePiece(depth + 1, &piece->arguments.emplace_back()) && Take(")");
    }
    if (!TakePiece(depth + 1, &piece->arguments.emplace_back())) return false;
    if (Take("?")) {
      piece->kind = SymbolPiece::Kind::kConditional;
      return TakePiece(depth + 1, &piece->arguments.emplace_back()) && Take(":") &&
             TakePiece(depth + 1, &piece->arguments.emplace_back()) && Take(")");
    }
    for (const std::string_view op : kBinary) {
      if (!Take(op)) continue;
      piece->kind = SymbolPiece::Kind::kBinary;
      piece->text = std::string(op);
      return TakePiece(depth + 1, &piece->arguments.emplace_back()) && Take(")");
    }
    return false;
  }

  // NOLINTNEXTLINE(misc-no-recursion): recurses at most kMaxNoteDepth times.
  bool TakeCall(int depth, SymbolPiece* piece) {
    piece->kind = SymbolPiece::Kind::kCall;
    do {
      SymbolPiece argument;
      if (!TakePiece(depth + 1, &argument)) return false;
      if (argument.kind == SymbolPiece::Kind::kNumber && !argument.is_unsigned && Take("=")) {
        if (piece->arguments.empty()) return false;
        if (!TakeText(&piece->names.emplace_back(argument.number, "").second)) return false;
      } else if (piece->names.empty()) {
        piece->arguments.push_back(std::move(argument));
      } else {
        return false;
      }
    } while (Take(","));
    return Take(")");
  }

  std::string_view text_;
  std::size_t pieces_left_;
};

}  // namespace

bool IsNoteName(std::string_view name) {
  return !name.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(name.front())) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
         });
}

bool IsBinaryOperator(std::string_view text) {
  return std::find(kBinary.begin(), kBinary.end(), text) != kBinary.end();
}

std::string FormatTracepointNote(const TracepointNote& note) {
  std::string text;
  if (note.hex) text = kHex;
  for (const SymbolPiece& piece : note.pieces) {
    if (!text.empty()) text += ' ';
    AppendPiece(piece, &text);
  }
  return text;
}

std::optional<TracepointNote> ParseTracepointNote(std::string_view text, std::size_t* pieces_left) {
  TracepointNote note;
  if (text == kHex) {
    note.hex = true;
    return note;
  }
  const std::size_t max_pieces =
      pieces_left == nullptr ? kMaxNotePieces : std::min(*pieces_left, kMaxNotePieces);
  Parser parser(text, max_pieces);
  note.hex = parser.Take("hex ");
  bool fits = true;
  do {
    fits = parser.TakePiece(0, &note.pieces.emplace_back());
  } while (fits && parser.Take(" "));
  if (pieces_left != nullptr) *pieces_left -= max_pieces - parser.pieces_left();
  if (!fits || !parser.AtEnd()) return std::nullopt;
  return note;
}

absl::flat_hash_map<std::string, TracepointNote> ReadTracepointNotes(
    const nettrace::EventMetadata& metadata) {
  absl::flat_hash_map<std::string, TracepointNote> notes;
  std::size_t pieces_left = kMaxRowPieces;
  for (const auto& [key, value] : metadata.key_values) {
    const std::optional<std::string_view> name = ParseTracepointKey(key);
    if (!name) continue;
    if (std::optional<TracepointNote> note = ParseTracepointNote(value, &pieces_left)) {
      notes.try_emplace(std::string(*name), *std::move(note));
    }
  }
  return notes;
}

std::optional<std::string_view> ParseTracepointKey(std::string_view key) {
  const std::string_view prefix = kKeyTracepointField;
  if (key.substr(0, prefix.size()) != prefix) return std::nullopt;
  key.remove_prefix(prefix.size());
  return key;
}

}  // namespace trace
