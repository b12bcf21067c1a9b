// Reads the memory of one perf ring buffer.
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

// The mapping of a ring. Delivers its records in the order of their timestamps.
//
// Records may be out of order if an interrupt occurred between taking a record's timestamp and
// reserving its place in the ring. Therefore the records that are read together are sorted, and
// Drain checks up to kLookAhead records past its limit for earlier ones. Only a LOST record is not
// sorted. It stays before the next record that fitted into the ring, although that record has an
// earlier timestamp. Work and memory are bounded by the ring's size. Not thread-safe.
//
// Nearly always, the records are in order already, which one check of each timestamp shows. They
// are then delivered from the ring without a copy.
class PerfRing {
 public:
  static constexpr std::size_t kLookAhead = 64;
  static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

  // Maps the ring of `fd` with `size` bytes of data, a power of two of at least one page.
  static absl::StatusOr<PerfRing> Map(int fd, std::size_t size);
  // Reads memory with the kernel's layout: a control page, then `size` bytes of data. For tests.
  static PerfRing OverMemory(perf_event_mmap_page* control, std::size_t size);

  PerfRing(PerfRing&& other) noexcept;
  PerfRing& operator=(PerfRing&&) = delete;
  ~PerfRing();

  // Passes every record with a timestamp up to `limit` to `consume(const PerfRecord&)`, oldest
  // first, and leaves the later ones for the next call. The bytes are valid only during the call of
  // `consume`. Space is returned to the kernel as the records are consumed.
  template <typename Consume>
  void Drain(std::uint64_t limit, const Consume& consume);

  // Passes the waiting records to `look`, first those that are kept as copies, then the others in
  // the order of the ring, and leaves them there. Stops at the first malformed record.
  void Peek(absl::FunctionRef<void(const PerfRecord&)> look);

  // Bytes that wait in the ring, without the records that are kept as copies.
  std::size_t fill() const;
  // Returns whether no record waits, neither in the ring nor as a copy.
  bool empty() const { return fill() == 0 && held_.empty(); }
  std::size_t size() const { return size_; }
  // Returns the maximum number of bytes that can have been in the ring at once between the previous
  // call and the last Drain. If it is nearly the ring's size, there may have been no space for a
  // record.
  std::uint64_t TakeFullest() { return std::exchange(fullest_, 0); }
  // Number of malformed records, which the kernel cannot have written. Reading continues after a
  // malformed record, or at the ring's head if the size of the record is invalid.
  std::uint64_t corrupt() const { return corrupt_; }

 private:
  struct Waiting : PerfRecord {
    std::uint64_t end = 0;  // ring position after the record
    std::size_t order = 0;  // index among the records that are read together
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

  // The space of consumed records is returned to the kernel after each 1/kGiveBackShare of the
  // ring. It is not returned with every record, because the tail is in the same cache line as the
  // head, which the kernel writes.
  static constexpr std::size_t kGiveBackShare = 8;

  std::uint64_t LoadHead() const;
  void StoreTail(std::uint64_t tail);
  // Returns the 8 bytes at `position`, which is a multiple of 8, as a number.
  std::uint64_t LoadAt(std::uint64_t position) const {
    std::uint64_t value;
    std::memcpy(&value, data_ + (position & (size_ - 1)), sizeof value);
    return value;
  }
  // Checks the records up to `limit`, and up to kLookAhead later records. If they are well-formed
  // and in order, returns true and sets `*end` to the ring position after the last record up to
  // `limit`.
  bool FindInOrder(std::uint64_t limit, std::uint64_t* end) const;
  // Does the work of Drain if records must be sorted.
  void DrainSorted(std::uint64_t limit, absl::FunctionRef<void(const PerfRecord&)> consume);
  void Scan(std::uint64_t limit);
  std::span<const std::byte> Contiguous(std::uint64_t position, std::size_t size) {
    const std::size_t offset = static_cast<std::size_t>(position) & (size_ - 1);
    if (offset + size <= size_) [[likely]]
      return {data_ + offset, size};
    return Wrapped(offset, size);
  }
  // Returns a copy of the record that wraps around the ring's end.
  std::span<const std::byte> Wrapped(std::size_t offset, std::size_t size);
  // Keeps copies of the records from batch_[first] on. If `copies_only` is set, keeps only those
  // that are copies already, because the others are still in the ring.
  void Hold(std::size_t first, bool copies_only);

  perf_event_mmap_page* control_;
  const std::byte* data_;
  std::size_t size_;
  std::size_t mapped_;  // bytes to unmap; 0: the memory is not owned
  std::uint64_t corrupt_ = 0;
  std::uint64_t fullest_ = 0;
  std::uint64_t scanned_ = 0;       // ring position after the records in batch_
  std::vector<Waiting> batch_;      // records of the current Drain
  std::vector<std::byte> wrapped_;  // the record that wraps around the ring's end
  // Copies of records that are later than the limit of Drain, but come before a consumed record in
  // the ring. The copies allow the space in the ring to be returned to the kernel.
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
  // Copies, because the compiler would read the members again after each call of `consume`.
  const std::byte* const data = data_;
  const std::size_t size = size_;
  std::uint64_t position = start;
  std::uint64_t give_back_at = position + size / kGiveBackShare;
  while (position != end) {
    // FindInOrder has checked the size and timestamp of this record.
    const std::size_t offset = static_cast<std::size_t>(position) & (size - 1);
    const perf_event_header header = LoadHeader({data + offset, sizeof header});
    PerfRecord record;
    record.bytes = {data + offset, header.size};
    if (offset + header.size > size) [[unlikely]]
      record.bytes = Wrapped(offset, header.size);
    record.timestamp =
        internal::Load<std::uint64_t>(record.bytes, TimestampOffset(header.type, header.size));
    consume(std::as_const(record));
    position += header.size;
    if (position >= give_back_at) {
      StoreTail(position);
      give_back_at = position + size / kGiveBackShare;
    }
  }
  // Records that arrived during this call were in the ring together with those that were read, so
  // they count, too.
  fullest_ = std::max(fullest_, LoadHead() - start);
  StoreTail(end);
}

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_PERF_RING_H_
