#include "tools/trace/rust_name.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace trace {
namespace {

// Limits that bound the time for hostile names. With references to earlier parts, a short name can
// have an exponentially long readable form, or require parts that print nothing to be read again
// and again.
constexpr int kMaxDepth = 200;
constexpr std::size_t kMaxReadAgain = 1 << 16;  // maximum bytes that are read again

// Returns the type that the letter stands for; empty if it stands for none.
std::string_view BasicType(char tag) {
  constexpr std::array<std::string_view, 26> kTypes = {
      "i8",    "bool", "char", "f64", "str",  "f32",  "",    "u8", "isize",
      "usize", "",     "i32",  "u32", "i128", "u128", "_",   "",   "",
      "i16",   "u16",  "()",   "...", "",     "i64",  "u64", "!"};
  return tag >= 'a' && tag <= 'z' ? kTypes[static_cast<std::size_t>(tag - 'a')]
                                  : std::string_view();
}

// Appends a character of Unicode. Returns false if there is no such character.
bool AppendUtf8(std::uint32_t code, std::string* text) {
  const auto add = [text](std::uint32_t byte) { text->push_back(static_cast<char>(byte)); };
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
  if (code < 0x80) {
    add(code);
    return true;
  }
  if (code < 0x800) {
    add(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      add(0xe0 | code >> 12);
    } else {
      add(0xf0 | code >> 18);
      add(0x80 | (code >> 12 & 0x3f));
    }
    add(0x80 | (code >> 6 & 0x3f));
  }
  add(0x80 | (code & 0x3f));
  return true;
}

// Decodes Punycode (RFC 3492) with '_' in place of '-'. Returns nullopt if it is damaged, or if it
// has more than `max_size` characters.
std::optional<std::string> DecodePunycode(std::string_view encoded, std::size_t max_size) {
  constexpr std::uint64_t kBase = 36;
  constexpr std::uint64_t kMin = 1;
  constexpr std::uint64_t kMax = 26;
  constexpr std::uint64_t kSkew = 38;
  constexpr std::uint64_t kMaxIndex = std::numeric_limits<std::uint32_t>::max();
  std::u32string decoded;
  if (const std::size_t at = encoded.rfind('_'); at != std::string_view::npos) {
    if (at > max_size) return std::nullopt;
    decoded.assign(encoded.begin(), encoded.begin() + static_cast<std::ptrdiff_t>(at));
    encoded.remove_prefix(at + 1);
  }
  if (encoded.empty()) return std::nullopt;
  std::uint64_t bias = 72;
  std::uint64_t damp = 700;
  std::uint64_t code = 0x80;
  std::uint64_t index = 0;
  while (!encoded.empty()) {
    if (decoded.size() >= max_size) return std::nullopt;
    std::uint64_t delta = 0;
    std::uint64_t weight = 1;
    for (std::uint64_t k = kBase;; k += kBase) {
      if (encoded.empty()) return std::nullopt;
      const char digit = encoded.front();
      encoded.remove_prefix(1);
      std::uint64_t value = 0;
      if (absl::ascii_islower(static_cast<unsigned char>(digit))) {
        value = static_cast<std::uint64_t>(digit - 'a');
      } else if (absl::ascii_isdigit(static_cast<unsigned char>(digit))) {
        value = static_cast<std::uint64_t>(digit - '0') + 26;
      } else {
        return std::nullopt;
      }
      delta += value * weight;
      if (delta > kMaxIndex) return std::nullopt;
      const std::uint64_t threshold = k <= bias ? kMin : std::min(k - bias, kMax);
      if (value < threshold) break;
      // The product stays far below 2^64, because the weight of a valid digit is at most kMaxIndex.
      weight *= kBase - threshold;
      if (weight > kMaxIndex) return std::nullopt;
    }
    const std::uint64_t count = decoded.size() + 1;
    index += delta;
    code += index / count;
    index %= count;
    if (code > 0x10ffff) return std::nullopt;
    decoded.insert(static_cast<std::size_t>(index), 1, static_cast<char32_t>(code));
    ++index;
    delta /= damp;
    damp = 2;
    delta += delta / count;
    std::uint64_t k = 0;
    for (; delta > (kBase - kMin) * kMax / 2; k += kBase) delta /= kBase - kMin;
    bias = k + (kBase - kMin + 1) * delta / (delta + kSkew);
  }
  std::string text;
  for (const char32_t each : decoded) {
    if (!AppendUtf8(each, &text)) return std::nullopt;
  }
  return text;
}

// Reads one name from left to right and prints each part as it is read. After an error, reads and
// prints nothing more.
class NameReader {
 public:
  // `name` is the mangled name without "_R" and without a suffix. Back references count from its
  // start.
  NameReader(std::string_view name, std::size_t max_size) : name_(name), max_size_(max_size) {}

