// Tests the events of Universal.System that describe the code of stacks.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nettrace/reader.h"
#include "nettrace/sink.h"
#include "tools/collector/convert/code_writer.h"
#include "tools/trace/code_map.h"

namespace collector {
namespace {

constexpr std::uint32_t kWriterPid = 0x40000000;
constexpr std::uint64_t kCodeStart = 100;
constexpr char kWriterSymbols[] = "ffffffff81000000 T first\nffffffff81000200 T second\n";

class CodeWriterTest : public ::testing::Test {
 protected:
  CodeWriterTest() {
    auto sink = std::make_unique<nettrace::MemorySink>();
    file_ = sink.get();
    auto writer = nettrace::Writer::Create(std::move(sink), {});
    EXPECT_TRUE(writer.ok()) << writer.status();
    writer_ = *std::move(writer);
    code_writer_.emplace(writer_.get(), &code_, kCodeStart);
    AddThread();
  }

  void AddThread() {
    nettrace::ThreadInfo info;
    info.process_id = info.thread_id = kWriterPid;
    thread_ = *writer_->AddThread(info);
  }
  void Map(std::uint64_t address, const std::string& path, std::uint64_t timestamp,
           bool has_build_id = true) {
    MappingRecord record;
    record.pid = record.tid = kWriterPid;
    record.address = address;
    record.size = 0x1000;
    record.path = path;
    if (has_build_id) record.build_id = std::as_bytes(std::span("\1\2", 2));
    code_.Maps(record, timestamp);
  }
  void Use(const std::vector<std::uint64_t>& frames, std::uint64_t timestamp) {
    const EventStack stack = {frames, kWriterPid};
    code_writer_->Use(stack, *writer_->InternStack(frames), timestamp, thread_);
  }
  void EndInterval(std::uint64_t timestamp, bool starts_section = false) {
    ASSERT_TRUE(code_writer_->EndInterval(timestamp).ok());
    if (!starts_section) {
      ASSERT_TRUE(writer_->WriteSequencePoint(timestamp).ok());
      return;
    }
    ASSERT_TRUE(writer_->StartSection(timestamp).ok());
    code_writer_->ForgetMetadata();
    code_writer_->ForgetThreads();
    code_writer_->ForgetCode();
    AddThread();
  }
  // Ends the file. Returns the time and name of each event.
  std::vector<std::string> Finish() {
    EXPECT_TRUE(writer_->Finish().ok());
    const std::vector<std::byte> bytes(file_->bytes().begin(), file_->bytes().end());
    auto reader = nettrace::Reader::Open(std::make_unique<nettrace::MemorySource>(bytes));
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::vector<std::string> shown;
    for (auto step = (*reader)->Next(); step != nettrace::Reader::Step::kEnd;
         step = (*reader)->Next()) {
      if (step != nettrace::Reader::Step::kEvent) continue;
      const nettrace::Event& event = (*reader)->event();
      EXPECT_EQ(event.metadata->provider, "Universal.System");
      EXPECT_EQ(event.thread->process_id, kWriterPid);
      map_.OnEvent(event);
      shown.push_back(absl::StrCat(event.timestamp, " ", event.metadata->name));
    }
    EXPECT_TRUE((*reader)->status().ok()) << (*reader)->status();
    EXPECT_EQ(code_writer_->written(), shown.size());
    return shown;
  }
  // Returns the code at an address, as the file describes it.
  std::string CodeAt(std::uint64_t address) const {
    std::string text;
    nettrace::ThreadInfo thread;
    thread.process_id = kWriterPid;
    map_.AppendCode(thread, address, /*is_return=*/false, &text);
    return text;
  }

