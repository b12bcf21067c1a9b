// Tests waiting for space on a disk: which conditions are waited for, and when the wait ends.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "absl/time/clock.h"
#include "tools/cli/space_wait.h"

namespace cli {
namespace {

class SpaceWaitTest : public ::testing::Test {
 protected:
  std::vector<bool> calls_;
  SpaceWait space_{[this](bool waiting) { calls_.push_back(waiting); }};
};

TEST_F(SpaceWaitTest, WaitsWhileTheDiskOrTheQuotaIsFull) {
  for (const int error : {ENOSPC, EDQUOT, ENOSPC}) {
    const absl::Time before = absl::Now();
    EXPECT_TRUE(space_.Wait(error));
    EXPECT_GE(absl::Now() - before, SpaceWait::kLook / 2);
    EXPECT_TRUE(space_.is_waiting());
  }
  EXPECT_EQ(calls_, (std::vector<bool>{true}));
  EXPECT_EQ(space_.waited(), absl::ZeroDuration());
  EXPECT_TRUE(space_.Wait(0));
  EXPECT_FALSE(space_.is_waiting());
  EXPECT_EQ(calls_, (std::vector<bool>{true, false}));
  EXPECT_GE(space_.waited(), SpaceWait::kLook);
  EXPECT_TRUE(space_.Wait(0));
  EXPECT_EQ(calls_.size(), 2u);
}

TEST_F(SpaceWaitTest, WaitsForNothingElse) {
  for (const int error : {EFBIG, EIO, EPIPE, EBADF}) EXPECT_FALSE(space_.Wait(error));
  EXPECT_TRUE(calls_.empty());
}

TEST_F(SpaceWaitTest, EndsAtItsTime) {
  const absl::Time end = absl::Now() + absl::Milliseconds(50);
  space_.EndAt(end);
  EXPECT_FALSE(space_.Wait(ENOSPC));
  EXPECT_GE(absl::Now(), end);
  EXPECT_FALSE(space_.Wait(ENOSPC));
  EXPECT_EQ(calls_, (std::vector<bool>{true}));
}

TEST_F(SpaceWaitTest, EndsOnRequest) {
  space_.End();
  EXPECT_FALSE(space_.Wait(ENOSPC));
  EXPECT_TRUE(calls_.empty());
}

TEST_F(SpaceWaitTest, EndsWithTheCommandAndLeavesItToBeReaped) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    // The child exits with status 7 once the parent has closed the pipe.
    close(ends[1]);
    char byte = 0;
    _exit(read(ends[0], &byte, 1) == 0 ? 7 : 1);
  }
  ASSERT_GT(child, 0);
  space_.EndWith(child);
  EXPECT_TRUE(space_.Wait(ENOSPC));
  close(ends[1]);
  while (space_.Wait(ENOSPC)) {
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_FALSE(space_.Wait(ENOSPC)) << "it is gone";
  close(ends[0]);
}

}  // namespace
}  // namespace cli
