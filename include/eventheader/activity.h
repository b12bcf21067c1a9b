// Activities: what events of one piece of work have in common; scopes that write when one starts
// and stops; W3C trace contexts. C++17.
#ifndef EVENTHEADER_ACTIVITY_H_
#define EVENTHEADER_ACTIVITY_H_

#include "eventheader/internal/need_cxx17.h"

#ifdef EVENTHEADER_INTERNAL_CXX17

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace eh {

// 128 bits that name an activity, in the order in which they are written. All zero: none.
using ActivityId = std::array<std::byte, 16>;

// Returns a new id, different from all others of this process and, but for chance, from those of
// others. No system call but for the process's first. Thread-safe; not for signal handlers.
ActivityId NewActivityId() noexcept;

// The activity that an event belongs to. The related id, that of the activity it comes from, is
// usually given with the first event of an activity only.
struct Activity {
  ActivityId id;
  const ActivityId* related = nullptr;
};

// The activity that this thread works for, or none. Set by ActivityScope.
const std::optional<ActivityId>& CurrentActivity() noexcept;
// Replaces it and returns what it was. For runtimes that move work between threads.
std::optional<ActivityId> SetCurrentActivity(const std::optional<ActivityId>& id) noexcept;

// From construction to destruction this thread works for a new activity, whose parent is what it
// worked for before. `kStart` and `kStop` are static events (with Opcode::kActivityStart and
// kActivityStop in their traits); the start event has the fields given, the stop event has none.
//
//     eh::ActivityScope<request_start, request_stop> scope(path);
//     step.Write(scope.activity(), 17);
//
// The thread that made it destroys it, the last made first.
template <const auto& kStart, const auto& kStop>
class ActivityScope {
 public:
  template <typename... Values>
  explicit ActivityScope(const Values&... values) noexcept
      : id_(NewActivityId()), parent_(SetCurrentActivity(id_)) {
    kStart.Write(Activity{id_, parent_ ? &*parent_ : nullptr}, values...);
  }
  ~ActivityScope() {
    kStop.Write(activity());
    SetCurrentActivity(parent_);
  }
  ActivityScope(const ActivityScope&) = delete;
  ActivityScope& operator=(const ActivityScope&) = delete;

  const ActivityId& id() const noexcept { return id_; }
  Activity activity() const noexcept { return {id_}; }

 private:
  ActivityId id_;
  std::optional<ActivityId> parent_;
};

// Text of a known length, for a field of type std::string_view. (Of type std::array<char, N> it
// would be an array of characters, which other decoders show as N texts.)
template <std::size_t kSize>
struct IdText : std::array<char, kSize> {
  // NOLINTNEXTLINE(google-explicit-constructor): it is a text
  operator std::string_view() const noexcept { return {this->data(), kSize}; }
};

// W3C Trace Context, https://www.w3.org/TR/trace-context/ (level 1, version 00).
struct TraceContext {
  static constexpr std::size_t kTextSize = 55;
  static constexpr std::uint8_t kSampled = 1;  // the one flag of version 00

  std::array<std::byte, 16> trace_id{};  // can be an ActivityId
  std::array<std::byte, 8> parent_id{};
  std::uint8_t flags = 0;

  // Reads a `traceparent` header; nullopt where the recommendation says to ignore it.
  static std::optional<TraceContext> Parse(std::string_view traceparent) noexcept;
  // Returns a `traceparent` header of version 00, without terminator. Flags that version 00 does
  // not have are zero, as the recommendation says.
  std::array<char, kTextSize> Format() const noexcept;
  // Returns a child: same trace and flags, a new parent_id.
  TraceContext NewChild() const noexcept;
  // Returns the root of a new trace, sampled.
  static TraceContext New() noexcept;

  // The ids in hexadecimal, for fields named "trace_id" and "span_id", which collectors take for
  // labels.
  IdText<32> TraceIdText() const noexcept;
  IdText<16> SpanIdText() const noexcept;
};

}  // namespace eh

#endif  // EVENTHEADER_INTERNAL_CXX17
#endif  // EVENTHEADER_ACTIVITY_H_
