// A perf ring in memory, with the layout of the kernel's rings, written by the test.
#ifndef TESTS_SUPPORT_COLLECTOR_MEMORY_RING_H_
#define TESTS_SUPPORT_COLLECTOR_MEMORY_RING_H_

#include <linux/perf_event.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "tools/collector/perf/perf_ring.h"

namespace collector {

class MemoryRing {
 public:
  // `size` is a power of two, in bytes. Unlike a ring of the kernel, it may be less than a page.
  explicit MemoryRing(std::size_t size)
      : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
        size_(size),
        memory_(static_cast<std::byte*>(std::aligned_alloc(page_, page_ + size))) {
    std::memset(memory_.get(), 0, page_ + size);
  }

  perf_event_mmap_page* control() { return reinterpret_cast<perf_event_mmap_page*>(memory_.get()); }
  PerfRing reader() { return PerfRing::OverMemory(control(), size_); }
  std::size_t size() const { return size_; }
  const std::byte* data() const { return memory_.get() + page_; }

  // Moves both ends of the ring, as if `position` bytes had been written and read before.
  void StartAt(std::uint64_t position) { control()->data_head = control()->data_tail = position; }

  // Writes `bytes` at the head of the ring. They must not exceed the ring's size.
  void Put(std::span<const std::byte> bytes) {
    const std::size_t offset = control()->data_head & (size_ - 1);
    const std::size_t first = std::min(bytes.size(), size_ - offset);
    if (first > 0) std::memcpy(memory_.get() + page_ + offset, bytes.data(), first);
    if (first < bytes.size()) {
      std::memcpy(memory_.get() + page_, bytes.data() + first, bytes.size() - first);
    }
    control()->data_head += bytes.size();
  }

  // Returns a sample with the tracepoint's record `raw`. Like perf, pads the sample to a multiple
  // of 8 bytes, and counts the padding in the size of the raw data.
  static std::vector<std::byte> Sample(std::uint32_t pid, std::uint32_t tid, std::uint64_t time,
                                       std::span<const std::byte> raw) {
    const std::size_t size = (kRawOffset + raw.size() + 7) / 8 * 8;
    std::vector<std::byte> bytes(size);
    Set(&bytes, 0, perf_event_header{PERF_RECORD_SAMPLE, 0, static_cast<__u16>(size)});
    Set(&bytes, 8, pid);
    Set(&bytes, 12, tid);
    Set(&bytes, kTimeOffset, time);
    Set(&bytes, 24, std::uint64_t{1});
    Set(&bytes, kRawSizeOffset, static_cast<std::uint32_t>(size - kRawOffset));
    std::copy(raw.begin(), raw.end(), bytes.begin() + kRawOffset);
    return bytes;
  }

  // Returns a sample with a stack of these entries and raw data of 4 bytes.
  static std::vector<std::byte> StackSample(std::uint32_t tid, std::uint64_t time,
                                            std::span<const std::uint64_t> entries) {
    const std::size_t size = kStackOffset + entries.size_bytes() + 8;
    std::vector<std::byte> bytes(size);
    Set(&bytes, 0, perf_event_header{PERF_RECORD_SAMPLE, 0, static_cast<__u16>(size)});
    Set(&bytes, 8, std::uint32_t{1});
    Set(&bytes, 12, tid);
    Set(&bytes, kTimeOffset, time);
    Set(&bytes, 32, std::uint64_t{1});
    Set(&bytes, 40, std::uint64_t{entries.size()});
    for (std::size_t i = 0; i < entries.size(); ++i) Set(&bytes, kStackOffset + 8 * i, entries[i]);
    Set(&bytes, size - 8, std::uint32_t{4});
    return bytes;
  }

  // Returns a record with the frames in user space of an earlier sample, which has this `cookie`.
  static std::vector<std::byte> DeferredStack(std::uint32_t tid, std::uint64_t time,
                                              std::uint64_t cookie,
                                              std::span<const std::uint64_t> entries) {
    const std::size_t size = 24 + entries.size_bytes() + 16;
    std::vector<std::byte> bytes(size);
    Set(&bytes, 0, perf_event_header{kDeferredStackType, 0, static_cast<__u16>(size)});
    Set(&bytes, 8, cookie);
    Set(&bytes, 16, std::uint64_t{entries.size()});
    for (std::size_t i = 0; i < entries.size(); ++i) Set(&bytes, 24 + 8 * i, entries[i]);
    Set(&bytes, size - 16, std::uint32_t{1});
    Set(&bytes, size - 12, tid);
    Set(&bytes, size - 8, time);
    return bytes;
  }

  // Returns a record of `lost` samples, which the kernel writes before the next sample.
  static std::vector<std::byte> Lost(std::uint64_t time, std::uint64_t lost) {
    std::vector<std::byte> bytes(40);
    Set(&bytes, 0, perf_event_header{PERF_RECORD_LOST, 0, 40});
    Set(&bytes, 16, lost);
    Set(&bytes, 32, time);
    return bytes;
  }

  template <typename T>
  static void Set(std::vector<std::byte>* bytes, std::size_t at, const T& value) {
    std::memcpy(bytes->data() + at, &value, sizeof value);
  }

  static constexpr std::size_t kTimeOffset = 16;  // Offset in a sample.
  static constexpr std::size_t kRawSizeOffset = 32;
  static constexpr std::size_t kRawOffset = 36;
  static constexpr std::size_t kStackOffset = 48;

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::size_t page_;
  std::size_t size_;
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace collector

#endif  // TESTS_SUPPORT_COLLECTOR_MEMORY_RING_H_
