// Hands whole blocks to a sink, and keeps the stream well-formed when the sink fails halfway.
#ifndef LIBNETTRACE_WRITER_WRITE_BLOCK_OUTPUT_H_
#define LIBNETTRACE_WRITER_WRITE_BLOCK_OUTPUT_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "nettrace/format.h"
#include "nettrace/sink.h"

namespace nettrace::internal {

// Fills in the header at the start of `block`, whose size includes it.
void PutBlockHeader(std::span<std::byte> block, BlockKind kind);

class BlockOutput {
 public:
  explicit BlockOutput(std::unique_ptr<Sink> sink) : sink_(std::move(sink)) {}

  // OK: the block is the sink's, or its beginning is and the rest is kept here and goes first next
  // time. An error: nothing of the block was taken, and it can be given again.
  // `events`: how many are in it, for events().
  absl::Status Append(std::span<const std::byte> block, std::uint64_t events = 0);

  // Hands over what a torn block left, then has the sink begin the section that StartSection asked
  // for. An error: that is still to be done.
  absl::Status FinishTorn();

  // What is appended from here on is a new section: the sink hears of it at once, or when it has
  // taken what a torn block left.
  void StartSection();

  // FinishTorn, then the sink's own Flush, Sync or Finish.
  absl::Status Flush();
  absl::Status Sync();
  absl::Status Finish();

  // The sink's last answer.
  const absl::Status& status() const { return status_; }
  // Bytes taken by the sink.
  std::uint64_t bytes() const { return bytes_; }
  // Events in blocks that were taken to their last byte and have reached the sink's destination.
  std::uint64_t events() const;

 private:
  // A block was taken to its last byte.
  void Count(std::uint64_t events);
  // Gives `bytes` to the sink and returns how many it took.
  std::size_t Give(std::span<const std::byte> bytes);

  std::unique_ptr<Sink> sink_;
  absl::Status status_;
  std::vector<std::byte> torn_;  // the untaken rest of a block whose beginning was taken
  std::uint64_t torn_events_ = 0;
  bool starts_section_ = false;  // the sink is to begin a section after that
  std::uint64_t bytes_ = 0;
  // A block that was taken: its events, and where in the stream it ends.
  struct Taken {
    std::uint64_t events;
    std::uint64_t end;
  };
  // Blocks that the sink may hold back, the oldest first; empty where the sink does no such thing.
  mutable std::deque<Taken> undelivered_;
  mutable std::uint64_t events_ = 0;  // in blocks before those
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_WRITE_BLOCK_OUTPUT_H_
