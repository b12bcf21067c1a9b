#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "nettrace/reader.h"
#include "nettrace/verifier.h"
#include "tests/support/nettrace/stream_builder.h"
#include "tools/common/exit_codes.h"
#include "tools/nettrace/rewrite.h"

namespace tools {
namespace {

using nettrace::Bytes;
using nettrace::Reader;
using Step = Reader::Step;

class RewriteTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // In memory where that is possible: each output is synced.
    const std::filesystem::path memory = "/dev/shm";
    folder_ =
        (std::filesystem::exists(memory) ? memory : std::filesystem::path(::testing::TempDir())) /
        ("rewrite-" + std::to_string(getpid()) + "-" +
         ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const char* name, std::span<const std::byte> bytes) {
    std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path;
  }
  std::string Output() const { return folder_ / "out.nettrace"; }

  static std::unique_ptr<nettrace::Source> FileSource(const std::string& path) {
    auto source = nettrace::FdSource::Open(path);
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? *std::move(source) : nullptr;
  }
  // Expects the file to be without a finding, and returns its counts.
  static Reader::Stats StatsOfCleanFile(const std::string& path) {
    const auto report = nettrace::Verify(FileSource(path));
    EXPECT_TRUE(report.ok()) << report.status();
    for (const nettrace::Finding& finding : report->findings) {
      ADD_FAILURE() << finding.rule->name << ": " << finding.explanation;
    }
    auto reader = Reader::Open(FileSource(path));
    EXPECT_TRUE(reader.ok());
    while ((*reader)->Next() != Step::kEnd) {
    }
    EXPECT_TRUE((*reader)->stats().complete);
    return (*reader)->stats();
  }

  std::filesystem::path folder_;
};

TEST_F(RewriteTest, RepairWritesWhatIsWholeOfADamagedFile) {
  const Bytes good = nettrace::GoodStream();
  const std::string input = Write("in.nettrace", good.span().first(good.size() - 5));
  ASSERT_EQ(RunRewrite({.command = "repair",
                        .inputs = {input},
                        .output = Output(),
                        .filter = {},
                        .accept_damage = true}),
            0);
  EXPECT_EQ(StatsOfCleanFile(Output()).events, 5u);
}

TEST_F(RewriteTest, MergeWritesTheEventsOfAllFiles) {
  const std::string input = Write("in.nettrace", nettrace::GoodStream().span());
  ASSERT_EQ(
      RunRewrite({.command = "merge", .inputs = {input, input}, .output = Output(), .filter = {}}),
      0);
  EXPECT_EQ(StatsOfCleanFile(Output()).events, 10u);
}

TEST_F(RewriteTest, CutOfADamagedFileWritesNothing) {
  const Bytes good = nettrace::GoodStream();
  const std::string input = Write("in.nettrace", good.span().first(good.size() - 5));
  EXPECT_NE(RunRewrite({.command = "cut", .inputs = {input}, .output = Output(), .filter = {}}), 0);
  EXPECT_FALSE(std::filesystem::exists(Output()));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1)
      << "only the input is there";
}

TEST_F(RewriteTest, CutTakesTheEventsOfAThread) {
  const std::string input = Write("in.nettrace", nettrace::GoodStream().span());
  EventFilter filter;
  filter.tids = {4244};  // of thread 2
  ASSERT_EQ(RunRewrite({.command = "cut", .inputs = {input}, .output = Output(), .filter = filter}),
            0);
  const Reader::Stats stats = StatsOfCleanFile(Output());
  EXPECT_EQ(stats.events, 2u);
  EXPECT_EQ(stats.lost, 0u) << "what was left out is not lost";
}

// What a run prints on standard error.
std::string PrintedBy(const Rewrite& rewrite, int exit_code) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunRewrite(rewrite), exit_code);
  return ::testing::internal::GetCapturedStderr();
}

