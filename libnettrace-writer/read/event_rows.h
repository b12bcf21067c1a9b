// Reads the rows of an event block, and of a V4 or V5 metadata block, which has the same form.
#ifndef LIBNETTRACE_WRITER_READ_EVENT_ROWS_H_
#define LIBNETTRACE_WRITER_READ_EVENT_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "libnettrace-writer/core/block_layout.h"
#include "libnettrace-writer/core/byte_reader.h"
#include "libnettrace-writer/read/block_reader.h"
#include "nettrace/ids.h"
#include "nettrace/schema.h"

namespace nettrace::internal {

struct EventRowHeader {
  bool sorted = false;
  MetadataId metadata_id = kNoMetadata;
  std::uint32_t sequence = 0;
  ThreadIndex capture_thread = kNoThread;
  ThreadIndex thread = kNoThread;
  std::uint32_t processor = 0;
  StackId stack_id = kNoStack;
  std::uint64_t timestamp = 0;
  LabelListId label_list_id = kNoLabels;  // only in V6
  Guid activity_id{};                     // only in V4 and V5
  Guid related_activity_id{};             // only in V4 and V5
  std::uint32_t payload_size = 0;
  friend bool operator==(const EventRowHeader&, const EventRowHeader&) = default;
};

// The offset and payload of a row that NextLikePrevious or NextWithMetadata has read.
// EventRows::header() returns the other parts of the row. EventRows has no member of this type,
// because each row would then be copied twice.
struct ShortRow {
  std::uint64_t offset = 0;  // offset of the row in the stream, in bytes
  std::span<const std::byte> payload;
};

class EventRows {
 public:
  EventRows() = default;
  EventRows(const Block& block, bool legacy);

  // Returns false if the block header is malformed, or if Next() has failed.
  bool ok() const { return reader_.ok(); }
  bool compressed() const { return (flags_ & kCompressedRows) != 0; }
  std::uint16_t flags() const { return flags_; }
  std::uint64_t min_timestamp() const { return min_timestamp_; }
  std::uint64_t max_timestamp() const { return max_timestamp_; }

  bool AtEnd() const { return reader_.empty(); }
  std::size_t bytes_left() const { return reader_.size(); }
  // Reads the next row. Returns false if the row does not fit in the block. Must not be called when
  // AtEnd() is true.
  bool Next();
  // Return parts of the row that Next() has read.
  std::span<const std::byte> payload() const { return payload_; }
  std::uint64_t offset() const { return offset_; }  // bytes from the start of the stream
  // Returns the header of the row that was read last.
  const EventRowHeader& header() const { return header_; }

  // Disables the two functions below for the next row, so that only Next() can read it.
  void ForbidShort() { can_be_short_ = false; }

  // Read the next row if its header differs from the previous header only in timestamp and
  // IsSorted, and has the next sequence number. Most headers do. NextWithMetadata also allows
  // another metadata id and payload size. If these functions return false, they have read nothing,
  // and the caller must use AtEnd() and Next(). They always return false for V4 and V5. In V6, they
  // may also return false for a row that meets the conditions, for example near the end of the
  // block. Always inlined: calls would take an eighth of the instructions to read a row.
  [[gnu::always_inline]] bool NextLikePrevious(ShortRow* row) { return NextShort<0>(row); }
  [[gnu::always_inline]] bool NextWithMetadata(ShortRow* row) {
    return NextShort<kHasMetadataId | kHasPayloadSize>(row);
  }

 private:
  // Bytes of the flags and of three numbers, each of at most 4 bytes.
  static constexpr std::size_t kMaxShortHeader = 1 + 3 * kMaxShortVarUInt;

  // Reads the number at *next, and moves *next to its end. Returns false if the number has more
  // than kMaxShortVarUInt bytes.
  [[gnu::always_inline]] static bool TakeShort(const std::byte** next, std::uint32_t* value) {
    const ShortVarUInt number = LoadShortVarUInt(*next);
    *next += number.size;
    *value = number.value;
    return number.size != 0;
  }

  // Reads a row that has no flags other than kFlags and kIsSorted. Most rows have neither a
  // metadata id nor a payload size, so the instance with kFlags 0 does not test for them.
  template <unsigned kFlags>
  [[gnu::always_inline]] bool NextShort(ShortRow* row) {
    const std::span<const std::byte> rest = reader_.rest();
    if (!can_be_short_ || rest.size() < kMaxShortHeader) return false;
    const auto flags = static_cast<unsigned>(rest[0]);
    if ((flags & ~(kFlags | kIsSorted)) != 0) return false;
    const std::byte* next = &rest[1];
    std::uint32_t metadata_id = ToNumber(header_.metadata_id);
    std::uint32_t since_previous = 0;
    std::uint32_t payload_size = header_.payload_size;
    if ((flags & kFlags & kHasMetadataId) != 0 && !TakeShort(&next, &metadata_id)) return false;
    if (!TakeShort(&next, &since_previous)) return false;
    const std::uint64_t timestamp = header_.timestamp + since_previous;
    if (timestamp < since_previous) return false;
    if ((flags & kFlags & kHasPayloadSize) != 0 && !TakeShort(&next, &payload_size)) return false;
    const std::size_t row_size = static_cast<std::size_t>(next - rest.data()) + payload_size;
    if (row_size > rest.size()) return false;
    *row = {Position(), {next, payload_size}};
    header_.sorted = (flags & kIsSorted) != 0;
    header_.metadata_id = MetadataId{metadata_id};
    ++header_.sequence;
    header_.timestamp = timestamp;
    header_.payload_size = payload_size;
    reader_.Bytes(row_size);
    return true;
  }

  std::uint64_t Position() const { return content_end_ - reader_.size(); }
  void ReadCompressed();
  void ReadUncompressed();

  ByteReader reader_;
  std::uint64_t content_end_ = 0;  // offset of the block's end in the stream
  bool legacy_ = false;
  bool can_be_short_ = false;  // true if the previous row was a compressed row of V6
  std::uint16_t flags_ = 0;
  std::uint64_t min_timestamp_ = 0;
  std::uint64_t max_timestamp_ = 0;
  EventRowHeader header_;
  std::span<const std::byte> payload_;
  std::uint64_t offset_ = 0;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_READ_EVENT_ROWS_H_
