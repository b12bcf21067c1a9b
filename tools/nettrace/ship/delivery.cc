#include "tools/nettrace/ship/delivery.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/quantities.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"

namespace tools::ship {
namespace {

// Minimum time before a retry if the receiver is unreachable.
constexpr absl::Duration kUnreachableWait = absl::Minutes(1);

}  // namespace

Delivery::Delivery(const DeliveryOptions& options, Actions actions)
    : options_(options),
      actions_(std::move(actions)),
      retry_wait_(options.first_wait, options.seed),
      compressor_(options.compression) {}

absl::Status Delivery::Deliver(const otlp::RequestBatch& requests, std::string_view whole) {
  const std::size_t records = requests.records();
  std::size_t count = records;  // records of the next part
  for (std::size_t first = 0; first < records;) {
    count = std::min(count, records - first);
    std::string_view part = whole;
    if (count != records) {
      part_.clear();
      requests.AppendPart(first, count, &part_);
      part = part_;
    }
    if (part.size() > max_bytes_ && count > 1) {
      count = (count + 1) / 2;
      continue;
    }
    ASSIGN_OR_RETURN(const Answer answer, Exchange(part, count));
    if (answer.verdict == Verdict::kTooLarge && count > 1) {
      max_bytes_ = part.size() / 2;
      continue;
    }
    Count(answer, count);
    RETURN_IF_ERROR(actions_.done(count, requests.EventsIn(first, count)));
    first += count;
    count = records;
  }
  return absl::OkStatus();
}

absl::StatusOr<Answer> Delivery::Exchange(std::string_view request, std::size_t records) {
  ASSIGN_OR_RETURN(const std::string_view body, compressor_.Compress(request));
  for (;;) {
    const HttpReply reply = actions_.post(body);
    ++counts_.requests;
    counts_.bytes += body.size();
    Answer answer = Judge(reply, records);
    if (answer.verdict != Verdict::kRetry && answer.verdict != Verdict::kUnreachable) {
      ReportRecovery();
      return answer;
    }
    RETURN_IF_ERROR(WaitToRetry(reply, answer));
  }
}

absl::Status Delivery::WaitToRetry(const HttpReply& reply, const Answer& answer) {
  const bool is_unreachable = answer.verdict == Verdict::kUnreachable;
  const absl::Duration now = actions_.now();
  failing_since_ = std::min(failing_since_, now);
  absl::Duration wait = retry_wait_.Next(reply.retry_after);
  if (is_unreachable) wait = std::max(wait, kUnreachableWait);
  const bool fails = (is_unreachable && options_.fails_if_unreachable) ||
                     now + wait - failing_since_ > options_.give_up;
  if (fails) {
    return absl::UnavailableError(absl::StrCat(options_.name, ": ", base::Printable(answer.message),
                                               "; the rest was not sent"));
  }
  if (answer.message != failure_) {
    failure_ = answer.message;
    actions_.report(absl::StrCat(options_.name, ": ", base::Printable(answer.message),
                                 "; retrying in ", base::FormatDuration(base::Nanoseconds(wait))));
  }
  ++counts_.retries;
  if (!actions_.wait(wait)) return absl::CancelledError("stopped by a signal");
  if (const absl::Status status = actions_.renew(); !status.ok()) {
    actions_.report(std::string(status.message()));
  }
  return absl::OkStatus();
}

void Delivery::ReportRecovery() {
  if (!failure_.empty()) {
    const absl::Duration since = actions_.now() - failing_since_;
    actions_.report(absl::StrCat(options_.name, ": the receiver answers again after ",
                                 base::FormatDuration(base::Nanoseconds(since))));
  }
  failure_.clear();
  failing_since_ = absl::InfiniteDuration();
  retry_wait_.Reset();
}

void Delivery::Count(const Answer& answer, std::size_t records) {
  if (answer.verdict != Verdict::kAccepted) {
    counts_.refused += records;
    actions_.report(absl::StrCat(options_.name, ": refused ", base::Counted(records, "record"),
                                 ": ", base::Printable(answer.message)));
    return;
  }
  counts_.rejected += answer.rejected;
  counts_.accepted += records - answer.rejected;
  if (answer.rejected == 0 && answer.message.empty()) return;
  actions_.report(absl::StrCat(options_.name, ": rejected ",
                               base::Counted(answer.rejected, "record"), " of ", records, ": ",
                               base::Printable(answer.message)));
}

}  // namespace tools::ship
