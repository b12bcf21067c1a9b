// The open event block of one capture thread: compressed rows in a buffer.
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

// Where the rows of a block begin.
inline constexpr std::size_t kRowsOffset = kBlockHeaderSize + kEventBlockHeaderSize;
// The maximum length of a row's header, with what PutVarUInt touches beyond its end.
inline constexpr std::size_t kMaxRowHeader = 64;

class EventBlock {
 public:
  bool empty() const { return previous_.capture_thread == kNoThread; }
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

  // True if `row` can follow the row before by AppendFollowing: its capture thread, processor and
  // stack are the same, no event was lost between, its time is no earlier, there is room for it,
  // and `epoch` is what it was then, so that what that row referred to is still there.
  bool Follows(const EventRow& row, std::uint64_t epoch, std::size_t payload_size) const {
    return row.capture_thread == previous_.capture_thread && epoch == epoch_ &&
           row.processor == previous_.processor && row.stack_id == previous_.stack_id &&
           FollowsInTime(row.timestamp) && HasRoom(payload_size);
  }
  // True if a row that follows can do so by AppendLikePrevious: it differs in nothing but its time.
  bool IsLikePrevious(const EventRow& row, std::size_t payload_size) const {
    return row.thread == previous_.thread && row.metadata_id == previous_.metadata_id &&
           row.label_list_id == previous_.label_list_id && payload_size == previous_size_;
  }
  // The next row is not like the one before: events between them were lost.
  void Interrupt() { epoch_ = kNoEpoch; }

  // These are the last row's of all in this thread's blocks, written ones included; 0 if none was.
  std::uint64_t last_timestamp() const { return empty() ? last_timestamp_ : previous_.timestamp; }
  std::uint32_t last_sequence() const { return empty() ? last_sequence_ : previous_sequence_; }
  // Numbers the rows to come after losses that a sequence point has listed. The block is empty.
  void SkipSequence(std::uint64_t lost) { last_sequence_ += static_cast<std::uint32_t>(lost); }

  // Append a row with the next number. `copy` copies the payload.
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
  // Appends any row there is room for, no earlier than the one before.
  void Append(const EventRow& row, std::uint32_t sequence, std::uint64_t epoch,
              std::span<const std::byte> payload) {
    AppendRow</*kFollows=*/false>(row, sequence, payload);
    epoch_ = epoch;
  }

  // Writes the block, if there are rows in it. After an error they are still here.
  absl::Status WriteTo(BlockOutput* output);

 private:
  static constexpr std::uint64_t kNoEpoch = ~std::uint64_t{0};

  // Field by field, and not by a copy of the row: the caller has just stored its fields, and a copy
  // in larger pieces would wait for that.
  template <bool kFollows>
  void AppendRow(const EventRow& row, std::uint32_t sequence, std::span<const std::byte> payload);

  std::byte* rows() const { return buffer_.get() + kRowsOffset; }

  // `timestamp` is not before the last row's, and no more than TraceEvent shows. One branch for
  // all: none of the numbers is negative.
  bool FollowsInTime(std::uint64_t timestamp) const {
    constexpr std::uint64_t kOver = kMaxTimestamp - traceevent::kMaxEventTimestamp;
    return static_cast<std::int64_t>((timestamp - previous_.timestamp) | timestamp |
                                     (timestamp + kOver)) >= 0;
  }

  // The row that the next row's header is relative to; zeros before the first row.
  EventRow previous_;
  std::size_t previous_size_ = 0;
  std::uint64_t epoch_ = kNoEpoch;
  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
  std::uint32_t previous_sequence_ = 0;
  std::uint32_t uncounted_ = 0;  // previous_sequence_ less the rows in the block
  // The last row of the block before; see last_timestamp().
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
