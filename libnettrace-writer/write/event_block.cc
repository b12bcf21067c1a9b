#include "libnettrace-writer/write/event_block.h"

#include <cstring>
#include <utility>

namespace nettrace::internal {
namespace {

template <typename T>
std::byte* PutFixed(std::byte* out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    *out++ = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
  }
  return out;
}

}  // namespace

void EventBlock::Allocate(std::size_t capacity) {
  auto buffer = std::make_unique_for_overwrite<std::byte[]>(capacity);
  const std::size_t used = row_bytes();
  if (used > 0) std::memcpy(buffer.get() + kRowsOffset, rows(), used);
  buffer_ = std::move(buffer);
  capacity_ = capacity;
  next_ = rows() + used;
  end_ = buffer_.get() + capacity;
}

void EventBlock::Free() {
  buffer_.reset();
  capacity_ = 0;
  next_ = end_ = nullptr;
}

absl::Status EventBlock::WriteTo(BlockOutput* output, bool apart) {
  if (empty()) return absl::OkStatus();
  std::byte* out = buffer_.get() + kBlockHeaderSize;
  out = PutFixed(out, kEventBlockHeaderSize);
  out = PutFixed(out, kCompressedRows);
  out = PutFixed(out, first_timestamp_);
  PutFixed(out, previous_.timestamp);
  const std::span<std::byte> block(buffer_.get(), next_);
  PutBlockHeader(block, BlockKind::kEvent);
  const std::uint64_t events = previous_sequence_ - uncounted_;
  if (absl::Status status = output->Append(block, {events, apart ? events : 0}); !status.ok()) {
    return status;
  }

  last_timestamp_ = previous_.timestamp;
  last_sequence_ = previous_sequence_;
  previous_ = {};
  previous_size_ = 0;
  previous_sequence_ = 0;
  uncounted_ = 0;
  epoch_ = kNoEpoch;
  next_ = rows();
  return absl::OkStatus();
}

}  // namespace nettrace::internal
