#include "tools/collector/convert/print_format.h"

#include <traceevent/event-parse.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tools/trace/tracepoint_keys.h"

namespace collector {
namespace {

using trace::SymbolPiece;
using Kind = SymbolPiece::Kind;

// Kind of value that an expression must yield. It depends on where the expression is used, because
// libtraceevent does not distinguish the text "1" from the number 1.
enum class Want { kNumber, kText };

SymbolPiece TextPiece(std::string_view text) {
  SymbolPiece piece;
  piece.kind = Kind::kText;
  piece.text = std::string(text);
  return piece;
}

SymbolPiece NumberPiece(std::uint64_t number, bool is_unsigned = false) {
  SymbolPiece piece;
  piece.kind = Kind::kNumber;
  piece.number = number;
  piece.is_unsigned = is_unsigned;
  return piece;
}

SymbolPiece FieldPiece(std::string_view name) {
  SymbolPiece piece;
  piece.kind = Kind::kField;
  piece.text = std::string(name);
  return piece;
}

SymbolPiece CallPiece(std::string_view function, std::vector<SymbolPiece> arguments) {
  SymbolPiece piece;
  piece.kind = Kind::kCall;
  piece.text = std::string(function);
  piece.arguments = std::move(arguments);
  return piece;
}

// Parses a number in C syntax.
std::optional<SymbolPiece> ParseNumber(const char* text) {
  char* end = nullptr;
  const bool negative = *text == '-';
  const std::uint64_t value = std::strtoull(text, &end, 0);
  if (end == text || !absl::ascii_isdigit(static_cast<unsigned char>(text[negative ? 1 : 0]))) {
    return std::nullopt;
  }
  bool is_unsigned = false;
  for (; *end != '\0'; ++end) {
    if (*end == 'u' || *end == 'U') {
      is_unsigned = true;
    } else if (*end != 'l' && *end != 'L') {
      return std::nullopt;
    }
  }
  return NumberPiece(value, is_unsigned);
}

std::optional<std::uint64_t> Fold(std::string_view op, std::uint64_t x, std::uint64_t y) {
  if (op == "|") return x | y;
  if (op == "&") return x & y;
  if (op == "+") return x + y;
  if (op == "-") return x - y;
  if (op == "<<" && y < 64) return x << y;
  return std::nullopt;
}

// Returns the function of notes (tools/trace/tracepoint_symbol.h) that casts to the C type `type`.
// Returns "" if there is none; the note then leaves out the cast.
std::string_view CastTo(std::string_view type) {
  constexpr std::pair<std::string_view, std::string_view> kCasts[] = {
      {"u8", "u8"},          {"__u8", "u8"},      {"unsigned char", "u8"},
      {"u16", "u16"},        {"__u16", "u16"},    {"unsigned short", "u16"},
      {"u32", "u32"},        {"__u32", "u32"},    {"unsigned int", "u32"},
      {"uint", "u32"},       {"unsigned", "u32"}, {"s8", "s8"},
      {"signed char", "s8"}, {"s16", "s16"},      {"short", "s16"},
      {"s32", "s32"},        {"__s32", "s32"},    {"int", "s32"},
  };
  const auto* const found = std::find_if(std::begin(kCasts), std::end(kCasts),
                                         [&](const auto& cast) { return cast.first == type; });
  return found == std::end(kCasts) ? std::string_view() : found->second;
}

const tep_print_arg* WithoutCasts(const tep_print_arg* arg) {
  while (arg != nullptr && arg->type == TEP_PRINT_TYPE) arg = arg->typecast.item;
  return arg;
}

// A conversion of the `print fmt`, such as "%08lx", and the text before it.
struct Conversion {
  std::string_view literal;
  bool alternate = false;  // the flag #
  bool zero_padded = false;
  unsigned width = 0;
  int stars = 0;
  std::string_view letters;  // for example "x"; for a pointer, all letters: "pI6c"
};

// Takes the next conversion from `*format`. Returns false at its end.
bool TakeConversion(std::string_view* format, Conversion* conversion) {
  *conversion = Conversion();
  const std::string_view all = *format;
  std::size_t at = 0;
  const auto next = [&] { return at < all.size() ? all[at] : '\0'; };
  for (;; at += 2) {
    at = all.find('%', at);
    if (at == std::string_view::npos) return false;
    if (at + 1 >= all.size() || all[at + 1] != '%') break;
  }
  conversion->literal = all.substr(0, at++);
  for (; next() != '\0' && std::string_view("-+ #0").find(next()) != std::string_view::npos; ++at) {
    conversion->alternate = conversion->alternate || next() == '#';
    conversion->zero_padded = conversion->zero_padded || next() == '0';
  }
  for (; absl::ascii_isdigit(static_cast<unsigned char>(next())) || next() == '.' || next() == '*';
       ++at) {
    if (next() == '*') {
      ++conversion->stars;
    } else if (next() != '.' && conversion->width < 100) {
      conversion->width = conversion->width * 10 + static_cast<unsigned>(next() - '0');
    }
  }
  for (; next() != '\0' && std::string_view("hlzjtLq").find(next()) != std::string_view::npos;)
    ++at;
  const std::size_t start = at;
  if (next() == '\0') return false;
  ++at;
  if (all[start] == 'p') {
    while (absl::ascii_isalnum(static_cast<unsigned char>(next()))) ++at;
  }
  conversion->letters = all.substr(start, at - start);
  format->remove_prefix(at);
  return true;
}

// Returns `literal` without the "0x" at its end, if it has one.
std::string_view WithoutPrefix(std::string_view literal) {
  if (literal.size() >= 2 && literal.substr(literal.size() - 2) == "0x") literal.remove_suffix(2);
  return literal;
}

// Returns the name before a value, such as "pfn" if the text ends in "pfn=" or "pfn=0x".
std::string_view NameBefore(std::string_view literal) {
  literal = WithoutPrefix(literal);
  if (literal.empty() || literal.back() != '=') return {};
  literal.remove_suffix(1);
  std::size_t start = literal.size();
  while (start > 0 && (absl::ascii_isalnum(static_cast<unsigned char>(literal[start - 1])) ||
                       literal[start - 1] == '_')) {
    --start;
  }
  return literal.substr(start);
}

bool IsPunctuation(std::string_view literal) {
  return literal.size() <= 3 && std::none_of(literal.begin(), literal.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c));
         });
}

