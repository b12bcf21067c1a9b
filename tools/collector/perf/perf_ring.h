// Reading the memory of one perf ring buffer.
#ifndef TOOLS_COLLECTOR_PERF_PERF_RING_H_
#define TOOLS_COLLECTOR_PERF_PERF_RING_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/collector/perf/perf_records.h"

namespace collector {

// The mapping of a ring, and the order of its records put right.
//
// Records are delivered in the order of their timestamps even where an interrupt came between a
// record's timestamp and its place in the ring: what is read at once is sorted, and the reader
// looks kLookAhead records past the limit for stragglers. Work and memory are bounded by the ring's
// size. Not thread-safe.
class PerfRing {
 public:
  static constexpr std::size_t kLookAhead = 64;
  static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

  // Maps the ring of `fd` with `size` bytes of data, a power of two of at least one page.
  static absl::StatusOr<PerfRing> Map(int fd, std::size_t size);
  // Reads memory laid out as the kernel does: a control page, then `size` bytes of data. For tests.
  static PerfRing OverMemory(perf_event_mmap_page* control, std::size_t size);

  PerfRing(PerfRing&& other) noexcept;
  PerfRing& operator=(PerfRing&&) = delete;
  ~PerfRing();

  // Hands every record with a timestamp up to `limit` to `consume`, oldest first, and leaves the
  // later ones for the next call. The bytes are valid during the call of `consume` only. Space is
  // given back to the kernel as the records are consumed.
  void Drain(std::uint64_t limit, const std::function<void(const PerfRecord&)>& consume);

  // Bytes waiting in the ring.
  std::size_t fill() const;
  std::size_t size() const { return size_; }
  // Number of records that the kernel cannot have written: the ring is resynchronised at its head.
  std::uint64_t corrupt() const { return corrupt_; }

 private:
  struct Waiting : PerfRecord {
    std::uint64_t end = 0;  // ring position after it
    std::size_t order = 0;  // place in the ring among those read at once
  };

  PerfRing(perf_event_mmap_page* control, std::size_t size, std::size_t mapped)
      : control_(control),
        data_(reinterpret_cast<const std::byte*>(control) + page_size()),
        size_(size),
        mapped_(mapped) {}
  static std::size_t page_size();

  std::uint64_t LoadHead() const;
  void StoreTail(std::uint64_t tail);
  void Scan(std::uint64_t limit);
  std::span<const std::byte> Contiguous(std::uint64_t position, std::size_t size);
  // Keeps copies of batch_[first…], or only of those that already are copies.
  void Hold(std::size_t first, bool copies_only);

  perf_event_mmap_page* control_;
  const std::byte* data_;
  std::size_t size_;
  std::size_t mapped_;  // 0: not ours to unmap
  std::uint64_t corrupt_ = 0;
  std::uint64_t scanned_ = 0;       // ring position up to which batch_ reaches
  std::vector<Waiting> batch_;      // records of the current Drain
  std::vector<std::byte> wrapped_;  // the one record that wraps around the ring's end
  // Copies of records later than a limit that stand before an earlier one in the ring.
  std::vector<std::vector<std::byte>> held_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_PERF_RING_H_
