// The table of tasks: names and rows of threads as the records of their lives say.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nettrace/reader.h"
#include "nettrace/sink.h"
#include "tools/collector/identity/task_tracker.h"

namespace collector {
namespace {

// Ids beyond those that this machine has.
constexpr std::uint32_t kPid = 0x40000000;
constexpr std::uint32_t kTid = kPid + 1;

class TaskTrackerTest : public ::testing::Test {
 protected:
  TaskTrackerTest() {
    auto sink = std::make_unique<nettrace::MemorySink>();
    file_ = sink.get();
    auto writer = nettrace::Writer::Create(std::move(sink), {});
    EXPECT_TRUE(writer.ok()) << writer.status();
    writer_ = *std::move(writer);
    nettrace::EventMetadata metadata;
    metadata.provider = "P";
    metadata.event_id = 1;
    metadata_ = *writer_->AddMetadata(metadata);
  }

  void Fork(std::uint32_t pid, std::uint32_t tid, std::uint32_t parent, std::uint64_t time) {
    Apply(PERF_RECORD_FORK, Words({pid, 0, tid, parent}) + Words({0, 0}) + Words({0, 0, 0, 0}),
          time);
  }
  void Exit(std::uint32_t pid, std::uint32_t tid, std::uint64_t time) {
    Apply(PERF_RECORD_EXIT, Words({pid, 0, tid, 0}) + Words({0, 0}) + Words({0, 0, 0, 0}), time);
  }
  void Comm(std::uint32_t pid, std::uint32_t tid, std::string name, std::uint64_t time) {
    name.resize(16);
    Apply(PERF_RECORD_COMM, Words({pid, tid}) + name + Words({0, 0, 0, 0}), time);
  }
  void Lost() { Apply(PERF_RECORD_LOST, Words({0, 0, 1, 0}) + Words({0, 0, 0, 0}), 0); }

  // The name in the row of an event that the thread writes at `time`.
  std::string NameAt(std::uint32_t pid, std::uint32_t tid, std::uint64_t time) {
    const auto row = tasks_.Row(pid, tid, time, writer_.get());
    EXPECT_TRUE(row.ok()) << row.status();
    EXPECT_NE(*row, nettrace::kNoThread);
    nettrace::EventRow event;
    event.metadata_id = metadata_;
    event.thread = event.capture_thread = *row;
    EXPECT_TRUE(writer_->WriteEvent(event, {}).ok());
    EXPECT_TRUE(writer_->Flush().ok());
    auto reader = nettrace::Reader::Open(std::make_unique<nettrace::MemorySource>(file_->bytes()));
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::string name = "no event";
    while ((*reader)->Next() == nettrace::Reader::Step::kEvent) {
      if ((*reader)->event().thread_index == *row) {
        name = (*reader)->event().thread->name.value_or("");
      }
    }
    return name;
  }

  TaskTracker tasks_;

 private:
  static std::string Words(std::vector<std::uint32_t> words) {
    return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof words[0]};
  }
  void Apply(std::uint32_t type, const std::string& body, std::uint64_t time) {
    std::string bytes(8, '\0');
    const perf_event_header header = {type, 0, static_cast<__u16>(8 + body.size())};
    std::memcpy(bytes.data(), &header, sizeof header);
    bytes += body;
    PerfRecord record;
    record.timestamp = time;
    record.bytes = std::as_bytes(std::span(bytes));
    tasks_.Apply(record);
  }

  std::unique_ptr<nettrace::Writer> writer_;
  const nettrace::MemorySink* file_ = nullptr;  // the writer's
  nettrace::MetadataId metadata_ = {};
};

TEST_F(TaskTrackerTest, ThreadHasTheNameOfItsTime) {
  Comm(kPid, kPid, "first", 10);
  Fork(kPid, kTid, kPid, 20);
  Comm(kPid, kTid, "worker", 30);
  EXPECT_EQ(NameAt(kPid, kTid, 25), "first");
  EXPECT_EQ(NameAt(kPid, kTid, 35), "worker");
  EXPECT_EQ(NameAt(kPid, kPid, 35), "first");
  EXPECT_EQ(tasks_.rows(), 3u);
}

TEST_F(TaskTrackerTest, IdThatIsUsedAgainIsAnotherThread) {
  Comm(kPid, kPid, "old", 10);
  Exit(kPid, kPid, 20);
  Comm(kPid + 9, kPid + 9, "parent", 20);
  Fork(kPid, kPid, kPid + 9, 30);
  EXPECT_EQ(NameAt(kPid, kPid, 15), "old");
  EXPECT_EQ(NameAt(kPid, kPid, 35), "parent");
}

TEST_F(TaskTrackerTest, ThreadWithoutARecordGoesByTheNameOfItsProcess) {
  Comm(kPid, kPid, "service", 10);
  EXPECT_EQ(NameAt(kPid, kTid, 20), "service");
  EXPECT_EQ(NameAt(kPid + 5, kPid + 5, 20), "");
  EXPECT_EQ(NameAt(0, 0, 20), "swapper");
}

TEST_F(TaskTrackerTest, CatchingUpFindsTheNameOfAThreadWithoutARecord) {
  prctl(PR_SET_NAME, "unannounced");
  const auto pid = static_cast<std::uint32_t>(getpid());
  EXPECT_EQ(NameAt(pid, pid, 20), "");
  tasks_.CatchUp();
  EXPECT_EQ(NameAt(pid, pid, 30), "unannounced");
}

TEST_F(TaskTrackerTest, CatchingUpAfterALossFindsThreads) {
  prctl(PR_SET_NAME, "found");
  const auto pid = static_cast<std::uint32_t>(getpid());
  Lost();
  tasks_.CatchUp();
  EXPECT_EQ(NameAt(pid, pid, 20), "found");
}

}  // namespace
}  // namespace collector