class PrintFormatCompiler {
 public:
  explicit PrintFormatCompiler(const tep_event& event) : event_(event) {}

  PrintFormat Compile() {
    for (const tep_format_field* field = event_.format.fields; field != nullptr;
         field = field->next) {
      Field* const found = (field->flags & TEP_FIELD_IS_POINTER) != 0 ? Find(field->name) : nullptr;
      if (found != nullptr) found->hex = true;
    }
    if (event_.print_fmt.format != nullptr) CompileArguments();
    PrintFormat result;
    result.kernel_addresses = std::move(kernel_addresses_);
    result.binary = std::move(binary_);
    for (auto& [name, field] : fields_) {
      trace::TracepointNote note;
      note.hex = field.hex && !field.decimal;
      note.pieces = std::move(field.pieces);
      std::string text = trace::FormatTracepointNote(note);
      // Leaves out a note that exceeds the limits, because readers would ignore it.
      if (text.empty() || !trace::ParseTracepointNote(text)) continue;
      result.notes.emplace_back(absl::StrCat(trace::kKeyTracepointField, name), std::move(text));
    }
    LeaveOutLargest(&result.notes);
    return result;
  }

 private:
  struct Field {
    bool hex = false;
    bool decimal = false;
    std::vector<SymbolPiece> pieces;
    // Name of the first value, if `pieces` does not contain it. Add() inserts it when it adds a
    // value that is displayed separately from the first.
    std::string first_name;
  };

  static void LeaveOutLargest(nettrace::KeyValues* notes) {
    const auto size = [](const auto& note) { return note.first.size() + note.second.size(); };
    std::size_t total = 0;
    for (const auto& note : *notes) total += size(note);
    while (total > kMaxNotes) {
      const auto largest =
          std::max_element(notes->begin(), notes->end(),
                           [&](const auto& a, const auto& b) { return size(a) < size(b); });
      total -= size(*largest);
      notes->erase(largest);
    }
  }

