// A process that attacks recorders by the kernel's own interface: it writes events that no library
// would write. Prints as JSON how many of its events the kernel accepted.
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "eventheader/wire.h"
#include "libeventheader/base/user_events.h"

namespace {

namespace user_events = eh::internal::user_events;
using Clock = std::chrono::steady_clock;

std::atomic<std::uint64_t> written{0};
std::atomic<std::uint64_t> failed{0};

void Die(const std::string& what, int error) {
  std::fprintf(stderr, "attacker: %s: %s\n", what.c_str(), std::strerror(error));
  std::exit(1);
}

// A tracepoint that is registered during the lifetime of the object.
class Tracepoint {
 public:
  // `command`: the name and its fields, in the kernel's form.
  Tracepoint(int data, const std::string& command) : data_(data) {
    if (const int error = TryRegister(command)) Die("registering " + command, error);
  }
  explicit Tracepoint(int data) : data_(data) {}
  ~Tracepoint() {
    if (registered_) user_events::Unregister(data_, word_.get(), 0);
  }
  Tracepoint(Tracepoint&&) = default;

  int TryRegister(const std::string& command) {
    const int error =
        user_events::Register(data_, command.c_str(), word_.get(), 0, 0, &write_index_);
    registered_ = error == 0;
    return error;
  }
  bool enabled() const { return *static_cast<volatile std::uint64_t*>(word_.get()) != 0; }
  void AwaitEnabled() const {
    const auto end = Clock::now() + std::chrono::seconds(60);
    while (!enabled()) {
      if (Clock::now() > end) Die("nobody records", ETIMEDOUT);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  void Write(std::string_view payload) const {
    std::string event(reinterpret_cast<const char*>(&write_index_), sizeof write_index_);
    event += payload;
    const bool taken = write(data_, event.data(), event.size()) > 0;
    ++(taken ? written : failed);
  }

 private:
  int data_;
  bool registered_ = false;
  std::uint32_t write_index_ = 0;
  std::unique_ptr<std::uint64_t> word_ = std::make_unique<std::uint64_t>(0);
};

std::string EventHeaderCommand(const std::string& name) {
  char command[user_events::kMaxCommand];
  if (!user_events::FormatCommand(name, command)) Die(name, ENAMETOOLONG);
  return command;
}

template <typename T>
void Append(const T& value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Returns an EventHeader event named `name` with one field, a number. `activity`: "" or 16 or 32
// bytes.
std::string Event(const std::string& name, std::uint32_t number, std::string_view activity = "") {
  std::string event;
  Append(eh::wire::Header{eh::kFlagPointer64 | eh::kFlagLittleEndian | eh::kFlagExtension, 0, 0, 0,
                          0, 1},
         &event);
  if (!activity.empty()) {
    Append(eh::wire::ExtensionHeader{static_cast<std::uint16_t>(activity.size()),
                                     eh::kExtensionActivityId | eh::kExtensionChain},
           &event);
    event += activity;
  }
  std::string metadata = name;
  metadata += '\0';
  metadata += "number";
  metadata += '\0';
  metadata += static_cast<char>(eh::Encoding::kValue32);
  Append(eh::wire::ExtensionHeader{static_cast<std::uint16_t>(metadata.size()),
                                   eh::kExtensionMetadata},
         &event);
  event += metadata;
  Append(number, &event);
  return event;
}

int OpenData() {
  const int data = user_events::OpenData();
  if (data < 0) Die("user_events_data", -data);
  return data;
}

Clock::time_point After(const char* seconds) {
  return Clock::now() + std::chrono::milliseconds(std::lround(std::atof(seconds) * 1000));
}

std::vector<Tracepoint> RegisterAll(int data, char** names) {
  std::vector<Tracepoint> tracepoints;
  for (; *names != nullptr; ++names) tracepoints.emplace_back(data, EventHeaderCommand(*names));
  for (const Tracepoint& tracepoint : tracepoints) tracepoint.AwaitEnabled();
  // The kernel sets the enable bit a moment before it records the events of all CPUs.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return tracepoints;
}

// hold COMMAND...: registers the tracepoints until standard input ends.
int Hold(char** arguments) {
  const int data = OpenData();
  std::vector<Tracepoint> tracepoints;
  for (; *arguments != nullptr; ++arguments) tracepoints.emplace_back(data, *arguments);
  std::puts("ready");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}

// kinds COUNT SECONDS NAME...: writes one event each of COUNT kinds to each tracepoint, then other
// kinds until the time is over.
int Kinds(char** arguments) {
  const std::uint32_t count = static_cast<std::uint32_t>(std::atol(arguments[0]));
  const int data = OpenData();
  const std::vector<Tracepoint> tracepoints = RegisterAll(data, arguments + 2);
  const auto end = After(arguments[1]);
  std::uint32_t kind = 0;
  do {
    for (const Tracepoint& tracepoint : tracepoints) {
      for (std::uint32_t i = 0; i < count; ++i) {
        tracepoint.Write(Event("Junk" + std::to_string(kind + i), kind + i));
      }
    }
    kind += count;
  } while (Clock::now() < end);
  return 0;
}

// activities SECONDS NAME: writes events, each in a new activity.
int Activities(char** arguments) {
  const int data = OpenData();
  const std::vector<Tracepoint> tracepoints = RegisterAll(data, arguments + 1);
  const auto end = After(arguments[0]);
  for (std::uint64_t number = 1; Clock::now() < end; ++number) {
    std::string activity;
    for (const std::uint64_t part : {number, ~number, number << 20, number})
      Append(part, &activity);
    tracepoints.front().Write(Event("Active", static_cast<std::uint32_t>(number), activity));
  }
  return 0;
}

// threads COUNT NAME: starts COUNT threads with different names, each of which writes an event and
// ends.
int Threads(char** arguments) {
  const int count = std::atoi(arguments[0]);
  const int data = OpenData();
  const std::vector<Tracepoint> tracepoints = RegisterAll(data, arguments + 1);
  constexpr int kAtOnce = 4;
  for (int first = 0; first < count; first += kAtOnce) {
    std::vector<std::thread> threads;
    threads.reserve(kAtOnce);
    for (int number = first; number < std::min(first + kAtOnce, count); ++number) {
      threads.emplace_back([number, &tracepoints] {
        pthread_setname_np(pthread_self(), ("thread" + std::to_string(number)).c_str());
        tracepoints.front().Write(Event("Thread", static_cast<std::uint32_t>(number)));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  return 0;
}

// renames THREADS SECONDS NAME: THREADS threads repeatedly change their names, and write an event
// after every 16th change.
int Renames(char** arguments) {
  const int count = std::atoi(arguments[0]);
  const int data = OpenData();
  const std::vector<Tracepoint> tracepoints = RegisterAll(data, arguments + 2);
  const auto end = After(arguments[1]);
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  for (int thread = 0; thread < count; ++thread) {
    threads.emplace_back([thread, end, &tracepoints] {
      for (std::uint32_t number = 0; Clock::now() < end; ++number) {
        const std::string name = std::to_string(thread) + "." + std::to_string(number);
        pthread_setname_np(pthread_self(), name.c_str());
        if (number % 16 == 0) tracepoints.front().Write(Event("Renamed", number));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

// churn SECONDS NAME: registers, writes to and unregisters the tracepoint as fast as possible, in
// turns with one field and with other fields.
int Churn(char** arguments) {
  const std::string name = arguments[1];
  const auto end = After(arguments[0]);
  for (std::uint32_t number = 0; Clock::now() < end; ++number) {
    const int data = OpenData();
    {
      Tracepoint tracepoint(data);
      const std::string command =
          number % 2 == 0 ? EventHeaderCommand(name) : name + " u32 other; u32 fields";
      // TryRegister fails if the tracepoint is being recorded and has the other fields.
      if (tracepoint.TryRegister(command) == 0) {
        if (number % 2 == 0) {
          tracepoint.Write(Event("Churned", number));
        } else {
          tracepoint.Write("12345678");
        }
      }
    }
    close(data);
  }
  return 0;
}

int Usage() {
  std::fputs(
      "usage: attacker hold COMMAND...\n"
      "       attacker kinds COUNT SECONDS NAME...\n"
      "       attacker activities SECONDS NAME\n"
      "       attacker threads COUNT NAME\n"
      "       attacker renames THREADS SECONDS NAME\n"
      "       attacker churn SECONDS NAME\n",
      stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr struct {
    std::string_view name;
    int min_arguments;
    int (*run)(char**);
  } kAttacks[] = {{"hold", 1, Hold},       {"kinds", 3, Kinds},     {"activities", 2, Activities},
                  {"threads", 2, Threads}, {"renames", 3, Renames}, {"churn", 2, Churn}};
  for (const auto& attack : kAttacks) {
    if (argc < 2 + attack.min_arguments || attack.name != argv[1]) continue;
    const int status = attack.run(argv + 2);
    std::printf("{\"written\":%llu,\"failed\":%llu}\n",
                static_cast<unsigned long long>(written.load()),
                static_cast<unsigned long long>(failed.load()));
    return status;
  }
  return Usage();
}
