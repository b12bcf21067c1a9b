// Tests the table of tasks. It finds the identity (name, ids and program) that a thread had at a
// time, from the kernel's records of forks, renames, execs and exits.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/collector/identity/cgroup_table.h"
#include "tools/collector/identity/task_tracker.h"

namespace collector {
namespace {

// Ids above those in use on this machine.
constexpr std::uint32_t kPid = 0x40000000;
constexpr std::uint32_t kTid = kPid + 1;

class TaskTrackerTest : public ::testing::Test {
 protected:
  // Records a fork. `parent` is the main thread of its process.
  void Fork(std::uint32_t pid, std::uint32_t tid, std::uint32_t parent, std::uint64_t time) {
    Apply(PERF_RECORD_FORK, Words({pid, parent, tid, parent}) + Words({0, 0}) + Words({0, 0, 0, 0}),
          time);
  }
  // Records that a thread of `pid` executes a program, and becomes the main thread. `path`: file
  // of the program; "": the records do not contain it.
  void Exec(std::uint32_t pid, std::string name, const std::string& path, std::uint64_t time) {
    name.resize(16);
    Apply(PERF_RECORD_COMM, Words({pid, pid}) + name + Words({0, 0, 0, 0}), time,
          PERF_RECORD_MISC_COMM_EXEC);
    if (!path.empty()) MapCode(pid, path, time);
  }
  void MapCode(std::uint32_t pid, std::string path, std::uint64_t time) {
    path.resize((path.size() / 8 + 1) * 8);
    Apply(PERF_RECORD_MMAP, Words({pid, pid, 0, 0, 0, 0, 0, 0}) + path + Words({0, 0, 0, 0}), time);
  }
  void Exit(std::uint32_t pid, std::uint32_t tid, std::uint64_t time) {
    Apply(PERF_RECORD_EXIT, Words({pid, 0, tid, 0}) + Words({0, 0}) + Words({0, 0, 0, 0}), time);
  }
  void Comm(std::uint32_t pid, std::uint32_t tid, std::string name, std::uint64_t time) {
    name.resize(16);
    Apply(PERF_RECORD_COMM, Words({pid, tid}) + name + Words({0, 0, 0, 0}), time);
  }
  void MakeCgroup(std::uint32_t id, std::string path, std::uint64_t time) {
    path.resize((path.size() / 8 + 1) * 8);
    Apply(PERF_RECORD_CGROUP, Words({id, 0}) + path + Words({0, 0, 0, 0}), time);
  }
  void Lost() { Apply(PERF_RECORD_LOST, Words({0, 0, 1, 0}) + Words({0, 0, 0, 0}), 0); }

  // Returns the name that the thread had at `time`.
  std::string NameAt(std::uint32_t pid, std::uint32_t tid, std::uint64_t time) {
    const Slot slot = tasks_.Find(pid, tid, time);
    EXPECT_TRUE(slot.valid());
    found_.emplace(slot.index(), slot.generation());
    return tasks_.InfoOf(slot).name.value_or("");
  }
  // Returns what the thread row states about the thread at `time`, apart from its name.
  std::string RowAt(std::uint32_t pid, std::uint32_t tid, std::uint64_t time,
                    std::uint64_t cgroup = 0) {
    const Slot slot = tasks_.Find(pid, tid, time, cgroup);
    found_.emplace(slot.index(), slot.generation());
    std::string text;
    for (const auto& [key, value] : tasks_.InfoOf(slot).key_values) {
      absl::StrAppend(&text, text.empty() ? "" : " ", key, "=", value);
    }
    return text;
  }
  // Number of identities that NameAt and RowAt have found.
  std::size_t found() const { return found_.size(); }