  void CompileArguments() {
    std::string_view format = event_.print_fmt.format;
    const tep_print_arg* argument = event_.print_fmt.args;
    Conversion conversion;
    while (TakeConversion(&format, &conversion)) {
      for (; conversion.stars > 0 && argument != nullptr; --conversion.stars) {
        argument = argument->next;
      }
      if (argument == nullptr) return;
      CompileArgument(conversion, *argument);
      argument = argument->next;
    }
  }

  void CompileArgument(const Conversion& conversion, const tep_print_arg& argument) {
    const char letter = conversion.letters.front();
    const tep_print_arg* const inner = WithoutCasts(&argument);
    const bool is_hex = letter == 'x' || letter == 'X' || conversion.letters == "p" ||
                        conversion.letters == "px" || conversion.letters == "pK";
    if (inner != nullptr && inner->type == TEP_PRINT_FIELD) {
      Field* const field = Find(inner->field.name);
      if (field == nullptr) return;
      const std::string name = inner->field.name;
      if (is_hex) {
        field->hex = true;
      } else if (letter == 'p') {
        AddPointer(conversion, name);
      } else if (letter == 'o') {
        Add(conversion, name, CallPiece("oct", {FieldPiece(name)}));
      } else if (letter == 'c') {
        Add(conversion, name, CallPiece("char", {FieldPiece(name)}));
      } else if (letter != 's') {
        field->decimal = true;
      }
      return;
    }
    if (letter == 'p' && !is_hex) return;
    const bool text = letter == 's' || letter == 'c';
    std::optional<SymbolPiece> piece = Convert(&argument, text ? Want::kText : Want::kNumber, 0);
    if (!piece) return;
    const std::string name = FieldOf(*piece);
    if (name.empty()) return;
    if (!text && ShowsField(*piece, name)) {
      if (is_hex) Find(name)->hex = true;
      return;
    }
    if (is_hex) {
      std::vector<SymbolPiece> arguments;
      arguments.push_back(*std::move(piece));
      if (conversion.zero_padded && conversion.width > 0) {
        arguments.push_back(NumberPiece(conversion.width));
      }
      piece = CallPiece("hex", std::move(arguments));
    }
    Add(conversion, name, *std::move(piece));
  }

  // Returns whether `piece` applies a function to a field, and so displays the field's value in
  // another form.
  static bool IsOfField(const SymbolPiece& piece) {
    return piece.kind == Kind::kCall && piece.arguments[0].kind == Kind::kField;
  }

  // Returns whether `piece` is a choice between the field itself and another value.
  static bool ShowsField(const SymbolPiece& piece, const std::string& name) {
    const SymbolPiece field = FieldPiece(name);
    return piece.kind == Kind::kConditional &&
           (piece.arguments[1] == field || piece.arguments[2] == field);
  }

  void AddPointer(const Conversion& conversion, const std::string& name) {
    const std::string_view letters = conversion.letters.substr(1);
    const auto begins = [&](std::string_view prefix) {
      return letters.substr(0, prefix.size()) == prefix;
    };
    if (begins("S") || begins("s") || begins("F") || begins("f") || begins("B")) {
      kernel_addresses_.push_back({name, letters.front() != 's' && letters.front() != 'f'});
      Find(name)->hex = true;
      Add(conversion, name, CallPiece("kernel", {FieldPiece(name)}));
      return;
    }
    SymbolPiece field = FieldPiece(name);
    std::optional<SymbolPiece> piece;
    if (begins("IS")) {
      piece = CallPiece("sockaddr", {std::move(field)});
    } else if (begins("I4") || begins("i4")) {
      piece = CallPiece("ipv4", {std::move(field)});
    } else if (begins("I6") || begins("i6")) {
      piece = CallPiece("ipv6", {std::move(field)});
    } else if (begins("Ul") || begins("UL")) {
      piece = CallPiece("guid", {std::move(field)});
    } else if (begins("U")) {
      piece = CallPiece("uuid", {std::move(field)});
    } else if (begins("M") || begins("m")) {
      piece = CallPiece("bytes", {std::move(field), NumberPiece(6), TextPiece(":")});
    } else if (begins("b")) {
      piece = CallPiece("cpus", {std::move(field)});
    }
    if (!piece) return;
    binary_.insert(name);
    Add(conversion, name, *std::move(piece));
  }

