#include "tools/trace/tracepoint_symbol.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <span>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/text.h"

namespace trace {
namespace {

using PieceKind = SymbolPiece::Kind;

constexpr std::size_t kMaxSymbol = 4096;
// Maximum number of elements that are read of one array, and of all arrays for one symbol.
constexpr std::size_t kMaxElements = 1024;
constexpr std::size_t kMaxElementsOfSymbol = 16 * kMaxElements;

struct Result {
  bool is_text = false;
  bool is_unsigned = false;
  std::uint64_t number = 0;
  std::string text;
};

Result Number(std::uint64_t number, bool is_unsigned = false) {
  return {.is_text = false, .is_unsigned = is_unsigned, .number = number, .text = {}};
}
Result Text(std::string text) {
  return {.is_text = true, .is_unsigned = false, .number = 0, .text = std::move(text)};
}

std::string Shown(const Result& result) {
  if (result.is_text) return result.text;
  if (result.is_unsigned) return absl::StrCat(result.number);
  return absl::StrCat(static_cast<std::int64_t>(result.number));
}

std::uint64_t Mask(std::size_t size) {
  return size >= sizeof(std::uint64_t) ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * size) - 1;
}

std::string HexNumber(std::uint64_t number) { return absl::StrFormat("0x%x", number); }

std::string Symbol(std::uint64_t number, std::uint64_t mask,
                   const std::vector<std::pair<std::uint64_t, std::string>>& names) {
  for (const auto& [value, name] : names) {
    if (((value ^ number) & mask) == 0) return name;
  }
  return HexNumber(number & mask);
}

std::string Flags(std::uint64_t bits, std::string_view delimiter,
                  const std::vector<std::pair<std::uint64_t, std::string>>& names) {
  std::string text;
  const auto add = [&](std::string_view name) {
    if (!text.empty())
      absl::StrAppend(&text, absl::string_view(delimiter.data(), delimiter.size()));
    absl::StrAppend(&text, absl::string_view(name.data(), name.size()));
  };
  for (const auto& [mask, name] : names) {
    if (mask == 0 || (bits & mask) != mask || text.size() > kMaxSymbol) continue;
    add(name);
    bits &= ~mask;
  }
  if (bits != 0) add(HexNumber(bits));
  return text;
}

std::optional<Result> Calculate(std::string_view op, const Result& a, const Result& b) {
  const bool is_unsigned = a.is_unsigned || b.is_unsigned;
  const std::uint64_t x = a.number;
  const std::uint64_t y = b.number;
  const auto sx = static_cast<std::int64_t>(x);
  const auto sy = static_cast<std::int64_t>(y);
  const bool less = is_unsigned ? x < y : sx < sy;
  if (op == "<") return Number(less ? 1 : 0);
  if (op == ">=") return Number(less ? 0 : 1);
  if (op == "<=") return Number(less || x == y ? 1 : 0);
  if (op == ">") return Number(less || x == y ? 0 : 1);
  if (op == "==") return Number(x == y ? 1 : 0);
  if (op == "!=") return Number(x != y ? 1 : 0);
  if (op == "&&") return Number(x != 0 && y != 0 ? 1 : 0);
  if (op == "||") return Number(x != 0 || y != 0 ? 1 : 0);
  if (op == "&") return Number(x & y, is_unsigned);
  if (op == "|") return Number(x | y, is_unsigned);
  if (op == "^") return Number(x ^ y, is_unsigned);
  if (op == "+") return Number(x + y, is_unsigned);
  if (op == "-") return Number(x - y, is_unsigned);
  if (op == "*") return Number(x * y, is_unsigned);
  if (op == "<<") return y < 64 ? std::optional(Number(x << y, a.is_unsigned)) : std::nullopt;
  if (op == ">>") {
    if (y >= 64) return std::nullopt;
    return Number(a.is_unsigned ? x >> y : static_cast<std::uint64_t>(sx >> y), a.is_unsigned);
  }
  // Refuses divisors that may make the CPU trap: 0, and -1, which traps for the smallest number.
  if (y == 0 || (!is_unsigned && sy == -1)) return std::nullopt;
  if (op == "/")
    return Number(is_unsigned ? x / y : static_cast<std::uint64_t>(sx / sy), is_unsigned);
  if (op == "%")
    return Number(is_unsigned ? x % y : static_cast<std::uint64_t>(sx % sy), is_unsigned);
  return std::nullopt;
}

// Formats an IPv6 address as the kernel does, with dots only in a mapped IPv4 address (::ffff:).
// libc also writes dots in the old IPv4-compatible addresses.
std::string Ipv6(std::span<const std::byte> bytes) {
  const auto word = [&](std::size_t i) {
    return std::to_integer<unsigned>(bytes[2 * i]) << 8 |
           std::to_integer<unsigned>(bytes[2 * i + 1]);
  };
  const bool is_compatible = std::all_of(bytes.begin(), bytes.begin() + 12,
                                         [](std::byte byte) { return byte == std::byte{0}; });
  if (is_compatible && word(6) != 0) return absl::StrFormat("::%x:%x", word(6), word(7));
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, bytes.data(), text, sizeof text);
  return text;
}

