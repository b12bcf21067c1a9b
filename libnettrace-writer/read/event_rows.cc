#include "read/event_rows.h"

namespace nettrace {
namespace {

constexpr std::uint32_t kNotSorted = 0x80000000;  // of an uncompressed row's metadata id

}  // namespace

EventRows::EventRows(const Block& block, bool legacy)
    : cursor_(block.content),
      content_end_(block.content_offset + block.content.size()),
      legacy_(legacy) {
  constexpr std::uint16_t kHeaderSize = 20;
  const auto header_size = cursor_.Number<std::uint16_t>();
  flags_ = cursor_.Number<std::uint16_t>();
  min_timestamp_ = cursor_.Number<std::uint64_t>();
  max_timestamp_ = cursor_.Number<std::uint64_t>();
  if (header_size < kHeaderSize) {
    cursor_.Fail();
  } else {
    cursor_.Bytes(header_size - kHeaderSize);
  }
}

bool EventRows::Next() {
  offset_ = Position();
  if (compressed()) {
    ReadCompressed();
  } else {
    ReadUncompressed();
  }
  can_be_short_ = compressed() && !legacy_ && cursor_.ok();
  return cursor_.ok();
}

void EventRows::ReadCompressed() {
  const auto flags = cursor_.Number<std::uint8_t>();
  if (flags & kHasMetadataId) header_.metadata_id = cursor_.VarUInt32();
  if (flags & kHasCaptureThread) {
    header_.sequence += cursor_.VarUInt32();
    header_.capture_thread = cursor_.VarUInt64();
    header_.processor = cursor_.VarUInt32();
  }
  // The rows of a V4/V5 metadata block (id 0) are not numbered.
  if (!legacy_ || header_.metadata_id != 0) ++header_.sequence;
  if (flags & kHasThread) header_.thread = cursor_.VarUInt64();
  if (flags & kHasStack) header_.stack_id = cursor_.VarUInt32();
  header_.timestamp += cursor_.VarUInt64();
  if (legacy_) {
    if (flags & kHasLabels) header_.activity_id = cursor_.Id128();
    if (flags & kHasRelatedActivity) header_.related_activity_id = cursor_.Id128();
  } else if (flags & kHasLabels) {
    header_.label_list_id = cursor_.VarUInt32();
  }
  header_.sorted = (flags & kSorted) != 0;
  if (flags & kHasPayloadSize) header_.payload_size = cursor_.VarUInt32();
  payload_ = cursor_.Bytes(header_.payload_size);
}

void EventRows::ReadUncompressed() {
  const auto size = cursor_.Number<std::uint32_t>();
  Cursor row(cursor_.Bytes(size));
  const auto metadata_id = row.Number<std::uint32_t>();
  header_.metadata_id = metadata_id & ~kNotSorted;
  // The text calls this bit IsSorted; the .NET runtime and the reference reader have it the other
  // way.
  header_.sorted = (metadata_id & kNotSorted) == 0;
  header_.sequence = row.Number<std::uint32_t>();
  header_.thread = row.Number<std::uint64_t>();
  header_.capture_thread = row.Number<std::uint64_t>();
  header_.processor = row.Number<std::uint32_t>();
  header_.stack_id = row.Number<std::uint32_t>();
  header_.timestamp = row.Number<std::uint64_t>();
  if (legacy_) {
    header_.activity_id = row.Id128();
    header_.related_activity_id = row.Id128();
  } else {
    header_.label_list_id = row.Number<std::uint32_t>();
  }
  header_.payload_size = row.Number<std::uint32_t>();
  payload_ = row.Bytes(header_.payload_size);
  if (!row.ok()) return cursor_.Fail();
  if (legacy_) {
    const std::uint64_t end = Position();
    cursor_.Bytes((4 - end % 4) % 4);
  }
}

}  // namespace nettrace
