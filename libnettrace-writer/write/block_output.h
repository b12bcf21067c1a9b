// Writes block headers, passes whole blocks to a sink, and keeps the stream well-formed if the sink
// fails within a block.
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

// Writes the header at the start of `block`, whose size includes the header.
void PutBlockHeader(std::span<std::byte> block, BlockKind kind);

class BlockOutput {
 public:
  explicit BlockOutput(std::unique_ptr<Sink> sink) : sink_(std::move(sink)) {}

  struct Events {
    std::uint64_t all = 0;
    std::uint64_t apart = 0;  // subset of `all`; see Writer::CountApart
  };

  // Returns OK if the sink took the block or its beginning. If the sink took only the beginning,
  // the block is torn: this object keeps the rest, and writes it before the next block. After an
  // error, the sink took nothing of the block, and the caller can append it again. `events` is the
  // number of events in the block.
  absl::Status Append(std::span<const std::byte> block, Events events = {0, 0});

  // Writes the rest of a torn block (see Append), then begins the section that StartSection
  // requested. After an error, the next call does what remains.
  absl::Status FinishTorn();

  // Makes the next block begin a new section. Calls the sink's BeginSection at once, or, if a block
  // is torn (see Append), after the sink has taken the rest of that block.
  void StartSection();

  // Call FinishTorn, and then the sink's function of the same name.
  absl::Status Flush();
  absl::Status Sync();
  absl::Status Finish();

  // Returns the result of the latest call of the sink's Append() or BeginSection().
  const absl::Status& status() const { return status_; }
  // Returns the number of bytes that the sink has taken.
  std::uint64_t bytes() const { return bytes_; }
  // Returns the number of events in blocks that were taken completely and have reached the sink's
  // destination.
  Events events() const;

 private:
  // Counts the events of a block that was taken completely.
  void Count(Events events);
  // Passes `bytes` to the sink and returns the number that it took.
  std::size_t Give(std::span<const std::byte> bytes);

  std::unique_ptr<Sink> sink_;
  absl::Status status_;
  std::vector<std::byte> torn_;  // the rest of a block that was taken in part
  Events torn_events_;
  bool starts_section_ = false;  // true if a section must begin after the torn block
  std::uint64_t bytes_ = 0;
  // A block that the sink took: its events, and the offset of its end in the stream, in bytes.
  struct Taken {
    Events events;
    std::uint64_t end;
  };
  // Blocks with events whose bytes the sink may still hold back, oldest first. Empty if the sink
  // does not hold bytes back.
  mutable std::deque<Taken> undelivered_;
  mutable Events events_;  // events in blocks that the sink has delivered
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_WRITE_BLOCK_OUTPUT_H_
