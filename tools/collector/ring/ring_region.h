// Reads the region of a service: the memory through which the service passes events without
// user_events. libeventheader/base/ring_layout.h defines its layout. A chunk is a part of the
// region that has the records of one writer at a time.
#ifndef TOOLS_COLLECTOR_RING_RING_REGION_H_
#define TOOLS_COLLECTOR_RING_RING_REGION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "libeventheader/base/ring_layout.h"
#include "tools/base/unique_fd.h"

namespace collector {

// Identifies a sequence of events of one thread or of its signal handlers; see
// eh::internal::ring::Writer.
struct RingWriter {
  std::uint64_t ordinal = 0;  // unique within a region; 0: events of unknown threads
  std::uint32_t tid = 0;      // thread id in the service's pid namespace, as the service claims
  // 0: events of the thread; above 0: events of signal handlers that interrupted its writes
  std::uint32_t depth = 0;
};

struct RingRecord {
  RingWriter writer;
  std::uint64_t number;              // position among the events of the writer, from 0
  std::uint64_t lost_before;         // events lost between the writer's previous event and this one
  std::uint64_t timestamp;           // in ns of CLOCK_MONOTONIC, as the service claims
  std::uint32_t set;                 // index of the tracepoint in the region's table of names
  std::uint16_t cpu;                 // number of the CPU, as the service claims, or kUnknownCpu
  std::span<const std::byte> event;  // EventHeader bytes, valid during the call of Consume
};

// Reads the region of one service. The service may change the region at any moment, and may have
// filled it with anything. So this class loads each word once, copies each byte of a chunk once,
// and parses the copy. It copies with pread(), because reading a hole in the file through a mapping
// would allocate memory. The memory and work of each call are bounded. Not thread-safe.
//
// Read() passes events to the caller, and GiveBack() returns their chunks to the service. If the
// collector ends between the two calls, the next collector reads these events again, with the same
// numbers. So the caller must write the events to its files before it calls GiveBack().
class RingRegion {
 public:
  static constexpr std::uint64_t kNoNumber = ~std::uint64_t{0};
  struct Limits {
    std::uint64_t region_bytes = std::uint64_t{64} << 20;  // maximum size of the region, in bytes
  };
  // Returns whether the caller takes the event. If it does not, this event and all later events and
  // losses of its writer stay in the region, and the next Read() passes them again.
  using Consume = absl::FunctionRef<bool(const RingRecord&)>;
  // Receives the number of lost events of a writer, and the event number after the last of them.
  // Lost events of unknown threads (ordinal 0) are numbered across the region. Lost events that
  // Writer::lost_nested counts have no numbers: `next` is kNoNumber.
  using Lose = absl::FunctionRef<void(const RingWriter&, std::uint64_t lost, std::uint64_t next)>;
  using Name = absl::FunctionRef<void(std::uint32_t set, std::string_view name)>;

  // Opens the region whose descriptor a service has sent. Fails with OutOfRange if the file is
  // larger than the limit. Fails with InvalidArgument if the file is not a writable memfd of normal
  // pages, is not sealed against changes of its size, or does not begin with the header of a
  // region. Fails with another error if a system call fails, for example for lack of memory.
  static absl::StatusOr<std::unique_ptr<RingRegion>> Open(base::UniqueFd fd, const Limits& limits);
  RingRegion(const RingRegion&) = delete;
  RingRegion& operator=(const RingRegion&) = delete;
  ~RingRegion();

  // Random bytes that identify the region when the service connects again.
  const std::array<std::uint8_t, 16>& id() const { return id_; }
  std::uint32_t chunk_count() const { return chunk_count_; }

  // Passes the names of tracepoints that the service has added since the last call, at most `most`
  // names. Passes "" for a name that is invalid or cannot be read. Returns whether there are more
  // names.
  bool ReadNames(std::size_t most, Name name);
  // Makes the next call of ReadNames() start with the first name again.
  void RewindNames() { names_read_ = 0; }
  // Returns whether the service has ever written an event to the region.
  bool WasUsed() const;
  // Returns whether a previous collector has opened the region.
  bool had_collector() const { return had_collector_; }
  // Returns the number of event sets that the service has named.
  std::uint32_t CountNames() const;
  // Returns the name of the event set; "" if the name is invalid.
  std::string ReadName(std::uint32_t set) const;
  // Returns how many registrations of the event set the service has now.
  std::uint32_t CountUsers(std::uint32_t set) const;
  // Enables or disables an event set. The service applies the change when it receives the message
  // Enable.
  void SetEnabled(std::uint32_t set, bool enabled);
  // Makes the service use the choices of SetEnabled() for all event sets whose names ReadNames()
  // has passed so far. The service enables all other sets, until a later call of PublishEnabled()
  // includes them.
  void PublishEnabled();
  // Clears the choices of SetEnabled(), and undoes PublishEnabled(): the service enables all event
  // sets until the next call of PublishEnabled().
  void DisableAll();

