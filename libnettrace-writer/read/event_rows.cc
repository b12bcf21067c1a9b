#include "libnettrace-writer/read/event_rows.h"

namespace nettrace::internal {
EventRows::EventRows(const Block& block, bool legacy)
    : reader_(block.content),
      content_end_(block.content_offset + block.content.size()),
      legacy_(legacy) {
  const auto header_size = reader_.Number<std::uint16_t>();
  flags_ = reader_.Number<std::uint16_t>();
  min_timestamp_ = reader_.Number<std::uint64_t>();
  max_timestamp_ = reader_.Number<std::uint64_t>();
  if (header_size < kEventBlockHeaderSize) {
    reader_.Fail();
  } else {
    reader_.Bytes(header_size - kEventBlockHeaderSize);
  }
}

bool EventRows::Next() {
  offset_ = Position();
  if (compressed()) {
    ReadCompressed();
  } else {
    ReadUncompressed();
  }
  can_be_short_ = compressed() && !legacy_ && reader_.ok();
  return reader_.ok();
}

void EventRows::ReadCompressed() {
  const auto flags = reader_.Number<std::uint8_t>();
  if (flags & kHasMetadataId) header_.metadata_id = MetadataId{reader_.VarUInt32()};
  if (flags & kHasCaptureThread) {
    header_.sequence += reader_.VarUInt32();
    header_.capture_thread = ThreadIndex{reader_.VarUInt64()};
    header_.processor = reader_.VarUInt32();
  }
  // The rows of a V4 or V5 metadata block, which have metadata id 0, have no sequence numbers.
  if (!legacy_ || header_.metadata_id != kNoMetadata) ++header_.sequence;
  if (flags & kHasThread) header_.thread = ThreadIndex{reader_.VarUInt64()};
  if (flags & kHasStack) header_.stack_id = StackId{reader_.VarUInt32()};
  header_.timestamp += reader_.VarUInt64();
  if (legacy_) {
    if (flags & kHasLabels) header_.activity_id = reader_.Id128();
    if (flags & kHasRelatedActivity) header_.related_activity_id = reader_.Id128();
  } else if (flags & kHasLabels) {
    header_.label_list_id = LabelListId{reader_.VarUInt32()};
  }
  header_.sorted = (flags & kIsSorted) != 0;
  if (flags & kHasPayloadSize) header_.payload_size = reader_.VarUInt32();
  payload_ = reader_.Bytes(header_.payload_size);
}

void EventRows::ReadUncompressed() {
  const auto size = reader_.Number<std::uint32_t>();
  ByteReader row(reader_.Bytes(size));
  const auto metadata_id = row.Number<std::uint32_t>();
  header_.metadata_id = MetadataId{metadata_id & ~kIsNotSorted};
  header_.sorted = (metadata_id & kIsNotSorted) == 0;
  header_.sequence = row.Number<std::uint32_t>();
  header_.thread = ThreadIndex{row.Number<std::uint64_t>()};
  header_.capture_thread = ThreadIndex{row.Number<std::uint64_t>()};
  header_.processor = row.Number<std::uint32_t>();
  header_.stack_id = StackId{row.Number<std::uint32_t>()};
  header_.timestamp = row.Number<std::uint64_t>();
  if (legacy_) {
    header_.activity_id = row.Id128();
    header_.related_activity_id = row.Id128();
  } else {
    header_.label_list_id = LabelListId{row.Number<std::uint32_t>()};
  }
  header_.payload_size = row.Number<std::uint32_t>();
  payload_ = row.Bytes(header_.payload_size);
  if (!row.ok()) return reader_.Fail();
  if (legacy_) {
    const std::uint64_t end = Position();
    reader_.Bytes((4 - end % 4) % 4);
  }
}

}  // namespace nettrace::internal
