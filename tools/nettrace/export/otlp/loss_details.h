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

// Only sequence numbers decide how many events were lost. The account divides this number by
// tracepoint and reason. Each lost event of the account describes one lost event of the sequence
// numbers, even if the account counts it after the sequence numbers show it. Not thread-safe.
class LossDetails {
 public:
  // Maximum number of details that wait for their losses, and of capture threads.
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
  // The losses of one capture thread of one host.
  struct Place {
    std::deque<LossDetail> details;
    // Number of lost events that Take has returned without details. Add ignores as many events,
    // because the account counts those events later.
    std::uint64_t without_details = 0;
  };

  Place& PlaceOf(const std::string& host, const std::string& thread);

  absl::flat_hash_map<std::string, Place> places_;
  std::size_t details_ = 0;  // number of details of all places
};

}  // namespace tools::otlp

#endif  // TOOLS_NETTRACE_EXPORT_OTLP_LOSS_DETAILS_H_
