#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "nettrace/format.h"
#include "nettrace/reader.h"
#include "nettrace/sink.h"
#include "nettrace/time_ordered_reader.h"
#include "nettrace/verifier.h"
#include "nettrace/writer.h"
#include "tests/support/nettrace/stream_builder.h"
#include "tools/cli/exit_codes.h"
#include "tools/nettrace/command/rewrite.h"
#include "tools/trace/account.h"

namespace tools {
namespace {

using nettrace::Bytes;
using nettrace::Reader;
using Step = Reader::Step;

std::unique_ptr<nettrace::Source> FileSource(const std::string& path) {
  auto source = nettrace::FdSource::Open(path);
  EXPECT_TRUE(source.ok()) << source.status();
  return source.ok() ? *std::move(source) : nullptr;
}

class RewriteTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // The folder is in memory if possible, because each output is synced, which is slow on a disk.
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

  // Expects that Verify finds nothing in the file, and returns its counts.
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

TEST_F(RewriteTest, RepairWritesTheIntactPartsOfADamagedFile) {
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
      << "the failed command left files in the folder";
}

TEST_F(RewriteTest, CutTakesTheEventsOfAThread) {
  const std::string input = Write("in.nettrace", nettrace::GoodStream().span());
  trace::EventFilter filter;
  filter.tids = {4244};  // The tid of thread 2.
  ASSERT_EQ(RunRewrite({.command = "cut", .inputs = {input}, .output = Output(), .filter = filter}),
            0);
  const Reader::Stats stats = StatsOfCleanFile(Output());
  EXPECT_EQ(stats.events, 2u);
  EXPECT_EQ(stats.lost, 0u) << "events that the filter leaves out must not count as lost";
}

// Returns a stream of three intervals with events of two processes, and with the events that
// describe these processes. It begins 1000 ticks after 10:00:00.5.
Bytes ProcessesStream() {
  using namespace nettrace;  // NOLINT(google-build-using-namespace)
  const auto described = [](std::uint32_t id, std::uint32_t sequence, std::uint64_t thread,
                            std::uint64_t after) {
    constexpr std::uint32_t kProcessExit = 2;
    return EventFields{.metadata_id = id + 1,
                       .sequence = sequence,
                       .capture_thread = 9,
                       .thread = thread,
                       .timestamp = 1000 + after,
                       .payload = id == kProcessExit ? Bytes() : Bytes().U8(0).U16(0).U16(0)};
  };
  const Bytes text = Code(TypeCode::kArray).Append(Code(TypeCode::kUtf8CodeUnit));
  const std::vector<Bytes> process = {FieldRow("NamespaceId", Code(TypeCode::kVarUInt)),
                                      FieldRow("Name", text), FieldRow("NamespaceName", text)};
  const auto other = [](std::uint32_t sequence, std::uint64_t thread, std::uint64_t after) {
    return EventFields{.metadata_id = 4,
                       .sequence = sequence,
                       .capture_thread = thread,
                       .thread = thread,
                       .timestamp = 1000 + after};
  };
  return Start()
      .Append(MetadataBlock(
          {{.id = 1,
            .provider = "Universal.System",
            .event_id = 0,
            .name = "ExistingProcess",
            .fields = process},
           {.id = 2,
            .provider = "Universal.System",
            .event_id = 1,
            .name = "ProcessCreate",
            .fields = process},
           {.id = 3, .provider = "Universal.System", .event_id = 2, .name = "ProcessExit"},
           {.id = 4}}))
      .Append(ThreadBlock({1, 2, 9}))
      .Append(EventBlock({described(0, 1, 1, 0), described(1, 2, 2, 20)}))
      .Append(EventBlock({other(1, 1, 10), other(2, 1, 25)}))
      .Append(SequencePointBlock(1030, 0, {{1, 2}, {2, 0}, {9, 2}}))
      .Append(EventBlock({other(3, 1, 40), other(4, 1, 50)}))
      .Append(SequencePointBlock(1055, 0, {{1, 4}, {2, 0}, {9, 2}}))
      .Append(EventBlock({other(1, 2, 60)}))
      .Append(EventBlock({described(2, 3, 1, 70), described(2, 4, 2, 80)}))
      .Append(SequencePointBlock(1090, 0, {{1, 4}, {2, 1}, {9, 4}}))
      .Append(End());
}

// Returns a text for each event of a file, in the order of time. The text has the event's time,
// name and thread. Times and thread ids are relative to those of ProcessesStream().
std::vector<std::string> EventsOf(const std::string& path) {
  auto opened = Reader::Open(FileSource(path));
  nettrace::TimeOrderedReader reader(*std::move(opened));
  std::vector<std::string> events;
  for (Step step = reader.Next(); step != Step::kEnd; step = reader.Next()) {
    if (step != Step::kEvent) continue;
    const nettrace::Event& event = reader.event();
    events.push_back(std::to_string(event.timestamp - 1000) + " " + event.metadata->name + " " +
                     std::to_string(event.thread->thread_id.value_or(0) - 4242));
    for (const auto& [key, value] : event.labels->integers) {
      events.back() += " " + key + " " + std::to_string(value - 1000);
    }
  }
  return events;
}

absl::Time TimeAfter(std::int64_t ticks) {
  return absl::FromCivil(absl::CivilSecond(2026, 11, 21, 10, 0, 0), absl::UTCTimeZone()) +
         absl::Milliseconds(500) + absl::Nanoseconds(ticks);
}

// Returns the arguments that the program passes for `nettrace cut`.
Rewrite CutOf(const std::string& input, const std::string& output, trace::EventFilter filter) {
  filter.processes = trace::EventFilter::Added::kKept;
  filter.account = trace::EventFilter::Added::kKept;
  filter.keeps_code = true;
  return {.command = "cut", .inputs = {input}, .output = output, .filter = std::move(filter)};
}

TEST_F(RewriteTest, CutKeepsEventsThatDescribeProcesses) {
  const std::string input = Write("in.nettrace", ProcessesStream().span());
  const std::vector<std::string> processes = {"0 ExistingProcess 1", "20 ProcessCreate 2",
                                              "70 ProcessExit 1", "80 ProcessExit 2"};
  trace::EventFilter none;
  none.providers = {"Nobody"};
  trace::EventFilter thread;
  thread.providers = {"Provider"};
  thread.events = {"Event"};
  thread.tids = {4244};
  thread.pids = {4242};
  thread.level = 5;
  ASSERT_EQ(RunRewrite(CutOf(input, Output(), none)), 0);
  EXPECT_EQ(StatsOfCleanFile(Output()).lost, 0u);
  EXPECT_EQ(EventsOf(Output()), processes);
  ASSERT_EQ(RunRewrite(CutOf(input, Output(), thread)), 0);
  EXPECT_EQ(StatsOfCleanFile(Output()).lost, 0u);
  std::vector<std::string> expected = processes;
  expected.insert(expected.begin() + 2, "60 Event 2");
  EXPECT_EQ(EventsOf(Output()), expected);
}

TEST_F(RewriteTest, CutKnowsTheProcessesThatThereAreWhenItBegins) {
  const std::string input = Write("in.nettrace", ProcessesStream().span());
  trace::EventFilter filter;
  filter.from = TimeAfter(45);
  filter.to = TimeAfter(80);
  ASSERT_EQ(RunRewrite(CutOf(input, Output(), filter)), 0);
  const Reader::Stats stats = StatsOfCleanFile(Output());
  EXPECT_EQ(stats.lost, 0u);
  EXPECT_EQ(stats.first_timestamp, 1045u);
  EXPECT_EQ(EventsOf(Output()),
            (std::vector<std::string>{"45 ExistingProcess 1 OriginalTimestamp 0",
                                      "45 ProcessCreate 2 OriginalTimestamp 20", "50 Event 1",
                                      "60 Event 2", "70 ProcessExit 1"}));
  filter.to = filter.from;
  ASSERT_EQ(RunRewrite(CutOf(input, Output(), filter)), 0);
  EXPECT_EQ(StatsOfCleanFile(Output()).events, 0u);
  filter = {};
  filter.from = absl::InfiniteFuture();
  ASSERT_EQ(RunRewrite(CutOf(input, Output(), filter)), 0);
  EXPECT_EQ(StatsOfCleanFile(Output()).events, 4u);
}

TEST_F(RewriteTest, CutFiltersTheProviderOfProcessesIfItIsNamed) {
  const std::string input = Write("in.nettrace", ProcessesStream().span());
  trace::EventFilter filter;
  filter.providers = {"Provider", "Universal.System"};
  filter.from = TimeAfter(60);
  filter.tids = {4244};
  ASSERT_EQ(RunRewrite(CutOf(input, Output(), filter)), 0);
  EXPECT_EQ(StatsOfCleanFile(Output()).lost, 0u);
  EXPECT_EQ(EventsOf(Output()), (std::vector<std::string>{"60 Event 2", "80 ProcessExit 2"}));
}

// Returns a stream of events of the .NET runtime at ticks 10 to 80. The last event is from the
// rundown: it describes a method that exists at the end.
Bytes RuntimeStream() {
  using namespace nettrace;  // NOLINT(google-build-using-namespace)
  const auto event = [](std::uint32_t id, std::uint32_t number) {
    return EventFields{.metadata_id = id,
                       .sequence = number,
                       .capture_thread = 1,
                       .thread = 1,
                       .timestamp = 1000 + 10 * number};
  };
  const char* const runtime = "Microsoft-Windows-DotNETRuntime";
  return Start()
      .Append(MetadataBlock(
          {{.id = 1, .provider = runtime, .event_id = 143, .name = "MethodLoadVerbose"},
           {.id = 2, .provider = runtime, .event_id = 1, .name = "GCStart"},
           {.id = 3, .provider = runtime, .event_id = 152, .name = "ModuleLoad"},
           {.id = 4, .provider = "Microsoft-DotNETCore-EventPipe", .event_id = 1, .name = "Info"},
           {.id = 5,
            .provider = "Microsoft-Windows-DotNETRuntimeRundown",
            .event_id = 144,
            .name = "MethodDCEndVerbose"},
           {.id = 6}}))
      .Append(ThreadBlock({1}))
      .Append(EventBlock({event(4, 1), event(1, 2), event(2, 3), event(3, 4), event(6, 5),
                          event(1, 6), event(2, 7), event(5, 8)}))
      .Append(SequencePointBlock(1090, 0, {{1, 8}}))
      .Append(End());
}

TEST_F(RewriteTest, CutKeepsEventsThatNameDotNetCode) {
  const std::string input = Write("in.nettrace", RuntimeStream().span());
  trace::EventFilter filter;
  filter.providers = {"Provider"};
  filter.from = TimeAfter(45);
  filter.to = TimeAfter(60);
  ASSERT_EQ(RunRewrite(CutOf(input, Output(), filter)), 0);
  EXPECT_EQ(StatsOfCleanFile(Output()).lost, 0u);
  EXPECT_EQ(EventsOf(Output()),
            (std::vector<std::string>{
                "45 Info 1 OriginalTimestamp 10", "45 MethodLoadVerbose 1 OriginalTimestamp 20",
                "45 ModuleLoad 1 OriginalTimestamp 40", "50 Event 1", "80 MethodDCEndVerbose 1"}));
  filter.pids = {1};
  ASSERT_EQ(RunRewrite(CutOf(input, Output(), filter)), 0);
  EXPECT_EQ(StatsOfCleanFile(Output()).events, 0u);
}

// A recording that lost events from 1 s to 2 s and from 5 s to 6 s after its start, while one
// tracepoint was not recorded.
class AccountTest : public RewriteTest {
 protected:
  static constexpr std::int64_t kSecond = 1'000'000'000;
  const absl::Time start_ = absl::FromUnixSeconds(1'700'000'000);

  std::string WriteRecording() {
    nettrace::TraceInfo trace;
    trace.sync_time = start_;
    auto sink = std::make_unique<nettrace::MemorySink>();
    const nettrace::MemorySink* const bytes = sink.get();
    auto writer = nettrace::Writer::Create(std::move(sink), trace);
    EXPECT_TRUE(writer.ok()) << writer.status();
    nettrace::ThreadInfo info;
    info.name = "any";
    const nettrace::ThreadIndex collector = *(*writer)->AddThread(info);
    const nettrace::ThreadIndex thread = *(*writer)->AddThread(info);
    nettrace::EventMetadata service;
    service.provider = "Service";
    service.name = "Event";
    const nettrace::MetadataId event = *(*writer)->AddMetadata(service);
    using Kind = trace::AccountEvent::Kind;
    const nettrace::MetadataId left_out =
        *(*writer)->AddMetadata(trace::AccountMetadata(Kind::kTracepointLeftOut));
    const nettrace::MetadataId lost =
        *(*writer)->AddMetadata(trace::AccountMetadata(Kind::kEventsLost));
    const auto write = [&](nettrace::ThreadIndex about, nettrace::MetadataId id, int second,
                           std::span<const std::byte> payload) {
      nettrace::EventRow row;
      row.metadata_id = id;
      row.capture_thread = row.thread = about;
      row.processor = about == collector ? nettrace::kNoProcessor : 0;
      row.timestamp = static_cast<std::uint64_t>(second * kSecond);
      EXPECT_TRUE((*writer)->WriteEvent(row, payload).ok());
    };
    write(collector, left_out, 0,
          *trace::AccountPayload({Kind::kTracepointLeftOut, 0, 0, "a:b", "why"}));
    for (int second : {2, 6}) {
      const auto until =
          static_cast<std::uint64_t>(absl::ToUnixNanos(start_ + absl::Seconds(second)));
      write(collector, lost, second,
            *trace::AccountPayload({Kind::kEventsLost, 0, 7, "a:c", "", until - kSecond, until}));
      write(thread, event, second, {});
      EXPECT_TRUE((*writer)->WriteSequencePoint(static_cast<std::uint64_t>(second * kSecond)).ok());
    }
    EXPECT_TRUE((*writer)->Finish().ok());
    return Write("in.nettrace", bytes->bytes());
  }

  // Returns the account in the output: the names of its events, and the seconds of their times.
  std::vector<std::string> Account() const {
    auto reader = Reader::Open(FileSource(Output()));
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::vector<std::string> account;
    for (Step step = (*reader)->Next(); step != Step::kEnd; step = (*reader)->Next()) {
      if (step != Step::kEvent || !trace::IsAccount((*reader)->event())) continue;
      const auto event = trace::ParseAccount((*reader)->event());
      EXPECT_TRUE(event.has_value());
      account.push_back((*reader)->event().metadata->name);
      if (event->since != 0) account.back() += " from " + Seconds(event->since);
      if (event->until != 0) account.back() += " until " + Seconds(event->until);
    }
    EXPECT_TRUE((*reader)->status().ok()) << (*reader)->status();
    return account;
  }

 private:
  std::string Seconds(std::uint64_t ns) const {
    const absl::Time time = absl::FromUnixNanos(static_cast<std::int64_t>(ns));
    return absl::StrCat(absl::ToDoubleSeconds(time - start_));
  }
};

TEST_F(AccountTest, CutKeepsTheAccountOfTheSelectedTime) {
  const std::string input = WriteRecording();
  trace::EventFilter filter;
  filter.providers = {"Nobody"};
  ASSERT_EQ(RunRewrite(CutOf(input, Output(), filter)), 0);
  EXPECT_EQ(StatsOfCleanFile(Output()).events, 3u);
  EXPECT_EQ(Account(), (std::vector<std::string>{"TracepointLeftOut", "EventsLost from 1 until 2",
                                                 "EventsLost from 5 until 6"}));
  filter.from = start_ + absl::Milliseconds(5500);
  ASSERT_EQ(RunRewrite(CutOf(input, Output(), filter)), 0);
  EXPECT_EQ(Account(), (std::vector<std::string>{"EventsLost from 5 until 6"}));
  filter.from = start_;
  filter.to = start_ + absl::Milliseconds(1500);
  ASSERT_EQ(RunRewrite(CutOf(input, Output(), filter)), 0);
  EXPECT_EQ(Account(),
            (std::vector<std::string>{"TracepointLeftOut", "EventsLost from 1 until 2"}));
  filter.from = start_ + absl::Seconds(3);
  filter.to = start_ + absl::Seconds(4);
  ASSERT_EQ(RunRewrite(CutOf(input, Output(), filter)), 0);
  EXPECT_EQ(Account(), std::vector<std::string>());
}

TEST_F(AccountTest, RepairRecordsWhenTheUnknownTimeBegins) {
  const std::string input = WriteRecording();
  Rewrite repair = {.command = "repair",
                    .inputs = {input},
                    .output = Output(),
                    .filter = {},
                    .accept_damage = true,
                    .records_unknown_end = true};
  ASSERT_EQ(RunRewrite(repair), 0);
  EXPECT_EQ(Account().size(), 3u) << "the repair of an undamaged file must add no unknown losses";

  std::filesystem::resize_file(input, std::filesystem::file_size(input) - 1);
  const timespec written[] = {{0, UTIME_OMIT}, absl::ToTimespec(start_ + absl::Seconds(8))};
  ASSERT_EQ(utimensat(AT_FDCWD, input.c_str(), written, 0), 0);
  ASSERT_EQ(RunRewrite(repair), 0);
  EXPECT_EQ(StatsOfCleanFile(Output()).events, 6u);
  EXPECT_EQ(Account().back(), "AccountUnknown from 6 until 8");
  // A repaired file is damaged again.
  std::filesystem::rename(Output(), input);
  std::filesystem::resize_file(input, std::filesystem::file_size(input) - 1);
  ASSERT_EQ(utimensat(AT_FDCWD, input.c_str(), written, 0), 0);
  ASSERT_EQ(RunRewrite(repair), 0);
  EXPECT_EQ(StatsOfCleanFile(Output()).events, 7u);
}

TEST_F(AccountTest, RepairOfAFileWithoutASequencePointKnowsNothingFromItsBeginningOn) {
  const std::string input = WriteRecording();
  std::filesystem::resize_file(input, std::filesystem::file_size(input) / 3);
  const timespec written[] = {{0, UTIME_OMIT}, absl::ToTimespec(start_ + absl::Seconds(8))};
  ASSERT_EQ(utimensat(AT_FDCWD, input.c_str(), written, 0), 0);
  ASSERT_EQ(RunRewrite({.command = "repair",
                        .inputs = {input},
                        .output = Output(),
                        .filter = {},
                        .accept_damage = true,
                        .records_unknown_end = true}),
            0);
  EXPECT_EQ(StatsOfCleanFile(Output()).sequence_points, 1u);
  EXPECT_EQ(Account(), (std::vector<std::string>{"AccountUnknown from 0 until 8"}));
}

// Returns what a run prints on standard error.
std::string PrintedBy(const Rewrite& rewrite, int exit_code) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunRewrite(rewrite), exit_code);
  return ::testing::internal::GetCapturedStderr();
}

// Returns a stream with an event that is earlier than the sequence point before it, an event whose
// field cannot be written, and an impossible date.
Bytes OddStream() {
  using namespace nettrace;  // NOLINT(google-build-using-namespace)
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

TEST_F(RewriteTest, RepairKeepsValidDataAndReportsChanges) {
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
        "events that are earlier than the sequence point before them: 1; they got its time, and "
        "their original time is in the label OriginalTimestamp",
        "left out 1 event, counted as lost; the reason for the first: event 'Provider:Odd' (id 8): "
        "field 'f'"}) {
    EXPECT_NE(printed.find(start + message), std::string::npos) << message << "\n" << printed;
  }
}

