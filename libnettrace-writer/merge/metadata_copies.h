// The metadata rows in a copy of one or more streams.
#ifndef LIBNETTRACE_WRITER_MERGE_METADATA_COPIES_H_
#define LIBNETTRACE_WRITER_MERGE_METADATA_COPIES_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libnettrace-writer/core/event_ids.h"
#include "nettrace/ids.h"
#include "nettrace/payload.h"
#include "nettrace/schema.h"
#include "nettrace/writer.h"

namespace nettrace::internal {

// Equal rows become one row. A row keeps its EventId, by which TraceEvent identifies its events,
// unless a row of that provider and id has another name, other fields or another opcode. It then
// gets another id, if possible the same in each copy, and the original id is kept as key/value
// "EventHeader.Id". Rows of Universal.Events with one name get the id of the first.
class MetadataCopies {
 public:
  explicit MetadataCopies(Writer* writer) : writer_(writer) {}

  // Returns the id of the copy of `metadata`, and writes it if there is none yet. `encoding` is
  // that of its payloads. Returns InvalidArgument if a V6 stream cannot represent the row, or if
  // TraceEvent could not open a stream with it.
  absl::StatusOr<MetadataId> IdOf(const EventMetadata& metadata, PayloadEncoding encoding);

 private:
  absl::Status ChooseEventId(EventMetadata* copy);

  Writer* writer_;
  EventIdTable event_ids_;
  // Ids of the copies. The key is the row in V6 form with its original EventId. Its types depend on
  // the encoding of the payloads.
  absl::flat_hash_map<std::string, MetadataId> copies_;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_MERGE_METADATA_COPIES_H_
