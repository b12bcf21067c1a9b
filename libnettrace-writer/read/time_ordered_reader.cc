#include "nettrace/time_ordered_reader.h"

#include <utility>

#include "libnettrace-writer/read/event_sorter.h"

namespace nettrace {

TimeOrderedReader::TimeOrderedReader(std::unique_ptr<Reader> reader,
                                     const TimeOrderOptions& options)
    : reader_(std::move(reader)),
      sorter_(std::make_unique<internal::EventSorter>(options.max_memory,
                                                      options.temporary_directory)) {}
TimeOrderedReader::TimeOrderedReader(TimeOrderedReader&&) noexcept = default;
TimeOrderedReader::~TimeOrderedReader() = default;

std::uint64_t TimeOrderedReader::spilled_bytes() const { return sorter_->spilled_bytes(); }

TimeOrderedReader::Step TimeOrderedReader::Next() {
  while (true) {
    if (sorter_->Next(&event_)) return Step::kEvent;
    if (!sorter_->status().ok()) {
      sort_status_ = sorter_->status();
      return Step::kEnd;
    }
    if (at_boundary_) {
      if (next_removed_ < removed_.size()) {
        removed_thread_ = removed_[next_removed_++];
        return Step::kRemovedThread;
      }
      if (boundary_ == Step::kEnd) return Step::kEnd;
      at_boundary_ = false;
      return boundary_;
    }
    ReadInterval();
  }
}

void TimeOrderedReader::ReadInterval() {
  removed_.clear();
  next_removed_ = 0;
  sorter_->Clear();
  while (!at_boundary_) {
    const Step step = reader_->Next();
    if (step == Step::kEvent) {
      // If the sorter's temporary file cannot be written, for example because the disk is full, the
      // stream ends here, as at a damaged part. The events that were read so far are still returned
      // in order.
      sort_status_ = sorter_->Add(reader_->event());
      if (!sort_status_.ok()) {
        at_boundary_ = true;
        boundary_ = Step::kEnd;
      }
    } else if (step == Step::kRemovedThread) {
      removed_.push_back(reader_->removed_thread());
    } else {
      at_boundary_ = true;
      boundary_ = step;
    }
  }
  sorter_->Sort();
}

}  // namespace nettrace
