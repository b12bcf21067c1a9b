#include "tools/nettrace/import/ctf/stream_reader.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"

namespace tools::importing::ctf {
namespace {

constexpr std::uint32_t kPacketMagic = 0xC1FC1FC1;
constexpr std::int64_t kNanoseconds = 1'000'000'000;

std::int64_t Saturate(absl::int128 number) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::clamp(number, absl::int128(kMin), absl::int128(kMax)));
}

}  // namespace

StreamReader::StreamReader(std::string name, std::unique_ptr<ByteFile> file,
                           const Metadata* metadata, const Layout* layout, Decoder* decoder)
    : name_(std::move(name)),
      file_(std::move(file)),
      metadata_(metadata),
      layout_(layout),
      decoder_(decoder),
      reader_(file_.get()),
      values_(layout->stream_slots),
      time_(std::numeric_limits<std::int64_t>::min()) {}

void StreamReader::ReportDamage(OnDamage on_damage, const absl::Status& status) const {
  on_damage(absl::Status(status.code(),
                         absl::StrCat(name_, ": at byte ", event_offset_, ": ", status.message())));
}

// Converts clock_ to ns since 1970, by the clock to which `timestamp` is mapped. Without a mapping,
// uses the only clock of the trace. If the trace has no clock or several clocks, assumes that
// clock_ counts ns since 1970.
std::int64_t StreamReader::TimeOf(const Node* timestamp) const {
  static const Clock kDefault;
  const Clock* clock = metadata_->clocks.size() == 1 ? &metadata_->clocks.front() : &kDefault;
  if (timestamp != nullptr && timestamp->clock >= 0) {
    clock = &metadata_->clocks[static_cast<std::size_t>(timestamp->clock)];
  }
  const absl::int128 cycles = absl::int128(clock->offset) + absl::int128(clock_);
  const absl::int128 frequency(clock->frequency);
  // All numbers are below 2^66 before they are multiplied, so no product overflows.
  const absl::int128 seconds = absl::int128(clock->offset_seconds) + cycles / frequency;
  return Saturate(seconds * kNanoseconds + cycles % frequency * kNanoseconds / frequency);
}

void StreamReader::SetClock(std::uint64_t value, unsigned size) {
  if (size == 64) {
    clock_ = value;
    return;
  }
  const std::uint64_t mask = (std::uint64_t{1} << size) - 1;
  value &= mask;
  // If `value` is lower than the lowest `size` bits of the clock, assumes that these bits have
  // wrapped around once since the clock was set.
  if (value < (clock_ & mask)) clock_ += mask + 1;
  clock_ = (clock_ & ~mask) | value;
}

absl::Status StreamReader::ReadPacketHeader() {
  Captured& captured = decoder_->captured();
  if (layout_->packet_header) {
    absl::Status status = decoder_->Decode(*layout_->packet_header, nullptr);
    if (!status.ok()) return status;
    if (captured.Has(Role::kMagic) && captured.Number(Role::kMagic) != kPacketMagic) {
      return absl::DataLossError("the magic number of the packet is wrong");
    }
    if (captured.uuid.size() == 16 && metadata_->uuid &&
        !std::equal(captured.uuid.begin(), captured.uuid.end(), metadata_->uuid->begin())) {
      return absl::DataLossError(
          "the uuid of the packet is not that of the metadata, so it belongs to another trace; "
          "import each trace from a separate directory");
    }
  }
  std::uint64_t id = captured.Number(Role::kStreamId);
  if (!captured.Has(Role::kStreamId) && layout_->streams.size() == 1) {
    id = layout_->streams.begin()->first;
  }
  const auto stream = layout_->streams.find(id);
  if (stream == layout_->streams.end()) {
    return absl::DataLossError(absl::StrCat("stream ", id, " is not declared"));
  }
  stream_class_ = stream->second.get();
  if (stream_class_->packet_context) {
    return decoder_->Decode(*stream_class_->packet_context, nullptr);
  }
  return absl::OkStatus();
}

absl::Status StreamReader::SetSizes() {
  const Captured& captured = decoder_->captured();
  const std::uint64_t rest = (file_->size() - packet_offset_) * 8;
  std::uint64_t packet = rest;
  if (captured.Has(Role::kPacketSize)) {
    packet = captured.Number(Role::kPacketSize);
  } else if (captured.Has(Role::kContentSize)) {
    packet = captured.Number(Role::kContentSize);
  }
  content_bits_ = captured.Has(Role::kContentSize) ? captured.Number(Role::kContentSize) : packet;
  if (packet % 8 != 0) {
    return absl::DataLossError(
        absl::StrCat("the packet has ", packet, " bits, which are not whole bytes"));
  }
  if (content_bits_ > packet) {
    return absl::DataLossError(absl::StrCat("the content of the packet has ", content_bits_,
                                            " bits, more than the packet, which has ", packet));
  }
  if (content_bits_ < reader_.position()) {
    return absl::DataLossError(
        absl::StrCat("the content of the packet has ", content_bits_,
                     " bits, fewer than the header of the packet, which has ", reader_.position()));
  }
  is_cut_ = packet > rest;
  next_packet_ = is_cut_ ? file_->size() : packet_offset_ + packet / 8;
  reader_.SetEnd(std::min(content_bits_, rest));
  return absl::OkStatus();
}

