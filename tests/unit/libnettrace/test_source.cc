// Tests that a stream reads the same from each source.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nettrace/reader.h"
#include "nettrace/writer.h"

namespace nettrace {
namespace {

// A source without InMemory() that returns a few bytes at a time.
class PieceSource : public Source {
 public:
  PieceSource(std::span<const std::byte> bytes, std::size_t piece) : rest_(bytes), piece_(piece) {}
  absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) override {
    const std::size_t size = std::min({buffer.size(), rest_.size(), piece_});
    std::copy_n(rest_.begin(), size, buffer.begin());
    rest_ = rest_.subspan(size);
    return size;
  }

 private:
  std::span<const std::byte> rest_;
  std::size_t piece_;
};

// Writes events on two threads. Their times, sizes and metadata change from time to time. The
// stream also states lost events.
std::vector<std::byte> WriteStream() {
  std::vector<std::byte> bytes;
  auto sink = std::make_unique<CallbackSink>([&](auto block, std::size_t* taken) {
    bytes.insert(bytes.end(), block.begin(), block.end());
    *taken = block.size();
    return absl::OkStatus();
  });
  WriterOptions options;
  options.event_block_size = 3000;
  auto writer = Writer::Create(std::move(sink), TraceInfo(), options);
  for (std::uint32_t id : {1, 2}) {
    EventMetadata metadata;
    metadata.provider = "P";
    metadata.event_id = id;
    EXPECT_TRUE((*writer)->AddMetadata(metadata).ok());
    EXPECT_TRUE((*writer)->AddThread({}).ok());
  }
  EventRow row = {
      .metadata_id = MetadataId{1}, .capture_thread = ThreadIndex{1}, .thread = ThreadIndex{1}};
  for (std::uint32_t i = 0; i < 2000; ++i) {
    row.metadata_id = MetadataId{1 + (i / 100) % 2};
    row.capture_thread = row.thread = ThreadIndex{1 + (i / 7) % 2};
    row.timestamp += std::uint64_t{1} << (i % 40);
    if (i % 300 == 299) {
      EXPECT_TRUE((*writer)->AddLost(row.capture_thread, 3).ok());
    }
    const std::vector<std::byte> payload((i / 50) % 90, static_cast<std::byte>(i));
    EXPECT_TRUE((*writer)->WriteEvent(row, payload).ok());
    if (i % 900 == 899) {
      EXPECT_TRUE((*writer)->WriteSequencePoint(row.timestamp).ok());
    }
  }
  EXPECT_TRUE((*writer)->Finish().ok());
  return bytes;
}

// Returns everything that a reader delivers, as text.
std::string TextOfStream(std::unique_ptr<Source> source) {
  auto opened = Reader::Open(std::move(source));
  if (!opened.ok()) return opened.status().ToString();
  Reader& reader = **opened;
  std::string text;
  for (auto step = reader.Next(); step != Reader::Step::kEnd; step = reader.Next()) {
    absl::StrAppend(&text, static_cast<int>(step), ":");
    if (step != Reader::Step::kEvent) continue;
    const Event& event = reader.event();
    absl::StrAppend(&text, event.offset, " ", ToNumber(event.metadata_id), " ",
                    event.metadata->event_id, " ", ToNumber(event.thread_index), " ",
                    event.sequence_number, " ", event.lost_before, " ", event.timestamp, " ",
                    event.is_sorted, " ", event.payload.size(), "\n");
    for (const std::byte byte : event.payload) text += static_cast<char>(byte);
  }
  const Reader::Stats& stats = reader.stats();
  absl::StrAppend(&text, reader.status().ToString(), " ", stats.events, " ", stats.lost, " ",
                  stats.bytes, " ", stats.first_timestamp.value_or(0), " ",
                  stats.last_timestamp.value_or(0));
  return text;
}

TEST(Source, PiecesReadLikeMemory) {
  const std::vector<std::byte> bytes = WriteStream();
  const std::string expected = TextOfStream(std::make_unique<MemorySource>(bytes));
  EXPECT_NE(expected.find("OK 2000 18 "), std::string::npos);
  for (const std::size_t piece : {1, 7, 4096, 1 << 20}) {
    EXPECT_EQ(TextOfStream(std::make_unique<PieceSource>(bytes, piece)), expected) << piece;
  }
}

TEST(Source, ACutStreamReadsTheSameInPiecesAndInMemory) {
  const std::vector<std::byte> bytes = WriteStream();
  for (std::size_t cut = 0; cut < bytes.size(); cut += 1 + cut / 16) {
    const auto part = std::span(bytes).first(cut);
    EXPECT_EQ(TextOfStream(std::make_unique<PieceSource>(part, 1000)),
              TextOfStream(std::make_unique<MemorySource>(part)))
        << cut;
  }
}

TEST(Source, AFlippedBitReadsTheSameInPiecesAndInMemory) {
  std::vector<std::byte> bytes = WriteStream();
  for (std::size_t at = 0; at < bytes.size(); at += 1 + at / 64) {
    for (const std::byte bit : {std::byte{1}, std::byte{0x80}}) {
      bytes[at] ^= bit;
      EXPECT_EQ(TextOfStream(std::make_unique<PieceSource>(bytes, 1000)),
                TextOfStream(std::make_unique<MemorySource>(bytes)))
          << at;
      bytes[at] ^= bit;
    }
  }
}

}  // namespace
}  // namespace nettrace
