// Requirements of TraceEvent, the library of PerfView and dotnet-trace, beyond the specification.
// With WriterOptions::traceevent_compatible, the writer refuses rows and events that violate a
// requirement, except for five requirements. The writer does not check kMaxArrayCount,
// IsMisreadBoolean and IsProcessor, because TraceEvent misreads only the value that violates one of
// these. The writer does not check IsMisreadKnownEvent and kMinYear, because no program violates
// these by accident. The verifier reports all violations as hazards, and the merger avoids those
// that it can. TraceLog is the class of TraceEvent that PerfView uses to open files.
#ifndef LIBNETTRACE_WRITER_CORE_TRACEEVENT_H_
#define LIBNETTRACE_WRITER_CORE_TRACEEVENT_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "libnettrace-writer/core/types.h"
#include "nettrace/format.h"
#include "nettrace/schema.h"

namespace nettrace::internal::traceevent {

// TraceEvent finds an event's name, fields and opcode by provider and EventId, not by metadata id:
// see event_ids.h. It loses the name of an event with EventId 65535, and takes larger EventIds
// modulo 65536.
inline constexpr std::uint32_t kMaxEventId = 65534;
constexpr bool IsEventId(std::uint32_t id) { return id <= kMaxEventId; }
// TraceEvent recognizes the events of this provider by their EventIds, and ignores their metadata
// rows.
inline constexpr std::string_view kUniversalSystem = "Universal.System";
// TraceEvent recognizes the events of this provider by their names, and cannot open a file in which
// two EventIds of this provider have the same name.
inline constexpr std::string_view kUniversalEvents = "Universal.Events";
// Key in a metadata row for the id that the event's author chose, if TraceEvent's requirements made
// another EventId necessary.
inline constexpr std::string_view kOwnIdKey = "EventHeader.Id";

// Returns whether TraceLog treats the row's events as events that it knows, and therefore reads
// them with another name or other fields. TraceLog knows the events of kUniversalSystem by EventId,
// and the events "cpu" and "cswitch" of kUniversalEvents by name. TraceLog cannot open some of the
// files that have a row for which the result is true.
bool IsMisreadKnownEvent(const EventMetadata& row);

// Returns the fields of the row's payloads. These are the fields of the row, with one exception:
// dotnet-trace collect-linux declares text in events of kUniversalSystem as one code unit, but
// writes an array of them. For these rows, returns the fields that TraceLog expects.
const std::vector<Field>& FieldsOfPayload(const EventMetadata& row);

// Returns the GUID by which TraceEvent identifies the row's provider. This is the GUID in the row,
// or else the GUID that .NET derives from the provider's name regardless of case.
Guid ProviderGuid(const EventMetadata& row);

// Returns whether the name ends in Start or Stop, in any case. If such an event has no opcode,
// TraceEvent gives it opcode 1 or 2, and shows its name without the ending.
constexpr bool TakesOpcodeFrom(std::string_view name) {
  const auto ends_with = [name](std::string_view ending) {
    if (name.size() < ending.size()) return false;
    const std::string_view end = name.substr(name.size() - ending.size());
    for (std::size_t i = 0; i < ending.size(); ++i) {
      const char c = end[i];
      if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c) != ending[i]) return false;
    }
    return true;
  };
  return ends_with("start") || ends_with("stop");
}

// Returns whether TraceEvent misreads the type: it reads a DateTime as an 8-byte FILETIME, and V6
// has no Decimal.
constexpr bool IsMisread(TypeCode code) {
  return code == TypeCode::kDecimal || code == TypeCode::kDateTime;
}

// Returns whether TraceEvent shows a true Boolean32 as false: it shows only the low byte.
constexpr bool IsMisreadBoolean(std::uint32_t value) { return value != 0 && (value & 0xFF) == 0; }

// The earliest year of a Trace block's sync time with which TraceLog can open the file.
inline constexpr int kMinYear = 1601;

// The next three functions check `array` and the kind of its elements, but not the types within the
// elements.

// Returns whether TraceEvent misreads `array` because its elements are arrays. The result is
// false if the elements are text, unless `array` is a RelLoc or DataLoc.
inline bool IsMisreadArrayOfArrays(const Type& array) {
  const Type& element = array.element.front();
  if (!IsArray(element)) return false;
  return !IsPlainArray(array) || !IsText(element);
}
// Returns whether TraceEvent misreads `array` because its elements are objects without fields.
inline bool IsMisreadArrayOfObjects(const Type& array) {
  const Type& element = array.element.front();
  return element.code == TypeCode::kObject && element.fields.empty();
}
// Maximum bytes of a fixed-length array. TraceEvent throws at a metadata row with a larger array.
inline constexpr std::uint64_t kMaxFixedArrayBytes = 65514;
// Returns whether TraceEvent misreads `array` because it is a fixed-length array without elements,
// or with more than kMaxFixedArrayBytes.
inline bool IsMisreadFixedArray(const Type& array) {
  if (array.code != TypeCode::kFixedLengthArray) return false;
  const std::uint64_t element_size = FixedSize(array.element.front()).value_or(0);
  return array.count == 0 || array.count * element_size > kMaxFixedArrayBytes;
}

// Returns whether TraceEvent throws at a metadata row with these fields. It then shows nothing of
// the file, even if no event refers to the row.
bool IsRefused(const std::vector<Field>& fields);

// Maximum bytes of a payload. TraceLog stores an event with its header on a page of 64 KiB; a
// larger event makes all later events unreadable.
inline constexpr std::size_t kMaxPayloadSize = 65436;
// Maximum timestamp of an event that TraceEvent shows. TraceLog computes the end of a trace as the
// last timestamp plus 10 ticks, in a signed number that must not overflow.
inline constexpr std::uint64_t kMaxEventTimestamp = kMaxTimestamp - 10;
// Maximum elements of an array. TraceEvent misreads larger arrays.
inline constexpr std::size_t kMaxArrayCount = 32767;
// Maximum frames of a stack. TraceEvent truncates longer stacks.
inline constexpr std::size_t kMaxStackFrames = 8190;

// Returns whether TraceEvent shows this processor number correctly. It shows only the low byte.
// kNoProcessor is allowed, because it means that the processor is unknown.
constexpr bool IsProcessor(std::uint32_t number) { return number <= 255 || number == kNoProcessor; }

// Returns whether an event may have a capture thread that differs from that of the event before it
// in its block. TraceEvent reads the capture thread only of the first event of a block, and of
// events with IsSorted.
constexpr bool MayChangeCaptureThread(bool is_sorted) { return is_sorted; }

// When a RemoveThread row names a thread, TraceEvent removes the thread whose index equals the OS
// thread id of the named thread. If all indices are above all OS thread ids, TraceEvent removes
// nothing.
inline constexpr std::uint64_t kMaxOsThreadId = 4'194'304;  // maximum on Linux
inline constexpr std::uint64_t kMinRemovableThreadIndex = kMaxOsThreadId + 1;

}  // namespace nettrace::internal::traceevent

#endif  // LIBNETTRACE_WRITER_CORE_TRACEEVENT_H_