  // Returns the events of processes up to `limit`, without the processes of this machine.
  std::vector<std::string> Processes(std::uint64_t limit = 1000) {
    constexpr const char* kKinds[] = {"exists", "created", "exited"};
    std::vector<std::string> texts;
    for (const ProcessEvent& event : tasks_.processes().Take(limit)) {
      if (event.pid < kPid) continue;
      texts.push_back(absl::StrCat(event.timestamp, " ", event.pid - kPid, " ",
                                   kKinds[static_cast<int>(event.kind)]));
      if (!event.name.empty()) absl::StrAppend(&texts.back(), " ", event.name);
    }
    return texts;
  }
  using Texts = std::vector<std::string>;

  // Returns the name, pid and tid (minus kPid) for a sample at `time` of a thread that has exited.
  // The kernel gives such samples no ids. `tid`: from the sample's other data; none: not known.
  std::string ExitedAt(std::optional<std::uint32_t> tid, std::uint64_t time) {
    const nettrace::ThreadInfo info = tasks_.InfoOf(tasks_.FindExited(0, tid, time));
    if (!info.thread_id) return info.name.value_or("");
    return absl::StrCat(info.name.value_or(""), " ", *info.process_id - kPid, " ",
                        *info.thread_id - kPid);
  }

  TaskTracker tasks_;

 private:
  static std::string Words(std::vector<std::uint32_t> words) {
    return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof words[0]};
  }
  void Apply(std::uint32_t type, const std::string& body, std::uint64_t time, __u16 misc = 0) {
    std::string bytes(8, '\0');
    const perf_event_header header = {type, misc, static_cast<__u16>(8 + body.size())};
    std::memcpy(bytes.data(), &header, sizeof header);
    bytes += body;
    PerfRecord record;
    record.timestamp = time;
    record.bytes = std::as_bytes(std::span(bytes));
    tasks_.Apply(record);
  }

  std::set<std::pair<std::uint32_t, std::uint32_t>> found_;
};

TEST_F(TaskTrackerTest, ThreadHasTheNameOfItsTime) {
  Comm(kPid, kPid, "first", 10);
  Fork(kPid, kTid, kPid, 20);
  Comm(kPid, kTid, "worker", 30);
  EXPECT_EQ(NameAt(kPid, kTid, 25), "first");
  EXPECT_EQ(NameAt(kPid, kTid, 35), "worker");
  EXPECT_EQ(NameAt(kPid, kPid, 35), "first");
  EXPECT_EQ(found(), 3u);
}

TEST_F(TaskTrackerTest, ReusedIdIsAnotherThread) {
  Comm(kPid, kPid, "old", 10);
  Exit(kPid, kPid, 20);
  Comm(kPid + 9, kPid + 9, "parent", 20);
  Fork(kPid, kPid, kPid + 9, 30);
  EXPECT_EQ(NameAt(kPid, kPid, 15), "old");
  EXPECT_EQ(NameAt(kPid, kPid, 35), "parent");
}

// An identity that was looked up is found again without a search, until the thread changes.
TEST_F(TaskTrackerTest, CachedIdentityEndsWithARename) {
  Comm(kPid, kTid, "first", 10);
  EXPECT_EQ(NameAt(kPid, kTid, 15), "first");
  EXPECT_EQ(NameAt(kPid, kTid, 16), "first");
  Comm(kPid, kTid, "second", 20);
  EXPECT_EQ(NameAt(kPid, kTid, 19), "first");
  EXPECT_EQ(NameAt(kPid, kTid, 25), "second");
  // The event is from before the rename, but is read after a later event.
  EXPECT_EQ(NameAt(kPid, kTid, 18), "first");
  EXPECT_EQ(NameAt(kPid, kTid, 26), "second");
  EXPECT_EQ(found(), 2u);
}

TEST_F(TaskTrackerTest, ManyRenamesTakeLittleMemory) {
  constexpr std::uint32_t kThreads = 3000;
  std::uint64_t time = 10;
  for (int round = 0; round < 100; ++round) {
    for (std::uint32_t tid = kTid; tid < kTid + kThreads; ++tid) {
      Comm(kPid, tid, absl::StrCat(round), ++time);
    }
  }
  EXPECT_LE(tasks_.past_identities(), 65536u + kThreads);
  EXPECT_EQ(NameAt(kPid, kTid, time), "99");
  EXPECT_EQ(NameAt(kPid, kTid, time - kThreads), "98");
  tasks_.DropEnded(time);
  EXPECT_EQ(tasks_.past_identities(), 0u);
}

TEST_F(TaskTrackerTest, CachedIdentityIsNotUsedForAnotherProcessWithTheTid) {
  Comm(kPid, kTid, "one", 10);
  EXPECT_EQ(NameAt(kPid, kTid, 15), "one");
  Comm(kPid + 9, kTid, "other", 20);
  EXPECT_EQ(NameAt(kPid, kTid, 16), "one");
  EXPECT_EQ(NameAt(kPid + 9, kTid, 25), "other");
  EXPECT_EQ(NameAt(kPid, kTid, 17), "one");
}

TEST_F(TaskTrackerTest, CachedIdentityEndsWithTheThread) {
  Comm(kPid, kTid, "first", 10);
  EXPECT_EQ(NameAt(kPid, kTid, 15), "first");
  EXPECT_EQ(NameAt(kPid, kTid, 16), "first");
  EXPECT_EQ(found(), 1u);
  Exit(kPid, kTid, 20);
  tasks_.DropEnded(30);
  EXPECT_EQ(NameAt(kPid, kTid, 31), "");  // DropEnded has dropped the thread.
  EXPECT_EQ(found(), 2u);
}

// Slots are reused, however many threads there have been.
TEST_F(TaskTrackerTest, EndedThreadsTakeNoSlot) {
  Slot last;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const std::uint64_t time = 10 * (i + 1);
    Comm(kPid, kTid + i, absl::StrCat("thread ", i), time);
    const Slot slot = tasks_.Find(kPid, kTid + i, time + 1);
    EXPECT_NE(slot, last);
    EXPECT_LT(slot.index(), 2u);
    EXPECT_EQ(tasks_.InfoOf(slot).name, absl::StrCat("thread ", i));
    Exit(kPid, kTid + i, time + 2);
    tasks_.DropEnded(time + 3);
    last = slot;
  }
}

