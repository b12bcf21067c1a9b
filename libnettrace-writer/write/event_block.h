// One capture thread's open event block: rows with compressed headers, in a buffer of its own.
#ifndef NETTRACE_WRITE_EVENT_BLOCK_H_
#define NETTRACE_WRITE_EVENT_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "block_output.h"
#include "nettrace/writer.h"
#include "varint.h"

namespace nettrace::internal {

// Flags of a compressed header: which fields follow. The time always does.
inline constexpr unsigned kHasMetadataId = 1;
inline constexpr unsigned kHasCaptureThread = 2;  // with sequence number and processor
inline constexpr unsigned kHasThread = 4;
inline constexpr unsigned kHasStack = 8;
inline constexpr unsigned kHasLabels = 16;
inline constexpr unsigned kHasPayloadSize = 128;

// Before the rows: the block's header, header size, flags, first and last time.
inline constexpr std::size_t kRowsOffset = kBlockHeaderSize + 2 + 2 + 8 + 8;
// No header of a row is longer, nor is what PutVarUInt touches beyond its end.
inline constexpr std::size_t kMaxRowHeader = 64;

class EventBlock {
 public:
  bool empty() const { return count_ == 0; }
  std::size_t row_bytes() const { return empty() ? 0 : static_cast<std::size_t>(next_ - rows()); }
  // The buffer's size, 0 before Allocate.
  std::size_t capacity() const { return capacity_; }

  bool HasRoom(std::size_t payload_size) const {
    return static_cast<std::size_t>(end_ - next_) >= kMaxRowHeader + payload_size;
  }

  // A buffer of `capacity` bytes, more than before; the rows move into it.
  void Allocate(std::size_t capacity);
  // Gives the buffer of an empty block back.
  void Free();

  // True if `row` differs from the one before in nothing but its time, `lost` is 0, and `epoch` is
  // what it was then: whatever that row referred to is still there.
  bool IsLikePrevious(const EventRow& row, std::uint64_t lost, std::uint64_t epoch,
                      std::size_t payload_size) const {
    // One branch for all; for most events nothing differs.
    const std::uint64_t different =
        (row.capture_thread ^ previous_.capture_thread) | (row.thread ^ previous_.thread) |
        (row.metadata_id ^ previous_.metadata_id) | (row.processor ^ previous_.processor) |
        (row.stack_id ^ previous_.stack_id) | (row.label_list_id ^ previous_.label_list_id) |
        (payload_size ^ previous_size_) | (epoch ^ epoch_) | lost;
    return different == 0;  // never in an empty block: no thread has the index 0
  }

  // Of the last row in the block, which is not empty.
  std::uint64_t previous_timestamp() const { return previous_.timestamp; }
  // Of the last row there ever was in this thread's blocks, else 0.
  std::uint64_t last_timestamp() const { return empty() ? last_timestamp_ : previous_.timestamp; }
  std::uint32_t last_sequence() const { return empty() ? last_sequence_ : previous_sequence_; }
  // Losses that a sequence point told of: the rows to come are numbered after them. For an empty
  // block.
  void SkipSequence(std::uint64_t lost) { last_sequence_ += static_cast<std::uint32_t>(lost); }

  // The row after one it is like, and no earlier; there is room for it. Its number is the next.
  void AppendLikePrevious(const EventRow& row, std::span<const std::byte> payload) {
    ++previous_sequence_;
    *next_ = std::byte{0};
    Finish(next_ + 1, row.timestamp, payload);
  }

  // Any row there is room for, no earlier than the one before.
  void Append(const EventRow& row, std::uint32_t sequence, std::uint64_t epoch,
              std::span<const std::byte> payload);

  // Writes the block, if there are rows in it. After an error they are still here.
  absl::Status WriteTo(BlockOutput* output);

 private:
  std::byte* rows() const { return buffer_.get() + kRowsOffset; }

  // Time and payload of a row without fields after the time.
  void Finish(std::byte* out, std::uint64_t timestamp, std::span<const std::byte> payload) {
    out = PutVarUInt(out, timestamp - previous_.timestamp);
    previous_.timestamp = timestamp;
    PutPayload(out, payload);
  }

  void PutPayload(std::byte* out, std::span<const std::byte> payload) {
    if (!payload.empty()) std::memcpy(out, payload.data(), payload.size());
    next_ = out + payload.size();
    ++count_;
  }

  // What the next row's header is relative to; zeros before the first row.
  EventRow previous_;
  std::size_t previous_size_ = 0;
  std::uint32_t previous_sequence_ = 0;
  std::uint64_t epoch_ = 0;
  // Of the last row of the block before; see last_timestamp().
  std::uint64_t last_timestamp_ = 0;
  std::uint32_t last_sequence_ = 0;
  std::uint64_t first_timestamp_ = 0;
  std::uint64_t count_ = 0;
  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t capacity_ = 0;
};

}  // namespace nettrace::internal

#endif  // NETTRACE_WRITE_EVENT_BLOCK_H_
