// Tests a sink that fails in every way and at every place: the accepted bytes must be readable, and
// the others must be reported.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "nettrace/reader.h"
#include "nettrace/verifier.h"
#include "nettrace/writer.h"
#include "tests/support/nettrace/writer_to_string.h"

namespace nettrace {
namespace {

// The bytes on a faulty device. Separate from the sink, so that they outlive the writer.
struct Device {
  std::string bytes;
  std::vector<std::size_t> sections;  // Offset of each section.
  std::size_t durable = 0;            // Bytes that survive a crash.
  int calls = 0;
  int fail_every = 0;    // N: every Nth call fails. 0: none.
  bool failing = false;  // All calls fail.
  bool tear = false;     // Accepts a part before it fails.
  int error = EIO;
  bool fail_sync = false;
  std::mt19937 random{1};
};

class FaultySink : public Sink {
 public:
  explicit FaultySink(Device* device) : device_(device) {}

  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override {
    const bool fails = Fails();
    *taken = bytes.size();
    if (fails) *taken = device_->tear ? device_->random() % bytes.size() : 0;
    device_->bytes.append(reinterpret_cast<const char*>(bytes.data()), *taken);
    return fails ? absl::ErrnoToStatus(device_->error, "faulty") : absl::OkStatus();
  }

  absl::Status BeginSection() override {
    if (Fails()) return absl::ErrnoToStatus(device_->error, "faulty section");
    device_->sections.push_back(device_->bytes.size());
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    if (device_->fail_sync) return absl::ErrnoToStatus(EIO, "faulty sync");
    device_->durable = device_->bytes.size();
    return absl::OkStatus();
  }

 private:
  bool Fails() {
    ++device_->calls;
    return device_->failing ||
           (device_->fail_every > 0 && device_->calls % device_->fail_every == 0);
  }

