// Estimates the memory of rows in the tables of the reader and the verifier. Both compare these
// estimates with their limits, and therefore stop at the same row if their limits are equal.
#ifndef LIBNETTRACE_WRITER_READ_ROW_COST_H_
#define LIBNETTRACE_WRITER_READ_ROW_COST_H_

#include <cstddef>

#include "nettrace/schema.h"

namespace nettrace::internal {

// Bytes for any row, apart from its contents.
inline constexpr std::size_t kRowCost = 256;
// Bytes for a stack, apart from its frames: the frames of all stacks of a block are stored
// together.
inline constexpr std::size_t kStackCost = 96;
// Bytes for a stack block, apart from its contents. There may be many blocks that are almost empty.
inline constexpr std::size_t kStackBlockCost = 64;

// `size` is that of the row in the file, in bytes.
std::size_t MetadataRowCost(const EventMetadata& row, std::size_t size);
std::size_t ThreadRowCost(const ThreadInfo& row, std::size_t size);
std::size_t LabelListCost(const Labels& list, std::size_t size);

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_READ_ROW_COST_H_
