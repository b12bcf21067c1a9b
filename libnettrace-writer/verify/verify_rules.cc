#include "libnettrace-writer/verify/verify_rules.h"

#include <array>

#include "nettrace/verifier.h"

namespace nettrace {
namespace {

using internal::RuleId;

constexpr Severity kError = Severity::kError;
constexpr Severity kHazard = Severity::kHazard;
constexpr char kTraceEvent[] = "TraceEvent";
constexpr char kLibrary[] = "libnettrace";

constexpr std::array<Rule, static_cast<std::size_t>(RuleId::kCount)> kRules = {{
    {"truncated", kError, "Blocks", "every block is there with all its bytes"},
    {"no-end-of-stream", kError, "EndOfStreamBlock", "the stream ends with an EndOfStream block"},
    {"trace-first", kError, "TraceBlock", "the first block is the Trace block"},
    {"trace-once", kError, "TraceBlock", "there is one Trace block"},
    {"trace-fields", kError, "TraceBlock",
     "the Trace block is complete, with a date, a tick frequency and a pointer size of 4 or 8"},
    {"table-size", kError, "Blocks",
     "metadata, threads, label lists and stacks fit in the memory limit of the verifier"},
    {"string-utf8", kError, "primitive types", "strings are UTF-8"},
    {"block-end", kError, "Blocks", "a block ends with its last row"},
    {"metadata-row", kError, "MetadataBlock",
     "a metadata row is complete and has only known parts"},
    {"metadata-redefined", kError, "MetadataBlock",
     "a metadata id is defined again only after a flush of metadata"},
    {"location-element", kError, "MetadataBlock", "RelLoc and DataLoc have a fixed-size element"},
    {"thread-row", kError, "ThreadBlock", "a thread row is complete and has only known parts"},
    {"thread-redefined", kError, "ThreadBlock",
     "a thread index is defined again only after its removal or a flush of threads"},
    {"thread-removed", kError, "RemoveThreadBlock",
     "a removed thread is defined and was not removed before"},
    {"label-row", kError, "LabelListBlock", "a label list is complete and has only known parts"},
    {"label-first-index", kError, "LabelListBlock", "the first index is 1 or more"},
    {"label-redefined", kError, "LabelListBlock", "a label list is defined once in an interval"},
    {"stack-row", kError, "StackBlock", "a stack is complete"},
    {"stack-redefined", kError, "StackBlock", "a stack id is defined once in an interval"},
    {"stack-size", kError, "StackBlock", "a stack's size is a multiple of the pointer size"},
    {"event-block-header", kError, "EventBlock", "the header of an event block is complete"},
    {"event-block-empty", kError, "EventBlock", "an event block has one event or more"},
    {"event-row", kError, "EventBlock",
     "an event row is complete; the last one ends with the block"},
    {"block-timestamps", kError, "EventBlock",
     "the block's timestamps are the minimum and the maximum of its events"},
    {"metadata-defined", kError, "EventBlock", "an event's metadata is defined"},
    {"thread-defined", kError, "ThreadBlock", "an event's threads are defined"},
    {"labels-defined", kError, "LabelListBlock",
     "an event's label list is defined in its interval"},
    {"stack-defined", kError, "StackBlock", "an event's stack is defined in its interval"},
    {"sequence-order", kError, "Event sequence numbers",
     "the sequence numbers of a capture thread's events increase"},
    {"capture-thread-order", kError, "Event timestamp sorting",
     "the timestamps of a capture thread's events never decrease"},
    {"sorted-flag", kError, "Event timestamp sorting",
     "no event after an event with IsSorted is earlier than that event"},
    {"after-sequence-point", kError, "SequencePointBlock",
     "no event is earlier than the sequence point before it"},
    {"before-sequence-point", kError, "SequencePointBlock",
     "no event is later than the sequence point after it"},
    {"payload", kError, "MetadataBlock", "a payload fits the fields of its metadata"},
    {"sequence-point-row", kError, "SequencePointBlock", "a sequence point is complete"},
    {"sequence-point-order", kError, "SequencePointBlock",
     "the timestamps of sequence points never decrease"},
    {"sequence-point-thread", kError, "SequencePointBlock",
     "a sequence point lists only threads that are defined and not removed"},
    {"sequence-point-number", kError, "Event sequence numbers",
     "a number listed for a thread is not below that of its last event"},
    {"damaged-legacy", kError, "V4/V5", "a V4 or V5 stream can be read to its end"},
    {"unknown-block", kHazard, "Blocks", "blocks are of a kind that V6.0 defines"},
    {"trailing-bytes", kHazard, "EndOfStreamBlock", "nothing follows the EndOfStream block"},
    {"end-of-stream-content", kHazard, "EndOfStreamBlock", "the EndOfStream block is empty"},
    {"trace-year", kHazard, kTraceEvent, "the date of the Trace block is in 1601 or later"},
    {"event-id-range", kHazard, kTraceEvent, "EventIds are 0..65534"},
    {"event-id-unique", kHazard, kTraceEvent,
     "rows of one provider and EventId have the same name, fields and opcode"},
    {"event-name-unique", kHazard, kTraceEvent,
     "rows of Universal.Events with one name have one EventId"},
    {"known-events", kHazard, kTraceEvent,
     "events of Universal.System and Universal.Events that TraceEvent knows have the names and "
     "fields that TraceEvent expects"},
    {"type-misread", kHazard, kTraceEvent, "no field is a Decimal or a DateTime"},
    {"array-of-arrays", kHazard, kTraceEvent,
     "no array has arrays as elements, except an Array or FixedLengthArray of text"},
    {"array-of-empty-objects", kHazard, kTraceEvent,
     "no array has objects without fields as elements"},
    {"fixed-array-size", kHazard, kTraceEvent,
     "fixed-length arrays have 1 element or more and 65514 bytes at most"},
    {"start-stop-opcode", kHazard, kTraceEvent,
     "a name that ends in Start or Stop has an opcode in its metadata"},
    {"capture-thread-change", kHazard, kTraceEvent,
     "within a block the capture thread changes only at an event with IsSorted"},
    {"uncompressed-rows", kHazard, kTraceEvent,
     "rows are compressed: the specification and readers disagree on IsSorted in uncompressed "
     "rows"},
    {"payload-size", kHazard, kTraceEvent, "payloads have 65436 bytes at most"},
    {"event-timestamp", kHazard, kTraceEvent, "timestamps of events are 2^63-11 at most"},
    {"array-count", kHazard, kTraceEvent, "arrays have 32767 elements at most"},
    {"boolean-value", kHazard, kTraceEvent, "the low byte of a true Boolean32 is not 0"},
    {"stack-frames", kHazard, kTraceEvent, "stacks have 8190 frames at most"},
    {"processor-number", kHazard, kTraceEvent, "processor numbers are 0..255, or 2^32-1 for none"},
    {"remove-thread-index", kHazard, kTraceEvent,
     "indices of removed threads are above 4194304, and so above all OS ids of threads"},
    {"thread-index-reused", kHazard, kTraceEvent,
     "the index of a removed thread is defined again only after a flush of threads"},
    {"reader-limits", kHazard, kLibrary,
     "types are nested 32 deep at most; a payload has 1048576 values at most; the number of its "
     "values without bytes is at most its size in bytes plus 64; its locations refer to at most 4 "
     "times its size plus 4096 bytes"},
}};

}  // namespace

std::span<const Rule> VerifyRules() { return kRules; }

}  // namespace nettrace
