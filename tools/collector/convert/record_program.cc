#include "tools/collector/convert/record_program.h"

#include <algorithm>
#include <cstring>

#include "libnettrace-writer/core/traceevent.h"
#include "libnettrace-writer/core/utf.h"

namespace collector {
namespace {

using nettrace::internal::traceevent::kMaxPayloadSize;

// Returns `text` up to its first NUL.
std::span<const std::byte> UntilNul(std::span<const std::byte> text) {
  if (text.empty()) return text;
  const void* const nul = std::memchr(text.data(), 0, text.size());
  if (nul == nullptr) return text;
  return text.first(static_cast<std::size_t>(static_cast<const std::byte*>(nul) - text.data()));
}

void Append(std::span<const std::byte> bytes, std::vector<std::byte>* out) {
  out->insert(out->end(), bytes.begin(), bytes.end());
}

// Appends numbers of `size` bytes each, with the bytes of each number reversed if `swap`.
void AppendNumbers(std::span<const std::byte> numbers, std::size_t size, bool swap,
                   std::vector<std::byte>* out) {
  if (!swap || size == 1) return Append(numbers, out);
  for (; numbers.size() >= size; numbers = numbers.subspan(size)) {
    const auto number = numbers.first(size);
    out->insert(out->end(), number.rbegin(), number.rend());
  }
}

void SetCount(std::size_t count, std::size_t at, std::vector<std::byte>* out) {
  (*out)[at] = static_cast<std::byte>(count & 0xFF);
  (*out)[at + 1] = static_cast<std::byte>(count >> 8);
}

std::size_t AddCount(std::size_t count, std::vector<std::byte>* out) {
  const std::size_t at = out->size();
  out->resize(at + 2);
  SetCount(count, at, out);
  return at;
}

bool IsAscii(std::span<const std::byte> text) {
  return std::all_of(text.begin(), text.end(),
                     [](std::byte unit) { return (unit & std::byte{0x80}) == std::byte{0}; });
}

// Appends the number of code units of `text`, then the text.
void AppendText(std::span<const std::byte> text, TextForm form, std::vector<std::byte>* out) {
  const std::size_t at = AddCount(text.size(), out);
  if (form == TextForm::kBytes) return Append(text, out);
  nettrace::internal::AppendUtf8AsUtf16(text, out);
  SetCount((out->size() - at - 2) / 2, at, out);
}

}  // namespace

RecordProgram::RecordProgram(const std::vector<RecordOp>& ops, std::endian order)
    : swap_(order != std::endian::little) {
  for (const RecordOp& op : ops) {
    fixed_end_ = std::max<std::size_t>(fixed_end_, op.offset + op.size);
    const bool copied = op.kind == RecordOp::Kind::kCopy;
    const bool swapped = swap_ && op.element_size > 1;
    if (copied && !swapped && !ops_.empty()) {
      RecordOp& last = ops_.back();
      if (last.kind == RecordOp::Kind::kCopy && !(swap_ && last.element_size > 1) &&
          last.offset + last.size == op.offset) {
        last.size += op.size;
        continue;
      }
    }
    ops_.push_back(op);
    identity_ = identity_ && copied && !swapped;
  }
  identity_ = identity_ && ops_.size() <= 1;
  if (identity_ && !ops_.empty()) {
    identity_offset_ = ops_[0].offset;
    identity_size_ = ops_[0].size;
  }
}

RecordProgram::Outcome RecordProgram::Run(std::span<const std::byte> record, TextForm form,
                                          std::vector<std::byte>* out,
                                          std::span<const std::byte>* payload) const {
  Outcome outcome;
  if (record.size() < fixed_end_) return outcome;
  if (identity_) {
    outcome.fits = RunQuickly(record, payload);
    return outcome;
  }
  const std::size_t start = out->size();
  for (const RecordOp& op : ops_) {
    // Stops when the payload is too long. Locations may overlap, so the fields of a small record
    // can be very large together.
    if (out->size() - start > kMaxPayloadSize) return outcome;
    std::span<const std::byte> bytes = record.subspan(op.offset, op.size);
    if (op.kind == RecordOp::Kind::kLocated || op.kind == RecordOp::Kind::kLocatedText) {
      std::uint32_t location = 0;
      std::memcpy(&location, bytes.data(), sizeof location);
      if (swap_ != (std::endian::native != std::endian::little)) {
        location = __builtin_bswap32(location);
      }
      const std::size_t size = location >> 16;
      std::size_t position = size == 0 ? 0 : location & 0xFFFF;
      if (op.relative && size != 0) position += op.offset + sizeof location;
      if (position + size > record.size()) return outcome;
      bytes = record.subspan(position, size);
    }
    switch (op.kind) {
      case RecordOp::Kind::kCopy:
        AppendNumbers(bytes, op.element_size, swap_, out);
        break;
      case RecordOp::Kind::kLocated:
        AddCount(bytes.size() / op.element_size, out);
        AppendNumbers(bytes.first(bytes.size() / op.element_size * op.element_size),
                      op.element_size, swap_, out);
        break;
      case RecordOp::Kind::kText:
      case RecordOp::Kind::kLocatedText: {
        const std::span<const std::byte> text = UntilNul(bytes);
        outcome.non_ascii = outcome.non_ascii || !IsAscii(text);
        AppendText(text, form, out);
        break;
      }
    }
  }
  *payload = std::span(*out).subspan(start);
  outcome.fits = payload->size() <= kMaxPayloadSize;
  return outcome;
}

}  // namespace collector
