// A data stream of a CTF trace: events in the order of time, in packets that are written whole to a
// file of the stream's own.
#ifndef TOOLS_NETTRACE_EXPORT_CTF_STREAM_H_
#define TOOLS_NETTRACE_EXPORT_CTF_STREAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "libnettrace-writer/core/byte_writer.h"
#include "tools/common/atomic_file.h"
#include "tools/nettrace/export/ctf/field_class.h"

namespace tools::ctf {

using Uuid = std::array<std::byte, 16>;

// Streams of class 0 have a CPU, those of class 1 do not.
inline constexpr std::uint32_t kStreamOfCpu = 0;
inline constexpr std::uint32_t kStreamWithoutCpu = 1;

inline constexpr std::uint32_t kStreamClasses = 2;

// What their packets and events begin with. The names are those that CTF 1.8 reserves.
FieldClass PacketHeader();
FieldClass PacketContext(std::uint32_t stream_class);
FieldClass EventHeader();

class Stream {
 public:
  // A packet with so many bytes of events is written; only one event makes it larger.
  static constexpr std::size_t kPacketSize = 64 << 10;

  // `instance` is a number that no other stream of the trace has.
  Stream(const Uuid& trace, std::uint64_t instance, std::optional<std::uint32_t> cpu,
         AtomicFolder* folder);

  std::uint32_t stream_class() const { return cpu_ ? kStreamOfCpu : kStreamWithoutCpu; }
  // No event may be earlier. All times are on the trace's clock.
  std::uint64_t last_time() const { return last_time_; }
  std::size_t buffered() const { return events_.size(); }

  // `fields` are context and payload.
  absl::Status AddEvent(std::uint64_t time, std::uint32_t event_class,
                        std::span<const std::byte> fields);
  // Events were lost between the last event and `time`. Readers are shown just that: the counter
  // goes up in an empty packet of that time.
  absl::Status AddLoss(std::uint64_t time, std::uint64_t count);
  // Writes what is buffered.
  absl::Status Flush();

 private:
  absl::Status WritePacket(std::uint64_t begin);

  const Uuid trace_;
  const std::uint64_t instance_;
  const std::optional<std::uint32_t> cpu_;
  AtomicFolder* const folder_;
  nettrace::internal::ByteWriter events_;  // of the open packet
  std::uint64_t first_time_ = 0;           // of its events
  std::uint64_t last_time_ = 0;
  std::uint64_t packets_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace tools::ctf

#endif  // TOOLS_NETTRACE_EXPORT_CTF_STREAM_H_
