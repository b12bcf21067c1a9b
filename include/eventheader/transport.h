// How an event leaves the process. The production transport writes to the kernel's user_events;
// tests put one in its place that keeps the bytes.
#ifndef EVENTHEADER_TRANSPORT_H_
#define EVENTHEADER_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace eventheader {

// Implementations are thread-safe. Write is called from any thread and from signal handlers: it
// must not allocate, lock, throw or log.
class Transport {
 public:
  // Makes the tracepoint `name` (NUL-terminated, valid) known. While somebody listens, bit `bit` of
  // `*enabled`, which must stay valid until Unregister, is set. Returns 0 or an errno; `*index` is
  // then what Write wants.
  virtual int Register(const char* name, std::uint64_t* enabled, unsigned bit,
                       std::uint32_t* index) noexcept = 0;
  virtual void Unregister(std::uint64_t* enabled, unsigned bit) noexcept = 0;

  // Writes an event. `record` is the event with 4 bytes before it, which the transport may fill: it
  // is one contiguous piece. Returns 0 or an errno; the caller's errno may change.
  virtual int Write(std::uint32_t index, std::span<std::byte> record) noexcept = 0;

 protected:
  ~Transport() = default;
};

inline constexpr std::size_t kRecordPrefix = 4;

// The kernel's user_events. The descriptor is opened at the first registration, O_CLOEXEC and kept
// high, and shared by all providers of the process; it stays open until exit.
Transport& UserEventsTransport() noexcept;

}  // namespace eventheader

#endif  // EVENTHEADER_TRANSPORT_H_
