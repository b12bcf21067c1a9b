// Declares activities, which connect the events of one piece of work, and ActivityScope, which
// writes an event when an activity starts and when it stops. Also declares W3C trace contexts.
// Needs C++17.
#ifndef EVENTHEADER_ACTIVITY_H_
#define EVENTHEADER_ACTIVITY_H_

#include "eventheader/internal/need_cxx17.h"

#ifdef EVENTHEADER_INTERNAL_CXX17

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "eventheader/wire.h"

namespace eh {

// The 16 bytes that identify an activity, in the order in which they are written. Readers usually
// treat an id of 16 zeros as no activity.
using ActivityId = std::array<std::byte, 16>;

// Returns a new id. Makes a system call only on the first call of the process and of each forked
// child. Thread-safe; not for signal handlers.
//
// Ids do not repeat in a process: they contain a counter. Between processes, on one host or on
// several, they differ by 52 random bits, which a forked child draws again. Among a million
// processes, the probability that two have the same bits is about 1 in 9,000.
//
// The ids have the form of .NET's activity paths, with the counter as the path. PerfView and
// TraceEvent match start and stop events only if ids have this form. Ids do not contain the process
// id, because the pid in a container differs from the pid that a recording shows.
ActivityId NewActivityId() noexcept;

// The activity that an event belongs to. `related` points to the id of the activity that caused
// this activity; null: none. It is usually given only with the first event of an activity.
struct Activity {
  ActivityId id;
  const ActivityId* related = nullptr;
};

// Returns the id of this thread's current activity, the activity that the thread works for;
// nullopt if there is none. The result refers to a variable of the thread, which ActivityScope and
// SetCurrentActivity() change.
const std::optional<ActivityId>& CurrentActivity() noexcept;
// Replaces this thread's current activity and returns the previous one; nullopt: no activity. For
// runtimes that move work between threads.
std::optional<ActivityId> SetCurrentActivity(const std::optional<ActivityId>& id) noexcept;

// Makes a new activity the current activity of this thread. The destructor restores the previous
// activity. `kStart` and `kStop` are static events with Opcode::kActivityStart and kActivityStop in
// their traits. The constructor writes the start event, whose related activity is the thread's
// previous activity, if there is one. Stop() writes the stop event. The constructor takes
// the values of the fields of the start event, and Stop() takes those of the stop event.
//
//     eh::ActivityScope<request_start, request_stop> scope(path);
//     step.Write(scope.activity(), 17);
//     scope.Stop(status, bytes);
//
// If Stop() was not called, the destructor writes the stop event. Fields of the stop event then
// have the default values of their types, such as 0 or an empty text.
// A scope must be destroyed by the thread that created it, in reverse order of creation.
template <const auto& kStart, const auto& kStop>
class ActivityScope {
  static_assert(std::remove_reference_t<decltype(kStart)>::kOpcode == Opcode::kActivityStart,
                "the first event of an ActivityScope needs .opcode = Opcode::kActivityStart in its "
                "traits");
  static_assert(std::remove_reference_t<decltype(kStop)>::kOpcode == Opcode::kActivityStop,
                "the second event of an ActivityScope needs .opcode = Opcode::kActivityStop in its "
                "traits");

 public:
  template <typename... Values>
  explicit ActivityScope(const Values&... values) noexcept
      : id_(NewActivityId()), parent_(SetCurrentActivity(id_)) {
    kStart.Write(Activity{id_, parent_ ? &*parent_ : nullptr}, values...);
  }
  ~ActivityScope() {
    if (!stopped_) kStop.WriteDefaults(activity());
    SetCurrentActivity(parent_);
  }
  ActivityScope(const ActivityScope&) = delete;
  ActivityScope& operator=(const ActivityScope&) = delete;

  // Writes the stop event. Later calls have no effect. The activity remains the thread's current
  // activity until the scope is destroyed.
  template <typename... Values>
  void Stop(const Values&... values) noexcept {
    if (stopped_) return;
    stopped_ = true;
    kStop.Write(activity(), values...);
  }

  const ActivityId& id() const noexcept { return id_; }
  Activity activity() const noexcept { return {id_}; }

 private:
  ActivityId id_;
  std::optional<ActivityId> parent_;
  bool stopped_ = false;
};

// Text of a known length, for a field of type std::string_view. A field of type std::array<char, N>
// would be an array of characters, which other decoders show as N texts.
template <std::size_t kSize>
struct IdText : std::array<char, kSize> {
  // NOLINTNEXTLINE(google-explicit-constructor): callers pass it as a std::string_view
  operator std::string_view() const noexcept { return {this->data(), kSize}; }
};

// W3C Trace Context, https://www.w3.org/TR/trace-context/ (level 1, version 00).
struct TraceContext {
  static constexpr std::size_t kTextSize = 55;
  static constexpr std::uint8_t kSampled = 1;  // the only flag of version 00

  // May be used as an ActivityId, but PerfView does not match start and stop events by such an id.
  std::array<std::byte, 16> trace_id{};
  std::array<std::byte, 8> parent_id{};
  std::uint8_t flags = 0;

  // Parses a `traceparent` header. Returns nullopt for a header that must be ignored according to
  // W3C Trace Context.
  static std::optional<TraceContext> Parse(std::string_view traceparent) noexcept;
  // Returns a `traceparent` header of version 00, without a terminator. Flags that version 00 does
  // not define are written as zero, as W3C Trace Context demands.
  std::array<char, kTextSize> Format() const noexcept;
  // Returns a child context: the same trace and flags, a new parent_id.
  TraceContext NewChild() const noexcept;
  // Returns the root context of a new, sampled trace.
  static TraceContext New() noexcept;

  // Return trace_id and parent_id in hexadecimal, for fields named "trace_id" and "span_id". The
  // collector also writes the values of fields with these names as the labels TraceId and SpanId of
  // the NetTrace format.
  IdText<32> TraceIdText() const noexcept;
  IdText<16> SpanIdText() const noexcept;
};

}  // namespace eh

#endif  // EVENTHEADER_INTERNAL_CXX17
#endif  // EVENTHEADER_ACTIVITY_H_