std::string Sockaddr(std::span<const std::byte> bytes) {
  if (bytes.size() < 8) return {};
  // The family is in the byte order of the recording machine. It is below 256, so one of its bytes
  // is 0, and the bitwise or of both is its value. Port and address are in network byte order.
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(bytes[i]); };
  const unsigned family = at(0) | at(1);
  const unsigned port = at(2) << 8 | at(3);
  char text[INET6_ADDRSTRLEN] = "";
  if (family == AF_INET) {
    inet_ntop(AF_INET, bytes.data() + 4, text, sizeof text);
    return absl::StrCat(text, ":", port);
  }
  if (family == AF_INET6 && bytes.size() >= 24) {
    return absl::StrCat("[", Ipv6(bytes.subspan(8, 16)), "]:", port);
  }
  return {};
}

class Evaluator {
 public:
  explicit Evaluator(const TracepointValues& values) : values_(values) {}

  // NOLINTNEXTLINE(misc-no-recursion): recurses at most kMaxNoteDepth times.
  std::optional<Result> Evaluate(const SymbolPiece& piece) const {
    switch (piece.kind) {
      case PieceKind::kText:
        return Text(piece.text);
      case PieceKind::kNumber:
        return Number(piece.number, piece.is_unsigned);
      case PieceKind::kField: {
        const TracepointValue* value = Find(piece.text);
        if (value == nullptr) return std::nullopt;
        if (value->kind == TracepointValue::Kind::kText) return Text(value->text);
        if (value->kind != TracepointValue::Kind::kNumber) return std::nullopt;
        return Number(value->number, value->is_unsigned);
      }
      case PieceKind::kElement: {
        const TracepointValue* value = Find(piece.text);
        if (value == nullptr || piece.number >= value->elements.size()) return std::nullopt;
        return Number(value->elements[static_cast<std::size_t>(piece.number)], value->is_unsigned);
      }
      case PieceKind::kUnary: {
        const std::optional<Result> operand = EvaluateNumber(piece.arguments[0]);
        if (!operand) return std::nullopt;
        if (piece.text == "!") return Number(operand->number == 0 ? 1 : 0);
        return Number(piece.text == "~" ? ~operand->number : 0 - operand->number,
                      operand->is_unsigned);
      }
      case PieceKind::kBinary: {
        const std::optional<Result> left = EvaluateNumber(piece.arguments[0]);
        if (!left) return std::nullopt;
        if (piece.text == "&&" && left->number == 0) return Number(0);
        if (piece.text == "||" && left->number != 0) return Number(1);
        const std::optional<Result> right = EvaluateNumber(piece.arguments[1]);
        return right ? Calculate(piece.text, *left, *right) : std::nullopt;
      }
      case PieceKind::kConditional: {
        const std::optional<Result> condition = EvaluateNumber(piece.arguments[0]);
        if (!condition) return std::nullopt;
        return Evaluate(piece.arguments[condition->number != 0 ? 1 : 2]);
      }
      case PieceKind::kCall:
        return Call(piece);
    }
    return std::nullopt;
  }

 private:
  // NOLINTNEXTLINE(misc-no-recursion): recurses at most kMaxNoteDepth times.
  std::optional<Result> EvaluateNumber(const SymbolPiece& piece) const {
    std::optional<Result> result = Evaluate(piece);
    if (result && result->is_text) return std::nullopt;
    return result;
  }

