// The rows of the tables and the Trace block, as bytes.
#ifndef LIBNETTRACE_WRITER_WRITE_PUT_ROWS_H_
#define LIBNETTRACE_WRITER_WRITE_PUT_ROWS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "libnettrace-writer/core/byte_writer.h"
#include "nettrace/ids.h"
#include "nettrace/schema.h"

namespace nettrace::internal {

// Each appends to `out`; after an error, what is in `out` is of no use. InvalidArgument says what
// is wrong; OutOfRange, which limit of the format is passed.

// The stream header and the whole Trace block.
absl::Status PutStreamStart(const TraceInfo& info, ByteWriter* out);
// The fields of `metadata` are such that CheckFields accepts them.
absl::Status PutMetadataRow(MetadataId id, const EventMetadata& metadata, ByteWriter* out);
absl::Status PutThreadRow(ThreadIndex index, const ThreadInfo& thread, ByteWriter* out);
// `labels` are not empty.
void PutLabelList(const Labels& labels, ByteWriter* out);

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_WRITE_PUT_ROWS_H_