// The cache of recent lookups has 1024 slots. Tids that differ by a multiple of 1024 share one.
TEST_F(TaskTrackerTest, ManyThreadsAreThemselves) {
  std::vector<Slot> slots(100);
  for (int turn = 0; turn < 3; ++turn) {
    for (std::uint32_t i = 0; i < slots.size(); ++i) {
      const std::uint32_t tid = kTid + i * 1024;
      if (turn == 0) {
        Comm(tid, tid, absl::StrCat("thread ", i), 10);
        slots[i] = tasks_.Find(tid, tid, 20);
      }
      EXPECT_EQ(tasks_.Find(tid, tid, 20), slots[i]);
      EXPECT_EQ(NameAt(tid, tid, 20), absl::StrCat("thread ", i));
    }
  }
  EXPECT_EQ(found(), slots.size());
}

TEST_F(TaskTrackerTest, ThreadWithoutARecordHasTheNameOfItsProcess) {
  Comm(kPid, kPid, "service", 10);
  EXPECT_EQ(NameAt(kPid, kTid, 20), "service");
  EXPECT_EQ(NameAt(kPid + 5, kPid + 5, 20), "");
  EXPECT_EQ(NameAt(0, 0, 20), "swapper");
}

TEST_F(TaskTrackerTest, CatchingUpFindsTheNameOfAThreadWithoutARecord) {
  prctl(PR_SET_NAME, "unannounced");
  const auto pid = static_cast<std::uint32_t>(getpid());
  EXPECT_EQ(NameAt(pid, pid, 20), "");
  tasks_.CatchUp(15);
  EXPECT_EQ(NameAt(pid, pid, 30), "unannounced");
}