  // NOLINTNEXTLINE(misc-no-recursion): recurses at most kMaxNoteDepth times.
  std::optional<Result> Call(const SymbolPiece& call) const {
    if (call.arguments.empty()) return std::nullopt;
    const SymbolPiece& first = call.arguments[0];
    if (first.kind == PieceKind::kField) {
      if (std::optional<Result> result = CallOnField(call, first.text)) return result;
    }
    const std::optional<Result> x = EvaluateNumber(first);
    if (!x) return std::nullopt;
    const std::string_view function = call.text;
    if (function == "symbol") return Text(Symbol(x->number, MaskOf(first), call.names));
    if (function == "flags") {
      if (call.arguments.size() != 2 || call.arguments[1].kind != PieceKind::kText)
        return std::nullopt;
      return Text(Flags(x->number & MaskOf(first), call.arguments[1].text, call.names));
    }
    if (function == "hex") {
      const bool padded =
          call.arguments.size() == 2 && call.arguments[1].kind == PieceKind::kNumber;
      const auto width = padded ? std::min<std::uint64_t>(call.arguments[1].number, 16) : 0;
      return Text(absl::StrFormat("%0*x", static_cast<int>(width), x->number));
    }
    if (function == "oct") return Text(absl::StrFormat("0%o", x->number));
    if (function == "char") return Text(std::string(1, static_cast<char>(x->number)));
    if (function == "u8") return Number(static_cast<std::uint8_t>(x->number));
    if (function == "u16") return Number(static_cast<std::uint16_t>(x->number));
    if (function == "u32") return Number(static_cast<std::uint32_t>(x->number));
    if (function == "s8") return Signed<std::int8_t>(x->number);
    if (function == "s16") return Signed<std::int16_t>(x->number);
    if (function == "s32") return Signed<std::int32_t>(x->number);
    return std::nullopt;
  }

  // Returns a mask for the bits that the field `piece` has in the event, or for all 64 bits if it
  // is not a field. The mask removes the sign extension of numbers of less than 64 bits.
  std::uint64_t MaskOf(const SymbolPiece& piece) const {
    const TracepointValue* value = piece.kind == PieceKind::kField ? Find(piece.text) : nullptr;
    return Mask(value == nullptr ? sizeof(std::uint64_t) : value->element_size);
  }

  template <typename Int>
  static Result Signed(std::uint64_t number) {
    return Number(static_cast<std::uint64_t>(std::int64_t{static_cast<Int>(number)}));
  }

  // Evaluates a function whose argument is a field: "kernel", or a function of an array. Returns
  // nullopt for all other functions, and if the field has no value that fits the function.
  // NOLINTNEXTLINE(misc-no-recursion): recurses at most kMaxNoteDepth times.
  std::optional<Result> CallOnField(const SymbolPiece& call, const std::string& field) const {
    const std::string_view function = call.text;
    if (function == "kernel") return KernelSymbol(field);
    const TracepointValue* value = Find(field);
    if (value == nullptr || value->kind != TracepointValue::Kind::kNumbers) return std::nullopt;
    const std::size_t elements = std::min(value->elements.size(), kMaxElements);
    if (elements > elements_left_) return std::nullopt;
    elements_left_ -= elements;
    if (function == "size") return Number(value->elements.size() * value->element_size);
    if (function == "array") return Array(call, *value);
    if (function == "cpus") return Text(Ranges(*value));
    if (value->element_size != 1) return std::nullopt;
    std::vector<std::byte> bytes(elements);
    std::transform(value->elements.begin(),
                   value->elements.begin() + static_cast<std::ptrdiff_t>(bytes.size()),
                   bytes.begin(), [](std::uint64_t element) { return std::byte(element); });
    if (function == "bytes") return Bytes(call, bytes);
    if (function == "sockaddr") return Text(Sockaddr(bytes));
    char text[INET6_ADDRSTRLEN] = "";
    if (function == "ipv4" && bytes.size() >= 4) {
      return Text(inet_ntop(AF_INET, bytes.data(), text, sizeof text));
    }
    if (bytes.size() < 16) return std::nullopt;
    if (function == "ipv6") return Text(Ipv6(bytes));
    nettrace::Guid uuid;
    std::copy_n(bytes.begin(), uuid.size(), uuid.begin());
    if (function == "uuid") return Text(base::FormatGuid(nettrace::GuidFromUuid(uuid)));
    if (function == "guid") return Text(base::FormatGuid(uuid));
    return std::nullopt;
  }

