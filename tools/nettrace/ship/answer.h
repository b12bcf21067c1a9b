// Decides whether a request to an OTLP receiver must be repeated, as the specification of OTLP
// says.
#ifndef TOOLS_NETTRACE_SHIP_ANSWER_H_
#define TOOLS_NETTRACE_SHIP_ANSWER_H_

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "tools/nettrace/ship/http_client.h"

namespace tools::ship {

enum class Verdict : std::uint8_t {
  kAccepted,     // the receiver has the records, except Answer::rejected
  kRetry,        // the same request may succeed later
  kUnreachable,  // no request can succeed until the user, or the server's administrator, acts
  kTooLarge,     // a smaller request may succeed
  kRefused,      // this request never succeeds
};

struct Answer {
  Verdict verdict = Verdict::kRetry;
  std::uint64_t rejected = 0;  // records of an accepted request that the receiver did not take
  std::string message;         // for people; "" if there is nothing to report
};

// Judges the answer to a request that has `records` records.
//
// 200 to 299 are kAccepted. 429, 502, 503 and 504 and errors of the connection are kRetry. 413 is
// kTooLarge. 401, 403, 404, 405, 407, redirects and HttpReply::is_setup_error are kUnreachable,
// because the URL, the credentials or a certificate must change. All other answers are kRefused.
Answer Judge(const HttpReply& reply, std::uint64_t records);

// Times between retries: they double from `first` up to a minute, and vary by 20 %, so that many
// senders do not retry together.
class RetryWait {
 public:
  static constexpr absl::Duration kMax = absl::Minutes(1);
  // Maximum time that a receiver may ask for.
  static constexpr absl::Duration kMaxAsked = absl::Hours(1);

  RetryWait(absl::Duration first, std::uint32_t seed)
      : first_(first), next_(first), random_(seed) {}

  // Returns the time until the next retry. `asked` is the time that the receiver asked for, or 0.
  // If it is not 0, the result is between `asked`, limited to kMaxAsked, and 10 % more.
  absl::Duration Next(absl::Duration asked);
  // Must be called after a success.
  void Reset() { next_ = first_; }

 private:
  const absl::Duration first_;
  absl::Duration next_;
  std::minstd_rand random_;
};

}  // namespace tools::ship

#endif  // TOOLS_NETTRACE_SHIP_ANSWER_H_
