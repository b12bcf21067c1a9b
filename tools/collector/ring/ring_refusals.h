// The connections of services that the collector has refused or ended, with the reasons, so that
// users can find out why a service is not recorded.
#ifndef TOOLS_COLLECTOR_RING_RING_REFUSALS_H_
#define TOOLS_COLLECTOR_RING_RING_REFUSALS_H_

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace collector {

enum class RingRefusal : std::uint8_t {
  kTooManyServices,  // the limit of all connections
  kTooManyOfUser,    // the limit of the user's connections
  kTooManyBytes,     // the limit of the memory of the user's services, or of all copies of regions
  kRegionTooLarge,   // the region is larger than the collector accepts
  kBadRegion,        // not a valid, sealed region
  kOldVersion,       // no common version of the protocol
  kNoHello,          // no Hello within the time for it
  kBadMessage,       // a malformed message, or one that is wrong at this point
  kTooManyMessages,  // more messages within a second than permitted
  kReadsNothing,     // the service does not read its messages
  kNoDescriptor,     // the collector has no free descriptor
  kSystemError,      // a system call of the collector failed
};

inline constexpr std::size_t kRingRefusalKinds =
    static_cast<std::size_t>(RingRefusal::kSystemError) + 1;

// The texts that explain a RingRefusal to users and programs.
struct RingRefusalText {
  std::string_view name;  // camelCase, for programs
  std::string_view message;
  std::string_view remedy;
};
const RingRefusalText& TextOf(RingRefusal reason);

// Connections of one user that were refused for the same reason.
struct RingRefusalEntry {
  uid_t uid = 0;
  RingRefusal reason = RingRefusal::kSystemError;
  pid_t pid = 0;            // process of the last connection; 0 if it is not known
  std::uint64_t count = 0;  // number of connections
  absl::Time last;          // time of the last connection
  std::string detail;       // details of the last connection; "" if there are none
};

// Counts refused connections by user and reason. Keeps the latest kMaxEntries entries, so a user
// with many user ids cannot fill the memory. Not thread-safe.
class RingRefusals {
 public:
  static constexpr std::size_t kMaxEntries = 128;

  void Add(uid_t uid, pid_t pid, RingRefusal reason, std::string detail = "");
  // Number of all refused connections, including those whose entries were removed.
  std::uint64_t count() const { return count_; }
  // Number of all refused connections for each reason, by RingRefusal.
  const std::array<std::uint64_t, kRingRefusalKinds>& by_reason() const { return by_reason_; }
  // Returns the entries, the latest first.
  std::vector<RingRefusalEntry> Latest() const;

 private:
  std::vector<RingRefusalEntry> entries_;  // in the order of the last connections
  std::uint64_t count_ = 0;
  std::array<std::uint64_t, kRingRefusalKinds> by_reason_{};
};

// Selects the refused connections that the collector logs when they occur. The first refusal of a
// user for a reason is logged. A later refusal of the same user for the same reason is logged only
// if the user had no refusal for this reason within kSpell before it.
class RingRefusalNews {
 public:
  static constexpr absl::Duration kSpell = absl::Minutes(1);

  // Returns the messages about connections that were refused since the last call, at most one for
  // each user and reason.
  std::vector<std::string> Take(const RingRefusals& refusals);

 private:
  std::uint64_t count_ = 0;  // RingRefusals::count at the last call
  std::map<std::pair<uid_t, RingRefusal>, absl::Time> last_;  // times of the last connections
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_RING_RING_REFUSALS_H_