TEST_F(TaskTrackerTest, CatchingUpAfterALossFindsThreads) {
  prctl(PR_SET_NAME, "found");
  const auto pid = static_cast<std::uint32_t>(getpid());
  Lost();
  tasks_.CatchUp(15);
  EXPECT_EQ(NameAt(pid, pid, 20), "found");
}

TEST_F(TaskTrackerTest, EventOfAThreadWithoutIdsIsAttributedToIt) {
  Fork(kPid, kPid, 1, 10);
  Comm(kPid, kPid, "main", 10);
  Fork(kPid, kTid, kPid, 11);
  EXPECT_EQ(ExitedAt(kTid, 11), "(exited)");  // kTid is alive, so it is not found.
  Comm(kPid, kTid, "worker", 12);
  Exit(kPid, kTid, 20);
  EXPECT_EQ(ExitedAt(kTid, 21), "worker 0 1");
  Fork(kPid + 9, kTid, kPid, 30);
  EXPECT_EQ(ExitedAt(kTid, 31), "worker 0 1");
  EXPECT_EQ(ExitedAt(kTid + 1, 31), "(exited)");
  EXPECT_EQ(ExitedAt(std::nullopt, 31), "(exited)");
}

TEST_F(TaskTrackerTest, SampleOfAnExitedThreadIsAttributedToItAfterTidReuse) {
  Comm(kPid, kTid, "first", 10);
  Exit(kPid, kTid, 20);
  Comm(kPid + 9, kTid, "second", 30);
  EXPECT_EQ(ExitedAt(kTid, 25), "first 0 1");
  EXPECT_EQ(NameAt(kPid, kTid, 25), "first");
  EXPECT_EQ(NameAt(kPid + 9, kTid, 30), "second");
  EXPECT_EQ(ExitedAt(kTid, 35), "first 0 1");
}

TEST_F(TaskTrackerTest, MainThreadThatEndsFirstKeepsItsName) {
  Fork(kPid, kPid, 1, 10);
  Exec(kPid, "service", "/bin/service", 11);
  Fork(kPid, kTid, kPid, 12);
  Exit(kPid, kPid, 20);
  tasks_.DropEnded(30);
  EXPECT_EQ(NameAt(kPid, kPid, 40), "service");
}

TEST_F(TaskTrackerTest, ProcessHasThePathOfItsExecutable) {
  Fork(kPid, kPid, 1, 10);
  Exec(kPid, "service", "/usr/bin/service", 11);
  MapCode(kPid, "/lib/libc.so.6", 12);
  EXPECT_EQ(Processes(), Texts{"10 0 created /usr/bin/service"});
  MapCode(kPid, "/lib/plugin.so", 20);
  EXPECT_EQ(Processes(), Texts{});
}

TEST_F(TaskTrackerTest, ProcessWithoutARecordOfItsCreationBeginsWithItsProgram) {
  Exec(kPid, "service", "/usr/bin/service", 11);
  Exit(kPid, kPid, 30);
  EXPECT_EQ(Processes(), (Texts{"11 0 created /usr/bin/service", "30 0 exited /usr/bin/service"}));
}

TEST_F(TaskTrackerTest, ProcessWithoutExecHasThePathOfItsParent) {
  Fork(kPid, kPid, 1, 10);
  Exec(kPid, "service", "/usr/bin/service", 11);
  Fork(kPid + 5, kPid + 5, kPid, 20);
  Comm(kPid + 5, kPid + 5, "worker", 21);
  EXPECT_EQ(Processes(), (Texts{"10 0 created /usr/bin/service", "20 5 created /usr/bin/service"}));
}

TEST_F(TaskTrackerTest, ProcessWithoutAPathHasTheNameOfItsMainThread) {
  Fork(kPid, kPid, 1, 10);
  Exec(kPid, "service", "", 11);
  EXPECT_EQ(Processes(), Texts{"10 0 created service"});
  Comm(kPid, kTid, "other thread", 20);
  EXPECT_EQ(Processes(), Texts{});
  Comm(kPid, kPid, "renamed", 30);
  EXPECT_EQ(Processes(), Texts{"30 0 exists renamed"});
}