  // Adds `piece` to the symbol of the field `name`: the text that readers show for its value.
  // Values that `print fmt` displays together stay together, such as "8,1" of a device. If the
  // symbol has several values that are not together, their names precede them: "cpu=1 idx=197
  // flags=D|P".
  void Add(const Conversion& conversion, const std::string& name, SymbolPiece piece) {
    Field& field = *Find(name);
    const std::string_view shown = NameBefore(conversion.literal);
    const std::string_view literal = WithoutPrefix(conversion.literal);
    const bool is_first = field.pieces.empty();
    const bool is_together = !is_first && last_ == name && IsPunctuation(literal);
    if (is_together && !literal.empty()) field.pieces.push_back(TextPiece(literal));
    if (!is_first && !is_together) {
      if (!field.first_name.empty()) {
        field.pieces.insert(field.pieces.begin(), TextPiece(field.first_name + "="));
        field.first_name.clear();
      }
      field.pieces.push_back(TextPiece(" "));
    }
    last_ = name;
    const bool is_plain = HasNames(piece) || shown == name || IsOfField(piece);
    if (is_first && is_plain) field.first_name = std::string(shown);
    if (!shown.empty() && (!is_plain || (!is_first && !is_together))) {
      field.pieces.push_back(TextPiece(std::string(shown) + "="));
    }
    if (piece.kind == Kind::kCall && piece.text == "hex" &&
        (conversion.alternate || WithoutPrefix(conversion.literal) != conversion.literal)) {
      field.pieces.push_back(TextPiece("0x"));
    }
    field.pieces.push_back(std::move(piece));
  }

  // NOLINTNEXTLINE(misc-no-recursion): at most kMaxNoteDepth levels.
  static bool HasNames(const SymbolPiece& piece) {
    return !piece.names.empty() ||
           std::any_of(piece.arguments.begin(), piece.arguments.end(), HasNames);
  }

  // Returns the field that `piece` describes: the first field for whose values the piece has names,
  // or else the first field in the piece.
  // NOLINTNEXTLINE(misc-no-recursion): at most kMaxNoteDepth levels.
  static std::string FieldOf(const SymbolPiece& piece) {
    if (piece.kind == Kind::kField || piece.kind == Kind::kElement) return piece.text;
    std::string first;
    const std::size_t count = piece.arguments.size();
    // Starts with the alternatives of a choice, because they describe the field better than the
    // condition does.
    const std::size_t start = piece.kind == Kind::kConditional ? 1 : 0;
    for (std::size_t i = 0; i < count; ++i) {
      const SymbolPiece& argument = piece.arguments[(start + i) % count];
      std::string name = FieldOf(argument);
      if (name.empty()) continue;
      if (HasNames(argument)) return name;
      if (first.empty()) first = std::move(name);
    }
    return first;
  }

  // Returns what is known of the field `name` so far; null if the event has no such field.
  Field* Find(std::string_view name) {
    const auto found = fields_.find(std::string(name));
    if (found != fields_.end()) return &found->second;
    if (!IsField(name)) return nullptr;
    return &fields_[std::string(name)];
  }

  bool IsField(std::string_view name) const {
    if (!trace::IsNoteName(name)) return false;
    for (const tep_format_field* field = event_.format.fields; field != nullptr;
         field = field->next) {
      if (name == field->name) return true;
    }
    return false;
  }

  std::optional<SymbolPiece> ConvertField(const char* name) const {
    if (name == nullptr || !IsField(name)) return std::nullopt;
    return FieldPiece(name);
  }

