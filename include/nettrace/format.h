// The NetTrace V6 format as numbers and names: kinds of blocks, types, metadata, thread information
// and labels, flags, limits and keys. The source is the NetTrace V6 specification, and the code of
// TraceEvent where the specification gives no number. Some keys are additions of this project.
#ifndef NETTRACE_FORMAT_H_
#define NETTRACE_FORMAT_H_

#include "nettrace/need_cxx20.h"

#ifdef NETTRACE_CXX20

#include <array>
#include <cstddef>
#include <cstdint>

namespace nettrace {

inline constexpr char kMagic[] = "Nettrace";  // 8 bytes, no terminator in the file

enum class BlockKind : std::uint8_t {
  kEndOfStream = 0,
  kTrace = 1,
  kEvent = 2,
  kMetadata = 3,
  kSequencePoint = 4,
  kStack = 5,
  kThread = 6,
  kRemoveThread = 7,
  kLabelList = 8,
};

// The block that ends a stream: an empty block of kind kEndOfStream.
inline constexpr std::array<std::byte, 4> kEndOfStreamBlock = {};

enum class TypeCode : std::uint8_t {
  kObject = 1,
  kBoolean32 = 3,
  kUtf16CodeUnit = 4,
  kSByte = 5,
  kByte = 6,
  kInt16 = 7,
  kUInt16 = 8,
  kInt32 = 9,
  kUInt32 = 10,
  kInt64 = 11,
  kUInt64 = 12,
  kSingle = 13,
  kDouble = 14,
  kDecimal = 15,   // in V4 and V5 only
  kDateTime = 16,  // 8 Int16s, but TraceEvent reads an 8-byte FILETIME
  kGuid = 17,
  kNullTerminatedUtf16String = 18,
  kArray = 19,
  kVarInt = 20,
  kVarUInt = 21,
  kFixedLengthArray = 22,
  kUtf8CodeUnit = 23,
  kRelLoc = 24,
  kDataLoc = 25,
  kBoolean8 = 26,  // added to the format after the specification
};

enum class MetadataKind : std::uint8_t {
  kOpcode = 1,
  kKeyword = 3,
  kMessageTemplate = 4,
  kDescription = 5,
  kKeyValue = 6,
  kProviderGuid = 7,
  kLevel = 8,
  kVersion = 9,
};

enum class ThreadInfoKind : std::uint8_t {
  kName = 1,
  kOsProcessId = 2,
  kOsThreadId = 3,
  kKeyValue = 4
};

enum class LabelKind : std::uint8_t {
  kActivityId = 1,
  kRelatedActivityId = 2,
  kTraceId = 3,
  kSpanId = 4,
  kKeyString = 5,
  kKeyInteger = 6,  // the value is a zig-zag varint64
  kOpcode = 7,
  kKeywords = 8,
  kLevel = 9,
  kVersion = 10,
};
// Flag in the kind byte of the last label of a list.
inline constexpr std::uint8_t kLastLabel = 0x80;

// Flags of a sequence point that make all earlier thread rows, or all earlier metadata rows,
// invalid.
inline constexpr std::uint32_t kSequencePointFlushThreads = 1;
inline constexpr std::uint32_t kSequencePointFlushMetadata = 2;

inline constexpr std::size_t kMaxBlockSize = (std::size_t{1} << 24) - 1;
inline constexpr std::size_t kMaxRowSize = 65535;  // bytes of a metadata row, thread row or field
inline constexpr std::size_t kMaxFields = 65535;   // per event or object
// Maximum nesting of types. The specification has no limit; this library needs one to bound
// recursion.
inline constexpr int kMaxTypeDepth = 32;
// Processor number of events whose processor is unknown. .NET writes this number, too.
inline constexpr std::uint32_t kNoProcessor = 0xFFFFFFFF;

// The largest timestamp, in ticks. Readers treat timestamps as signed.
inline constexpr std::uint64_t kMaxTimestamp = (std::uint64_t{1} << 63) - 1;

// Keys of TraceInfo::key_values whose meaning readers of the format know.
inline constexpr char kKeyProcessId[] = "ProcessId";
// Key of a number that is greater than every CPU number of the trace.
inline constexpr char kKeyHardwareThreadCount[] = "HardwareThreadCount";
inline constexpr char kKeyExpectedCpuSamplingRate[] = "ExpectedCPUSamplingRate";
inline constexpr char kKeySystemPageSize[] = "SystemPageSize";

// Further keys of TraceInfo::key_values, which the collector of this project writes.
inline constexpr char kKeyHostName[] = "HostName";
// Key of the boot id of Linux, a UUID. Traces with the same boot id have the same clock, so their
// timestamps are comparable.
inline constexpr char kKeyBootId[] = "BootId";

// Key of an integer label: the original timestamp of an event, in ticks. The collector and the
// Merger add the label to an event that gets a later timestamp. This happens if a sequence point
// with a later time was already written, or if the event is older than MergerOptions::start.
inline constexpr char kLabelOriginalTimestamp[] = "OriginalTimestamp";

}  // namespace nettrace

#endif  // NETTRACE_CXX20
#endif  // NETTRACE_FORMAT_H_
