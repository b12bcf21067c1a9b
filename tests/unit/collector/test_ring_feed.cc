// Records services that pass their events through rings in user space, with a whole capture: every
// event is in the file once, or counted there as lost.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "eventheader/eh.h"
#include "nettrace/format.h"
#include "nettrace/reader.h"
#include "nettrace/sink.h"
#include "nettrace/source.h"
#include "tests/support/collector/file_in_memory.h"
#include "tests/support/eventheader/handmade_region.h"
#include "tests/support/wait_until.h"
#include "tests/unit/eventheader/ring/service_process.h"
#include "tools/collector/perf/session_clock.h"
#include "tools/collector/session/capture.h"
#include "tools/collector/session/ring_feed.h"
#include "tools/trace/account.h"
#include "tools/trace/ring_positions.h"
#include "tools/trace/thread_keys.h"

namespace collector {
namespace {

namespace ring = eh::internal::ring;
using tests::ServiceProcess;
using tests::SharedMemory;

constexpr std::uint64_t kThreads = 4;
// Indices of words in the memory that tests share with services.
constexpr std::size_t kThreadsStay = 59;
constexpr std::size_t kIsEnabled = 60;
constexpr std::size_t kMayEnd = 61;
constexpr std::size_t kMayWrite = 62;
constexpr std::size_t kHasWritten = 63;

// Writes events with the numbers 0 to `count` - 1 in each of `threads` threads, to the tracepoint
// NAME_L4K1. Begins when the collector has accepted the region and the test has set kMayWrite. The
// threads end when they have written, or with the service if the test has set kThreadsStay.
int WriteNumbers(const char* name, std::uint64_t threads, std::uint64_t count,
                 const SharedMemory& shared) {
  eh::DynamicProvider provider(name);
  const eh::EventSet set(provider, eh::Level::kInformation, 1);
  if (set.status() != 0) return 1;
  while (eh::DescribeTransport(nullptr, 0) != eh::TransportState::kRingConnected) usleep(100);
  while (!set.enabled() && shared[kMayWrite] == 0) usleep(100);
  shared[kIsEnabled] = 1;
  while (shared[kMayWrite] == 0) usleep(100);
  std::vector<std::thread> workers;
  workers.reserve(threads);
  std::atomic<std::uint64_t> written = 0;
  for (std::uint64_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      pthread_setname_np(pthread_self(), ("worker-" + std::to_string(t)).c_str());
      eh::DynamicEvent event;
      for (std::uint64_t i = 0; i < count; ++i) {
        event.Reset("Number");
        event.AddField("thread", t);
        event.AddField("number", i);
        event.AddField("text", std::string_view("0123456789").substr(0, i % 10));
        event.Write(set);
      }
      ++written;
      while (shared[kThreadsStay] == 1 && shared[kMayEnd] == 0) usleep(100);
    });
  }
  while (written != threads) usleep(100);
  if (shared[kThreadsStay] == 1) shared[kHasWritten] = 1;
  for (std::thread& worker : workers) worker.join();
  shared[kHasWritten] = 1;
  while (shared[kMayEnd] == 0) usleep(100);
  return 0;
}

// The events and losses of one thread of WriteNumbers in a file.
struct ThreadInFile {
  std::uint64_t shown = 0;
  std::uint64_t lost = 0;
  std::uint64_t late = 0;
  std::uint64_t next = 0;  // number of the next event, if it was not lost
  std::string name;
  std::uint64_t pid = 0;
  std::vector<std::pair<std::string, std::string>> key_values;
};
struct Contents {
  std::map<std::uint64_t, ThreadInFile> threads;
  std::map<std::string, std::uint64_t> events;  // by provider, without the collector's
  std::uint64_t lost = 0;                       // by gaps of numbers
  std::uint64_t accounted = 0;                  // by the account
  std::vector<trace::AccountEvent> losses;
  std::vector<trace::AccountEvent> unknown;  // services with unknown losses
};

class RingFeedTest : public ::testing::Test {
 protected:
  RingFeedTest() {
    options_.rings.emplace();
    options_.rings->path = socket();
  }

  std::string socket() const { return folder_.path() + "/events"; }

