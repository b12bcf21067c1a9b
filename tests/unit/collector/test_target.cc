#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tools/collector/session/target.h"

namespace collector {
namespace {

namespace fs = std::filesystem;

TEST(ParseIds, TakesNumbersAndCommas) {
  EXPECT_EQ(*ParseIds("12"), std::vector<pid_t>{12});
  EXPECT_EQ(*ParseIds("12,345,12"), (std::vector<pid_t>{12, 345}));
  for (const char* text : {"", ",", "12,", "x", "0", "-1", "+1", "1 2", "99999999999"}) {
    EXPECT_EQ(ParseIds(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

// Makes a folder that looks like a hierarchy of cgroups.
class FindCgroupTest : public ::testing::Test {
 protected:
  FindCgroupTest() {
    char folder[] = "/tmp/find-cgroup-XXXXXX";
    mount_ = mkdtemp(folder);
    for (const char* path : {"system.slice/nginx.service/worker", "system.slice/worker",
                             "user.slice/user-1000.slice/app.slice/app.service"}) {
      fs::create_directories(mount_ + "/" + path);
    }
  }
  ~FindCgroupTest() override { fs::remove_all(mount_); }

  std::string Find(const std::string& text) {
    const absl::StatusOr<std::string> path = FindCgroup(mount_, text);
    if (!path.ok()) return std::string(path.status().message());
    EXPECT_TRUE(path->starts_with(mount_ + "/")) << *path;
    return path->substr(mount_.size() + 1);
  }

  std::string mount_;
};

TEST_F(FindCgroupTest, PathIsThatBelowTheMount) {
  EXPECT_EQ(Find("system.slice"), "system.slice");
  EXPECT_EQ(Find("system.slice/nginx.service"), "system.slice/nginx.service");
  EXPECT_EQ(Find("/system.slice/nginx.service"), "system.slice/nginx.service");
  EXPECT_EQ(Find(mount_ + "/user.slice"), "user.slice");
}

TEST_F(FindCgroupTest, NameIsLookedForInTheHierarchy) {
  EXPECT_EQ(Find("nginx.service"), "system.slice/nginx.service");
  EXPECT_EQ(Find("app.service"), "user.slice/user-1000.slice/app.slice/app.service");
}

TEST_F(FindCgroupTest, ErrorsNameThePlaceAndTheMatches) {
  EXPECT_EQ(Find("apache.service"),
            "cgroup apache.service: there is no cgroup of that name below " + mount_ +
                "; check that the unit is running");
  EXPECT_EQ(Find("system.slice/apache.service"),
            "cgroup system.slice/apache.service: there is no such cgroup below " + mount_ +
                "; 'systemd-cgls' lists those that exist");
  EXPECT_EQ(Find(""), "cgroup \"\": there is no such cgroup below " + mount_ +
                          "; 'systemd-cgls' lists those that exist");
  EXPECT_EQ(Find("worker"), "cgroup worker: 2 cgroups have that name: " + mount_ +
                                "/system.slice/nginx.service/worker, " + mount_ +
                                "/system.slice/worker; use the path of one");
}

TEST(OpenTarget, KindsExcludeEachOther) {
  TargetSelection selection;
  EXPECT_EQ(OpenTarget(selection)->kind, PerfTarget::Kind::kMachine);
  selection.pids = {getpid()};
  EXPECT_EQ(OpenTarget(selection)->kind, PerfTarget::Kind::kProcesses);
  selection.tids = {gettid()};
  EXPECT_EQ(OpenTarget(selection).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(OpenTarget, NamesTheMissingTarget) {
  // A child that has ended and has been waited for.
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  ASSERT_EQ(waitpid(gone, nullptr, 0), gone);
  TargetSelection selection;
  selection.pids = {getpid(), gone};
  EXPECT_EQ(OpenTarget(selection).status().message(),
            "process " + std::to_string(gone) +
                ": there is no such process; 'ps -e' lists the processes that exist");
  selection.tids = {gone};
  selection.pids.clear();
  EXPECT_EQ(OpenTarget(selection).status().message(),
            "thread " + std::to_string(gone) +
                ": there is no such thread; 'ps -eL' lists the threads that exist");
  selection.tids.clear();
  selection.cgroups = {"/no/such/cgroup"};
  EXPECT_FALSE(OpenTarget(selection).ok());
}

TEST(TargetWatch, EndsWithTheLastProcess) {
  std::vector<pid_t> children;
  for (int i = 0; i < 2; ++i) {
    children.push_back(fork());
    if (children.back() == 0) {
      pause();
      _exit(0);
    }
  }
  for (const auto kind : {PerfTarget::Kind::kThreads, PerfTarget::Kind::kProcesses}) {
    const bool are_threads = kind == PerfTarget::Kind::kThreads;
    TargetSelection selection;
    (are_threads ? selection.tids : selection.pids) = children;
    const auto target = OpenTarget(selection);
    ASSERT_TRUE(target.ok()) << target.status();
    TargetWatch watch(*target);
    EXPECT_FALSE(watch.HaveEnded());
    if (are_threads) continue;
    EXPECT_EQ(watch.descriptors().size(), 2u);
    for (std::size_t i = 0; i < children.size(); ++i) {
      kill(children[i], SIGKILL);
      ASSERT_EQ(waitpid(children[i], nullptr, 0), children[i]);
      EXPECT_EQ(watch.HaveEnded(), i == 1);
      EXPECT_EQ(watch.descriptors().size(), 1 - i);
    }
  }
}

TEST(TargetWatch, MachineNeverEnds) { EXPECT_FALSE(TargetWatch(PerfTarget()).HaveEnded()); }

}  // namespace
}  // namespace collector
