// Parses the Trace block, sequence points and the rows of all tables; EventRows reads event rows.
// Each function that returns `const char*` returns null, or a description of the error.
#ifndef LIBNETTRACE_WRITER_READ_PARSE_ROWS_H_
#define LIBNETTRACE_WRITER_READ_PARSE_ROWS_H_

#include <cstdint>

#include "libnettrace-writer/core/byte_reader.h"
#include "nettrace/format.h"
#include "nettrace/ids.h"
#include "nettrace/schema.h"

namespace nettrace::internal {

// The error for types that are nested deeper than kMaxTypeDepth. A row with such types is valid,
// but this library does not read it.
inline constexpr char kTypesTooDeep[] =
    "types are nested deeper than 32 levels, the limit of this reader; the file is not damaged";
static_assert(kMaxTypeDepth == 32);

const char* ParseTraceBlock(ByteReader block, TraceInfo* info);
// Parses the Trace object of V4 and V5. Values for which the V6 Trace block has no field become
// key/values.
const char* ParseLegacyTraceBlock(ByteReader block, TraceInfo* info);
const char* ParseMetadataRow(ByteReader* block, MetadataId* id, EventMetadata* metadata);
// `row` is the payload of a row in a V4 or V5 metadata block.
const char* ParseLegacyMetadataRow(ByteReader row, MetadataId* id, EventMetadata* metadata);
const char* ParseThreadRow(ByteReader* block, ThreadIndex* index, ThreadInfo* thread);
const char* ParseLabelList(ByteReader* block, Labels* labels);

struct SequencePointHeader {
  std::uint64_t timestamp = 0;
  std::uint32_t flags = 0;  // always 0 in V4 and V5
  std::uint32_t threads = 0;
};
// ParseSequencePointHeader and ParseThreadSequence do not report missing bytes: the caller must
// check block->ok().
SequencePointHeader ParseSequencePointHeader(ByteReader* block, bool legacy);

struct ThreadSequence {
  ThreadIndex thread = kNoThread;
  std::uint32_t sequence = 0;
};
ThreadSequence ParseThreadSequence(ByteReader* block, bool legacy);

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_READ_PARSE_ROWS_H_
