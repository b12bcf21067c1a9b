// A small service that writes events of three kinds. Record them with
//   nettrace record -o trace.nettrace -e ExampleService_L4K1 -e ExampleService_L4K2
//       -e ExampleService_L2K2 -- example-service --events 20 --threads 2
#include <eventheader/eh.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::uint64_t kRequests = 0x1;
constexpr std::uint64_t kStorage = 0x2;

inline constinit eh::Provider provider("ExampleService");

constexpr eh::Event<provider, "RequestDone", eh::Traits{.keyword = kRequests},
                    eh::Field<"path", std::string_view>, eh::Field<"status", std::int32_t>,
                    eh::Field<"seconds", double>>
    request_done;

constexpr eh::Event<provider, "BytesRead", eh::Traits{.keyword = kStorage},
                    eh::Field<"file", std::string_view>, eh::Field<"bytes", std::uint64_t>,
                    eh::Field<"cached", bool>>
    bytes_read;

constexpr eh::Event<provider, "ReadFailed",
                    eh::Traits{.level = eh::Level::kError, .keyword = kStorage},
                    eh::Field<"file", std::string_view>, eh::Field<"error", eh::Errno>>
    read_failed;

void Serve(int thread, int events) {
  const std::string name = "worker-" + std::to_string(thread);
  pthread_setname_np(pthread_self(), name.c_str());
  for (int i = 0; i < events; ++i) {
    eh::ActivityId request = {};
    std::memcpy(request.data(), &thread, sizeof thread);
    std::memcpy(request.data() + 8, &i, sizeof i);
    const std::string file = "/var/data/" + std::to_string(i);
    switch (i % 3) {
      case 0:
        request_done.Write(eh::Activity{request}, "/items/" + std::to_string(i), 200, 0.001 * i);
        break;
      case 1:
        bytes_read.Write(file, 4096u * static_cast<unsigned>(i), i % 2 == 0);
        break;
      default:
        read_failed.Write(file, ENOENT);
        break;
    }
  }
}

int Usage(std::FILE* to, int exit_code) {
  std::fputs(
      "usage: example-service [--events N] [--threads N]\n"
      "Writes N events (100) in each of N threads (1) as provider ExampleService.\n"
      "example: example-service --events 1000 --threads 4\n",
      to);
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  int events = 100;
  int threads = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) return Usage(stdout, 0);
    int* number = std::strcmp(argv[i], "--events") == 0    ? &events
                  : std::strcmp(argv[i], "--threads") == 0 ? &threads
                                                           : nullptr;
    if (number == nullptr || i + 1 == argc) return Usage(stderr, 2);
    *number = std::atoi(argv[++i]);
    if (*number < 1) return Usage(stderr, 2);
  }
  std::vector<std::thread> workers;
  workers.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) workers.emplace_back(Serve, i, events);
  for (std::thread& worker : workers) worker.join();

  const eh::Provider::Counters counters = provider.counters();
  std::printf("%llu events written, %llu failed", static_cast<unsigned long long>(counters.written),
              static_cast<unsigned long long>(counters.failed));
  if (provider.status() != 0) {
    std::printf("; not registered: %s", std::strerror(provider.status()));
  }
  std::printf("\n");
  return 0;
}
