// Threads write numbered events whose values are all derived from (thread, number); load.py has the
// same rules. Prints as JSON how many writes succeeded.
#include <eventheader/eh.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <latch>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

inline constinit eh::Provider provider("Load");

std::atomic<bool> ends = false;  // Set by a signal.

using ThreadField = eh::Field<"thread", std::uint32_t>;
using NumberField = eh::Field<"number", std::uint32_t>;

constexpr eh::Event<provider, "Numbers", eh::Traits{.keyword = 1}, ThreadField, NumberField,
                    eh::Field<"square", std::uint64_t>, eh::Field<"negative", std::int32_t>>
    numbers;

constexpr eh::Event<provider, "Text", eh::Traits{.level = eh::Level::kVerbose, .keyword = 2},
                    ThreadField, NumberField, eh::Field<"text", std::string_view>,
                    eh::Field<"ratio", double>, eh::Field<"odd", bool>>
    text;

constexpr eh::Event<
    provider, "Active",
    eh::Traits{
        .level = eh::Level::kWarning, .keyword = 4, .opcode = eh::Opcode::kSend, .version = 2},
    ThreadField, NumberField>
    active;

eh::ActivityId MakeActivityId(std::uint32_t thread, std::uint32_t number) {
  constexpr unsigned char kRest[] = {0x80, 0x00, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab};
  eh::ActivityId id;
  for (std::size_t i = 0; i < 4; ++i) {
    id[i] = static_cast<std::byte>(thread >> (24 - 8 * i));
    id[4 + i] = static_cast<std::byte>(number >> (24 - 8 * i));
  }
  std::memcpy(id.data() + 8, kRest, sizeof kRest);
  return id;
}

eh::WriteResult WriteEvent(std::uint32_t thread, std::uint32_t number) {
  const bool odd = number % 2 == 1;
  switch (number % 3) {
    case 0:
      return numbers.Write(thread, number, std::uint64_t{number} * number,
                           -static_cast<std::int32_t>(number));
    case 1: {
      std::string words = "thread " + std::to_string(thread) + ", ";
      words += number % 5 == 0 ? "größe" : "number";
      words += " " + std::to_string(number);
      return text.Write(thread, number, words, number / 8.0, odd);
    }
    default: {
      const eh::ActivityId previous = MakeActivityId(thread, number - 1);
      const eh::Activity activity = {MakeActivityId(thread, number), odd ? &previous : nullptr};
      return active.Write(activity, thread, number);
    }
  }
}

struct Options {
  std::uint32_t events = 100'000;
  std::uint32_t threads = 4;
  std::uint32_t pause = 0;  // µs; after every kBurst events of a thread
  bool calls = false;
  bool processes = false;
  bool pin = false;
  bool wait = false;
};

struct Worker {
  std::string name;
  long tid = 0;
  std::uint32_t to_write = 0;
  std::uint32_t written = 0;
  std::uint32_t not_written = 0;
};

// Returns whether the event was written. With --calls, the event is a system call, which fails but
// is always traced.
bool WriteOne(const Options& options, std::uint32_t thread, std::uint32_t number) {
  constexpr unsigned kNumberBits = 20;
  if (!options.calls) return WriteEvent(thread, number) == eh::WriteResult::kWritten;
  // Other programs do not make this call, so tests can record all of its hits. The argument
  // contains thread and number. Hardly any process has such a pid, so the call fails.
  syscall(SYS_sched_rr_get_interval, (thread + 1) << kNumberBits | number, nullptr);
  return true;
}

// Writes the event from a new process. One in kExecEvery of these processes executes this program
// again.
[[noreturn]] void WriteAsProcess(const Options& options, const Worker& worker, std::uint32_t thread,
                                 std::uint32_t number) {
  constexpr std::uint32_t kExecEvery = 10;
  const std::string name = worker.name + "-" + std::to_string(number);
  if (number % kExecEvery == 0) {
    execl("/proc/self/exe", name.c_str(), options.calls ? "--calls" : "--", "--one",
          std::to_string(thread).c_str(), std::to_string(number).c_str(), nullptr);
    _exit(1);
  }
  pthread_setname_np(pthread_self(), name.c_str());
  _exit(WriteOne(options, thread, number) ? 0 : 1);
}

bool WriteInProcess(const Options& options, const Worker& worker, std::uint32_t thread,
                    std::uint32_t number) {
  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) WriteAsProcess(options, worker, thread, number);
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Binds this thread to a CPU. The threads use all CPUs in turns.
void Pin(std::uint32_t thread) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) std::abort();
  std::uint32_t place = thread % static_cast<std::uint32_t>(CPU_COUNT(&allowed));
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || place-- != 0) continue;
    cpu_set_t chosen;
    CPU_ZERO(&chosen);
    CPU_SET(cpu, &chosen);
    if (sched_setaffinity(0, sizeof chosen, &chosen) != 0) std::abort();
    return;
  }
}

