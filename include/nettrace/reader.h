// Reads a NetTrace stream of V4, V5 or V6. The caller pulls events and sequence points in file
// order. The reader resolves the ids of threads, metadata, stacks and labels, and counts lost
// events.
//
//   auto reader = Reader::Open(std::make_unique<MemorySource>(bytes));
//   for (auto step = (*reader)->Next(); step != Reader::Step::kEnd; step = (*reader)->Next()) {
//     if (step == Reader::Step::kEvent) Use((*reader)->event());
//   }
//   if (!(*reader)->status().ok()) ...  // cut or damaged: all earlier events were returned
//
// Memory holds one block (less than 16 MiB in V6), or a few blocks with ReaderOptions::skip_damage,
// and the stream's tables, which ReaderOptions bounds. Not thread-safe. Nothing here throws, prints
// or aborts.
#ifndef NETTRACE_READER_H_
#define NETTRACE_READER_H_

#include "nettrace/need_cxx20.h"

#ifdef NETTRACE_CXX20

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/ids.h"
#include "nettrace/payload.h"
#include "nettrace/schema.h"
#include "nettrace/source.h"

namespace nettrace {

struct ReaderOptions {
  // Maximum estimated size of the tables (metadata, threads, stacks, label lists), in bytes.
  // Reading stops if they would grow larger, even with skip_damage.
  std::size_t max_table_bytes = std::size_t{1} << 30;
  // Maximum size of a block in a V4 or V5 stream, in bytes. V6 blocks have less than 16 MiB.
  std::size_t max_legacy_block_size = std::size_t{64} << 20;
  // If true, the reader continues after damaged parts, and skipped() lists them. If false, reading
  // stops at the first damage.
  bool skip_damage = false;
  // If true, the error Unavailable of the source means that more bytes will arrive later. Open()
  // then succeeds at once, or Next() returns kEnd at once, and is_waiting() returns true. If false,
  // Unavailable ends reading like any other error. Must not be combined with skip_damage.
  bool waits = false;
};

// An event, valid until the next call of Next(). The metadata, threads, stack and (V6) labels that
// it points to are valid longer: after Next() has returned kSequencePoint, the next call of Next()
// makes them invalid. The pointers are never null.
struct Event {
  std::uint64_t offset = 0;  // bytes from the stream's start to the event's row
  MetadataId metadata_id = kNoMetadata;
  const EventMetadata* metadata = nullptr;
  ThreadIndex thread_index = kNoThread;  // the thread that the event is about
  // The row of that thread. If the row has no process id, ThreadInfo::process_id is that of the
  // trace (kKeyProcessId).
  const ThreadInfo* thread = nullptr;
  ThreadIndex capture_thread_index = kNoThread;  // the thread that numbered the event
  const ThreadInfo* capture_thread = nullptr;
  std::uint32_t sequence_number = 0;
  // Events of the capture thread that were lost directly before this event.
  std::uint64_t lost_before = 0;
  std::uint32_t processor = 0;
  std::uint64_t timestamp = 0;  // ticks
  bool is_sorted = false;       // true if no later event has an earlier timestamp
  const Labels* labels = nullptr;
  std::span<const std::byte> stack;  // instruction pointers of the trace's pointer size, leaf first
  std::span<const std::byte> payload;
  PayloadEncoding payload_encoding = PayloadEncoding::kV6;

  // Return the event's label if it has one, else the value in the metadata, else 0.
  std::uint8_t level() const;
  std::uint64_t keywords() const;
  std::uint8_t opcode() const;
  std::uint8_t version() const;
};

// A sequence point of the stream, with the losses that it shows. In a valid stream, no event after
// a sequence point is earlier than its timestamp, and no event before it is later.
struct SequencePoint {
  struct Loss {
    ThreadIndex thread_index = kNoThread;
    std::uint64_t count = 0;  // events missing after this thread's last event so far
    const ThreadInfo* thread = nullptr;
  };
  std::uint64_t offset = 0;  // bytes from the stream's start to the sequence point's block
  std::uint64_t timestamp = 0;
  std::uint32_t flags = 0;
  // Only threads with losses. Loss::thread is valid until the next call of Next().
  std::vector<Loss> losses;
};

// A thread that a RemoveThread row of the stream has ended. In a valid stream, no later event
// refers to the thread.
struct RemovedThread {
  ThreadIndex thread_index = kNoThread;
  std::uint64_t lost = 0;              // events missing after this thread's last event
  const ThreadInfo* thread = nullptr;  // valid for as long as Event::thread
};

// Holds the place at which reading stopped before EndOfStream, and the reason.
struct Damage {
  std::uint64_t offset = 0;  // bytes from the stream's start to the part that could not be read
  // Bytes from the start of the block that contains `offset` to the end of the stream.
  std::uint64_t bytes_left = 0;
  std::string reason;
};

// A part of the stream that a reader with skip_damage skipped. The reader skips bytes between
// blocks, and a block from its first bad row to its end. It also skips events that refer to skipped
// metadata or threads. Events that refer to skipped label lists have no labels. If a metadata id is
// defined twice, the reader uses the first definition, unless a sequence point may have been
// skipped between the two definitions. For other ids, it uses the last definition.
struct SkippedPart {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // 0 if the reason is an id that is defined twice
  std::string reason;
  // Approximate number of events that are missing because of this part. It is computed from the
  // sequence numbers of the events up to the next sequence point, and may include other losses. It
  // is estimated from the skipped bytes if the sequence numbers show no loss, or more than 4 times
  // the events that fit in these bytes.
  std::uint64_t events = 0;
};

class Reader {
 public:
  // Maximum number of parts that skipped() lists. The last of them also contains the bytes and
  // events of all later parts.
  static constexpr std::size_t kMaxSkipped = 1000;

