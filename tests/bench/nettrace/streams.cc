#include "tests/bench/nettrace/streams.h"

#include <cstring>
#include <utility>

#include "tests/bench/measure.h"

namespace bench {
namespace {

using Step = nettrace::Reader::Step;

constexpr std::size_t kManyInterned = 256;
constexpr std::size_t kFrames = 20;
constexpr std::size_t kMetadataPerProvider = 50'000;

std::size_t CountOf(Interned interned) { return interned == Interned::kMany ? kManyInterned : 1; }

const char* NameOf(Interned interned) {
  return interned == Interned::kNone ? "no" : interned == Interned::kOne ? "1" : "256";
}

// Returns 0 to count - 1 repeatedly, every step-th number, without a division.
class Turn {
 public:
  Turn(std::size_t step, std::size_t count) : step_(step % count), count_(count) {}
  std::size_t Next() {
    const std::size_t now = next_;
    next_ += step_;
    if (next_ >= count_) next_ -= count_;
    return now;
  }

 private:
  std::size_t step_;
  std::size_t count_;
  std::size_t next_ = 0;
};

using Words [[gnu::vector_size(16)]] = std::uint64_t;

Words WordsAt(const std::byte* at) {
  Words words;
  std::memcpy(&words, at, sizeof words);
  return words;
}

// Reads every byte at about the speed of a copy, so that summing does not dominate the result.
std::uint64_t Sum(std::span<const std::byte> bytes) {
  Words even = {};
  Words odd = {};
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 32; at += 32, left -= 32) {
    even += WordsAt(at);
    odd += WordsAt(at + 16);
  }
  if (left >= 16) {
    even += WordsAt(at);
    at += 16;
    left -= 16;
  }
  even += odd;
  std::uint64_t sum = even[0] + even[1];
  for (; left > 0; ++at, --left) sum += static_cast<std::uint8_t>(*at);
  return sum;
}

}  // namespace

std::string Stream::Name() const {
  std::string name = std::to_string(payload_size) + " bytes, " + std::to_string(threads) +
                     (threads == 1 ? " thread" : " threads");
  if (labels != Interned::kNone) name += std::string(", label lists: ") + NameOf(labels);
  if (stacks != Interned::kNone) name += std::string(", stacks: ") + NameOf(stacks);
  if (metadata_rows > 1) name += ", metadata rows: " + std::to_string(metadata_rows);
  return name;
}

PayloadCopier::PayloadCopier(std::size_t payload_size, std::unique_ptr<nettrace::Sink> sink)
    : payloads_(payload_size),
      sink_(std::move(sink)),
      size_(nettrace::WriterOptions().event_block_size),
      block_(size_),
      next_(block_.data()) {}

void PayloadCopier::Copy(std::size_t events) {
  const std::byte* const end = block_.data() + size_;
  for (std::size_t i = 0; i < events; ++i) {
    const std::span<const std::byte> payload = payloads_[i];
    if (static_cast<std::size_t>(end - next_) < payload.size()) {
      std::size_t taken = 0;
      Check(sink_->Append({block_.data(), next_}, &taken));
      next_ = block_.data();
    }
    std::memcpy(next_, payload.data(), payload.size());
    asm volatile("" : : "r"(next_) : "memory");
    next_ += payload.size();
  }
}

StreamWriter::StreamWriter(const Stream& stream, std::unique_ptr<nettrace::Sink> sink)
    : stream_(stream),
      payloads_(stream.payload_size),
      labels_(CountOf(stream.labels)),
      writer_(Check(nettrace::Writer::Create(std::move(sink), nettrace::TraceInfo()))) {
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    labels_[i].activity_id.emplace().fill(static_cast<std::byte>(i));
  }
  for (std::size_t i = 0; i < CountOf(stream.stacks); ++i) stacks_.emplace_back(kFrames, i + 1);

  nettrace::EventMetadata metadata;
  metadata.name = "Event";
  for (std::size_t i = 0; i < stream.metadata_rows; ++i) {
    metadata.event_id = static_cast<std::uint32_t>(1 + i % kMetadataPerProvider);
    metadata.provider = "Provider" + std::to_string(i / kMetadataPerProvider);
    Check(writer_->AddMetadata(metadata).status());
  }
  for (std::size_t i = 0; i < stream.threads; ++i) Check(writer_->AddThread({}).status());
}

void StreamWriter::Write(std::size_t events) {
  // Local copies: the calls cannot change them, so the compiler does not load them again for each
  // event.
  const Stream stream = stream_;
  const Payloads payloads = payloads_;
  nettrace::Writer& writer = *writer_;
  const std::uint64_t end = events_ + events;
  std::uint64_t now = now_;
  nettrace::EventRow row = {.metadata_id = nettrace::MetadataId{1},
                            .capture_thread = nettrace::ThreadIndex{1},
                            .thread = nettrace::ThreadIndex{1}};
  Turn thread(1, stream.threads);
  Turn metadata(7919, stream.metadata_rows);  // successive rows share no cache line
  Turn labels(1, labels_.size());
  Turn stacks(1, stacks_.size());
  for (std::uint64_t i = events_; i < end; ++i) {
    row.timestamp = now += 100 + i % 1024;
    if (stream.threads > 1)
      row.capture_thread = row.thread = nettrace::ThreadIndex{1 + thread.Next()};
    if (stream.metadata_rows > 1) row.metadata_id = nettrace::MetadataId(1 + metadata.Next());
    if (stream.labels != Interned::kNone) {
      row.label_list_id = *writer.InternLabels(labels_[labels.Next()]);
    }
    if (stream.stacks != Interned::kNone) {
      row.stack_id = *writer.InternStack(stacks_[stacks.Next()]);
    }
    const absl::Status status = writer.WriteEvent(row, payloads[i]);
    if (!status.ok()) [[unlikely]]
      Check(status);
  }
  now_ = now;
  events_ += events;
}

void StreamWriter::WriteSequencePoint() { Check(writer_->WriteSequencePoint(++now_)); }

StreamReader::StreamReader(std::unique_ptr<nettrace::Source> source)
    : reader_(Check(nettrace::Reader::Open(std::move(source)))) {}

void StreamReader::SkipToSequencePoint() {
  for (Step step = Step::kEvent; step != Step::kSequencePoint;) {
    step = reader_->Next();
    if (step == Step::kEnd) Fail("the stream that was read has no sequence point");
  }
}

void StreamReader::ReadToEnd(std::uint64_t events) {
  std::uint64_t sum = 0;
  for (Step step = reader_->Next(); step != Step::kEnd; step = reader_->Next()) {
    if (step == Step::kEvent) sum += Sum(reader_->event().payload);
  }
  asm volatile("" : : "r"(sum));
  Check(reader_->status());
  if (reader_->stats().events != events) Fail("the stream that was read lacks events");
}

}  // namespace bench
