// Writes a NetTrace V6 stream: blocks are appended to a sink as they fill, in bounded memory.
//
// The life of a trace: Create, then metadata, threads, labels, stacks and events in any order in
// which everything is defined before an event refers to it, a sequence point now and then, Finish.
// Rows are buffered; a row always reaches the sink before the first event that refers to it.
//
// Each capture thread (an OS thread, or a CPU's ring) has separate event blocks, as TraceEvent
// demands. Its events must be written in the order of their timestamps, and lie between the
// sequence points around them; WriteEvent refuses others.
//
// Text that is not UTF-8 is written with one U+FFFD for each maximal part of a sequence that is not
// well formed.
//
// When the sink fails, the blocks that it did not take are kept and given again with every call
// that writes, the untaken rest of a torn one first: the stream is well-formed up to the last byte
// taken. Once the buffers are full, events are dropped. See Stats for what is where.
//
// Not thread-safe. Nothing here throws, prints or aborts.
#ifndef NETTRACE_WRITER_H_
#define NETTRACE_WRITER_H_

#include "nettrace/need_cxx20.h"

#ifdef NETTRACE_CXX20

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/ids.h"
#include "nettrace/schema.h"
#include "nettrace/sink.h"

namespace nettrace {

struct WriterOptions {
  // An open event block is written before its rows pass this many bytes; a longer row gets a block
  // for itself. 1..16,777,195.
  std::size_t event_block_size = 64 * 1024;
  // All open blocks are written, and their buffers freed, before those pass this many bytes.
  std::size_t max_buffer_bytes = 64 << 20;
  // Bounds on the interval caches; reaching one is ResourceExhausted, and a sequence point
  // (threads, metadata: a flushing one) makes room again.
  std::size_t max_labels = 65536;
  std::size_t max_stacks = 65536;
  std::size_t max_threads = 1 << 20;  // at most 1 << 20
  // With traceevent_compatible, as many EventIds from before flushes of metadata are remembered,
  // too: TraceEvent goes on to show the later events of an id by the rows before. When they would
  // be more, all but those of the last flush are forgotten.
  std::size_t max_metadata = 1 << 20;
  std::size_t max_label_bytes = 64 << 20;
  std::size_t max_stack_bytes = 64 << 20;
  // Bounds on what a reader must keep to sort an interval. The bytes, of event rows, are counted as
  // blocks are written, so they may pass the bound by the open blocks.
  std::uint64_t max_interval_events = std::uint64_t{1} << 27;
  std::uint64_t max_interval_bytes = std::uint64_t{1} << 33;
  // Thread indices are counted from here; not kNoThread. RemoveThread needs it above all OS thread
  // ids, which TraceEvent takes for indices: 4,194,305 on Linux. Larger numbers take more bytes.
  ThreadIndex first_thread_index{1};
  // Refuse what the specification allows and TraceEvent (PerfView, dotnet-trace) misreads.
  bool traceevent_compatible = true;
};

// The header of an event.
struct EventRow {
  MetadataId metadata_id = kNoMetadata;
  ThreadIndex capture_thread = kNoThread;  // the thread that numbers this event
  ThreadIndex thread = kNoThread;          // the thread that the event is about
  std::uint32_t processor = 0;
  std::uint64_t timestamp = 0;  // ticks
  StackId stack_id = kNoStack;
  LabelListId label_list_id = kNoLabels;
};

class Writer {
 public:
  // Writes the stream header and the Trace block, the stream's prologue, and has the sink begin the
  // first section. `sink` is owned.
  static absl::StatusOr<std::unique_ptr<Writer>> Create(std::unique_ptr<Sink> sink,
                                                        const TraceInfo& info,
                                                        const WriterOptions& options = {});
  ~Writer();  // does not finish: a stream without Finish has no EndOfStream, and says so to readers
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Defines a metadata row and returns its id, valid until a sequence point that flushes metadata.
  // InvalidArgument says what is wrong with it (type, size, duplicate event id).
  absl::StatusOr<MetadataId> AddMetadata(const EventMetadata& metadata);

