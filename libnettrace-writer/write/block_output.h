// Hands whole blocks to a sink, and keeps the stream well-formed when the sink fails halfway.
#ifndef LIBNETTRACE_WRITER_WRITE_BLOCK_OUTPUT_H_
#define LIBNETTRACE_WRITER_WRITE_BLOCK_OUTPUT_H_

#include <cstddef>
#include <cstdint>
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

  // Hands over what a torn block left. An error: some of it is still here.
  absl::Status FinishTorn();

  // FinishTorn, then the sink's own Sync.
  absl::Status Sync();

  // The sink's last answer.
  const absl::Status& status() const { return status_; }
  // Taken by the sink: bytes, and events in blocks taken to their last byte.
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t events() const { return events_; }

 private:
  // Gives `bytes` to the sink and returns how many it took.
  std::size_t Give(std::span<const std::byte> bytes);

  std::unique_ptr<Sink> sink_;
  absl::Status status_;
  std::vector<std::byte> torn_;  // the untaken rest of a block whose beginning was taken
  std::uint64_t torn_events_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_WRITE_BLOCK_OUTPUT_H_
