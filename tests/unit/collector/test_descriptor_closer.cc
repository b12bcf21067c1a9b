// Descriptors that are closed by another thread.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "tools/collector/perf/descriptor_closer.h"

namespace collector {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> fds = {-1, -1};
    if (pipe(fds.data()) != 0) ADD_FAILURE() << "pipe";
    read = UniqueFd(fds[0]);
    write = UniqueFd(fds[1]);
  }
  // Waits until all that can write to it are closed.
  bool HasEnded() const {
    char byte = 0;
    return ::read(read.get(), &byte, 1) == 0;
  }
  UniqueFd read;
  UniqueFd write;
};

TEST(DescriptorCloser, ClosesAllThatItIsGiven) {
  DescriptorCloser closer;
  EXPECT_NE(closer.thread_id(), gettid());
  std::vector<Pipe> pipes(100);
  for (std::size_t i = 0; i < pipes.size(); i += 2) {
    std::vector<UniqueFd> both;
    both.push_back(std::move(pipes[i].write));
    both.push_back(std::move(pipes[i + 1].write));
    closer.Close(std::move(both));
  }
  for (const Pipe& pipe : pipes) EXPECT_TRUE(pipe.HasEnded());
}

TEST(DescriptorCloser, ItsEndWaitsUntilAllAreClosed) {
  std::vector<Pipe> pipes(100);
  std::vector<int> numbers;
  {
    DescriptorCloser closer;
    std::vector<UniqueFd> fds;
    for (Pipe& pipe : pipes) {
      numbers.push_back(pipe.write.get());
      fds.push_back(std::move(pipe.write));
    }
    closer.Close(std::move(fds));
    closer.Close({});
  }
  for (const int number : numbers) EXPECT_EQ(fcntl(number, F_GETFD), -1) << number;
}

TEST(DescriptorCloser, NothingToClose) { const DescriptorCloser closer; }

}  // namespace
}  // namespace collector
