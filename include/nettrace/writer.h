// Writes a NetTrace V6 stream. Blocks are appended to a sink as they fill. Memory use is bounded.
//
// To write a trace, call Create(). Then add metadata, threads, labels and stacks, each before the
// first event that refers to it, and write the events. Write a sequence point at intervals, for
// example each second. At the end, call Finish(). Rows are buffered. A row always reaches the sink
// before the first event that refers to it.
//
// Each capture thread (an OS thread, or a CPU's ring) has separate event blocks, because TraceEvent
// requires it. Its events must be written in the order of their timestamps. WriteEvent refuses an
// event that is earlier than the previous event of its capture thread or the previous sequence
// point.
//
// In text that is not valid UTF-8, the writer replaces each maximal subpart of an ill-formed
// sequence by one U+FFFD.
//
// When the sink fails, the writer keeps the blocks that the sink did not take. Every later call
// that writes passes them to the sink again, beginning with the rest of a partly taken block. The
// stream is therefore well-formed up to the last byte taken. When the buffers are full, the writer
// drops events. Stats counts the events that were accepted, written and dropped.
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
  // Maximum bytes of rows in an event block, 1 to 16,777,195. An open block is written before its
  // rows exceed this number. A row that is longer gets a separate block.
  std::size_t event_block_size = 64 * 1024;
  // Maximum bytes of the buffers of open blocks. Before the buffers exceed this, all open blocks
  // are written and their buffers freed.
  std::size_t max_buffer_bytes = 64 << 20;
  // Maximum entries of the tables in which the writer remembers the rows that events may refer to.
  // A call that would exceed a limit returns ResourceExhausted. Each sequence point empties the
  // tables of labels and stacks. A sequence point with a flush flag also empties the table of
  // threads or of metadata.
  std::size_t max_labels = 65536;
  std::size_t max_stacks = 65536;
  std::size_t max_threads = 1 << 20;  // at most 1 << 20
  // Maximum metadata rows. With traceevent_compatible, also the maximum number of EventIds that the
  // writer remembers after flushes of metadata. It remembers them because TraceEvent may use a row
  // from before a flush for an event after the flush. A flush that would exceed the limit forgets
  // the ids from before the previous flush.
  std::size_t max_metadata = 1 << 20;
  std::size_t max_label_bytes = 64 << 20;
  std::size_t max_stack_bytes = 64 << 20;
  // Maximum events, and maximum bytes of event rows, between two sequence points. A reader may hold
  // all of them in memory to sort them. The bytes are counted when a block is written, so they may
  // exceed the limit by the size of the open blocks.
  std::uint64_t max_interval_events = std::uint64_t{1} << 27;
  std::uint64_t max_interval_bytes = std::uint64_t{1} << 33;
  // Index of the first thread; must not be kNoThread. When a thread is removed, TraceEvent removes
  // the thread whose index equals the OS thread id of the removed thread. A caller of RemoveThread
  // should therefore choose an index above all OS thread ids: 4,194,305 on Linux. Larger indices
  // take more bytes in the file.
  ThreadIndex first_thread_index{1};
  // If true, the writer refuses rows that the specification allows but TraceEvent (PerfView,
  // dotnet-trace) misreads.
  bool traceevent_compatible = true;
};

// Holds the values of an event's row, except its payload and sequence number.
struct EventRow {
  MetadataId metadata_id = kNoMetadata;
  ThreadIndex capture_thread = kNoThread;  // the thread that numbers this event
  ThreadIndex thread = kNoThread;          // the thread that the event is about
  std::uint32_t processor = 0;
  std::uint64_t timestamp = 0;  // ticks
  StackId stack_id = kNoStack;
  LabelListId label_list_id = kNoLabels;
};

// Writes one stream. Every function that returns a status may also return an error of the sink.
// After Finish() has written EndOfStream, these functions fail with FailedPrecondition. Only
// Finish() may be called again, if it has returned an error.
class Writer {
 public:
  // Creates a writer that owns `sink`. Writes the stream header and the Trace block, which are the
  // stream's prologue, and begins the sink's first section. Returns InvalidArgument for wrong
  // options or a wrong `info`, and OutOfRange if `info` is too long for a block.
  static absl::StatusOr<std::unique_ptr<Writer>> Create(std::unique_ptr<Sink> sink,
                                                        const TraceInfo& info,
                                                        const WriterOptions& options = {});
  // Does not call Finish(). Without Finish(), the stream ends without an EndOfStream block, which
  // readers report as an error.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Defines a metadata row and returns its id, valid until a sequence point that flushes metadata.
  // Returns InvalidArgument for a field type that cannot be written. With traceevent_compatible,
  // also returns InvalidArgument if TraceEvent would misread the row, or could not distinguish its
  // events from other events. Returns OutOfRange if the row is too long, and ResourceExhausted if
  // there are already max_metadata rows.
  absl::StatusOr<MetadataId> AddMetadata(const EventMetadata& metadata);

