#include "tools/nettrace/import/ctf/bit_reader.h"

#include <algorithm>
#include <cstring>

namespace tools::importing::ctf {

void BitReader::Begin(std::uint64_t offset, std::uint64_t bits) {
  offset_ = offset;
  end_ = bits;
  position_ = 0;
  status_ = absl::OkStatus();
}

void BitReader::Fail() {
  if (status_.ok()) status_ = absl::DataLossError("the data extends past the end of its packet");
}

void BitReader::Align(std::uint64_t align) {
  const std::uint64_t padding = (align - position_ % align) % align;
  if (!ok() || padding > left()) return Fail();
  position_ += padding;
}

const std::byte* BitReader::Bytes(std::uint64_t begin, std::size_t size) {
  const std::uint64_t offset = offset_ + begin;
  if (offset < window_offset_ || offset + size > window_offset_ + window_.size()) {
    window_.resize(kWindow);
    const absl::StatusOr<std::size_t> got = file_->ReadAt(offset, window_);
    window_offset_ = offset;
    window_.resize(got.value_or(0));
    if (!got.ok()) status_ = got.status();
    if (window_.size() < size) Fail();
    if (!ok()) return nullptr;
  }
  return window_.data() + (offset - window_offset_);
}

std::uint64_t BitReader::Read(unsigned size, bool is_big) {
  if (!ok() || size > left()) {
    Fail();
    return 0;
  }
  const unsigned shift = position_ % 8;
  const unsigned count = (shift + size + 7) / 8;  // bytes that contain the integer, up to 9
  const std::byte* const bytes = Bytes(position_ / 8, count);
  if (bytes == nullptr) return 0;
  position_ += size;
  std::uint64_t value = 0;
  const unsigned whole = std::min(count, 8U);
  for (unsigned i = 0; i < whole; ++i) {
    const unsigned place = is_big ? whole - 1 - i : i;
    value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * place);
  }
  if (is_big) {
    if (count == 9) {
      const unsigned more = shift + size - 64;
      value = value << more | std::to_integer<std::uint64_t>(bytes[8]) >> (8 - more);
    } else {
      value >>= 8 * count - shift - size;
    }
  } else {
    value >>= shift;
    if (count == 9) value |= std::to_integer<std::uint64_t>(bytes[8]) << (64 - shift);
  }
  return size == 64 ? value : value & ((std::uint64_t{1} << size) - 1);
}

void BitReader::ReadText(std::size_t max, std::string* text) {
  text->clear();
  while (ok()) {
    if (left() < 8) return Fail();
    const std::byte* const begin = Bytes(position_ / 8, 1);
    if (begin == nullptr) return;
    const std::uint64_t in_window = window_offset_ + window_.size() - offset();
    const std::size_t size = std::min(in_window, left() / 8);
    const void* const nul = std::memchr(begin, 0, size);
    const std::size_t taken =
        nul == nullptr ? size
                       : static_cast<std::size_t>(static_cast<const std::byte*>(nul) - begin);
    text->append(reinterpret_cast<const char*>(begin), std::min(taken, max - text->size()));
    position_ += 8 * taken;
    if (nul != nullptr) {
      position_ += 8;
      return;
    }
  }
}

}  // namespace tools::importing::ctf
