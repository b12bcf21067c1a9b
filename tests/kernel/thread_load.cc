// Calls getppid in threads that start and end, and prints the number of calls of each thread, as
// JSON:
//
//   thread_load ROUNDS CALLS
//
// At the start it prints {"pid", "worker"}: `worker` is a thread that lives until the end. Then two
// threads create other threads, most of which end at once while some stay, until there is a line on
// standard input. From then on the main thread, the worker, all threads that have stayed, three new
// threads in each of ROUNDS rounds, and a child process make CALLS calls each. At the end it prints
// {"threads": {"TID": calls, ...}, "child", "childCalls"}.
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

class Load {
 public:
  explicit Load(int calls) : calls_(calls) {}

  void Call() {
    for (int i = 0; i < calls_; ++i) syscall(SYS_getppid);
    const std::lock_guard lock(mutex_);
    calls_of_[static_cast<int>(syscall(SYS_gettid))] += calls_;
  }

  void Print(int child) {
    std::string text;
    for (const auto& [tid, calls] : calls_of_) {
      text += (text.empty() ? "\"" : ", \"") + std::to_string(tid) + "\": " + std::to_string(calls);
    }
    std::printf("{\"threads\": {%s}, \"child\": %d, \"childCalls\": %d}\n", text.c_str(), child,
                calls_);
  }

 private:
  int calls_;
  std::mutex mutex_;
  std::map<int, long> calls_of_;
};

// Creates threads until `go` is set, and waits for them. Most threads end at once. Every 2 ms, a
// thread is created that waits for `go` and then makes the load's system calls: up to 150 threads
// in the 300 ms that a recorder may need to begin.
void CreateThreads(const std::atomic<bool>& go, Load* load) {
  constexpr std::size_t kMaxStaying = 150;
  constexpr auto kPause = std::chrono::milliseconds(2);
  std::vector<std::thread> staying;
  auto next = std::chrono::steady_clock::now();
  while (!go) {
    if (staying.size() < kMaxStaying && std::chrono::steady_clock::now() >= next) {
      next += kPause;
      staying.emplace_back([&go, load] {
        go.wait(false);
        load->Call();
      });
    }
    std::thread([] {}).join();
  }
  for (std::thread& thread : staying) thread.join();
}

int Run(int rounds, int calls) {
  Load load(calls);
  std::atomic<int> worker_tid = 0;
  std::atomic<bool> go = false;
  std::thread worker([&] {
    worker_tid = static_cast<int>(syscall(SYS_gettid));
    worker_tid.notify_one();
    go.wait(false);
    load.Call();
  });
  worker_tid.wait(0);
  std::thread creators[2];
  for (std::thread& creator : creators) creator = std::thread(CreateThreads, std::cref(go), &load);
  std::printf("{\"pid\": %d, \"worker\": %d}\n", getpid(), worker_tid.load());
  std::fflush(stdout);
  char byte;
  if (read(STDIN_FILENO, &byte, 1) != 1) return 1;
  go = true;
  go.notify_all();
  for (std::thread& creator : creators) creator.join();
  load.Call();
  worker.join();
  for (int round = 0; round < rounds; ++round) {
    std::thread threads[3];
    for (std::thread& thread : threads) thread = std::thread([&load] { load.Call(); });
    for (std::thread& thread : threads) thread.join();
  }
  const int child = fork();
  if (child == 0) {
    load.Call();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  load.Print(child);
  return 0;
}

bool Parse(const char* text, int* number) {
  const char* end = text + std::strlen(text);
  return std::from_chars(text, end, *number).ptr == end && *number >= 0;
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 0;
  int calls = 0;
  if (argc != 3 || !Parse(argv[1], &rounds) || !Parse(argv[2], &calls)) {
    std::fputs("usage: thread_load ROUNDS CALLS\n", stderr);
    return 2;
  }
  return Run(rounds, calls);
}
