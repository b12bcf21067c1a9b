#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "nettrace/sink.h"
#include "tests/support/nettrace/writer_to_string.h"

namespace nettrace {
namespace {

using testing::Span;

TEST(FdSink, WritesAndSyncsAFile) {
  const std::string path = ::testing::TempDir() + "/fd_sink_test-" + std::to_string(getpid());
  auto sink = FdSink::Create(path);
  ASSERT_TRUE(sink.ok());
  std::size_t taken = 0;
  ASSERT_TRUE((*sink)->Append(Span("abc"), &taken).ok());
  EXPECT_EQ(taken, 3U);
  ASSERT_TRUE((*sink)->Append(Span("de"), &taken).ok());
  EXPECT_TRUE((*sink)->Sync().ok());
  EXPECT_EQ(std::filesystem::file_size(path), 5U);
  std::filesystem::remove(path);
}

TEST(FdSink, AFileThatCannotBeMadeIsNamed) {
  const absl::Status status = FdSink::Create("/nonexistent/file").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_NE(status.message().find("/nonexistent/file"), absl::string_view::npos);
}

TEST(FdSink, FullDeviceAcceptsNothingAndReportsIt) {
  FdSink sink(open("/dev/full", O_WRONLY | O_CLOEXEC), "/dev/full");
  std::size_t taken = 1;
  const absl::Status status = sink.Append(Span("abc"), &taken);
  EXPECT_EQ(taken, 0U);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

TEST(FdSink, RetriesAFailedWriteWhileItsUserWantsIt) {
  const std::string path = ::testing::TempDir() + "/fd_sink_retry_test-" + std::to_string(getpid());
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  FdSink sink(full, path);
  std::vector<int> errors;
  sink.set_retry([&](int error) {
    errors.push_back(error);
    if (errors.size() != 3) return true;
    // Makes space for further writes.
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    EXPECT_EQ(dup2(file, full), full);
    close(file);
    return true;
  });
  std::size_t taken = 0;
  ASSERT_TRUE(sink.Append(Span("abc"), &taken).ok());
  ASSERT_TRUE(sink.Append(Span("de"), &taken).ok());
  EXPECT_EQ(errors, (std::vector<int>{ENOSPC, ENOSPC, ENOSPC, 0}));
  EXPECT_EQ(std::filesystem::file_size(path), 5U);
  std::filesystem::remove(path);
}

TEST(FdSink, RetriesAFailedWriteFromTheNextByte) {
  const std::string path = ::testing::TempDir() + "/fd_sink_short_test-" + std::to_string(getpid());
  auto sink = FdSink::Create(path);
  ASSERT_TRUE(sink.ok());
  // Limits the file to this size, so that the write before the one that fails is short.
  constexpr rlim_t kLimit = 1000;
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit limited = {kLimit, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limited), 0);
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  std::vector<int> errors;
  (*sink)->set_retry([&](int error) {
    errors.push_back(error);
    return setrlimit(RLIMIT_FSIZE, &before) == 0;
  });
  std::string text;
  while (text.size() < 3 * kLimit) text += std::to_string(text.size()) + ' ';
  std::size_t taken = 0;
  const absl::Status status = (*sink)->Append(Span(text), &taken);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, old_handler);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(taken, text.size());
  EXPECT_EQ(errors, (std::vector<int>{EFBIG, 0}));
  std::ifstream file(path);
  const std::string there((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(there, text);
  std::filesystem::remove(path);
}

TEST(FdSink, FailedWriteWithoutRetryIsAnError) {
  FdSink sink(open("/dev/full", O_WRONLY | O_CLOEXEC), "/dev/full");
  int calls = 0;
  sink.set_retry([&](int) { return ++calls < 3; });
  std::size_t taken = 1;
  const absl::Status status = sink.Append(Span("abc"), &taken);
  EXPECT_EQ(taken, 0U);
  EXPECT_EQ(calls, 3);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

TEST(FdSink, ABrokenPipeIsAnErrorAndNoSignal) {
  for (const bool is_socket : {false, true}) {
    int ends[2];
    ASSERT_EQ(is_socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends), 0);
    close(ends[0]);
    FdSink sink(ends[1], "pipe");
    std::size_t taken = 1;
    EXPECT_FALSE(sink.Append(Span("abc"), &taken).ok());
    EXPECT_EQ(taken, 0U);
    sigset_t pending;
    sigpending(&pending);
    EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
    EXPECT_TRUE(sink.Sync().ok());
  }
}

TEST(FdSink, WaitsForAFullNonBlockingPipe) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
  const std::string sent(1 << 20, 'x');
  std::string received;
  std::thread reader([&] {
    char buffer[4096];
    while (received.size() < sent.size()) {
      const ssize_t size = read(ends[0], buffer, sizeof buffer);
      if (size > 0) received.append(buffer, static_cast<std::size_t>(size));
      if (size < 0) std::this_thread::yield();
    }
  });
  FdSink sink(ends[1], "pipe");
  std::size_t taken = 0;
  EXPECT_TRUE(sink.Append(Span(sent), &taken).ok());
  EXPECT_EQ(taken, sent.size());
  reader.join();
  EXPECT_EQ(received, sent);
  close(ends[0]);
}

TEST(FdSink, FinishesAfterAnInterruptedWrite) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  struct sigaction action = {};
  action.sa_handler = [](int) {};  // and no SA_RESTART
  struct sigaction before;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  const std::string sent(1 << 20, 'x');
  std::size_t taken = 0;
  absl::Status status;
  FdSink sink(ends[1], "pipe");
  std::thread writer([&] { status = sink.Append(Span(sent), &taken); });
  std::size_t received = 0;
  char buffer[4096];
  while (received < sent.size()) {
    pthread_kill(writer.native_handle(), SIGUSR1);
    const ssize_t size = read(ends[0], buffer, sizeof buffer);
    ASSERT_GT(size, 0);
    received += static_cast<std::size_t>(size);
  }
  writer.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(taken, sent.size());
  sigaction(SIGUSR1, &before, nullptr);
  close(ends[0]);
}

TEST(MemorySink, KeepsAll) {
  MemorySink sink;
  std::size_t taken = 0;
  ASSERT_TRUE(sink.Append(Span("ab"), &taken).ok());
  ASSERT_TRUE(sink.Append(Span("c"), &taken).ok());
  EXPECT_EQ(sink.bytes().size(), 3U);
}

}  // namespace
}  // namespace nettrace