TEST_F(TaskTrackerTest, LaterExecEndsTheFormerProgram) {
  Fork(kPid, kPid, 1, 10);
  Exec(kPid, "first", "/bin/first", 11);
  EXPECT_EQ(Processes(), Texts{"10 0 created /bin/first"});
  Exec(kPid, "second", "/bin/second (deleted)", 20);
  Exit(kPid, kPid, 30);
  EXPECT_EQ(Processes(), (Texts{"20 0 exited /bin/first", "20 0 created /bin/second",
                                "30 0 exited /bin/second"}));
}

TEST_F(TaskTrackerTest, ExecOfTheSameProgramIsNoEvent) {
  Fork(kPid, kPid, 1, 10);
  Exec(kPid, "service", "/bin/service", 11);
  EXPECT_EQ(Processes(), Texts{"10 0 created /bin/service"});
  Exec(kPid, "service", "/bin/service", 20);
  EXPECT_EQ(Processes(), Texts{});
}

TEST_F(TaskTrackerTest, LaterExecWithAnUnknownPathHasItsOwnTime) {
  Fork(kPid, kPid, 1, 10);
  Exec(kPid, "first", "/bin/first", 11);
  EXPECT_EQ(Processes(), Texts{"10 0 created /bin/first"});
  Exec(kPid, "second", "", 20);
  Exit(kPid, kPid, 30);
  EXPECT_EQ(Processes(),
            (Texts{"20 0 exited /bin/first", "20 0 created second", "30 0 exited second"}));
}

TEST_F(TaskTrackerTest, IntervalThatEndsBeforeThePathIsKnownShowsNoOtherName) {
  Fork(kPid, kPid, 1, 10);
  Exec(kPid, "service", "/bin/service", 11);
  Fork(kPid + 5, kPid + 5, kPid, 20);
  Exec(kPid + 5, "exe", "", 21);
  EXPECT_EQ(Processes(), (Texts{"10 0 created /bin/service", "20 5 created /bin/service"}));
  MapCode(kPid + 5, "/bin/service", 30);
  EXPECT_EQ(Processes(), Texts{});
  Exec(kPid + 5, "exe", "", 40);
  EXPECT_EQ(Processes(), Texts{});
  MapCode(kPid + 5, "/bin/other", 50);
  EXPECT_EQ(Processes(), (Texts{"40 5 exited /bin/service", "40 5 created /bin/other"}));
}

TEST_F(TaskTrackerTest, ProcessWithAnUnknownPathEndsWithTheNameOfItsMainThread) {
  Fork(kPid, kPid, 1, 10);
  Exec(kPid, "service", "/bin/service", 11);
  Fork(kPid + 5, kPid + 5, kPid, 20);
  Exec(kPid + 5, "exe", "", 21);
  Comm(kPid + 5, kPid + 5, "worker", 22);
  Exit(kPid + 5, kPid + 5, 30);
  EXPECT_EQ(Processes(),
            (Texts{"10 0 created /bin/service", "20 5 created worker", "30 5 exited worker"}));
}

TEST_F(TaskTrackerTest, CodeThatIsMappedAfterProcHasShownThePathIsNotTheProgram) {
  Fork(kPid, kPid, 1, 10);
  Exec(kPid, "service", "", 11);
  tasks_.processes().Exists(kPid, {"/bin/service", true, kPid}, 20, 20);
  MapCode(kPid, "/lib/plugin.so", 30);
  EXPECT_EQ(Processes(), Texts{"10 0 created /bin/service"});
}

TEST_F(TaskTrackerTest, ProcessEndsWithItsLastThread) {
  Fork(kPid, kPid, 1, 10);
  Fork(kPid, kTid, kPid, 11);
  Fork(kPid, kTid + 1, kPid, 12);
  Exit(kPid, kPid, 20);
  Exit(kPid, kTid + 1, 21);
  EXPECT_EQ(Processes(), Texts{"10 0 created"});
  Exit(kPid, kTid, 22);
  EXPECT_EQ(Processes(), Texts{"22 0 exited"});
}

