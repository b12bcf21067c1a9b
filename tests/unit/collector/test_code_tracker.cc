// Tests which mapping an address belongs to: at each time, and after processes execute programs,
// fork and end.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/identity/build_id_query.h"
#include "tools/collector/identity/code_tracker.h"

namespace collector {
namespace {

// Pids above those in use on this machine.
constexpr std::uint32_t kTrackedPid = 0x40000000;
constexpr std::uint32_t kTrackedChild = kTrackedPid + 1;

class CodeTrackerTest : public ::testing::Test {
 protected:
  void Map(std::uint32_t pid, std::uint64_t address, std::uint64_t size, std::string_view path,
           std::uint64_t timestamp, std::uint64_t offset = 0) {
    MappingRecord record;
    record.pid = record.tid = pid;
    record.address = address;
    record.size = size;
    record.offset = offset;
    record.path = path;
    code_.Maps(record, timestamp);
  }
  // Returns the path of the mapping; "" if there is none.
  std::string PathAt(std::uint32_t pid, std::uint64_t address, std::uint64_t timestamp) const {
    const CodeTracker::Found found = code_.Find(pid, address, timestamp);
    return found.mapping == nullptr ? "" : found.mapping->file->path;
  }

  CodeTracker code_{KernelSymbols::Parse("")};
};

TEST_F(CodeTrackerTest, FindsTheMappingOfAnAddress) {
  Map(kTrackedPid, 0x1000, 0x1000, "/a", 10);
  EXPECT_EQ(PathAt(kTrackedPid, 0x0fff, 20), "");
  EXPECT_EQ(PathAt(kTrackedPid, 0x1000, 20), "/a");
  EXPECT_EQ(PathAt(kTrackedPid, 0x1fff, 20), "/a");
  EXPECT_EQ(PathAt(kTrackedPid, 0x2000, 20), "");
  EXPECT_EQ(PathAt(kTrackedPid, 0x1000, 9), "");
  EXPECT_EQ(PathAt(kTrackedChild, 0x1000, 20), "");
}

TEST_F(CodeTrackerTest, AnotherLibraryAtTheSameAddressHoldsFromItsTime) {
  Map(kTrackedPid, 0x1000, 0x1000, "/a", 10);
  Map(kTrackedPid, 0x1000, 0x1000, "/b", 20);
  Map(kTrackedPid, 0x1000, 0x1000, "/a", 30);
  EXPECT_EQ(PathAt(kTrackedPid, 0x1000, 19), "/a");
  EXPECT_EQ(PathAt(kTrackedPid, 0x1000, 20), "/b");
  EXPECT_EQ(PathAt(kTrackedPid, 0x1000, 30), "/a");
  const CodeTracker::Found second = code_.Find(kTrackedPid, 0x1000, 25);
  EXPECT_EQ(second.from, 20u);
  EXPECT_EQ(second.until, 30u);
  EXPECT_NE(code_.Find(kTrackedPid, 0x1000, 15).mapping->id,
            code_.Find(kTrackedPid, 0x1000, 35).mapping->id);
  code_.DropEnded(25);
  EXPECT_EQ(PathAt(kTrackedPid, 0x1000, 19), "");
  EXPECT_EQ(PathAt(kTrackedPid, 0x1000, 26), "/b");
}

TEST_F(CodeTrackerTest, UnmappedCodeHoldsUntilTheNextMapping) {
  Map(kTrackedPid, 0x5000, 0x1000, "/other", 5);
  Map(kTrackedPid, 0x1000, 0x1000, "/a", 10);
  EXPECT_EQ(code_.Find(kTrackedPid, 0x1000, 7).until, 10u);
  EXPECT_EQ(code_.Find(kTrackedPid, 0x1000, 3).until, 5u);
  Map(kTrackedPid, 0x1000, 0x1000, "/b", 20);
  EXPECT_EQ(code_.Find(kTrackedPid, 0x1000, 7).until, 10u);
}

TEST_F(CodeTrackerTest, WhatIsLeftOfAMappingKeepsItsOffsets) {
  Map(kTrackedPid, 0x1000, 0x3000, "/a", 10, 0x500);
  Map(kTrackedPid, 0x2000, 0x1000, "/b", 20);
  EXPECT_EQ(PathAt(kTrackedPid, 0x1fff, 20), "/a");
  EXPECT_EQ(PathAt(kTrackedPid, 0x2fff, 20), "/b");
  const CodeTracker::Found rest = code_.Find(kTrackedPid, 0x3000, 20);
  ASSERT_NE(rest.mapping, nullptr);
  EXPECT_EQ(rest.mapping->file->path, "/a");
  EXPECT_EQ(rest.mapping->offset, 0x2500u);
  EXPECT_EQ(PathAt(kTrackedPid, 0x2000, 19), "/a");
}

TEST_F(CodeTrackerTest, AProgramReplacesTheOneBefore) {
  Map(kTrackedPid, 0x1000, 0x1000, "/a", 10);
  code_.Executes(kTrackedPid, 20);
  Map(kTrackedPid, 0x2000, 0x1000, "/b", 21);
  EXPECT_EQ(PathAt(kTrackedPid, 0x1000, 19), "/a");
  EXPECT_EQ(PathAt(kTrackedPid, 0x1000, 20), "");
  EXPECT_EQ(PathAt(kTrackedPid, 0x2000, 21), "/b");
  EXPECT_EQ(code_.Find(kTrackedPid, 0x2000, 21).program_from, 20u);
}

TEST_F(CodeTrackerTest, ACopyOfAProcessSharesItsMappingsUntilOneChanges) {
  Map(kTrackedPid, 0x1000, 0x1000, "/a", 10);
  code_.Created(kTrackedChild, kTrackedPid, 20);
  EXPECT_EQ(code_.Find(kTrackedPid, 0x1000, 20).mapping->id,
            code_.Find(kTrackedChild, 0x1000, 20).mapping->id);
  Map(kTrackedChild, 0x5000, 0x1000, "/c", 30);
  Map(kTrackedPid, 0x6000, 0x1000, "/p", 30);
  EXPECT_EQ(PathAt(kTrackedChild, 0x1000, 30), "/a");
  EXPECT_EQ(PathAt(kTrackedChild, 0x5000, 30), "/c");
  EXPECT_EQ(PathAt(kTrackedPid, 0x5000, 30), "");
  EXPECT_EQ(PathAt(kTrackedChild, 0x6000, 30), "");
  EXPECT_EQ(code_.Find(kTrackedPid, 0x1000, 30).mapping->id,
            code_.Find(kTrackedChild, 0x1000, 30).mapping->id);
}

TEST_F(CodeTrackerTest, AReusedPidIsAnotherProcess) {
  Map(kTrackedPid, 0x1000, 0x1000, "/a", 10);
  code_.Ended(kTrackedPid, 20);
  code_.Created(kTrackedPid, kTrackedChild, 30);
  Map(kTrackedPid, 0x1000, 0x1000, "/b", 31);
  EXPECT_EQ(PathAt(kTrackedPid, 0x1000, 19), "/a");
  EXPECT_EQ(PathAt(kTrackedPid, 0x1000, 30), "");
  EXPECT_EQ(PathAt(kTrackedPid, 0x1000, 31), "/b");
  code_.DropEnded(25);
  EXPECT_EQ(PathAt(kTrackedPid, 0x1000, 19), "");
  EXPECT_EQ(PathAt(kTrackedPid, 0x1000, 31), "/b");
}

TEST_F(CodeTrackerTest, EveryChangeHasANumber) {
  EXPECT_EQ(code_.CountChanges(kTrackedPid), 0u);
  Map(kTrackedPid, 0x1000, 0x1000, "/a", 10);
  const std::uint64_t first = code_.CountChanges(kTrackedPid);
  code_.Executes(kTrackedPid, 20);
  EXPECT_NE(code_.CountChanges(kTrackedPid), first);
}

TEST_F(CodeTrackerTest, IgnoresMappingsThatWrapAround) {
  Map(kTrackedPid, ~std::uint64_t{0}, 2, "/a", 10);
  Map(kTrackedPid, 0x1000, 0, "/b", 10);
  EXPECT_EQ(PathAt(kTrackedPid, ~std::uint64_t{0}, 10), "");
  EXPECT_EQ(PathAt(kTrackedPid, 0x1000, 10), "");
}

TEST_F(CodeTrackerTest, AProcessHasALimitOfMappings) {
  for (std::uint64_t i = 1; i <= CodeTracker::kMaxMappings + 1; ++i) {
    Map(kTrackedPid, i << 12, 0x1000, "/a", 10);
  }
  EXPECT_EQ(PathAt(kTrackedPid, CodeTracker::kMaxMappings << 12, 10), "/a");
  EXPECT_EQ(PathAt(kTrackedPid, (CodeTracker::kMaxMappings + 1) << 12, 10), "");
}

TEST_F(CodeTrackerTest, LoadsTheCodeOfRunningProcesses) {
  code_.LoadFromProc(0);
  const auto pid = static_cast<std::uint32_t>(getpid());
  const auto address = reinterpret_cast<std::uintptr_t>(&ParseProcMaps);
  const CodeTracker::Found found = code_.Find(pid, address, 5);
  ASSERT_NE(found.mapping, nullptr);
  EXPECT_NE(found.mapping->file->path.find("test_collector"), std::string::npos);
  // Linux 6.11 and newer return the build id.
  const std::size_t size = found.mapping->file->build_id.size();
  EXPECT_TRUE(size == 0 || size == 20) << size;
  const std::uint64_t changes = code_.CountChanges(pid);
  code_.LoadFromProc(50);
  EXPECT_EQ(code_.CountChanges(pid), changes);
  EXPECT_EQ(code_.Find(pid, address, 60).mapping->id, found.mapping->id);
}

// The path must have the mark " (deleted)": another file may be at the path now, and its functions
// are not those of the mapping.
TEST_F(CodeTrackerTest, KeepsThatAFileWasDeletedBeforeTheCapture) {
  const std::string path =
      std::filesystem::temp_directory_path() / absl::StrCat("deleted-", getpid());
  const base::UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  ASSERT_EQ(ftruncate(file.get(), 4096), 0);
  void* const code = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), 0);
  ASSERT_EQ(unlink(path.c_str()), 0);
  if (code == MAP_FAILED) GTEST_SKIP() << "the folder for temporary files is mounted with noexec";
  const auto pid = static_cast<std::uint32_t>(getpid());
  code_.LoadFromProc(0);
  EXPECT_EQ(PathAt(pid, reinterpret_cast<std::uintptr_t>(code), 5), path + " (deleted)");
  const std::uint64_t changes = code_.CountChanges(pid);
  code_.LoadFromProc(50);
  EXPECT_EQ(code_.CountChanges(pid), changes);
  EXPECT_EQ(munmap(code, 4096), 0);
}

