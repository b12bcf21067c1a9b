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

  // True if `row` can follow the row before by AppendLikePrevious: it differs from that in nothing
  // but its time, which is no earlier; `epoch` is what it was then, so whatever that row referred
  // to is still there; and there is room for it.
  bool IsLikePrevious(const EventRow& row, std::uint64_t epoch, std::size_t payload_size) const {
    return row.capture_thread == previous_.capture_thread && row.thread == previous_.thread &&
           row.metadata_id == previous_.metadata_id && row.processor == previous_.processor &&
           row.stack_id == previous_.stack_id && row.label_list_id == previous_.label_list_id &&
           payload_size == previous_size_ && epoch == epoch_ && FollowsInTime(row.timestamp) &&
           HasRoom(payload_size);
  }
  // The next row is not like the one before: events between them were lost.
  void Interrupt() { epoch_ = kNoEpoch; }

  // These are the last row's of all in this thread's blocks, written ones included; 0 if none was.
  std::uint64_t last_timestamp() const { return empty() ? last_timestamp_ : previous_.timestamp; }
  std::uint32_t last_sequence() const { return empty() ? last_sequence_ : previous_sequence_; }
  // Numbers the rows to come after losses that a sequence point has listed. The block is empty.
  void SkipSequence(std::uint64_t lost) { last_sequence_ += static_cast<std::uint32_t>(lost); }

  // Appends a row with the next number. `copy` copies the payload.
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

  // Appends any row there is room for, no earlier than the one before.
  void Append(const EventRow& row, std::uint32_t sequence, std::uint64_t epoch,
              std::span<const std::byte> payload);

  // Writes the block, if there are rows in it. After an error they are still here.
  absl::Status WriteTo(BlockOutput* output);

 private:
  static constexpr std::uint64_t kNoEpoch = ~std::uint64_t{0};

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

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_WRITE_EVENT_BLOCK_H_
