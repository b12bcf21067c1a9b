#include "libnettrace-writer/write/event_block.h"

#include <cstring>
#include <utility>

#include "libnettrace-writer/write/copy_payload.h"

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

void EventBlock::Append(const EventRow& row, std::uint32_t sequence, std::uint64_t epoch,
                        std::span<const std::byte> payload) {
  std::byte* const flags_at = next_;
  std::byte* out = next_ + 1;
  unsigned flags = 0;
  // Field by field, and not by a copy of the row: the caller has just stored its fields, and a copy
  // in larger pieces would wait for that.
  const auto put_if_new = [&](auto value, auto* previous, unsigned flag) {
    if (value == *previous) return;
    *previous = value;
    flags |= flag;
    out = PutVarUInt(out, ToNumber(value));
  };
  put_if_new(row.metadata_id, &previous_.metadata_id, kHasMetadataId);
  const std::uint32_t skipped = sequence - previous_sequence_ - 1;  // modulo 2^32, as the format
  if (empty()) first_timestamp_ = row.timestamp;
  uncounted_ += skipped;
  if (skipped != 0 || row.capture_thread != previous_.capture_thread ||
      row.processor != previous_.processor) {
    flags |= kHasCaptureThread;
    out = PutVarUInt(out, skipped);
    out = PutVarUInt(out, ToNumber(row.capture_thread));
    out = PutVarUInt(out, row.processor);
    previous_.capture_thread = row.capture_thread;
    previous_.processor = row.processor;
  }
  put_if_new(row.thread, &previous_.thread, kHasThread);
  put_if_new(row.stack_id, &previous_.stack_id, kHasStack);
  out = PutVarUInt(out, row.timestamp - previous_.timestamp);
  previous_.timestamp = row.timestamp;
  put_if_new(row.label_list_id, &previous_.label_list_id, kHasLabels);
  if (payload.size() != previous_size_) {
    flags |= kHasPayloadSize;
    out = PutVarUInt(out, payload.size());
    previous_size_ = payload.size();
  }
  *flags_at = static_cast<std::byte>(flags);

  previous_sequence_ = sequence;
  epoch_ = epoch;
  next_ = out + payload.size();
  Copy(out, payload.data(), payload.size());
}

absl::Status EventBlock::WriteTo(BlockOutput* output) {
  if (empty()) return absl::OkStatus();
  std::byte* out = buffer_.get() + kBlockHeaderSize;
  out = PutFixed(out, kEventBlockHeaderSize);
  out = PutFixed(out, kCompressedRows);
  out = PutFixed(out, first_timestamp_);
  PutFixed(out, previous_.timestamp);
  const std::span<std::byte> block(buffer_.get(), next_);
  PutBlockHeader(block, BlockKind::kEvent);
  if (absl::Status status = output->Append(block, previous_sequence_ - uncounted_); !status.ok())
    return status;

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
