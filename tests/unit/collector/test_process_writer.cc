// Tests the events of the provider Universal.System, which report in the file when processes begin,
// execute programs and end.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nettrace/reader.h"
#include "nettrace/sink.h"
#include "tools/collector/convert/process_writer.h"
#include "tools/collector/identity/task_tracker.h"

namespace collector {
namespace {

using namespace std::string_literals;

// A process id above those in use on this machine, which takes five bytes as VarUInt.
constexpr std::uint32_t kLargePid = 0x40000000;
const std::string kPidBytes = "\x80\x80\x80\x80\x04"s;

constexpr std::uint64_t kStart = 5;

class ProcessWriterTest : public ::testing::Test {
 protected:
  ProcessWriterTest() {
    auto sink = std::make_unique<nettrace::MemorySink>();
    file_ = sink.get();
    auto writer = nettrace::Writer::Create(std::move(sink), {});
    EXPECT_TRUE(writer.ok()) << writer.status();
    writer_ = *std::move(writer);
    processes_ = std::make_unique<ProcessWriter>(writer_.get(), kStart);
  }

  ProcessTracker& Processes() { return tasks_.processes(); }

  void EndInterval(std::uint64_t time, std::uint32_t flags = 0) {
    for (const ProcessEvent& event : tasks_.processes().Take(time)) {
      const auto thread =
          writer_->AddThread(tasks_.InfoOf(tasks_.Find(event.pid, event.pid, event.timestamp - 1)));
      ASSERT_TRUE(thread.ok());
      ASSERT_TRUE(processes_->Write(event, *thread).ok());
    }
    processes_->EndInterval(time);
    ASSERT_TRUE(writer_->WriteSequencePoint(time, flags).ok());
    if (flags != 0) processes_->ForgetRows();
  }

  // Returns the events of the file: time, id, name and pid (minus kLargePid), and the payload.
  std::vector<std::pair<std::string, std::string>> Finish() {
    EXPECT_TRUE(writer_->Flush().ok());
    const std::vector<std::byte> bytes(file_->bytes().begin(), file_->bytes().end());
    auto reader = nettrace::Reader::Open(std::make_unique<nettrace::MemorySource>(bytes));
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::vector<std::pair<std::string, std::string>> shown;
    for (auto step = (*reader)->Next(); step != nettrace::Reader::Step::kEnd;
         step = (*reader)->Next()) {
      if (step != nettrace::Reader::Step::kEvent) continue;
      const nettrace::Event& event = (*reader)->event();
      EXPECT_EQ(event.metadata->provider, "Universal.System");
      EXPECT_EQ(event.processor, nettrace::kNoProcessor);
      EXPECT_EQ(event.thread->process_id, event.thread->thread_id);
      shown.emplace_back(
          absl::StrCat(event.timestamp, " ", event.metadata->event_id, " ", event.metadata->name,
                       " ", *event.thread->process_id - kLargePid),
          std::string(reinterpret_cast<const char*>(event.payload.data()), event.payload.size()));
    }
    EXPECT_EQ((*reader)->stats().lost, 0u);
    return shown;
  }

  TaskTracker tasks_;
  std::unique_ptr<nettrace::Writer> writer_;
  std::unique_ptr<ProcessWriter> processes_;
  const nettrace::MemorySink* file_ = nullptr;  // Owned by the writer.
};

TEST_F(ProcessWriterTest, EventsHaveTheIdsAndFieldsThatReadersKnow) {
  Processes().Exists(kLargePid, {"/bin/a", true, 5}, 10, 10);
  Processes().Created(kLargePid + 1, kLargePid, "", 20);
  Processes().EndThread(kLargePid + 1, kLargePid + 1, 30);
  EndInterval(100);
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 3u);
  EXPECT_EQ(shown[0].first, "10 0 ExistingProcess 0");
  EXPECT_EQ(shown[0].second, "\x05\6\0/bin/a\0\0"s);
  EXPECT_EQ(shown[1].first, "20 1 ProcessCreate 1");
  EXPECT_EQ(shown[1].second, "\x81\x80\x80\x80\x04\6\0/bin/a\0\0"s);
  EXPECT_EQ(shown[2].first, "30 2 ProcessExit 1");
  EXPECT_EQ(shown[2].second, "");
  EXPECT_EQ(processes_->written(), 3u);
}

TEST_F(ProcessWriterTest, NamesThatAreNotPathsHaveNoSlash) {
  Processes().Exists(kLargePid, {"kworker/0:1", false, 5}, 10, 10);
  EndInterval(100);
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 1u);
  EXPECT_EQ(shown[0].second, "\x05\x0b\0kworker-0:1\0\0"s);
}

TEST_F(ProcessWriterTest, EventsAreInTimeOrderAndWithinTheirInterval) {
  Processes().Created(kLargePid, 0, "b", 20);
  Processes().Created(kLargePid + 1, 0, "a", 10);
  Processes().Created(kLargePid + 2, 0, "next", 110);
  EndInterval(100);
  Processes().Created(kLargePid + 3, 0, "late", 50);
  EndInterval(200);
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 4u);
  EXPECT_EQ(shown[0].first, "10 1 ProcessCreate 1");
  EXPECT_EQ(shown[1].first, "20 1 ProcessCreate 0");
  EXPECT_EQ(shown[2].first, "100 1 ProcessCreate 3");
  EXPECT_EQ(shown[3].first, "110 1 ProcessCreate 2");
}

TEST_F(ProcessWriterTest, ProcessFromBeforeTheTraceIsAtItsBeginning) {
  Processes().Created(kLargePid, 0, "a", 3);
  Processes().EndThread(kLargePid, kLargePid, 4);
  EndInterval(100);
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 2u);
  EXPECT_EQ(shown[0].first, "5 0 ExistingProcess 0");
  EXPECT_EQ(shown[1].first, "5 2 ProcessExit 0");
}

TEST_F(ProcessWriterTest, RowsThatWereFlushedAreWrittenAgain) {
  Processes().Created(kLargePid, 0, "a", 10);
  EndInterval(100, nettrace::kSequencePointFlushThreads);
  Processes().Renamed(kLargePid, "b", 120);
  Processes().EndThread(kLargePid, kLargePid, 130);
  EndInterval(200, nettrace::kSequencePointFlushThreads);
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 3u);
  EXPECT_EQ(shown[1].first, "120 0 ExistingProcess 0");
  EXPECT_EQ(shown[1].second, kPidBytes + "\1\0b\0\0"s);
  EXPECT_EQ(shown[2].first, "130 2 ProcessExit 0");
}

TEST_F(ProcessWriterTest, NameThatIsNotUtf8IsShownWithReplacements) {
  Processes().Created(kLargePid, 0, "\xFF", 10);
  EndInterval(100);
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 1u);
  EXPECT_EQ(shown[0].second, kPidBytes + "\3\0\xEF\xBF\xBD\0\0"s);
}

}  // namespace
}  // namespace collector
