#include "tools/collector/ring/ring_refusals.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace collector {
namespace {

// The texts of the reasons, in the order of RingRefusal.
constexpr std::array kTexts = {
    RingRefusalText{
        "tooManyServices", "too many services are connected",
        "end services, or raise services in [daemon.rings] of the settings of nettraced"},
    RingRefusalText{"tooManyOfUser", "too many services of this user are connected",
                    "end services, or raise services_of_user in [daemon.rings] of the settings of "
                    "nettraced"},
    RingRefusalText{"tooManyBytes", "the events of services take too much memory",
                    "end services, or raise bytes_of_user or lower bytes_of_service in "
                    "[daemon.rings] of the settings of nettraced"},
    RingRefusalText{"regionTooLarge", "the service's region is too large",
                    "set a smaller EVENTHEADER_RING_SIZE for the service"},
    RingRefusalText{"badRegion", "the service sent no valid region",
                    "use a libeventheader of the version of the collector"},
    RingRefusalText{"oldVersion", "the service and the collector have no common version",
                    "build the service with a newer libeventheader"},
    RingRefusalText{"noHello", "the process connected, but did not send its first message in time",
                    "check the process: it may be stopped, or may not be a service"},
    RingRefusalText{"badMessage", "the service sent a malformed message",
                    "use a libeventheader of the version of the collector"},
    RingRefusalText{"tooManyMessages", "the service sent too many messages within a second",
                    "check the service: it may register and unregister providers in a loop"},
    RingRefusalText{"readsNothing", "the service does not read its messages",
                    "check the service: it may be stopped; it connects again when it continues"},
    RingRefusalText{"noDescriptor", "the collector has no free descriptor",
                    "raise the collector's limit of open files (LimitNOFILE= of its unit)"},
    RingRefusalText{"systemError", "a system call of the collector failed",
                    "solve the cause of this error; the service connects again after some seconds"},
};
static_assert(kTexts.size() == kRingRefusalKinds);

}  // namespace

const RingRefusalText& TextOf(RingRefusal reason) {
  return kTexts[static_cast<std::size_t>(reason)];
}

void RingRefusals::Add(uid_t uid, pid_t pid, RingRefusal reason, std::string detail) {
  ++count_;
  ++by_reason_[static_cast<std::size_t>(reason)];
  const auto found = std::find_if(
      entries_.begin(), entries_.end(),
      [&](const RingRefusalEntry& entry) { return entry.uid == uid && entry.reason == reason; });
  RingRefusalEntry entry;
  if (found != entries_.end()) {
    entry.count = found->count;
    entries_.erase(found);
  } else if (entries_.size() == kMaxEntries) {
    entries_.erase(entries_.begin());
  }
  entry.uid = uid;
  entry.reason = reason;
  entry.pid = pid;
  ++entry.count;
  entry.last = absl::Now();
  entry.detail = std::move(detail);
  entries_.push_back(std::move(entry));
}

std::vector<RingRefusalEntry> RingRefusals::Latest() const {
  return {entries_.rbegin(), entries_.rend()};
}

std::vector<std::string> RingRefusalNews::Take(const RingRefusals& refusals) {
  std::vector<std::string> messages;
  if (std::exchange(count_, refusals.count()) == refusals.count()) return messages;
  const auto before = std::exchange(last_, {});
  for (const RingRefusalEntry& entry : refusals.Latest()) {
    const auto key = std::pair(entry.uid, entry.reason);
    last_[key] = entry.last;
    const auto known = before.find(key);
    if (known != before.end() && entry.last - known->second < kSpell) continue;
    const RingRefusalText& text = TextOf(entry.reason);
    const bool has_user = entry.uid != static_cast<uid_t>(-1);
    messages.push_back(absl::StrCat(
        "refused the service with the process id ", entry.pid,
        has_user ? absl::StrCat(" of user ", entry.uid) : "", ": ", std::string(text.message),
        entry.detail.empty() ? "" : ": ", entry.detail, "; ", std::string(text.remedy),
        "; further refusals", has_user ? " of this user" : "",
        " for this reason are only counted, until there has been none for 1 min"));
  }
  return messages;
}

}  // namespace collector
