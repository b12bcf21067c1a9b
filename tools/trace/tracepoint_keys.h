// Keys in the metadata rows of kernel tracepoints. They keep what `print fmt` states about the
// fields: the names of enumerators and flags, which numbers are hexadecimal, and which bytes are an
// address. The collector writes them, and programs that show traces read them.
//
//   Tracepoint.Field.NAME   how the field NAME is shown, if its type does not define that
//
//   VALUE = "hex" | ["hex "] PIECE {" " PIECE}
//   PIECE = TEXT | NUMBER | NAME | NAME "[" NUMBER "]" | CALL
//         | "(" UNARY PIECE ")" | "(" PIECE BINARY PIECE ")" | "(" PIECE "?" PIECE ":" PIECE ")"
//   CALL  = FUNCTION "(" PIECE {"," PIECE} {"," NUMBER "=" TEXT} ")"
//   TEXT  = '"', bytes other than NUL, '"'; a backslash precedes each '"' and backslash
//   NUMBER = ["-"] decimal digits ["u"]; the u marks a number that is unsigned in C. The minus is
//            an operator in "(-5)", and the sign of the number in "(-5+X)"
//
// `hex` means that the number is shown in hexadecimal. The pieces, joined without the spaces, are
// the symbol that `print fmt` shows in place of the number. NAME is a field of the same event. The
// operators are those of C, on numbers of 64 bits. The functions:
//
//   symbol(X, N=TEXT...)       the text of the number X; X in hexadecimal if it has none
//   flags(X, TEXT, N=TEXT...)  the texts of the bits of X, with TEXT between; 0x... for other bits
//   hex(X) hex(X,W) oct(X)     digits, at least W of them
//   char(X)                    the character
//   u8(X) u16(X) u32(X) s8(X) s16(X) s32(X)   casts
//   ipv4(F) ipv6(F) sockaddr(F) uuid(F) guid(F)   the value of the field F, an array of bytes
//   size(F)                    the size of the array F in bytes
//   bytes(F,N,TEXT)            the first N bytes in hexadecimal, with TEXT between
//   array(F,N)                 the first N numbers in hexadecimal: {0x1,0x2}
//   cpus(F)                    the numbers of the bits that are set, as ranges: 0-3,8
//   kernel(F)                  the kernel's symbol of the address in F
//
// Kernel symbols are known only on the recording machine and at the time of the recording. An event
// with fields that need kernel symbols has a label for each:
//
//   Symbol.NAME             the symbol of the address in the field NAME: "tcp_sendmsg+0x4a"
//
// A value that does not follow the grammar or exceeds the limits below is ignored. If a piece
// cannot be evaluated, the field has no symbol.
#ifndef TOOLS_TRACE_TRACEPOINT_KEYS_H_
#define TOOLS_TRACE_TRACEPOINT_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "nettrace/schema.h"

namespace trace {

inline constexpr char kKeyTracepointField[] = "Tracepoint.Field.";  // followed by NAME
inline constexpr char kSymbolLabel[] = "Symbol.";                   // followed by NAME

// A PIECE of the grammar at the beginning of this file.
struct SymbolPiece {
  enum class Kind : std::uint8_t {
    kText,         // `text`
    kNumber,       // `number`
    kField,        // the field `text`
    kElement,      // element `number` of the field `text`
    kUnary,        // the operator `text` on one argument
    kBinary,       // the operator `text` on two arguments
    kConditional,  // the second argument if the first is not 0, else the third
    kCall,         // the function `text`
  };
  Kind kind = Kind::kText;
  bool is_unsigned = false;  // whether `number` is unsigned in C
  std::uint64_t number = 0;
  std::string text;
  std::vector<SymbolPiece> arguments;
  std::vector<std::pair<std::uint64_t, std::string>> names;  // N=TEXT of symbol and flags

  friend bool operator==(const SymbolPiece&, const SymbolPiece&) = default;
};

// Holds the value of Tracepoint.Field.NAME.
struct TracepointNote {
  bool hex = false;  // whether the number is shown in hexadecimal
  std::vector<SymbolPiece> pieces;

  bool empty() const { return !hex && pieces.empty(); }
  friend bool operator==(const TracepointNote&, const TracepointNote&) = default;
};

// Limits of a note. They bound its memory and the time to evaluate it for an event.
inline constexpr std::size_t kMaxNotePieces =
    1024;                                 // maximum number of pieces; each N=TEXT counts as one
inline constexpr int kMaxNoteDepth = 32;  // maximum depth of nested pieces

// Returns whether `name` is a C identifier. A TracepointNote can refer only to fields with such
// names.
bool IsNoteName(std::string_view name);
bool IsBinaryOperator(std::string_view text);

std::string FormatTracepointNote(const TracepointNote& note);
// Parses a value of Tracepoint.Field.NAME. Returns nullopt if `text` is not valid or exceeds the
// limits. `pieces_left`, if not null, is the number of pieces that the note may have; the function
// subtracts the pieces that it parses. A caller can thus limit the pieces of all notes of a row.
std::optional<TracepointNote> ParseTracepointNote(std::string_view text,
                                                  std::size_t* pieces_left = nullptr);
// Returns the notes of a row by field name. Ignores invalid notes, and notes after 4096 pieces of
// the row. If a field has several valid notes, the first one is used.
absl::flat_hash_map<std::string, TracepointNote> ReadTracepointNotes(
    const nettrace::EventMetadata& metadata);
// Returns NAME if `key` is Tracepoint.Field.NAME, else nullopt.
std::optional<std::string_view> ParseTracepointKey(std::string_view key);

}  // namespace trace

#endif  // TOOLS_TRACE_TRACEPOINT_KEYS_H_
