// Parsing of the rows of every table but the events'. Each function takes one row off the cursor
// and returns null, or what is wrong with it.
#ifndef LIBNETTRACE_WRITER_READ_PARSE_ROWS_H_
#define LIBNETTRACE_WRITER_READ_PARSE_ROWS_H_

#include <cstdint>

#include "nettrace/schema.h"
#include "read/cursor.h"

namespace nettrace {

const char* ParseTraceBlock(Cursor block, TraceInfo* info);
const char* ParseMetadataRow(Cursor* block, std::uint32_t* id, EventMetadata* metadata);
const char* ParseThreadRow(Cursor* block, std::uint64_t* index, ThreadInfo* thread);
const char* ParseLabelList(Cursor* block, Labels* labels);

}  // namespace nettrace

#endif  // LIBNETTRACE_WRITER_READ_PARSE_ROWS_H_
