#include "tools/collector/convert/payload_program.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "libnettrace-writer/core/little_endian.h"
#include "libnettrace-writer/core/utf.h"
#include "nettrace/schema.h"

namespace collector {
namespace {

using Outcome = PayloadProgram::Outcome;
using Result = PayloadProgram::Result;

// One run of a program. Recursion is as deep as structs are nested, which the parser bounds.
class Runner {
 public:
  Runner(std::span<const std::byte> data, bool swap_counts, std::vector<std::byte>* out)
      : data_(data), swap_counts_(swap_counts), out_(out) {}

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
    if (op.element == PayloadOp::Element::kFixed && !op.swap) return Copy(count * op.size);
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
        std::array<std::byte, 16> uuid;
        std::copy(bytes.begin(), bytes.end(), uuid.begin());
        Put(nettrace::GuidFromUuid(uuid));
        return true;
      }
      case PayloadOp::Element::kZText:
        return TakeUntilZero(op.size, &bytes) && PutText(op, bytes);
      case PayloadOp::Element::kText: {
        std::uint16_t units = 0;
        return TakeCount(&units) && Take(std::size_t{units} * op.size, &bytes) &&
               PutText(op, bytes);
      }
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

  bool Copy(std::size_t size) {
    std::span<const std::byte> bytes;
    if (!Take(size, &bytes)) return false;
    Put(bytes);
    return true;
  }

  bool TakeCount(std::uint16_t* count) {
    std::span<const std::byte> bytes;
    if (!Take(sizeof *count, &bytes)) return false;
    *count = nettrace::internal::LoadLittleEndian<std::uint16_t>(bytes.data());
    if (swap_counts_) *count = __builtin_bswap16(*count);
    return true;
  }

  bool TakeUntilZero(std::size_t unit, std::span<const std::byte>* bytes) {
    static constexpr std::byte kZero[4] = {};
    for (std::size_t size = 0; size + unit <= data_.size(); size += unit) {
      if (std::memcmp(data_.data() + size, kZero, unit) == 0) {
        *bytes = data_.first(size);
        data_ = data_.subspan(size + unit);
        return true;
      }
    }
    return Fail(Result::kTruncated);
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

  void PutUtf16(const PayloadOp& op, std::span<const std::byte> units) {
    if (out_ == nullptr) return;
    if (op.size == 2) {
      PutUnits(op, units);
    } else if (op.size == 4) {
      nettrace::internal::AppendUtf32AsUtf16(units, !op.swap, out_);
    } else if (op.charset == PayloadOp::Charset::kLatin1) {
      nettrace::internal::AppendLatin1AsUtf16(units, out_);
    } else {
      nettrace::internal::AppendUtf8AsUtf16(units, out_);
    }
  }

  static bool HasZero(std::span<const std::byte> units, std::size_t unit) {
    static constexpr std::byte kZero[4] = {};
    for (; units.size() >= unit; units = units.subspan(unit)) {
      if (std::memcmp(units.data(), kZero, unit) == 0) return true;
    }
    return false;
  }

  bool PutText(const PayloadOp& op, std::span<const std::byte> units) {
    bool valid = true;
    if (op.charset != PayloadOp::Charset::kNone) {
      const nettrace::internal::TextKind kind = nettrace::internal::ClassifyUtf8(units);
      outcome_.non_ascii |= kind != nettrace::internal::TextKind::kAscii;
      valid = kind != nettrace::internal::TextKind::kInvalid ||
              op.charset == PayloadOp::Charset::kLatin1;
      outcome_.invalid |= !valid;
    }
    switch (op.output) {
      case PayloadOp::Output::kUnits:
        PutCount(units.size() / op.size);
        PutUnits(op, units);
        return true;
      case PayloadOp::Output::kUnitsAndZero:
        PutUnits(op, units);
        PutCount(0);
        return true;
      case PayloadOp::Output::kUtf16: {
        if (out_ == nullptr) return true;
        const std::size_t count_at = out_->size();
        PutCount(0);
        PutUtf16(op, units);
        const std::size_t count = (out_->size() - count_at - 2) / 2;
        (*out_)[count_at] = static_cast<std::byte>(count & 0xFF);
        (*out_)[count_at + 1] = static_cast<std::byte>(count >> 8);
        return true;
      }
      case PayloadOp::Output::kUtf16AndZero:
        // A reader would stop at a NUL, and a replaced character would be lost for good.
        if (!valid || HasZero(units, op.size)) return Fail(Result::kUnrepresentable);
        PutUtf16(op, units);
        PutCount(0);
        return true;
    }
    return false;
  }

  std::span<const std::byte> data_;
  bool swap_counts_;
  std::vector<std::byte>* out_;
  Outcome outcome_;
};

bool IsIdentity(const PayloadOp& op) {
  if (op.swap) return false;
  // A count in the source must be one in the output, and the other way round.
  if (op.write_count != (op.repeat == PayloadOp::Repeat::kCounted)) return false;
  switch (op.element) {
    case PayloadOp::Element::kFixed:
    case PayloadOp::Element::kStruct:
      return true;
    case PayloadOp::Element::kUuid:
      return false;
    case PayloadOp::Element::kZText:
      return op.output == PayloadOp::Output::kUnitsAndZero;
    case PayloadOp::Element::kText:
      return op.output == PayloadOp::Output::kUnits;
  }
  return false;
}

}  // namespace

PayloadProgram::PayloadProgram(std::vector<PayloadOp> ops, bool swap_counts)
    : ops_(std::move(ops)), swap_counts_(swap_counts) {
  identity_ = !swap_counts_ && std::all_of(ops_.begin(), ops_.end(), IsIdentity);
  fixed_ = identity_;
  for (const PayloadOp& op : ops_) {
    fixed_ = fixed_ && op.element == PayloadOp::Element::kFixed &&
             op.repeat != PayloadOp::Repeat::kCounted;
    fixed_size_ += std::size_t{op.size} * op.count;
  }
}

PayloadProgram::Outcome PayloadProgram::Run(std::span<const std::byte> data,
                                            std::vector<std::byte>* out) const {
  if (fixed_ && out == nullptr) {
    Outcome outcome;
    outcome.consumed = fixed_size_;
    if (fixed_size_ > data.size()) outcome.result = Result::kTruncated;
    return outcome;
  }
  Runner runner(data, swap_counts_, out);
  runner.RunAll(ops_);
  return runner.outcome(data.size());
}

}  // namespace collector
