#include "tools/collector/perf/perf_ring.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace collector {

std::size_t PerfRing::page_size() {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

absl::StatusOr<PerfRing> PerfRing::Map(int fd, std::size_t size) {
  const std::size_t mapped = page_size() + size;
  void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    const int error = errno;
    return base::ErrnoStatus(error, absl::StrCat("mapping a perf ring of ", size, " bytes"),
                             error == EPERM
                                 ? "raise kernel.perf_event_mlock_kb or the limit of locked "
                                   "memory (ulimit -l), grant CAP_IPC_LOCK, or use smaller "
                                   "rings (--ring-size, or ring_size of nettraced)"
                                 : "use smaller rings (--ring-size, or ring_size of nettraced)");
  }
  return PerfRing(static_cast<perf_event_mmap_page*>(memory), size, mapped);
}

PerfRing PerfRing::OverMemory(perf_event_mmap_page* control, std::size_t size) {
  return PerfRing(control, size, 0);
}

PerfRing::PerfRing(PerfRing&& other) noexcept
    : control_(other.control_),
      data_(other.data_),
      size_(other.size_),
      mapped_(std::exchange(other.mapped_, 0)),
      corrupt_(other.corrupt_),
      scanned_(other.scanned_),
      batch_(std::move(other.batch_)),
      wrapped_(std::move(other.wrapped_)),
      held_(std::move(other.held_)) {}

PerfRing::~PerfRing() {
  if (mapped_ != 0) munmap(control_, mapped_);
}

std::uint64_t PerfRing::LoadHead() const {
  return std::atomic_ref<__u64>(control_->data_head).load(std::memory_order_acquire);
}

void PerfRing::StoreTail(std::uint64_t tail) {
  std::atomic_ref<__u64>(control_->data_tail).store(tail, std::memory_order_release);
}

std::size_t PerfRing::fill() const {
  return static_cast<std::size_t>(LoadHead() - control_->data_tail);
}

void PerfRing::Peek(absl::FunctionRef<void(const PerfRecord&)> look) {
  for (const Held& held : held_) look(PerfRecord{held.timestamp, held.bytes});
  const std::uint64_t head = LoadHead();
  std::uint64_t position = control_->data_tail;
  if (head - position > size_) return;
  while (position < head) {
    const auto header = std::bit_cast<perf_event_header>(LoadAt(position));
    if (header.size < sizeof header || header.size % 8 != 0 || header.size > head - position)
      return;
    PerfRecord record;
    record.bytes = Contiguous(position, header.size);
    if (!ParseTimestamp(record.bytes, &record.timestamp)) return;
    look(record);
    position += header.size;
  }
}

std::span<const std::byte> PerfRing::Wrapped(std::size_t offset, std::size_t size) {
  // One buffer is sufficient: at most one record of a batch wraps around the end of the ring,
  // because a batch is no longer than the ring.
  wrapped_.resize(size);
  const std::size_t first = size_ - offset;
  std::memcpy(wrapped_.data(), data_ + offset, first);
  std::memcpy(wrapped_.data() + first, data_, size - first);
  return wrapped_;
}

bool PerfRing::FindInOrder(std::uint64_t limit, std::uint64_t* end) const {
  const std::uint64_t head = LoadHead();
  std::uint64_t position = control_->data_tail;
  std::uint64_t last = 0;
  std::size_t later = 0;
  // Position after the last record whose timestamp is not above `limit`. A LOST record
  // gets the time of the record after it, and is delivered together with it.
  std::uint64_t begin = position;
  if (head - position > size_) return false;
  while (position < head) {
    const auto header = std::bit_cast<perf_event_header>(LoadAt(position));
    if (header.size < MinSize(header.type) || header.size % 8 != 0 ||
        header.size > head - position) {
      return false;
    }
    const std::uint64_t timestamp = LoadAt(position + TimestampOffset(header.type, header.size));
    position += header.size;
    if (header.type == PERF_RECORD_LOST) continue;
    if (timestamp < last) return false;
    last = timestamp;
    if (timestamp <= limit) {
      begin = position;
    } else if (++later == kLookAhead) {
      break;
    }
  }
  // The kernel writes a LOST record only together with a record that follows it. If LOST records
  // are at the end nevertheless, they are delivered now.
  *end = later == 0 ? position : begin;
  return true;
}

