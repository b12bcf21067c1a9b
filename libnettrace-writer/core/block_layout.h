// Sizes and flags of V6 blocks and of the rows of event blocks, for those who write and read them.
#ifndef LIBNETTRACE_WRITER_CORE_BLOCK_LAYOUT_H_
#define LIBNETTRACE_WRITER_CORE_BLOCK_LAYOUT_H_

#include <cstddef>
#include <cstdint>

namespace nettrace::internal {

// A block begins with its content's size, 24 bits, and its kind, 8 bits.
inline constexpr std::size_t kBlockHeaderSize = 4;

// An event block's content begins with this header's size, flags, first and last timestamp.
inline constexpr std::uint16_t kEventBlockHeaderSize = 2 + 2 + 8 + 8;
inline constexpr std::uint16_t kCompressedRows = 1;  // a flag of that header

// The flags of a compressed row: which values follow. The timestamp always does.
inline constexpr unsigned kHasMetadataId = 1;
inline constexpr unsigned kHasCaptureThread = 2;  // with sequence number and processor
inline constexpr unsigned kHasThread = 4;
inline constexpr unsigned kHasStack = 8;
inline constexpr unsigned kHasLabels = 16;           // V4, V5: the activity id
inline constexpr unsigned kHasRelatedActivity = 32;  // V4, V5
inline constexpr unsigned kIsSorted = 64;
inline constexpr unsigned kHasPayloadSize = 128;

// The high bit of an uncompressed row's metadata id. The specification calls it IsSorted;
// TraceEvent and the .NET runtime's writer have it the other way.
inline constexpr std::uint32_t kIsNotSorted = 0x80000000;

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_CORE_BLOCK_LAYOUT_H_
