// Reading the memory of one perf ring buffer.
#ifndef TOOLS_COLLECTOR_PERF_PERF_RING_H_
#define TOOLS_COLLECTOR_PERF_PERF_RING_H_

#include <linux/perf_event.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "tools/collector/perf/perf_records.h"

namespace collector {

// The mapping of a ring, and the order of its records put right.
//
// Records are delivered in the order of their timestamps even where an interrupt came between a
// record's timestamp and its place in the ring: what is read at once is sorted, and the reader
// looks kLookAhead records past the limit for stragglers. Only a LOST record keeps its place, which
// is before the record that the ring had space for again; its timestamp is later than that one's.
// Work and memory are bounded by the ring's size. Not thread-safe.
//
// Nearly always the records are in order already. One look at each timestamp tells; then they are
// handed out where they lie, and nothing is kept of them.
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

  // Hands every record with a timestamp up to `limit` to `consume(const PerfRecord&)`, oldest
  // first, and leaves the later ones for the next call. The bytes are valid during the call of
  // `consume` only. Space is given back to the kernel as the records are consumed.
  template <typename Consume>
  void Drain(std::uint64_t limit, const Consume& consume);

  // Hands the records that wait, in the order of the ring, to `look`, and leaves them there. It
  // ends at the first one that is not well formed.
  void Peek(absl::FunctionRef<void(const PerfRecord&)> look);

  // Bytes waiting in the ring.
  std::size_t fill() const;
  // No record waits: neither in the ring nor as a copy.
  bool empty() const { return fill() == 0 && held_.empty(); }
  std::size_t size() const { return size_; }
  // The most bytes that can have been in the ring at once until its last Drain, since the last
  // call: where that is nearly its size, there may have been no space for a record.
  std::uint64_t TakeFullest() { return std::exchange(fullest_, 0); }
  // Number of records that the kernel cannot have written: the ring is resynchronised at its head.
  std::uint64_t corrupt() const { return corrupt_; }

 private:
  struct Waiting : PerfRecord {
    std::uint64_t end = 0;  // ring position after it
    std::size_t order = 0;  // place in the ring among those read at once
  };
  struct Held {
    std::uint64_t timestamp;
    std::vector<std::byte> bytes;
  };

  PerfRing(perf_event_mmap_page* control, std::size_t size, std::size_t mapped)
      : control_(control),
        data_(reinterpret_cast<const std::byte*>(control) + page_size()),
        size_(size),
        mapped_(mapped) {}
  static std::size_t page_size();

  // When so large a part of the ring is consumed, it goes back to the kernel: not with each record,
  // as the place where the kernel finds it is in the line of cache that it writes its head to.
  static constexpr std::size_t kGiveBackShare = 8;

  std::uint64_t LoadHead() const;
  void StoreTail(std::uint64_t tail);
  // The number of 8 bytes at `position`, a multiple of 8, as all are in the ring.
  std::uint64_t LoadAt(std::uint64_t position) const {
    std::uint64_t value;
    std::memcpy(&value, data_ + (position & (size_ - 1)), sizeof value);
    return value;
  }
  // True if the records are well formed and in order, as far as they are to be looked at for
  // `limit`; then `*end` is the ring position after those up to `limit`.
  bool FindInOrder(std::uint64_t limit, std::uint64_t* end) const;
  // Drain where records are to be sorted.
  void DrainSorted(std::uint64_t limit, absl::FunctionRef<void(const PerfRecord&)> consume);
  void Scan(std::uint64_t limit);
  std::span<const std::byte> Contiguous(std::uint64_t position, std::size_t size) {
    const std::size_t offset = static_cast<std::size_t>(position) & (size_ - 1);
    if (offset + size <= size_) [[likely]]
      return {data_ + offset, size};
    return Wrapped(offset, size);
  }
  // A copy of the record that lies across the ring's end.
  std::span<const std::byte> Wrapped(std::size_t offset, std::size_t size);
  // Keeps copies of batch_[first…], or only of those that already are copies.
  void Hold(std::size_t first, bool copies_only);

  perf_event_mmap_page* control_;
  const std::byte* data_;
  std::size_t size_;
  std::size_t mapped_;  // 0: not ours to unmap
  std::uint64_t corrupt_ = 0;
  std::uint64_t fullest_ = 0;
  std::uint64_t scanned_ = 0;       // ring position up to which batch_ reaches
  std::vector<Waiting> batch_;      // records of the current Drain
  std::vector<std::byte> wrapped_;  // the one record that wraps around the ring's end
  // Copies of records later than a limit that stand before an earlier one in the ring.
  std::vector<Held> held_;
};

template <typename Consume>
void PerfRing::Drain(std::uint64_t limit, const Consume& consume) {
  const std::uint64_t start = control_->data_tail;
  std::uint64_t end = 0;
  if (!held_.empty() || !FindInOrder(limit, &end)) {
    DrainSorted(limit, consume);
    fullest_ = std::max(fullest_, LoadHead() - start);
    return;
  }
  std::uint64_t position = start;
  std::uint64_t give_back_at = position + size_ / kGiveBackShare;
  while (position != end) {
    // FindInOrder has seen that its size and its timestamp are good.
    const auto header = std::bit_cast<perf_event_header>(LoadAt(position));
    PerfRecord record;
    record.bytes = Contiguous(position, header.size);
    record.timestamp =
        internal::Load<std::uint64_t>(record.bytes, TimestampOffset(header.type, header.size));
    consume(std::as_const(record));
    position += header.size;
    if (position >= give_back_at) {
      StoreTail(position);
      give_back_at = position + size_ / kGiveBackShare;
    }
  }
  // What came meanwhile was in the ring beside what was being read.
  fullest_ = std::max(fullest_, LoadHead() - start);
  StoreTail(end);
}

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_PERF_RING_H_
