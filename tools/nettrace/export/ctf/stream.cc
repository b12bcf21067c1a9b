#include "tools/nettrace/export/ctf/stream.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace tools::ctf {

using nettrace::internal::ByteWriter;

FieldClass PacketHeader() {
  return FieldClass::Struct(
      {{"magic", FieldClass::Hex(32).For("packet-magic-number")},
       {"uuid", FieldClass::Bytes(sizeof(Uuid)).For("metadata-stream-uuid")},
       {"stream_id", FieldClass::Unsigned(32).For("data-stream-class-id")},
       {"stream_instance_id", FieldClass::Unsigned(64).For("data-stream-id")}});
}

FieldClass PacketContext(std::uint32_t stream_class) {
  FieldClass context = FieldClass::Struct(
      {{"timestamp_begin", FieldClass::Time().For("default-clock-timestamp")},
       {"timestamp_end", FieldClass::Time().For("packet-end-default-clock-timestamp")},
       {"content_size", FieldClass::Unsigned(64).For("packet-content-length")},
       {"packet_size", FieldClass::Unsigned(64).For("packet-total-length")},
       {"packet_seq_num", FieldClass::Unsigned(64).For("packet-sequence-number")},
       {"events_discarded",
        FieldClass::Unsigned(64).For("discarded-event-record-counter-snapshot")}});
  if (stream_class == kStreamOfCpu) {
    context.members.push_back({"cpu_id", FieldClass::Unsigned(32)});
  }
  return context;
}

FieldClass EventHeader() {
  return FieldClass::Struct({{"id", FieldClass::Unsigned(32).For("event-record-class-id")},
                             {"timestamp", FieldClass::Time().For("default-clock-timestamp")}});
}

Stream::Stream(const Uuid& trace, std::uint64_t instance, std::optional<std::uint32_t> cpu,
               output::AtomicFolder* folder)
    : trace_(trace), instance_(instance), cpu_(cpu), folder_(folder) {}

absl::Status Stream::AddEvent(std::uint64_t time, std::uint32_t event_class,
                              std::span<const std::byte> fields) {
  if (events_.empty()) first_time_ = time;
  last_time_ = time;
  events_.Fixed(event_class);
  events_.Fixed(time);
  events_.Bytes(fields);
  return events_.size() >= kPacketSize ? Flush() : absl::OkStatus();
}

absl::Status Stream::AddLoss(std::uint64_t time, std::uint64_t count) {
  RETURN_IF_ERROR(Flush());
  last_time_ = std::max(last_time_, time);
  if (packets_ == 0) {
    // To find the losses of a packet, readers subtract the loss counter of the previous packet. If
    // the stream has no packet yet, an empty packet must therefore precede the packet with the
    // first loss.
    RETURN_IF_ERROR(WritePacket(last_time_));
  }
  lost_ += count;
  return WritePacket(last_time_);
}

absl::Status Stream::Flush() {
  return events_.empty() ? absl::OkStatus() : WritePacket(first_time_);
}

absl::Status Stream::WritePacket(std::uint64_t begin) {
  constexpr std::uint32_t kMagic = 0xC1FC1FC1;
  ByteWriter packet;
  packet.Fixed(kMagic);
  packet.Bytes(trace_);
  packet.Fixed(stream_class());
  packet.Fixed(instance_);
  packet.Fixed(begin);
  packet.Fixed(last_time_);
  const std::size_t sizes = packet.Reserve(2 * sizeof(std::uint64_t));
  packet.Fixed(packets_++);
  packet.Fixed(lost_);
  if (cpu_) packet.Fixed(*cpu_);
  packet.Bytes(events_.bytes());
  const std::uint64_t bits = packet.size() * 8;
  packet.FixedAt(sizes, bits);
  packet.FixedAt(sizes + sizeof bits, bits);
  // Frees the memory, so that it does not stay allocated after a burst.
  events_ = ByteWriter();
  return folder_->Append(absl::StrCat("stream-", instance_), packet.bytes());
}

}  // namespace tools::ctf
