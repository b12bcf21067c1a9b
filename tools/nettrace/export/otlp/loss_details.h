// Matches the losses that sequence numbers show with the account of the recording, which states
// their tracepoints, times and reasons.
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

// Holds what the account states about lost events, until the gaps in sequence numbers show them.
// Only sequence numbers decide how many events were lost. The account divides this number by
// tracepoint and reason. A loss may appear in the account later than in the sequence numbers; it is
// then counted only once. Not thread-safe.
class LossDetails {
 public:
  // Maximum number of stored details of all capture threads. Add ignores further details.
  static constexpr std::size_t kMaxDetails = 16384;
  // Maximum number of capture threads. After it is reached, the next call of Add or Take drops all
  // details.
  static constexpr std::size_t kMaxPlaces = 16384;

  // Adds an event of the account that counts losses; ignores other events. `host` distinguishes
  // the hosts of merged files.
  void Add(const trace::AccountEvent& event, const std::string& host);
  // Returns the details of the first events of a loss. `count` is the number of events in the loss,
  // at least 1. LossDetail::count states how many of them the result describes; the caller calls
  // Take again for the others. `thread` is the name of the capture thread that lost the events.
  LossDetail Take(const std::string& host, const std::string& thread, std::uint64_t count);

 private:
  // The losses of one capture thread of one host.
  struct Place {
    std::deque<LossDetail> details;
    // Number of lost events that Take has returned without details. Add ignores the same number of
    // lost events, because the account reports them later.
    std::uint64_t without_details = 0;
  };

  Place& PlaceOf(const std::string& host, const std::string& thread);

  absl::flat_hash_map<std::string, Place> places_;
  std::size_t details_ = 0;  // number of details of all places
};

}  // namespace tools::otlp

#endif  // TOOLS_NETTRACE_EXPORT_OTLP_LOSS_DETAILS_H_
