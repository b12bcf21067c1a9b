// Detects streams that this library reads but TraceEvent refuses as a whole.
#ifndef LIBNETTRACE_WRITER_READ_TRACEEVENT_REFUSAL_H_
#define LIBNETTRACE_WRITER_READ_TRACEEVENT_REFUSAL_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "libnettrace-writer/core/event_ids.h"
#include "nettrace/schema.h"

namespace nettrace::internal {

class TraceEventRefusal {
 public:
  // The reader must call these functions in the order of the stream: SeeRow for each metadata row,
  // SeeMetadataFlush for each flush of metadata, and SeeEmptyEventBlock for each event block
  // without rows. `offset` is the offset of the block in the stream, in bytes.
  void SeeRow(const EventMetadata& row);
  void SeeMetadataFlush() { universal_events_.StartGeneration(); }
  void SeeEmptyEventBlock(std::uint64_t offset);
  // Returns the first reason for which TraceEvent refuses the stream; empty if no reason was found
  // so far.
  const std::string& why() const { return why_; }

 private:
  // Maximum number of rows of provider Universal.Events that are checked, to bound the memory.
  // Recordings have fewer.
  static constexpr std::size_t kMaxUniversalEvents = 65536;

  EventIdTable universal_events_{kMaxUniversalEvents};
  std::size_t universal_rows_ = 0;
  std::string why_;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_READ_TRACEEVENT_REFUSAL_H_