  // NOLINTNEXTLINE(misc-no-recursion): at most kMaxNoteDepth levels.
  std::optional<SymbolPiece> Convert(const tep_print_arg* arg, Want want, int depth) {
    if (arg == nullptr || depth >= trace::kMaxNoteDepth) return std::nullopt;
    switch (arg->type) {
      case TEP_PRINT_ATOM:
        if (want == Want::kText) return TextPiece(arg->atom.atom);
        return ParseNumber(arg->atom.atom);
      case TEP_PRINT_FIELD:
        return ConvertField(arg->field.name);
      case TEP_PRINT_TYPE: {
        std::optional<SymbolPiece> item = Convert(arg->typecast.item, want, depth + 1);
        const std::string_view cast = CastTo(arg->typecast.type);
        if (!item || cast.empty() || want == Want::kText) return item;
        return CallPiece(cast, {*std::move(item)});
      }
      case TEP_PRINT_FLAGS:
        return ConvertNames("flags", arg->flags.field, arg->flags.delim, arg->flags.flags, depth);
      case TEP_PRINT_SYMBOL:
        return ConvertNames("symbol", arg->symbol.field, nullptr, arg->symbol.symbols, depth);
      case TEP_PRINT_HEX:
        return ConvertArray("bytes", arg->hex.field, arg->hex.size, " ", depth);
      case TEP_PRINT_HEX_STR:
        return ConvertArray("bytes", arg->hex.field, arg->hex.size, "", depth);
      case TEP_PRINT_INT_ARRAY:
        return ConvertArray("array", arg->int_array.field, arg->int_array.count, nullptr, depth);
      case TEP_PRINT_DYNAMIC_ARRAY_LEN:
        if (arg->dynarray.field == nullptr) return std::nullopt;
        return CallOn("size", ConvertField(arg->dynarray.field->name));
      case TEP_PRINT_BITMASK:
      case TEP_PRINT_CPUMASK:
        return CallOn("cpus", ConvertField(arg->bitmask.bitmask));
      case TEP_PRINT_OP:
        return ConvertOp(arg->op, want, depth);
      default:
        return std::nullopt;
    }
  }

  static std::optional<SymbolPiece> CallOn(std::string_view function,
                                           std::optional<SymbolPiece> argument) {
    if (!argument) return std::nullopt;
    return CallPiece(function, {*std::move(argument)});
  }

  // NOLINTNEXTLINE(misc-no-recursion): at most kMaxNoteDepth levels.
  std::optional<SymbolPiece> ConvertNames(std::string_view function, const tep_print_arg* value,
                                          const char* delimiter, const tep_print_flag_sym* names,
                                          int depth) {
    std::optional<SymbolPiece> call = CallOn(function, Convert(value, Want::kNumber, depth + 1));
    if (!call) return std::nullopt;
    if (function == "flags") {
      // Displays the number in hexadecimal, because bits without a name are easier to read in this
      // form.
      if (Field* const field = Find(FieldOf(call->arguments[0])); field != nullptr) {
        field->hex = true;
      }
      call->arguments.push_back(TextPiece(delimiter == nullptr ? "" : delimiter));
    }
    for (; names != nullptr; names = names->next) {
      // The value of a name may be a constant of the kernel, whose number the format does not
      // contain. Such a name is left out.
      const std::optional<SymbolPiece> number =
          names->value == nullptr ? std::nullopt : ParseNumber(names->value);
      if (number && names->str != nullptr) call->names.emplace_back(number->number, names->str);
    }
    // Without names, the call displays only the number. So it is left out, unless it is a part of
    // another expression, such as one alternative of a choice.
    if (call->names.empty() && depth == 0) return std::nullopt;
    return call;
  }

