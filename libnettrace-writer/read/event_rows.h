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
  const EventRowHeader& header() const { return header_; }
  std::span<const std::byte> payload() const { return payload_; }
  std::uint64_t offset() const { return offset_; }  // of the row in the stream

 private:
  std::uint64_t Position() const { return content_end_ - cursor_.size(); }
  void ReadCompressed();
  void ReadUncompressed();

  Cursor cursor_;
  std::uint64_t content_end_ = 0;  // offset in the stream
  bool legacy_ = false;
  std::uint16_t flags_ = 0;
  std::uint64_t min_timestamp_ = 0;
  std::uint64_t max_timestamp_ = 0;
  EventRowHeader header_;
  std::span<const std::byte> payload_;
  std::uint64_t offset_ = 0;
};

}  // namespace nettrace

#endif  // LIBNETTRACE_WRITER_READ_EVENT_ROWS_H_
