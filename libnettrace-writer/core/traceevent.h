// What TraceEvent, the library of PerfView and dotnet-trace, demands of a stream beyond the
// specification. The writer refuses what breaks these rules (WriterOptions::traceevent_compatible)
// but kMaxArrayCount and IsProcessor, whose values are shown cut and cost no other event; the
// verifier reports all of it as hazards, and the merger avoids what it can.
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
// see event_ids.h. 65535 loses the name, and larger ones are taken modulo 65536.
inline constexpr std::uint32_t kMaxEventId = 65534;
constexpr bool IsEventId(std::uint32_t id) { return id <= kMaxEventId; }
// TraceEvent knows the events of this provider by their EventIds, whatever their rows say.
inline constexpr std::string_view kUniversalSystem = "Universal.System";
// TraceEvent knows the events of this one by their names, and cannot open a file in which two
// EventIds have one name.
inline constexpr std::string_view kUniversalEvents = "Universal.Events";
// The key under which a metadata row has the id that its event's author gave it, where TraceEvent's
// demand made another EventId necessary.
inline constexpr std::string_view kOwnIdKey = "EventHeader.Id";

// The GUID by which TraceEvent knows the row's provider: the row's, or else the one that .NET makes
// of the provider's name, whatever its case.
Guid ProviderGuid(const EventMetadata& row);

// An event without an opcode whose name ends in Start or Stop, in any case, is given the opcode 1
// or 2 and shown without that ending.
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

// A DateTime is taken for an 8-byte FILETIME; V6 has no Decimal.
constexpr bool IsMisread(TypeCode code) {
  return code == TypeCode::kDecimal || code == TypeCode::kDateTime;
}

// The following three ask about `array` itself, not about its elements' own types.

// Arrays of arrays are misread, but for arrays of text.
inline bool IsMisreadArrayOfArrays(const Type& array) {
  const Type& element = array.element.front();
  if (!IsArray(element)) return false;
  return !IsPlainArray(array) || !IsText(element);
}
inline bool IsMisreadArrayOfObjects(const Type& array) {
  const Type& element = array.element.front();
  return element.code == TypeCode::kObject && element.fields.empty();
}
// TraceEvent throws at the metadata row of a fixed-length array of more bytes.
inline constexpr std::uint64_t kMaxFixedArrayBytes = 65514;
inline bool IsMisreadFixedArray(const Type& array) {
  if (array.code != TypeCode::kFixedLengthArray) return false;
  const std::uint64_t element_size = FixedSize(array.element.front()).value_or(0);
  return array.count == 0 || array.count * element_size > kMaxFixedArrayBytes;
}

// True if TraceEvent throws at a metadata row of these fields: it shows nothing of the file, though
// no event may ever have that row.
bool IsRefused(const std::vector<Field>& fields);

// TraceLog puts an event, with its header, on a page of 64 KiB: a larger one makes all later events
// unreadable.
inline constexpr std::size_t kMaxPayloadSize = 65436;
// TraceLog ends 10 ticks after the last event, as a signed number; later events are not shown.
inline constexpr std::uint64_t kMaxEventTimestamp = kMaxTimestamp - 10;
// Larger ones are misread.
inline constexpr std::size_t kMaxArrayCount = 32767;
inline constexpr std::size_t kMaxStackFrames = 8190;

// TraceEvent shows the low byte of a processor number.
constexpr bool IsProcessor(std::uint32_t number) { return number <= 255 || number == kNoProcessor; }

// TraceEvent takes the capture thread from a block's first event and from those with IsSorted.
constexpr bool MayChangeCaptureThread(bool is_sorted) { return is_sorted; }

// Instead of the thread that a RemoveThread row names, TraceEvent removes the one whose index
// equals the named thread's OS thread id. Nothing is removed if no index can be an OS thread id.
inline constexpr std::uint64_t kMaxOsThreadId = 4'194'304;  // of Linux
inline constexpr std::uint64_t kMinRemovableThreadIndex = kMaxOsThreadId + 1;

}  // namespace nettrace::internal::traceevent

#endif  // LIBNETTRACE_WRITER_CORE_TRACEEVENT_H_
