#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <thread>

#include "nettrace/reader.h"
#include "nettrace/writer.h"
#include "tests/support/nettrace/read_all.h"
#include "tests/support/nettrace/writer_to_string.h"
#include "tests/support/wait_until.h"
#include "tools/output/output_queue.h"
#include "tools/output/zstd_sink.h"
#include "tools/trace/zstd_source.h"

namespace output {
namespace {

using nettrace::testing::AllBytes;
using nettrace::testing::PiecesSource;
using nettrace::testing::Span;

// The final destination of the bytes; used by two threads.
class Device {
 public:
  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) {
    const std::lock_guard lock(mutex_);
    ++appends_;
    *taken = std::min(bytes.size(), room_);
    if (fail_every_ != 0 && appends_ % fail_every_ == 0) *taken /= 2;
    room_ -= *taken;
    bytes_.append(reinterpret_cast<const char*>(bytes.data()), *taken);
    return *taken == bytes.size() ? absl::OkStatus() : absl::ErrnoToStatus(ENOSPC, "the device");
  }
  void SetRoom(std::size_t room) {
    const std::lock_guard lock(mutex_);
    room_ = room;
  }
  void SetFailEvery(int n) {
    const std::lock_guard lock(mutex_);
    fail_every_ = n;
  }
  std::string bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }
  std::unique_lock<std::mutex> Hold() { return std::unique_lock(mutex_); }

  absl::Status sync_status;
  int syncs = 0;

 private:
  mutable std::mutex mutex_;
  std::string bytes_;
  std::size_t room_ = std::string::npos;
  int fail_every_ = 0;
  int appends_ = 0;
};

class DeviceSink : public nettrace::Sink {
 public:
  explicit DeviceSink(Device* device) : device_(device) {}
  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override {
    return device_->Append(bytes, taken);
  }
  absl::Status Sync() override {
    ++device_->syncs;
    return device_->sync_status;
  }

 private:
  Device* const device_;
};

// Returns a sink that compresses on a separate thread, as programs that write one file do.
std::unique_ptr<QueueSink> MakeSink(Device* device, const ZstdSinkOptions& options = {}) {
  auto queue = CompressOnThread(std::make_unique<DeviceSink>(device), options);
  EXPECT_TRUE(queue.ok()) << queue.status();
  return std::make_unique<QueueSink>(*std::move(queue));
}

// Returns what the tools read from the compressed bytes.
AllBytes Decompressed(std::string_view compressed) {
  auto source = trace::OpenCompressed(std::make_unique<PiecesSource>(compressed));
  EXPECT_TRUE(source.ok());
  return nettrace::testing::ReadAll(source->get());
}