TEST_F(RewriteTest, MessagesNameTheInputThatTheyAreAbout) {
  const std::string good = Write("good.nettrace", nettrace::GoodStream().span());
  const std::string odd = Write("odd.nettrace", OddStream().span());
  const std::string cut = Write("cut.nettrace", nettrace::GoodStream().span().first(200));
  const auto run = [this](const char* command, const std::vector<std::string>& inputs) {
    std::string printed = PrintedBy(
        {.command = command, .inputs = inputs, .output = Output(), .filter = {}}, cli::kExitFailed);
    EXPECT_FALSE(std::filesystem::exists(Output()));
    return printed;
  };
  EXPECT_EQ(run("cut", {odd}).find("nettrace cut: " + odd + ": the Trace block has no date\n"), 0u);
  EXPECT_EQ(run("merge", {good, odd}).find("nettrace merge: " + odd + ": the Trace block"), 0u);
  EXPECT_EQ(run("merge", {good, cut}).find("nettrace merge: " + cut + ": offset"), 0u);
}

// Makes writes beyond this size fail, as on a full disk.
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
      << "the failed command left files in the folder";
  EXPECT_EQ(RunRewrite({.command = "cut", .inputs = {input}, .output = old, .filter = {}}), 0);
  EXPECT_EQ(StatsOfCleanFile(old).events, 5u);
}

TEST_F(RewriteTest, TheInputMayBeTheOutput) {
  const std::string file = Write("in.nettrace", nettrace::GoodStream().span());
  EXPECT_EQ(RunRewrite({.command = "cut", .inputs = {file}, .output = file, .filter = {}}), 0);
  EXPECT_EQ(StatsOfCleanFile(file).events, 5u);
}

TEST_F(RewriteTest, DoesNotReplaceAnOutputThatIsNotAFile) {
  const std::string input = Write("in.nettrace", nettrace::GoodStream().span());
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(RunRewrite({.command = "cut", .inputs = {input}, .output = pipe, .filter = {}}), 1);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_EQ(RunRewrite({.command = "cut", .inputs = {input}, .output = "-", .filter = {}}), 2);
}

}  // namespace
}  // namespace tools
