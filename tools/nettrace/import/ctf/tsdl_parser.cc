#include "tools/nettrace/import/ctf/tsdl_parser.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/base/guid_text.h"
#include "tools/nettrace/import/ctf/tsdl_lexer.h"

namespace tools::importing::ctf {
namespace {

constexpr std::uint64_t kMaxAlign = std::uint64_t{1} << 20;

// The value to the right of an attribute's `=`.
struct Value {
  Token::Kind kind = Token::Kind::kEnd;  // kNumber, kText, or kWord for names joined by dots
  std::string text = {};
  std::uint64_t number = 0;  // a negative number is in two's complement
  bool is_negative = false;
  std::size_t line = 0;
};

// Parses TSDL. After an error, all further tokens are kEnd, so that all loops end.
class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) {
    scopes_.emplace_back();
    Advance();
  }

  absl::StatusOr<Metadata> Run() {
    while (token_.kind != Token::Kind::kEnd) TopLevel();
    if (!status_.ok()) return status_;
    return std::move(metadata_);
  }

 private:
  using Scope = absl::flat_hash_map<std::string, const Type*>;
  using SetValue = absl::FunctionRef<void(const std::string& name, const Value& value)>;
  using SetType = absl::FunctionRef<void(const std::string& name, const Type* type)>;

  void Fail(std::size_t line, std::string_view why) {
    if (status_.ok()) status_ = ErrorAt(line, why);
    token_ = {.line = line};
  }
  void Fail(std::string_view why) { Fail(token_.line, why); }
  bool failed() const { return !status_.ok(); }

  void Advance() {
    if (failed()) return;
    absl::StatusOr<Token> next = lexer_.Next();
    if (next.ok()) {
      token_ = *std::move(next);
    } else {
      status_ = next.status();
      token_ = {};
    }
  }
  bool Accept(std::string_view sign) {
    if (!token_.IsSign(sign)) return false;
    Advance();
    return true;
  }
  void Expect(std::string_view sign) {
    if (Accept(sign)) return;
    Fail(absl::StrCat("found ", Shown(), " instead of '", std::string(sign), "'"));
  }
  // Returns the current token in the form in which error messages show it.
  std::string Shown() const {
    switch (token_.kind) {
      case Token::Kind::kEnd:
        return "the end of the text";
      case Token::Kind::kNumber:
        return absl::StrCat(token_.number);
      default:
        return absl::StrCat("'", token_.text.substr(0, 64), "'");
    }
  }
  std::string TakeWord(std::string_view what) {
    if (token_.kind != Token::Kind::kWord) {
      Fail(absl::StrCat("found ", Shown(), " instead of ", std::string(what)));
      return "";
    }
    std::string word = std::exchange(token_.text, {});
    Advance();
    return word;
  }
  // Parses words that are separated by dots.
  std::vector<std::string> TakePath(std::string_view what) {
    std::vector<std::string> path = {TakeWord(what)};
    while (Accept(".")) path.push_back(TakeWord(what));
    return path;
  }
  Value TakeValue() {
    Value value{.line = token_.line};
    value.is_negative = Accept("-");
    value.kind = token_.kind;
    if (value.kind == Token::Kind::kNumber) {
      value.number = value.is_negative ? 0 - token_.number : token_.number;
      Advance();
    } else if (value.kind == Token::Kind::kText && !value.is_negative) {
      value.text = std::exchange(token_.text, {});
      Advance();
    } else {
      value.text = absl::StrJoin(TakePath("a value"), ".");
    }
    return value;
  }
  std::uint64_t NumberOf(const Value& value) {
    if (value.kind == Token::Kind::kNumber) return value.number;
    Fail(value.line, absl::StrCat("expected a number, found '", value.text.substr(0, 64), "'"));
    return 0;
  }
  // Returns an unsigned number, and fails if the number is negative.
  std::uint64_t UnsignedOf(const Value& value) {
    if (value.is_negative) Fail(value.line, "a number is negative; it must be at least 0");
    return NumberOf(value);
  }

