// The rows of an event block, and of a V4/V5 metadata block, which has the same form.
#ifndef LIBNETTRACE_WRITER_READ_EVENT_ROWS_H_
#define LIBNETTRACE_WRITER_READ_EVENT_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "nettrace/schema.h"
#include "read/block_reader.h"
#include "read/cursor.h"

namespace nettrace {

struct EventRowHeader {
  bool sorted = false;
  std::uint32_t metadata_id = 0;
  std::uint32_t sequence = 0;
  std::uint64_t capture_thread = 0;
  std::uint64_t thread = 0;
  std::uint32_t processor = 0;
  std::uint32_t stack_id = 0;
  std::uint64_t timestamp = 0;
  std::uint32_t label_list_id = 0;  // V6
  Guid activity_id{};               // V4, V5
  Guid related_activity_id{};       // V4, V5
  std::uint32_t payload_size = 0;
};

class EventRows {
 public:
  EventRows() = default;
  EventRows(const Block& block, bool legacy);

  // False if the block header is malformed.
  bool ok() const { return cursor_.ok(); }
  bool compressed() const { return (flags_ & 1) != 0; }
  std::uint16_t flags() const { return flags_; }
  std::uint64_t min_timestamp() const { return min_timestamp_; }
  std::uint64_t max_timestamp() const { return max_timestamp_; }

  bool AtEnd() const { return cursor_.empty(); }
  // The next row. False if it does not fit the block. Not to be called at the end.
  bool Next();
  // Reads the next row if its header is like the one before but for time and number, as most are.
  // False: nothing was read, there may be no row; ask AtEnd and Next. V6 only.
  bool NextLikePrevious() {
    const std::span<const std::byte> rest = cursor_.rest();
    const std::size_t payload_size = header_.payload_size;
    if (!can_repeat_ || rest.size() <= payload_size) return false;
    const auto flags = static_cast<std::uint8_t>(rest[0]);
    const ShortVarUInt since_previous = PeekShortVarUInt(rest.subspan(1));
    const std::uint64_t timestamp = header_.timestamp + since_previous.value;
    const std::size_t header_size = 1 + since_previous.size;
    if ((flags & ~kSorted) != 0 || since_previous.size == 0 || timestamp < header_.timestamp ||
        rest.size() - payload_size < header_size) {
      return false;
    }
    offset_ = Position();
    ++header_.sequence;
    header_.timestamp = timestamp;
    header_.sorted = (flags & kSorted) != 0;
    payload_ = rest.subspan(header_size, payload_size);
    cursor_.Bytes(header_size + payload_size);
    return true;
  }
  const EventRowHeader& header() const { return header_; }
  std::span<const std::byte> payload() const { return payload_; }
  std::uint64_t offset() const { return offset_; }  // of the row in the stream

 private:
  static constexpr std::uint8_t kSorted = 64;  // of a compressed row's flags

  std::uint64_t Position() const { return content_end_ - cursor_.size(); }
  void ReadCompressed();
  void ReadUncompressed();

  Cursor cursor_;
  std::uint64_t content_end_ = 0;  // offset in the stream
  bool legacy_ = false;
  bool can_repeat_ = false;  // the row before was compressed, and is V6's
  std::uint16_t flags_ = 0;
  std::uint64_t min_timestamp_ = 0;
  std::uint64_t max_timestamp_ = 0;
  EventRowHeader header_;
  std::span<const std::byte> payload_;
  std::uint64_t offset_ = 0;
};

}  // namespace nettrace

#endif  // LIBNETTRACE_WRITER_READ_EVENT_ROWS_H_
