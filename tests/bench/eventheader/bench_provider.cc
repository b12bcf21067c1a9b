// What an event costs, beside a bare write() of the same bytes in the same run. In the VM with its
// instructions counted a nanosecond is an instruction, user and kernel together.
#include <eventheader/eventheader.h>
#include <eventheader/user_events.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace eh = eventheader;

namespace {

constexpr int kRounds = 2000;
constexpr char kTracepoint[] = "Bench_Provider_L4K1";
constexpr char kEnable[] = "events/user_events/Bench_Provider_L4K1/enable";

inline constinit eh::Provider provider("Bench_Provider");
constexpr eh::Traits kTraits{.keyword = 1};

template <eh::FixedString kName>
using Int = eh::Field<kName, std::int32_t>;
template <eh::FixedString kName>
using Text = eh::Field<kName, std::string_view>;

constexpr eh::Event<provider, "Bench0", kTraits> event0;
constexpr eh::Event<provider, "Bench3", kTraits, Int<"a">, Int<"b">, Text<"c">> event3;
constexpr eh::Event<provider, "Bench8", kTraits, Int<"number">, Int<"status">, Int<"port">,
                    Int<"bytes">, Int<"count">, Text<"path">, Text<"host">, Text<"agent">>
    event8;
constexpr eh::Event<provider, "Bench20", kTraits, Int<"f0">, Int<"f1">, Int<"f2">, Int<"f3">,
                    Int<"f4">, Int<"f5">, Int<"f6">, Int<"f7">, Int<"f8">, Int<"f9">, Int<"f10">,
                    Int<"f11">, Int<"f12">, Int<"f13">, Int<"f14">, Text<"s0">, Text<"s1">,
                    Text<"s2">, Text<"s3">, Text<"s4">>
    event20;
// Of the same provider, and listened to by nobody.
constexpr eh::Event<provider, "Verbose", eh::Traits{.level = eh::Level::kVerbose}, Int<"a">>
    unheard;

std::int64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// The median of several runs: a timer's interrupt falls into some.
template <typename Body>
double PerCall(const Body& body) {
  constexpr int kRuns = 9;
  std::vector<double> runs;
  for (int run = 0; run < kRuns; ++run) {
    const std::int64_t begin = Now();
    for (int i = 0; i < kRounds; ++i) {
      body(i);
      asm volatile("" ::: "memory");
    }
    runs.push_back(static_cast<double>(Now() - begin) / kRounds);
  }
  std::nth_element(runs.begin(), runs.begin() + kRuns / 2, runs.end());
  return runs[kRuns / 2];
}

void Report(bool json, std::string_view name, double value, double floor) {
  const char* format =
      json ? "{\"bench\":\"provider\",\"case\":\"%.*s\",\"unit\":\"instructions/event\","
             "\"value\":%.1f,\"floor\":%.1f,\"ratio\":%.3f}\n"
           : "%-40.*s %10.1f %10.1f %8.3f\n";
  std::printf(format, static_cast<int>(name.size()), name.data(), value, floor,
              floor > 0 ? value / floor : 0);
}

// Takes the place of user_events for one event, to see how many bytes it has.
class Measure final : public eh::Transport {
 public:
  int Register(const char*, std::uint64_t* word, unsigned bit, std::uint64_t*) noexcept override {
    *word |= std::uint64_t{1} << bit;
    return 0;
  }
  void Unregister(std::uint64_t* word, unsigned bit) noexcept override {
    *word &= ~(std::uint64_t{1} << bit);
  }
  bool IsCurrent(std::uint64_t) noexcept override { return true; }
  int Write(std::uint64_t, std::span<std::byte> record) noexcept override {
    bytes.assign(record.begin(), record.end());
    return 0;
  }
  std::vector<std::byte> bytes;
};

struct Case {
  const char* name;
  eh::WriteResult (*write)(int);
  std::vector<std::byte> bytes = {};
};

const eh::ActivityId kActivity = {std::byte{1}};

Case cases[] = {
    {"enabled, 0 fields", [](int) { return event0.Write(); }},
    {"enabled, 3 fields", [](int i) { return event3.Write(i, 2, "some text"); }},
    {"enabled, 8 fields, 3 strings",
     [](int i) {
       return event8.Write(i, 200, 80, 4096, 3, "/index.html", "example.org", "curl/7");
     }},
    {"enabled, 8 fields, 3 strings, activity",
     [](int i) {
       return event8.Write(eh::Activity{kActivity}, i, 200, 80, 4096, 3, "/index.html",
                           "example.org", "curl/7");
     }},
    {"enabled, 20 fields, 5 strings",
     [](int i) {
       return event20.Write(i, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, "one", "two", "three",
                            "four", "five");
     }},
};

bool Listen(bool on) {
  char path[4096];
  if (eh::user_events::FindTracefsFile(kEnable, path) != 0) return false;
  std::ofstream file(path);
  file << (on ? "1" : "0") << std::flush;
  return static_cast<bool>(file);
}

// A descriptor and index of the bench's own for the tracepoint; -1 if it cannot be had.
int RegisterForFloor(std::uint32_t* index) {
  alignas(8) static std::uint64_t word = 0;
  const int fd = eh::user_events::OpenData();
  char command[eh::user_events::kMaxCommand];
  if (fd < 0 || !eh::user_events::FormatCommand(kTracepoint, command) ||
      eh::user_events::Register(fd, command, &word, 0, 0, index) != 0) {
    return -1;
  }
  return fd;
}

constexpr char kUsage[] =
    "usage: bench_provider [--json]\n"
    "Measures events and bare writes of the same bytes; needs user_events and root.\n"
    "example: ./run vm --icount -- build/tests/bench/eventheader/bench_provider\n"
    "exit status: 0 done, 1 something failed, 2 wrong usage, 77 no user_events here\n";

}  // namespace

