// Reads the memory by which a service passes events without user_events (ring_layout.h).
#ifndef TOOLS_COLLECTOR_RING_RING_REGION_H_
#define TOOLS_COLLECTOR_RING_RING_REGION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "libeventheader/base/ring_layout.h"
#include "tools/base/unique_fd.h"

namespace collector {

// A sequence of events of one thread; see eh::internal::ring::Writer.
struct RingWriter {
  std::uint64_t ordinal = 0;  // never used twice in a region; 0: the threads are unknown
  std::uint32_t tid = 0;      // the service's claim, in its pid namespace
  std::uint32_t depth = 0;    // above 0: events of signal handlers that interrupted the thread
};

struct RingRecord {
  RingWriter writer;
  std::uint64_t number;       // of the event among those of its writer, from 0
  std::uint64_t lost_before;  // events of the writer lost between the previous event and this one
  std::uint64_t timestamp;    // the service's claim, in ns of CLOCK_MONOTONIC
  std::uint32_t set;          // index of the tracepoint
  std::uint16_t cpu;          // the service's claim; kUnknownCpu: unknown
  std::span<const std::byte> event;  // EventHeader bytes, valid during the call
};

// The region of one service. The service may change it at any moment, and may have filled it with
// anything. So the reader loads each word once, copies each byte once, and parses the copy. Chunks
// are copied by pread, so that a hole in the file costs the collector no memory. Memory and work of
// each call are bounded. Not thread-safe.
//
// Read delivers events, and GiveBack returns the chunks to the service. If the collector ends
// between the two, the next collector gets these events once more, with the same numbers. So the
// caller gives back what is safe in its files, and calls SkipTo for events that are already there.
class RingRegion {
 public:
  static constexpr std::uint64_t kNoNumber = ~std::uint64_t{0};
  struct Limits {
    std::uint64_t region_bytes = std::uint64_t{64} << 20;  // maximum size of the region
  };
  using Consume = absl::FunctionRef<void(const RingRecord&)>;
  // Receives `lost` events of the writer, the last of which has the number `next` - 1. Lost events
  // of unknown writers are numbered in the region. Some have no number: then `next` is kNoNumber.
  using Lose =
      absl::FunctionRef<void(const RingWriter&, std::uint64_t lost, std::uint64_t next)>;
  using Name = absl::FunctionRef<void(std::uint32_t set, std::string_view name)>;

  // Takes the descriptor that a service has sent. Fails if it is not a region: not a memfd, not
  // sealed against changes of its size, too large, of another version.
  static absl::StatusOr<std::unique_ptr<RingRegion>> Open(base::UniqueFd fd, const Limits& limits);
  RingRegion(const RingRegion&) = delete;
  RingRegion& operator=(const RingRegion&) = delete;
  ~RingRegion();

  // Random bytes that identify the region when the service connects again.
  const std::array<std::uint8_t, 16>& id() const { return id_; }
  std::uint32_t chunk_count() const { return chunk_count_; }

  // Passes the names that were added since the last call, at most `most`. A name that is not valid
  // is passed as "". Returns whether there are more.
  bool ReadNames(std::size_t most, Name name);
  // Makes ReadNames pass all names again.
  void RewindNames() { names_read_ = 0; }
  // Returns whether the service has written events to the region at some time.
  bool WasUsed() const;
  // Returns whether a previous collector has had the region.
  bool had_collector() const { return had_collector_; }
  // Returns how often the service has registered the set; 0: not now.
  std::uint32_t CountUsers(std::uint32_t set) const;
  // Enables or disables a set. The service notices when it receives the message Enable.
  void SetEnabled(std::uint32_t set, bool enabled);
  // Makes the choices of SetEnabled valid for all sets whose names ReadNames has passed so far. The
  // service enables the other sets, until a later call includes them.
  void PublishEnabled();
  // Disables all sets, and makes no choice valid.
  void DisableAll();

