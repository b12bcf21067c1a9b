#include "tools/collector/convert/payload_program.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "libeventheader/decode/text_reader.h"
#include "libnettrace-writer/core/little_endian.h"
#include "libnettrace-writer/core/utf.h"
#include "nettrace/schema.h"

namespace collector {
namespace {

using Outcome = PayloadProgram::Outcome;
using Result = PayloadProgram::Result;
using eh::internal::TextEncoding;
using eh::internal::TextReader;

// Runs a program once. Calls itself for nested structs; the parser of the metadata limits their
// depth.
class Runner {
 public:
  Runner(std::span<const std::byte> data, bool swap_counts, std::vector<std::byte>* out,
         std::span<char> seen)
      : data_(data), swap_counts_(swap_counts), out_(out), seen_(seen) {}

  bool RunAll(std::span<const PayloadOp> ops) {
    for (std::size_t i = 0; i < ops.size(); i += 1 + ops[i].children) {
      if (!RunOp(ops[i], ops.subspan(i + 1, ops[i].children))) return false;
    }
    return true;
  }

  Outcome outcome(std::size_t source_size) const {
    Outcome outcome = outcome_;
    outcome.consumed = source_size - data_.size();
    return outcome;
  }

 private:
  bool RunOp(const PayloadOp& op, std::span<const PayloadOp> children) {
    std::size_t count = 1;
    if (op.repeat == PayloadOp::Repeat::kConstant) {
      count = op.count;
    } else if (op.repeat == PayloadOp::Repeat::kCounted) {
      std::uint16_t read = 0;
      if (!TakeCount(&read)) return false;
      count = read;
    }
    if (op.write_count) PutCount(count);
    if (op.element == PayloadOp::Element::kFixed && !op.swap) return Copy(op, count * op.size);
    for (std::size_t i = 0; i < count; ++i) {
      if (!RunElement(op, children)) return false;
    }
    return true;
  }

  bool RunElement(const PayloadOp& op, std::span<const PayloadOp> children) {
    std::span<const std::byte> bytes;
    switch (op.element) {
      case PayloadOp::Element::kFixed:
        if (!Take(op.size, &bytes)) return false;
        PutSwapped(bytes);
        return true;
      case PayloadOp::Element::kUuid: {
        if (!Take(16, &bytes)) return false;
        PutGuid(bytes);
        return true;
      }
      case PayloadOp::Element::kZText:
        if (!TakeUntilZero(op.size, &bytes)) return false;
        PutText(op, bytes);
        return true;
      case PayloadOp::Element::kText: {
        std::uint16_t units = 0;
        if (!TakeCount(&units) || !Take(std::size_t{units} * op.size, &bytes)) return false;
        PutText(op, bytes);
        return true;
      }
      case PayloadOp::Element::kUnits:
        if (!Take(std::size_t{op.count} * op.size, &bytes)) return false;
        if (op.ends_at_zero) bytes = bytes.first(SizeToZero(bytes, op.size));
        PutText(op, bytes);
        return true;
      case PayloadOp::Element::kNullable:
        return RunNullable(op);
      case PayloadOp::Element::kStruct:
        return RunAll(children);
    }
    return false;
  }

  bool Fail(Result result) {
    outcome_.result = result;
    return false;
  }

  bool Take(std::size_t size, std::span<const std::byte>* bytes) {
    if (size > data_.size()) return Fail(Result::kTruncated);
    *bytes = data_.first(size);
    data_ = data_.subspan(size);
    return true;
  }

  bool Copy(const PayloadOp& op, std::size_t size) {
    std::span<const std::byte> bytes;
    if (!Take(size, &bytes)) return false;
    CheckAscii(op, bytes);
    Put(bytes);
    return true;
  }

  bool RunNullable(const PayloadOp& op) {
    std::uint16_t size = 0;
    std::span<const std::byte> bytes;
    if (!TakeCount(&size) || !Take(size, &bytes)) return false;
    const SeenValue seen = size == 0 || Fits(op, size) ? SeenSize(size) : kSeenMisfit;
    if (op.slot < seen_.size()) seen_[op.slot] = static_cast<char>(seen_[op.slot] | seen);
    if (seen == kSeenMisfit) CheckAscii(op, bytes);
    if (op.output == PayloadOp::Output::kUnits) PutCount(size);
    if (op.output == PayloadOp::Output::kCountAndValue) PutCount(size == 0 ? 0 : 1);
    if (op.uuid && size == 16) {
      PutGuid(bytes);
    } else if (op.swap && Fits(op, size)) {
      PutSwapped(bytes);
    } else {
      Put(bytes);
    }
    return true;
  }

  static bool Fits(const PayloadOp& op, std::size_t size) {
    return (op.fitting & SeenSize(size)) != 0;
  }

  void CheckAscii(const PayloadOp& op, std::span<const std::byte> units) {
    if (op.charset == PayloadOp::Charset::kNone) return;
    outcome_.non_ascii |=
        nettrace::internal::ClassifyUtf8(units) != nettrace::internal::TextKind::kAscii;
  }

