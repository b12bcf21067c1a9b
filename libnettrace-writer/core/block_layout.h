// Sizes and flags of V6 blocks and of rows in event blocks, for writers and readers.
#ifndef LIBNETTRACE_WRITER_CORE_BLOCK_LAYOUT_H_
#define LIBNETTRACE_WRITER_CORE_BLOCK_LAYOUT_H_

#include <cstddef>
#include <cstdint>

namespace nettrace::internal {

// A block begins with 24 bits for the size of its content and 8 bits for its kind.
inline constexpr std::size_t kBlockHeaderSize = 4;

// The content of an event block begins with a header: size of the header, flags, minimum and
// maximum timestamp of the rows.
inline constexpr std::uint16_t kEventBlockHeaderSize = 2 + 2 + 8 + 8;
// Flag in the header of an event block: its rows are compressed.
inline constexpr std::uint16_t kCompressedRows = 1;

// Flags of a compressed row. Each flag except kIsSorted states that the row contains a value;
// without the flag, the value is that of the previous row. Without kHasCaptureThread, no event was
// lost between the two rows. The timestamp has no flag, because each row contains it.
inline constexpr unsigned kHasMetadataId = 1;
inline constexpr unsigned kHasCaptureThread = 2;  // sequence gap, capture thread, processor
inline constexpr unsigned kHasThread = 4;
inline constexpr unsigned kHasStack = 8;
inline constexpr unsigned kHasLabels = 16;           // in V4 and V5, the activity id
inline constexpr unsigned kHasRelatedActivity = 32;  // only in V4 and V5
inline constexpr unsigned kIsSorted = 64;
inline constexpr unsigned kHasPayloadSize = 128;

// High bit of the metadata id in an uncompressed row. The specification calls it IsSorted, but the
// .NET runtime sets it for events that are not sorted, and TraceEvent reads such events as not
// sorted.
inline constexpr std::uint32_t kIsNotSorted = 0x80000000;

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_CORE_BLOCK_LAYOUT_H_
