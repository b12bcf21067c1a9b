// Maps the activity ids of events to the ids of traces and spans in OpenTelemetry.
#ifndef TOOLS_NETTRACE_EXPORT_OTLP_TRACE_IDS_H_
#define TOOLS_NETTRACE_EXPORT_OTLP_TRACE_IDS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "nettrace/reader.h"

namespace tools::otlp {

// Returns the FNV-1a hash of the bytes. `hash` is the hash of the bytes before them; the default
// means that there are none.
std::uint64_t Fnv1a(std::span<const std::byte> bytes, std::uint64_t hash = 0xCBF29CE484222325);

struct SpanIds {
  std::optional<std::array<std::byte, 16>> trace_id;
  std::optional<std::uint64_t> span_id;
};

// Finds the ids of events. Labels with W3C ids have precedence. Otherwise, the trace is the root of
// the event's activity: the activity at which the chain of related activities ends. The id of the
// root is the trace id, with the bytes in the order of its text. The span id is a hash of the
// event's activity id.
class TraceIds {
 public:
  // Maximum number of activities whose root is known. The oldest ones are dropped. An activity
  // whose root is not known is treated as a root.
  static constexpr std::size_t kMaxActivities = 65536;

  // Returns the ids of an event with these labels. Must be called for the events in order of time.
  // Ids of zero are not valid, and left out.
  SpanIds IdsOf(const nettrace::Labels& labels);
  // Returns the ids that an event of this activity has, unless its labels have W3C ids.
  SpanIds IdsOfActivity(const nettrace::Guid& activity) const;

 private:
  nettrace::Guid RootOf(const nettrace::Guid& activity) const;

  absl::flat_hash_map<nettrace::Guid, nettrace::Guid> roots_;
  std::deque<nettrace::Guid> order_;  // keys of roots_, the oldest first
};

}  // namespace tools::otlp

#endif  // TOOLS_NETTRACE_EXPORT_OTLP_TRACE_IDS_H_
