// Tests descriptors that another thread closes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tools/collector/perf/descriptor_closer.h"

namespace collector {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> fds = {-1, -1};
    if (pipe(fds.data()) != 0) ADD_FAILURE() << "pipe";
    read = base::UniqueFd(fds[0]);
    write = base::UniqueFd(fds[1]);
  }
  // Waits until all descriptors of the write end of the pipe are closed.
  bool HasEnded() const {
    char byte = 0;
    return ::read(read.get(), &byte, 1) == 0;
  }
  base::UniqueFd read;
  base::UniqueFd write;
};

TEST(DescriptorCloser, ClosesAllDescriptors) {
  const std::unique_ptr<DescriptorCloser> closer = DescriptorCloser::Start().value();
  EXPECT_NE(closer->thread_id(), gettid());
  std::vector<Pipe> pipes(100);
  for (std::size_t i = 0; i < pipes.size(); i += 2) {
    std::vector<base::UniqueFd> both;
    both.push_back(std::move(pipes[i].write));
    both.push_back(std::move(pipes[i + 1].write));
    closer->Close(std::move(both));
  }
  for (const Pipe& pipe : pipes) EXPECT_TRUE(pipe.HasEnded());
}

TEST(DescriptorCloser, ItsEndWaitsUntilAllAreClosed) {
  std::vector<Pipe> pipes(100);
  std::vector<int> numbers;
  {
    const std::unique_ptr<DescriptorCloser> closer = DescriptorCloser::Start().value();
    std::vector<base::UniqueFd> fds;
    for (Pipe& pipe : pipes) {
      numbers.push_back(pipe.write.get());
      fds.push_back(std::move(pipe.write));
    }
    closer->Close(std::move(fds));
    closer->Close({});
  }
  for (const int number : numbers) EXPECT_EQ(fcntl(number, F_GETFD), -1) << number;
}

TEST(DescriptorCloser, NothingToClose) { EXPECT_TRUE(DescriptorCloser::Start().ok()); }

// A child runs as a user who may start no further process or thread.
TEST(DescriptorCloser, ReportsThatNoThreadCanBeStarted) {
  const auto start = [] {
    const rlimit none = {0, 0};
    if (setrlimit(RLIMIT_NPROC, &none) != 0) _exit(10);
    // The limit does not apply to root.
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) _exit(11);
    _exit(absl::IsResourceExhausted(DescriptorCloser::Start().status()) ? 0 : 1);
  };
  EXPECT_EXIT(start(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace collector