void Run(const Options& options, std::uint32_t thread, Worker* worker, std::latch* ready,
         std::latch* go) {
  constexpr std::uint32_t kBurst = 16;
  pthread_setname_np(pthread_self(), worker->name.c_str());
  worker->tid = gettid();
  if (options.pin) Pin(thread);
  ready->count_down();
  go->wait();
  for (std::uint32_t number = 0; number < worker->to_write && !ends; ++number) {
    const bool written = options.processes ? WriteInProcess(options, *worker, thread, number)
                                           : WriteOne(options, thread, number);
    ++(written ? worker->written : worker->not_written);
    if (options.pause != 0 && number % kBurst == kBurst - 1) usleep(options.pause);
  }
}

void Print(const Options& options, const std::vector<Worker>& workers) {
  const eh::Provider::Counters counters = provider.counters();
  std::printf(
      "{\"pid\":%d,\"calls\":%s,\"processes\":%s,\"status\":%d,\"written\":%llu,\"failed\":%llu,"
      "\"threads\":[",
      getpid(), options.calls ? "true" : "false", options.processes ? "true" : "false",
      provider.status(), static_cast<unsigned long long>(counters.written),
      static_cast<unsigned long long>(counters.failed));
  const char* separator = "";
  for (const Worker& worker : workers) {
    std::printf("%s{\"name\":\"%s\",\"tid\":%ld,\"written\":%u,\"notWritten\":%u}", separator,
                worker.name.c_str(), worker.tid, worker.written, worker.not_written);
    separator = ",";
  }
  std::printf("]}\n");
}

int Usage(std::FILE* to, int exit_code) {
  std::fputs(
      "usage: load_service [--events N] [--threads N] [--pause US] [--calls] [--processes] "
      "[--pin]\n"
      "                    [--wait]\n"
      "Writes N numbered events (100000), the same part in each of 4 threads, as provider Load.\n"
      "After SIGTERM it writes no more, and ends as ever.\n"
      "  --pause      sleep for so many microseconds after every 16 events of a thread\n"
      "  --calls      make system calls in place of events, sched_rr_get_interval(2) of a pid\n"
      "  --processes  write each event in a process of its own, named THREAD-NUMBER\n"
      "  --pin        keep each thread on a CPU, on all CPUs in turns\n"
      "  --wait       stop once the threads are there, by SIGSTOP; write after SIGCONT\n"
      "example: load_service --events 1000\n",
      to);
  return exit_code;
}

std::uint32_t Number(const char* digits) {
  return static_cast<std::uint32_t>(std::strtoul(digits, nullptr, 10));
}

bool Parse(int argc, char** argv, Options* options) {
  const std::pair<std::string_view, bool*> kFlags[] = {{"--calls", &options->calls},
                                                       {"--processes", &options->processes},
                                                       {"--pin", &options->pin},
                                                       {"--wait", &options->wait}};
  const std::pair<std::string_view, std::uint32_t*> kNumbers[] = {{"--events", &options->events},
                                                                  {"--threads", &options->threads},
                                                                  {"--pause", &options->pause}};
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const auto named = [argument](const auto& option) { return option.first == argument; };
    const auto* const flag = std::ranges::find_if(kFlags, named);
    const auto* const number = std::ranges::find_if(kNumbers, named);
    if (flag != std::end(kFlags)) {
      *flag->second = true;
    } else if (number != std::end(kNumbers) && i + 1 < argc) {
      *number->second = Number(argv[++i]);
    } else {
      return false;
    }
  }
  return options->threads != 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  // The program that WriteAsProcess executes.
  if (argc == 5 && std::string_view(argv[2]) == "--one") {
    options.calls = std::string_view(argv[1]) == "--calls";
    pthread_setname_np(pthread_self(), argv[0]);
    return WriteOne(options, Number(argv[3]), Number(argv[4])) ? 0 : 1;
  }
  if (argc == 2 && std::string_view(argv[1]) == "--help") return Usage(stdout, 0);
  if (!Parse(argc, argv, &options)) return Usage(stderr, 2);

  signal(SIGTERM, [](int /*number*/) { ends = true; });
  std::vector<Worker> workers(options.threads);
  std::latch ready(options.threads);
  std::latch go(1);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < options.threads; ++i) {
    workers[i].name = "load-" + std::to_string(i);
    workers[i].to_write = options.events / options.threads;
    threads.emplace_back(Run, std::cref(options), i, &workers[i], &ready, &go);
  }
  ready.wait();
  if (options.wait) raise(SIGSTOP);
  go.count_down();
  for (std::thread& thread : threads) thread.join();
  Print(options, workers);
  return 0;
}