  // NOLINTNEXTLINE(misc-no-recursion): at most kMaxNoteDepth levels.
  std::optional<SymbolPiece> ConvertArray(std::string_view function, const tep_print_arg* array,
                                          const tep_print_arg* count, const char* delimiter,
                                          int depth) {
    array = WithoutCasts(array);
    if (array == nullptr) return std::nullopt;
    std::optional<SymbolPiece> field;
    if (array->type == TEP_PRINT_FIELD) {
      field = ConvertField(array->field.name);
    } else if (array->type == TEP_PRINT_DYNAMIC_ARRAY && array->dynarray.field != nullptr) {
      field = ConvertField(array->dynarray.field->name);
    }
    if (field) binary_.insert(field->text);
    std::optional<SymbolPiece> number = Convert(count, Want::kNumber, depth + 1);
    if (!field || !number) return std::nullopt;
    SymbolPiece call = CallPiece(function, {*std::move(field), *std::move(number)});
    if (delimiter != nullptr) call.arguments.push_back(TextPiece(delimiter));
    return call;
  }

  // NOLINTNEXTLINE(misc-no-recursion): at most kMaxNoteDepth levels.
  std::optional<SymbolPiece> ConvertOp(const tep_print_arg_op& op, Want want, int depth) {
    if (op.op == nullptr || op.left == nullptr || op.right == nullptr) return std::nullopt;
    const std::string_view name = op.op;
    SymbolPiece piece;
    piece.text = std::string(name);
    if (name == "?") {
      if (op.right->type != TEP_PRINT_OP || std::string_view(op.right->op.op) != ":") {
        return std::nullopt;
      }
      piece.kind = Kind::kConditional;
      piece.text.clear();
      if (!AddArgument(op.left, Want::kNumber, depth, &piece) ||
          !AddArgument(op.right->op.left, want, depth, &piece) ||
          !AddArgument(op.right->op.right, want, depth, &piece)) {
        return std::nullopt;
      }
      return piece;
    }
    if (name == "[") {
      const tep_print_arg* const array = WithoutCasts(op.left);
      const std::optional<SymbolPiece> index = Convert(op.right, Want::kNumber, depth + 1);
      if (array == nullptr || array->type != TEP_PRINT_FIELD || !IsField(array->field.name) ||
          !index || index->kind != Kind::kNumber) {
        return std::nullopt;
      }
      piece.kind = Kind::kElement;
      piece.text = array->field.name;
      piece.number = index->number;
      return piece;
    }
    if (op.left->type == TEP_PRINT_NULL) {
      if (name != "!" && name != "~" && name != "-") return std::nullopt;
      piece.kind = Kind::kUnary;
      if (!AddArgument(op.right, Want::kNumber, depth, &piece)) return std::nullopt;
      const SymbolPiece& operand = piece.arguments[0];
      if (operand.kind != Kind::kNumber || name == "!") return piece;
      return NumberPiece(name == "~" ? ~operand.number : 0 - operand.number, operand.is_unsigned);
    }
    if (!trace::IsBinaryOperator(name)) return std::nullopt;
    piece.kind = Kind::kBinary;
    if (!AddArgument(op.left, Want::kNumber, depth, &piece) ||
        !AddArgument(op.right, Want::kNumber, depth, &piece)) {
      return std::nullopt;
    }
    const SymbolPiece& left = piece.arguments[0];
    const SymbolPiece& right = piece.arguments[1];
    if (left.kind == Kind::kNumber && right.kind == Kind::kNumber) {
      if (const auto folded = Fold(name, left.number, right.number)) {
        return NumberPiece(*folded, left.is_unsigned || right.is_unsigned);
      }
    }
    return piece;
  }

  // NOLINTNEXTLINE(misc-no-recursion): at most kMaxNoteDepth levels.
  bool AddArgument(const tep_print_arg* arg, Want want, int depth, SymbolPiece* piece) {
    std::optional<SymbolPiece> argument = Convert(arg, want, depth + 1);
    if (!argument) return false;
    piece->arguments.push_back(*std::move(argument));
    return true;
  }

  const tep_event& event_;
  std::map<std::string, Field> fields_;
  std::vector<PrintFormat::KernelAddress> kernel_addresses_;
  std::set<std::string> binary_;
  std::string last_;  // field that the last piece was added to
};

}  // namespace

PrintFormat CompilePrintFormat(const tep_event& event) {
  return PrintFormatCompiler(event).Compile();
}

}  // namespace collector