  std::optional<std::string> Read() {
    Path(/*in_value=*/true);
    // The crate in which a generic function was compiled may follow.
    is_printing_ = false;
    if (!failed_ && at_ != name_.size()) Path(/*in_value=*/false);
    if (failed_ || at_ != name_.size()) return std::nullopt;
    return std::move(text_);
  }

 private:
  struct Identifier {
    std::string_view bytes;
    bool is_punycode = false;
  };

  // Counts a level of nesting while a part of the name is read.
  class Part {
   public:
    explicit Part(NameReader* reader) : reader_(reader) {
      if (++reader_->depth_ > kMaxDepth) reader_->failed_ = true;
    }
    ~Part() { --reader_->depth_; }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

   private:
    NameReader* const reader_;
  };

  char Next() {
    if (at_ == name_.size() || steps_ == name_.size() + kMaxReadAgain) failed_ = true;
    if (failed_) return '\0';
    ++steps_;
    return name_[at_++];
  }
  bool Eat(char expected) {
    if (failed_ || at_ == name_.size() || name_[at_] != expected) return false;
    ++at_;
    return true;
  }

  void Print(std::string_view text) {
    if (failed_ || !is_printing_) return;
    if (text.size() > max_size_ - text_.size()) {
      failed_ = true;
      return;
    }
    text_ += text;
  }

  // Reads a number in base 62, which ends with '_'. "_" is 0, "0_" is 1.
  std::uint64_t Base62() {
    if (Eat('_')) return 0;
    std::uint64_t value = 0;
    while (!Eat('_')) {
      const char digit = Next();
      std::uint64_t add = 0;
      if (absl::ascii_isdigit(static_cast<unsigned char>(digit))) {
        add = static_cast<std::uint64_t>(digit - '0');
      } else if (absl::ascii_islower(static_cast<unsigned char>(digit))) {
        add = static_cast<std::uint64_t>(digit - 'a') + 10;
      } else if (absl::ascii_isupper(static_cast<unsigned char>(digit))) {
        add = static_cast<std::uint64_t>(digit - 'A') + 36;
      } else {
        failed_ = true;
      }
      if (value > (std::numeric_limits<std::uint64_t>::max() - 1 - add) / 62) failed_ = true;
      if (failed_) return 0;
      value = value * 62 + add;
    }
    return value + 1;
  }
  // Reads a number that may be left out, in which case the result is 0.
  std::uint64_t OptionalBase62(char tag) {
    if (!Eat(tag)) return 0;
    const std::uint64_t value = Base62();
    if (value == std::numeric_limits<std::uint64_t>::max()) failed_ = true;
    return failed_ ? 0 : value + 1;
  }
  std::uint64_t Disambiguator() { return OptionalBase62('s'); }

