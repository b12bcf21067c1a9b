// The events of the provider NetTrace.Collector, in which a trace says what it does not hold: how
// many events were lost, when a CPU was not recorded, which tracepoints were left out, and from
// when on nothing is known; and what came before in the files that it continues. This is the
// contract between the recorder and `nettrace repair`, which write them, and the programs that read
// them.
//
//   id  name               fields
//   1   EventsLost         Cpu, Tracepoint, Count, From, Until
//   2   CpuOffline         Cpu, Since, Until: it went at some time between these
//   3   CpuOnline          Cpu, NotRecordedSince, NotRecordedUntil, Reason: what it did between
//   these
//                          may not have been recorded; it is from the second time on, or not at all
//                          if there is a reason
//   4   TracepointLeftOut  Tracepoint, Reason
//   5   AccountUnknown     Since, Until
//   6   EventsDropped      Cpu, Count, From, Until, Reason: came between these and were not written
//   7   SectionBegan       Cpu, Section, Events, Lost: what the sections before have of that CPU.
//                          The first section, 0, has no such event, nor has a CPU without events
//   8   TracepointMet      Tracepoint, NotRecordedUntil: a pattern met it for the first time
//   9   TargetCame         NotRecordedSince, NotRecordedUntil, Reason: the cgroup that is recorded
//   came,
//                          for the first time or again; times and reason as of CpuOnline
//
// Cpu is a UInt32, the other numbers are UInt64. Times are nanoseconds since 1970 in UTC, UInt64:
// unlike the ticks of a file they keep their meaning in a merged one. 0 is a time that is not
// known. Text is UTF-16, which TraceEvent shows right beyond ASCII, too.
#ifndef TOOLS_COMMON_ACCOUNT_H_
#define TOOLS_COMMON_ACCOUNT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nettrace/reader.h"
#include "nettrace/schema.h"

namespace tools {

inline constexpr std::string_view kAccountProvider = "NetTrace.Collector";

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
  };
  static constexpr std::size_t kKinds = 9;
  Kind kind = Kind::kEventsLost;
  // Each kind has those of these that the list above names for it; the others are not written.
  std::uint32_t cpu = 0;
  std::uint64_t count = 0;  // Count, Events
  // "system:event"; of kEventsLost empty if the kernel does not say whose events they were.
  std::string tracepoint;
  std::string reason;
  std::uint64_t since = 0;  // From, NotRecordedSince, Since
  std::uint64_t until = 0;  // Until, NotRecordedUntil
  std::uint64_t section = 0;
  std::uint64_t lost = 0;

  friend bool operator==(const AccountEvent&, const AccountEvent&) = default;
};

// Code units of a tracepoint's name or a reason; the rest is cut off.
inline constexpr std::size_t kMaxAccountText = 1024;

nettrace::EventMetadata AccountMetadata(AccountEvent::Kind kind);
// The event's payload by that metadata.
absl::StatusOr<std::vector<std::byte>> AccountPayload(const AccountEvent& event);

// Whether the event is of the account. One of a service that has taken the provider's name is not:
// it has happened on a processor, and the account's have not.
bool IsAccount(const nettrace::Event& event);
// nullopt if it is none of these events, or does not have their fields: a file may hold anything.
std::optional<AccountEvent> ParseAccount(const nettrace::Event& event);

}  // namespace tools

#endif  // TOOLS_COMMON_ACCOUNT_H_