TEST_F(TaskTrackerTest, ProgramEndsTheOtherThreads) {
  Fork(kPid, kPid, 1, 10);
  Fork(kPid, kTid, kPid, 11);
  // kTid executes a program: the main thread ends, and kTid takes its place.
  Exit(kPid, kPid, 20);
  Exec(kPid, "program", "/bin/program", 21);
  EXPECT_EQ(NameAt(kPid, kPid, 22), "program");
  Fork(kPid + 9, kTid, kPid, 25);  // kTid can be reused
  Exit(kPid, kPid, 30);
  EXPECT_EQ(Processes(), (Texts{"10 0 created /bin/program", "30 0 exited /bin/program"}));
}

TEST_F(TaskTrackerTest, ReusedPidIsAnotherProcess) {
  Fork(kPid, kPid, 1, 10);
  Exec(kPid, "one", "/bin/one", 10);
  Exit(kPid, kPid, 20);
  Fork(kPid, kPid, 1, 30);
  Exec(kPid, "two", "/bin/two", 30);
  Exit(kPid, kPid, 40);
  EXPECT_EQ(Processes(), (Texts{"10 0 created /bin/one", "20 0 exited /bin/one",
                                "30 0 created /bin/two", "40 0 exited /bin/two"}));
}

TEST_F(TaskTrackerTest, ReusedPidEndsAProcessWithALostEnd) {
  Fork(kPid, kPid, 1, 10);
  Fork(kPid, kPid, 1, 30);
  EXPECT_EQ(Processes(), (Texts{"10 0 created", "30 0 exited", "30 0 created"}));
}

TEST_F(TaskTrackerTest, EventsAfterTheLimitWait) {
  Fork(kPid, kPid, 1, 10);
  Fork(kPid + 5, kPid + 5, 1, 30);
  Exit(kPid, kPid, 20);
  EXPECT_EQ(Processes(25), (Texts{"10 0 created", "20 0 exited"}));
  Exec(kPid + 5, "late", "/bin/late", 31);
  EXPECT_EQ(tasks_.processes().waiting(), 1u);
  EXPECT_EQ(Processes(30), Texts{"30 5 created /bin/late"});
}

TEST_F(TaskTrackerTest, ProcShowsThisProcessWithItsPath) {
  tasks_.LoadFromProc(50);
  const auto pid = static_cast<std::uint32_t>(getpid());
  int found = 0;
  for (const ProcessEvent& event : tasks_.processes().Take(50)) {
    EXPECT_EQ(event.kind, ProcessEvent::Kind::kExists);
    EXPECT_EQ(event.timestamp, 50u);
    EXPECT_NE(event.name, "");
    if (event.pid != pid) continue;
    ++found;
    EXPECT_TRUE(event.name.ends_with("/test_collector")) << event.name;
    EXPECT_EQ(event.namespace_pid, pid);
  }
  EXPECT_EQ(found, 1);
}

