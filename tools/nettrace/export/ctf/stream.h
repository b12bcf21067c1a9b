// A data stream of a CTF trace: events in order of time, in packets. Each stream has a separate
// file.
#ifndef TOOLS_NETTRACE_EXPORT_CTF_STREAM_H_
#define TOOLS_NETTRACE_EXPORT_CTF_STREAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "libnettrace-writer/core/byte_writer.h"
#include "tools/nettrace/export/ctf/field_class.h"
#include "tools/output/atomic_file.h"

namespace tools::ctf {

using Uuid = std::array<std::byte, 16>;

// Stream classes. A stream of class 0 has the events of one CPU. A stream of class 1 has events
// whose CPU is unknown.
inline constexpr std::uint32_t kStreamOfCpu = 0;
inline constexpr std::uint32_t kStreamWithoutCpu = 1;

inline constexpr std::uint32_t kStreamClasses = 2;

// Return the fields at the beginning of packets and events. CTF 1.8 prescribes their names.
FieldClass PacketHeader();
FieldClass PacketContext(std::uint32_t stream_class);
FieldClass EventHeader();

class Stream {
 public:
  // Bytes of events at which a packet is written. The last event may make the packet larger.
  static constexpr std::size_t kPacketSize = 64 << 10;

  // `instance` is a number that is unique among the streams of the trace.
  Stream(const Uuid& trace, std::uint64_t instance, std::optional<std::uint32_t> cpu,
         output::AtomicFolder* folder);

  std::uint32_t stream_class() const { return cpu_ ? kStreamOfCpu : kStreamWithoutCpu; }
  // Returns the time of the last event or loss. AddEvent must not be called with an earlier time.
  // All times are on the trace's clock, in ns.
  std::uint64_t last_time() const { return last_time_; }
  // Returns the bytes of events that are not written yet.
  std::size_t buffered() const { return events_.size(); }

  // Adds an event; `fields` are its context and payload. Writes a packet if kPacketSize is reached.
  absl::Status AddEvent(std::uint64_t time, std::uint32_t event_class,
                        std::span<const std::byte> fields);
  // Records that `count` events were lost between the last event and `time`. Writes an empty packet
  // that ends at `time`. Its counter of discarded events exceeds that of the previous packet by
  // `count`, so readers show the loss in exactly this interval.
  absl::Status AddLoss(std::uint64_t time, std::uint64_t count);
  // Writes the buffered events.
  absl::Status Flush();

 private:
  absl::Status WritePacket(std::uint64_t begin);

  const Uuid trace_;
  const std::uint64_t instance_;
  const std::optional<std::uint32_t> cpu_;
  output::AtomicFolder* const folder_;
  nettrace::internal::ByteWriter events_;  // events of the open packet
  std::uint64_t first_time_ = 0;           // first time in the open packet
  std::uint64_t last_time_ = 0;
  std::uint64_t packets_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace tools::ctf

#endif  // TOOLS_NETTRACE_EXPORT_CTF_STREAM_H_