  void Open() {
    auto capture = Capture::Open(options_);
    ASSERT_TRUE(capture.ok()) << capture.status();
    capture_ = *std::move(capture);
  }
  Session* Start(const std::vector<std::string>& selectors, tests::FileInMemory* file,
                 absl::Duration interval = absl::Seconds(1)) {
    SessionOptions options;
    options.interval = interval;
    for (const std::string& selector : selectors) {
      options.selectors.push_back(*ParseSelector(selector));
    }
    const auto session = capture_->StartSession(options, [file] { return file->MakeSink(); });
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *session : nullptr;
  }
  void PollUntil(const std::function<bool()>& condition) {
    const absl::Time end = absl::Now() + absl::Seconds(60);
    while (!condition()) {
      ASSERT_LT(absl::Now(), end) << "the condition did not become true";
      const absl::Status status = capture_->Poll(absl::Milliseconds(5));
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  SessionSummary Stop(Session* session) {
    SessionSummary summary = capture_->StopSession(session);
    EXPECT_TRUE(summary.status.ok()) << summary.status;
    EXPECT_EQ(summary.account.lost(), summary.lost);
    EXPECT_FALSE(summary.hits);
    return summary;
  }
  // Starts a service that writes once the test has set kMayWrite.
  std::unique_ptr<ServiceProcess> StartService(const char* name, std::uint64_t threads,
                                               std::uint64_t count) {
    return std::make_unique<ServiceProcess>(
        socket(), [=, this] { return WriteNumbers(name, threads, count, shared_); });
  }
  // Starts a service that sends its events over the socket, and calls exit() when it has written.
  std::unique_ptr<ServiceProcess> StartInlineService(std::uint64_t threads, std::uint64_t count) {
    setenv("EVENTHEADER_TRANSPORT", "ring-inline", 1);
    auto service = std::make_unique<ServiceProcess>(
        socket(), [=, this]() -> int { exit(WriteNumbers("Ring_Feed", threads, count, shared_)); });
    unsetenv("EVENTHEADER_TRANSPORT");
    return service;
  }
  // Waits until the tracepoint of the service is enabled, lets the service write, and waits until
  // it has written.
  void LetItWrite() {
    PollUntil([this] { return shared_[kIsEnabled] == 1; });
    shared_[kMayWrite] = 1;
    PollUntil([this] { return shared_[kHasWritten] == 1; });
  }

  // Reads a file, and checks the order of each thread's numbers and that gaps are losses.
  static Contents Read(const tests::FileInMemory& file) {
    EXPECT_EQ(file.Verify(), "");
    Contents contents;
    const auto reader = file.Read();
    std::map<nettrace::ThreadIndex, std::uint64_t> writers;  // number of the thread
    // Losses of threads before their first events.
    std::map<nettrace::ThreadIndex, std::uint64_t> unassigned;
    using Step = nettrace::Reader::Step;
    for (Step step = reader->Next(); step != Step::kEnd; step = reader->Next()) {
      if (step == Step::kSequencePoint) {
        for (const auto& loss : reader->sequence_point().losses) {
          contents.lost += loss.count;
          const auto writer = writers.find(loss.thread_index);
          if (writer == writers.end()) {
            unassigned[loss.thread_index] += loss.count;
            continue;
          }
          contents.threads[writer->second].lost += loss.count;
          contents.threads[writer->second].next += loss.count;
        }
      }
      if (step != Step::kEvent) continue;
      const nettrace::Event& event = reader->event();
      if (const auto account = trace::ParseAccount(event);
          trace::IsAccount(event) && account.has_value()) {
        if (account->kind == trace::AccountEvent::Kind::kServiceUnknown) {
          contents.unknown.push_back(*account);
        }
        if (account->kind != trace::AccountEvent::Kind::kEventsLost) continue;
        EXPECT_LE(account->since, account->until);
        contents.accounted += account->count;
        contents.losses.push_back(*account);
        continue;
      }
      contents.lost += event.lost_before;
      if (event.metadata->name != "Number") continue;
      ++contents.events[event.metadata->provider];
      std::uint64_t fields[2];
      std::memcpy(fields, event.payload.data(), sizeof fields);
      ThreadInFile& thread = contents.threads[fields[0]];
      writers[event.capture_thread_index] = fields[0];
      const std::uint64_t lost_first = std::exchange(unassigned[event.capture_thread_index], 0);
      thread.next += lost_first;
      thread.lost += lost_first;
      EXPECT_EQ(fields[1], thread.next + event.lost_before);
      thread.next = fields[1] + 1;
      thread.lost += event.lost_before;
      ++thread.shown;
      thread.late += event.labels->integers.empty() ? 0 : 1;
      thread.name = event.thread->name.value_or("");
      thread.pid = event.thread->process_id.value_or(0);
      thread.key_values = event.thread->key_values;
      EXPECT_EQ(event.payload.size(), sizeof fields + 2 + fields[1] % 10);
    }
    EXPECT_EQ(contents.lost, contents.accounted);
    return contents;
  }

  tests::TemporaryFolder folder_;
  SharedMemory shared_;
  CaptureOptions options_;
  std::unique_ptr<Capture> capture_;
};

TEST(NeedsKernelTest, IsFalseIfServicesMayMatch) {
  for (const auto& [text, needs] :
       std::vector<std::pair<std::string, bool>>{{"Shop", false},
                                                 {"Shop_*:*", false},
                                                 {"*:*", false},
                                                 {"Shop_L4K1", false},
                                                 {"user_events:Shop_L4K1", false},
                                                 {"user_events:*", false},
                                                 {"sched*:*", false},
                                                 {"sched", false},
                                                 {"sched:*", true},
                                                 {"raw_syscalls:*", true},
                                                 {"i2c:*", true},
                                                 {"Sched:*", false},
                                                 {"sched:sched_switch", true},
                                                 {"sched:sched_*", true}}) {
    EXPECT_EQ(NeedsKernel({*ParseSelector(text)}), needs) << text;
  }
  EXPECT_TRUE(NeedsKernel({*ParseSelector("Shop"), *ParseSelector("sched:sched_switch")}));
}

TEST(NeedsKernelTest, ErrorNamesTheSelectorAndWhatToDo) {
  const absl::Status kernel = absl::NotFoundError("tracefs is not mounted; mount it");
  const std::vector<Selector> selectors = {*ParseSelector("Shop"), *ParseSelector("sched:*")};
  EXPECT_EQ(CheckKernel(selectors, kernel),
            absl::NotFoundError("selector 'sched:*' needs the kernel's events: tracefs is not "
                                "mounted; mount it; to record a service's provider of this name, "
                                "use 'sched'"));
  EXPECT_EQ(CheckKernel({*ParseSelector("sched:sched_*")}, kernel),
            absl::NotFoundError("selector 'sched:sched_*' needs the kernel's events: tracefs is "
                                "not mounted; mount it"));
  EXPECT_TRUE(CheckKernel({*ParseSelector("Shop:*")}, kernel).ok());
  EXPECT_TRUE(CheckKernel(selectors, absl::OkStatus()).ok());
}

TEST_F(RingFeedTest, RecordsAServiceThatStartsLater) {
  constexpr std::uint64_t kCount = 20'000;
  // Enough for all events, so that each thread is in the file.
  options_.rings->bytes_of_client = std::uint64_t{16} << 20;
  options_.identity = true;
  Open();
  tests::FileInMemory file;
  Session* const session = Start({"Ring_Feed"}, &file);
  // The threads must exist until the capture has read their names from /proc.
  shared_[kThreadsStay] = 1;
  const auto service = StartService("Ring_Feed", kThreads, kCount);
  LetItWrite();
  const SessionSummary summary = Stop(session);
  const Contents contents = Read(file);
  EXPECT_EQ(summary.events, kThreads * kCount);
  EXPECT_EQ(summary.lost, 0U);
  EXPECT_EQ(summary.tracepoints, 1U);
  EXPECT_TRUE(summary.unmatched.empty());
  // An event is late if its thread had to wait too long for a CPU while it wrote the event. That is
  // rare, also on a busy machine.
  EXPECT_LE(summary.late, kThreads * kCount / 100);
  std::uint64_t late = 0;
  ASSERT_EQ(contents.threads.size(), kThreads);
  for (const auto& [number, thread] : contents.threads) {
    late += thread.late;
    EXPECT_EQ(thread.shown, kCount);
    EXPECT_EQ(thread.name, "worker-" + std::to_string(number));
    EXPECT_EQ(thread.pid, static_cast<std::uint64_t>(service->pid()));
    const std::pair<std::string, std::string> transport = {trace::kTransportKey,
                                                           trace::kRingTransport};
    EXPECT_EQ(std::count(thread.key_values.begin(), thread.key_values.end(), transport), 1);
  }
  EXPECT_EQ(late, summary.late);
}

TEST_F(RingFeedTest, RecordsAServiceThatRunsAlready) {
  constexpr std::uint64_t kCount = 1000;
  const auto service = StartService("Ring_Feed", 1, kCount);
  usleep(50'000);
  Open();
  tests::FileInMemory file;
  Session* const session = Start({"Ring_*:verbose"}, &file);
  LetItWrite();
  const SessionSummary summary = Stop(session);
  EXPECT_EQ(summary.events, kCount);
  EXPECT_EQ(summary.lost, 0U);
  EXPECT_EQ(Read(file).threads.at(0).shown, kCount);
}

TEST_F(RingFeedTest, PlacesLossesInASmallRing) {
  constexpr std::uint64_t kCount = 100'000;
  options_.rings->bytes_of_client = 4 * ring::kChunkBytes;
  Open();
  tests::FileInMemory file;
  Session* const session = Start({"Ring_Feed_L4K1"}, &file);
  const auto service = StartService("Ring_Feed", kThreads, kCount);
  PollUntil([this] { return shared_[kIsEnabled] == 1; });
  shared_[kMayWrite] = 1;
  // The capture reads the rings only every 20 ms, so they overflow.
  while (shared_[kHasWritten] == 0) {
    usleep(20'000);
    ASSERT_TRUE(capture_->Poll(absl::ZeroDuration()).ok());
  }
  const SessionSummary summary = Stop(session);
  EXPECT_GT(summary.lost, 0U);
  EXPECT_EQ(summary.events + summary.lost, kThreads * kCount);
  const Contents contents = Read(file);
  std::uint64_t sum = 0;
  for (const auto& [number, thread] : contents.threads) sum += thread.shown + thread.lost;
  for (const trace::AccountEvent& loss : contents.losses) {
    EXPECT_EQ(loss.cpu, 0xFFFFFFFF);
    EXPECT_TRUE(loss.tracepoint.starts_with("ring:" + std::to_string(service->pid()) + "/"));
    EXPECT_LE(loss.since, loss.until);
    EXPECT_NE(loss.since, 0U);
  }
  // A thread whose events were all lost is not in `threads`.
  EXPECT_EQ(sum, contents.threads.size() * kCount);
}

TEST_F(RingFeedTest, LosesNoCommittedEventOfAServiceThatIsKilled) {
  Open();
  tests::FileInMemory file;
  Session* const session = Start({"Ring_Feed"}, &file);
  const auto service = StartService("Ring_Feed", 1, 300);
  PollUntil([this] { return shared_[kIsEnabled] == 1; });
  shared_[kMayWrite] = 1;
  tests::WaitUntil([this] { return shared_[kHasWritten] == 1; });
  service->Kill();
  EXPECT_EQ(service->Wait(), -SIGKILL);
  EXPECT_EQ(Stop(session).events, 300U);
  EXPECT_EQ(Read(file).threads.at(0).shown, 300U);
}

TEST_F(RingFeedTest, HasAllEventsOfAnInlineServiceThatExits) {
  constexpr std::uint64_t kCount = 2000;
  options_.rings->bytes_of_client = std::uint64_t{16} << 20;
  Open();
  tests::FileInMemory file;
  Session* const session = Start({"Ring_Feed"}, &file);
  const auto service = StartInlineService(kThreads, kCount);
  shared_[kMayEnd] = 1;
  LetItWrite();
  PollUntil([&] { return service->HasEnded(); });
  const SessionSummary summary = Stop(session);
  EXPECT_EQ(summary.events, kThreads * kCount);
  EXPECT_EQ(summary.lost, 0U);
  EXPECT_TRUE(Read(file).unknown.empty());
}

// The collector reads nothing from the time at which the service begins to write until the service
// has ended, so the service exits before it has sent all events.
TEST_F(RingFeedTest, CountsTheEventsThatAnInlineServiceCouldNotSendBeforeItsExit) {
  constexpr std::uint64_t kCount = 20'000;
  options_.rings->bytes_of_client = std::uint64_t{16} << 20;
  Open();
  tests::FileInMemory file;
  Session* const session = Start({"Ring_Feed"}, &file);
  const auto service = StartInlineService(kThreads, kCount);
  shared_[kMayEnd] = 1;
  PollUntil([this] { return shared_[kIsEnabled] == 1; });
  shared_[kMayWrite] = 1;
  EXPECT_EQ(service->Wait(), 0);
  const SessionSummary summary = Stop(session);
  EXPECT_GT(summary.lost, 0U);
  EXPECT_EQ(summary.events + summary.lost, kThreads * kCount);
  const Contents contents = Read(file);
  EXPECT_TRUE(contents.unknown.empty());
  EXPECT_EQ(contents.accounted, summary.lost);
}

TEST_F(RingFeedTest, StatesWhenAKilledInlineServiceMayHaveLostEvents) {
  constexpr std::uint64_t kCount = 20'000;
  options_.rings->bytes_of_client = std::uint64_t{16} << 20;
  Open();
  tests::FileInMemory file;
  tests::FileInMemory other_file;
  Session* const session = Start({"Ring_Feed"}, &file);
  Session* const other = Start({"Shop"}, &other_file);
  const auto service = StartInlineService(kThreads, kCount);
  PollUntil([this] { return shared_[kIsEnabled] == 1; });
  shared_[kMayWrite] = 1;
  // Nothing is read here, so the socket's queue becomes full, and the service keeps the rest of its
  // events until it is killed.
  tests::WaitUntil([this] { return shared_[kHasWritten] == 1; });
  const std::string name = "ring:" + std::to_string(service->pid());
  const absl::Time before = absl::Now();
  service->Kill();
  EXPECT_EQ(service->Wait(), -SIGKILL);
  PollUntil([this] { return capture_->ReportServices().services.empty(); });
  const SessionSummary summary = Stop(session);
  EXPECT_LT(summary.events + summary.lost, kThreads * kCount);
  const Contents contents = Read(file);
  ASSERT_EQ(contents.unknown.size(), 1U);
  EXPECT_EQ(contents.unknown[0].tracepoint, name);
  EXPECT_EQ(contents.unknown[0].reason, "its connection ended before it had sent all events");
  const auto killed = static_cast<std::uint64_t>(absl::ToUnixNanos(before));
  EXPECT_LT(contents.unknown[0].since, killed);
  EXPECT_GT(contents.unknown[0].until, killed);
  ASSERT_EQ(summary.account.unknown_services().size(), 1U);
  // The other session does not record the service.
  EXPECT_TRUE(Stop(other).account.unknown_services().empty());
  EXPECT_TRUE(Read(other_file).unknown.empty());
}

TEST_F(RingFeedTest, StatesThatAStoppedInlineServiceMayHaveLostEvents) {
  Open();
  tests::FileInMemory file;
  Session* const session = Start({"Ring_Feed"}, &file);
  const auto service = StartInlineService(1, 100);
  PollUntil([this] { return shared_[kIsEnabled] == 1; });
  kill(service->pid(), SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(service->pid(), &status, WUNTRACED), service->pid());
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_EQ(Stop(session).account.unknown_services().size(), 1U);
  const Contents contents = Read(file);
  ASSERT_EQ(contents.unknown.size(), 1U);
  EXPECT_EQ(contents.unknown[0].reason, "it did not send its last events when the recording ended");
}

TEST_F(RingFeedTest, EachSessionGetsWhatItSelects) {
  constexpr std::uint64_t kCount = 20'000;
  Open();
  tests::FileInMemory both_file;
  tests::FileInMemory one_file;
  tests::FileInMemory none_file;
  Session* const both = Start({"Ring_One", "Ring_Two:5"}, &both_file, absl::Milliseconds(50));
  Session* const one = Start({"Ring_One:4:0x1"}, &one_file);
  Session* const none = Start({"Ring_One:3", "Ring_One:5:0x2"}, &none_file);
  const auto first = StartService("Ring_One", 1, kCount);
  LetItWrite();
  shared_[kIsEnabled] = shared_[kHasWritten] = 0;
  const auto second = StartService("Ring_Two", 1, kCount);
  LetItWrite();
  const SessionSummary of_one = Stop(one);
  EXPECT_EQ(of_one.events + of_one.lost, kCount);
  const SessionSummary of_both = Stop(both);
  EXPECT_EQ(of_both.events + of_both.lost, 2 * kCount);
  EXPECT_EQ(of_both.tracepoints, 2U);
  const SessionSummary of_none = Stop(none);
  EXPECT_EQ(of_none.events + of_none.lost, 0U);
  EXPECT_EQ(of_none.unmatched.size(), 2U);
  EXPECT_EQ(one_file.Verify(), "");
  EXPECT_EQ(both_file.Verify(), "");
  EXPECT_EQ(none_file.Verify(), "");
}

TEST_F(RingFeedTest, DisablesTracepointsAtTheEndOfASession) {
  Open();
  tests::FileInMemory file;
  const ServiceProcess service(socket(), [this] {
    eh::DynamicProvider provider("Ring_Feed");
    const eh::EventSet set(provider, eh::Level::kInformation, 1);
    while (shared_[kMayEnd] == 0) {
      shared_[kIsEnabled] = set.enabled() ? 1 : 2;
      usleep(100);
    }
    return 0;
  });
  Session* session = Start({"Ring_Feed"}, &file);
  PollUntil([this] { return shared_[kIsEnabled] == 1; });
  Stop(session);
  tests::WaitUntil([this] { return shared_[kIsEnabled] == 2; });
  tests::FileInMemory second;
  session = Start({"Ring_Feed"}, &second);
  tests::WaitUntil([this] { return shared_[kIsEnabled] == 1; });
  Stop(session);
  // The tracepoint is also disabled when the capture ends during a session.
  tests::FileInMemory third;
  Start({"Ring_Feed"}, &third);
  tests::WaitUntil([this] { return shared_[kIsEnabled] == 1; });
  capture_.reset();
  tests::WaitUntil([this] { return shared_[kIsEnabled] == 2; });
  shared_[kMayEnd] = 1;
}

TEST_F(RingFeedTest, RecordsOnlyTheProcessesOfTheTarget) {
  constexpr std::uint64_t kCount = 100;
  const auto wanted = StartService("Ring_Feed", 1, kCount);
  SharedMemory others;
  const ServiceProcess other(socket(), [&] { return WriteNumbers("Ring_Feed", 1, 7, others); });
  options_.target.pids = {wanted->pid()};
  others[kMayWrite] = 1;
  Open();
  tests::FileInMemory file;
  Session* const session = Start({"Ring_Feed"}, &file);
  LetItWrite();
  PollUntil([&] { return others[kHasWritten] == 1; });
  shared_[kMayEnd] = 1;
  PollUntil([this] { return capture_->HasTargetEnded(); });
  EXPECT_EQ(Stop(session).events, kCount);
}

TEST_F(RingFeedTest, RecordsOnlyTheThreadsOfTheTarget) {
  const ServiceProcess service(socket(), [this] {
    eh::DynamicProvider provider("Ring_Feed");
    const eh::EventSet set(provider, eh::Level::kInformation, 1);
    const auto write = [&] {
      eh::DynamicEvent event;
      for (int i = 0; i < 10; ++i) {
        event.Reset("Number");
        event.Write(set);
      }
    };
    while (!set.enabled()) usleep(100);
    write();
    std::thread(write).join();
    shared_[kHasWritten] = 1;
    while (shared_[kMayEnd] == 0) usleep(100);
    return 0;
  });
  options_.target.tids = {service.pid()};  // the main thread
  Open();
  tests::FileInMemory file;
  Session* const session = Start({"Ring_Feed"}, &file);
  PollUntil([this] { return shared_[kHasWritten] == 1; });
  EXPECT_EQ(Stop(session).events, 10U);
  EXPECT_EQ(file.Verify(), "");
}

// The sessions share the capture, and have the events of the services and threads that each
// selects.
TEST_F(RingFeedTest, SessionsHaveTheirOwnTargetsAndFilters) {
  constexpr std::uint64_t kCount = 100;
  const auto wanted = StartService("Ring_Feed", 2, kCount);
  SharedMemory others;
  const ServiceProcess other(socket(), [&] { return WriteNumbers("Ring_Feed", 1, 7, others); });
  Open();
  const auto start = [this](tests::FileInMemory* file, std::vector<pid_t> pids,
                            const std::string& filter) {
    SessionOptions options;
    options.selectors.push_back(*ParseSelector("Ring_Feed"));
    options.selectors[0].filter = filter;
    options.only_rings = true;
    options.target.pids = std::move(pids);
    const auto session = capture_->StartSession(options, [file] { return file->MakeSink(); });
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *session : nullptr;
  };
  tests::FileInMemory files[4];
  Session* const all = Start({"Ring_Feed"}, &files[0]);
  Session* const process = start(&files[1], {wanted->pid()}, "");
  Session* const thread = start(&files[2], {}, "COMM == 'worker-1'");
  Session* const neither = start(&files[3], {other.pid()}, "COMM == 'worker-1'");
  for (Session* session : {all, process, thread, neither}) ASSERT_NE(session, nullptr);
  shared_[kThreadsStay] = 1;
  others[kMayWrite] = 1;
  LetItWrite();
  PollUntil([&] { return others[kHasWritten] == 1; });
  EXPECT_EQ(Stop(neither).events, 0U);
  EXPECT_EQ(Stop(process).events, 2 * kCount);
  EXPECT_EQ(Stop(thread).events, kCount);
  EXPECT_EQ(Stop(all).events, 2 * kCount + 7);
  for (const tests::FileInMemory& file : files) EXPECT_EQ(file.Verify(), "");
  shared_[kMayEnd] = others[kMayEnd] = 1;
}

TEST_F(RingFeedTest, SessionsWithATargetThatDoesNotExistFail) {
  Open();
  SessionOptions options;
  options.selectors.push_back(*ParseSelector("Ring_Feed"));
  options.only_rings = true;
  options.target.pids = {std::numeric_limits<pid_t>::max()};
  const auto session =
      capture_->StartSession(options, []() -> absl::StatusOr<std::unique_ptr<nettrace::Sink>> {
        ADD_FAILURE() << "a file was created";
        return absl::InternalError("");
      });
  EXPECT_TRUE(absl::IsNotFound(session.status())) << session.status();
}

TEST_F(RingFeedTest, ReadsWhatAServiceKeptAfterACrashOfTheCollector) {
  constexpr std::uint64_t kCount = 500;
  const auto service = StartService("Ring_Feed", 1, kCount);
  {
    // This collector enables the tracepoint, but never reads an event.
    const tests::RingCollector crashing(socket());
    const auto client = crashing.Accept();
    client->Welcome();
    client->EnableAll();
    tests::WaitUntil([this] { return shared_[kIsEnabled] == 1; });
    shared_[kMayWrite] = 1;
    tests::WaitUntil([this] { return shared_[kHasWritten] == 1; });
  }
  Open();
  tests::FileInMemory file;
  Session* const session = Start({"Ring_Feed"}, &file);
  PollUntil([&] { return session->events() != 0; });
  const SessionSummary summary = Stop(session);
  EXPECT_EQ(summary.events, kCount);
  EXPECT_EQ(summary.lost, 0U);
  EXPECT_EQ(summary.late, kCount);
  const Contents contents = Read(file);
  EXPECT_EQ(contents.threads.at(0).shown, kCount);
  EXPECT_EQ(contents.threads.at(0).late, kCount);
  // The events are in the first file, so the service no longer keeps them.
  tests::FileInMemory second;
  Session* const again = Start({"Ring_Feed"}, &second);
  ASSERT_TRUE(capture_->Poll(absl::Milliseconds(20)).ok());
  EXPECT_EQ(Stop(again).events, 0U);
}

TEST_F(RingFeedTest, FiltersEvents) {
  constexpr std::uint64_t kCount = 100;
  const std::vector<std::pair<std::vector<std::string>, bool>> cases = {
      {{"level == 4 && id == 0"}, true},
      {{"level == 5", "id & 1"}, false},
      {{"level == 5", "common_pid != 1"}, true},
      {{"level == 5", ""}, true}};
  for (const auto& [filters, accepts] : cases) {
    SCOPED_TRACE(filters.back());
    Open();
    SessionOptions options;
    for (const std::string& filter : filters) {
      options.selectors.push_back(*ParseSelector("Ring_Feed"));
      options.selectors.back().filter = filter;
    }
    tests::FileInMemory file;
    const auto session = capture_->StartSession(options, [&file] { return file.MakeSink(); });
    ASSERT_TRUE(session.ok()) << session.status();
    for (const std::size_t word : {kIsEnabled, kMayEnd, kMayWrite, kHasWritten}) shared_[word] = 0;
    const auto service = StartService("Ring_Feed", 2, kCount);
    LetItWrite();
    const SessionSummary summary = Stop(*session);
    EXPECT_EQ(summary.events, accepts ? 2 * kCount : 0);
    EXPECT_EQ(summary.lost, 0U);
    EXPECT_TRUE(summary.unmatched.empty());
    EXPECT_EQ(Read(file).threads.size(), accepts ? 2U : 0U);
    shared_[kMayEnd] = 1;
    capture_.reset();
  }
}

TEST_F(RingFeedTest, LeavesOutTracepointsWithAFilterOfOtherFields) {
  Open();
  tests::FileInMemory file;
  SessionOptions options;
  options.selectors.push_back(*ParseSelector("Ring_Feed"));
  options.selectors[0].filter = "comm == 1";
  const auto session = capture_->StartSession(options, [&] { return file.MakeSink(); });
  ASSERT_TRUE(session.ok()) << session.status();
  const ServiceProcess service(socket(),
                               [this] { return WriteNumbers("Ring_Feed", 1, 1, shared_); });
  PollUntil([&] { return (*session)->Summarize().skipped_tracepoints.count() != 0; });
  const SessionSummary summary = Stop(*session);
  EXPECT_EQ(summary.unmatched, std::vector<std::string>{"Ring_Feed"});
  EXPECT_EQ(summary.skipped_tracepoints.names(),
            std::vector<std::string>{"user_events:Ring_Feed_L4K1"});
}

// A service that fills its region by hand.
class HandmadeService {
 public:
  explicit HandmadeService(const std::string& path)
      : fd_(tests::MakeRegion(tests::CorrectHeader())),
        base_(static_cast<std::byte*>(
            mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0))),
        socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    const char name[] = "Ring_Feed_L4K1";
    std::memcpy(base_ + ring::kSetNamesOffset, name, sizeof name);
    service().set_count = 1;
    service().usable_chunks = tests::kChunks;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    Hello();
  }
  // Hands the memory to the next collector.
  void Reconnect(const std::string& path) {
    socket_ = base::UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    Hello();
  }
  // States that the writer has made this number of calls.
  void SetCalls(std::uint64_t ordinal, std::uint64_t calls) {
    auto& writer = reinterpret_cast<ring::Writer*>(base_ + ring::kWritersOffset)[ordinal];
    writer.ordinal = ordinal;
    writer.tid = static_cast<std::uint32_t>(ordinal);
    writer.calls = calls;
    writer.state = ring::kWriterActive;
  }
  // States that the thread of the writer has ended.
  void SetExited(std::uint64_t ordinal) {
    reinterpret_cast<ring::Writer*>(base_ + ring::kWritersOffset)[ordinal].state =
        ring::kWriterExited;
  }
  bool IsFreeWriter(std::uint64_t ordinal) const {
    return reinterpret_cast<ring::Writer*>(base_ + ring::kWritersOffset)[ordinal].state ==
           ring::kWriterFree;
  }
  HandmadeService(const HandmadeService&) = delete;
  HandmadeService& operator=(const HandmadeService&) = delete;
  ~HandmadeService() { munmap(base_, kBytes); }

  // Changes a random word of the parts that the service writes and the collector reads: the service
  // page, the writers, the chunk controls and the chunks.
  void Scramble(std::uint64_t random) const {
    static constexpr std::uint64_t kValues[] = {0, 1, 2, 3, 8, 40, 16'384, ~std::uint64_t{0}};
    static constexpr std::uint64_t kStarts[] = {ring::kServiceOffset, ring::kWritersOffset,
                                                ring::kControlsOffset, ring::kChunksOffset};
    static constexpr std::uint64_t kSizes[] = {48, 512, tests::kChunks * 64, 65'536};
    const std::uint64_t at =
        kStarts[random % 4] + ((random >> 8) % kSizes[random % 4] & ~std::uint64_t{3});
    const std::uint64_t value = (random >> 40) % 4 == 0 ? random >> 32 : kValues[random >> 61];
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(base_ + at),
                     static_cast<std::uint32_t>(value), __ATOMIC_RELAXED);
  }
  bool IsFree(std::uint32_t chunk) const {
    return reinterpret_cast<ring::ChunkControl*>(base_ + ring::kControlsOffset)[chunk].state ==
           ring::kFree;
  }
  // Adds a complete chunk with one event. A hostile service may choose any values of the
  // parameters.
  void Put(std::uint64_t ordinal, std::uint32_t tid, std::uint64_t timestamp, std::uint16_t cpu = 0,
           std::uint16_t set = 0, std::uint64_t number = 0) {
    const std::uint32_t index = chunks_++;
    // flags, version, id, tag, opcode, level; then the metadata: a name without fields
    static constexpr unsigned char kEvent[] = {7, 0, 0,   0,   0,   0,   0,   4,   7, 0,
                                               1, 0, 'N', 'u', 'm', 'b', 'e', 'r', 0};
    ring::Record record{};
    record.size = sizeof kEvent;
    record.set = set;
    record.cpu = cpu;
    record.number = static_cast<std::uint32_t>(number);
    record.timestamp = timestamp;
    std::byte* const chunk = base_ + ring::kChunksOffset + std::size_t{index} * ring::kChunkBytes;
    std::memcpy(chunk, &record, sizeof record);
    std::memcpy(chunk + sizeof record, kEvent, sizeof kEvent);
    auto& control = reinterpret_cast<ring::ChunkControl*>(base_ + ring::kControlsOffset)[index];
    control.serial = index + 1;
    control.ordinal = ordinal;
    control.tid = tid;
    control.writer = static_cast<std::uint32_t>(ordinal);
    control.committed = ring::RecordBytes(sizeof kEvent);
    control.state = ring::kComplete;
    service().last_serial = index + 1;
    service().completed = index + 1;
  }

 private:
  static constexpr std::size_t kBytes = ring::RegionBytes(tests::kChunks);

  ring::ServicePage& service() {
    return *reinterpret_cast<ring::ServicePage*>(base_ + ring::kServiceOffset);
  }
  void Hello() {
    ring::Message message{ring::kMessageMagic, ring::MessageType::kHello, 0, ring::kVersion, 1};
    iovec bytes{&message, sizeof message};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &bytes;
    header.msg_iovlen = 1;
    header.msg_control = room;
    header.msg_controllen = sizeof room;
    cmsghdr* const control = CMSG_FIRSTHDR(&header);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = fd_.get();
    std::memcpy(CMSG_DATA(control), &fd, sizeof fd);
    EXPECT_EQ(sendmsg(socket_.get(), &header, 0), static_cast<ssize_t>(sizeof message));
  }

  base::UniqueFd fd_;
  std::byte* base_;
  base::UniqueFd socket_;
  std::uint32_t chunks_ = 0;
};

// An inline connection to the collector with the tracepoint Ring_Feed_L4K1, without events. All
// objects have the same region.
class InlineConnection {
 public:
  explicit InlineConnection(const std::string& path)
      : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ring::InlineHello hello{};
    hello.header = tests::CorrectHeader();
    hello.usable_chunks = tests::kChunks;
    Send(ring::MessageType::kHello, ring::MakeInlineFlags(ring::InlineReason::kChosen, 0), hello);
    struct {
      ring::Patch patch;
      char name[16];
    } name{{ring::kSetNamesOffset, 16}, "Ring_Feed_L4K1"};
    Send(ring::MessageType::kPatch, 0, name);
    struct {
      ring::Patch patch;
      std::uint32_t words[2];
    } count{{ring::kServiceOffset, 8}, {1, tests::kChunks}};
    Send(ring::MessageType::kPatch, 0, count);
    Send(ring::MessageType::kSets, 1);
  }
  // States that all events before this time were sent.
  void StateSent(std::uint64_t time) const { Send(ring::MessageType::kPatch, time); }
  void End() const { Send(ring::MessageType::kEnd, 0); }

 private:
  template <typename... Payload>
  void Send(ring::MessageType type, std::uint64_t value, const Payload&... payload) const {
    const ring::Message message{ring::kMessageMagic, type, value, ring::kVersion, 1};
    std::vector<std::byte> bytes;
    const auto append = [&bytes](const auto& part) {
      const auto added = std::as_bytes(std::span(&part, 1));
      bytes.insert(bytes.end(), added.begin(), added.end());
    };
    append(message);
    (append(payload), ...);
    EXPECT_EQ(send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  base::UniqueFd socket_;
};

// Tests how long the capture waits for a service to connect again after its inline connection
// broke. The process of the connections is that of the test, which does not end.
class ReconnectTest : public RingFeedTest {
 protected:
  static constexpr std::uint64_t kWait = 10'000'000'000;

  ReconnectTest() {
    options_.reconnect_clock = [this] {
      ++clock_reads_;
      return clock_;
    };
  }

  // Connects, and waits until the capture has accepted the connection.
  std::unique_ptr<InlineConnection> Connect() {
    auto connection = std::make_unique<InlineConnection>(socket());
    PollUntil([this] { return !capture_->ReportServices().services.empty(); });
    return connection;
  }
  // Breaks the connection at the current time, and waits until the capture has noticed.
  void Break(std::unique_ptr<InlineConnection> connection) {
    clock_ = SessionClockNow();
    connection.reset();
    PollUntil([this] { return capture_->ReportServices().services.empty(); });
  }
  // Sets the clock, and waits until the capture has compared the time of the wait with it.
  void SetClock(std::uint64_t time) {
    clock_ = time;
    const std::uint64_t before = clock_reads_;
    PollUntil([&] { return clock_reads_ > before; });
  }

  std::uint64_t clock_ = SessionClockNow();
  std::uint64_t clock_reads_ = 0;
};

TEST_F(ReconnectTest, StatesNothingIfTheServiceConnectsAgainInTime) {
  Open();
  tests::FileInMemory file;
  Session* const session = Start({"Ring_Feed"}, &file);
  Break(Connect());
  SetClock(clock_ + kWait - 1);
  const auto second = Connect();
  second->End();
  SetClock(clock_ + kWait);
  EXPECT_TRUE(Stop(session).account.unknown_services().empty());
  EXPECT_TRUE(Read(file).unknown.empty());
}

// The second connection would end the wait if the capture had not ended it before.
TEST_F(ReconnectTest, StatesTheLossIfTheServiceConnectsAgainTooLate) {
  Open();
  tests::FileInMemory file;
  Session* const session = Start({"Ring_Feed"}, &file);
  auto first = Connect();
  const std::uint64_t sent = SessionClockNow();
  first->StateSent(sent);
  Break(std::move(first));
  const std::uint64_t broken = clock_;
  SetClock(broken + kWait);
  Connect()->End();
  PollUntil([this] { return capture_->ReportServices().services.empty(); });
  EXPECT_EQ(Stop(session).account.unknown_services().size(), 1U);
  const Contents contents = Read(file);
  ASSERT_EQ(contents.unknown.size(), 1U);
  const trace::AccountEvent& unknown = contents.unknown[0];
  EXPECT_EQ(unknown.tracepoint, "ring:" + std::to_string(getpid()));
  EXPECT_EQ(unknown.reason, "its connection ended before it had sent all events");
  const auto reader = file.Read();
  EXPECT_EQ(absl::FromUnixNanos(static_cast<std::int64_t>(unknown.since)), reader->TimeOf(sent));
  EXPECT_EQ(absl::FromUnixNanos(static_cast<std::int64_t>(unknown.until)), reader->TimeOf(broken));
}

TEST_F(ReconnectTest, StatesTheLossSinceTheLastTimeThatAnyOfTheConnectionsStated) {
  Open();
  tests::FileInMemory file;
  Session* const session = Start({"Ring_Feed"}, &file);
  auto first = Connect();
  const std::uint64_t sent = SessionClockNow();
  first->StateSent(sent);
  Break(std::move(first));
  // The second connection breaks, too. It does not state until when events were sent.
  Break(Connect());
  const std::uint64_t broken = clock_;
  SetClock(broken + kWait);
  Stop(session);
  const Contents contents = Read(file);
  ASSERT_EQ(contents.unknown.size(), 1U);
  const trace::AccountEvent& unknown = contents.unknown[0];
  const auto reader = file.Read();
  EXPECT_EQ(absl::FromUnixNanos(static_cast<std::int64_t>(unknown.since)), reader->TimeOf(sent));
  EXPECT_EQ(absl::FromUnixNanos(static_cast<std::int64_t>(unknown.until)), reader->TimeOf(broken));
}

// Shuts down the connections of this process to collectors. Leaves the listening socket open, which
// the process has inherited from the capture.
void BreakConnections() {
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(each.path().filename());
    int type = 0;
    socklen_t size = sizeof type;
    sockaddr_un peer{};
    socklen_t peer_size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET &&
        getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0) {
      shutdown(fd, SHUT_RDWR);
    }
  }
}

TEST_F(ReconnectTest, HasTheEventsThatTheServiceSendsWhenItConnectsAgain) {
  // More than the queue of the socket takes.
  constexpr std::uint64_t kCount = 20'000;
  options_.rings->bytes_of_client = std::uint64_t{16} << 20;
  Open();
  tests::FileInMemory file;
  Session* const session = Start({"Ring_Feed"}, &file);
  setenv("EVENTHEADER_TRANSPORT", "ring-inline", 1);
  ServiceProcess service(socket(), [&]() -> int {
    const auto is_connected = [] {
      return eh::DescribeTransport(nullptr, 0) == eh::TransportState::kRingConnected;
    };
    static eh::DynamicProvider provider("Ring_Feed");
    static const eh::EventSet set(provider, eh::Level::kInformation, 1);
    while (!is_connected() || !set.enabled()) usleep(100);
    shared_[kIsEnabled] = 1;
    while (shared_[kMayWrite] == 0) usleep(100);
    eh::DynamicEvent event;
    for (std::uint64_t i = 0; i < kCount; ++i) {
      event.Reset("Number");
      event.AddField("thread", std::uint64_t{0});
      event.AddField("number", i);
      event.AddField("text", std::string_view("0123456789").substr(0, i % 10));
      event.Write(set);
    }
    BreakConnections();
    while (is_connected()) usleep(100);
    shared_[kHasWritten] = 1;
    while (!is_connected() || shared_[kMayEnd] == 0) usleep(100);
    exit(0);
  });
  unsetenv("EVENTHEADER_TRANSPORT");
  PollUntil([this] { return shared_[kIsEnabled] == 1; });
  shared_[kMayWrite] = 1;
  // The capture takes nothing, so the first connection cannot send all events.
  tests::WaitUntil([this] { return shared_[kHasWritten] == 1; });
  std::uint64_t events = 0;  // events of the second connection
  PollUntil([&] {
    const RingReport report = capture_->ReportServices();
    events = report.services.empty() ? 0 : report.services.back().events;
    return events != 0 && report.totals.events == kCount;
  });
  EXPECT_LT(events, kCount);
  SetClock(clock_ + kWait);
  shared_[kMayEnd] = 1;
  PollUntil([&] { return service.HasEnded(); });
  const SessionSummary summary = Stop(session);
  EXPECT_EQ(summary.events, kCount);
  EXPECT_EQ(summary.lost, 0U);
  EXPECT_TRUE(summary.account.unknown_services().empty());
  EXPECT_TRUE(Read(file).unknown.empty());
}

TEST_F(RingFeedTest, DoesNotWaitForAnInlineServiceWhenTheSessionEnds) {
  Open();
  tests::FileInMemory file;
  Session* const session = Start({"Ring_Feed"}, &file);
  std::optional<InlineConnection> first(socket());
  PollUntil([this] { return !capture_->ReportServices().services.empty(); });
  first.reset();
  PollUntil([this] { return capture_->ReportServices().services.empty(); });
  EXPECT_EQ(Stop(session).account.unknown_services().size(), 1U);
  ASSERT_EQ(Read(file).unknown.size(), 1U);
}

// Connects, hands over a descriptor, and then sends messages until `messages` are sent or the
// collector ends the connection.
void ConnectAndSend(const std::string& path, int fd, int messages) {
  const base::UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return;
  const auto send = [&](ring::MessageType type, std::span<const int> fds) {
    const ring::Message message{ring::kMessageMagic, type, 0, ring::kVersion, 1};
    return tests::SendPacket(socket.get(), std::as_bytes(std::span(&message, 1)), fds,
                             MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof message);
  };
  bool sent = send(ring::MessageType::kHello, std::span(&fd, 1));
  for (int i = 0; sent && i < messages; ++i) sent = send(ring::MessageType::kSets, {});
}

TEST_F(RingFeedTest, DoesNotTrustTheClaimsOfAService) {
  Open();
  tests::FileInMemory file;
  Session* const session = Start({"Ring_Feed"}, &file);
  HandmadeService service(socket());
  ASSERT_TRUE(capture_->Poll(absl::Milliseconds(20)).ok());
  const std::uint64_t before = SessionClockNow();
  service.Put(1, /*tid=*/1, before);                              // the tid of another process
  service.Put(2, 2, before + 1'000'000'000'000, /*cpu=*/60'000);  // in the future
  service.Put(2, 2, before, 0, 0, /*number=*/1);                  // earlier than the previous one
  service.Put(3, 3, before, 0, /*set=*/5);                        // a tracepoint without a name
  ASSERT_TRUE(capture_->Poll(absl::ZeroDuration()).ok());
  const SessionSummary summary = Stop(session);
  const std::uint64_t after = SessionClockNow();
  EXPECT_EQ(summary.events, 3U);
  EXPECT_EQ(file.Verify(), "");
  const auto reader = file.Read();
  std::map<std::uint64_t, std::vector<std::uint64_t>> times;  // by thread
  using Step = nettrace::Reader::Step;
  for (Step step = reader->Next(); step != Step::kEnd; step = reader->Next()) {
    if (step != Step::kEvent || reader->event().metadata->name != "Number") continue;
    const nettrace::Event& event = reader->event();
    EXPECT_EQ(event.thread->process_id, static_cast<std::uint64_t>(getpid()));
    times[event.thread->thread_id.value_or(0)].push_back(event.timestamp);
    EXPECT_NE(event.processor, 60'000U);
  }
  ASSERT_EQ(times[1].size(), 1U);
  EXPECT_EQ(times[1][0], before);
  ASSERT_EQ(times[2].size(), 2U);
  EXPECT_LE(times[2][0], times[2][1]);
  EXPECT_LE(times[2][1], after);
}

// The hostile services: one changes its region while the collector reads it, one connects again and
// again with wrong descriptors, and one floods the collector with messages.
TEST_F(RingFeedTest, HostileServicesCostANeighborNothing) {
  constexpr std::uint64_t kCount = 10'000;
  constexpr std::uint64_t kConnections = 1000;
  options_.rings->bytes_of_client = std::uint64_t{8} << 20;
  Open();
  tests::FileInMemory file;
  Session* const session = Start({"Ring_Feed"}, &file);
  SharedMemory hostile;
  const ServiceProcess changing(socket(), [&] {
    const HandmadeService service(socket());
    std::mt19937_64 random(4711);
    for (;; ++hostile[0]) service.Scramble(random());
    return 0;
  });
  const ServiceProcess connecting(socket(), [&] {
    for (std::uint64_t i = 0; i < kConnections; i = ++hostile[1]) {
      int pipe_ends[2];
      if (pipe(pipe_ends) != 0) return 1;
      const base::UniqueFd ends[] = {base::UniqueFd(pipe_ends[0]), base::UniqueFd(pipe_ends[1])};
      const base::UniqueFd device(open("/dev/zero", O_RDWR | O_CLOEXEC));
      const base::UniqueFd unsealed = tests::MakeRegion(tests::CorrectHeader(), 0);
      const base::UniqueFd large =
          tests::MakeRegion(tests::CorrectHeader(), tests::kSeals, std::uint64_t{1} << 40);
      const int fds[] = {ends[0].get(), device.get(), unsealed.get(), large.get()};
      ConnectAndSend(socket(), fds[i % 4], 0);
    }
    return 0;
  });
  const ServiceProcess flooding(socket(), [&] {
    for (;; ++hostile[2]) {
      const base::UniqueFd region = tests::MakeRegion(tests::CorrectHeader());
      ConnectAndSend(socket(), region.get(), 100'000);
    }
    return 0;
  });
  PollUntil([&] { return hostile[0] > 1000 && hostile[1] > 10 && hostile[2] > 0; });
  const auto neighbor = StartService("Ring_Feed", 2, kCount);
  LetItWrite();
  PollUntil([&] { return capture_->ring_server()->refused() >= kConnections; });
  changing.Kill();
  flooding.Kill();
  shared_[kMayEnd] = 1;
  const SessionSummary summary = capture_->StopSession(session);
  EXPECT_TRUE(summary.status.ok()) << summary.status;
  EXPECT_EQ(file.Verify(), "");
  std::map<std::pair<nettrace::ThreadIndex, std::uint64_t>, std::uint64_t> next;
  const auto reader = file.Read();
  using Step = nettrace::Reader::Step;
  for (Step step = reader->Next(); step != Step::kEnd; step = reader->Next()) {
    if (step != Step::kEvent || reader->event().metadata->name != "Number") continue;
    const nettrace::Event& event = reader->event();
    if (event.thread->process_id != static_cast<std::uint64_t>(neighbor->pid())) continue;
    std::uint64_t fields[2];
    std::memcpy(fields, event.payload.data(), sizeof fields);
    std::uint64_t& expected = next[{event.capture_thread_index, fields[0]}];
    EXPECT_EQ(fields[1], expected);
    ++expected;
  }
  ASSERT_EQ(next.size(), 2U);
  for (const auto& [thread, count] : next) EXPECT_EQ(count, kCount);
}

TEST_F(RingFeedTest, ReportsItsServices) {
  Open();
  EXPECT_EQ(capture_->ReportServices().socket, "");
  tests::FileInMemory file;
  SessionOptions options;
  options.name = "web";
  options.selectors.push_back(*ParseSelector("Ring_Feed"));
  ASSERT_TRUE(capture_->StartSession(options, [&file] { return file.MakeSink(); }).ok());
  const auto service = StartService("Ring_Feed", 2, 50);
  LetItWrite();
  // Waits until the capture has read the last events.
  PollUntil([this] { return capture_->ReportServices().services.at(0).events == 100; });
  const HandmadeService other(socket());
  PollUntil([this] { return capture_->ReportServices().services.size() == 2; });
  const RingReport report = capture_->ReportServices();
  EXPECT_EQ(report.socket, socket());
  ASSERT_EQ(report.services.size(), 2U);
  const RingReport::Service& known = report.services[0];
  EXPECT_EQ(known.pid, service->pid());
  EXPECT_EQ(known.uid, geteuid());
  EXPECT_EQ(known.process.executable, std::filesystem::read_symlink("/proc/self/exe"));
  EXPECT_FALSE(known.process.name.empty());
  ASSERT_TRUE(known.process.started.has_value());
  EXPECT_LE(*known.process.started, known.connected + absl::Seconds(1));
  EXPECT_GT(*known.process.started, absl::Now() - absl::Hours(1));
  EXPECT_LE(known.connected, absl::Now());
  EXPECT_EQ(known.ring_bytes, options_.rings->bytes_of_client);
  EXPECT_EQ(known.lost.full + known.lost.nested + known.lost.without_writer, 0U);
  EXPECT_EQ(known.corrupt, 0U);
  ASSERT_EQ(known.tracepoints.size(), 1U);
  EXPECT_EQ(known.tracepoints[0].name, "Ring_Feed_L4K1");
  EXPECT_EQ(known.tracepoints[0].sessions, std::vector<std::string>{"web"});
  EXPECT_FALSE(known.has_more_tracepoints);
  EXPECT_TRUE(report.refusals.empty());
  shared_[kMayEnd] = 1;
}

TEST_F(RingFeedTest, BoundsTheThreadsOfAService) {
  options_.rings->clients = 4;
  Open();
  tests::FileInMemory file;
  Session* const session = Start({"Ring_Feed"}, &file);
  std::uint64_t ordinal = 1;
  for (int i = 0; i < 60; ++i) {
    HandmadeService service(socket());
    for (std::uint32_t k = 0; k < tests::kChunks; ++k) service.Put(ordinal++, 1, SessionClockNow());
    ASSERT_TRUE(capture_->Poll(absl::ZeroDuration()).ok());
  }
  EXPECT_EQ(Stop(session).events, 60U * tests::kChunks);
  EXPECT_EQ(file.Verify(), "");
}

// A file that a process leaves when it is killed: the first bytes of what it has written.
class SlowFile {
 public:
  std::unique_ptr<nettrace::Sink> MakeSink() { return std::make_unique<SlowSink>(this); }
  // From now on, the file gets no more of what is written.
  void Hold() { delivered_ = bytes_.size(); }
  std::size_t delivered() const { return std::min(delivered_, bytes_.size()); }
  std::size_t written() const { return bytes_.size(); }
  std::unique_ptr<nettrace::Reader> Read(std::size_t size) const {
    auto reader = nettrace::Reader::Open(
        std::make_unique<nettrace::MemorySource>(std::span(bytes_).first(size)));
    return reader.ok() ? *std::move(reader) : nullptr;
  }

 private:
  class SlowSink : public nettrace::Sink {
   public:
    explicit SlowSink(SlowFile* file) : file_(file) {}
    absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override {
      file_->bytes_.insert(file_->bytes_.end(), bytes.begin(), bytes.end());
      *taken = bytes.size();
      return absl::OkStatus();
    }
    std::uint64_t Undelivered() const override { return file_->written() - file_->delivered(); }

   private:
    SlowFile* const file_;
  };

  std::vector<std::byte> bytes_;
  std::size_t delivered_ = ~std::size_t{0};
};

// Adds the numbers of events and losses in a file to `*events` and `*lost`. Returns what the file
// states at its end for the next recording.
trace::RecordedRings AddFile(nettrace::Reader* reader, std::uint64_t* events, std::uint64_t* lost) {
  trace::RingPositionReader positions;
  using Step = nettrace::Reader::Step;
  for (Step step = reader->Next(); step != Step::kEnd; step = reader->Next()) {
    positions.Add(*reader, step);
    if (step == Step::kEvent && reader->event().metadata->name == "Number") ++*events;
  }
  *lost += reader->stats().lost;
  return {positions.Positions(), positions.HasEnded() ? trace::RecordedRings::Ending::kEnded
                                                      : trace::RecordedRings::Ending::kInterrupted};
}

// The service writes events, and has losses, in three phases: while the collector's output reaches
// the file, while SlowFile holds it back, and after the collector was killed and the next one has
// started. Each event and loss must be in one of the two files.
TEST_F(RingFeedTest, ContinuesAtThePositionsInTheFileOfACrash) {
  constexpr std::uint64_t kCuts = 10;
  for (std::uint64_t cut = 0; cut <= kCuts; ++cut) {
    SCOPED_TRACE(cut);
    Open();
    SlowFile file;
    SessionOptions options;
    options.selectors.push_back(*ParseSelector("Ring_Feed"));
    options.has_ring_positions = true;
    options.longest_delivery = absl::InfiniteDuration();
    ASSERT_TRUE(capture_->StartSession(options, [&] { return file.MakeSink(); }).ok());
    HandmadeService service(socket());
    std::uint64_t number = 0;
    std::uint64_t calls = 0;
    std::uint64_t written = 0;
    const auto put = [&](int count) {
      for (int i = 0; i < count; ++i, ++number, ++written) {
        service.Put(1, 1, SessionClockNow(), 0, 0, number);
      }
      calls = number;
      service.SetCalls(1, calls);
      ASSERT_TRUE(capture_->Poll(absl::ZeroDuration()).ok());
      ASSERT_TRUE(capture_->Poll(absl::ZeroDuration()).ok());
    };
    number = 2;
    put(5);
    if (cut % 3 != 0) file.Hold();
    number += 3;
    put(4);
    file.Hold();
    number += 1;
    put(2);
    put(3);
    capture_.reset();
    const std::size_t size = file.delivered() + (file.written() - file.delivered()) * cut / kCuts;
    std::uint64_t events = 0;
    std::uint64_t lost = 0;
    options.recorded_rings = {};
    if (const auto reader = file.Read(size); reader != nullptr) {
      options.recorded_rings = AddFile(reader.get(), &events, &lost);
    }
    Open();
    tests::FileInMemory next;
    const auto session = capture_->StartSession(options, [&] { return next.MakeSink(); });
    ASSERT_TRUE(session.ok()) << session.status();
    service.Reconnect(socket());
    number += 4;
    put(3);
    EXPECT_EQ(Stop(*session).events + events, written);
    EXPECT_EQ(next.Verify(), "");
    const std::uint64_t before = events;
    AddFile(next.Read().get(), &events, &lost);
    EXPECT_EQ(events, written) << before << " were in the first file";
    EXPECT_EQ(lost, calls - written);
    capture_.reset();
  }
}

// A service, and the recording of it by collectors that are killed.
class InterruptedRecording {
 public:
  explicit InterruptedRecording(std::string socket) : socket_(std::move(socket)) {
    options.selectors.push_back(*ParseSelector("Ring_Feed"));
    options.has_ring_positions = true;
    options.longest_delivery = absl::Milliseconds(1);
  }
  // Connects the service to the collector, for the first time or again.
  void Connect() {
    if (service == nullptr) {
      service = std::make_unique<HandmadeService>(socket_);
    } else {
      service->Reconnect(socket_);
    }
  }
  // Loses `lost_before` events, and then writes `count` events.
  void Write(std::uint64_t ordinal, std::uint64_t count, std::uint64_t lost_before = 0) {
    std::uint64_t& number = numbers_[ordinal];
    number += lost_before;
    calls += lost_before + count;
    for (std::uint64_t i = 0; i < count; ++i, ++chunks, ++number) {
      service->Put(ordinal, static_cast<std::uint32_t>(ordinal), SessionClockNow(), 0, 0, number);
    }
    service->SetCalls(ordinal, number);
  }
  // Returns whether the collector has given the memory of all events back to the service.
  bool IsGivenBack() const { return chunks == 0 || service->IsFree(chunks - 1); }
  // Adds the counts of a recording's file, and makes the next recording continue at the file's
  // positions. Null: the recording left no readable file.
  void Add(nettrace::Reader* reader) {
    options.recorded_rings = {};
    if (reader != nullptr) options.recorded_rings = AddFile(reader, &events, &lost);
  }

  SessionOptions options;
  std::unique_ptr<HandmadeService> service;
  std::uint32_t chunks = 0;
  std::uint64_t calls = 0;   // events that the service has written or lost
  std::uint64_t events = 0;  // events in the files
  std::uint64_t lost = 0;    // losses in the files

 private:
  std::string socket_;
  std::map<std::uint64_t, std::uint64_t> numbers_;  // number of the next event, by writer
};

// The output is late by more than longest_delivery, so the collector gives the memory of events
// back to the service before the events are in the file. Then the file gets a part of the output,
// and the collector is killed. One of the service's two threads has ended before that.
TEST_F(RingFeedTest, CountsTheEventsThatALateOutputLostInACrash) {
  constexpr std::uint64_t kCuts = 10;
  for (std::uint64_t cut = 0; cut <= kCuts; ++cut) {
    SCOPED_TRACE(cut);
    InterruptedRecording recording(socket());
    Open();
    SlowFile file;
    ASSERT_TRUE(capture_->StartSession(recording.options, [&] { return file.MakeSink(); }).ok());
    recording.Connect();
    recording.Write(1, 5, /*lost_before=*/2);
    recording.Write(2, 3);
    PollUntil([&] { return recording.IsGivenBack(); });
    file.Hold();
    recording.Write(1, 4, /*lost_before=*/3);
    recording.Write(2, 2);
    recording.service->SetExited(2);
    PollUntil([&] { return recording.IsGivenBack() && recording.service->IsFreeWriter(2); });
    recording.Write(1, 2, /*lost_before=*/1);  // The next collector reads these.
    capture_.reset();
    const std::size_t size = file.delivered() + (file.written() - file.delivered()) * cut / kCuts;
    recording.Add(file.Read(size).get());
    ASSERT_FALSE(recording.options.recorded_rings.positions.empty());
    if (cut == 0) {
      EXPECT_EQ(recording.events, 8U);
    }
    Open();
    tests::FileInMemory next;
    const auto session = capture_->StartSession(recording.options, [&] { return next.MakeSink(); });
    ASSERT_TRUE(session.ok()) << session.status();
    recording.Connect();
    recording.Write(1, 3, /*lost_before=*/4);
    PollUntil([&] { return recording.IsGivenBack(); });
    Stop(*session);
    EXPECT_EQ(next.Verify(), "");
    recording.Add(next.Read().get());
    EXPECT_EQ(recording.events + recording.lost, recording.calls);
    capture_.reset();
  }
}

// After a crash, another session has read the events before this session starts.
TEST_F(RingFeedTest, CountsTheEventsBeforeALateStartAfterACrash) {
  InterruptedRecording recording(socket());
  Open();
  SlowFile file;
  ASSERT_TRUE(capture_->StartSession(recording.options, [&] { return file.MakeSink(); }).ok());
  recording.Connect();
  recording.Write(1, 5);
  PollUntil([&] { return recording.IsGivenBack(); });
  file.Hold();
  capture_.reset();
  recording.Add(file.Read(file.delivered()).get());
  EXPECT_EQ(recording.events, 5U);
  Open();
  tests::FileInMemory other;
  tests::FileInMemory next;
  Start({"Ring_Feed"}, &other);
  recording.Connect();
  recording.Write(1, 7);
  PollUntil([&] { return recording.IsGivenBack(); });
  recording.Write(1, 2);
  const auto session = capture_->StartSession(recording.options, [&] { return next.MakeSink(); });
  ASSERT_TRUE(session.ok()) << session.status();
  recording.Write(1, 3);
  PollUntil([&] { return recording.IsGivenBack(); });
  EXPECT_GE(Stop(*session).lost, 7U);
  EXPECT_EQ(next.Verify(), "");
  recording.Add(next.Read().get());
  EXPECT_EQ(recording.events + recording.lost, recording.calls);
}

TEST_F(RingFeedTest, CountsNoEventsAfterTheEndOfASession) {
  InterruptedRecording recording(socket());
  Open();
  tests::FileInMemory file;
  tests::FileInMemory other;
  const auto session = capture_->StartSession(recording.options, [&] { return file.MakeSink(); });
  ASSERT_TRUE(session.ok()) << session.status();
  Start({"Ring_Feed"}, &other);
  recording.Connect();
  recording.Write(1, 5);
  recording.Write(2, 5);
  PollUntil([&] { return recording.IsGivenBack(); });
  EXPECT_EQ(Stop(*session).events, 10U);
  recording.Add(file.Read().get());
  EXPECT_EQ(recording.options.recorded_rings.ending, trace::RecordedRings::Ending::kEnded);
  // The other session records these events.
  recording.Write(1, 7);
  recording.Write(2, 7);
  PollUntil([&] { return recording.IsGivenBack(); });
  capture_.reset();
  for (int crash = 0; crash < 2; ++crash) {
    Open();
    SlowFile next;
    ASSERT_TRUE(capture_->StartSession(recording.options, [&] { return next.MakeSink(); }).ok());
    recording.Connect();
    recording.Write(1, 3);
    PollUntil([&] { return recording.IsGivenBack(); });
    capture_.reset();
    recording.Add(next.Read(next.written()).get());
    EXPECT_EQ(recording.options.recorded_rings.ending, trace::RecordedRings::Ending::kInterrupted);
  }
  EXPECT_EQ(recording.events, 16U);
  EXPECT_EQ(recording.lost, 0U);
}

// The collector is killed before the output has delivered anything of the second thread.
TEST_F(RingFeedTest, StatesThatLossesAreUnknownIfNoFileHasAPositionOfTheThread) {
  using Ending = trace::RecordedRings::Ending;
  for (const Ending ending : {Ending::kInterrupted, Ending::kInterruptedEarly, Ending::kEnded}) {
    SCOPED_TRACE(static_cast<int>(ending));
    InterruptedRecording recording(socket());
    Open();
    SlowFile file;
    ASSERT_TRUE(capture_->StartSession(recording.options, [&] { return file.MakeSink(); }).ok());
    recording.Connect();
    recording.Write(1, 5);
    PollUntil([&] { return recording.IsGivenBack(); });
    file.Hold();
    recording.Write(2, 4);
    PollUntil([&] { return recording.IsGivenBack(); });
    capture_.reset();
    recording.Add(file.Read(file.delivered()).get());
    EXPECT_EQ(recording.events, 5U);
    recording.options.recorded_rings.ending = ending;
    Open();
    SessionOptions of_others = recording.options;
    of_others.selectors = {*ParseSelector("Shop")};
    tests::FileInMemory next;
    tests::FileInMemory others;
    const auto session = capture_->StartSession(recording.options, [&] { return next.MakeSink(); });
    ASSERT_TRUE(session.ok()) << session.status();
    const auto other = capture_->StartSession(of_others, [&] { return others.MakeSink(); });
    ASSERT_TRUE(other.ok()) << other.status();
    recording.Connect();
    recording.Write(1, 3);
    PollUntil([&] { return recording.IsGivenBack(); });
    EXPECT_TRUE(Stop(*other).account.unknown_services().empty());
    const std::vector<trace::AccountEvent> unknown = Stop(*session).account.unknown_services();
    recording.Add(next.Read().get());
    EXPECT_EQ(recording.events, 8U);
    EXPECT_EQ(recording.lost, 0U);
    ASSERT_EQ(unknown.size(), ending == Ending::kEnded ? 0U : 1U);
    if (ending == Ending::kEnded) continue;
    EXPECT_EQ(unknown[0].tracepoint, "ring:" + std::to_string(getpid()));
    EXPECT_EQ(unknown[0].since, 0U);
    EXPECT_NE(unknown[0].until, 0U);
    capture_.reset();
  }
}

// The only positions are those of a recording that ended. Some events after them may be from the
// time before the next recording, which was interrupted, so its losses are unknown.
TEST_F(RingFeedTest, StatesThatLossesAreUnknownAfterPositionsOfAnEarlierRecording) {
  InterruptedRecording recording(socket());
  Open();
  tests::FileInMemory file;
  tests::FileInMemory other;
  const auto session = capture_->StartSession(recording.options, [&] { return file.MakeSink(); });
  ASSERT_TRUE(session.ok()) << session.status();
  Start({"Ring_Feed"}, &other);
  recording.Connect();
  recording.Write(1, 5);
  PollUntil([&] { return recording.IsGivenBack(); });
  EXPECT_EQ(Stop(*session).events, 5U);
  recording.Add(file.Read().get());
  recording.Write(1, 7);
  PollUntil([&] { return recording.IsGivenBack(); });
  capture_.reset();
  recording.options.recorded_rings.ending = trace::RecordedRings::Ending::kInterruptedEarly;
  Open();
  tests::FileInMemory next;
  const auto later = capture_->StartSession(recording.options, [&] { return next.MakeSink(); });
  ASSERT_TRUE(later.ok()) << later.status();
  recording.Connect();
  recording.Write(1, 3);
  PollUntil([&] { return recording.IsGivenBack(); });
  EXPECT_EQ(Stop(*later).account.unknown_services().size(), 1U);
  recording.Add(next.Read().get());
  EXPECT_EQ(recording.events, 8U);
  EXPECT_EQ(recording.lost, 0U);
}

// A thread has a position in a file even if the session's filter rejects all its events.
TEST_F(RingFeedTest, KnowsThePositionsOfThreadsWhoseEventsTheFilterRejects) {
  InterruptedRecording recording(socket());
  recording.options.selectors[0].filter = "common_pid == 99";
  for (int crash = 0; crash < 2; ++crash) {
    Open();
    SlowFile file;
    const auto session = capture_->StartSession(recording.options, [&] { return file.MakeSink(); });
    ASSERT_TRUE(session.ok()) << session.status();
    recording.Connect();
    recording.Write(1, 5);
    PollUntil([&] { return recording.IsGivenBack(); });
    EXPECT_EQ((*session)->Summarize().events, 0U);
    EXPECT_TRUE((*session)->Summarize().account.unknown_services().empty());
    capture_.reset();
    recording.Add(file.Read(file.written()).get());
    EXPECT_EQ(recording.options.recorded_rings.positions.size(), 1U);
    EXPECT_EQ(recording.lost, 0U);
  }
}

TEST_F(RingFeedTest, DoesNotWaitLongForAnOutput) {
  Open();
  SlowFile file;
  file.Hold();
  SessionOptions options;
  options.selectors.push_back(*ParseSelector("Ring_Feed"));
  options.has_ring_positions = true;
  options.longest_delivery = absl::Milliseconds(1);
  ASSERT_TRUE(capture_->StartSession(options, [&] { return file.MakeSink(); }).ok());
  HandmadeService service(socket());
  service.SetCalls(1, 1);
  service.Put(1, 1, SessionClockNow());
  PollUntil([&] { return service.IsFree(0); });
}

TEST_F(RingFeedTest, RecordsAnEventFromBeforeTheSessionThatIsCommittedLate) {
  const std::uint64_t before = SessionClockNow();
  Open();
  tests::FileInMemory file;
  Session* const session = Start({"Ring_Feed"}, &file);
  HandmadeService service(socket());
  ASSERT_TRUE(capture_->Poll(absl::Milliseconds(20)).ok());
  service.Put(1, 1, before);
  ASSERT_TRUE(capture_->Poll(absl::ZeroDuration()).ok());
  const SessionSummary summary = Stop(session);
  EXPECT_EQ(summary.events, 1U);
  EXPECT_EQ(summary.late, 1U);
}

// In the file, the timestamp of a late event is later than the time at which it was written. A loss
// between late events must not end before this timestamp.
TEST_F(RingFeedTest, ReportsLossesBetweenLateEventsUntilTheirTimeInTheFile) {
  Open();
  tests::FileInMemory file;
  Session* const session = Start({"Ring_Feed"}, &file, absl::Milliseconds(10));
  HandmadeService service(socket());
  ASSERT_TRUE(capture_->Poll(absl::Milliseconds(20)).ok());
  const std::uint64_t time = SessionClockNow();
  service.Put(1, 1, time);
  const absl::Time end = absl::Now() + absl::Milliseconds(100);
  PollUntil([end] { return absl::Now() >= end; });  // The interval of the event ends.
  service.Put(1, 1, time + 1, 0, 0, /*number=*/5);
  service.Put(1, 1, time + 2, 0, 0, /*number=*/10);
  PollUntil([&] { return session->events() == 3; });
  const SessionSummary summary = Stop(session);
  EXPECT_EQ(summary.late, 2U);
  EXPECT_EQ(summary.lost, 8U);

  std::int64_t last = 0;
  std::optional<trace::AccountEvent> losses;
  const auto reader = file.Read();
  using Step = nettrace::Reader::Step;
  for (Step step = reader->Next(); step != Step::kEnd; step = reader->Next()) {
    if (step != Step::kEvent) continue;
    const nettrace::Event& event = reader->event();
    if (event.metadata->name == "Number") {
      last = absl::ToUnixNanos(reader->TimeOf(event.timestamp));
    } else if (trace::IsAccount(event)) {
      const auto account = trace::ParseAccount(event);
      if (account && account->kind == trace::AccountEvent::Kind::kEventsLost) losses = account;
    }
  }
  ASSERT_TRUE(losses);
  EXPECT_EQ(losses->count, 8U);
  EXPECT_GE(static_cast<std::int64_t>(losses->until), last);
}

}  // namespace
}  // namespace collector