  Identifier ReadIdentifier() {
    Identifier identifier;
    identifier.is_punycode = Eat('u');
    const char first = Next();
    if (!absl::ascii_isdigit(static_cast<unsigned char>(first))) failed_ = true;
    if (failed_) return {};
    auto size = static_cast<std::size_t>(first - '0');
    while (size != 0 && at_ != name_.size() &&
           absl::ascii_isdigit(static_cast<unsigned char>(name_[at_]))) {
      size = size * 10 + static_cast<std::size_t>(name_[at_++] - '0');
      if (size > name_.size()) {
        failed_ = true;
        return {};
      }
    }
    // A '_' separates the size from an identifier that begins with a digit or '_'.
    Eat('_');
    if (size > name_.size() - at_) {
      failed_ = true;
      return {};
    }
    identifier.bytes = name_.substr(at_, size);
    at_ += size;
    return identifier;
  }

  void PrintIdentifier(const Identifier& identifier) {
    if (!identifier.is_punycode || failed_ || !is_printing_) return Print(identifier.bytes);
    const auto decoded = DecodePunycode(identifier.bytes, max_size_ - text_.size());
    if (!decoded) {
      failed_ = true;
      return;
    }
    Print(*decoded);
  }

  // Reads a back reference. If the part that it points to must be printed, reads this part too, and
  // then continues after the back reference.
  template <typename ReadPart>
  void BackReference(const ReadPart& read) {
    const std::size_t start = at_ - 1;
    const std::uint64_t target = Base62();
    if (target >= start) failed_ = true;
    if (failed_ || !is_printing_) return;
    const std::size_t end = std::exchange(at_, static_cast<std::size_t>(target));
    read();
    at_ = end;
  }

  // Reads parts up to 'E', and prints `separator` between them. Returns the number of parts.
  template <typename ReadPart>
  std::size_t List(std::string_view separator, const ReadPart& read) {
    std::size_t count = 0;
    for (; !failed_ && !Eat('E'); ++count) {
      if (count != 0) Print(separator);
      read();
    }
    return count;
  }

  void Path(bool in_value) {
    const Part part(this);
    const char tag = Next();
    switch (tag) {
      case 'C':  // the root of a crate
        Disambiguator();
        return PrintIdentifier(ReadIdentifier());
      case 'N':
        return NestedPath(in_value);
      case 'M':    // the implementation of a type
      case 'X': {  // the implementation of a trait for a type
        Disambiguator();
        const bool was_printing = std::exchange(is_printing_, false);
        Path(in_value);  // where the implementation is; not shown
        is_printing_ = was_printing;
        return QualifiedPath(/*has_trait=*/tag == 'X');
      }
      case 'Y':  // the definition of a trait, for a type
        return QualifiedPath(/*has_trait=*/true);
      case 'I':
        Path(in_value);
        if (in_value) Print("::");
        return GenericArguments(">");
      case 'B':
        return BackReference([&] { Path(in_value); });
      default:
        failed_ = true;
    }
  }

  void NestedPath(bool in_value) {
    const char space = Next();
    if (!absl::ascii_isalpha(static_cast<unsigned char>(space))) failed_ = true;
    Path(in_value);
    const std::uint64_t number = Disambiguator();
    const Identifier identifier = ReadIdentifier();
    if (failed_) return;
    // A lower-case letter marks a name from the source, and any other letter a name that the
    // compiler made.
    if (absl::ascii_islower(static_cast<unsigned char>(space))) {
      if (identifier.bytes.empty()) return;
      Print("::");
      return PrintIdentifier(identifier);
    }
    Print("::{");
    Print(space == 'C' ? "closure" : space == 'S' ? "shim" : std::string_view(&space, 1));
    if (!identifier.bytes.empty()) {
      Print(":");
      PrintIdentifier(identifier);
    }
    Print(absl::StrCat("#", number, "}"));
  }

  void QualifiedPath(bool has_trait) {
    Print("<");
    Type();
    if (has_trait) {
      Print(" as ");
      Path(/*in_value=*/false);
    }
    Print(">");
  }

  void GenericArguments(std::string_view end) {
    Print("<");
    List(", ", [this] {
      if (Eat('L')) {
        PrintLifetime(Base62());
      } else if (Eat('K')) {
        Constant();
      } else {
        Type();
      }
    });
    Print(end);
  }