  struct Stats {
    std::uint64_t events = 0;
    // Lost events, computed from gaps in the sequence numbers of events, sequence points and
    // removed threads. A sequence number that goes back counts as 2^31-1 lost events, as in
    // TraceEvent.
    std::uint64_t lost = 0;
    std::uint64_t sequence_points = 0;
    std::uint64_t threads = 0;                         // rows; in V4 and V5: threads seen
    std::uint64_t metadata = 0;                        // rows
    std::uint64_t bytes = 0;                           // read so far
    std::optional<std::uint64_t> first_timestamp;      // minimum over all events
    std::optional<std::uint64_t> last_timestamp;       // maximum over all events
    std::array<std::uint64_t, 256> blocks = {};        // by block kind, including unknown kinds
    std::optional<std::uint64_t> last_sequence_point;  // timestamp of the latest sequence point
    bool complete = false;                             // EndOfStream was read
  };

  enum class Step : std::uint8_t { kEvent, kSequencePoint, kRemovedThread, kEnd };

  // Reads the stream header and the Trace block. Returns InvalidArgument if this is not a NetTrace
  // stream, Unimplemented if its version is not supported, or the source's error. Also opens a
  // stream that is cut or damaged before the end of its Trace block. Then trace() has defaults,
  // Next() returns kEnd, and status() names the part that is missing or damaged. With
  // ReaderOptions::waits, the Trace block may not have arrived yet; Next() then reads it, and
  // status() has the errors of Open().
  static absl::StatusOr<std::unique_ptr<Reader>> Open(std::unique_ptr<Source> source,
                                                      const ReaderOptions& options = {});
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Return the version of the stream, e.g. 6 and 0. For V4 and V5, the minor version is 0, and the
  // major version is that of the Trace object, which may be 4 in both. The major version is also 4
  // if such a stream ends before the Trace object. Both are 0 if the stream ends within its header.
  std::uint32_t major_version() const;
  std::uint32_t minor_version() const;
  const TraceInfo& trace() const;

  // Moves to the next event, sequence point or removed thread. The comments of Event, SequencePoint
  // and RemovedThread state how long their pointers are valid.
  Step Next();
  // After kEnd, returns whether reading stopped only because the source has no more bytes yet. A
  // later call of Next() then continues at this point. Always false without ReaderOptions::waits.
  bool is_waiting() const;
  const Event& event() const;                   // after kEvent
  const SequencePoint& sequence_point() const;  // after kSequencePoint
  const RemovedThread& removed_thread() const;  // after kRemovedThread

  // After kEnd: returns OK if the EndOfStream block was read. Else returns an error with the offset
  // at which reading stopped and the reason: damage, a missing part, a limit or an error of the
  // source.
  const absl::Status& status() const;
  const std::optional<Damage>& damage() const;  // no value if status() is OK
  // Returns the skipped parts, in stream order; none without ReaderOptions::skip_damage. Skipped
  // parts do not change status().
  const std::vector<SkippedPart>& skipped() const;
  const Stats& stats() const;
  // Returns why TraceEvent, the library of PerfView and dotnet-trace, shows nothing of this stream
  // although this reader reads it. Empty if no such reason was found so far.
  const std::string& traceevent_refusal() const;
  // Returns the UTC time of a timestamp, computed from the trace's sync time, to the nanosecond.
  absl::Time TimeOf(std::uint64_t ticks) const;

 private:
  struct Impl;
  explicit Reader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Returns the name of a block kind, e.g. "SequencePoint"; "Unknown" if the kind is not known.
const char* BlockKindName(std::uint8_t kind);

}  // namespace nettrace

#endif  // NETTRACE_CXX20
#endif  // NETTRACE_READER_H_
