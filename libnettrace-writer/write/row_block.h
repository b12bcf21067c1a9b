// Collects the rows of one table until they are written as a block.
#ifndef LIBNETTRACE_WRITER_WRITE_ROW_BLOCK_H_
#define LIBNETTRACE_WRITER_WRITE_ROW_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "libnettrace-writer/core/byte_writer.h"
#include "libnettrace-writer/write/block_output.h"
#include "nettrace/format.h"

namespace nettrace::internal {

class RowBlock {
 public:
  // `kind` must be kMetadata, kStack, kThread, kRemoveThread or kLabelList.
  explicit RowBlock(BlockKind kind) : kind_(kind) {}

  bool empty() const { return count_ == 0; }

  // Returns whether a row of `size` bytes fits in the block. If not, the caller must write the
  // block first.
  bool HasRoom(std::size_t size) const;

  // Makes room for a row of `size` bytes, and writes the block if necessary. Returns the sink's
  // error, or OutOfRange if the row does not fit in any block.
  absl::Status MakeRoom(std::size_t size, BlockOutput* output);

  // Adds a row for which there is room. `id` matters only for stacks and label lists: their block
  // contains only the id of its first row, so later rows must have the next ids.
  void Add(std::uint32_t id, std::span<const std::byte> row);

  // Writes the rows, if there are any. After an error, the rows are still in the block.
  absl::Status WriteTo(BlockOutput* output);

 private:
  bool IsNumbered() const { return kind_ == BlockKind::kStack || kind_ == BlockKind::kLabelList; }
  std::size_t PrefixSize() const;

  BlockKind kind_;
  std::uint32_t count_ = 0;
  ByteWriter block_;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_WRITE_ROW_BLOCK_H_