  void Type() {
    const Part part(this);
    const char tag = Next();
    if (failed_) return;
    if (const std::string_view basic = BasicType(tag); !basic.empty()) return Print(basic);
    switch (tag) {
      case 'R':
      case 'Q':
        Print("&");
        if (Eat('L')) {
          if (const std::uint64_t lifetime = Base62(); lifetime != 0) {
            PrintLifetime(lifetime);
            Print(" ");
          }
        }
        if (tag == 'Q') Print("mut ");
        return Type();
      case 'P':
        Print("*const ");
        return Type();
      case 'O':
        Print("*mut ");
        return Type();
      case 'A':
      case 'S':
        Print("[");
        Type();
        if (tag == 'A') {
          Print("; ");
          Constant();
        }
        return Print("]");
      case 'T':
        Print("(");
        if (List(", ", [this] { Type(); }) == 1) Print(",");
        return Print(")");
      case 'F':
        return WithBinder([this] { FunctionType(); });
      case 'D':
        Print("dyn ");
        WithBinder([this] { List(" + ", [this] { DynamicTrait(); }); });
        if (!Eat('L')) failed_ = true;
        if (const std::uint64_t lifetime = Base62(); lifetime != 0) {
          Print(" + ");
          PrintLifetime(lifetime);
        }
        return;
      case 'B':
        return BackReference([this] { Type(); });
      default:
        --at_;
        return Path(/*in_value=*/false);
    }
  }

  void FunctionType() {
    if (Eat('U')) Print("unsafe ");
    if (Eat('K')) {
      std::string abi = "C";
      if (!Eat('C')) {
        const Identifier identifier = ReadIdentifier();
        if (identifier.bytes.empty() || identifier.is_punycode) failed_ = true;
        if (identifier.bytes.size() > max_size_) failed_ = true;
        if (failed_) return;
        // The compiler writes a '-' in the name of an ABI as '_'.
        abi = identifier.bytes;
        std::replace(abi.begin(), abi.end(), '_', '-');
      }
      Print(absl::StrCat("extern \"", abi, "\" "));
    }
    Print("fn(");
    List(", ", [this] { Type(); });
    Print(")");
    if (Eat('u')) return;  // returns nothing
    Print(" -> ");
    Type();
  }

  // Reads a trait of a `dyn` type. Prints its associated types after its generic arguments, as in
  // "Iterator<Item = u8>".
  void DynamicTrait() {
    bool is_open = OpenPath();
    while (Eat('p')) {
      Print(is_open ? ", " : "<");
      is_open = true;
      PrintIdentifier(ReadIdentifier());
      Print(" = ");
      Type();
    }
    if (is_open) Print(">");
  }

  // Reads a path. Returns true if it has generic arguments, whose ">" the caller must print.
  bool OpenPath() {
    const Part part(this);
    bool is_open = false;
    if (Eat('B')) {
      BackReference([&] { is_open = OpenPath(); });
    } else if (Eat('I')) {
      Path(/*in_value=*/false);
      GenericArguments("");
      is_open = true;
    } else {
      Path(/*in_value=*/false);
    }
    return is_open;
  }

  // Reads the lifetimes that a binder names, such as "for<'a>", and calls `read` for the part in
  // which they are valid.
  template <typename ReadPart>
  void WithBinder(const ReadPart& read) {
    const std::uint64_t outer = lifetimes_;
    const std::uint64_t count = OptionalBase62('G');
    if (count > std::numeric_limits<std::uint64_t>::max() - outer) failed_ = true;
    if (count != 0 && is_printing_) {
      Print("for<");
      for (std::uint64_t i = 0; i < count && !failed_; ++i) {
        if (i != 0) Print(", ");
        ++lifetimes_;
        PrintLifetime(1);
      }
      Print("> ");
    }
    lifetimes_ = failed_ ? outer : outer + count;
    read();
    lifetimes_ = outer;
  }

