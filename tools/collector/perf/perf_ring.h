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

namespace collector {

// All events of a session have this sample type and sample_id_all, so that every record's layout
// is fixed: samples are {header, pid, tid, time, raw size, raw bytes}, all other records end in
// {pid, tid, time}.
inline constexpr std::uint64_t kSampleType = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;

// A record, contiguous in memory.
struct RingRecord {
  std::uint64_t timestamp = 0;       // session clock, ns
  std::span<const std::byte> bytes;  // with its perf_event_header
  std::uint64_t end = 0;             // ring position behind it
  std::size_t order = 0;             // place in the ring among those read at once

  std::uint32_t type() const;
};

// A PERF_RECORD_SAMPLE taken apart.
struct RingSample {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::span<const std::byte> raw;  // the tracepoint's record, common fields first
};
// False if the record is not a sample or is cut short.
bool ParseSample(const RingRecord& record, RingSample* sample);

// The mapping of a ring, and the order of its records put right.
//
// Records are delivered in the order of their timestamps even where an interrupt came between a
// record's timestamp and its place in the ring: what is read at once is sorted, and the reader
// looks kLookAhead records past the limit for stragglers. Work and memory are bounded by the ring's
// size. Not thread-safe.
class PerfRing {
 public:
  static constexpr std::size_t kLookAhead = 64;

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
  void Drain(std::uint64_t limit, const std::function<void(const RingRecord&)>& consume);

  // Bytes waiting in the ring.
  std::size_t fill() const;
  std::size_t size() const { return size_; }
  // Records the kernel cannot have written: the ring is resynchronised at its head.
  std::uint64_t corrupt() const { return corrupt_; }

 private:
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
  std::vector<RingRecord> batch_;   // records of the current Drain
  std::vector<std::byte> wrapped_;  // the one record that wraps around the ring's end
  // Copies of records later than a limit that had an earlier one behind them.
  std::vector<std::vector<std::byte>> held_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_PERF_RING_H_
