// Many services: each is a process with a separate provider Fleet_N that writes numbered events.
//
//   fleet SERVICES EVENTS
//
// Prints "enabled" once every provider is enabled, starts when it reads a line from stdin, and
// prints a line for each service: its number, its pid, and how many of its EVENTS were written.
#include <eventheader/eh.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr eh::Level kLevel = eh::Level::kInformation;

struct Service {
  pid_t pid = 0;
  int said = -1;  // The end of a pipe from which this process reads what the service sends.
};

template <typename T>
void Send(int pipe, const T& value) {
  if (write(pipe, &value, sizeof value) != sizeof value) _exit(1);
}

template <typename T>
bool Receive(int pipe, T* value) {
  return read(pipe, value, sizeof *value) == sizeof *value;
}

// Sends a byte to the pipe `said` when the provider is enabled. Writes the events when the other
// end of the pipe `go` is closed, and then sends to `said` how many events were written.
[[noreturn]] void Serve(unsigned number, std::uint32_t events, int go, int said) {
  const std::string name = "Fleet_" + std::to_string(number);
  pthread_setname_np(pthread_self(), name.c_str());
  eh::DynamicProvider provider(name);
  const eh::EventSet set(provider, kLevel, 1);
  while (!set.enabled()) usleep(5000);
  Send(said, char{1});
  char end = 0;
  while (read(go, &end, 1) > 0) continue;
  std::uint32_t written = 0;
  eh::DynamicEvent event;
  for (std::uint32_t i = 0; i < events; ++i) {
    event.Reset("Numbered");
    event.AddField("service", number);
    event.AddField("number", i);
    written += event.Write(set) == eh::WriteResult::kWritten;
  }
  Send(said, written);
  _exit(0);
}

std::vector<Service> Start(unsigned count, std::uint32_t events, const int (&go)[2]) {
  std::vector<Service> services(count);
  for (unsigned number = 0; number < count; ++number) {
    int said[2];
    if (pipe(said) != 0) std::abort();
    services[number] = {fork(), said[0]};
    if (services[number].pid < 0) std::abort();
    if (services[number].pid == 0) {
      close(go[1]);
      close(said[0]);
      Serve(number, events, go[0], said[1]);
    }
    close(said[1]);
  }
  return services;
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned long count = argc == 3 ? std::strtoul(argv[1], nullptr, 10) : 0;
  const unsigned long events = argc == 3 ? std::strtoul(argv[2], nullptr, 10) : 0;
  if (count == 0 || events == 0) {
    std::fputs("usage: fleet SERVICES EVENTS\n", stderr);
    return 2;
  }
  int go[2];
  if (pipe(go) != 0) return 1;
  const std::vector<Service> services =
      Start(static_cast<unsigned>(count), static_cast<std::uint32_t>(events), go);
  for (const Service& service : services) {
    char enabled = 0;
    if (!Receive(service.said, &enabled)) return 1;
  }
  std::puts("enabled");
  std::fflush(stdout);
  if (std::getchar() == EOF) return 1;
  close(go[1]);
  for (std::size_t number = 0; number < services.size(); ++number) {
    std::uint32_t written = 0;
    if (!Receive(services[number].said, &written)) return 1;
    waitpid(services[number].pid, nullptr, 0);
    std::printf("%zu %d %u\n", number, services[number].pid, written);
  }
  return 0;
}
