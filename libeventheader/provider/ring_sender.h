// The service's side of an inline connection: sends the changes of the region over the socket, and
// applies the changes that the collector sends. See InlineReason in ring_layout.h.
#ifndef LIBEVENTHEADER_PROVIDER_RING_SENDER_H_
#define LIBEVENTHEADER_PROVIDER_RING_SENDER_H_

#include <cstddef>
#include <cstdint>

#include "libeventheader/base/ring_layout.h"

namespace eh::internal {

// Sends the region in rounds. A round sends the changes that were made before it began, in this
// order: the names of sets, the service page, the numbers of registrations of the sets, new
// writers, the committed records with their chunks, and the counts of the writers. Chunks are sent
// oldest first, and counts are read before the chunks. At any moment, the collector's copy
// therefore has the records of all events that its counts include, except lost events. New writers
// are sent before their chunks, because the collector needs Writer::accounted: it skips the events
// before this number, and raises the number before it frees chunks. Never blocks. Not
// thread-safe: the transport's lock guards it.
class RingSender {
 public:
  enum class Result : std::uint8_t {
    kDone,     // the round is complete
    kBlocked,  // send() failed with errno; EAGAIN: call Pump() again when the socket is writable
  };

  constexpr RingSender() noexcept = default;

  // Begins a connection for the region at `base`, whose copy in the collector is empty. The queue
  // of the socket must not become smaller later, because it limits the size of messages. Returns
  // false if memory for the state of the connection cannot be allocated.
  bool Start(std::byte* base, std::uint32_t chunk_count, int socket) noexcept;
  // Ends the connection. Keeps the memory for the next connection.
  void Stop() noexcept { base_ = nullptr; }
  bool is_started() const noexcept { return base_ != nullptr; }
  // Frees the memory.
  void Close() noexcept;

  // Returns the contents of the message Hello.
  ring::InlineHello MakeHello() const noexcept;
  // Continues the round, or begins one, and sends as much as the socket takes.
  Result Pump(int socket) noexcept;
  bool is_in_round() const noexcept { return phase_ != Phase::kIdle; }
  // Sends the counts of all writers as they are now, instead of the rest of the round. The counts
  // then include events whose records were not sent, and the collector counts these as lost.
  // Returns false if the socket does not take all messages. The connection must end afterwards.
  bool SendCounts(int socket) noexcept;
  // Applies the Patches of a message from the collector. Returns false if one of them is invalid.
  bool Apply(const std::byte* patches, std::size_t size) noexcept;
  // Returns a buffer of ring::kMaxPayload bytes for the Patches of a message from the collector.
  std::byte* input() const noexcept;

 private:
  enum class Phase : std::uint8_t { kIdle, kNames, kPage, kUsers, kAccounted, kChunks, kWriters };
  // Copies of parts of the region, with the layout of these parts.
  struct PageCopy;
  struct WriterCopy;
  struct ControlCopy;
  struct Scratch;
  // Holds which part of a chunk the collector has.
  struct SentChunk {
    std::uint64_t serial;
    std::uint32_t bytes;
    std::uint32_t state;
  };
  // A chunk that has changed, as it was when the round began.
  struct Changed {
    std::uint64_t serial;
    std::uint32_t index;
    std::uint32_t committed;
    std::uint32_t state;
  };

  void BeginRound() noexcept;
  void ListChunks() noexcept;
  bool Run(Phase phase, int socket) noexcept;
  bool SendNames(int socket) noexcept;
  bool SendPage(int socket) noexcept;
  bool SendUsers(int socket) noexcept;
  bool SendAccounted(int socket) noexcept;
  bool SendChunks(int socket) noexcept;
  bool SendWriters(int socket) noexcept;
  bool Put(int socket, std::uint64_t offset, const void* bytes, std::size_t size) noexcept;
  bool Flush(int socket) noexcept;
  bool ApplyOne(std::uint32_t offset, const std::byte* bytes, std::uint32_t size) noexcept;
  SentChunk* sent_chunks() const noexcept;
  Changed* changed() const noexcept;

  std::byte* base_ = nullptr;  // null: no inline connection
  Scratch* scratch_ = nullptr;
  std::size_t scratch_bytes_ = 0;
  std::uint32_t chunk_count_ = 0;
  Phase phase_ = Phase::kIdle;
  std::uint32_t cursor_ = 0;  // index in the current phase
  std::uint32_t changed_count_ = 0;
  std::uint32_t names_sent_ = 0;
  std::uint32_t seen_count_ = 0;  // number of writers that the round may send
  std::size_t out_size_ = 0;      // bytes of Patches in the message that is not sent yet
  std::uint32_t max_payload_ = ring::kMaxPayload;  // maximum bytes of Patches in a message
  // Times at which the current round and the last complete round began, in ns of CLOCK_MONOTONIC;
  // 0: none. All events that were committed before sent_until_ have been sent.
  std::uint64_t round_began_ = 0;
  std::uint64_t sent_until_ = 0;
};

}  // namespace eh::internal

#endif  // LIBEVENTHEADER_PROVIDER_RING_SENDER_H_