  std::optional<Result> KernelSymbol(std::string_view field) const {
    if (values_.labels == nullptr) return std::nullopt;
    const std::string_view prefix = kSymbolLabel;
    for (const auto& [key, symbol] : values_.labels->strings) {
      const std::string_view name = key;
      if (name.substr(0, prefix.size()) == prefix && name.substr(prefix.size()) == field) {
        return Text(symbol);
      }
    }
    return std::nullopt;
  }

  // Returns the value of the second argument, a number of elements, but at most `all` and
  // kMaxElements. Returns nullopt if there is no second argument or it has no value.
  // NOLINTNEXTLINE(misc-no-recursion): recurses at most kMaxNoteDepth times.
  std::optional<std::size_t> Count(const SymbolPiece& call, std::size_t all) const {
    if (call.arguments.size() < 2) return std::nullopt;
    const std::optional<Result> count = EvaluateNumber(call.arguments[1]);
    if (!count) return std::nullopt;
    return std::min({static_cast<std::size_t>(count->number), all, kMaxElements});
  }

  // NOLINTNEXTLINE(misc-no-recursion): recurses at most kMaxNoteDepth times.
  std::optional<Result> Bytes(const SymbolPiece& call, std::span<const std::byte> bytes) const {
    const std::optional<std::size_t> count = Count(call, bytes.size());
    if (!count || call.arguments.size() != 3) return std::nullopt;
    std::string text;
    for (const std::byte byte : bytes.first(*count)) {
      if (!text.empty()) text += call.arguments[2].text;
      absl::StrAppendFormat(&text, "%02x", std::to_integer<unsigned>(byte));
    }
    return Text(std::move(text));
  }

  // NOLINTNEXTLINE(misc-no-recursion): recurses at most kMaxNoteDepth times.
  std::optional<Result> Array(const SymbolPiece& call, const TracepointValue& value) const {
    const std::optional<std::size_t> count = Count(call, value.elements.size());
    if (!count) return std::nullopt;
    const std::uint64_t mask = Mask(value.element_size);
    std::string text = "{";
    for (std::size_t i = 0; i < *count; ++i) {
      absl::StrAppend(&text, i == 0 ? "" : ",", HexNumber(value.elements[i] & mask));
    }
    return Text(text + "}");
  }

  static std::string Ranges(const TracepointValue& value) {
    const std::size_t bits = 8 * value.element_size;
    const std::size_t end = std::min(value.elements.size(), kMaxElements) * bits;
    const auto is_set = [&](std::size_t bit) {
      return (value.elements[bit / bits] >> bit % bits & 1) != 0;
    };
    std::string text;
    for (std::size_t bit = 0; bit < end && text.size() <= kMaxSymbol; ++bit) {
      if (!is_set(bit)) continue;
      const std::size_t first = bit;
      while (bit + 1 < end && is_set(bit + 1)) ++bit;
      absl::StrAppend(&text, text.empty() ? "" : ",", first);
      if (bit != first) absl::StrAppend(&text, "-", bit);
    }
    return text;
  }

  const TracepointValue* Find(const std::string& name) const {
    const auto found = values_.names->find(name);
    return found == values_.names->end() ? nullptr : &values_.values[found->second];
  }

  const TracepointValues& values_;
  mutable std::size_t elements_left_ = kMaxElementsOfSymbol;
};

}  // namespace

std::optional<std::string> FormatSymbol(const TracepointNote& note,
                                        const TracepointValues& values) {
  const Evaluator evaluator(values);
  std::string text;
  for (const SymbolPiece& piece : note.pieces) {
    const std::optional<Result> result = evaluator.Evaluate(piece);
    if (!result) return std::nullopt;
    text += Shown(*result);
    if (text.size() > kMaxSymbol) {
      text.resize(kMaxSymbol);
      break;
    }
  }
  const absl::string_view stripped = absl::StripAsciiWhitespace(text);
  if (stripped.empty()) return std::nullopt;
  return std::string(stripped);
}

}  // namespace trace
