#include "tools/collector/session/ring_filter.h"

#include <array>
#include <bitset>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace collector {
namespace {

// Maximum length of a filter that the kernel accepts, in bytes.
constexpr std::size_t kMaxText = 4095;
// Maximum depth of nested parentheses.
constexpr int kMaxDepth = 30;
// Size of the EventHeader fields at the start of an event, in bytes.
constexpr std::size_t kHeaderBytes = 8;

struct Field {
  std::string_view name;
  std::uint8_t offset;
  std::uint8_t size;
};

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = absl::ascii_tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : 16;
}

}  // namespace

class RingFilterParser {
 public:
  explicit RingFilterParser(std::string_view text) : text_(text) {}

  absl::StatusOr<RingFilter> Parse() {
    if (text_.size() > kMaxText) {
      return absl::InvalidArgumentError(absl::StrCat("the filter is too long (", text_.size(),
                                                     " bytes); use at most ", kMaxText, " bytes"));
    }
    RETURN_IF_ERROR(ParseOr(0));
    if (!IsAtEnd()) return Fail("expected '&&', '||' or the end of the filter");
    return std::move(filter_);
  }

 private:
  using Kind = RingFilter::Kind;

  absl::Status Fail(std::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("at character ", at_ + 1, ": ", std::string(what)));
  }
  bool IsAtEnd() {
    while (at_ < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) {
      ++at_;
    }
    return at_ == text_.size();
  }
  bool Take(std::string_view token) {
    if (IsAtEnd() || !text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  // Takes and returns the letters, digits and underscores that follow in the text.
  std::string_view TakeWord() {
    IsAtEnd();  // skips blanks
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (absl::ascii_isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) {
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  absl::Status ParseOr(int depth) {
    RETURN_IF_ERROR(ParseAnd(depth));
    while (Take("||")) {
      RETURN_IF_ERROR(ParseAnd(depth));
      filter_.steps_.push_back({Kind::kOr});
    }
    return absl::OkStatus();
  }
  absl::Status ParseAnd(int depth) {
    RETURN_IF_ERROR(ParseTerm(depth));
    while (Take("&&")) {
      RETURN_IF_ERROR(ParseTerm(depth));
      filter_.steps_.push_back({Kind::kAnd});
    }
    return absl::OkStatus();
  }
  absl::Status ParseTerm(int depth) {
    bool inverts = false;
    while (Take("!")) inverts = !inverts;
    if (Take("(")) {
      if (depth == kMaxDepth) {
        return Fail(absl::StrCat("there are too many parentheses inside each other (maximum ",
                                 kMaxDepth, ")"));
      }
      RETURN_IF_ERROR(ParseOr(depth + 1));
      if (!Take(")")) return Fail("')' is missing");
    } else {
      RETURN_IF_ERROR(ParseComparison());
    }
    if (inverts) filter_.steps_.push_back({Kind::kNot});
    return absl::OkStatus();
  }
  absl::Status ParseComparison() {
    static constexpr std::array<Field, 8> kFields = {{{"eventheader_flags", 0, 1},
                                                      {"version", 1, 1},
                                                      {"id", 2, 2},
                                                      {"tag", 4, 2},
                                                      {"opcode", 6, 1},
                                                      {"level", 7, 1},
                                                      {"common_pid", RingFilter::kTid, 4},
                                                      {"COMM", RingFilter::kComm, 16}}};
    struct Operator {
      std::string_view token;
      Kind kind;
    };
    // "<=" and ">=" come before "<" and ">", because the first token that matches is taken.
    static constexpr std::array<Operator, 7> kOperators = {{{"==", Kind::kEqual},
                                                            {"!=", Kind::kNotEqual},
                                                            {"<=", Kind::kLessOrEqual},
                                                            {"<", Kind::kLess},
                                                            {">=", Kind::kGreaterOrEqual},
                                                            {">", Kind::kGreater},
                                                            {"&", Kind::kHasBits}}};
    const std::string_view name = TakeWord();
    RingFilter::Step step{Kind::kEqual};
    for (const Field& field : kFields) {
      if (field.name != name) continue;
      step.offset = field.offset;
      step.size = field.size;
    }
    if (step.size == 0) {
      return Fail(
          "use a field of the tracepoint (eventheader_flags, version, id, tag, opcode, level, "
          "common_pid) or COMM");
    }
    bool has_operator = false;
    for (const Operator& each : kOperators) {
      if (has_operator || !Take(each.token)) continue;
      has_operator = true;
      step.kind = each.kind;
    }
    if (!has_operator) return Fail("use one of the operators == != < <= > >= &");
    if (step.offset == RingFilter::kComm) {
      RETURN_IF_ERROR(ParseText(&step));
    } else {
      RETURN_IF_ERROR(ParseNumber(&step));
    }
    filter_.steps_.push_back(step);
    return absl::OkStatus();
  }
  // Reads a text in quotes as the kernel does: it ends at the next quote of the same kind.
  absl::Status ParseText(RingFilter::Step* step) {
    if (step->kind != Kind::kEqual && step->kind != Kind::kNotEqual) {
      return Fail("use one of the operators == != for COMM");
    }
    if (IsAtEnd() || (text_[at_] != '"' && text_[at_] != '\'')) {
      return Fail("use a name in quotes, such as \"worker\"");
    }
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return Fail("the quote at the end of the name is missing");
    step->value = static_cast<std::int64_t>(filter_.texts_.size());
    filter_.texts_.emplace_back(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return absl::OkStatus();
  }
  // Reads a number as the kernel does: hexadecimal after 0x, octal after 0, otherwise decimal. Only
  // common_pid is signed.
  absl::Status ParseNumber(RingFilter::Step* step) {
    const bool is_signed = step->offset == RingFilter::kTid;
    const bool is_negative = is_signed && Take("-");
    std::string_view digits = TakeWord();
    unsigned base = 10;
    if (digits.starts_with("0x") || digits.starts_with("0X")) {
      base = 16;
      digits.remove_prefix(2);
    } else if (digits.starts_with("0") && digits.size() > 1) {
      base = 8;
    }
    const std::uint64_t limit = is_signed ? std::numeric_limits<std::int64_t>::max()
                                          : std::numeric_limits<std::uint64_t>::max();
    std::uint64_t number = 0;
    bool is_number = !digits.empty();
    for (const char c : digits) {
      const auto digit = static_cast<unsigned>(DigitOf(c));
      is_number = is_number && digit < base && number <= (limit - digit) / base;
      if (is_number) number = number * base + digit;
    }
    if (!is_number) return Fail("use a number of at most 64 bits, such as 5 or 0x1f");
    if (is_negative) number = 0 - number;
    switch (step->size) {
      case 1:
        step->value = static_cast<std::uint8_t>(number);
        break;
      case 2:
        step->value = static_cast<std::uint16_t>(number);
        break;
      default:
        step->value = static_cast<std::int32_t>(number);
    }
    return absl::OkStatus();
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  RingFilter filter_;
};

absl::StatusOr<RingFilter> RingFilter::Parse(std::string_view text) {
  return RingFilterParser(text).Parse();
}

bool RingFilter::Compare(const Step& step, std::span<const std::byte> event, std::uint32_t tid,
                         std::string_view comm) const {
  if (step.offset == kComm) {
    return (comm == texts_[static_cast<std::size_t>(step.value)]) == (step.kind == Kind::kEqual);
  }
  std::int64_t field = static_cast<std::int32_t>(tid);
  if (step.offset != kTid && step.size == 1) {
    field = std::to_integer<std::int64_t>(event[step.offset]);
  } else if (step.offset != kTid) {
    std::uint16_t word = 0;
    std::memcpy(&word, &event[step.offset], sizeof word);
    field = word;
  }
  switch (step.kind) {
    case Kind::kEqual:
      return field == step.value;
    case Kind::kNotEqual:
      return field != step.value;
    case Kind::kLess:
      return field < step.value;
    case Kind::kLessOrEqual:
      return field <= step.value;
    case Kind::kGreater:
      return field > step.value;
    case Kind::kGreaterOrEqual:
      return field >= step.value;
    default:
      return (field & step.value) != 0;
  }
}

bool RingFilter::Accepts(std::span<const std::byte> event, std::uint32_t tid,
                         std::string_view comm) const {
  // An event that is too short for the fields of filters is accepted, so that it is recorded and
  // shown as invalid.
  if (event.size() < kHeaderBytes) return true;
  // Sufficient for the operands: at each depth of parentheses, at most one operand of || and one of
  // && wait for their right sides.
  std::bitset<2 * (kMaxDepth + 1) + 1> stack;
  std::size_t top = 0;
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Kind::kNot:
        stack.flip(top - 1);
        break;
      case Kind::kAnd:
        --top;
        stack[top - 1] = stack[top - 1] && stack[top];
        break;
      case Kind::kOr:
        --top;
        stack[top - 1] = stack[top - 1] || stack[top];
        break;
      default:
        stack[top++] = Compare(step, event, tid, comm);
    }
  }
  return stack[0];
}

}  // namespace collector