  // Passes committed events to `consume`, in the order of each writer, until `most_bytes` bytes of
  // chunks were read. If all were read, also passes the losses after the last events to `lose`.
  // Returns whether there are more.
  bool Read(std::size_t most_bytes, Consume consume, Lose lose);
  // Marks all chunks that Read has read to their end, and which events do not have to be read
  // again. Also marks the writers that have ended and whose events and losses were all passed by
  // the last Read, and returns their ordinals. Must not be called twice without GiveBackMarked.
  std::vector<std::uint64_t> Mark();
  // Returns the marked chunks and writers to the service, and stores in the region which events do
  // not have to be read again.
  void GiveBackMarked();
  // Calls Mark and GiveBackMarked.
  void GiveBack() {
    Mark();
    GiveBackMarked();
  }
  // Makes Read skip the writer's events, and losses of events, whose numbers are below `number`.
  void SkipTo(std::uint64_t ordinal, std::uint64_t number);

  // Makes the service send Full once `chunks` more chunks are complete. Returns true if they are
  // already: then there will be no message.
  bool ArmBell(std::uint32_t chunks);

  // Chunks that the service may use, and those of them that were neither free nor already read to
  // their end at the last Read.
  std::uint32_t usable_chunks() const { return usable_chunks_; }
  std::uint32_t used_chunks() const { return used_chunks_; }
  // Those of the used chunks that were complete at the last Read. The others have writers, which
  // may be idle.
  std::uint32_t complete_chunks() const { return complete_chunks_; }
  // Number of records and chunks that a correct service cannot have written. Reading continues with
  // the next chunk.
  std::uint64_t corrupt() const { return corrupt_; }

 private:
  struct Expected {
    std::uint64_t ordinal = 0;  // 0: unknown
    std::uint64_t number = 0;   // the next one
    std::uint64_t skip_to = 0;
    std::uint64_t nested = 0;  // the part of Writer::lost_nested that was reported
  };
  // A writer, as loaded at the start of Read.
  struct Seen {
    RingWriter writer;
    std::uint32_t index;
    std::uint64_t next;
    std::uint64_t lost_nested;
    bool exited;
  };
  // The state of a chunk for Read, until it is given back.
  struct ChunkInfo {
    std::uint64_t serial = 0;
    std::uint64_t next = 0;  // number of the record at `read`
    RingWriter writer;
    std::uint32_t writer_index = 0;
    std::uint32_t read = 0;  // bytes
    // Bytes that were committed, and whether they were final, when the chunk was listed.
    std::uint32_t committed = 0;
    bool is_complete = false;
    bool known = false;
    bool done = false;
    bool marked = false;
  };
  // What GiveBackMarked stores for a writer.
  struct Marked {
    std::uint32_t index;
    std::uint64_t number;
    std::uint64_t nested;
  };

  RingRegion() = default;

  eh::internal::ring::CollectorPage& collector_page() const;
  const eh::internal::ring::ServicePage& service_page() const;
  eh::internal::ring::Writer& writer(std::uint32_t index) const;
  eh::internal::ring::ChunkControl& control(std::uint32_t index) const;

  void ReadWriters();
  void ListChunks();
  Expected& ExpectedOf(std::uint32_t index, const RingWriter& writer);
  void ReadChunk(std::uint32_t index, Consume consume);
  void Parse(ChunkInfo* info, std::span<const std::byte> bytes, Consume consume);
  void ReadTrailingLosses(Lose lose);

  base::UniqueFd fd_;
  std::byte* base_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::array<std::uint8_t, 16> id_{};
  std::uint32_t chunk_count_ = 0;
  std::uint32_t names_read_ = 0;
  bool had_collector_ = false;
  std::uint32_t usable_chunks_ = 0;
  std::uint32_t used_chunks_ = 0;
  std::uint32_t complete_chunks_ = 0;
  std::uint64_t completed_ = 0;  // ServicePage::completed at the last Read
  std::uint64_t corrupt_ = 0;
  std::uint64_t lost_without_writer_ = 0;
  std::vector<Expected> expected_;  // by index of the writer
  std::vector<ChunkInfo> chunks_;   // by index
  std::vector<std::uint32_t> finished_writers_;
  std::vector<Marked> marked_;
  std::vector<std::uint32_t> marked_finished_;
  std::uint64_t marked_without_writer_ = 0;
  // Kept between calls to save allocations.
  std::vector<Seen> seen_;
  std::vector<std::uint32_t> listed_;
  std::vector<std::byte> copy_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_RING_RING_REGION_H_
