// Reads a NetTrace stream of V4, V5 or V6: pull events and sequence points in file order, with
// threads, metadata, stacks and labels resolved and lost events counted.
//
//   auto reader = Reader::Open(std::make_unique<MemorySource>(bytes));
//   for (auto step = (*reader)->Next(); step != Reader::Step::kEnd; step = (*reader)->Next()) {
//     if (step == Reader::Step::kEvent) Use((*reader)->event());
//   }
//   if (!(*reader)->status().ok()) ...  // cut or damaged: all before the damage was delivered
//
// Memory: one block, and what the stream's tables hold, bounded by ReaderOptions.
// Not thread-safe. Nothing here throws, prints or aborts.
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
  // The tables (metadata, threads, stacks, label lists) may hold so many bytes at a time, by
  // estimate. Reading stops beyond it.
  std::size_t max_table_bytes = std::size_t{1} << 30;
  // The largest block read from a V4 or V5 stream, bytes; V6 blocks have less than 16 MiB.
  std::size_t max_legacy_block_size = std::size_t{64} << 20;
};

// An event. Its pointers are never null. It is valid until the reader's next step; the metadata,
// threads, stack and (V6) labels that it points to are valid until the step after the next sequence
// point.
struct Event {
  std::uint64_t offset = 0;  // of its row in the stream
  MetadataId metadata_id = kNoMetadata;
  const EventMetadata* metadata = nullptr;
  ThreadIndex thread_index = kNoThread;  // the thread it is about
  const ThreadInfo* thread = nullptr;
  ThreadIndex capture_thread_index = kNoThread;  // the thread that numbered it
  const ThreadInfo* capture_thread = nullptr;
  std::uint32_t sequence_number = 0;
  // Events of the capture thread that are missing directly before this one.
  std::uint64_t lost_before = 0;
  std::uint32_t processor = 0;
  std::uint64_t timestamp = 0;  // ticks
  bool is_sorted = false;       // no later event has an earlier timestamp
  const Labels* labels = nullptr;
  std::span<const std::byte> stack;  // instruction pointers of the trace's pointer size, leaf first
  std::span<const std::byte> payload;
  PayloadEncoding payload_encoding = PayloadEncoding::kV6;

  // A label, where there is one, overrides the metadata. 0 where neither says.
  std::uint8_t level() const;
  std::uint64_t keywords() const;
  std::uint8_t opcode() const;
  std::uint8_t version() const;
};

struct SequencePoint {
  struct Loss {
    ThreadIndex thread_index = kNoThread;
    std::uint64_t count = 0;  // events missing at the end of this thread's events so far
    const ThreadInfo* thread = nullptr;
  };
  std::uint64_t offset = 0;  // of its block in the stream
  std::uint64_t timestamp = 0;
  std::uint32_t flags = 0;
  std::vector<Loss> losses;  // only threads that lost any; their rows are valid until the next step
};

struct RemovedThread {
  ThreadIndex thread_index = kNoThread;
  std::uint64_t lost = 0;              // events missing at the end of this thread's events
  const ThreadInfo* thread = nullptr;  // until the step after the next sequence point
};

// Where and why reading stopped before EndOfStream.
struct Damage {
  std::uint64_t offset = 0;      // of what could not be read
  std::uint64_t bytes_left = 0;  // from the block that offset lies in to the end of the stream
  std::string reason;
};

class Reader {
 public:
  struct Stats {
    std::uint64_t events = 0;
    // Counted by gaps in the numbers of events, sequence points and removed threads. As in
    // TraceEvent a number that goes back counts 2^31-1.
    std::uint64_t lost = 0;
    std::uint64_t sequence_points = 0;
    std::uint64_t threads = 0;                     // rows; V4, V5: threads seen
    std::uint64_t metadata = 0;                    // rows
    std::uint64_t bytes = 0;                       // of the stream, read so far
    std::optional<std::uint64_t> first_timestamp;  // minimum and maximum of all events
    std::optional<std::uint64_t> last_timestamp;
    std::array<std::uint64_t, 256> blocks = {};        // by block kind, unknown ones included
    std::optional<std::uint64_t> last_sequence_point;  // timestamp of the last one
    bool complete = false;                             // EndOfStream was there
  };

  enum class Step : std::uint8_t { kEvent, kSequencePoint, kRemovedThread, kEnd };

  // Reads the stream header and the Trace block. Errors: InvalidArgument, no NetTrace stream;
  // Unimplemented, a version that is not read; the source's own. A stream that is cut before the
  // end of its Trace block is opened, with defaults in trace(), and ends at once, with status().
  static absl::StatusOr<std::unique_ptr<Reader>> Open(std::unique_ptr<Source> source,
                                                      const ReaderOptions& options = {});
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // The stream's version, e.g. 6 and 0; 4 for V4 and V5, which are alike; 0 if it is cut before
  // that.
  std::uint32_t major_version() const;
  std::uint32_t minor_version() const;
  const TraceInfo& trace() const;

  // Goes to the next event, sequence point or removed thread. A sequence point's and a removed
  // thread's effect on the tables comes with the step after it.
  Step Next();
  const Event& event() const;                   // after kEvent
  const SequencePoint& sequence_point() const;  // after kSequencePoint
  const RemovedThread& removed_thread() const;  // after kRemovedThread

  // After kEnd: OK if EndOfStream was reached, else what was damaged or missing, with its offset.
  const absl::Status& status() const;
  const std::optional<Damage>& damage() const;
  const Stats& stats() const;
  // Why TraceEvent, the library of PerfView and dotnet-trace, shows nothing of this stream, though
  // it is read here; empty if nothing of the kind was met so far.
  const std::string& traceevent_refusal() const;
  // UTC of a timestamp, by the trace's sync time, to the nanosecond.
  absl::Time TimeOf(std::uint64_t ticks) const;

 private:
  struct Impl;
  explicit Reader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The name of a block kind, e.g. "SequencePoint"; "Unknown" if there is none.
const char* BlockKindName(std::uint8_t kind);

}  // namespace nettrace

#endif  // NETTRACE_CXX20
#endif  // NETTRACE_READER_H_