TEST_F(TaskTrackerTest, ProcessesThatALossHidFollowFromProc) {
  tasks_.LoadFromProc(5);
  Fork(kPid, kPid, 1, 10);
  Fork(kPid, kTid, kPid, 11);
  const auto child = static_cast<std::uint32_t>(fork());
  if (child == 0) {
    pause();
    _exit(0);
  }
  tasks_.processes().Take(15);
  Lost();
  tasks_.CatchUp(20);
  // kPid no longer exists: the records of the end of its threads are among the lost records.
  std::vector<std::string> others;
  bool found = false;
  for (const ProcessEvent& event : tasks_.processes().Take(20)) {
    found = found || (event.pid == child && event.kind == ProcessEvent::Kind::kExists);
    if (event.pid >= kPid) others.push_back(absl::StrCat(event.timestamp));
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(others, Texts{"20"});
  kill(static_cast<pid_t>(child), SIGKILL);
  waitpid(static_cast<pid_t>(child), nullptr, 0);
}

TEST_F(TaskTrackerTest, RecordOfACreationThatProcHasShownSinceIsThatOfTheSameProcess) {
  // LoadFromProc adds this process at time 1000. The record of its creation has the time 2000.
  tasks_.LoadFromProc(1000);
  const auto pid = static_cast<std::uint32_t>(getpid());
  Fork(pid, pid, 1, 2000);
  int found = 0;
  for (const ProcessEvent& event : tasks_.processes().Take(3000)) {
    if (event.pid != pid) continue;
    ++found;
    EXPECT_EQ(event.kind, ProcessEvent::Kind::kCreated);
    EXPECT_EQ(event.timestamp, 2000u);
  }
  EXPECT_EQ(found, 1);
}

TEST_F(TaskTrackerTest, LaterTraceHasTheExistingProcesses) {
  Fork(kPid, kPid, 1, 10);
  Exec(kPid, "service", "/bin/service", 11);
  Fork(kPid + 1, kPid + 1, kPid, 12);
  Fork(kPid + 2, kPid + 2, kPid, 13);
  Exit(kPid + 2, kPid + 2, 14);
  std::vector<std::string> existing;
  std::uint64_t last = 0;
  for (const ProcessEvent& event : tasks_.processes().Existing(20)) {
    EXPECT_EQ(event.kind, ProcessEvent::Kind::kExists);
    EXPECT_EQ(event.timestamp, 20u);
    existing.push_back(absl::StrCat(event.pid - kPid, " ", event.name));
    last = event.number;
  }
  EXPECT_EQ(existing, (Texts{"0 /bin/service", "1 /bin/service"}));
  // Take() has not yet returned the event of the creation, but Existing() has reported the process.
  // The exec therefore adds events, and does not change the event of the creation.
  Exec(kPid + 1, "worker", "/bin/worker", 21);
  std::vector<std::string> later;
  for (const ProcessEvent& event : tasks_.processes().Take(30)) {
    if (event.number > last) later.push_back(absl::StrCat(event.pid - kPid, " ", event.name));
  }
  // The former program ends, and the new one begins.
  EXPECT_EQ(later, (Texts{"1 /bin/service", "1 /bin/worker"}));
}

TEST_F(TaskTrackerTest, LeavesOutProcessesThatEndedBeforeTheRecording) {
  tasks_.LoadFromProc(1000);
  Fork(kPid, kPid, 1, 900);
  Exit(kPid, kPid, 910);
  EXPECT_EQ(Processes(), Texts{});
}

class DescribedThreadsTest : public TaskTrackerTest {
 protected:
  // The table has no cgroup hierarchy, so it contains only the cgroups of MakeCgroup.
  DescribedThreadsTest() { tasks_.DescribeThreads(CgroupTable("")); }
};

TEST_F(TaskTrackerTest, RowsSayNoMoreThanIsAskedFor) {
  Fork(kPid, kPid, kPid + 9, 10);
  Exec(kPid, "a", "/usr/bin/a", 20);
  MakeCgroup(7, "/system.slice/a.service", 20);
  EXPECT_EQ(RowAt(kPid, kPid, 30, 7), "");
}

TEST_F(DescribedThreadsTest, RowHasExecutableAndCgroup) {
  MakeCgroup(7, "/system.slice/a.service", 5);
  Fork(kPid, kPid, kPid + 9, 10);
  Exec(kPid, "a", "/usr/bin/a", 20);
  Fork(kPid, kTid, kPid, 30);
  EXPECT_EQ(RowAt(kPid, kPid, 15, 7), "Cgroup=/system.slice/a.service Unit=a.service");
  const std::string row = "Executable=/usr/bin/a Cgroup=/system.slice/a.service Unit=a.service";
  EXPECT_EQ(RowAt(kPid, kPid, 25, 7), row);
  EXPECT_EQ(RowAt(kPid, kTid, 35, 7), row);
  // The sample has no cgroup id, or the id of an unknown cgroup.
  EXPECT_EQ(RowAt(kPid, kPid, 35), "Executable=/usr/bin/a");
  EXPECT_EQ(RowAt(kPid, kPid, 35, 8), "Executable=/usr/bin/a");
}

TEST_F(DescribedThreadsTest, ThreadThatMovesHasARowForEachCgroup) {
  MakeCgroup(7, "/a", 5);
  MakeCgroup(8, "/b", 5);
  Fork(kPid, kPid, kPid + 9, 10);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(RowAt(kPid, kPid, 20, 7), "Cgroup=/a");
  EXPECT_EQ(found(), 1u);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(RowAt(kPid, kPid, 30, 8), "Cgroup=/b");
  EXPECT_EQ(found(), 2u);
  // The event is from before the move. It is read later, because it is in another CPU's ring.
  EXPECT_EQ(RowAt(kPid, kPid, 21, 7), "Cgroup=/a");
}

TEST_F(DescribedThreadsTest, ProgramOfTheSameNameIsAnotherOne) {
  Fork(kPid, kPid, kPid + 9, 10);
  Exec(kPid, "app", "/opt/1/app", 20);
  EXPECT_EQ(RowAt(kPid, kPid, 25), "Executable=/opt/1/app");
  Exec(kPid, "app", "", 30);
  EXPECT_EQ(RowAt(kPid, kPid, 35), "");
  MapCode(kPid, "/opt/2/app (deleted)", 40);
  EXPECT_EQ(RowAt(kPid, kPid, 45), "Executable=/opt/2/app");
  EXPECT_EQ(RowAt(kPid, kPid, 25), "Executable=/opt/1/app");
}

TEST_F(DescribedThreadsTest, RenamedThreadAndPidUsedAgain) {
  Fork(kPid, kPid, kPid + 9, 10);
  Exec(kPid, "app", "/usr/bin/app", 20);
  Comm(kPid, kPid, "renamed", 30);
  EXPECT_EQ(RowAt(kPid, kPid, 35), "Executable=/usr/bin/app");
  EXPECT_EQ(NameAt(kPid, kPid, 35), "renamed");
  Exit(kPid, kPid, 40);
  Fork(kPid, kPid, kPid + 9, 50);
  EXPECT_EQ(RowAt(kPid, kPid, 55), "");
  EXPECT_EQ(RowAt(kPid, kPid, 35), "Executable=/usr/bin/app");
}

TEST_F(DescribedThreadsTest, ProcShowsExecutables) {
  tasks_.LoadFromProc(1);
  const auto pid = static_cast<std::uint32_t>(getpid());
  const std::string row = RowAt(pid, pid, 10);
  EXPECT_TRUE(row.starts_with("Executable=/") && row.ends_with("/test_collector")) << row;
  // After a loss, the cgroup is read again; it has not changed.
  Lost();
  tasks_.CatchUp(20);
  RowAt(pid, pid, 30);
  EXPECT_EQ(found(), 1u);
}

TEST(CgroupTable, IsBoundedAndKeepsUsedEntries) {
  CgroupTable cgroups("");
  cgroups.Add(1, "/used");
  cgroups.Add(2, "/not-used");
  for (std::uint64_t id = 10; id < 10 * CgroupTable::kMaxCgroups; ++id) {
    cgroups.Add(id, "/hostile");
    if (id % 1000 == 0) {
      ASSERT_EQ(cgroups.Find(1), "/used");
    }
  }
  EXPECT_LE(cgroups.size(), CgroupTable::kMaxCgroups);
  EXPECT_EQ(cgroups.Find(2), "");
  const std::string path = "/" + std::string(4000, 'x');
  for (std::uint64_t id = 1; id < 4 * CgroupTable::kMaxBytes / path.size(); ++id) {
    cgroups.Add(id, path);
  }
  EXPECT_LE(cgroups.size() * path.size(), CgroupTable::kMaxBytes + path.size());
}

}  // namespace
}  // namespace collector