  Device* device_;
};

struct ReadBack {
  std::vector<std::uint64_t> payloads;
  Reader::Stats stats;
  bool damaged = false;
};

ReadBack Read(std::string_view bytes) {
  ReadBack back;
  auto reader = Reader::Open(std::make_unique<MemorySource>(testing::Span(bytes)));
  EXPECT_TRUE(reader.ok());
  if (!reader.ok()) return back;
  for (auto step = (*reader)->Next(); step != Reader::Step::kEnd; step = (*reader)->Next()) {
    if (step != Reader::Step::kEvent) continue;
    const Event& event = (*reader)->event();
    std::uint64_t payload = 0;
    EXPECT_EQ(event.payload.size(), sizeof payload);
    std::memcpy(&payload, event.payload.data(), sizeof payload);
    back.payloads.push_back(payload);
  }
  back.damaged = (*reader)->damage().has_value();
  back.stats = (*reader)->stats();
  return back;
}

constexpr int kThreads = 3;

void AddRows(Writer* writer) {
  EventMetadata metadata;
  metadata.provider = "P";
  metadata.event_id = 1;
  EXPECT_TRUE(writer->AddMetadata(metadata).ok());
  for (int i = 0; i < kThreads; ++i) EXPECT_TRUE(writer->AddThread({}).ok());
}

std::unique_ptr<Writer> MakeWriter(std::unique_ptr<Sink> sink, std::size_t event_block_size) {
  WriterOptions options;
  options.event_block_size = event_block_size;
  auto writer = Writer::Create(std::move(sink), TraceInfo(), options);
  AddRows(writer->get());
  return *std::move(writer);
}

std::unique_ptr<Writer> MakeWriter(Device* device) {
  return MakeWriter(std::make_unique<FaultySink>(device), 256);
}

// Writes event number `number` on a thread that depends on the number.
absl::Status WriteNumber(Writer* writer, std::uint64_t number) {
  const ThreadIndex thread{1 + number % kThreads};
  Labels labels;
  labels.span_id = number % 16;
  absl::StatusOr<LabelListId> id = writer->InternLabels(labels);
  EventRow row = {.metadata_id = MetadataId{1},
                  .capture_thread = thread,
                  .thread = thread,
                  .timestamp = number};
  if (id.ok()) row.label_list_id = *id;
  return writer->WriteEvent(row, std::as_bytes(std::span(&number, 1)));
}

template <typename Operation>
void UntilOk(Operation operation) {
  for (int attempt = 0; attempt < 10000; ++attempt) {
    if (operation().ok()) return;
  }
  FAIL() << "the operation failed 10000 times";
}

TEST(WriterStats, CountsEventsApartOnceTheyAreDelivered) {
  Device device;
  const std::unique_ptr<Writer> writer = MakeWriter(&device);
  writer->CountApart(ThreadIndex{1});
  writer->CountApart(ThreadIndex{1000});  // No such thread.
  std::uint64_t apart = 0;
  for (std::uint64_t number = 1; number <= 1000; ++number) {
    ASSERT_TRUE(WriteNumber(writer.get(), number).ok());
    if (number % kThreads == 0) ++apart;
  }
  EXPECT_LT(writer->stats().events_written_apart, apart);
  ASSERT_TRUE(writer->Flush().ok());
  EXPECT_EQ(writer->stats().events_written, 1000U);
  EXPECT_EQ(writer->stats().events_written_apart, apart);
}

struct Fault {
  const char* name;
  int error;
  bool tear;
};

class WriterFaults : public ::testing::TestWithParam<std::tuple<Fault, int>> {};

TEST_P(WriterFaults, EveryEventIsReadOrLostAfterAnyFailure) {
  const auto& [fault, every] = GetParam();
  Device device;
  const std::unique_ptr<Writer> writer = MakeWriter(&device);
  device.error = fault.error;
  device.tear = fault.tear;
  device.fail_every = every;

  std::vector<std::uint64_t> accepted;
  constexpr std::uint64_t kEvents = 5000;
  for (std::uint64_t number = 1; number <= kEvents; ++number) {
    if (WriteNumber(writer.get(), number).ok()) accepted.push_back(number);
    if (number % 1000 == 0) {
      UntilOk([&] { return writer->StartSection(number); });
      AddRows(writer.get());
    } else if (number % 500 == 0) {
      UntilOk([&] { return writer->WriteSequencePoint(number); });
    }
  }
  UntilOk([&] { return writer->Finish(); });

  const Writer::Stats& stats = writer->stats();
  EXPECT_EQ(stats.events, accepted.size());
  EXPECT_EQ(stats.events_written, accepted.size());
  EXPECT_EQ(stats.events + stats.events_dropped, kEvents);
  EXPECT_EQ(stats.bytes, device.bytes.size());
  ReadBack back = Read(device.bytes);
  EXPECT_FALSE(back.damaged);
  EXPECT_TRUE(back.stats.complete);
  std::sort(back.payloads.begin(), back.payloads.end());
  EXPECT_EQ(back.payloads, accepted);
  EXPECT_EQ(back.stats.lost, stats.events_dropped);

  // Each section is a separate stream.
  ASSERT_EQ(device.sections.size(), 1 + kEvents / 1000);
  std::vector<std::uint64_t> of_sections;
  for (std::size_t i = 0; i < device.sections.size(); ++i) {
    const std::size_t begin = device.sections[i];
    const bool is_last = i + 1 == device.sections.size();
    std::string stream = device.bytes.substr(0, device.sections[0]);
    stream +=
        device.bytes.substr(begin, is_last ? std::string::npos : device.sections[i + 1] - begin);
    if (!is_last) stream.append(kEndOfStreamBlock.size(), '\0');
    const auto report = Verify(std::make_unique<MemorySource>(testing::Span(stream)));
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->findings.empty()) << report->findings[0].explanation;
    back = Read(stream);
    EXPECT_TRUE(back.stats.complete);
    of_sections.insert(of_sections.end(), back.payloads.begin(), back.payloads.end());
  }
  std::sort(of_sections.begin(), of_sections.end());
  EXPECT_EQ(of_sections, accepted);
}

// The writer notifies the sink of a section when the sink has accepted all bytes of the previous
// section.
TEST(WriterFault, ASectionBeginsBetweenTwoBlocks) {
  Device device;
  const std::unique_ptr<Writer> writer = MakeWriter(&device);
  ASSERT_TRUE(WriteNumber(writer.get(), 1).ok());
  ASSERT_TRUE(writer->Flush().ok());
  device.tear = device.failing = true;
  // Returns OK once the sink has accepted the first bytes of the sequence point.
  UntilOk([&] { return writer->StartSection(2); });
  EXPECT_EQ(device.sections.size(), 1u);
  AddRows(writer.get());
  EXPECT_FALSE(writer->Flush().ok());
  device.failing = false;
  EXPECT_TRUE(writer->Flush().ok());
  ASSERT_EQ(device.sections.size(), 2u);
  EXPECT_EQ(static_cast<BlockKind>(device.bytes[device.sections[1] + 3]), BlockKind::kMetadata);
}

INSTANTIATE_TEST_SUITE_P(EveryNth, WriterFaults,
                         ::testing::Combine(::testing::Values(Fault{"ENOSPC", ENOSPC, false},
                                                              Fault{"EIO", EIO, false},
                                                              Fault{"EPIPE", EPIPE, false},
                                                              Fault{"ShortWrite", ENOSPC, true}),
                                            ::testing::Values(2, 3, 5, 17)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) +
                                  std::to_string(std::get<1>(test.param));
                         });