  bool TakeCount(std::uint16_t* count) {
    std::span<const std::byte> bytes;
    if (!Take(sizeof *count, &bytes)) return false;
    *count = nettrace::internal::LoadLittleEndian<std::uint16_t>(bytes.data());
    if (swap_counts_) *count = __builtin_bswap16(*count);
    return true;
  }

  // Returns the size in bytes of the code units before the first zero unit, or of all code units if
  // none is zero.
  static std::size_t SizeToZero(std::span<const std::byte> units, std::size_t unit) {
    static constexpr std::byte kZero[4] = {};
    std::size_t size = 0;
    while (size + unit <= units.size() && std::memcmp(units.data() + size, kZero, unit) != 0) {
      size += unit;
    }
    return size;
  }

  bool TakeUntilZero(std::size_t unit, std::span<const std::byte>* bytes) {
    const std::size_t size = SizeToZero(data_, unit);
    if (size + unit > data_.size()) return Fail(Result::kTruncated);
    *bytes = data_.first(size);
    data_ = data_.subspan(size + unit);
    return true;
  }

  void Put(std::span<const std::byte> bytes) {
    if (out_ != nullptr) out_->insert(out_->end(), bytes.begin(), bytes.end());
  }

  void PutSwapped(std::span<const std::byte> bytes) {
    if (out_ != nullptr) out_->insert(out_->end(), bytes.rbegin(), bytes.rend());
  }

  void PutCount(std::size_t count) {
    const auto low = static_cast<std::byte>(count & 0xFF);
    const auto high = static_cast<std::byte>(count >> 8);
    Put(std::array{low, high});
  }

  void PutUnits(const PayloadOp& op, std::span<const std::byte> units) {
    if (!op.swap) return Put(units);
    for (; !units.empty(); units = units.subspan(op.size)) PutSwapped(units.first(op.size));
  }

  void PutGuid(std::span<const std::byte> bytes) {
    std::array<std::byte, 16> uuid;
    std::copy(bytes.begin(), bytes.end(), uuid.begin());
    Put(nettrace::GuidFromUuid(uuid));
  }

  static TextReader ReaderOf(const PayloadOp& op, std::span<const std::byte> units) {
    const TextEncoding encoding = op.size == 2   ? TextEncoding::kUtf16
                                  : op.size == 4 ? TextEncoding::kUtf32
                                  : op.charset == PayloadOp::Charset::kLatin1
                                      ? TextEncoding::kLatin1
                                      : TextEncoding::kUtf8;
    TextReader text(units, encoding, !op.swap);
    if (op.byte_order_mark) text.TakeByteOrderMark();
    return text;
  }

  void PutUtf16(const PayloadOp& op, std::span<const std::byte> units) {
    TextReader text = ReaderOf(op, units);
    const std::size_t count_at = out_->size();
    PutCount(0);
    for (char32_t c = 0; text.Next(&c);) nettrace::internal::AppendAsUtf16(c, out_);
    const std::size_t count = (out_->size() - count_at - 2) / 2;
    (*out_)[count_at] = static_cast<std::byte>(count & 0xFF);
    (*out_)[count_at + 1] = static_cast<std::byte>(count >> 8);
  }

  void PutText(const PayloadOp& op, std::span<const std::byte> units) {
    CheckAscii(op, units);
    if (out_ == nullptr) return;
    switch (op.output) {
      case PayloadOp::Output::kUnitsAndZero:
        PutUnits(op, units);
        PutCount(0);
        break;
      case PayloadOp::Output::kBytes:
        PutCount(units.size());
        Put(units);
        break;
      case PayloadOp::Output::kUtf16:
        PutUtf16(op, units);
        break;
      case PayloadOp::Output::kUtf16Unit: {
        // The unit has 1 byte, so its character is at most U+00FF, or U+FFFD if it is invalid. Each
        // of these characters is one code unit of UTF-16.
        char32_t c = 0;
        ReaderOf(op, units).Next(&c);
        nettrace::internal::AppendAsUtf16(c, out_);
        break;
      }
      default:
        PutCount(units.size() / op.size);
        PutUnits(op, units);
        break;
    }
  }