  // States how far the collectors have read the events of a writer.
  struct Progress {
    RingWriter writer;
    std::uint64_t number;    // number of the next event that Read() can pass
    bool has_ended = false;  // the writer has been given back to the service
  };
  // Returns the progress of each writer that a collector has read, unless another writer has taken
  // its place in the region since.
  std::vector<Progress> ReadProgress() const;
  // Passes committed events to `consume` until at least `most_bytes` bytes of chunks have been
  // read. The events of each writer are passed in the order of their numbers. If all events have
  // been read, also passes the losses after the last event of each writer to `lose`. Returns
  // whether the limit `most_bytes` left chunks unread. Events that `consume` did not take do not
  // count as unread.
  bool Read(std::size_t most_bytes, Consume consume, Lose lose);
  // Returns whether the last Read() left events in the region because `consume` did not take them.
  bool left_events() const { return left_events_; }
  // Marks all complete chunks that Read() has read to their end, and for each writer the number of
  // the first event that Read() has not read. Also marks each writer that has ended, if the last
  // Read() has passed all its events and losses. Returns the ordinals of these writers. Must not be
  // called twice without GiveBackMarked().
  std::vector<std::uint64_t> Mark();
  // Returns the marked chunks and writers to the service. Before that, stores the marked numbers in
  // the region, so that the next collector reads each writer's events from its marked number on.
  void GiveBackMarked();
  void GiveBack() {
    Mark();
    GiveBackMarked();
  }

  // Makes the service send the message Full once `chunks` more chunks are complete than at the last
  // Read(). Returns true if that many chunks are complete already; the service may then send no
  // message.
  bool ArmBell(std::uint32_t chunks);

  // Numbers of chunks at the last Read(): chunks that the service may use, and chunks that were
  // neither free nor already read to their end.
  std::uint32_t usable_chunks() const { return usable_chunks_; }
  std::uint32_t used_chunks() const { return used_chunks_; }
  // Number of used chunks that were complete at the last Read(). Each used chunk that is not
  // complete belongs to a writer, which may be idle.
  std::uint32_t complete_chunks() const { return complete_chunks_; }
  // Number of invalid records and chunks, which a correct service cannot have written. Read() skips
  // the bytes from an invalid record to the end of the committed bytes of its chunk.
  std::uint64_t corrupt() const { return corrupt_; }
  // Number of losses that Read() has passed to `lose` without an event number. These are events of
  // signal handlers that interrupted a write of their thread when no other writer was available.
  std::uint64_t lost_nested() const { return lost_nested_; }

 private:
  struct Expected {
    std::uint64_t ordinal = 0;  // ordinal of the writer; 0: no writer has been read
    std::uint64_t number = 0;   // number of the next event to read
    std::uint64_t nested = 0;   // part of Writer::lost_nested that has been reported as lost
    std::uint64_t left = 0;     // value of reads_ when an event of the writer was not taken
  };
  // A copy of the words of a writer in the region, loaded at the start of Read().
  struct Seen {
    RingWriter writer;
    std::uint32_t index;
    std::uint64_t next;
    std::uint64_t lost_nested;
    bool exited;
  };
  // Holds how far Read() has read a chunk, until the chunk is given back.
  struct ChunkInfo {
    std::uint64_t serial = 0;
    std::uint64_t next = 0;  // minimum event number of the record at offset `read`
    RingWriter writer;
    std::uint32_t writer_index = 0;
    std::uint32_t read = 0;  // bytes of the chunk that have been read
    // Number of committed bytes, and whether the chunk was complete, at the last ListChunks.
    std::uint32_t committed = 0;
    bool is_complete = false;
    bool known = false;
    bool done = false;
    bool marked = false;
  };
  // Values that GiveBackMarked stores for a writer.
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
  // Reads the rest of a chunk. Returns the number of bytes that it has copied.
  std::size_t ReadChunk(std::uint32_t index, Consume consume);
  // Passes the events in `bytes`. Returns the number of bytes that have been read, which is less
  // than the size of `bytes` if an event was not taken.
  std::size_t Parse(ChunkInfo* info, std::span<const std::byte> bytes, Consume consume);
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
  std::uint64_t completed_ = 0;  // ServicePage::completed at the last Read()
  std::uint64_t corrupt_ = 0;
  std::uint64_t lost_nested_ = 0;
  std::uint64_t lost_without_writer_ = 0;
  std::uint64_t reads_ = 0;  // number of calls of Read()
  bool left_events_ = false;
  std::vector<Expected> expected_;  // by index of the writer
  std::vector<ChunkInfo> chunks_;   // by index of the chunk
  std::vector<std::uint32_t> finished_writers_;
  std::vector<Marked> marked_;
  std::vector<std::uint32_t> marked_finished_;
  std::uint64_t marked_without_writer_ = 0;
  // Buffers that keep their memory between calls of Read(), to save allocations.
  std::vector<Seen> seen_;
  std::vector<std::uint32_t> listed_;
  std::vector<std::byte> copy_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_RING_RING_REGION_H_
