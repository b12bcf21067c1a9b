// The open event block of one capture thread: a buffer of compressed rows.
#ifndef LIBNETTRACE_WRITER_WRITE_EVENT_BLOCK_H_
#define LIBNETTRACE_WRITER_WRITE_EVENT_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "libnettrace-writer/core/block_layout.h"
#include "libnettrace-writer/core/traceevent.h"
#include "libnettrace-writer/core/varint.h"
#include "libnettrace-writer/write/block_output.h"
#include "libnettrace-writer/write/copy_payload.h"
#include "nettrace/writer.h"

namespace nettrace::internal {

// Offset of the rows in a block, in bytes.
inline constexpr std::size_t kRowsOffset = kBlockHeaderSize + kEventBlockHeaderSize;
// Maximum bytes of a row's header, including the bytes that PutVarUInt() overwrites after the
// header.
inline constexpr std::size_t kMaxRowHeader = 64;

class EventBlock {
 public:
  bool empty() const { return previous_.capture_thread == kNoThread; }
  std::size_t row_bytes() const { return empty() ? 0 : static_cast<std::size_t>(next_ - rows()); }
  // Returns the size of the buffer in bytes; 0 before Allocate().
  std::size_t capacity() const { return capacity_; }

  bool HasRoom(std::size_t payload_size) const {
    return static_cast<std::size_t>(end_ - next_) >= kMaxRowHeader + payload_size;
  }

  // Replaces the buffer by a larger buffer of `capacity` bytes, and moves the rows into it.
  void Allocate(std::size_t capacity);
  // Frees the buffer of an empty block.
  void Free();

  // Returns whether AppendFollowing can append `row`. The row must have the capture thread,
  // processor and stack of the previous row, and must fit in the buffer. Its time must be at least
  // that of the previous row, and at most traceevent::kMaxEventTimestamp. No event may have been
  // lost between the two rows. `epoch` is the number of threads that the writer has removed. If it
  // has changed since the previous row, a thread that the previous row refers to may not exist any
  // more.
  bool Follows(const EventRow& row, std::uint64_t epoch, std::size_t payload_size) const {
    return row.capture_thread == previous_.capture_thread && epoch == epoch_ &&
           row.processor == previous_.processor && row.stack_id == previous_.stack_id &&
           FollowsInTime(row.timestamp) && HasRoom(payload_size);
  }
  // Returns whether AppendLikePrevious can append `row`, because it differs from the previous row
  // only in time and payload. Follows() must be true for `row`.
  bool IsLikePrevious(const EventRow& row, std::size_t payload_size) const {
    return row.thread == previous_.thread && row.metadata_id == previous_.metadata_id &&
           row.label_list_id == previous_.label_list_id && payload_size == previous_size_;
  }
  // Makes Follows() return false for the next row, because events before it were lost.
  void Interrupt() { epoch_ = kNoEpoch; }

  // Return the values of the last row of this capture thread, in this block or a written block; 0
  // if there is none. last_sequence() includes the numbers that SkipSequence has skipped since
  // then.
  std::uint64_t last_timestamp() const { return empty() ? last_timestamp_ : previous_.timestamp; }
  std::uint32_t last_sequence() const { return empty() ? last_sequence_ : previous_sequence_; }
  // Advances last_sequence() by the `lost` events of this capture thread, after a sequence point
  // has listed the new last number. The block must be empty.
  void SkipSequence(std::uint64_t lost) { last_sequence_ += static_cast<std::uint32_t>(lost); }