// Returns text that can be compressed somewhat.
std::string SomeText(std::size_t size, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::string text;
  while (text.size() < size) text += "event " + std::to_string(random() % 100'000) + "; ";
  text.resize(size);
  return text;
}

// Appends all of `text` in pieces, and repeats what was not accepted.
void AppendAll(nettrace::Sink* sink, std::string_view text) {
  std::mt19937 random(7);
  while (!text.empty()) {
    const std::size_t size = std::min<std::size_t>(text.size(), 1 + random() % 100'000);
    std::size_t taken = 0;
    const absl::Status status = sink->Append(Span(text.substr(0, size)), &taken);
    ASSERT_LE(taken, size);
    ASSERT_EQ(status.ok(), taken == size);
    text.remove_prefix(taken);
  }
}

TEST(ZstdSinkTest, ReadsBackTheWrittenBytes) {
  for (const std::size_t size : {0u, 1u, 1000u, 128u << 10, (128u << 10) + 1, 5'000'000u}) {
    Device device;
    auto sink = MakeSink(&device);
    const std::string text = SomeText(size);
    AppendAll(sink.get(), text);
    ASSERT_TRUE(sink->Sync().ok());
    EXPECT_EQ(sink->Undelivered(), 0u);
    EXPECT_EQ(device.syncs, 1);
    const AllBytes read = size == 0 ? AllBytes{device.bytes(), {}} : Decompressed(device.bytes());
    EXPECT_TRUE(read.status.ok()) << read.status;
    EXPECT_TRUE(read.bytes == text) << size;
    if (size > 1000) {
      EXPECT_LT(device.bytes().size(), size / 2);
    }
  }
}

TEST(ZstdSinkTest, EachFlushEndsAFrame) {
  Device device;
  auto sink = MakeSink(&device);
  std::string text;
  for (int i = 0; i < 5; ++i) {
    const std::string part = SomeText(i * 100'000 + 10, static_cast<unsigned>(i));
    AppendAll(sink.get(), part);
    text += part;
    ASSERT_TRUE(sink->Flush().ok());
    ASSERT_TRUE(sink->Flush().ok()) << "of nothing";
    ASSERT_NO_FATAL_FAILURE(tests::WaitUntil([&] { return sink->Undelivered() == 0; }));
    // The end of the frame may arrive after the last bytes of its contents.
    ASSERT_NO_FATAL_FAILURE(
        tests::WaitUntil([&] { return Decompressed(device.bytes()).status.ok(); }));
    EXPECT_TRUE(Decompressed(device.bytes()).bytes == text);
  }
  ASSERT_TRUE(sink->Sync().ok());
  const std::string bytes = device.bytes();
  std::size_t frames = 0;
  for (std::size_t at = 0; at < bytes.size(); ++frames) {
    const std::size_t size = ZSTD_findFrameCompressedSize(bytes.data() + at, bytes.size() - at);
    ASSERT_EQ(ZSTD_isError(size), 0u);
    at += size;
  }
  EXPECT_EQ(frames, 5u) << "one for each that had something in it";
}

TEST(ZstdSinkTest, CutOutputIsReadableToItsLastWholeChunk) {
  Device device;
  auto sink = MakeSink(&device);
  const std::string text = SomeText(600'000);
  AppendAll(sink.get(), text.substr(0, 300'000));
  ASSERT_TRUE(sink->Sync().ok());
  const std::size_t first_frame = device.bytes().size();
  AppendAll(sink.get(), text.substr(300'000));
  ASSERT_TRUE(sink->Sync().ok());
  const std::string bytes = device.bytes();
  for (std::size_t size = 4; size < bytes.size(); size += 997) {
    const AllBytes read = Decompressed(std::string_view(bytes).substr(0, size));
    EXPECT_TRUE(text.starts_with(read.bytes)) << size;
    EXPECT_EQ(absl::IsDataLoss(read.status), size != first_frame) << size;
    if (size >= first_frame) {
      EXPECT_GE(read.bytes.size(), 300'000u) << "the whole frames are not all there";
    }
  }
}

TEST(ZstdSinkTest, DestructorWritesPendingBytes) {
  Device device;
  const std::string text = SomeText(1'000'000);
  AppendAll(MakeSink(&device).get(), text);
  const AllBytes read = Decompressed(device.bytes());
  EXPECT_TRUE(read.status.ok()) << read.status;
  EXPECT_TRUE(read.bytes == text);
  EXPECT_EQ(device.syncs, 0);
}

TEST(ZstdSinkTest, CountsTheBytesOfTheOutput) {
  Device device;
  ZstdSinkOptions options;
  options.written = std::make_shared<std::atomic<std::uint64_t>>(0);
  auto sink = MakeSink(&device, options);
  AppendAll(sink.get(), SomeText(1'000'000));
  ASSERT_TRUE(sink->Sync().ok());
  EXPECT_EQ(*options.written, device.bytes().size());
}

TEST(ZstdSinkTest, ReturnsAnErrorOfTheDeviceWhileItLasts) {
  Device device;
  device.SetRoom(10'000);
  auto sink = MakeSink(&device);
  // More text than the queue holds, so that Append waits for the error.
  const std::string text = SomeText(6'000'000);
  std::size_t given = 0;
  absl::Status status;
  while (status.ok() && given < text.size()) {
    std::size_t taken = 0;
    status = sink->Append(Span(std::string_view(text).substr(given, 50'000)), &taken);
    given += taken;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_LT(given, text.size());
  // Exactly the delivered bytes can be read.
  EXPECT_EQ(Decompressed(device.bytes()).bytes.size(), given - sink->Undelivered());

  std::size_t taken = 17;
  EXPECT_FALSE(sink->Append(Span(text), &taken).ok());
  EXPECT_EQ(taken, 0u);
  EXPECT_FALSE(sink->Flush().ok());
  EXPECT_FALSE(sink->Sync().ok());
  EXPECT_EQ(device.syncs, 0);
  EXPECT_EQ(Decompressed(device.bytes()).bytes.size(), given - sink->Undelivered());

  device.SetRoom(std::string::npos);
  AppendAll(sink.get(), std::string_view(text).substr(given));
  ASSERT_TRUE(sink->Sync().ok());
  const AllBytes read = Decompressed(device.bytes());
  EXPECT_TRUE(read.status.ok()) << read.status;
  EXPECT_TRUE(read.bytes == text);
}

TEST(ZstdSinkTest, TornWritesContinueWhereTheyEnded) {
  Device device;
  device.SetFailEvery(2);
  auto sink = MakeSink(&device);
  const std::string text = SomeText(3'000'000);
  AppendAll(sink.get(), text);
  for (int i = 0; i < 1000 && !sink->Sync().ok(); ++i) {
  }
  const AllBytes read = Decompressed(device.bytes());
  EXPECT_TRUE(read.status.ok()) << read.status;
  EXPECT_TRUE(read.bytes == text);
}

TEST(ZstdSinkTest, SyncReturnsTheErrorOfTheDevicesSync) {
  Device device;
  device.sync_status = absl::DataLossError("not durable");
  auto sink = MakeSink(&device);
  AppendAll(sink.get(), "text");
  EXPECT_EQ(sink->Sync(), device.sync_status);
}

TEST(ZstdSinkTest, AppendWaitsWhileTheQueueIsFull) {
  Device device;
  auto sink = MakeSink(&device);
  const std::string text = SomeText(6 << 20);
  std::future<void> writer;
  {
    const auto held = device.Hold();
    writer = std::async(std::launch::async, [&] { AppendAll(sink.get(), text); });
    EXPECT_EQ(writer.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout)
        << "more than the queue was taken while the device took nothing";
  }
  writer.get();
  ASSERT_TRUE(sink->Sync().ok());
  EXPECT_TRUE(Decompressed(device.bytes()).bytes == text);
}

// A trace of events that are numbered from 0.
class NumberedTrace {
 public:
  explicit NumberedTrace(std::unique_ptr<nettrace::Sink> sink)
      : writer_(*nettrace::Writer::Create(std::move(sink), nettrace::TraceInfo())) {
    nettrace::EventMetadata metadata;
    metadata.provider = "P";
    metadata.event_id = 1;
    EXPECT_TRUE(writer_->AddMetadata(metadata).ok());
    EXPECT_TRUE(writer_->AddThread({}).ok());
  }
  absl::Status Write() {
    const std::uint64_t number = next_++;
    return writer_->WriteEvent({.metadata_id = nettrace::MetadataId{1},
                                .capture_thread = nettrace::ThreadIndex{1},
                                .thread = nettrace::ThreadIndex{1},
                                .timestamp = number},
                               std::as_bytes(std::span(&number, 1)));
  }
  nettrace::Writer& writer() { return *writer_; }

 private:
  std::unique_ptr<nettrace::Writer> writer_;
  std::uint64_t next_ = 0;
};

std::uint64_t CountEvents(std::string_view compressed) {
  auto source = trace::OpenCompressed(std::make_unique<PiecesSource>(compressed));
  auto reader = nettrace::Reader::Open(*std::move(source));
  EXPECT_TRUE(reader.ok()) << reader.status();
  while ((*reader)->Next() != nettrace::Reader::Step::kEnd) {
  }
  return (*reader)->stats().events;
}

TEST(ZstdSinkTest, WriterKnowsHowManyEventsAreInTheFile) {
  Device device;
  device.SetRoom(150'000);
  NumberedTrace trace(MakeSink(&device));
  absl::Status status;
  for (int i = 0; status.ok() && i < 100'000'000; ++i) {
    status = trace.Write();
    if (status.ok() && i % 10'000 == 0) status = trace.writer().Flush();
  }
  ASSERT_FALSE(status.ok());
  const nettrace::Writer::Stats& stats = trace.writer().stats();
  EXPECT_GT(stats.events, stats.events_written);
  EXPECT_GT(stats.events_written, 10'000u);
  EXPECT_EQ(stats.events_written, CountEvents(device.bytes()));
}

TEST(ZstdSinkTest, EveryEventIsReadOnceThereIsRoomAgain) {
  Device device;
  NumberedTrace trace(MakeSink(&device));
  std::uint64_t written = 0;
  for (int i = 0; i < 200'000; ++i) {
    if (i % 50'000 == 20'000) device.SetRoom(1'000);
    if (i % 50'000 == 30'000) device.SetRoom(std::string::npos);
    written += trace.Write().ok() ? 1 : 0;
  }
  ASSERT_TRUE(trace.writer().Finish().ok());
  EXPECT_EQ(trace.writer().stats().events_written, written);
  EXPECT_EQ(CountEvents(device.bytes()), written);
}

TEST(ZstdSinkTest, FlushOfTheWriterReachesTheDevice) {
  Device device;
  NumberedTrace trace(MakeSink(&device));
  ASSERT_TRUE(trace.Write().ok());
  ASSERT_TRUE(trace.writer().Flush().ok());
  ASSERT_NO_FATAL_FAILURE(
      tests::WaitUntil([&] { return trace.writer().stats().events_written == 1; }));
  EXPECT_EQ(CountEvents(device.bytes()), 1u);
}

}  // namespace
}  // namespace output
