// Matches the losses that sequence numbers show with the account of the recording, which states
// the tracepoint, the times and the reason.
#ifndef TOOLS_NETTRACE_EXPORT_OTLP_LOSS_DETAILS_H_
#define TOOLS_NETTRACE_EXPORT_OTLP_LOSS_DETAILS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "tools/trace/account.h"

namespace tools::otlp {

// A number of lost events, and what the account states about them. Empty and 0 mean unknown.
struct LossDetail {
  std::uint64_t count = 0;
  std::string tracepoint = {};
  std::string reason = {};
  std::uint64_t since = 0;  // ns since 1970
  std::uint64_t until = 0;
};

// Sequence numbers decide how many events were lost. The account only divides this number: each
// event of the account is used up once, also if it follows the loss. Not thread-safe.
class LossDetails {
 public:
  // Maximum numbers of details that wait for their losses, and of places.
  static constexpr std::size_t kMaxDetails = 16384;
  static constexpr std::size_t kMaxPlaces = 16384;

  // Adds an event of the account that counts losses; ignores other events. `host` distinguishes
  // the hosts of merged files.
  void Add(const trace::AccountEvent& event, const std::string& host);
  // Returns the details of the first of `count` lost events of a capture thread, at least 1.
  // LossDetail::count states how many events they describe. `thread` is the name of the capture
  // thread.
  LossDetail Take(const std::string& host, const std::string& thread, std::uint64_t count);

 private:
  struct Place {
    std::deque<LossDetail> details;
    // Lost events that Take has returned without details. The next details are about them.
    std::uint64_t without_details = 0;
  };

  Place& PlaceOf(const std::string& host, const std::string& thread);

  absl::flat_hash_map<std::string, Place> places_;
  std::size_t details_ = 0;  // of all places
};

}  // namespace tools::otlp

#endif  // TOOLS_NETTRACE_EXPORT_OTLP_LOSS_DETAILS_H_
