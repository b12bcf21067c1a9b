#include "tools/nettrace/export/otlp/request_batch.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "tools/base/status_macros.h"

namespace tools::otlp {

RequestBatch::RequestBatch(const LogEncoder* encoder, Signal signal, const RequestLimits& limits,
                           Send send)
    : encoder_(encoder), signal_(signal), limits_(limits), send_(std::move(send)) {}

absl::Status RequestBatch::Add(std::string_view record, Resource* resource,
                               const std::string& scope, std::uint64_t events) {
  if (skipped_ != 0) {
    --skipped_;
    return absl::OkStatus();
  }
  const std::size_t most =
      record.size() + resource->encoded.size() + scope.size() + 3 * LogEncoder::kFrameSize;
  if (order_.size() == limits_.records || (!order_.empty() && bytes_ + most > limits_.bytes)) {
    RETURN_IF_ERROR(Flush());
  }
  ResourceGroup& group = GroupOf(resource);
  const auto [place, added] = group.places.try_emplace(scope, group.scopes.size());
  if (added) {
    group.scopes.push_back({scope, {}});
    bytes_ += scope.size() + LogEncoder::kFrameSize;
  }
  std::string& records = group.scopes[place->second].records;
  const std::size_t begin = records.size();
  encoder_->AppendRecord(record, &records);
  order_.push_back({static_cast<std::uint32_t>(resource->group),
                    static_cast<std::uint32_t>(place->second), begin, records.size() - begin,
                    events});
  bytes_ += record.size() + LogEncoder::kFrameSize;
  return absl::OkStatus();
}

absl::Status RequestBatch::Flush() {
  if (order_.empty()) return absl::OkStatus();
  encoded_.clear();
  encoder_->AppendRequest(signal_, groups_, &encoded_);
  absl::Status status = send_(*this, encoded_);
  groups_.clear();
  places_.clear();
  order_.clear();
  bytes_ = LogEncoder::kFrameSize;
  ++request_;
  return status;
}

std::uint64_t RequestBatch::EventsIn(std::size_t first, std::size_t count) const {
  std::uint64_t events = 0;
  for (const Place& place : std::span(order_).subspan(first, count)) events += place.events;
  return events;
}

void RequestBatch::AppendPart(std::size_t first, std::size_t count, std::string* out) const {
  constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  std::vector<ResourceGroup> groups;
  std::vector<std::size_t> group_places(groups_.size(), kNone);
  std::vector<std::vector<std::size_t>> scope_places(groups_.size());
  const std::size_t end = first + std::min(count, order_.size() - first);
  for (std::size_t i = first; i < end; ++i) {
    const Place& place = order_[i];
    const ResourceGroup& from = groups_[place.group];
    if (group_places[place.group] == kNone) {
      group_places[place.group] = groups.size();
      groups.emplace_back().resource = from.resource;
      scope_places[place.group].resize(from.scopes.size(), kNone);
    }
    ResourceGroup& group = groups[group_places[place.group]];
    std::size_t& scope = scope_places[place.group][place.scope];
    if (scope == kNone) {
      scope = group.scopes.size();
      group.scopes.push_back({from.scopes[place.scope].scope, {}});
    }
    const std::string_view records = from.scopes[place.scope].records;
    encoder_->CopyRecord(records.substr(place.begin, place.size), &group.scopes[scope].records);
  }
  encoder_->AppendRequest(signal_, groups, out);
}

ResourceGroup& RequestBatch::GroupOf(Resource* resource) {
  if (resource->request != request_) {
    const auto [place, added] = places_.try_emplace(resource->encoded, groups_.size());
    if (added) {
      groups_.emplace_back().resource = resource->encoded;
      bytes_ += resource->encoded.size() + LogEncoder::kFrameSize;
    }
    resource->request = request_;
    resource->group = place->second;
  }
  return groups_[resource->group];
}

}  // namespace tools::otlp
