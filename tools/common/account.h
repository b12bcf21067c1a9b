// The events of the provider NetTrace.Collector, in which a trace says what it does not hold: how
// many events were lost, when a CPU was not recorded, which tracepoints were left out, and from
// when on nothing is known. This is the contract between the recorder and `nettrace repair`, which
// write them, and the programs that read them.
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
//
// Cpu is a UInt32, Count a UInt64. Times are nanoseconds since 1970 in UTC, UInt64: unlike the
// ticks of a file they keep their meaning in a merged one. 0 is a time that is not known. Text is
// UTF-16, which TraceEvent shows right beyond ASCII, too.
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
  };
  Kind kind = Kind::kEventsLost;
  std::uint32_t cpu = 0;    // kEventsLost, kCpuOffline, kCpuOnline
  std::uint64_t count = 0;  // kEventsLost
  // kEventsLost, where it is empty if the kernel does not say whose events they were, and
  // kTracepointLeftOut: "system:event".
  std::string tracepoint;
  std::string reason;       // kTracepointLeftOut, kCpuOnline
  std::uint64_t since = 0;  // all but kTracepointLeftOut: From, NotRecordedSince, Since
  std::uint64_t until = 0;

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
