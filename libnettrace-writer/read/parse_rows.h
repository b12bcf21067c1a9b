// Parsers of the rows of all tables but the events'. Each reads one row and returns null, or what
// is wrong with it.
#ifndef LIBNETTRACE_WRITER_READ_PARSE_ROWS_H_
#define LIBNETTRACE_WRITER_READ_PARSE_ROWS_H_

#include <cstdint>

#include "libnettrace-writer/core/byte_reader.h"
#include "nettrace/ids.h"
#include "nettrace/schema.h"

namespace nettrace::internal {

const char* ParseTraceBlock(ByteReader block, TraceInfo* info);
// V4 and V5: values that only they have become the key/values that V6 has for them.
const char* ParseLegacyTraceBlock(ByteReader block, TraceInfo* info);
const char* ParseMetadataRow(ByteReader* block, MetadataId* id, EventMetadata* metadata);
// `row` is the payload of a row of a V4 or V5 metadata block.
const char* ParseLegacyMetadataRow(ByteReader row, MetadataId* id, EventMetadata* metadata);
const char* ParseThreadRow(ByteReader* block, ThreadIndex* index, ThreadInfo* thread);
const char* ParseLabelList(ByteReader* block, Labels* labels);

struct SequencePointHeader {
  std::uint64_t timestamp = 0;
  std::uint32_t flags = 0;  // always 0 in V4 and V5
  std::uint32_t threads = 0;
};
// The callers of these two ask the reader whether all was there.
SequencePointHeader ParseSequencePointHeader(ByteReader* block, bool legacy);

struct ThreadSequence {
  ThreadIndex thread = kNoThread;
  std::uint32_t sequence = 0;
};
ThreadSequence ParseThreadSequence(ByteReader* block, bool legacy);

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_READ_PARSE_ROWS_H_