  using Texts = std::vector<std::string>;
  CodeTracker code_{KernelSymbols::Parse(kWriterSymbols)};
  trace::CodeMap map_;
  std::unique_ptr<nettrace::Writer> writer_;
  std::optional<CodeWriter> code_writer_;
  nettrace::ThreadIndex thread_ = nettrace::kNoThread;
  const nettrace::MemorySink* file_ = nullptr;  // owned by the writer
};

TEST_F(CodeWriterTest, WritesOnlyMappingsThatAStackHits) {
  Map(0x1000, "/lib/a", 10);
  Map(0x3000, "/lib/b", 20);
  Use({0x1010, 0x1020, 0x9999}, 150);
  Use({0x1010, 0x1020, 0x9999}, 160);
  EndInterval(200);
  Use({0x1030}, 250);
  EndInterval(300);
  // The mapping is older than the trace, so its events have the time at which the trace begins.
  EXPECT_EQ(Finish(), (Texts{"100 ProcessMappingMetadata", "100 ProcessMapping"}));
  EXPECT_EQ(CodeAt(0x1010), "a+0x10");
  EXPECT_EQ(CodeAt(0x3010), "0x3010");
}

TEST_F(CodeWriterTest, EventsAreInTheOrderOfTheMappings) {
  Map(0x1000, "/lib/a", 10);
  Map(0x1000, "/lib/b", 150);
  Use({0x1010}, 160);
  Use({0x1010}, 140);  // an earlier event, from the ring of another CPU
  EndInterval(200);
  EXPECT_EQ(Finish(), (Texts{"100 ProcessMappingMetadata", "100 ProcessMapping",
                             "150 ProcessMappingMetadata", "150 ProcessMapping"}));
  EXPECT_EQ(CodeAt(0x1010), "b+0x10");
}

TEST_F(CodeWriterTest, AMappingThatChangesBetweenTwoEventsOfOneStackIsWritten) {
  Map(0x1000, "/lib/a", 10);
  Use({0x1010}, 140);
  Map(0x1000, "/lib/b", 150);
  Use({0x1010}, 160);
  EndInterval(200);
  EXPECT_EQ(Finish().size(), 4u);
  EXPECT_EQ(CodeAt(0x1010), "b+0x10");
}

TEST_F(CodeWriterTest, MappingsOfAPathWithoutABuildIdMayHaveDifferentFiles) {
  Map(0x1000, "/lib/a", 10, /*has_build_id=*/false);
  Map(0x3000, "/lib/a", 10, /*has_build_id=*/false);
  Map(0x5000, "//anon", 10, /*has_build_id=*/false);
  Use({0x1010, 0x3010, 0x5010}, 150);
  EndInterval(200);
  Use({0x1020, 0x3020, 0x5020}, 250);
  EndInterval(300);
  EXPECT_EQ(Finish(),
            (Texts{"100 ProcessMappingMetadata", "100 ProcessMapping", "100 ProcessMappingMetadata",
                   "100 ProcessMapping", "100 ProcessMapping"}));
}

TEST_F(CodeWriterTest, ASectionDescribesAgainWhatItUses) {
  Map(0x1000, "/lib/a", 10);
  Use({0x1010}, 150);
  EndInterval(200, /*starts_section=*/true);
  Use({0x1010}, 250);
  EndInterval(300);
  EXPECT_EQ(Finish(), (Texts{"100 ProcessMappingMetadata", "100 ProcessMapping",
                             "200 ProcessMappingMetadata", "200 ProcessMapping"}));
}

TEST_F(CodeWriterTest, KernelHasOneMappingInAProcessAndEachFunctionOnce) {
  constexpr std::uint64_t kFirst = 0xffffffff81000010;
  constexpr std::uint64_t kSecond = 0xffffffff81000210;
  Use({kFirst}, 150);
  Use({kFirst, 0x10}, 160);
  EndInterval(200);
  Use({kFirst, kSecond}, 250);
  EndInterval(300);
  EXPECT_EQ(Finish(), (Texts{"100 ProcessMapping", "100 ProcessSymbol", "200 ProcessSymbol"}));
  EXPECT_EQ(CodeAt(kFirst), "vmlinux!first+0x10");
  EXPECT_EQ(CodeAt(kSecond), "vmlinux!second+0x10");
}

TEST_F(CodeWriterTest, EachProgramOfAProcessHasItsMappingOfTheKernel) {
  Use({0xffffffff81000010}, 120);
  code_.Executes(kWriterPid, 150);
  Use({0xffffffff81000010}, 160);
  EndInterval(200);
  EXPECT_EQ(Finish(), (Texts{"100 ProcessMapping", "100 ProcessSymbol", "151 ProcessMapping",
                             "151 ProcessSymbol"}));
  EXPECT_EQ(CodeAt(0xffffffff81000010), "vmlinux!first+0x10");
}

// The kernel switches a thread out for the last time after it has reported the end of the thread,
// so a process can have stacks after its end.
TEST_F(CodeWriterTest, CodeAfterTheEndOfAProcessDoesNotReplaceThatBefore) {
  code_.Created(kWriterPid, kWriterPid + 1, 110);
  Use({0xffffffff81000010}, 120);
  EndInterval(200);
  code_.Ended(kWriterPid, 250);
  Use({0xffffffff81000010}, 220);
  Use({0xffffffff81000210}, 260);
  EndInterval(300);
  EXPECT_EQ(Finish(), (Texts{"111 ProcessMapping", "111 ProcessSymbol", "251 ProcessMapping",
                             "251 ProcessSymbol"}));
  EXPECT_EQ(CodeAt(0xffffffff81000210), "vmlinux!second+0x10");
}

TEST_F(CodeWriterTest, CodeFollowsTheStartOfItsProcess) {
  code_.Created(kWriterPid, kWriterPid + 1, 150);
  Use({0xffffffff81000010}, 160);
  EndInterval(200);
  EXPECT_EQ(Finish(), (Texts{"151 ProcessMapping", "151 ProcessSymbol"}));
}

}  // namespace
}  // namespace collector
