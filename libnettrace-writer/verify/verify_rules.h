// The indices of the verifier's rules.
#ifndef LIBNETTRACE_WRITER_VERIFY_VERIFY_RULES_H_
#define LIBNETTRACE_WRITER_VERIFY_VERIFY_RULES_H_

#include <cstddef>

namespace nettrace::internal {

// Indices of the rules in VerifyRules().
enum class RuleId : std::size_t {
  kTruncated,
  kNoEndOfStream,
  kTraceFirst,
  kTraceOnce,
  kTraceFields,
  kTableSize,
  kStringUtf8,
  kBlockEnd,
  kMetadataRow,
  kMetadataRedefined,
  kLocationElement,
  kThreadRow,
  kThreadRedefined,
  kThreadRemoved,
  kLabelRow,
  kLabelFirstIndex,
  kLabelRedefined,
  kStackRow,
  kStackRedefined,
  kStackSize,
  kEventBlockHeader,
  kEventBlockEmpty,
  kEventRow,
  kBlockTimestamps,
  kMetadataDefined,
  kThreadDefined,
  kLabelsDefined,
  kStackDefined,
  kSequenceOrder,
  kCaptureThreadOrder,
  kSortedFlag,
  kAfterSequencePoint,
  kBeforeSequencePoint,
  kPayload,
  kSequencePointRow,
  kSequencePointOrder,
  kSequencePointThread,
  kSequencePointNumber,
  kDamagedLegacy,
  kUnknownBlock,
  kTrailingBytes,
  kEndOfStreamContent,
  kTraceYear,
  kEventIdRange,
  kEventIdUnique,
  kEventNameUnique,
  kKnownEvents,
  kTypeMisread,
  kArrayOfArrays,
  kArrayOfEmptyObjects,
  kFixedArraySize,
  kStartStopOpcode,
  kCaptureThreadChange,
  kUncompressedRows,
  kPayloadSize,
  kEventTimestamp,
  kArrayCount,
  kBooleanValue,
  kStackFrames,
  kProcessorNumber,
  kRemoveThreadIndex,
  kThreadIndexReused,
  kReaderLimits,
  kCount,
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_VERIFY_VERIFY_RULES_H_
