// Threads write numbered events whose every value follows from (thread, number); load.py has the
// same rules. Prints how many writes succeeded, as JSON.
#include <eventheader/eh.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr unsigned kThreads = 4;

inline constinit eh::Provider provider("Load");

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

eh::WriteResult WriteOne(std::uint32_t thread, std::uint32_t number) {
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

struct Worker {
  std::string name;
  long tid = 0;
  std::uint32_t to_write = 0;
  std::uint32_t written = 0;
  std::uint32_t not_written = 0;
};

void Run(std::uint32_t thread, Worker* worker, std::latch* ready, std::latch* go) {
  pthread_setname_np(pthread_self(), worker->name.c_str());
  worker->tid = gettid();
  ready->count_down();
  go->wait();
  for (std::uint32_t number = 0; number < worker->to_write; ++number) {
    if (WriteOne(thread, number) == eh::WriteResult::kWritten) {
      ++worker->written;
    } else {
      ++worker->not_written;
    }
  }
}

void Print(const std::vector<Worker>& workers) {
  const eh::Provider::Counters counters = provider.counters();
  std::printf("{\"pid\":%d,\"status\":%d,\"written\":%llu,\"failed\":%llu,\"threads\":[", getpid(),
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
      "usage: load_service [--events N] [--wait]\n"
      "Writes N numbered events (100000), N/4 in each of 4 threads, as provider Load.\n"
      "  --wait  stop once the threads are there, by SIGSTOP; write after SIGCONT\n"
      "example: load_service --events 1000\n",
      to);
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  unsigned long events = 100'000;
  bool wait = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help") return Usage(stdout, 0);
    if (argument == "--wait") {
      wait = true;
    } else if (argument == "--events" && i + 1 < argc) {
      events = std::strtoul(argv[++i], nullptr, 10);
    } else {
      return Usage(stderr, 2);
    }
  }

  std::vector<Worker> workers(kThreads);
  std::latch ready(kThreads);
  std::latch go(1);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    workers[i].name = "load-" + std::to_string(i);
    workers[i].to_write = static_cast<std::uint32_t>(events / kThreads);
    threads.emplace_back(Run, i, &workers[i], &ready, &go);
  }
  ready.wait();
  if (wait) raise(SIGSTOP);
  go.count_down();
  for (std::thread& thread : threads) thread.join();
  Print(workers);
  return 0;
}
