// Reads files that are compressed with zstd as if they were not compressed.
#ifndef TOOLS_TRACE_ZSTD_SOURCE_H_
#define TOOLS_TRACE_ZSTD_SOURCE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nettrace/source.h"

namespace trace {

// Returns a source of the same bytes as `source`. If `source` begins like a zstd file, returns a
// source of the decompressed contents of all its frames. If the data is cut or damaged, the source
// returns everything before the damage, then DataLoss. OpenCompressed fails if the first bytes
// cannot be read or there is not enough memory.
//
// The reader needs as much memory as the window size that a frame states. The limit is 128 MiB, as
// in zstd(1); above it, the source returns ResourceExhausted. zstd reserves this memory at the
// beginning of a frame, and the kernel provides it as the frame's contents arrive.
absl::StatusOr<std::unique_ptr<nettrace::Source>> OpenCompressed(
    std::unique_ptr<nettrace::Source> source);

}  // namespace trace

#endif  // TOOLS_TRACE_ZSTD_SOURCE_H_
