// Writes a NetTrace V6 stream: blocks are appended to a sink as they fill, in bounded memory.
//
// The life of a trace: Create, then metadata, threads, labels, stacks and events in any order in
// which everything is defined before an event refers to it, a sequence point now and then, Finish.
// Rows are buffered; a row always reaches the sink before the first event that refers to it.
//
// Each capture thread (an OS thread, or a CPU's ring) has event blocks of its own, as the reference
// reader needs. Its events must be written in the order of their timestamps, and lie between the
// sequence points around them; WriteEvent refuses what does not.
//
// Not thread-safe. Nothing here throws, prints or aborts.
#ifndef NETTRACE_WRITER_H_
#define NETTRACE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/schema.h"
#include "nettrace/sink.h"

namespace nettrace {

struct WriterOptions {
  // An open event block is written when its rows reach this many bytes.
  std::size_t event_block_size = 256 * 1024;
  // Bounds on the interval caches; reaching one is ResourceExhausted, and a sequence point
  // (threads, metadata: a flushing one) makes room again.
  std::size_t max_labels = 65536;
  std::size_t max_stacks = 65536;
  std::size_t max_threads = 1 << 20;
  std::size_t max_metadata = 1 << 20;
  // Refuse what the text allows but the reference reader gets wrong (interop contract).
  bool reference_reader_strict = true;
};

// The header of an event.
struct EventRow {
  std::uint32_t metadata_id = 0;
  std::uint64_t capture_thread = 0;  // thread index that numbers this event
  std::uint64_t thread = 0;          // thread index the event is about
  std::uint32_t processor = 0;
  std::uint64_t timestamp = 0;      // ticks
  std::uint32_t stack_id = 0;       // 0: no stack
  std::uint32_t label_list_id = 0;  // 0: no labels
};

class Writer {
 public:
  // Writes the stream header and the Trace block. `sink` is owned.
  static absl::StatusOr<std::unique_ptr<Writer>> Create(std::unique_ptr<Sink> sink,
                                                        const TraceInfo& info,
                                                        const WriterOptions& options = {});
  ~Writer();  // does not finish: a stream without Finish has no EndOfStream, and says so to readers
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Defines a kind of event and returns its metadata id (1, 2, …). Valid until a sequence point
  // that flushes metadata. InvalidArgument names what is wrong with it (type, size, duplicate event
  // id).
  absl::StatusOr<std::uint32_t> AddMetadata(const EventMetadata& metadata);

  // Defines a thread and returns its index. Valid until RemoveThread or a sequence point that
  // flushes threads. Indices are never used twice in a stream.
  absl::StatusOr<std::uint64_t> AddThread(const ThreadInfo& thread);

  // The id of this label list or stack (leaf first), added if it is new since the last sequence
  // point. Valid until the next sequence point. Empty ones are 0.
  absl::StatusOr<std::uint32_t> InternLabels(const Labels& labels);
  absl::StatusOr<std::uint32_t> InternStack(std::span<const std::uint64_t> frames);

  // Appends an event; its sequence number is the next of its capture thread.
  absl::Status WriteEvent(const EventRow& row, std::span<const std::byte> payload);

  // `count` events of `capture_thread` were lost here: its sequence number advances by as many.
  absl::Status AddLost(std::uint64_t capture_thread, std::uint64_t count);

  // Ends the interval: all events so far are at or before `timestamp`, all later ones at or after
  // it. Lists the last sequence number of every capture thread. `flags`: kSequencePointFlush….
  absl::Status WriteSequencePoint(std::uint64_t timestamp, std::uint32_t flags = 0);

  // Hands every buffered block to the sink.
  absl::Status Flush();
  // Flush, EndOfStream, Sync. Nothing may be written afterwards. Does not write a sequence point.
  absl::Status Finish();

  struct Stats {
    std::uint64_t events = 0;  // accepted by WriteEvent
    std::uint64_t lost = 0;    // counted by AddLost
    std::uint64_t bytes = 0;   // taken by the sink
    std::uint64_t sequence_points = 0;
    std::uint64_t metadata = 0;
    std::uint64_t threads = 0;  // all that were ever defined, capture threads included
  };
  const Stats& stats() const;

 private:
  struct Impl;
  explicit Writer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace nettrace

#endif  // NETTRACE_WRITER_H_