  std::span<const std::byte> data_;
  bool swap_counts_;
  std::vector<std::byte>* out_;
  std::span<char> seen_;
  Outcome outcome_;
};

bool IsIdentity(const PayloadOp& op) {
  if (op.swap) return false;
  // The output must have a count if and only if the source has a count.
  if (op.write_count != (op.repeat == PayloadOp::Repeat::kCounted)) return false;
  switch (op.element) {
    case PayloadOp::Element::kFixed:
    case PayloadOp::Element::kStruct:
      return true;
    case PayloadOp::Element::kUuid:
    case PayloadOp::Element::kUnits:
      return false;
    case PayloadOp::Element::kZText:
      return op.output == PayloadOp::Output::kUnitsAndZero;
    case PayloadOp::Element::kText:
    case PayloadOp::Element::kNullable:
      return op.output == PayloadOp::Output::kUnits ||
             (op.output == PayloadOp::Output::kBytes && op.size == 1);
  }
  return false;
}

// Returns whether `op` copies fields of fixed size unchanged and does not check them for ASCII. If
// so, `*size` is their total size in bytes.
bool IsPlain(const PayloadOp& op, std::size_t* size) {
  *size = std::size_t{op.size} * (op.repeat == PayloadOp::Repeat::kOnce ? 1 : op.count);
  return op.element == PayloadOp::Element::kFixed && !op.swap && !op.write_count &&
         op.charset == PayloadOp::Charset::kNone && op.repeat != PayloadOp::Repeat::kCounted;
}

// Appends `ops` to `*merged`, and combines consecutive plain fields into one operation.
void Merge(std::span<const PayloadOp> ops, std::vector<PayloadOp>* merged) {
  constexpr std::size_t kMaxMerged = 65535;
  std::size_t plain = 0;  // bytes of the last appended operation if it is plain, else 0
  for (std::size_t i = 0; i < ops.size(); i += 1 + ops[i].children) {
    std::size_t size = 0;
    const bool is_plain = IsPlain(ops[i], &size);
    if (is_plain && plain != 0 && plain + size <= kMaxMerged) {
      PayloadOp& last = merged->back();
      last.repeat = PayloadOp::Repeat::kConstant;
      last.size = 1;
      last.count = static_cast<std::uint16_t>(plain + size);
      plain += size;
      continue;
    }
    const std::size_t at = merged->size();
    merged->push_back(ops[i]);
    Merge(ops.subspan(i + 1, ops[i].children), merged);
    (*merged)[at].children = static_cast<std::uint32_t>(merged->size() - at - 1);
    plain = is_plain ? size : 0;
  }
}

template <typename T>
std::uint64_t LoadWord(const std::byte* at) {
  T word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// Combines the bytes into 8 bytes by bitwise OR. If a byte is not ASCII, the highest bit of one of
// the 8 bytes is set.
std::uint64_t BitsOf(const std::byte* at, std::size_t size) {
  std::uint64_t bits = 0;
  if (size >= 8) {
    for (const std::byte* last = at + size - 8; at < last; at += 8) {
      bits |= LoadWord<std::uint64_t>(at);
    }
    // The last 8 bytes end where the text ends; they may overlap bytes that have been read.
    const std::size_t beyond = size % 8 == 0 ? 0 : 8 - size % 8;
    return bits | LoadWord<std::uint64_t>(at - beyond);
  }
  if (size >= 4) return LoadWord<std::uint32_t>(at) | LoadWord<std::uint32_t>(at + size - 4);
  for (; size > 0; --size) bits |= LoadWord<std::uint8_t>(at++);
  return bits;
}

}  // namespace

PayloadProgram::PayloadProgram(std::vector<PayloadOp> ops, bool swap_counts)
    : swap_counts_(swap_counts) {
  Merge(ops, &ops_);
  identity_ = !swap_counts_ && std::all_of(ops_.begin(), ops_.end(), IsIdentity);
  if (identity_) MakeSteps();
}

void PayloadProgram::MakeSteps() {
  Step step;
  for (const PayloadOp& op : ops_) {
    std::size_t size = 0;
    const bool once = op.repeat == PayloadOp::Repeat::kOnce;
    if (IsPlain(op, &size)) {
      step.fixed += size;
    } else if (op.element == PayloadOp::Element::kStruct && once) {
      // Adds no step for the struct: the operations of its members follow in `ops_`.
    } else if (op.element == (once ? PayloadOp::Element::kText : PayloadOp::Element::kFixed) &&
               op.repeat != PayloadOp::Repeat::kConstant) {
      step.fixed += sizeof(std::uint16_t);
      step.unit = op.size;
      step.is_ascii = op.charset != PayloadOp::Charset::kNone;
      steps_.push_back(std::exchange(step, Step()));
    } else {
      steps_.clear();
      return;
    }
  }
  steps_.push_back(step);
}

bool PayloadProgram::RunSteps(std::span<const std::byte> data, Outcome* outcome) const {
  const std::byte* at = data.data();
  std::size_t left = data.size();
  std::uint64_t bits = 0;
  for (const Step& step : steps_) {
    if (step.fixed > left) {
      outcome->result = Result::kTruncated;
      return true;
    }
    at += step.fixed;
    left -= step.fixed;
    if (step.unit == 0) break;
    std::uint16_t count;
    std::memcpy(&count, at - sizeof count, sizeof count);
    const std::size_t size = std::size_t{count} * step.unit;
    if (size > left) {
      outcome->result = Result::kTruncated;
      return true;
    }
    if (step.is_ascii) bits |= BitsOf(at, size);
    at += size;
    left -= size;
  }
  outcome->consumed = data.size() - left;
  return (bits & 0x8080808080808080) == 0;
}

PayloadProgram::Outcome PayloadProgram::Run(std::span<const std::byte> data,
                                            std::vector<std::byte>* out,
                                            std::span<char> seen) const {
  if (out == nullptr) {
    Outcome outcome;
    if (RunQuickly(data, &outcome)) return outcome;
  }
  Runner runner(data, swap_counts_, out, seen);
  runner.RunAll(ops_);
  return runner.outcome(data.size());
}

}  // namespace collector
