// Delivers requests to an OTLP receiver: retries them, halves them if they are too large, and
// counts what the receiver does not take.
#ifndef TOOLS_NETTRACE_SHIP_DELIVERY_H_
#define TOOLS_NETTRACE_SHIP_DELIVERY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tools/nettrace/export/otlp/request_batch.h"
#include "tools/nettrace/ship/answer.h"
#include "tools/nettrace/ship/compressor.h"
#include "tools/nettrace/ship/http_client.h"

namespace tools::ship {

struct DeliveryCounts {
  std::uint64_t accepted = 0;  // records that the receiver has
  std::uint64_t rejected = 0;  // records of accepted requests that the receiver did not take
  std::uint64_t refused = 0;   // records of requests that the receiver refused
  std::uint64_t requests = 0;  // requests sent, with all retries
  std::uint64_t retries = 0;
  std::uint64_t bytes = 0;  // bytes of the bodies of all requests
};

struct DeliveryOptions {
  std::string name;  // name of the destination, for messages
  Compression compression = Compression::kGzip;
  // Whether to fail, instead of retrying, if the receiver is unreachable (Verdict::kUnreachable).
  bool fails_if_unreachable = false;
  // Maximum time from the first failed attempt to send a request to its last retry. Afterwards, the
  // delivery fails.
  absl::Duration give_up = absl::InfiniteDuration();
  absl::Duration first_wait = absl::Seconds(1);  // time before the first retry
  std::uint32_t seed = 1;                        // seed of the random variation of waits
};

// Not thread-safe.
class Delivery {
 public:
  struct Actions {
    std::function<HttpReply(std::string_view body)> post;
    // Reads the credentials again before a retry. The request is retried even if this function
    // fails.
    std::function<absl::Status()> renew;
    // Waits for this time. Returns false if the process was asked to end.
    std::function<bool(absl::Duration)> wait;
    // Called when a part of a request needs no more retries. Receives the number of records in the
    // part, and of events that these records represent (RequestBatch::EventsIn). An error ends the
    // delivery.
    std::function<absl::Status(std::size_t records, std::uint64_t events)> done;
    // Prints a message.
    std::function<void(const std::string& message)> report;
    std::function<absl::Duration()> now;  // a monotonic clock
  };

  Delivery(const DeliveryOptions& options, Actions actions);

  // Delivers the current request of `requests`, whose encoded form is `whole`. Fails with Cancelled
  // if the process was asked to end, and with the error of Actions::done. Fails with Unavailable
  // after DeliveryOptions::give_up, or if DeliveryOptions::fails_if_unreachable applies.
  absl::Status Deliver(const otlp::RequestBatch& requests, std::string_view whole);

  const DeliveryCounts& counts() const { return counts_; }
  bool is_failing() const { return !failure_.empty(); }  // whether a request waits for a retry

 private:
  // Sends a request until an answer needs no retry, and returns that answer.
  absl::StatusOr<Answer> Exchange(std::string_view request, std::size_t records);
  // Waits before a retry. Fails like Deliver.
  absl::Status WaitToRetry(const HttpReply& reply, const Answer& answer);
  void ReportRecovery();
  // Counts the records of a part, for which the receiver gave its final answer.
  void Count(const Answer& answer, std::size_t records);

  const DeliveryOptions options_;
  const Actions actions_;
  RetryWait retry_wait_;
  Compressor compressor_;
  DeliveryCounts counts_;
  // Maximum size of a request in bytes, before compression. It is reduced when the receiver rejects
  // a request as too large.
  std::size_t max_bytes_ = std::numeric_limits<std::size_t>::max();
  std::string part_;
  absl::Duration failing_since_ = absl::InfiniteDuration();  // first failed attempt; else infinite
  std::string failure_;                                      // the last reason for a retry
};

}  // namespace tools::ship

#endif  // TOOLS_NETTRACE_SHIP_DELIVERY_H_
