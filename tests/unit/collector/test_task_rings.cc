// Tests the order and the losses of the records of threads, on rings in memory.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/collector/memory_ring.h"
#include "tools/collector/perf/session_clock.h"
#include "tools/collector/perf/task_rings.h"

namespace collector {
namespace {

constexpr std::size_t kForkSize = 48;  // bytes

class TaskMemory : public MemoryRing {
 public:
  TaskMemory() : MemoryRing(4096) {}

  EventRing ring(base::UniqueFd event = base::UniqueFd()) { return {std::move(event), reader()}; }
  // Puts a record that thread `tid` was created.
  void PutFork(std::uint32_t tid, std::uint64_t time) {
    std::vector<std::byte> bytes(kForkSize);
    Set(&bytes, 0, perf_event_header{PERF_RECORD_FORK, 0, kForkSize});
    Set(&bytes, 16, tid);
    Set(&bytes, 24, time);
    Set(&bytes, kForkSize - 8, time);
    Put(bytes);
  }
  // Puts a record that process 1 has mapped a file of 8 characters as code.
  void PutMapping(const char* path, std::uint64_t time) {
    std::vector<std::byte> bytes(72);
    Set(&bytes, 0, perf_event_header{PERF_RECORD_MMAP, 0, 72});
    Set(&bytes, 8, std::uint32_t{1});
    Set(&bytes, 12, std::uint32_t{1});
    std::memcpy(bytes.data() + 40, path, 8);
    Set(&bytes, 64, time);
    Put(bytes);
  }
};

// Returns an event whose count of lost records has these values when it is read.
base::UniqueFd EventWithLosses(const std::vector<std::uint64_t>& values) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const base::UniqueFd write_end(ends[1]);
  for (const std::uint64_t lost : values) {
    const EventCounts counts = {0, lost};
    EXPECT_EQ(write(write_end.get(), &counts, sizeof counts), ssize_t{sizeof counts});
  }
  return base::UniqueFd(ends[0]);
}

void AppendRecord(const PerfRecord& record, std::string* text) {
  TaskRecord task;
  CodeRecord code;
  if (ParseFork(record, &task)) {
    absl::StrAppend(text, task.tid, "@", record.timestamp, " ");
  } else if (ParseCode(record, &code)) {
    absl::StrAppend(text, std::string(code.path), "@", record.timestamp, " ");
  } else {
    absl::StrAppend(text, "type ", record.type(), " ");
  }
}

// Returns the records that are delivered, and "missing" if some may be missing.
std::string DrainTasks(TaskRings* rings) {
  std::string text;
  if (rings->Drain([&](const PerfRecord& record) { AppendRecord(record, &text); }))
    text += "missing";
  return text;
}

TEST(TaskRings, DeliversRecordsOfAllCpusInTheOrderOfTime) {
  TaskMemory first, second;
  TaskRings rings(3, 4096, /*cgroups=*/false);
  EXPECT_EQ(DrainTasks(&rings), "");
  rings.Begin(0, first.ring());
  rings.Begin(2, second.ring());
  first.PutFork(1, 10);
  first.PutFork(3, 30);
  second.PutFork(2, 20);
  second.PutFork(4, 30);
  EXPECT_EQ(DrainTasks(&rings), "1@10 2@20 3@30 4@30 ");
  EXPECT_EQ(DrainTasks(&rings), "");
}

TEST(TaskRings, KeepsRecordsThatAreLaterThanNow) {
  TaskMemory memory;
  TaskRings rings(1, 4096, /*cgroups=*/false);
  rings.Begin(0, memory.ring());
  const std::uint64_t soon = SessionClockNow() + 20'000'000;
  memory.PutFork(1, soon);
  memory.PutFork(2, 10);
  EXPECT_EQ(DrainTasks(&rings), "2@10 ");
  while (SessionClockNow() < soon) usleep(1000);
  EXPECT_EQ(DrainTasks(&rings), absl::StrCat("1@", soon, " "));
}

TEST(TaskRings, DeliversMappingsOfFilesOnly) {
  TaskMemory memory;
  TaskRings rings(1, 4096, /*cgroups=*/false);
  rings.Begin(0, memory.ring());
  memory.PutMapping("/bin/ls", 10);
  memory.PutMapping("//anon\0", 20);
  EXPECT_EQ(DrainTasks(&rings), "/bin/ls@10 ");
}

TEST(TaskRings, PeekKeepsTheRecords) {
  TaskMemory first, second;
  TaskRings rings(2, 4096, /*cgroups=*/false);
  rings.Begin(0, first.ring());
  rings.Begin(1, second.ring());
  first.PutFork(1, 20);
  second.PutFork(2, 10);
  std::string seen;
  rings.Peek([&](const PerfRecord& record) { AppendRecord(record, &seen); });
  EXPECT_EQ(seen, "1@20 2@10 ");
  EXPECT_EQ(DrainTasks(&rings), "2@10 1@20 ");
}

TEST(TaskRings, KeepsTheRecordsOfACpuThatGoesOffline) {
  TaskMemory former, current;
  TaskRings rings(1, 4096, /*cgroups=*/false);
  rings.Begin(0, former.ring());
  former.PutFork(1, 10);
  rings.End(0);
  former.PutFork(2, 20);  // This ring is closed.
  rings.Begin(0, current.ring());
  current.PutFork(3, 30);
  EXPECT_EQ(DrainTasks(&rings), "1@10 3@30 missing");
  EXPECT_EQ(DrainTasks(&rings), "");
  rings.SetMissing();
  EXPECT_EQ(DrainTasks(&rings), "missing");
}

TEST(TaskRings, ReadsTheCountOfLossesOfAFullRing) {
  TaskMemory memory;
  TaskRings rings(1, 4096, /*cgroups=*/false);
  rings.Begin(0, memory.ring(EventWithLosses({0, 3, 3, 4})));
  const auto fill = [&](std::size_t bytes) {
    for (std::size_t i = 0; i * kForkSize < bytes; ++i) memory.PutFork(1, 10);
    std::string text = DrainTasks(&rings);
    return text.ends_with("missing");
  };
  const std::size_t quarter = memory.size() / 4;
  EXPECT_FALSE(fill(quarter));  // The count is 0.
  EXPECT_TRUE(fill(quarter));   // The count is 3, so records are missing.
  // The count is not read here, because the ring had space for every record.
  EXPECT_FALSE(fill(quarter - kForkSize));
  EXPECT_FALSE(fill(quarter));  // The count is still 3.
  EXPECT_TRUE(fill(quarter));   // The count is 4.
  EXPECT_FALSE(fill(quarter));  // The count cannot be read.
}

}  // namespace
}  // namespace collector
