// A strict checker of JSON texts (RFC 8259) for tests and fuzzers. It shares no code with the
// formatter.
#ifndef TESTS_SUPPORT_EVENTHEADER_JSON_CHECK_H_
#define TESTS_SUPPORT_EVENTHEADER_JSON_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eh::testing {

// Returns whether the text is UTF-8 by RFC 3629: no overlong form, no surrogate, nothing above
// U+10FFFF.
inline bool IsValidUtf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto lead = static_cast<std::uint8_t>(text[at++]);
    if (lead < 0x80) continue;
    int more = 0;
    std::uint32_t point = 0;
    std::uint32_t least = 0;
    if ((lead & 0xE0) == 0xC0) {
      more = 1, point = lead & 0x1F, least = 0x80;
    } else if ((lead & 0xF0) == 0xE0) {
      more = 2, point = lead & 0x0F, least = 0x800;
    } else if ((lead & 0xF8) == 0xF0) {
      more = 3, point = lead & 0x07, least = 0x10000;
    } else {
      return false;
    }
    for (; more > 0; --more) {
      if (at == text.size()) return false;
      const auto next = static_cast<std::uint8_t>(text[at++]);
      if ((next & 0xC0) != 0x80) return false;
      point = point << 6 | (next & 0x3F);
    }
    if (point < least || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return false;
  }
  return true;
}

class JsonChecker {
 public:
  explicit JsonChecker(std::string_view text) : text_(text) {}

  // Returns whether the text is one JSON value without white space around or within it.
  bool IsValid() { return Value(0) && text_.empty(); }

 private:
  bool Take(std::string_view prefix) {
    if (!text_.starts_with(prefix)) return false;
    text_.remove_prefix(prefix.size());
    return true;
  }

  bool TakeOneOf(std::string_view set) {
    if (text_.empty() || set.find(text_[0]) == std::string_view::npos) return false;
    text_.remove_prefix(1);
    return true;
  }

  bool Digits() {
    if (!TakeOneOf("0123456789")) return false;
    while (TakeOneOf("0123456789")) {
    }
    return true;
  }

  bool Value(int depth) {
    if (depth > 100) return false;
    if (Take("{")) return Members(depth, /*keys=*/true, "}");
    if (Take("[")) return Members(depth, /*keys=*/false, "]");
    if (text_.starts_with('"')) return String();
    if (Take("true") || Take("false") || Take("null")) return true;
    return Number();
  }

  bool Members(int depth, bool keys, std::string_view end) {
    if (Take(end)) return true;
    do {
      if (keys && !(String() && Take(":"))) return false;
      if (!Value(depth + 1)) return false;
    } while (Take(","));
    return Take(end);
  }

  bool Number() {
    Take("-");
    if (!Take("0") && !Digits()) return false;
    if (Take(".") && !Digits()) return false;
    if (TakeOneOf("eE")) {
      TakeOneOf("+-");
      return Digits();
    }
    return true;
  }

  bool String() {
    if (!Take("\"")) return false;
    while (!text_.empty()) {
      if (Take("\"")) return true;
      if (static_cast<std::uint8_t>(text_[0]) < 0x20) return false;
      if (Take("\\")) {
        if (Take("u")) {
          for (int i = 0; i < 4; ++i) {
            if (!TakeOneOf("0123456789abcdefABCDEF")) return false;
          }
        } else if (!TakeOneOf("\"\\/bfnrt")) {
          return false;
        }
      } else {
        text_.remove_prefix(1);
      }
    }
    return false;
  }

  std::string_view text_;
};

inline bool IsValidJson(std::string_view text) {
  return IsValidUtf8(text) && JsonChecker(text).IsValid();
}

}  // namespace eh::testing

#endif  // TESTS_SUPPORT_EVENTHEADER_JSON_CHECK_H_
