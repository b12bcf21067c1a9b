// Estimates the memory of rows in the tables of the reader and the verifier. Both compare sums of
// these estimates with their limits. The verifier also counts its table of EventIds, so with equal
// limits it stops at the same row as the reader, or earlier.
#ifndef LIBNETTRACE_WRITER_READ_ROW_COST_H_
#define LIBNETTRACE_WRITER_READ_ROW_COST_H_

#include <cstddef>

#include "nettrace/schema.h"

namespace nettrace::internal {

// Estimated bytes for any row, without its contents.
inline constexpr std::size_t kRowCost = 256;
// Estimated bytes for a stack, without its frames. The frames of all stacks of a block are stored
// together, and counted with the block.
inline constexpr std::size_t kStackCost = 96;
// Estimated bytes for a stack block, without its contents. This limits the number of blocks that
// are almost empty.
inline constexpr std::size_t kStackBlockCost = 64;

// Return the estimated bytes of a row in memory. `size` is the number of bytes that the row has in
// the file.
std::size_t MetadataRowCost(const EventMetadata& row, std::size_t size);
std::size_t ThreadRowCost(const ThreadInfo& row, std::size_t size);
std::size_t LabelListCost(const Labels& list, std::size_t size);

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_READ_ROW_COST_H_
