// Tests captures on the kernel of this machine: every hit of a tracepoint is an event or counted as
// lost, in each session of a capture.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "nettrace/reader.h"
#include "nettrace/source.h"
#include "nettrace/verifier.h"
#include "tests/support/collector/file_in_memory.h"
#include "tests/support/nettrace/sectioned_sink.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/session/capture.h"
#include "tools/trace/account.h"

namespace collector {
namespace {

constexpr char kTracepoint[] = "syscalls:sys_enter_getppid";
constexpr char kOther[] = "syscalls:sys_enter_getpgid";

// Calls the traced system call `number`, `calls` times in each of `threads` threads.
class Load {
 public:
  Load(int threads, int calls, long number = SYS_getppid) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, calls, number] {
        for (int call = 0; call < calls; ++call) syscall(number, 0);
        ++finished_;
      });
    }
  }
  ~Load() {
    for (std::thread& thread : threads_) thread.join();
  }
  bool finished() const { return finished_ == static_cast<int>(threads_.size()); }

 private:
  std::atomic<int> finished_ = 0;
  std::vector<std::thread> threads_;
};

// Starts a process that calls the traced system call until it is killed. If `pid` is not 0, the
// process gets this id. Returns its id, or -1 if the process could not be created.
pid_t StartCaller(pid_t pid = 0) {
  clone_args arguments = {};
  arguments.exit_signal = SIGCHLD;
  if (pid != 0) {
    arguments.set_tid = reinterpret_cast<std::uintptr_t>(&pid);
    arguments.set_tid_size = 1;
  }
  const auto child = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
  while (child == 0) {
    syscall(SYS_getppid);
    constexpr timespec kPause = {0, 100'000};
    nanosleep(&kPause, nullptr);
  }
  return child;
}
void EndCaller(pid_t pid) {
  if (pid <= 0) return;  // kill() would end many processes
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

class CaptureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<Tracefs> tracefs = Tracefs::Find();
    if (!tracefs.ok()) GTEST_SKIP() << tracefs.status().message();
    if (!tracefs->ReadTracepoint("syscalls", "sys_enter_getppid").ok()) {
      GTEST_SKIP() << "this kernel has no system call tracepoints (CONFIG_FTRACE_SYSCALLS)";
    }
  }

  struct Options {
    CaptureOptions capture;
    SessionOptions session;
  };

  // Records kTracepoint while each of `threads` threads makes the traced call `calls` times.
  SessionSummary Record(const CaptureOptions& options, SessionOptions session_options, int threads,
                        int calls) {
    Open(options);
    tests::FileInMemory file;
    session_options.selectors = {*ParseSelector(kTracepoint)};
    Session* const session = Start(session_options, &file);
    if (session == nullptr) return {};
    Run(threads, calls);
    SessionSummary summary = Stop(session);
    ReadIntervals(file);
    CheckAccount(file, summary);
    return summary;
  }

  void Open(const CaptureOptions& options) {
    auto capture = Capture::Open(options);
    ASSERT_TRUE(capture.ok()) << capture.status();
    capture_ = *std::move(capture);
  }
  Session* Start(const SessionOptions& options, tests::FileInMemory* file) {
    const auto session = capture_->StartSession(options, [file] { return file->MakeSink(); });
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *session : nullptr;
  }
  static SessionOptions Selecting(const std::vector<std::string>& selectors) {
    SessionOptions options;
    for (const std::string& selector : selectors) {
      options.selectors.push_back(*ParseSelector(selector));
    }
    return options;
  }
  void Run(int threads, int calls, long number = SYS_getppid) {
    const Load load(threads, calls, number);
    while (!load.finished()) {
      if (!polls_) continue;
      const absl::Status status = capture_->Poll(absl::Milliseconds(10));
      EXPECT_TRUE(status.ok()) << status;
    }
  }
  SessionSummary Stop(Session* session) {
    SessionSummary summary = capture_->StopSession(session);
    EXPECT_TRUE(summary.status.ok()) << summary.status;
    return summary;
  }

  // Reads the maximum number of events, and the maximum time, between two sequence points.
  void ReadIntervals(const tests::FileInMemory& file) {
    EXPECT_EQ(file.Verify(), "");
    const auto reader = file.Read();
    ASSERT_NE(reader, nullptr);
    using Step = nettrace::Reader::Step;
    std::uint64_t events = 0;
    std::uint64_t first = ~std::uint64_t{0};
    for (Step step = reader->Next(); step != Step::kEnd; step = reader->Next()) {
      if (step == Step::kEvent) {
        ++events;
        first = std::min(first, reader->event().timestamp);
        most_events_ = std::max(most_events_, events);
        longest_ = std::max(longest_, reader->event().timestamp - first);
      } else if (step == Step::kSequencePoint) {
        events = 0;
        first = ~std::uint64_t{0};
      }
    }
    EXPECT_TRUE(reader->status().ok()) << reader->status();
  }

  // Expects the same losses in the file's account, in the gaps of its sequence numbers, and in the
  // summary. Account and gaps must agree at each sequence point, because a file may end there.
  static void CheckAccount(const tests::FileInMemory& file, const SessionSummary& summary) {
    const auto reader = file.Read();
    ASSERT_NE(reader, nullptr);
    std::uint64_t accounted = 0;
    std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> losses;
    using Step = nettrace::Reader::Step;
    for (Step step = reader->Next(); step != Step::kEnd; step = reader->Next()) {
      if (step == Step::kSequencePoint) {
        EXPECT_EQ(accounted, reader->stats().lost);
      }
      if (step != Step::kEvent || !trace::IsAccount(reader->event())) continue;
      const auto event = trace::ParseAccount(reader->event());
      ASSERT_TRUE(event.has_value());
      EXPECT_EQ(event->kind, trace::AccountEvent::Kind::kEventsLost);
      EXPECT_LT(event->since, event->until);
      accounted += event->count;
      losses[{event->cpu, event->tracepoint}] += event->count;
    }
    EXPECT_EQ(accounted, summary.lost);
    EXPECT_EQ(accounted, reader->stats().lost);
    EXPECT_EQ(accounted, summary.account.lost());
    EXPECT_EQ(losses, summary.account.losses());
    std::uint64_t in_intervals = 0;
    for (const auto& interval : summary.account.intervals()) in_intervals += interval.count;
    if (summary.account.intervals_left_out() == 0) {
      EXPECT_EQ(in_intervals, accounted);
    }
  }

  // Returns the number of events of each system call by this process, because other processes make
  // calls, too.
  static std::map<std::string, std::uint64_t> OwnEvents(const tests::FileInMemory& file) {
    EXPECT_EQ(file.Verify(), "");
    std::map<std::string, std::uint64_t> events;
    const auto reader = file.Read();
    using Step = nettrace::Reader::Step;
    for (Step step = reader->Next(); step != Step::kEnd; step = reader->Next()) {
      if (step != Step::kEvent || reader->event().metadata->provider != "syscalls") continue;
      if (reader->event().thread->process_id != getpid()) continue;
      ++events[reader->event().metadata->name];
    }
    EXPECT_TRUE(reader->status().ok()) << reader->status();
    return events;
  }

  std::unique_ptr<Capture> capture_;
  bool polls_ = true;  // If true, Run drains the rings while the load runs.
  std::uint64_t most_events_ = 0;
  std::uint64_t longest_ = 0;  // ns
};

