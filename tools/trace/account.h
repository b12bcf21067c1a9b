// The account of a recording: events of the provider NetTrace.Collector that describe what the
// trace does not contain, such as lost events and times at which a CPU was not recorded. The
// following table lists them. The collector and `nettrace repair` write them, and the programs that
// show traces read them.
//
//   id  name               fields
//   1   EventsLost         Cpu, Tracepoint, Count, From, Until: the CPU lost Count events of the
//                          tracepoint after From and up to Until
//   2   CpuOffline         Cpu, Since, Until: the CPU went offline between these two times
//   3   CpuOnline          Cpu, NotRecordedSince, NotRecordedUntil, Reason: events of the CPU
//                          between the two times may not have been recorded; if Reason is not
//                          empty, later events of the CPU are not recorded either
//   4   TracepointLeftOut  Tracepoint, Reason: no events of the tracepoint are recorded
//   5   AccountUnknown     Since, Until: losses are not known from Since to at least Until
//   6   EventsDropped      Cpu, Count, From, Until, Reason: Count events of the CPU between the two
//                          times were received and not written, for Reason
//   7   SectionBegan       Cpu, Section, Events, Lost: the numbers of events and of lost events of
//                          the CPU in all sections before Section. There is no such event for
//                          section 0, the first one, and for a CPU without events and losses.
//                          All threads with rings in user space share one event
//   8   TracepointMet      Tracepoint, NotRecordedUntil: a pattern matched the tracepoint for the
//                          first time; its events before NotRecordedUntil may not have been
//                          recorded
//   9   TargetCame         NotRecordedSince, NotRecordedUntil, Reason: the recorded cgroup
//                          appeared, for the first time or again; its events between the two
//                          times may not have been recorded; if Reason is not empty, its later
//                          events are not recorded either
//   11  SamplesThrottled   Cpu, Count, From, Until: the kernel stopped the samples of CPU time
//                          Count times on this CPU, each time until the CPU's next timer tick; it
//                          first did so at From, and last at Until
//   12  StacksSkipped      Count, From, Until: the stacks of Count events with times from From to
//                          Until are cut, because the collector had no time to unwind them
//   13  ServiceUnknown     Tracepoint, Since, Until, Reason: events of the service between the two
//                          times may be lost, and their number is not known, for Reason
//
// Id 10 is that of RingPositions (ring_positions.h), which is not a part of the account. Cpu is a
// UInt32; all other numbers are UInt64. Times are nanoseconds since 1970 in UTC, and 0 means
// unknown. Unlike timestamps in ticks, these times keep their meaning when files are merged. Text
// is UTF-16, because TraceEvent then shows characters beyond ASCII correctly.
//
// Cpu is 4294967295 for a thread whose events came through a ring in user space. If the thread lost
// events, Tracepoint is "ring:PID/TID", because the tracepoint of a lost event is not known. In
// ServiceUnknown, Tracepoint is "ring:PID", or empty if the event stands for several services.
#ifndef TOOLS_TRACE_ACCOUNT_H_
#define TOOLS_TRACE_ACCOUNT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nettrace/reader.h"
#include "nettrace/schema.h"

namespace trace {

inline constexpr std::string_view kAccountProvider = "NetTrace.Collector";

// The value of Cpu for a thread whose events came through a ring in user space.
inline constexpr std::uint32_t kRingCpu = 0xFFFFFFFF;

struct AccountEvent {
  enum class Kind : std::uint8_t {  // the values are the EventIds
    kEventsLost = 1,
    kCpuOffline = 2,
    kCpuOnline = 3,
    kTracepointLeftOut = 4,
    kAccountUnknown = 5,
    kEventsDropped = 6,
    kSectionBegan = 7,
    kTracepointMet = 8,
    kTargetCame = 9,
    kSamplesThrottled = 11,
    kStacksSkipped = 12,
    kServiceUnknown = 13,
  };
  static constexpr std::size_t kMaxId = 13;
  Kind kind = Kind::kEventsLost;
  // Values of the fields. The list at the beginning of this file names the fields of each kind; the
  // other members are not written.
  std::uint32_t cpu = 0;
  std::uint64_t count = 0;  // field Count or Events
  // Name in the form "system:event". For kEventsLost, it may also be "ring:PID/TID", or empty if
  // the kernel does not report the tracepoint. For kServiceUnknown, it is "ring:PID" or empty.
  std::string tracepoint = {};
  std::string reason = {};
  std::uint64_t since = 0;  // field From, NotRecordedSince or Since
  std::uint64_t until = 0;  // field Until or NotRecordedUntil
  std::uint64_t section = 0;
  std::uint64_t lost = 0;

  friend bool operator==(const AccountEvent&, const AccountEvent&) = default;
};

// Maximum UTF-16 code units of a tracepoint name or a reason. Longer text is cut off.
inline constexpr std::size_t kMaxAccountText = 1024;

nettrace::EventMetadata AccountMetadata(AccountEvent::Kind kind);
// Encodes the event's payload as AccountMetadata describes it.
absl::StatusOr<std::vector<std::byte>> AccountPayload(const AccountEvent& event);

// Returns whether the event belongs to the account: it has the provider kAccountProvider, and no
// processor. Events of other programs that use the name of the provider usually have a processor.
bool IsAccount(const nettrace::Event& event);
// Returns the values of an account event. Returns nullopt if the event is not an account event, if
// its name is unknown, if its first fields are not those of the kind, or if a field cannot be read.
// Values of fields after those of the kind are ignored. Files are untrusted.
std::optional<AccountEvent> ParseAccount(const nettrace::Event& event);

}  // namespace trace

#endif  // TOOLS_TRACE_ACCOUNT_H_
