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

// Copies metadata rows to a Writer. Equal rows become one row. TraceEvent identifies events by
// EventId. A row keeps its EventId if the EventId is at most 65534, and no other row of this
// provider and EventId differs in name, fields or opcode. Otherwise the row gets another EventId,
// usually the same in each copy of the file, and the original EventId becomes the value of key
// "EventHeader.Id". All rows of Universal.Events with the same name get the EventId of the first of
// them. Rows of Universal.System always keep their EventId.
class MetadataCopies {
 public:
  explicit MetadataCopies(Writer* writer) : writer_(writer) {}

  // Returns the id of the copy of `metadata`, and writes the copy if there is none yet. `encoding`
  // is the encoding of the payloads of its events. Returns InvalidArgument or OutOfRange if a V6
  // stream cannot represent the row, and InvalidArgument if TraceEvent could not open a stream with
  // it. Returns ResourceExhausted if the provider has no free EventId, or the error of
  // Writer::AddMetadata.
  absl::StatusOr<MetadataId> IdOf(const EventMetadata& metadata, PayloadEncoding encoding);

 private:
  absl::Status ChooseEventId(EventMetadata* copy);

  Writer* writer_;
  EventIdTable event_ids_;
  // Ids of the copies. The key is the row in V6 form with its original EventId. The types in the
  // key depend on the encoding of the payloads.
  absl::flat_hash_map<std::string, MetadataId> copies_;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_MERGE_METADATA_COPIES_H_
