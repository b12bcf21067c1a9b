// Reads a NetTrace V6 stream, from front to back, in memory bounded by its blocks and tables.
#ifndef NETTRACE_READER_H_
#define NETTRACE_READER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/schema.h"
#include "nettrace/source.h"

namespace nettrace {

// One event with all it refers to. Pointers and views are valid until the next call of
// Reader::Next.
struct Event {
  const EventMetadata* metadata = nullptr;
  std::uint32_t metadata_id = 0;
  const ThreadInfo* thread = nullptr;          // that the event is about
  const ThreadInfo* capture_thread = nullptr;  // that recorded and numbered it
  std::uint64_t thread_index = 0;
  std::uint64_t capture_thread_index = 0;
  std::uint32_t sequence_number = 0;
  std::uint32_t processor = 0;
  std::uint64_t timestamp = 0;  // ticks
  bool is_sorted = false;
  std::span<const std::byte> stack;  // instruction pointers of the trace's pointer size, leaf first
  const Labels* labels = nullptr;    // never null
  std::span<const std::byte> payload;

  // What a label says, else the metadata row, else 0.
  std::uint8_t level() const;
  std::uint64_t keywords() const;
  std::uint8_t opcode() const;
  std::uint8_t version() const;
};

// Not thread-safe. Nothing here throws, prints or aborts, whatever the bytes are.
class Reader {
 public:
  struct Stats {
    std::uint64_t events = 0;
    std::uint64_t lost = 0;  // by gaps in the numbers of events, and by sequence points
    std::uint64_t sequence_points = 0;
    std::uint64_t threads = 0;                     // rows
    std::uint64_t metadata = 0;                    // rows
    std::uint64_t bytes = 0;                       // of the stream, read so far
    std::optional<std::uint64_t> first_timestamp;  // least and greatest of all events
    std::optional<std::uint64_t> last_timestamp;
    std::array<std::uint64_t, 256> blocks = {};  // by block kind
    bool complete = false;                       // EndOfStream was there
  };

  // Reads the stream header and the Trace block. InvalidArgument: not a NetTrace stream.
  // Unimplemented: another version of it, by name. DataLoss: cut or damaged.
  static absl::StatusOr<std::unique_ptr<Reader>> Open(std::unique_ptr<Source> source);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // The stream's version, e.g. 6 and 0.
  std::uint32_t major_version() const;
  std::uint32_t minor_version() const;
  const TraceInfo& trace() const;

  // The next event in the order of the file; false at its end. DataLoss says at which offset the
  // stream is cut or damaged, and why; all events of the blocks before have been delivered then.
  absl::StatusOr<bool> Next(Event* event);

  const Stats& stats() const;
  // UTC of a timestamp, by the trace's sync time.
  absl::Time TimeOf(std::uint64_t ticks) const;

 private:
  struct Impl;
  explicit Reader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The name of a block kind, e.g. "SequencePoint"; "Unknown" if there is none.
const char* BlockKindName(std::uint8_t kind);

}  // namespace nettrace

#endif  // NETTRACE_READER_H_
