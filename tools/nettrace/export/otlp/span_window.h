// Holds the activities that have started but not stopped, until they become spans.
#ifndef TOOLS_NETTRACE_EXPORT_OTLP_SPAN_WINDOW_H_
#define TOOLS_NETTRACE_EXPORT_OTLP_SPAN_WINDOW_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "nettrace/reader.h"
#include "tools/nettrace/export/otlp/log_encoder.h"

namespace tools::otlp {

// An activity that has started.
struct OpenSpan {
  SpanHead head;  // SpanHead::end equals the start until the activity stops
  nettrace::Guid activity = {};
  std::string provider;
  std::string resource;  // encoded
  std::string scope;     // encoded
  std::vector<EncodedAttribute> attributes;
};

// Holds at most kMaxOpen activities with at most kMaxBytes. If an added activity exceeds a limit,
// Add removes and returns the oldest activities. Not thread-safe.
class SpanWindow {
 public:
  static constexpr std::size_t kMaxOpen = 100'000;
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

  // Adds an activity. Returns the activities that it removed.
  std::vector<OpenSpan> Add(OpenSpan span);
  // Removes and returns the activity with this id and provider; the one that started last if there
  // are several. Returns nullopt if there is none.
  std::optional<OpenSpan> Take(const nettrace::Guid& activity, const std::string& provider);
  // Removes and returns the oldest activity; nullopt if none is open.
  std::optional<OpenSpan> TakeOldest();
  // Returns the activity with this id that started last; null if there is none.
  const OpenSpan* Find(const nettrace::Guid& activity) const;

 private:
  using Spans = std::list<OpenSpan>;

  static std::size_t BytesOf(const OpenSpan& span);
  OpenSpan Remove(Spans::iterator span);

  Spans by_age_;  // the oldest first
  absl::flat_hash_map<nettrace::Guid, std::deque<Spans::iterator>> by_id_;
  std::size_t bytes_ = 0;
};

// Returns the name of an activity. `event` is the name of the event that starts the activity. The
// result lacks "Start" or "Begin" at the end, and the separators before this word.
std::string SpanName(std::string_view event);

}  // namespace tools::otlp

#endif  // TOOLS_NETTRACE_EXPORT_OTLP_SPAN_WINDOW_H_
