// A service of a test: a forked process that uses the ring transport.
#ifndef TESTS_UNIT_EVENTHEADER_RING_SERVICE_PROCESS_H_
#define TESTS_UNIT_EVENTHEADER_RING_SERVICE_PROCESS_H_

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>

#include "tests/support/eventheader/ring_collector.h"
#include "tests/support/wait_until.h"

namespace tests {

// Memory that the test shares with its services.
struct SharedWords {
  std::atomic<std::uint64_t> words[64];
};
class SharedMemory {
 public:
  SharedMemory()
      : shared_(static_cast<SharedWords*>(mmap(nullptr, sizeof(SharedWords), PROT_READ | PROT_WRITE,
                                               MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() { munmap(shared_, sizeof(SharedWords)); }
  std::atomic<std::uint64_t>& operator[](std::size_t i) const { return shared_->words[i]; }

 private:
  SharedWords* shared_;
};

// Runs `body` in a forked process, which ends with the status that `body` returns. The test's own
// process never registers a tracepoint, so that the service begins without a region.
class ServiceProcess {
 public:
  ServiceProcess(const std::string& socket, const std::function<int()>& body) {
    pid_ = fork();
    if (pid_ != 0) return;
    setenv("EVENTHEADER_SOCKET", socket.c_str(), 1);
    if (getenv("EVENTHEADER_TRANSPORT") == nullptr) setenv("EVENTHEADER_TRANSPORT", "ring", 1);
    _exit(body());
  }
  ServiceProcess(const ServiceProcess&) = delete;
  ServiceProcess& operator=(const ServiceProcess&) = delete;
  ~ServiceProcess() {
    if (pid_ > 0) {
      Kill();
      Wait();
    }
  }

  pid_t pid() const { return pid_; }
  void Kill() const { kill(pid_, SIGKILL); }
  // Returns the exit status, or minus the signal that ended the process. If the process does
  // not end within five minutes, kills it, and fails.
  int Wait() {
    WaitUntil([this] { return HasEnded(); }, std::chrono::seconds(300));
    Kill();
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  bool HasEnded() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid_;
  }

 private:
  pid_t pid_ = -1;
};

}  // namespace tests

#endif  // TESTS_UNIT_EVENTHEADER_RING_SERVICE_PROCESS_H_