  // An EventId under which TraceEvent takes no other row's events for those of this row: the row's
  // own if it is 1 or above and has no other meaning in this stream, else one that follows from the
  // row's name, fields and opcode, so that it mostly is the same in every stream. nullopt if all
  // are taken: a sequence point that flushes metadata makes those free that were not used lately.
  std::optional<std::uint32_t> ChooseEventId(const EventMetadata& metadata);

  // Defines a thread and returns its index. Valid until RemoveThread or a sequence point that
  // flushes threads. Indices are never used twice in a section.
  absl::StatusOr<ThreadIndex> AddThread(const ThreadInfo& thread);

  // The thread is gone: no later event refers to it; readers learn its last sequence number.
  // FailedPrecondition if TraceEvent might remove another thread: see first_thread_index.
  absl::Status RemoveThread(ThreadIndex index);

  // The id of this label list or stack (leaf first), added if it is new since the last sequence
  // point. Valid until the next sequence point. Empty ones are kNoLabels and kNoStack.
  absl::StatusOr<LabelListId> InternLabels(const Labels& labels);
  absl::StatusOr<StackId> InternStack(std::span<const std::uint64_t> frames);

  // Appends an event; its sequence number is the next of its capture thread. After InvalidArgument
  // and OutOfRange (a limit of the format), and ResourceExhausted while the interval is full, the
  // event does not count. After an error of the sink it is dropped, and lost to readers as if
  // AddLost had been called.
  absl::Status WriteEvent(const EventRow& row, std::span<const std::byte> payload);

  // `count` events of `capture_thread` were lost here: its sequence number advances by as many.
  // OutOfRange if that would be over 2^31 - 1 since its last event or sequence point: readers take
  // such a gap for a step back.
  absl::Status AddLost(ThreadIndex capture_thread, std::uint64_t count);

  // Ends the interval, after the time of the one before (InvalidArgument if not): all events so far
  // are at or before `timestamp`, all later ones at or after it. Lists the last sequence number of
  // every capture thread. `flags`: kSequencePointFlush….
  absl::Status WriteSequencePoint(std::uint64_t timestamp, std::uint32_t flags = 0);

  // Hands every buffered block to the sink, and has that hand on what it holds back.
  absl::Status Flush();
  // Begins a section (see Sink::BeginSection) with a sequence point at `timestamp` that flushes
  // threads and metadata: no id from before is valid any more, and ids and indices are given anew
  // from the first ones on. EventIds keep their meaning. So prologue, any consecutive sections and
  // kEndOfStreamBlock (format.h) are a whole stream. After an error, of the sink or that of
  // WriteSequencePoint, all is as before and no section has begun.
  absl::Status StartSection(std::uint64_t timestamp);

  // Flush, then the sink's Sync: after OK, all events so far are durable as far as the sink can
  // tell.
  absl::Status Sync();
  // Flush, EndOfStream, the sink's Finish. Nothing may be written afterwards. Does not write a
  // sequence point. After an error it may be called again.
  absl::Status Finish();

  struct Stats {
    std::uint64_t events = 0;  // accepted by WriteEvent
    // Of those, the events in blocks that the sink has taken wholly and delivered.
    std::uint64_t events_written = 0;
    std::uint64_t events_dropped = 0;  // refused by WriteEvent as the sink took nothing
    std::uint64_t lost = 0;            // counted by AddLost; events_dropped are not in it
    std::uint64_t bytes = 0;           // taken by the sink
    std::uint64_t sequence_points = 0;
    std::uint64_t metadata = 0;        // rows
    std::uint64_t metadata_bytes = 0;  // of them
    std::uint64_t threads = 0;         // all that were ever defined, capture threads included
  };
  const Stats& stats() const;

 private:
  struct Impl;
  explicit Writer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace nettrace

#endif  // NETTRACE_CXX20
#endif  // NETTRACE_WRITER_H_
