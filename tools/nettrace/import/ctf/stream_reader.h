// Reads the packets and events of a stream of a CTF trace, one event at a time.
#ifndef TOOLS_NETTRACE_IMPORT_CTF_STREAM_READER_H_
#define TOOLS_NETTRACE_IMPORT_CTF_STREAM_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "libnettrace-writer/core/byte_writer.h"
#include "tools/nettrace/import/byte_file.h"
#include "tools/nettrace/import/ctf/bit_reader.h"
#include "tools/nettrace/import/ctf/decoder.h"
#include "tools/nettrace/import/ctf/layout.h"
#include "tools/nettrace/import/ctf/metadata.h"

namespace tools::importing::ctf {

// Receives the description of damage, with its offset in the stream. Reading then continues at the
// next packet, if the position of that packet is known, and ends otherwise.
using OnDamage = absl::FunctionRef<void(const absl::Status& status)>;

class StreamReader {
 public:
  // All pointers must outlive this object. Other streams may use `decoder` between two calls.
  StreamReader(std::string name, std::unique_ptr<ByteFile> file, const Metadata* metadata,
               const Layout* layout, Decoder* decoder);

  // Advances to the next event. Returns false at the end, or if damage ends the reading.
  bool Next(OnDamage on_damage);
  // Returns the event's time, in ns since 1970. It is not earlier than the time of the previous
  // event.
  std::int64_t time() const { return time_; }
  const EventClass& event_class() const { return *event_class_; }
  // Reads the contexts and fields of the event. Must be called at most once after each Next. The
  // Decoder that the constructor received then holds the values with roles and the chosen options
  // of variants. Returns false if the event is damaged; the rest of its packet is then skipped.
  bool ReadEvent(nettrace::internal::ByteWriter* context, nettrace::internal::ByteWriter* fields,
                 OnDamage on_damage);
  const StreamClass& stream_class() const { return *stream_class_; }

  const std::string& name() const { return name_; }
  // Returns the packet's CPU; nullopt if it has none.
  std::optional<std::uint32_t> cpu() const { return cpu_; }
  // Returns the number of events that the packets report as lost since the last call.
  std::uint64_t TakeLost() { return std::exchange(lost_, 0); }
  // Number of missing packets, according to the packet numbers.
  std::uint64_t packets_missing() const { return packets_missing_; }
  // Number of events that were earlier than the previous event. They get the previous event's time.
  std::uint64_t moved() const { return moved_; }
  std::uint64_t size() const { return file_->size(); }
  std::uint64_t offset() const { return reader_.offset(); }

 private:
  // Reads the header and context of the next packet. Returns false at the end of the file, and if
  // the packet cannot be read.
  bool BeginPacket(OnDamage on_damage);
  absl::Status ReadPacketHeader();
  absl::Status SetSizes();
  void CountLosses();
  // Reads the header of the next event in the packet. Returns false if the packet has no further
  // event, or the event is damaged.
  bool ReadEventHeader(OnDamage on_damage);
  // Calls `on_damage` with the error, to which the offset of the current event is added.
  void ReportDamage(OnDamage on_damage, const absl::Status& status) const;
  // Advances the clock to the next time whose lowest `size` bits are those of `value`. With 64
  // bits, sets the clock to `value`, which may be earlier.
  void SetClock(std::uint64_t value, unsigned size);
  std::int64_t TimeOf(const Node* timestamp) const;

  const std::string name_;
  const std::unique_ptr<ByteFile> file_;
  const Metadata* const metadata_;
  const Layout* const layout_;
  Decoder* const decoder_;
  BitReader reader_;
  std::vector<std::uint64_t> values_;  // values of the slots with kStreamSlot
  const StreamClass* stream_class_ = nullptr;
  const EventClass* event_class_ = nullptr;
  bool in_packet_ = false;
  std::uint64_t packet_offset_ = 0;   // bytes from the file's start to the packet
  std::uint64_t next_packet_ = 0;     // bytes from the file's start to the next packet
  std::uint64_t event_offset_ = 0;    // bytes from the file's start to the event
  std::uint64_t event_position_ = 0;  // bits from the packet's start to the event
  bool is_cut_ = false;               // whether the file ends within the packet
  std::uint64_t content_bits_ = 0;
  std::uint64_t clock_ = 0;           // last time of the stream's clock, in cycles
  const Node* clock_node_ = nullptr;  // timestamp that set clock_; null: the packet context set it
  std::int64_t time_;
  std::optional<std::uint32_t> cpu_;
  std::optional<std::uint64_t> packet_number_;
  std::optional<std::uint64_t> discarded_;
  std::uint64_t lost_ = 0;
  std::uint64_t packets_missing_ = 0;
  std::uint64_t moved_ = 0;
};

}  // namespace tools::importing::ctf

#endif  // TOOLS_NETTRACE_IMPORT_CTF_STREAM_READER_H_