// FdSink handles interrupted and short writes, so the writer does not see them.
TEST(WriterFault, InterruptedAndShortWritesLoseNothing) {
  struct sigaction action = {};
  action.sa_handler = [](int) {};  // and no SA_RESTART
  struct sigaction before;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  ASSERT_GT(fcntl(ends[1], F_SETPIPE_SZ, 4096), 0);
  constexpr std::uint64_t kEvents = 20000;
  std::uint64_t accepted = 0;
  absl::Status finished;
  std::thread thread([&] {
    const std::unique_ptr<Writer> writer =
        MakeWriter(std::make_unique<FdSink>(ends[1], "pipe"), /*event_block_size=*/100'000);
    for (std::uint64_t number = 1; number <= kEvents; ++number) {
      accepted += WriteNumber(writer.get(), number).ok();
      if (number % (kEvents / 2) == 0) {
        EXPECT_TRUE(writer->WriteSequencePoint(number).ok());
      }
    }
    finished = writer->Finish();
  });
  // A write of a block is larger than the pipe, and each read makes room for a small part of it.
  std::string bytes;
  char buffer[1000];
  for (ssize_t size = 0; (size = read(ends[0], buffer, sizeof buffer)) > 0;) {
    bytes.append(buffer, static_cast<std::size_t>(size));
    pthread_kill(thread.native_handle(), SIGUSR1);
  }
  thread.join();
  close(ends[0]);
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_TRUE(finished.ok()) << finished;
  EXPECT_EQ(accepted, kEvents);
  const ReadBack back = Read(bytes);
  EXPECT_TRUE(back.stats.complete);
  EXPECT_EQ(back.payloads.size(), kEvents);
  EXPECT_EQ(back.stats.lost, 0U);
}

TEST(WriterFault, DeadSinkLosesEventsButTakesNoMemory) {
  Device device;
  const std::unique_ptr<Writer> writer = MakeWriter(&device);
  for (std::uint64_t number = 1; number <= 100; ++number) {
    ASSERT_TRUE(WriteNumber(writer.get(), number).ok());
  }
  device.failing = device.tear = true;
  const std::uint64_t before = writer->stats().events;
  for (std::uint64_t number = 101; number <= 100000; ++number) {
    const absl::Status status = WriteNumber(writer.get(), number);
    EXPECT_TRUE(status.ok() || status.message() == "faulty: Input/output error") << status;
  }
  EXPECT_FALSE(writer->Flush().ok());
  EXPECT_LT(writer->stats().events - before, 3 * kThreads * 256 / 9);
  const Writer::Stats stats = writer->stats();
  EXPECT_EQ(stats.events + stats.events_dropped, 100000U);

  // The stream must be readable up to its last complete block.
  const ReadBack back = Read(device.bytes);
  EXPECT_TRUE(back.damaged);
  EXPECT_EQ(back.payloads.size(), stats.events_written);

  // The writer continues.
  device.failing = false;
  ASSERT_TRUE(WriteNumber(writer.get(), 100001).ok());
  ASSERT_TRUE(writer->WriteSequencePoint(200000).ok());
  ASSERT_TRUE(writer->Finish().ok());
  const ReadBack whole = Read(device.bytes);
  EXPECT_FALSE(whole.damaged);
  EXPECT_EQ(whole.payloads.size(), stats.events + 1);
  EXPECT_EQ(whole.stats.lost, stats.events_dropped);
}

TEST(WriterFault, SyncedBytesSurviveACrash) {
  Device device;
  const std::unique_ptr<Writer> writer = MakeWriter(&device);
  for (std::uint64_t number = 1; number <= 1000; ++number) {
    ASSERT_TRUE(WriteNumber(writer.get(), number).ok());
    if (number % 100 != 37) continue;
    ASSERT_TRUE(writer->Sync().ok());
    EXPECT_EQ(Read(std::string_view(device.bytes).substr(0, device.durable)).payloads.size(),
              number);
  }
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ(device.durable, device.bytes.size());
}

TEST(WriterFault, FinishThatCannotSyncFailsAndMayBeRepeated) {
  Device device;
  const std::unique_ptr<Writer> writer = MakeWriter(&device);
  ASSERT_TRUE(WriteNumber(writer.get(), 1).ok());
  device.fail_sync = true;
  EXPECT_FALSE(writer->Finish().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(WriteNumber(writer.get(), 2)));
  device.fail_sync = false;
  EXPECT_TRUE(writer->Finish().ok());
  const ReadBack back = Read(device.bytes);
  EXPECT_TRUE(back.stats.complete);
  EXPECT_EQ(back.stats.blocks[0], 1U);
}

TEST(WriterFault, AStreamThatCannotBeginIsAnError) {
  for (const bool tear : {false, true}) {
    Device device;
    device.failing = true;
    device.tear = tear;
    EXPECT_FALSE(Writer::Create(std::make_unique<FaultySink>(&device), TraceInfo()).ok());
  }
}

}  // namespace
}  // namespace nettrace
