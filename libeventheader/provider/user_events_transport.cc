#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "eventheader/transport.h"
#include "eventheader/user_events.h"

namespace eventheader {
namespace {

// Above what programs count on for their own descriptors.
constexpr int kLowestDescriptor = 512;

class KernelTransport final : public Transport {
 public:
  int Register(const char* name, std::uint64_t* enabled, unsigned bit,
               std::uint32_t* index) noexcept override {
    const int fd = Descriptor();
    if (fd < 0) return -fd;
    char command[user_events::kMaxCommand];
    if (!user_events::FormatCommand(name, command)) return EINVAL;
    return user_events::Register(fd, command, enabled, bit, 0, index);
  }

  void Unregister(std::uint64_t* enabled, unsigned bit) noexcept override {
    const int fd = fd_.load(std::memory_order_acquire);
    if (fd >= 0) user_events::Unregister(fd, enabled, bit);
  }

  int Write(std::uint32_t index, std::span<std::byte> record) noexcept override {
    std::memcpy(record.data(), &index, sizeof index);
    const ssize_t written =
        write(fd_.load(std::memory_order_relaxed), record.data(), record.size());
    return written < 0 ? errno : 0;
  }

 private:
  // The descriptor, opened if it is not yet; a negative errno if it cannot be.
  int Descriptor() noexcept {
    int fd = fd_.load(std::memory_order_acquire);
    if (fd >= 0) return fd;
    const int opened = user_events::OpenData();
    if (opened < 0) return opened;
    int high = fcntl(opened, F_DUPFD_CLOEXEC, kLowestDescriptor);
    if (high >= 0) {
      close(opened);
    } else {
      high = opened;  // the limit of descriptors is low
    }
    if (fd_.compare_exchange_strong(fd, high, std::memory_order_acq_rel)) return high;
    close(high);  // another thread was first
    return fd;
  }

  std::atomic<int> fd_ = -1;
};

constinit KernelTransport kernel_transport;

}  // namespace

Transport& UserEventsTransport() noexcept { return kernel_transport; }

}  // namespace eventheader