  // Prints a lifetime. 0 is a lifetime without a name, and 1 the last one that a binder has named.
  void PrintLifetime(std::uint64_t lifetime) {
    if (failed_ || !is_printing_) return;
    if (lifetime == 0) return Print("'_");
    if (lifetime > lifetimes_) {
      failed_ = true;
      return;
    }
    const std::uint64_t number = lifetimes_ - lifetime;
    constexpr std::uint64_t kLetters = 26;
    Print(number < kLetters ? absl::StrCat("'", std::string(1, static_cast<char>('a' + number)))
                            : absl::StrCat("'_", number));
  }

  void Constant() {
    const Part part(this);
    const char type = Next();
    switch (type) {
      case 'B':
        return BackReference([this] { Constant(); });
      case 'p':
        return Print("_");
      case 'h':
      case 't':
      case 'm':
      case 'y':
      case 'o':
      case 'j':
        return Number();
      case 'a':
      case 's':
      case 'l':
      case 'x':
      case 'n':
      case 'i':
        if (Eat('n')) Print("-");
        return Number();
      case 'b': {
        const std::string_view digits = HexDigits();
        if (digits != "0" && digits != "1") failed_ = true;
        return Print(digits == "1" ? "true" : "false");
      }
      case 'c':
        return Character();
      default:
        failed_ = true;
    }
  }

  // Reads hexadecimal digits, which end with '_'.
  std::string_view HexDigits() {
    const std::size_t start = at_;
    std::size_t size = 0;
    while (!failed_ && !Eat('_')) {
      const char digit = Next();
      if (!absl::ascii_isxdigit(static_cast<unsigned char>(digit)) ||
          absl::ascii_isupper(static_cast<unsigned char>(digit))) {
        failed_ = true;
      }
      ++size;
    }
    return failed_ ? std::string_view() : name_.substr(start, size);
  }

  // Returns the value of at most 16 hexadecimal digits.
  static std::uint64_t ValueOf(std::string_view digits) {
    std::uint64_t value = 0;
    for (const char digit : digits) {
      value =
          value << 4 | static_cast<std::uint64_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    }
    return value;
  }

  void Number() {
    const std::string_view digits = HexDigits();
    if (digits.empty()) failed_ = true;
    constexpr std::size_t kMaxDigits = 16;
    if (digits.size() <= kMaxDigits) return Print(absl::StrCat(ValueOf(digits)));
    Print("0x");
    Print(digits);
  }

  void Character() {
    const std::string_view digits = HexDigits();
    constexpr std::size_t kMaxDigits = 8;
    if (digits.empty() || digits.size() > kMaxDigits) failed_ = true;
    if (failed_) return;
    const std::uint64_t code = ValueOf(digits);
    std::string text;
    switch (code) {
      case '\t':
        text = "\\t";
        break;
      case '\r':
        text = "\\r";
        break;
      case '\n':
        text = "\\n";
        break;
      default:
        if (code > ' ' && code < '~') {
          text = static_cast<char>(code);
        } else {
          text = absl::StrFormat("\\u{%x}", code);
        }
    }
    Print(absl::StrCat("'", text, "'"));
  }

  const std::string_view name_;
  const std::size_t max_size_;
  std::size_t at_ = 0;  // index in name_ of the byte to read next
  std::string text_;
  bool is_printing_ = true;
  bool failed_ = false;
  std::uint64_t lifetimes_ = 0;  // number of lifetimes that the enclosing binders have named
  int depth_ = 0;
  std::size_t steps_ = 0;  // bytes that Next() has read
};

}  // namespace

std::optional<std::string> ReadableRustName(std::string_view mangled, std::size_t max_size) {
  if (!mangled.starts_with("_R")) return std::nullopt;
  std::string_view name = mangled.substr(2);
  // A compiler may add a suffix, such as ".llvm.1234", to a copy of the function.
  name = name.substr(0, name.find_first_of(".$"));
  if (!std::all_of(name.begin(), name.end(),
                   [](unsigned char each) { return absl::ascii_isalnum(each) || each == '_'; })) {
    return std::nullopt;
  }
  return NameReader(name, max_size).Read();
}

}  // namespace trace