TEST(BuildIdQuery, AsksOnlyForFilesOnLocalFileSystems) {
  const auto devices = LocalDevices(
      "36 35 254:1 / / rw,noatime shared:1 master:2 - ext4 /dev/vda1 rw\n"
      "37 36 0:51 / /home/user/mnt rw - fuse.sshfs host:/ rw\n"
      "38 36 0:52 / /mnt rw - nfs4 host:/ rw\n"
      "39 36 0:53 / /var/lib/overlay rw - overlay overlay rw\n"
      "40 36 0:54 / /a rw - ext4\n"
      "41 36 0:x / /b rw - ext4 none rw\n"
      "42 - ext4\n"
      "-\n");
  EXPECT_EQ(devices,
            (absl::flat_hash_set<std::uint64_t>{makedev(254, 1), makedev(0, 53), makedev(0, 54)}));
}

TEST(BuildIdQuery, HasNoBuildIdWithoutAMapping) {
  BuildIdQuery query;
  EXPECT_EQ(query.BuildIdAt(0x1000), "");
  query.SelectProcess(static_cast<std::uint32_t>(getpid()));
  EXPECT_EQ(query.BuildIdAt(0), "");
  query.SelectProcess(0);
  EXPECT_EQ(query.BuildIdAt(0x1000), "");
}