// In all of these: an event later than a sequence point before it, a field that cannot be written,
// an impossible date.
Bytes OddStream() {
  using namespace nettrace;
  const Bytes varint_elsewhere =
      FieldRow("f", Code(TypeCode::kRelLoc).Append(Code(TypeCode::kVarInt)));
  return Start({.year = 20'000})
      .Append(MetadataBlock(
          {{}, {.id = 2, .event_id = 8, .name = "Odd", .fields = {varint_elsewhere}}}))
      .Append(ThreadBlock({1}))
      .Append(EventBlock({{}}))
      .Append(SequencePointBlock(2001))
      .Append(EventBlock({{.sequence = 2, .timestamp = 2002}}))
      .Append(SequencePointBlock(2003))
      .Append(EventBlock({{.sequence = 3, .timestamp = 1999}}))
      .Append(EventBlock({{.metadata_id = 2, .sequence = 4, .timestamp = 2004}}))
      .Append(End());
}

TEST_F(RewriteTest, RepairKeepsWhatCanBeKeptAndSaysWhatIsNotAsItWas) {
  const std::string input = Write("in.nettrace", OddStream().span());
  const std::string printed = PrintedBy({.command = "repair",
                                         .inputs = {input},
                                         .output = Output(),
                                         .filter = {},
                                         .accept_damage = true},
                                        0);
  const Reader::Stats stats = StatsOfCleanFile(Output());
  EXPECT_EQ(stats.events, 3u);
  EXPECT_EQ(stats.lost, 1u);
  const std::string start = "nettrace repair: " + input + ": ";
  for (const char* message :
       {"the Trace block has no date; 1970-01-01 is written",
        "1 events come after a sequence point that is later; they have its time, and their own in "
        "the label OriginalTimestamp",
        "1 events cannot be written; they count as lost: event 'Provider:Odd' (id 8): field 'f'"}) {
    EXPECT_NE(printed.find(start + message), std::string::npos) << message << "\n" << printed;
  }
}

TEST_F(RewriteTest, MessagesNameTheInputThatTheyAreAbout) {
  const std::string good = Write("good.nettrace", nettrace::GoodStream().span());
  const std::string odd = Write("odd.nettrace", OddStream().span());
  const std::string cut = Write("cut.nettrace", nettrace::GoodStream().span().first(200));
  const auto run = [this](const char* command, const std::vector<std::string>& inputs) {
    const std::string printed = PrintedBy(
        {.command = command, .inputs = inputs, .output = Output(), .filter = {}}, kExitFailed);
    EXPECT_FALSE(std::filesystem::exists(Output()));
    return printed;
  };
  EXPECT_EQ(run("cut", {odd}).find("nettrace cut: " + odd + ": the Trace block has no date\n"), 0u);
  EXPECT_EQ(run("merge", {good, odd}).find("nettrace merge: " + odd + ": the Trace block"), 0u);
  EXPECT_EQ(run("merge", {good, cut}).find("nettrace merge: " + cut + ": offset"), 0u);
}

// Writing more than that fails, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    before_handler_ = signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, before_handler_);
  }

 private:
  rlimit before_ = {};
  sighandler_t before_handler_ = SIG_DFL;
};

TEST_F(RewriteTest, AnOutputThatCannotBeWrittenLeavesTheOldOne) {
  const std::string input = Write("in.nettrace", nettrace::GoodStream().span());
  const std::string old = Write("out.nettrace", Bytes().Raw("the old one").span());
  {
    const FileSizeLimit limit(100);
    EXPECT_EQ(RunRewrite({.command = "cut", .inputs = {input}, .output = old, .filter = {}}), 1);
  }
  EXPECT_EQ(std::filesystem::file_size(old), 11u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2)
      << "nothing else is left behind";
  EXPECT_EQ(RunRewrite({.command = "cut", .inputs = {input}, .output = old, .filter = {}}), 0);
  EXPECT_EQ(StatsOfCleanFile(old).events, 5u);
}

TEST_F(RewriteTest, TheInputMayBeTheOutput) {
  const std::string file = Write("in.nettrace", nettrace::GoodStream().span());
  EXPECT_EQ(RunRewrite({.command = "cut", .inputs = {file}, .output = file, .filter = {}}), 0);
  EXPECT_EQ(StatsOfCleanFile(file).events, 5u);
}

TEST_F(RewriteTest, WhatIsNoFileIsNotReplaced) {
  const std::string input = Write("in.nettrace", nettrace::GoodStream().span());
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(RunRewrite({.command = "cut", .inputs = {input}, .output = pipe, .filter = {}}), 1);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_EQ(RunRewrite({.command = "cut", .inputs = {input}, .output = "-", .filter = {}}), 2);
}

}  // namespace
}  // namespace tools
