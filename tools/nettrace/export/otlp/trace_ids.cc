#include "tools/nettrace/export/otlp/trace_ids.h"

#include <algorithm>

namespace tools::otlp {
namespace {

// Returns whether an id is valid: not all of its bytes are zero.
bool IsId(const std::array<std::byte, 16>& id) {
  return std::any_of(id.begin(), id.end(), [](std::byte byte) { return byte != std::byte{0}; });
}

}  // namespace

std::uint64_t Fnv1a(std::span<const std::byte> bytes, std::uint64_t hash) {
  for (const std::byte byte : bytes) {
    hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001B3;
  }
  return hash;
}

SpanIds TraceIds::IdsOf(const nettrace::Labels& labels) {
  SpanIds ids;
  if (labels.trace_id && IsId(*labels.trace_id)) ids.trace_id = labels.trace_id;
  if (labels.span_id && *labels.span_id != 0) ids.span_id = labels.span_id;
  if (!labels.activity_id || !IsId(*labels.activity_id)) return ids;
  const nettrace::Guid& activity = *labels.activity_id;
  const std::optional<nettrace::Guid>& related = labels.related_activity_id;
  if (related && IsId(*related) && *related != activity) {
    if (roots_.try_emplace(activity, RootOf(*related)).second) {
      order_.push_back(activity);
      if (order_.size() > kMaxActivities) {
        roots_.erase(order_.front());
        order_.pop_front();
      }
    }
  }
  if (ids.trace_id) return ids;
  const SpanIds of_activity = IdsOfActivity(activity);
  ids.trace_id = of_activity.trace_id;
  if (!ids.span_id) ids.span_id = of_activity.span_id;
  return ids;
}

SpanIds TraceIds::IdsOfActivity(const nettrace::Guid& activity) const {
  // Sets the lowest bit, because a span id of 0 is not valid.
  return {nettrace::GuidFromUuid(RootOf(activity)), Fnv1a(nettrace::GuidFromUuid(activity)) | 1};
}

nettrace::Guid TraceIds::RootOf(const nettrace::Guid& activity) const {
  const auto root = roots_.find(activity);
  return root == roots_.end() ? activity : root->second;
}

}  // namespace tools::otlp
