// Keeps a copy of the region of a service that does not share its memory. The connection of this
// service is called inline; ring::InlineReason in ring_layout.h gives the reasons. RingRegion reads
// the copy as it reads a region.
#ifndef TOOLS_COLLECTOR_RING_RING_MIRROR_H_
#define TOOLS_COLLECTOR_RING_RING_MIRROR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "libeventheader/base/ring_layout.h"
#include "tools/base/unique_fd.h"

namespace collector {

// Holds the copy in a memfd of the collector. The service can store anything in the parts that it
// writes, as in shared memory, so RingRegion checks what it reads. Not thread-safe.
class RingMirror {
 public:
  // Creates the copy for the contents of the message Hello. The copy has room for the largest of
  // three numbers of chunks: `chunks`, kFirstChunks, and the number that the service may use
  // already. It never has more chunks than the service's region. Fails with InvalidArgument if the
  // contents are not those of an inline Hello, and with another error if memory cannot be
  // allocated.
  static absl::StatusOr<std::unique_ptr<RingMirror>> Create(std::span<const std::byte> hello,
                                                            std::uint32_t chunks);
  // Returns the maximum memory of a copy with this number of chunks, in bytes.
  static std::uint64_t MemoryOf(std::uint32_t chunks);
  RingMirror(const RingMirror&) = delete;
  RingMirror& operator=(const RingMirror&) = delete;
  ~RingMirror();

  // Returns a new descriptor of the memfd, for RingRegion::Open().
  base::UniqueFd Duplicate() const;
  std::uint32_t chunk_count() const { return chunk_count_; }
  // Returns ring::Header::created, as the service claims.
  std::uint64_t created() const { return created_; }
  // Returns a text for users that states why the connection is inline. `flags` is the value of the
  // message Hello.
  static std::string ReasonOf(std::uint64_t flags);

  // Applies the Patches of a message from the service. Returns false if one of them is malformed or
  // empty, changes bytes that the service does not write or that the copy does not have, or if
  // memory cannot be allocated.
  bool Apply(std::span<const std::byte> patches);
  // Passes to `send` the contents of messages with all changes that RingRegion has made since the
  // last call, each with at most `max_payload` bytes, which must be at least ring::kLeastPayload.
  // The numbers of accounted events (ring::Writer::accounted) come before the chunks and writers
  // that become free.
  void TakeChanges(std::uint32_t max_payload,
                   absl::FunctionRef<void(std::span<const std::byte>)> send);
  // Takes over the numbers of accounted events from `older`, the copy of an earlier connection. The
  // service has not received these numbers if that connection ended before they were sent.
  void Inherit(const RingMirror& older);

 private:
  struct Accounted {
    std::uint64_t ordinal = 0;
    std::uint64_t number = 0;
    std::uint64_t nested = 0;
  };

  RingMirror() = default;

  eh::internal::ring::CollectorPage& collector_page() const;
  eh::internal::ring::Writer& writer(std::uint32_t index) const;
  eh::internal::ring::ChunkControl& control(std::uint32_t index) const;
  // Returns whether the service may change these bytes.
  bool Contains(std::uint32_t offset, std::uint32_t size) const;
  // Allocates memory for the bytes, which Contains() has accepted. Returns false if that fails;
  // access to the mapping would raise SIGBUS then.
  bool Allocate(std::uint32_t offset, std::uint32_t size);
  // Updates writer_states_, chunk_states_ and sent_ after the service has changed these bytes.
  void Follow(std::uint32_t offset, std::uint32_t size);
  void RaiseAccounted(std::uint32_t index);

  base::UniqueFd fd_;
  std::byte* base_ = nullptr;
  std::uint64_t region_bytes_ = 0;
  std::uint64_t controls_end_ = 0;  // end of the last ChunkControl of the copy
  std::uint32_t chunk_count_ = 0;
  std::uint64_t created_ = 0;
  // Whether the parts of the file after `controls_end_` have memory, by offset / kChunkBytes.
  std::vector<bool> has_memory_;
  // The states of chunks and writers, and the numbers of accounted events, in the service's region.
  std::vector<std::uint32_t> chunk_states_;
  std::vector<std::uint32_t> writer_states_;
  std::vector<Accounted> sent_;       // by index of the writer
  std::vector<Accounted> inherited_;  // by index of the writer; empty: none
  std::vector<std::byte> sent_page_;  // the CollectorPage that the service has; empty: none
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_RING_RING_MIRROR_H_
