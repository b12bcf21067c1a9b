#include "libnettrace-writer/write/row_block.h"

#include "absl/strings/str_cat.h"
#include "libnettrace-writer/core/block_layout.h"

namespace nettrace::internal {
namespace {

// Approximate maximum bytes of a block of rows. Readers cannot read a block that is cut, so this
// limits the rows that a cut file loses.
constexpr std::size_t kSoftBlockSize = 64 * 1024;

}  // namespace

// Returns the number of bytes between the block header and the rows. A metadata block has a header
// there, and a block of stacks or label lists has the first id and the count.
std::size_t RowBlock::PrefixSize() const {
  if (kind_ == BlockKind::kMetadata) return sizeof(std::uint16_t);
  return IsNumbered() ? 2 * sizeof(std::uint32_t) : 0;
}

bool RowBlock::HasRoom(std::size_t size) const {
  return empty() || block_.size() + size <= kSoftBlockSize;
}

absl::Status RowBlock::MakeRoom(std::size_t size, BlockOutput* output) {
  const std::size_t max = kMaxBlockSize - PrefixSize();
  if (size > max) {
    return absl::OutOfRangeError(
        absl::StrCat("a row of ", size, " bytes; a block holds at most ", max, " bytes of rows"));
  }
  return HasRoom(size) ? absl::OkStatus() : WriteTo(output);
}

void RowBlock::Add(std::uint32_t id, std::span<const std::byte> row) {
  if (empty()) {
    block_.Clear();
    block_.Reserve(kBlockHeaderSize + PrefixSize());
    if (IsNumbered()) block_.FixedAt(kBlockHeaderSize, id);
  }
  ++count_;
  block_.Bytes(row);
}

absl::Status RowBlock::WriteTo(BlockOutput* output) {
  if (empty()) return absl::OkStatus();
  if (IsNumbered()) block_.FixedAt(kBlockHeaderSize + sizeof(std::uint32_t), count_);
  PutBlockHeader(block_.mutable_bytes(), kind_);
  if (absl::Status status = output->Append(block_.bytes()); !status.ok()) return status;
  count_ = 0;
  return absl::OkStatus();
}

}  // namespace nettrace::internal