void StreamReader::CountLosses() {
  const Captured& captured = decoder_->captured();
  std::optional<std::uint64_t> before = packet_number_;
  if (captured.Has(Role::kPacketNumber)) {
    packet_number_ = captured.Number(Role::kPacketNumber);
    if (before && *packet_number_ > *before) packets_missing_ += *packet_number_ - *before - 1;
  }
  if (!captured.Has(Role::kDiscarded)) return;
  const std::uint64_t discarded = captured.Number(Role::kDiscarded);
  // The counter of discarded events in the first packet may include events from before the trace
  // began, so it counts only if the packet has the number 0.
  const bool is_first = captured.Has(Role::kPacketNumber) && *packet_number_ == 0;
  if (discarded_ && discarded > *discarded_) {
    lost_ += discarded - *discarded_;
  } else if (!discarded_ && is_first) {
    lost_ += discarded;
  }
  discarded_ = discarded;
}

bool StreamReader::BeginPacket(OnDamage on_damage) {
  packet_offset_ = event_offset_ = next_packet_;
  if (packet_offset_ >= file_->size()) return false;
  decoder_->Use(&reader_, &values_);
  decoder_->BeginEvent();
  reader_.Begin(packet_offset_, (file_->size() - packet_offset_) * 8);
  absl::Status status = ReadPacketHeader();
  if (status.ok()) status = SetSizes();
  if (!status.ok()) {
    if (!reader_.ok() && absl::IsDataLoss(status))
      status = absl::DataLossError("the packet is cut");
    ReportDamage(on_damage, status);
    next_packet_ = file_->size();
    return false;
  }
  const Captured& captured = decoder_->captured();
  if (captured.Has(Role::kTimestampBegin)) {
    clock_ = captured.Number(Role::kTimestampBegin);
    clock_node_ = nullptr;
  }
  cpu_.reset();
  if (captured.Has(Role::kPacketCpu) &&
      captured.Number(Role::kPacketCpu) < std::numeric_limits<std::uint32_t>::max()) {
    cpu_ = static_cast<std::uint32_t>(captured.Number(Role::kPacketCpu));
  }
  CountLosses();
  in_packet_ = true;
  event_position_ = reader_.position();
  return true;
}

bool StreamReader::ReadEventHeader(OnDamage on_damage) {
  if (reader_.left() == 0) {
    if (is_cut_) ReportDamage(on_damage, absl::DataLossError("the file ends within a packet"));
    return false;
  }
  event_offset_ = reader_.offset();
  event_position_ = reader_.position();
  decoder_->Use(&reader_, &values_);
  decoder_->BeginEvent();
  absl::Status status;
  if (stream_class_->event_header) status = decoder_->Decode(*stream_class_->event_header, nullptr);
  const Captured& captured = decoder_->captured();
  if (status.ok()) {
    const auto& events = stream_class_->events;
    // An event without an id belongs to the only event class.
    const auto event = captured.Has(Role::kId) || events.size() != 1
                           ? events.find(captured.Number(Role::kId))
                           : events.begin();
    if (event == events.end()) {
      status = absl::DataLossError(
          absl::StrCat("the metadata declares no event with id ", captured.Number(Role::kId),
                       " for this stream; check that the metadata belongs to this trace"));
    } else {
      event_class_ = event->second.get();
    }
  }
  if (!status.ok()) {
    if (is_cut_ && !reader_.ok()) status = absl::DataLossError("the file ends within an event");
    ReportDamage(on_damage, status);
    return false;
  }
  if (captured.timestamp != nullptr) {
    SetClock(captured.Number(Role::kTimestamp), captured.timestamp->size);
    clock_node_ = captured.timestamp;
  }
  const std::int64_t time = TimeOf(clock_node_);
  if (time < time_) ++moved_;
  time_ = std::max(time_, time);
  return true;
}

bool StreamReader::Next(OnDamage on_damage) {
  while (true) {
    if (!in_packet_ && !BeginPacket(on_damage)) return false;
    if (ReadEventHeader(on_damage)) return true;
    in_packet_ = false;
  }
}

bool StreamReader::ReadEvent(nettrace::internal::ByteWriter* context,
                             nettrace::internal::ByteWriter* fields, OnDamage on_damage) {
  decoder_->Use(&reader_, &values_);
  decoder_->BeginEvent();
  absl::Status status;
  if (stream_class_->event_context)
    status = decoder_->Decode(*stream_class_->event_context, context);
  if (status.ok() && event_class_->context) {
    status = decoder_->Decode(*event_class_->context, context);
  }
  if (status.ok() && event_class_->fields) {
    status = decoder_->Decode(*event_class_->fields, fields);
  }
  if (status.ok() && reader_.position() == event_position_) {
    status = absl::DataLossError("an event has the size 0");
  }
  if (status.ok()) return true;
  if (is_cut_ && !reader_.ok()) status = absl::DataLossError("the file ends within an event");
  ReportDamage(on_damage, status);
  in_packet_ = false;
  return false;
}

}  // namespace tools::importing::ctf
