#include "libnettrace-writer/write/block_output.h"

#include <algorithm>

#include "libnettrace-writer/core/block_layout.h"

namespace nettrace::internal {

void PutBlockHeader(std::span<std::byte> block, BlockKind kind) {
  const std::size_t size = block.size() - kBlockHeaderSize;
  block[0] = static_cast<std::byte>(size);
  block[1] = static_cast<std::byte>(size >> 8);
  block[2] = static_cast<std::byte>(size >> 16);
  block[3] = static_cast<std::byte>(kind);
}

std::size_t BlockOutput::Give(std::span<const std::byte> bytes) {
  std::size_t taken = 0;
  status_ = sink_->Append(bytes, &taken);
  if (status_.ok()) {
    taken = bytes.size();
  } else {
    taken = std::min(taken, bytes.size());
  }
  bytes_ += taken;
  return taken;
}

absl::Status BlockOutput::FinishTorn() {
  if (!torn_.empty()) {
    const std::size_t taken = Give(torn_);
    torn_.erase(torn_.begin(), torn_.begin() + static_cast<std::ptrdiff_t>(taken));
    if (!torn_.empty()) return status_;
    Count(torn_events_);
  }
  if (starts_section_) {
    status_ = sink_->BeginSection();
    starts_section_ = !status_.ok();
    return status_;
  }
  return absl::OkStatus();
}

void BlockOutput::StartSection() {
  starts_section_ = true;
  FinishTorn().IgnoreError();  // the next call of FinishTorn() tries again and returns the error
}

absl::Status BlockOutput::Append(std::span<const std::byte> block, Events events) {
  if (absl::Status status = FinishTorn(); !status.ok()) return status;
  const std::size_t taken = Give(block);
  if (taken == block.size()) {
    Count(events);
    return absl::OkStatus();
  }
  if (taken == 0) return status_;
  torn_.assign(block.begin() + static_cast<std::ptrdiff_t>(taken), block.end());
  torn_events_ = events;
  return absl::OkStatus();
}

void BlockOutput::Count(Events events) {
  if (undelivered_.empty() && sink_->Undelivered() == 0) {
    events_.all += events.all;
    events_.apart += events.apart;
  } else if (events.all != 0) {
    undelivered_.push_back({events, bytes_});
    this->events();  // removes delivered blocks from undelivered_
  }
}

BlockOutput::Events BlockOutput::events() const {
  if (undelivered_.empty()) return events_;
  const std::uint64_t delivered = bytes_ - sink_->Undelivered();
  while (!undelivered_.empty() && undelivered_.front().end <= delivered) {
    events_.all += undelivered_.front().events.all;
    events_.apart += undelivered_.front().events.apart;
    undelivered_.pop_front();
  }
  return events_;
}

absl::Status BlockOutput::Flush() {
  if (absl::Status status = FinishTorn(); !status.ok()) return status;
  return sink_->Flush();
}

absl::Status BlockOutput::Sync() {
  if (absl::Status status = FinishTorn(); !status.ok()) return status;
  return sink_->Sync();
}

absl::Status BlockOutput::Finish() {
  if (absl::Status status = FinishTorn(); !status.ok()) return status;
  return sink_->Finish();
}

}  // namespace nettrace::internal
