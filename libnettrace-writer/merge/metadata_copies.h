// The metadata rows of a copy of one or more streams.
#ifndef LIBNETTRACE_WRITER_MERGE_METADATA_COPIES_H_
#define LIBNETTRACE_WRITER_MERGE_METADATA_COPIES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "libnettrace-writer/core/traceevent.h"
#include "nettrace/ids.h"
#include "nettrace/payload.h"
#include "nettrace/schema.h"
#include "nettrace/writer.h"

namespace nettrace::internal {

// Rows that are alike become one row. Each row has an EventId of its own within its provider, as
// TraceEvent demands: the original's, or, where that is taken or out of range, a free one; the
// original's is then kept as key/value "EventHeader.Id".
class MetadataCopies {
 public:
  explicit MetadataCopies(Writer* writer) : writer_(writer) {}

  // The copy of `metadata`, written if there is none yet. `encoding` is that of its payloads.
  absl::StatusOr<MetadataId> IdOf(const EventMetadata& metadata, PayloadEncoding encoding);

 private:
  struct Copy {
    EventMetadata original;
    MetadataId id;
  };
  struct Provider {
    std::set<std::uint32_t> taken;              // EventIds
    std::multimap<std::uint32_t, Copy> copies;  // by the original's EventId
    std::uint32_t next_free = traceevent::kMaxEventId;
  };
  Writer* writer_;
  std::map<std::string, Provider> providers_;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_MERGE_METADATA_COPIES_H_