  // Append a row with the next sequence number. Follows() must be true for the row. For
  // AppendLikePrevious(), IsLikePrevious() must be true as well. `copy` copies the payload.
  template <typename Copy>
  void AppendLikePrevious(const EventRow& row, std::span<const std::byte> payload,
                          const Copy& copy) {
    const std::uint64_t timestamp = row.timestamp;
    const std::uint64_t since_previous = timestamp - previous_.timestamp;
    std::byte* const start = next_;
    previous_.timestamp = timestamp;
    ++previous_sequence_;
    *start = std::byte{0};
    std::byte* const out = PutVarUInt(start + 1, since_previous);
    next_ = out + payload.size();
    copy(out, payload.data(), payload.size());
  }
  void AppendFollowing(const EventRow& row, std::span<const std::byte> payload) {
    AppendRow</*kFollows=*/true>(row, previous_sequence_ + 1, payload);
  }
  // Appends any row for which there is room. The row must not be earlier than the previous row.
  // `sequence` is the sequence number of the row. Follows() compares its argument `epoch` with the
  // `epoch` given here.
  void Append(const EventRow& row, std::uint32_t sequence, std::uint64_t epoch,
              std::span<const std::byte> payload) {
    AppendRow</*kFollows=*/false>(row, sequence, payload);
    epoch_ = epoch;
  }

  // Writes the block to `output` and empties it, if it contains rows. If `apart` is true, its
  // events also count in BlockOutput::Events::apart. After an error, the rows are still in the
  // block.
  absl::Status WriteTo(BlockOutput* output, bool apart);

 private:
  static constexpr std::uint64_t kNoEpoch = ~std::uint64_t{0};

  // Appends a row, and copies the fields of `row` one by one. The caller has just stored the
  // fields, and a copy in larger pieces would wait for these stores.
  template <bool kFollows>
  void AppendRow(const EventRow& row, std::uint32_t sequence, std::span<const std::byte> payload);

  std::byte* rows() const { return buffer_.get() + kRowsOffset; }

  // Returns whether `timestamp` is not before that of the previous row, and TraceEvent can show it.
  // Each condition holds if the high bit of a number is 0. The combination of the numbers by `|`
  // therefore needs only one branch.
  bool FollowsInTime(std::uint64_t timestamp) const {
    constexpr std::uint64_t kOver = kMaxTimestamp - traceevent::kMaxEventTimestamp;
    return static_cast<std::int64_t>((timestamp - previous_.timestamp) | timestamp |
                                     (timestamp + kOver)) >= 0;
  }

  // The row to which the next row's header is relative; zeros before the first row.
  EventRow previous_;
  std::size_t previous_size_ = 0;
  std::uint64_t epoch_ = kNoEpoch;
  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
  std::uint32_t previous_sequence_ = 0;
  std::uint32_t uncounted_ = 0;  // previous_sequence_ minus the number of rows in the block
  // Values of the last row in the block that was written last, for last_timestamp() and
  // last_sequence().
  std::uint64_t last_timestamp_ = 0;
  std::uint32_t last_sequence_ = 0;
  std::uint64_t first_timestamp_ = 0;
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t capacity_ = 0;
};

template <bool kFollows>
inline void EventBlock::AppendRow(const EventRow& row, std::uint32_t sequence,
                                  std::span<const std::byte> payload) {
  std::byte* const flags_at = next_;
  std::byte* out = next_ + 1;
  unsigned flags = 0;
  const auto put_if_new = [&](auto value, auto* previous, unsigned flag) {
    if (value == *previous) return;
    *previous = value;
    flags |= flag;
    out = PutVarUInt(out, ToNumber(value));
  };
  put_if_new(row.metadata_id, &previous_.metadata_id, kHasMetadataId);
  if constexpr (!kFollows) {
    // Sequence numbers wrap at 2^32, so this subtraction does too.
    const std::uint32_t skipped = sequence - previous_sequence_ - 1;
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
  }
  put_if_new(row.thread, &previous_.thread, kHasThread);
  if constexpr (!kFollows) put_if_new(row.stack_id, &previous_.stack_id, kHasStack);
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
  next_ = out + payload.size();
  Copy(out, payload.data(), payload.size());
}

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_WRITE_EVENT_BLOCK_H_