  Type* NewType(Kind kind, std::size_t line, int depth = 1) {
    if (metadata_.types.size() == kMaxTypes)
      Fail(absl::StrCat("the trace has more than ", kMaxTypes, " types"));
    if (depth > kMaxTypeDepth)
      Fail(absl::StrCat("types are nested more than ", kMaxTypeDepth, " levels deep"));
    metadata_.types.push_back(std::make_unique<Type>());
    Type* const type = metadata_.types.back().get();
    type->kind = kind;
    type->depth = std::min(depth, kMaxTypeDepth);
    type->line = line;
    return type;
  }

  const Type* NewTypeBeyond() {
    Fail(absl::StrCat("the trace has more than ", kMaxTypes, " types"));
    return NewType(Kind::kStruct, token_.line);
  }

  void Define(const std::string& name, const Type* type) {
    if (!scopes_.back().try_emplace(name, type).second) {
      Fail(absl::StrCat("'", name.substr(0, 64), "' is declared twice"));
    }
  }
  const Type* Find(const std::string& name) {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->find(name); found != scope->end()) return found->second;
    }
    Fail(absl::StrCat("the type '", name.substr(0, 64), "' is not declared"));
    return NewType(Kind::kStruct, token_.line);
  }

  // Parses `name = value;` and `name := type;` up to the brace that ends the block. Types that the
  // block declares are visible only in the block.
  void Block(SetValue set_value, SetType set_type) {
    Expect("{");
    scopes_.emplace_back();
    while (!failed() && !Accept("}")) {
      if (token_.kind == Token::Kind::kEnd) return Fail("a block has no '}' at its end");
      if (Accept(";") || TypeDeclaration()) continue;
      const std::string name = absl::StrJoin(TakePath("a name"), ".");
      if (Accept(":=")) {
        set_type(name, TakeType());
      } else {
        Expect("=");
        set_value(name, TakeValue());
      }
      Expect(";");
    }
    scopes_.pop_back();
  }
  void NoType(const std::string& name) {
    Fail(absl::StrCat("'", name.substr(0, 64), " := TYPE' is not allowed in this block"));
  }

  // Parses a typealias, a typedef, or a named struct, enum or variant. Returns false if there is
  // none.
  bool TypeDeclaration() {
    if (token_.IsWord("typealias")) {
      Typealias();
    } else if (token_.IsWord("typedef")) {
      Advance();
      const Type* const type = TakeType();
      do {
        std::string name;
        const Type* const declared = TakeDeclarator(type, &name);
        Define(name, declared);
      } while (Accept(","));
    } else if (token_.IsWord("struct") || token_.IsWord("enum") || token_.IsWord("variant")) {
      TakeType();
    } else {
      return false;
    }
    Expect(";");
    return true;
  }

  void Typealias() {
    Advance();
    const Type* const type = TakeType();
    Expect(":=");
    std::vector<std::string> names;
    while (token_.kind == Token::Kind::kWord) names.push_back(TakeWord("a name"));
    if (names.empty()) return Fail("a typealias has no name after ':='");
    Define(absl::StrJoin(names, " "), type);
  }

  void TopLevel() {
    if (Accept(";") || TypeDeclaration()) return;
    const std::string name = TakeWord("a declaration");
    if (name == "trace") {
      Trace();
    } else if (name == "env") {
      Environment();
    } else if (name == "clock") {
      DeclareClock();
    } else if (name == "stream") {
      Stream();
    } else if (name == "event") {
      Event();
    } else if (name == "callsite") {
      Block([](const std::string&, const Value&) {}, [](const std::string&, const Type*) {});
    } else {
      Fail(absl::StrCat("'", name.substr(0, 64),
                        "' is not a declaration; use e.g. trace, env, clock, stream or event"));
    }
    if (!failed() && token_.kind != Token::Kind::kEnd) Expect(";");
  }

  ByteOrder ByteOrderOf(const Value& value) {
    if (value.text == "native") return ByteOrder::kNative;
    if (value.text == "le") return ByteOrder::kLittle;
    if (value.text == "be" || value.text == "network") return ByteOrder::kBig;
    Fail(value.line, "invalid byte_order; use le, be or network, or for a type also native");
    return ByteOrder::kNative;
  }

  void Trace() {
    const auto set_value = [this](const std::string& name, const Value& value) {
      if (name == "byte_order") {
        metadata_.byte_order = ByteOrderOf(value);
        if (metadata_.byte_order == ByteOrder::kNative) {
          Fail(value.line, "the byte_order of the trace cannot be native; use le, be or network");
        }
      } else if (name == "uuid") {
        metadata_.uuid = base::ParseHex128(value.text);
        if (!metadata_.uuid) {
          Fail(value.line, "invalid uuid; example: \"00112233-4455-6677-8899-aabbccddeeff\"");
        }
      } else if ((name == "major" && NumberOf(value) != 1) ||
                 (name == "minor" && NumberOf(value) != 8)) {
        Fail(value.line, absl::StrCat("only CTF 1.8 can be read, not ", name, " = ", value.number));
      }
    };
    Block(set_value, [this](const std::string& name, const Type* type) {
      if (name != "packet.header") return NoType(name);
      metadata_.packet_header = Struct(type);
    });
  }

  void Environment() {
    const auto set_value = [this](const std::string& name, const Value& value) {
      std::string text = value.text;
      if (value.kind == Token::Kind::kNumber) {
        text = value.is_negative ? absl::StrCat(static_cast<std::int64_t>(value.number))
                                 : absl::StrCat(value.number);
      }
      metadata_.environment.emplace_back(name, std::move(text));
    };
    Block(set_value, [this](const std::string& name, const Type*) { NoType(name); });
  }

  void DeclareClock() {
    Clock clock;
    const std::size_t line = token_.line;
    const auto set_value = [&](const std::string& name, const Value& value) {
      if (name == "name") {
        clock.name = value.text;
      } else if (name == "freq") {
        clock.frequency = UnsignedOf(value);
      } else if (name == "offset_s") {
        clock.offset_seconds = static_cast<std::int64_t>(NumberOf(value));
      } else if (name == "offset") {
        clock.offset = static_cast<std::int64_t>(NumberOf(value));
      }
    };
    Block(set_value, [this](const std::string& name, const Type*) { NoType(name); });
    if (clock.frequency == 0) Fail(line, "the clock's freq is 0; it must be at least 1");
    metadata_.clocks.push_back(std::move(clock));
  }

  void Stream() {
    StreamDeclaration stream{.line = token_.line};
    const auto set_value = [&](const std::string& name, const Value& value) {
      if (name == "id") stream.id = UnsignedOf(value);
    };
    Block(set_value, [&](const std::string& name, const Type* type) {
      if (name == "packet.context") {
        stream.packet_context = Struct(type);
      } else if (name == "event.header") {
        stream.event_header = Struct(type);
      } else if (name == "event.context") {
        stream.event_context = Struct(type);
      } else {
        NoType(name);
      }
    });
    if (!stream_ids_.insert(stream.id).second) {
      Fail(stream.line, absl::StrCat("stream ", stream.id, " is declared twice"));
    }
    metadata_.streams.push_back(stream);
  }

  void Event() {
    EventDeclaration event{.line = token_.line};
    const auto set_value = [&](const std::string& name, const Value& value) {
      if (name == "name") {
        event.name = value.text;
      } else if (name == "id") {
        event.id = UnsignedOf(value);
      } else if (name == "stream_id") {
        event.stream_id = UnsignedOf(value);
      } else if (name == "loglevel") {
        event.loglevel = static_cast<std::int64_t>(NumberOf(value));
      }
    };
    Block(set_value, [&](const std::string& name, const Type* type) {
      if (name == "context") {
        event.context = Struct(type);
      } else if (name == "fields") {
        event.fields = Struct(type);
      } else {
        NoType(name);
      }
    });
    if (!event_ids_.insert({event.stream_id, event.id}).second) {
      Fail(event.line,
           absl::StrCat("event ", event.id, " of stream ", event.stream_id, " is declared twice"));
    }
    metadata_.events.push_back(std::move(event));
  }

  const Type* Struct(const Type* type) {
    if (type->kind != Kind::kStruct)
      Fail(type->line, "the type of a header, a context or fields must be a struct");
    return type;
  }

  const Type* TakeType() {
    if (++nesting_ > kMaxTypeDepth) {
      Fail(absl::StrCat("types are nested more than ", kMaxTypeDepth, " levels deep"));
    }
    const Type* const type = TakeTypeWithin();
    --nesting_;
    return type;
  }
  const Type* TakeTypeWithin() {
    const std::size_t line = token_.line;
    if (failed()) return NewType(Kind::kStruct, line);
    // `const` has no effect.
    while (token_.IsWord("const")) Advance();
    const std::string word = TakeWord("a type");
    if (word == "integer") return Integer(line);
    if (word == "floating_point") return Float(line);
    if (word == "string") return String(line);
    if (word == "struct") return StructType(line);
    if (word == "variant") return Variant(line);
    if (word == "enum") return Enum(line);
    std::string name = word;
    if (IsCWord(word)) {
      while (token_.kind == Token::Kind::kWord &&
             (IsCWord(token_.text) || token_.text == "const")) {
        if (token_.text != "const") absl::StrAppend(&name, " ", token_.text);
        Advance();
      }
    }
    return Find(name);
  }
  // Returns whether `word` is a word of C's type names. Several of these words may form one name,
  // such as unsigned long.
  static bool IsCWord(const std::string& word) {
    static const auto* const kWords = new absl::flat_hash_set<std::string>{
        "void",   "char",   "short",    "int",   "long",    "float",
        "double", "signed", "unsigned", "_Bool", "_Complex"};
    return kWords->contains(word);
  }

  std::uint64_t AlignOf(std::uint64_t align, std::size_t line) {
    if (std::has_single_bit(align) && align <= kMaxAlign) return align;
    Fail(line, absl::StrCat("align ", align, " is not a power of 2 up to ", kMaxAlign));
    return 1;
  }

  void SetEncoding(const Value& value, Type* type) {
    type->is_text = value.text == "UTF8" || value.text == "utf8" || value.text == "UTF" ||
                    value.text == "utf" || value.text == "ASCII" || value.text == "ascii";
  }

  const Type* Integer(std::size_t line) {
    Type* const type = NewType(Kind::kInteger, line);
    std::optional<std::uint64_t> align;
    std::uint64_t size = 0;
    const auto set_value = [&](const std::string& name, const Value& value) {
      if (name == "size") {
        size = UnsignedOf(value);
      } else if (name == "align") {
        align = AlignOf(UnsignedOf(value), value.line);
      } else if (name == "signed") {
        type->is_signed = value.text == "true" || value.text == "TRUE" || value.number == 1;
      } else if (name == "byte_order") {
        type->byte_order = ByteOrderOf(value);
      } else if (name == "base") {
        type->is_hex = value.text == "hexadecimal" || value.text == "hex" || value.text == "x" ||
                       value.text == "X" || value.text == "p" || value.number == 16;
      } else if (name == "encoding") {
        SetEncoding(value, type);
      } else if (name == "map") {
        type->clock = ClockOf(value);
      }
    };
    Block(set_value, [this](const std::string& name, const Type*) { NoType(name); });
    if (size == 0 || size > 64) {
      Fail(line, absl::StrCat("an integer of ", size, " bits; 1 to 64 bits are supported"));
      size = 64;
    }
    type->size = static_cast<unsigned>(size);
    type->align = align.value_or(size % 8 == 0 ? 8 : 1);
    return type;
  }

  // Returns NAME from the text clock.NAME.value.
  std::string ClockOf(const Value& value) {
    absl::string_view name = value.text;
    constexpr std::string_view kBegin = "clock.";
    constexpr std::string_view kEnd = ".value";
    if (value.text.size() <= kBegin.size() + kEnd.size() || !value.text.starts_with(kBegin) ||
        !value.text.ends_with(kEnd)) {
      Fail(value.line, "invalid map; use clock.NAME.value");
      return "";
    }
    name.remove_prefix(kBegin.size());
    name.remove_suffix(kEnd.size());
    return std::string(name);
  }

  const Type* Float(std::size_t line) {
    Type* const type = NewType(Kind::kFloat, line);
    std::uint64_t exponent = 8;
    std::uint64_t mantissa = 24;
    std::optional<std::uint64_t> align;
    const auto set_value = [&](const std::string& name, const Value& value) {
      if (name == "exp_dig") {
        exponent = UnsignedOf(value);
      } else if (name == "mant_dig") {
        mantissa = UnsignedOf(value);
      } else if (name == "align") {
        align = AlignOf(UnsignedOf(value), value.line);
      } else if (name == "byte_order") {
        type->byte_order = ByteOrderOf(value);
      }
    };
    Block(set_value, [this](const std::string& name, const Type*) { NoType(name); });
    type->size = exponent == 11 ? 64 : 32;
    if (!(exponent == 8 && mantissa == 24) && !(exponent == 11 && mantissa == 53)) {
      Fail(line, absl::StrCat("a floating_point has exp_dig = ", exponent, " and mant_dig = ",
                              mantissa, "; supported are 8 and 24, and 11 and 53"));
    }
    type->align = align.value_or(8);
    return type;
  }

  const Type* String(std::size_t line) {
    Type* const type = NewType(Kind::kString, line);
    type->align = 8;
    type->is_text = true;
    if (token_.IsSign("{")) {
      Block([](const std::string&, const Value&) {},
            [this](const std::string& name, const Type*) { NoType(name); });
    }
    return type;
  }

  // Parses members up to the brace that ends them.
  void Members(Type* type) {
    scopes_.emplace_back();
    while (!failed() && !Accept("}")) {
      if (token_.kind == Token::Kind::kEnd)
        return Fail("a struct or variant has no '}' at its end");
      if (Accept(";")) continue;
      if (token_.IsWord("typealias") || token_.IsWord("typedef")) {
        TypeDeclaration();
        continue;
      }
      const Type* const member = TakeType();
      if (Accept(";")) continue;  // a declaration of a type, without a member
      do {
        std::string name;
        const Type* const declared = TakeDeclarator(member, &name);
        type->depth = std::max(type->depth, declared->depth + 1);
        type->members.push_back({std::move(name), declared});
      } while (Accept(","));
      Expect(";");
    }
    scopes_.pop_back();
    if (type->depth > kMaxTypeDepth) {
      Fail(type->line, absl::StrCat("types are nested more than ", kMaxTypeDepth, " levels deep"));
      type->depth = kMaxTypeDepth;
    }
  }

  const Type* TakeDeclarator(const Type* type, std::string* name) {
    *name = TakeWord("a name");
    struct Suffix {
      std::uint64_t count = 0;
      std::vector<std::string> reference;
      std::size_t line = 0;
    };
    std::vector<Suffix> suffixes;
    while (!failed() && token_.IsSign("[")) {
      Suffix& suffix = suffixes.emplace_back();
      suffix.line = token_.line;
      Advance();
      if (token_.kind == Token::Kind::kNumber) {
        suffix.count = token_.number;
        Advance();
      } else {
        suffix.reference = TakePath("a length");
      }
      Expect("]");
      if (suffixes.size() > kMaxTypeDepth) {
        Fail(absl::StrCat("types are nested more than ", kMaxTypeDepth, " levels deep"));
      }
    }
    for (auto suffix = suffixes.rbegin(); suffix != suffixes.rend(); ++suffix) {
      Type* const array = NewType(suffix->reference.empty() ? Kind::kArray : Kind::kSequence,
                                  suffix->line, type->depth + 1);
      array->element = type;
      array->count = suffix->count;
      array->reference = std::move(suffix->reference);
      type = array;
    }
    return type;
  }

  std::string TakeOptionalName() {
    return token_.kind == Token::Kind::kWord && token_.text != "align" ? TakeWord("a name") : "";
  }

  const Type* StructType(std::size_t line) {
    const std::string name = TakeOptionalName();
    if (!token_.IsSign("{")) {
      if (name.empty()) Fail("a struct has neither a name nor members");
      return Find("struct " + name);
    }
    Type* const type = NewType(Kind::kStruct, line);
    Expect("{");
    Members(type);
    if (token_.IsWord("align")) {
      Advance();
      Expect("(");
      type->align = AlignOf(UnsignedOf(TakeValue()), line);
      Expect(")");
    }
    if (!name.empty()) Define("struct " + name, type);
    return type;
  }

  const Type* Variant(std::size_t line) {
    const std::string name = TakeOptionalName();
    std::vector<std::string> tag;
    if (Accept("<")) {
      tag = TakePath("a tag");
      Expect(">");
    }
    Type* const type = NewType(Kind::kVariant, line);
    if (token_.IsSign("{")) {
      Expect("{");
      Members(type);
      if (!name.empty()) Define("variant " + name, type);
    } else if (name.empty()) {
      Fail("a variant has neither a name nor members");
    } else {
      const Type* const declared = Find("variant " + name);
      copied_members_ += declared->members.size();
      if (copied_members_ > kMaxTypes) return NewTypeBeyond();
      *type = *declared;
      type->kind = Kind::kVariant;
    }
    if (!tag.empty()) type->reference = std::move(tag);
    return type;
  }

  const Type* Enum(std::size_t line) {
    const std::string name = TakeOptionalName();
    const Type* integer = nullptr;
    if (Accept(":")) integer = TakeType();
    if (!token_.IsSign("{")) {
      if (name.empty()) Fail("an enum has neither a name nor members");
      return Find("enum " + name);
    }
    if (integer == nullptr) integer = Find("int");
    if (integer->kind != Kind::kInteger) Fail(line, "the base type of an enum is not an integer");
    Type* const type = NewType(Kind::kEnum, line, integer->depth + 1);
    type->element = integer;
    Enumerators(type);
    if (!name.empty()) Define("enum " + name, type);
    return type;
  }

  void Enumerators(Type* type) {
    Expect("{");
    std::uint64_t next = 0;
    while (!failed() && !Accept("}")) {
      EnumRange& range = type->ranges.emplace_back();
      if (token_.kind == Token::Kind::kText) {
        range.name = std::exchange(token_.text, {});
        Advance();
      } else {
        range.name = TakeWord("a name");
      }
      range.low = range.high = next;
      if (Accept("=")) {
        range.low = range.high = NumberOf(TakeValue());
        if (Accept("...")) range.high = NumberOf(TakeValue());
      }
      next = range.high + 1;
      if (!Accept(",") && !token_.IsSign("}")) Expect("}");
    }
  }

  Lexer lexer_;
  Token token_;
  absl::Status status_;
  Metadata metadata_;
  std::vector<Scope> scopes_;
  int nesting_ = 0;
  std::size_t copied_members_ = 0;
  absl::flat_hash_set<std::uint64_t> stream_ids_;
  absl::flat_hash_set<std::pair<std::uint64_t, std::uint64_t>> event_ids_;
};

}  // namespace

absl::StatusOr<Metadata> ParseTsdl(std::string_view text) { return Parser(text).Run(); }

}  // namespace tools::importing::ctf