int main(int argc, char** argv) {
  const bool json = argc == 2 && std::strcmp(argv[1], "--json") == 0;
  if (argc > 1 && !json) {
    const bool help = std::strcmp(argv[1], "--help") == 0;
    std::fputs(kUsage, help ? stdout : stderr);
    return help ? 0 : 2;
  }
  std::uint32_t index = 0;
  const int fd = RegisterForFloor(&index);
  if (fd < 0 || provider.status() != 0) {
    std::fprintf(stderr, "bench_provider: %s\n",
                 eh::RegistrationErrorText(provider.status() != 0 ? provider.status() : ENOENT));
    return 77;
  }

  Measure measure;
  provider.SetTransport(&measure);
  for (Case& one : cases) {
    one.write(0);
    one.bytes = measure.bytes;
  }
  provider.SetTransport(nullptr);

  if (!json)
    std::printf("%-40s %10s %10s %8s\n", "instructions per event", "value", "floor", "ratio");
  const double loop = PerCall([](int) {});
  Report(json, "disabled", PerCall([](int i) { event3.Write(i, 2, "some text"); }), loop);
  if (!Listen(true)) {
    std::fputs("bench_provider: cannot enable the tracepoint in tracefs\n", stderr);
    return 1;
  }
  Report(json, "disabled, another set enabled", PerCall([](int i) { unheard.Write(i); }), loop);
  bool failed = false;
  for (Case& one : cases) {
    std::memcpy(one.bytes.data(), &index, sizeof index);
    const double floor =
        PerCall([&](int) { failed |= write(fd, one.bytes.data(), one.bytes.size()) < 0; });
    const double value =
        PerCall([&](int i) { failed |= one.write(i) != eh::WriteResult::kWritten; });
    Report(json, one.name, value, floor);
  }
  Listen(false);
  if (failed) std::fputs("bench_provider: writes failed\n", stderr);
  return failed ? 1 : 0;
}