TEST(ProcMaps, OnlyCodeIsReturned) {
  const auto maps = ParseProcMaps(
      "00401000-00402000 r-xp 00001000 08:01 1234                       /bin/a b (deleted)\n"
      "00402000-00403000 r--p 00002000 08:01 1234                       /bin/a\n"
      "7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n"
      "7ffe00000000-7ffe00001000 r-xp 00000000 00:00 0                  [vdso]");
  ASSERT_EQ(maps.size(), 3u);
  EXPECT_EQ(maps[0].first, 0x401000u);
  EXPECT_EQ(maps[0].last, 0x401fffu);
  EXPECT_EQ(maps[0].offset, 0x1000u);
  EXPECT_EQ(maps[0].path, "/bin/a b");
  EXPECT_TRUE(maps[0].is_deleted);
  EXPECT_FALSE(maps[1].is_deleted);
  EXPECT_EQ(maps[1].path, "//anon");
  EXPECT_EQ(maps[2].path, "[vdso]");
}

TEST(ProcMaps, IgnoresOtherLines) {
  EXPECT_TRUE(ParseProcMaps("").empty());
  EXPECT_TRUE(ParseProcMaps("\n\n-\n- r-xp\nx-y r-xp 0 0 0 /a\n2000-1000 r-xp 0 0 0 /a\n"
                            "1000-1000 r-xp 0 0 0 /a\n1000-2000 r-xp z 0 0 /a\n1000-2000\n")
                  .empty());
}

}  // namespace
}  // namespace collector
