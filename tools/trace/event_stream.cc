#include "tools/trace/event_stream.h"

#include <utility>

#include "tools/trace/ring_positions.h"

namespace trace {

using ReaderStep = nettrace::Reader::Step;

EventStream::EventStream(std::unique_ptr<nettrace::Reader> reader,
                         const EventStreamOptions& options)
    : options_(options), ordered_(std::move(reader)) {}

EventStream::Step EventStream::Next() {
  do {
    if (!has_step_) ReadStep();
    if (losses_left_ != 0) return NextLoss();
    has_step_ = false;
  } while (read_ == ReaderStep::kRemovedThread);
  if (read_ == ReaderStep::kSequencePoint) return Step::kSequencePoint;
  if (read_ == ReaderStep::kEnd) return Step::kEnd;
  // RingPositions events serve the next collector (ring_positions.h), so they are not shown.
  const bool passes = options_.filter == nullptr || options_.filter->Passes(reader(), *event_);
  return passes && !IsRingPositions(*event_) ? Step::kEvent : Step::kOtherEvent;
}

void EventStream::ReadStep() {
  read_ = options_.file_order ? ordered_.reader().Next() : ordered_.Next();
  has_step_ = true;
  if (read_ == ReaderStep::kEvent) {
    event_ = options_.file_order ? &reader().event() : &ordered_.event();
    ticks_ = event_->timestamp;
    losses_left_ = event_->lost_before != 0 ? 1 : 0;
    if (options_.names != nullptr) options_.names->OnEvent(*event_);
  } else if (read_ == ReaderStep::kSequencePoint) {
    ticks_ = sequence_point().timestamp;
    losses_left_ = sequence_point().losses.size();
  } else if (read_ == ReaderStep::kRemovedThread) {
    removed_ = options_.file_order ? &reader().removed_thread() : &ordered_.removed_thread();
    losses_left_ = removed_->lost != 0 ? 1 : 0;
  }
  if (losses_left_ != 0 && options_.filter != nullptr && !options_.filter->PassesTime(time())) {
    losses_left_ = 0;
  }
}

EventStream::Step EventStream::NextLoss() {
  if (read_ == ReaderStep::kEvent) {
    loss_ = {event_->capture_thread_index, event_->capture_thread, event_->lost_before, time(),
             event_};
  } else if (read_ == ReaderStep::kRemovedThread) {
    loss_ = {removed_->thread_index, removed_->thread, removed_->lost, time()};
  } else {
    const auto& losses = sequence_point().losses;
    const nettrace::SequencePoint::Loss& loss = losses[losses.size() - losses_left_];
    loss_ = {loss.thread_index, loss.thread, loss.count, time()};
  }
  --losses_left_;
  return Step::kLoss;
}

}  // namespace trace
