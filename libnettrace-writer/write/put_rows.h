// Serializes the stream header, the Trace block and the rows of the tables.
#ifndef LIBNETTRACE_WRITER_WRITE_PUT_ROWS_H_
#define LIBNETTRACE_WRITER_WRITE_PUT_ROWS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "libnettrace-writer/core/byte_writer.h"
#include "nettrace/ids.h"
#include "nettrace/schema.h"

namespace nettrace::internal {

// Each function appends to `out`, whose contents are undefined after an error. The functions that
// return a status return InvalidArgument if an argument is wrong, and OutOfRange if it exceeds a
// limit of the format.

// Writes the stream header and the complete Trace block.
absl::Status PutStreamStart(const TraceInfo& info, ByteWriter* out);
// `metadata.fields` must be accepted by CheckFields.
absl::Status PutMetadataRow(MetadataId id, const EventMetadata& metadata, ByteWriter* out);
absl::Status PutThreadRow(ThreadIndex index, const ThreadInfo& thread, ByteWriter* out);
// `labels` must not be empty.
void PutLabelList(const Labels& labels, ByteWriter* out);

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_WRITE_PUT_ROWS_H_