  // Returns an EventId for `metadata`, but does not define the row. The caller stores the result in
  // EventMetadata::event_id, and then calls AddMetadata. TraceEvent identifies events by provider
  // and EventId, so rows of a provider that differ in name, fields or opcode need different
  // EventIds. Returns metadata.event_id if it is 1 to 65533 and no row with other name, fields or
  // opcode has it. Otherwise derives an EventId from name, fields and opcode, so that it is usually
  // the same in every stream. Returns nullopt if the search finds no free EventId. To bound
  // its work, the search usually skips EventIds that an earlier call found taken. Call this
  // function only with traceevent_compatible, because the writer otherwise does not remember
  // EventIds. If the provider is Universal.Events, AddMetadata may refuse the row in spite of the
  // new EventId, because all rows with one name need the same EventId.
  std::optional<std::uint32_t> ChooseEventId(const EventMetadata& metadata);

  // Defines a thread and returns its index, valid until RemoveThread or a sequence point that
  // flushes threads. An index is not reused within a section. Returns ResourceExhausted at
  // max_threads, and OutOfRange if the row is too long.
  absl::StatusOr<ThreadIndex> AddThread(const ThreadInfo& thread);

  // Ends a thread: no later event may refer to it, and readers learn its last sequence number.
  // Returns InvalidArgument if there is no such thread, and FailedPrecondition if TraceEvent might
  // remove another thread: see first_thread_index.
  absl::Status RemoveThread(ThreadIndex index);

  // Returns the id of a label list, which is valid until the next sequence point. Adds the list to
  // the stream if it is new since the last sequence point. The id of an empty list is kNoLabels.
  // Returns ResourceExhausted at max_labels or max_label_bytes.
  absl::StatusOr<LabelListId> InternLabels(const Labels& labels);
  // Returns the id of a stack, with the rules of InternLabels and the limits max_stacks and
  // max_stack_bytes. The first frame is the leaf. The id of an empty stack is kNoStack. Returns
  // OutOfRange for too many frames, and InvalidArgument for a frame that needs more bytes than a
  // pointer.
  absl::StatusOr<StackId> InternStack(std::span<const std::uint64_t> frames);

  // Appends an event with the next sequence number of its capture thread. Returns InvalidArgument
  // if an id is not defined, or if the time is out of order or range. Returns OutOfRange if the
  // payload is too large, and ResourceExhausted if the interval is full. An event with one of these
  // errors takes no number, so readers do not see it as lost. If WriteEvent returns an error of the
  // sink, the event is dropped and takes a number, so readers see it as lost.
  absl::Status WriteEvent(const EventRow& row, std::span<const std::byte> payload);

  // Advances the sequence number of `capture_thread` by `count`, so that readers count `count` lost
  // events at this point. Returns InvalidArgument if there is no such thread. Returns OutOfRange if
  // the gap since the thread's last event or sequence point would exceed 2^31-1: readers treat such
  // a gap as a step back.
  absl::Status AddLost(ThreadIndex capture_thread, std::uint64_t count);

  // Makes the writer count the events of this capture thread in Stats::events_written_apart as well
  // as in Stats::events_written. The caller can subtract the former from the latter to leave
  // out certain events, such as those that describe the recording itself. Does nothing if there is
  // no such thread.
  void CountApart(ThreadIndex capture_thread);

  // Ends the interval. All events so far must be at or before `timestamp`, and all later events at
  // or after it. Lists the last sequence number of every capture thread. `flags` combines
  // kSequencePointFlushThreads and kSequencePointFlushMetadata. Returns InvalidArgument if
  // `timestamp` is not after the previous sequence point, is before an event or exceeds
  // kMaxTimestamp, or if a flag is unknown.
  absl::Status WriteSequencePoint(std::uint64_t timestamp, std::uint32_t flags = 0);

  // Passes every buffered block to the sink, and flushes the sink.
  absl::Status Flush();
  // Begins a section (see Sink::BeginSection) with a sequence point at `timestamp` that flushes
  // threads and metadata. Earlier ids and indices become invalid. New ids and indices start again
  // at the first values. EventIds keep their meaning. The prologue, any consecutive sections and
  // kEndOfStreamBlock (format.h) therefore form a complete stream. After an error, no section has
  // begun, and all ids and indices remain valid. If Sink::BeginSection() fails, the next call that
  // writes calls it again and returns its error.
  absl::Status StartSection(std::uint64_t timestamp);

  // Calls Flush(), then the sink's Sync(). After OK, all events so far are durable, as far as the
  // sink can ensure that.
  absl::Status Sync();
  // Flushes, writes EndOfStream and calls the sink's Finish(). Does not write a sequence point. May
  // be called again after an error. Fails with FailedPrecondition if an earlier call returned OK.
  absl::Status Finish();

  struct Stats {
    std::uint64_t events = 0;  // accepted by WriteEvent
    // Events in blocks that the sink has taken completely and delivered.
    std::uint64_t events_written = 0;
    std::uint64_t events_dropped = 0;  // refused by WriteEvent because the sink failed
    std::uint64_t lost = 0;            // passed to AddLost; does not include events_dropped
    std::uint64_t bytes = 0;           // taken by the sink
    std::uint64_t sequence_points = 0;
    std::uint64_t metadata = 0;        // rows
    std::uint64_t metadata_bytes = 0;  // bytes of metadata rows
    std::uint64_t threads = 0;         // threads defined in total, including capture threads
    // Events in events_written whose capture thread was passed to CountApart.
    std::uint64_t events_written_apart = 0;
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
