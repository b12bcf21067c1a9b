// The metadata rows of a copy of one or more streams.
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

// Rows that are alike become one row. A row keeps its EventId, by which TraceEvent knows what its
// events are, unless a row of that provider and id has another name, other fields or another
// opcode. It then gets an id of its own, the same in each copy if it can be; the original's is kept
// as key/value "EventHeader.Id". Rows of one name of Universal.Events get the id of the first.
class MetadataCopies {
 public:
  explicit MetadataCopies(Writer* writer) : writer_(writer) {}

  // The copy of `metadata`, written if there is none yet. `encoding` is that of its payloads.
  // InvalidArgument if no V6 stream can have it, or TraceEvent could not open one that has it.
  absl::StatusOr<MetadataId> IdOf(const EventMetadata& metadata, PayloadEncoding encoding);

 private:
  absl::Status ChooseEventId(EventMetadata* copy);

  Writer* writer_;
  EventIdTable event_ids_;
  // By the originals' rows as they would be written: with the types of V6, which depend on the
  // payloads' encoding, and with EventIds of their own.
  absl::flat_hash_map<std::string, MetadataId> copies_;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_MERGE_METADATA_COPIES_H_
