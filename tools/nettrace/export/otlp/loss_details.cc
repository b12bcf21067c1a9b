#include "tools/nettrace/export/otlp/loss_details.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tools::otlp {

void LossDetails::Add(const trace::AccountEvent& event, const std::string& host) {
  using Kind = trace::AccountEvent::Kind;
  if (event.kind != Kind::kEventsLost && event.kind != Kind::kEventsDropped) return;
  const bool is_ring = event.cpu == trace::kRingCpu;
  Place& place = PlaceOf(host, is_ring ? event.tracepoint : absl::StrCat("CPU ", event.cpu));
  const std::uint64_t known = std::min(event.count, place.without_details);
  place.without_details -= known;
  if (event.count == known || details_ >= kMaxDetails) return;
  place.details.push_back({event.count - known, is_ring ? "" : event.tracepoint, event.reason,
                           event.since, event.until});
  ++details_;
}

LossDetail LossDetails::Take(const std::string& host, const std::string& thread,
                             std::uint64_t count) {
  Place& place = PlaceOf(host, thread);
  if (place.details.empty()) {
    place.without_details += count;
    return {.count = count};
  }
  LossDetail& first = place.details.front();
  LossDetail taken = first;
  taken.count = std::min(first.count, count);
  first.count -= taken.count;
  if (first.count == 0) {
    place.details.pop_front();
    --details_;
  }
  return taken;
}

LossDetails::Place& LossDetails::PlaceOf(const std::string& host, const std::string& thread) {
  if (places_.size() >= kMaxPlaces) {
    places_.clear();
    details_ = 0;
  }
  return places_[absl::StrCat(host, "\n", thread)];
}

}  // namespace tools::otlp
