// Activities: what events of one piece of work have in common.
#ifndef EVENTHEADER_ACTIVITY_H_
#define EVENTHEADER_ACTIVITY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace eh {

// 128 bits that name an activity, in the order in which they are written down. All zero: none.
using ActivityId = std::array<std::byte, 16>;

// A new id, different from all others of this process and, but for chance, from all others. No
// system call but for the process's first. Thread-safe; not for signal handlers.
ActivityId NewActivityId() noexcept;

// What an event belongs to. The related id, that of the activity it comes from, is usually given
// with the first event of an activity only.
struct Activity {
  ActivityId id;
  const ActivityId* related = nullptr;
};

// The activity that this thread works for, or none. Set by ActivityScope (activity_scope.h).
const std::optional<ActivityId>& CurrentActivity() noexcept;
// Replaces it and returns what it was. For runtimes that move work between threads.
std::optional<ActivityId> SetCurrentActivity(const std::optional<ActivityId>& id) noexcept;

// W3C Trace Context, https://www.w3.org/TR/trace-context/ (level 1, version 00).
struct TraceContext {
  static constexpr std::size_t kTextSize = 55;
  static constexpr std::uint8_t kSampled = 1;  // the one flag of version 00

  std::array<std::byte, 16> trace_id{};  // can be an ActivityId
  std::array<std::byte, 8> parent_id{};
  std::uint8_t flags = 0;

  // From a `traceparent` header; nullopt where the recommendation says to ignore it.
  static std::optional<TraceContext> Parse(std::string_view traceparent) noexcept;
  // As a `traceparent` header of version 00, without terminator, and without flags it has not got:
  // the recommendation says to set them to zero.
  std::array<char, kTextSize> Format() const noexcept;
  // A child's: same trace and flags, an id of its own.
  TraceContext NewChild() const noexcept;
  // A trace of its own, sampled.
  static TraceContext New() noexcept;

  // As text for fields named "trace_id" and "span_id", which collectors take for labels.
  std::array<char, 32> TraceIdText() const noexcept;
  std::array<char, 16> SpanIdText() const noexcept;
};

}  // namespace eh

#endif  // EVENTHEADER_ACTIVITY_H_
