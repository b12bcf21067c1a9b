#include "nettrace/time_ordered_reader.h"

#include <algorithm>
#include <span>
#include <utility>

namespace nettrace {

TimeOrderedReader::TimeOrderedReader(std::unique_ptr<Reader> reader,
                                     const TimeOrderOptions& options)
    : reader_(std::move(reader)), options_(options) {}

TimeOrderedReader::Step TimeOrderedReader::Next() {
  while (true) {
    if (next_ < kept_.size()) {
      Deliver(kept_[next_++]);
      return Step::kEvent;
    }
    if (at_boundary_) {
      if (next_removed_ < removed_.size()) {
        removed_thread_ = removed_[next_removed_++];
        return Step::kRemovedThread;
      }
      in_parts_ = false;
      if (boundary_ == Step::kEnd) return Step::kEnd;
      at_boundary_ = false;
      return boundary_;
    }
    ReadInterval();
  }
}

void TimeOrderedReader::ReadInterval() {
  if (next_removed_ == removed_.size()) {
    removed_.clear();
    next_removed_ = 0;
  }
  kept_.clear();
  bytes_.clear();
  labels_.clear();
  next_ = 0;
  while (true) {
    if (kept_.size() * sizeof(Kept) + bytes_.size() > options_.max_interval_bytes) {
      sorted_in_parts_ = in_parts_ = true;
      break;
    }
    const Step step = reader_->Next();
    if (step == Step::kEvent) {
      Keep(reader_->event());
    } else if (step == Step::kRemovedThread) {
      removed_.push_back(reader_->removed_thread());
    } else {
      at_boundary_ = true;
      boundary_ = step;
      break;
    }
  }
  std::stable_sort(kept_.begin(), kept_.end(), [](const Kept& a, const Kept& b) {
    return a.event.timestamp < b.event.timestamp;
  });
}

void TimeOrderedReader::Keep(const Event& event) {
  Kept& kept = kept_.emplace_back();
  kept.event = event;
  kept.start = bytes_.size();
  kept.payload_size = event.payload.size();
  kept.stack_size = event.stack.size();
  bytes_.insert(bytes_.end(), event.payload.begin(), event.payload.end());
  bytes_.insert(bytes_.end(), event.stack.begin(), event.stack.end());
  // The labels of V4 and V5 are the row's own, and gone with it.
  if (event.payload_encoding == PayloadEncoding::kLegacy) {
    kept.event.labels = &labels_.emplace_back(*event.labels);
  }
}

void TimeOrderedReader::Deliver(const Kept& kept) {
  event_ = kept.event;
  const std::span<const std::byte> bytes(bytes_);
  event_.payload = bytes.subspan(kept.start, kept.payload_size);
  event_.stack = bytes.subspan(kept.start + kept.payload_size, kept.stack_size);
}

}  // namespace nettrace