void PerfRing::Scan(std::uint64_t limit) {
  const std::uint64_t head = LoadHead();
  std::uint64_t position = control_->data_tail;
  std::size_t later = batch_.size();
  std::size_t lost = 0;  // number of LOST records that get the timestamp of the next record
  if (head - position > size_) {
    ++corrupt_;
    position = head;
  }
  while (position < head && later < kLookAhead) {
    // A header never wraps, because the sizes of records are multiples of 8 bytes.
    const auto header = std::bit_cast<perf_event_header>(LoadAt(position));
    Waiting record;
    if (header.size < sizeof header || header.size % 8 != 0 || header.size > head - position) {
      ++corrupt_;
      position = head;
      break;
    }
    record.bytes = Contiguous(position, header.size);
    position += header.size;
    record.order = batch_.size();
    record.end = position;
    if (!ParseTimestamp(record.bytes, &record.timestamp)) {
      ++corrupt_;
      continue;
    }
    if (header.type == PERF_RECORD_LOST) {
      ++lost;
    } else {
      for (; lost > 0; --lost) batch_[batch_.size() - lost].timestamp = record.timestamp;
      if (record.timestamp > limit) ++later;
    }
    batch_.push_back(record);
  }
  scanned_ = position;
}

void PerfRing::Hold(std::size_t first, bool copies_only) {
  std::vector<Held> held;
  for (std::size_t i = first; i < batch_.size(); ++i) {
    const Waiting& record = batch_[i];
    if (copies_only && record.order >= held_.size()) continue;
    held.push_back({record.timestamp, {record.bytes.begin(), record.bytes.end()}});
  }
  held_ = std::move(held);
}

void PerfRing::DrainSorted(std::uint64_t limit,
                           absl::FunctionRef<void(const PerfRecord&)> consume) {
  batch_.clear();
  for (const Held& held : held_) {
    Waiting record;
    record.timestamp = held.timestamp;
    record.bytes = held.bytes;
    record.order = batch_.size();
    record.end = control_->data_tail;
    batch_.push_back(record);
  }
  Scan(limit);

  const auto earlier = [](const Waiting& a, const Waiting& b) {
    return a.timestamp != b.timestamp ? a.timestamp < b.timestamp : a.order < b.order;
  };
  if (!std::is_sorted(batch_.begin(), batch_.end(), earlier)) {
    std::sort(batch_.begin(), batch_.end(), earlier);
  }

  // The space of consumed records can be returned to the kernel only if no record before them in
  // the ring still waits. This is so if the consumed records are exactly the first ones in the
  // ring.
  std::size_t done = 0;
  std::size_t orders = 0;  // maximum order of the consumed records, plus 1
  std::uint64_t end = control_->data_tail;
  for (; done < batch_.size() && batch_[done].timestamp <= limit; ++done) {
    const Waiting& record = batch_[done];
    consume(record);
    orders = std::max(orders, record.order + 1);
    end = std::max(end, record.end);
    constexpr std::size_t kGiveBackEvery = 256;
    if (done % kGiveBackEvery == kGiveBackEvery - 1 && orders == done + 1) StoreTail(end);
  }
  if (done == batch_.size()) {
    held_.clear();
    StoreTail(scanned_);
  } else if (orders == done) {
    Hold(done, /*copies_only=*/true);
    StoreTail(end);
  } else {
    Hold(done, /*copies_only=*/false);
    StoreTail(scanned_);
  }
}

}  // namespace collector