TEST_F(CaptureTest, EveryHitIsAnEventWhereTheRingsHoldThem) {
  CaptureOptions options;
  SessionOptions session;
  options.ring_size = 16 << 20;
  const SessionSummary summary = Record(options, session, 4, 25'000);
  EXPECT_GE(summary.events, 100'000u);
  EXPECT_EQ(summary.lost, 0u);
  EXPECT_EQ(summary.undecoded, 0u);
  ASSERT_TRUE(summary.hits.has_value());
  EXPECT_EQ(*summary.hits, summary.events);
}

TEST_F(CaptureTest, EventsAndLostAreTheHitsWhereTheRingsAreTooSmall) {
  CaptureOptions options;
  SessionOptions session;
  options.ring_size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const SessionSummary summary = Record(options, session, 4, 100'000);
  EXPECT_GT(summary.lost, 0u);
  ASSERT_TRUE(summary.hits.has_value());
  EXPECT_EQ(*summary.hits, summary.events + summary.lost);
  EXPECT_GE(*summary.hits, 400'000u);
}

// Counts the events and losses in the files of a session, for each CPU and in total. Each section
// of the session is one file.
struct Continuity {
  struct Counts {
    std::uint64_t events = 0;
    std::uint64_t lost = 0;  // as stated by the account
  };
  std::map<std::uint32_t, Counts> cpus;
  std::uint64_t events = 0;
  std::uint64_t lost = 0;  // from gaps in the sequence numbers

  // Adds the file of a section. Its SectionBegan events must state the number of events and losses
  // of each CPU in the files before it.
  void Add(const std::string& file, std::size_t section) {
    const auto source = [&file] {
      return std::make_unique<nettrace::MemorySource>(std::as_bytes(std::span(file)));
    };
    const auto report = nettrace::Verify(source());
    ASSERT_TRUE(report.ok()) << report.status();
    for (const nettrace::Finding& finding : report->findings) {
      ADD_FAILURE() << section << ": " << finding.rule->name << ": " << finding.explanation;
    }
    const auto reader = *nettrace::Reader::Open(source());
    const std::map<std::uint32_t, Counts> before = cpus;
    std::size_t accounted = 0;
    std::size_t processes = 0;
    using Step = nettrace::Reader::Step;
    for (Step step = reader->Next(); step != Step::kEnd; step = reader->Next()) {
      if (step != Step::kEvent) continue;
      const nettrace::Event& event = reader->event();
      if (const auto account = trace::ParseAccount(event)) {
        if (account->kind != trace::AccountEvent::Kind::kSectionBegan) {
          cpus[account->cpu].lost += account->count;
          continue;
        }
        ++accounted;
        ASSERT_TRUE(before.contains(account->cpu));
        EXPECT_EQ(account->section, section);
        EXPECT_EQ(account->count, before.at(account->cpu).events);
        EXPECT_EQ(account->lost, before.at(account->cpu).lost);
      } else if (event.metadata->provider == "syscalls") {
        ++cpus[event.processor].events;
        ++events;
      } else if (event.metadata->name == "ExistingProcess") {
        ++processes;
      }
    }
    EXPECT_TRUE(reader->stats().complete);
    EXPECT_EQ(accounted, before.size());
    EXPECT_GT(processes, 1u);
    lost += reader->stats().lost;
  }
};

class SectionsTest : public CaptureTest, public ::testing::WithParamInterface<std::size_t> {};

TEST_P(SectionsTest, AreFilesThatContinueEachOtherAlsoWhereTheSinkWasFull) {
  CaptureOptions options;
  options.ring_size = GetParam();
  Open(options);
  const auto sections = std::make_shared<nettrace::testing::Sections>();
  SessionOptions session_options = Selecting({kTracepoint});
  session_options.interval = absl::Milliseconds(20);
  const auto started = capture_->StartSession(session_options, [&sections] {
    return std::make_unique<nettrace::testing::SectionedSink>(sections);
  });
  ASSERT_TRUE(started.ok()) << started.status();
  {
    const Load load(4, 50'000);
    for (int i = 0; !load.finished() || i < 30; ++i) {
      sections->is_full = i % 8 >= 5;
      if (i % 3 == 0) sections->wants_section = true;
      ASSERT_TRUE(capture_->Poll(absl::Milliseconds(10)).ok());
    }
  }
  sections->is_full = true;
  ASSERT_TRUE(capture_->Poll(absl::ZeroDuration()).ok());  // Detects the full sink.
  Run(1, 1000);  // The session ends while it is suspended.
  const bool was_suspended = (*started)->is_suspended();
  const SessionSummary summary = Stop(*started);
  EXPECT_TRUE(was_suspended);
  EXPECT_GE(summary.dropped, 1000u);
  ASSERT_TRUE(summary.hits.has_value());
  EXPECT_EQ(*summary.hits, summary.events + summary.lost);
  EXPECT_GE(*summary.hits, 200'000u);
  ASSERT_GT(sections->starts.size(), 3u);
  Continuity all;
  for (std::size_t i = 0; i < sections->starts.size(); ++i) all.Add(sections->Stream(i), i);
  EXPECT_EQ(all.events, summary.events);
  EXPECT_EQ(all.lost, summary.lost);
  EXPECT_EQ(summary.account.lost(), summary.lost);
  EXPECT_EQ(summary.section + 1, sections->starts.size());
}

INSTANTIATE_TEST_SUITE_P(RingSizes, SectionsTest, ::testing::Values(64 << 10, 16 << 20));

TEST_F(CaptureTest, OnlySessionsWithTheSameFiltersJoinACapture) {
  const auto filtered = [](const std::string& filter) {
    SessionOptions options = Selecting({kTracepoint});
    options.selectors[0].filter = filter;
    return options;
  };
  CaptureOptions options;
  options.ring_size = 16 << 20;
  Open(options);
  tests::FileInMemory first;
  tests::FileInMemory second;
  Session* const one = Start(filtered("common_pid != 1"), &first);
  ASSERT_NE(one, nullptr);
  for (const char* other : {"", "common_pid != 2"}) {
    tests::FileInMemory refused;
    const auto started =
        capture_->StartSession(filtered(other), [&refused] { return refused.MakeSink(); });
    EXPECT_TRUE(absl::IsFailedPrecondition(started.status())) << started.status();
    EXPECT_FALSE(refused.made());
  }
  Session* const two = Start(filtered("common_pid != 1"), &second);
  ASSERT_NE(two, nullptr);
  EXPECT_TRUE(two->Summarize().unmatched.empty());
  Run(1, 1000);
  Stop(two);
  Stop(one);
  EXPECT_EQ(OwnEvents(first), (std::map<std::string, std::uint64_t>{{"sys_enter_getppid", 1000}}));
  EXPECT_EQ(OwnEvents(second), OwnEvents(first));
}

// The load ends while the rings are full, so no event follows the losses.
TEST_F(CaptureTest, LossesAtTheEndOfALoadAreKnownAtTheNextSequencePoint) {
  CaptureOptions options;
  options.ring_size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  Open(options);
  tests::FileInMemory file;
  Session* const session = Start(Selecting({kTracepoint}), &file);
  polls_ = false;
  Run(2, 10'000);
  const absl::Time end = absl::Now() + 2 * SessionOptions().interval;
  while (absl::Now() < end) ASSERT_TRUE(capture_->Poll(absl::Milliseconds(100)).ok());
  EXPECT_GT(session->stats().lost, 15'000u);
  const std::uint64_t lost = session->stats().lost;
  const SessionSummary summary = Stop(session);
  EXPECT_EQ(summary.lost, lost);
  CheckAccount(file, summary);
  ASSERT_TRUE(summary.hits.has_value());
  EXPECT_EQ(*summary.hits, summary.events + summary.lost);
}

TEST_F(CaptureTest, SequencePointsComeAsOftenAsAsked) {
  CaptureOptions options;
  SessionOptions session;
  options.ring_size = 16 << 20;
  session.interval = absl::Milliseconds(10);
  options.slack = absl::Milliseconds(1);
  const SessionSummary summary = Record(options, session, 2, 400'000);
  EXPECT_GT(summary.sequence_points, 3u);
  ASSERT_TRUE(summary.hits.has_value());
  EXPECT_EQ(*summary.hits, summary.events + summary.lost);
}

TEST_F(CaptureTest, IntervalsHaveNoMoreThanReadersCanHold) {
  CaptureOptions options;
  SessionOptions session;
  options.ring_size = 16 << 20;
  const SessionSummary summary = Record(options, session, 2, 400'000);
  // On a busy machine, some events may be lost.
  EXPECT_GE(summary.events + summary.lost, 800'000u);
  EXPECT_GE(summary.sequence_points, summary.events / TraceWriter::kEventsPerInterval);
  EXPECT_LE(most_events_, TraceWriter::kEventsPerInterval);
  EXPECT_LE(longest_, 1'000'000'000u);
}

TEST_F(CaptureTest, CaptureThatWasAwayEndsTheIntervalsThatItMissed) {
  CaptureOptions options;
  SessionOptions session;
  options.ring_size = 16 << 20;
  session.interval = absl::Milliseconds(50);
  polls_ = false;
  const SessionSummary summary = Record(options, session, 2, 200'000);
  EXPECT_GE(summary.events + summary.lost, 400'000u);
  EXPECT_GE(summary.sequence_points, summary.events / TraceWriter::kEventsPerInterval);
  EXPECT_LE(most_events_, TraceWriter::kEventsPerInterval);
  EXPECT_LE(longest_, 50'000'000u);
  EXPECT_EQ(summary.late, 0u);
}

TEST_F(CaptureTest, TracepointThatPerfMayNotSampleLeavesNoFileAndOthersUnchanged) {
  if (!Tracefs::Find()->ReadTracepoint("irq_vectors", "irq_work_exit").ok()) {
    GTEST_SKIP() << "this kernel has no such tracepoint (irq_vectors:irq_work_exit)";
  }
  Open({});
  tests::FileInMemory file;
  Session* const session = Start(Selecting({kTracepoint}), &file);
  tests::FileInMemory none;
  const auto failed =
      capture_->StartSession(Selecting({kOther, "irq_vectors:irq_work_exit", kTracepoint}),
                             [&none] { return none.MakeSink(); });
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.status().message().find("irq_work_exit"), absl::string_view::npos);
  EXPECT_FALSE(none.made());
  Run(1, 1000);
  const SessionSummary summary = Stop(session);
  ASSERT_TRUE(summary.hits.has_value());
  EXPECT_EQ(*summary.hits, summary.events + summary.lost);
  EXPECT_GE(*summary.hits, 1000u);
}

TEST_F(CaptureTest, UnknownTracepointIsNamed) {
  Open({});
  tests::FileInMemory file;
  const auto session = capture_->StartSession(Selecting({"syscalls:sys_enter_nosuchcall"}),
                                              [&file] { return file.MakeSink(); });
  ASSERT_FALSE(session.ok());
  EXPECT_NE(session.status().message().find("sys_enter_nosuchcall does not exist"),
            absl::string_view::npos);
  EXPECT_FALSE(file.made());
}

// The test makes the kernel announce that CPU 0 went offline or came online, although the CPU stays
// online. The capture must keep its perf events.
TEST_F(CaptureTest, AnnouncementOfACpuThatWasThereChangesNothing) {
  const base::UniqueFd announce(open("/sys/devices/system/cpu/cpu0/uevent", O_WRONLY | O_CLOEXEC));
  if (!announce.valid()) GTEST_SKIP() << "writing to cpu0/uevent: " << strerror(errno);
  CaptureOptions options;
  options.ring_size = 16 << 20;
  Open(options);
  tests::FileInMemory file;
  Session* const session = Start(Selecting({kTracepoint}), &file);
  ASSERT_NE(session, nullptr);
  for (const std::string_view action : {"online", "offline", "online"}) {
    Run(2, 1'000);
    if (write(announce.get(), action.data(), action.size()) < 0) GTEST_SKIP() << strerror(errno);
    ASSERT_TRUE(capture_->Poll(absl::Seconds(10)).ok());
  }
  Run(2, 1'000);
  const SessionSummary summary = Stop(session);
  EXPECT_TRUE(summary.account.cpu_changes().empty());
  EXPECT_EQ(OwnEvents(file), (std::map<std::string, std::uint64_t>{{"sys_enter_getppid", 8'000}}));
  ASSERT_TRUE(summary.hits.has_value());
  EXPECT_EQ(*summary.hits, summary.events);
}

// When a session ends, its descriptors are closed by a separate thread, whose system calls are not
// recorded, while the other session continues.
TEST_F(CaptureTest, SessionThatEndsIsClosedByASeparateThread) {
  const auto descriptors = [] {
    const std::filesystem::directory_iterator folder("/proc/self/fd");
    return std::distance(begin(folder), end(folder));
  };
  CaptureOptions options;
  options.ring_size = 16 << 20;
  Open(options);
  tests::FileInMemory first_file;
  tests::FileInMemory second_file;
  Session* const first =
      Start(Selecting({"syscalls:sys_enter_getpgid", "syscalls:sys_enter_close"}), &first_file);
  ASSERT_NE(first, nullptr);
  const auto before = descriptors();
  Session* const second = Start(Selecting({"syscalls:sys_enter_set*"}), &second_file);
  ASSERT_NE(second, nullptr);
  ASSERT_GT(descriptors(), before + 10);
  EXPECT_GT(Stop(second).tracepoints, 10u);
  Run(1, 1'000, SYS_getpgid);
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (descriptors() > before && absl::Now() < deadline) {
    ASSERT_TRUE(capture_->Poll(absl::Milliseconds(10)).ok());
  }
  EXPECT_LE(descriptors(), before);
  Stop(first);
  using Events = std::map<std::string, std::uint64_t>;
  EXPECT_EQ(OwnEvents(first_file), (Events{{"sys_enter_getpgid", 1'000}}));
}

TEST_F(CaptureTest, OverlappingSessionsRecordSeparateEvents) {
  CaptureOptions options;
  options.ring_size = 16 << 20;
  Open(options);
  tests::FileInMemory first_file;
  tests::FileInMemory second_file;
  Session* const first = Start(Selecting({kTracepoint}), &first_file);
  Run(2, 10'000);
  SessionOptions second_options = Selecting({kTracepoint, kOther});
  second_options.interval = absl::Milliseconds(20);
  Session* const second = Start(second_options, &second_file);
  Run(2, 20'000);
  Run(1, 5'000, SYS_getpgid);
  const SessionSummary of_first = Stop(first);
  Run(2, 3'000);
  Run(1, 500, SYS_getpgid);
  const SessionSummary of_second = Stop(second);

  using Events = std::map<std::string, std::uint64_t>;
  EXPECT_EQ(OwnEvents(first_file), (Events{{"sys_enter_getppid", 60'000}}));
  EXPECT_EQ(OwnEvents(second_file),
            (Events{{"sys_enter_getppid", 46'000}, {"sys_enter_getpgid", 5'500}}));
  EXPECT_EQ(of_first.lost, 0u);
  EXPECT_EQ(of_second.lost, 0u);
  EXPECT_EQ(of_first.tracepoints, 1u);
  EXPECT_EQ(of_second.tracepoints, 2u);
  // The tracepoint was still being hit when the first session ended, so the exact number of its
  // hits for each session is not known.
  EXPECT_FALSE(of_first.hits.has_value());
  EXPECT_FALSE(of_second.hits.has_value());
}

TEST_F(CaptureTest, CountsLossesOnlyForTracepointsOfTheSession) {
  CaptureOptions options;
  options.ring_size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  Open(options);
  tests::FileInMemory first_file;
  tests::FileInMemory second_file;
  Session* const first = Start(Selecting({kTracepoint}), &first_file);
  Run(2, 100'000);
  Session* const second = Start(Selecting({kOther}), &second_file);
  for (int turn = 0; turn < 3; ++turn) {
    Run(2, 50'000);
    Run(2, 50'000, SYS_getpgid);
  }
  const SessionSummary of_second = Stop(second);
  Run(2, 100'000);
  const SessionSummary of_first = Stop(first);

  ASSERT_TRUE(of_first.hits.has_value());
  ASSERT_TRUE(of_second.hits.has_value());
  EXPECT_EQ(of_first.events + of_first.lost, *of_first.hits);
  EXPECT_EQ(of_second.events + of_second.lost, *of_second.hits);
  EXPECT_GE(*of_first.hits, 700'000u);
  EXPECT_GE(*of_second.hits, 300'000u);
  EXPECT_GT(of_first.lost, 0u);
  EXPECT_GT(of_second.lost, 0u);
  EXPECT_EQ(first_file.Verify(), "");
  EXPECT_EQ(second_file.Verify(), "");
  CheckAccount(first_file, of_first);
  CheckAccount(second_file, of_second);
  for (const auto& [cpu_and_tracepoint, count] : of_first.account.losses()) {
    EXPECT_EQ(cpu_and_tracepoint.second, kTracepoint);
  }
}

TEST_F(CaptureTest, SessionWithAFailedFileDoesNotAffectOthers) {
  CaptureOptions options;
  options.ring_size = 16 << 20;
  Open(options);
  tests::FileInMemory good;
  tests::FileInMemory bad;
  Session* const first = Start(Selecting({kTracepoint}), &good);
  Session* const second = Start(Selecting({kTracepoint}), &bad);
  Run(1, 10'000);
  bad.fails = true;
  Run(2, 100'000);
  EXPECT_FALSE(second->status().ok());
  const SessionSummary of_second = capture_->StopSession(second);
  EXPECT_FALSE(of_second.status.ok());
  EXPECT_GT(of_second.events_missing, 0u);
  Run(1, 1'000);
  const SessionSummary of_first = Stop(first);
  ASSERT_TRUE(of_first.hits.has_value());
  EXPECT_EQ(of_first.events + of_first.lost, *of_first.hits);
  EXPECT_GE(*of_first.hits, 211'000u);
  EXPECT_EQ(good.Verify(), "");
}

// A failed session needs no work until it is stopped, so Poll must wait until its timeout.
TEST_F(CaptureTest, CaptureWhoseOnlySessionHasFailedSleeps) {
  Open({});
  tests::FileInMemory file;
  Session* const session = Start(Selecting({kTracepoint}), &file);
  file.fails = true;
  while (session->status().ok()) Run(1, 10'000);
  absl::SleepFor(absl::Milliseconds(1100));  // longer than an interval
  constexpr absl::Duration kWait = absl::Milliseconds(300);
  absl::Duration longest;
  for (int i = 0; i < 5 && longest < kWait / 2; ++i) {
    const absl::Time begin = absl::Now();
    ASSERT_TRUE(capture_->Poll(kWait).ok());
    longest = std::max(longest, absl::Now() - begin);
  }
  EXPECT_GE(longest, kWait / 2);
  EXPECT_FALSE(capture_->StopSession(session).status.ok());
}

// Between the sessions, no session uses the tracepoint. The next session attaches it again, so its
// count of hits begins at 0.
TEST_F(CaptureTest, ConsecutiveSessionsCountSeparateHits) {
  CaptureOptions options;
  options.ring_size = 16 << 20;
  Open(options);
  for (const int calls : {1'000, 2'000, 3'000}) {
    tests::FileInMemory file;
    Session* const session = Start(Selecting({kTracepoint}), &file);
    Run(1, calls);
    const SessionSummary summary = Stop(session);
    Run(1, 500);
    using Events = std::map<std::string, std::uint64_t>;
    EXPECT_EQ(OwnEvents(file), (Events{{"sys_enter_getppid", static_cast<std::uint64_t>(calls)}}));
    ASSERT_TRUE(summary.hits.has_value());
    EXPECT_EQ(*summary.hits, summary.events + summary.lost);
  }
}

// A capture opens perf events by process id. When it attaches a tracepoint, the target may have
// ended, and another process may have its id.
TEST_F(CaptureTest, ReusedPidOfATargetIsNotATarget) {
  for (const bool as_thread : {false, true}) {
    const pid_t target = StartCaller();
    ASSERT_GT(target, 0) << strerror(errno);
    CaptureOptions options;
    (as_thread ? options.target.tids : options.target.pids) = {target};
    Open(options);
    EndCaller(target);
    const pid_t other = StartCaller(target);
    if (other < 0) GTEST_SKIP() << "clone3 with a pid: " << strerror(errno);
    tests::FileInMemory file;
    Session* const session = Start(Selecting({kTracepoint}), &file);
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(capture_->Poll(absl::Milliseconds(10)).ok());
    EXPECT_TRUE(capture_->HasTargetEnded());
    EXPECT_EQ(Stop(session).events, 0u);
    EndCaller(other);
  }
}

}  // namespace
}  // namespace collector
