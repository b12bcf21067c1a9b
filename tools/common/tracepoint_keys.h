// The keys in the metadata rows of kernel tracepoints that keep what their `print fmt` says about
// the fields: the names of enumerators and flags, which numbers are hexadecimal, which bytes are an
// address. This is the contract between the recorder, which writes them, and the programs that read
// them.
//
//   Tracepoint.Field.NAME   how the field NAME is shown, where that is not as its type says
//
//   VALUE = "hex" | ["hex "] PIECE {" " PIECE}
//   PIECE = TEXT | NUMBER | NAME | NAME "[" NUMBER "]" | CALL
//         | "(" UNARY PIECE ")" | "(" PIECE BINARY PIECE ")" | "(" PIECE "?" PIECE ":" PIECE ")"
//   CALL  = FUNCTION "(" PIECE {"," PIECE} {"," NUMBER "=" TEXT} ")"
//   TEXT  = '"', bytes other than NUL, '"'; a backslash stands before '"' and backslash
//   NUMBER = ["-"] decimal digits ["u"], the u for one that is unsigned in C
//
// `hex` says that the number is shown in hexadecimal. The pieces are what `print fmt` shows in
// place of the number, one after another without the spaces: its symbol. NAME is a field of the
// same event; the operators are those of C on numbers of 64 bits. The functions:
//
//   symbol(X, N=TEXT...)       the text of the number that X is; X in hexadecimal if it is none
//   flags(X, TEXT, N=TEXT...)  the texts of the bits of X, with TEXT between; 0x... for other bits
//   hex(X) hex(X,W) oct(X)     digits, at least W of them
//   char(X)                    the character
//   u8(X) u16(X) u32(X) s8(X) s16(X) s32(X)   casts
//   ipv4(F) ipv6(F) sockaddr(F) uuid(F) guid(F)   of the field F, an array of bytes
//   size(F)                    the number of bytes that the array F has
//   bytes(F,N,TEXT)            the first N bytes in hexadecimal, with TEXT between
//   array(F,N)                 the first N numbers in hexadecimal: {0x1,0x2}
//   cpus(F)                    the numbers of the bits that are set, as ranges: 0-3,8
//   kernel(F)                  the kernel's symbol of the address that F is
//
// The kernel's symbols are known where the recording is made. An event whose fields have some has a
// label for each:
//
//   Symbol.NAME             the symbol of the address in the field NAME: "tcp_sendmsg+0x4a"
//
// A value that does not follow the grammar, or is larger than the limits below, is no note; a piece
// that cannot be evaluated leaves the field without a symbol.
#ifndef TOOLS_COMMON_TRACEPOINT_KEYS_H_
#define TOOLS_COMMON_TRACEPOINT_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "nettrace/schema.h"

namespace tools {

inline constexpr char kKeyTracepointField[] = "Tracepoint.Field.";  // + NAME
inline constexpr char kSymbolLabel[] = "Symbol.";                   // + NAME

// A part of what is shown.
struct SymbolPiece {
  enum class Kind : std::uint8_t {
    kText,         // `text`
    kNumber,       // `number`
    kField,        // the field `text`
    kElement,      // element `number` of the field `text`
    kUnary,        // the operator `text` on one argument
    kBinary,       // the operator `text` on two
    kConditional,  // if the first argument is not 0, the second, else the third
    kCall,         // the function `text`
  };
  Kind kind = Kind::kText;
  bool is_unsigned = false;  // the number
  std::uint64_t number = 0;
  std::string text;
  std::vector<SymbolPiece> arguments;
  std::vector<std::pair<std::uint64_t, std::string>> names;  // of symbol and flags

  friend bool operator==(const SymbolPiece&, const SymbolPiece&) = default;
};

// The value of Tracepoint.Field.NAME.
struct TracepointNote {
  bool hex = false;
  std::vector<SymbolPiece> pieces;

  bool empty() const { return !hex && pieces.empty(); }
  friend bool operator==(const TracepointNote&, const TracepointNote&) = default;
};

// Limits of a note: what it takes in memory, and what evaluating it may cost an event.
inline constexpr std::size_t kMaxNotePieces = 1024;  // names of numbers among them
inline constexpr int kMaxNoteDepth = 32;

// Whether a note can name the field: its name is one of C.
bool IsNoteName(std::string_view name);
bool IsBinaryOperator(std::string_view text);

std::string FormatTracepointNote(const TracepointNote& note);
// nullopt if `text` is not the value of such a key, or passes the limits. With `pieces_left` it may
// have no more pieces than that, and they are taken from it: so the notes of a row are bounded.
std::optional<TracepointNote> ParseTracepointNote(std::string_view text,
                                                  std::size_t* pieces_left = nullptr);
// The notes of a row by their fields' names; of several on one field the first.
absl::flat_hash_map<std::string, TracepointNote> ReadTracepointNotes(
    const nettrace::EventMetadata& metadata);
// NAME, if `key` is a Tracepoint.Field.NAME.
std::optional<std::string_view> ParseTracepointKey(std::string_view key);

}  // namespace tools

#endif  // TOOLS_COMMON_TRACEPOINT_KEYS_H_
