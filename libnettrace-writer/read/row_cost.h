// The memory that rows take in the tables of those who read a stream, roughly. The reader and the
// verifier are bound by it, and so give up at the same row: what one takes, the other takes, too.
#ifndef LIBNETTRACE_WRITER_READ_ROW_COST_H_
#define LIBNETTRACE_WRITER_READ_ROW_COST_H_

#include <cstddef>

#include "nettrace/schema.h"

namespace nettrace::internal {

// Of any row, beside what is in it.
inline constexpr std::size_t kRowCost = 256;
// Of a stack, beside its bytes: those of its block are kept together.
inline constexpr std::size_t kStackCost = 96;
// Of a stack block, beside its bytes: there may be many that are all but empty.
inline constexpr std::size_t kStackBlockCost = 64;

// `size` is that of the row in the file, bytes.
std::size_t MetadataRowCost(const EventMetadata& row, std::size_t size);
std::size_t ThreadRowCost(const ThreadInfo& row, std::size_t size);
std::size_t LabelListCost(const Labels& list, std::size_t size);

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_READ_ROW_COST_H_
