// Measures the cost of an event. Time is in guest instructions, compared with a bare write() of the
// same bytes from the same buffer. Size is in bytes, compared with a plain call with the same
// arguments. In the VM that counts instructions, one nanosecond is one instruction, in user and
// kernel mode together.
#include <eventheader/dynamic_event.h>
#include <eventheader/eh.h>
#include <eventheader/eventheader_c.h>
#include <eventheader/macros.h>
#include <eventheader/testing/transport.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "disabled_calls.h"
#include "disassembly.h"
#include "libeventheader/base/user_events.h"
#include "macros_c_calls.h"
#include "object_size.h"

// The values of the events. External linkage hides them from the compiler.
struct Input {
  std::int32_t numbers[15] = {1, 200, 80, 4096, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
  std::string path = "/index.html", host = "example.org", agent = "curl/7";
  std::string texts[5] = {"one", "two", "three", "four", "five"};
  eh::ActivityId activity = {std::byte{1}};
} input;

namespace {

constexpr int kRounds = 2000;
// Maximum cost of an event of 8 fields, 3 of them strings, relative to a bare write.
constexpr double kMostOfWrite = 1.15;
constexpr char kEightFields[] = "enabled, 8 fields, 3 strings";

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
template <template <auto&, eh::FixedString, eh::Traits, typename...> typename Template>
using Eight = Template<provider, "Bench8", kTraits, Int<"number">, Int<"status">, Int<"port">,
                       Int<"bytes">, Int<"count">, Text<"path">, Text<"host">, Text<"agent">>;
constexpr Eight<eh::Event> event8;
constexpr eh::Event<provider, "Bench20", kTraits, Int<"f0">, Int<"f1">, Int<"f2">, Int<"f3">,
                    Int<"f4">, Int<"f5">, Int<"f6">, Int<"f7">, Int<"f8">, Int<"f9">, Int<"f10">,
                    Int<"f11">, Int<"f12">, Int<"f13">, Int<"f14">, Text<"s0">, Text<"s1">,
                    Text<"s2">, Text<"s3">, Text<"s4">>
    event20;
// An event of the same provider whose tracepoint is never enabled.
constexpr eh::Event<provider, "Verbose", eh::Traits{.level = eh::Level::kVerbose}, Int<"a">>
    never_enabled;

// Described8::kHeadSize is the size of the constant bytes at the start of event8, in bytes.
template <auto&, eh::FixedString kName, eh::Traits kEventTraits, typename... Fields>
using DescribedAs = eh::internal::Described<kName, kEventTraits, Fields...>;
using Described8 = Eight<DescribedAs>;

// Each function writes its event, with or without an Activity before the values of the fields.
template <typename... Activity>
bool Write0(const Activity&... activity) {
  return event0.Write(activity...) == eh::WriteResult::kWritten;
}
template <typename... Activity>
bool Write3(const Activity&... activity) {
  return event3.Write(activity..., input.numbers[0], input.numbers[1], input.path) ==
         eh::WriteResult::kWritten;
}
template <typename... Activity>
bool Write8(const Activity&... activity) {
  const auto& n = input.numbers;
  return event8.Write(activity..., n[0], n[1], n[2], n[3], n[4], input.path, input.host,
                      input.agent) == eh::WriteResult::kWritten;
}
template <typename... Activity>
bool Write20(const Activity&... activity) {
  const auto& n = input.numbers;
  const auto& s = input.texts;
  return event20.Write(activity..., n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9],
                       n[10], n[11], n[12], n[13], n[14], s[0], s[1], s[2], s[3],
                       s[4]) == eh::WriteResult::kWritten;
}

// Write by the macros of C++17 and of C, with the same eight fields. The macros return no result,
// so these functions always return true.
bool Write8ByMacro() {
  const auto& n = input.numbers;
  EVENTHEADER_EVENT(provider, "Bench8", 4, 1, EVENTHEADER_FIELD("number", n[0]),
                    EVENTHEADER_FIELD("status", n[1]), EVENTHEADER_FIELD("port", n[2]),
                    EVENTHEADER_FIELD("bytes", n[3]), EVENTHEADER_FIELD("count", n[4]),
                    EVENTHEADER_FIELD("path", input.path), EVENTHEADER_FIELD("host", input.host),
                    EVENTHEADER_FIELD("agent", input.agent));
  return true;
}
bool Write8InC() {
  WriteByMacroOfC(input.numbers, input.path.c_str(), input.host.c_str(), input.agent.c_str());
  return true;
}

// The dynamic builder, with the same eight fields.
class Dynamic {
 public:
  Dynamic() : set_(provider, eh::Level::kInformation, 1) {}
  const eh::EventSet& set() const { return set_; }

  void Build() {
    event_.Reset("Bench8");
    event_.AddField("number", input.numbers[0]);
    event_.AddField("status", input.numbers[1]);
    event_.AddField("port", input.numbers[2]);
    event_.AddField("bytes", input.numbers[3]);
    event_.AddField("count", input.numbers[4]);
    event_.AddField("path", input.path);
    event_.AddField("host", input.host);
    event_.AddField("agent", input.agent);
  }
  bool Write(const eh::Activity* activity = nullptr) {
    return event_.Write(set_, activity) == eh::WriteResult::kWritten;
  }

 private:
  eh::EventSet set_;
  eh::DynamicEvent event_;
};

// The C API, with the same eight fields and a separate provider for the same tracepoint.
class CApi {
 public:
  CApi()
      : provider_(eh_provider_create("Bench_Provider", "")),
        set_(eh_event_set_create(provider_, static_cast<std::uint8_t>(eh::Level::kInformation), 1)),
        builder_(eh_builder_create()) {}
  CApi(const CApi&) = delete;
  CApi& operator=(const CApi&) = delete;
  ~CApi() {
    eh_builder_destroy(builder_);
    eh_event_set_destroy(set_);
    eh_provider_destroy(provider_);
  }

  const eh_event_set* set() const { return set_; }

  // Uses metadata that was prepared before, as in a C program or a binding for another language.
  bool WritePrepared(const eh_activity* activity = nullptr) {
    char data[256];
    char* out = data;
    std::memcpy(out, input.numbers, 5 * sizeof(std::int32_t));
    out += 5 * sizeof(std::int32_t);
    for (const std::string* text : {&input.path, &input.host, &input.agent}) {
      const auto size = static_cast<std::uint16_t>(text->size());
      std::memcpy(out, &size, sizeof(size));
      out += sizeof(size);
      std::memcpy(out, text->data(), size);
      out += size;
    }
    return eh_write(set_, &kPrepared, activity, data, static_cast<std::size_t>(out - data)) == 0;
  }

  bool BuildAndWrite() {
    eh_builder_reset(builder_, "Bench8");
    eh_builder_add_int32(builder_, "number", input.numbers[0]);
    eh_builder_add_int32(builder_, "status", input.numbers[1]);
    eh_builder_add_int32(builder_, "port", input.numbers[2]);
    eh_builder_add_int32(builder_, "bytes", input.numbers[3]);
    eh_builder_add_int32(builder_, "count", input.numbers[4]);
    eh_builder_add_string(builder_, "path", input.path.c_str());
    eh_builder_add_string(builder_, "host", input.host.c_str());
    eh_builder_add_string(builder_, "agent", input.agent.c_str());
    return eh_builder_write(builder_, set_, nullptr) == 0;
  }

 private:
  static constexpr char kMetadata[] =
      "Bench8\0number\0\x84\2status\0\x84\2port\0\x84\2bytes\0\x84\2count\0\x84\2path\0\nhost\0\n"
      "agent\0\n";
  static_assert(std::string_view(kMetadata, sizeof(kMetadata) - 1) ==
                    std::string_view(Described8::kEvent.metadata, Described8::kMetadata),
                "the bytes are those of the static event");
  static constexpr eh_event kPrepared{.id = 0,
                                      .version = 0,
                                      .opcode = 0,
                                      .tag = 0,
                                      .metadata_size = sizeof(kMetadata) - 1,
                                      .metadata = kMetadata};

  eh_provider* provider_;
  eh_event_set* set_;
  eh_builder* builder_;
};

std::int64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// Returns the median of several runs, because timer interrupts disturb some of them.
template <typename Body>
double PerCall(const Body& body) {
  constexpr int kRuns = 9;
  std::vector<double> runs;
  for (int run = 0; run < kRuns; ++run) {
    const std::int64_t begin = Now();
    for (int i = 0; i < kRounds; ++i) {
      body();
      asm volatile("" ::: "memory");
    }
    runs.push_back(static_cast<double>(Now() - begin) / kRounds);
  }
  std::nth_element(runs.begin(), runs.begin() + kRuns / 2, runs.end());
  return runs[kRuns / 2];
}

class Report {
 public:
  explicit Report(bool json) : json_(json) {}

  void Add(std::string_view name, std::string_view unit, double value, double floor) {
    if (!json_ && unit != unit_)
      std::printf("%-44s %10s %10s %8s\n", std::string(unit).c_str(), "value", "floor", "ratio");
    unit_ = unit;
    const double ratio = floor > 0 ? value / floor : 0;
    if (json_) {
      std::printf(
          "{\"bench\":\"provider\",\"case\":\"%s\",\"unit\":\"%s\",\"value\":%.1f,"
          "\"floor\":%.1f,\"ratio\":%.3f}\n",
          std::string(name).c_str(), unit_.c_str(), value, floor, ratio);
    } else {
      std::printf("%-44s %10.1f %10.1f %8.3f\n", std::string(name).c_str(), value, floor, ratio);
    }
  }

 private:
  bool json_;
  std::string unit_;
};

// Replaces user_events as the transport of an event, to capture its bytes.
class Capture final : public eh::Transport {
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
    size = record.size();
    std::memcpy(bytes, record.data(), std::min(size, sizeof(bytes)));
    return 0;
  }

  // Aligned as the buffers of events.
  alignas(8) std::byte bytes[1024];
  std::size_t size = 0;
};

bool EnableTracepoint(bool on) {
  char path[4096];
  if (eh::internal::user_events::FindTracefsFile(kEnable, path) != 0) return false;
  std::ofstream file(path);
  file << (on ? "1" : "0") << std::flush;
  return static_cast<bool>(file);
}

// Writes to the same tracepoint without the library, with a separate descriptor and index.
class BareWrite {
 public:
  BareWrite() : fd_(eh::internal::user_events::OpenData()) {
    char command[eh::internal::user_events::kMaxCommand];
    usable_ = fd_ >= 0 && eh::internal::user_events::FormatCommand(kTracepoint, command) &&
              eh::internal::user_events::Register(fd_, command, &word_, 0, 0, &index_) == 0;
  }
  BareWrite(const BareWrite&) = delete;
  BareWrite& operator=(const BareWrite&) = delete;
  ~BareWrite() {
    if (usable_) eh::internal::user_events::Unregister(fd_, &word_, 0);
    if (fd_ >= 0) close(fd_);
  }

  bool usable() const { return usable_; }
  // Returns the cost of a bare write of the captured event's bytes; negative if a write failed.
  double Measure(Capture* event) const {
    bool failed = false;
    std::memcpy(event->bytes, &index_, sizeof(index_));
    const double cost = PerCall([&] { failed |= write(fd_, event->bytes, event->size) < 0; });
    return failed ? -1 : cost;
  }

 private:
  int fd_;
  bool usable_ = false;
  std::uint32_t index_ = 0;
  alignas(8) std::uint64_t word_ = 0;
};

int Fail(const std::string& why) {
  std::fprintf(stderr, "bench_provider: %s\n", why.c_str());
  return 1;
}

// Returns whether the clock counts instructions: an iteration of two instructions must take 2 ns.
bool CountsInstructions() {
  constexpr int kIterations = 100'000;
  double least = std::numeric_limits<double>::max();  // Interrupts disturb some runs.
  for (int run = 0; run < 5; ++run) {
    const std::int64_t begin = Now();
    int left = kIterations;
    asm volatile("1: decl %0\n\tjnz 1b" : "+r"(left));
    least = std::min(least, static_cast<double>(Now() - begin) / kIterations);
  }
  return least > 1.95 && least < 2.5;
}

int MeasureDisabled(Report* report) {
  const double loop = PerCall([] {});
  report->Add("disabled", "instructions/event",
              PerCall([] { event3.Write(1, 2, std::string_view("some text")); }), loop);
  if (!EnableTracepoint(true)) return Fail("cannot enable the tracepoint in tracefs");
  report->Add("disabled, another set enabled", "instructions/event",
              PerCall([] { never_enabled.Write(1); }), loop);
  return 0;
}

int MeasureEnabled(Report* report, const BareWrite& bare) {
  static Capture capture;
  static Dynamic dynamic;
  static CApi c_api;
  if (eh_provider_status(ProviderOfMacrosOfC()) != 0 || dynamic.set().status() != 0 ||
      eh_event_set_status(c_api.set()) != 0) {
    return Fail("cannot register the dynamic events' sets");
  }
  static const eh_activity c_activity{reinterpret_cast<const std::uint8_t*>(input.activity.data()),
                                      nullptr};

  struct Case {
    const char* name;
    bool (*write)();
    // Writes the same bytes by `provider`, so that `capture` receives them. Null if `write` itself
    // uses `provider`.
    bool (*same)();
  };
  constexpr auto kPlain8 = [] { return Write8(); };
  constexpr auto kActivity8 = [] { return Write8(eh::Activity{input.activity}); };
  const Case cases[] = {
      {"enabled, 0 fields", [] { return Write0(); }, nullptr},
      {"enabled, 3 fields, 1 string", [] { return Write3(); }, nullptr},
      {kEightFields, kPlain8, nullptr},
      {"enabled, 20 fields, 5 strings", [] { return Write20(); }, nullptr},
      {"activity, 0 fields", [] { return Write0(eh::Activity{input.activity}); }, nullptr},
      {"activity, 3 fields, 1 string", [] { return Write3(eh::Activity{input.activity}); },
       nullptr},
      {"activity, 8 fields, 3 strings", kActivity8, nullptr},
      {"activity, 20 fields, 5 strings", [] { return Write20(eh::Activity{input.activity}); },
       nullptr},
      {"macro of C++17, 8 fields, 3 strings", Write8ByMacro, nullptr},
      {"macro of C, 8 fields, 3 strings, measured", Write8InC, kPlain8},
      {"dynamic builder, 8 fields built and written",
       [] {
         dynamic.Build();
         return dynamic.Write();
       },
       nullptr},
      {"dynamic builder, the same written again", [] { return dynamic.Write(); }, nullptr},
      {"C API, prepared metadata, 8 fields", [] { return c_api.WritePrepared(); }, kPlain8},
      {"C API, prepared metadata, activity", [] { return c_api.WritePrepared(&c_activity); },
       kActivity8},
      {"C API, dynamic builder, 8 fields", [] { return c_api.BuildAndWrite(); }, kPlain8},
  };
  for (const Case& one : cases) {
    provider.SetTransport(&capture);
    (one.same != nullptr ? one.same : one.write)();
    if (provider.SetTransport(nullptr) != 0)
      return Fail("cannot register the provider with user_events again");
    const double floor = bare.Measure(&capture);
    bool failed = floor < 0;
    const double value = PerCall([&] { failed |= !one.write(); });
    if (failed) return Fail(std::string(one.name) + ": a write failed");
    report->Add(one.name, "instructions/event", value, floor);
    if (one.name == kEightFields && value > kMostOfWrite * floor) {
      return Fail(std::string(one.name) + ": costs more than " + std::to_string(kMostOfWrite) +
                  " times a bare write");
    }
  }
  return 0;
}

int CheckDisassembly(Report* report, const std::string& program) {
  for (const char* function :
       {"WriteDisabled", "WriteDisabledByMacro", "WriteDisabledByCxx17", "WriteDisabledInC"}) {
    const DisabledPath path = FindDisabledPath(program, function);
    if (!path.error.empty()) return Fail("disassembly: " + path.error);
    report->Add(std::string("load, test, branch in ") + function, "instructions", path.instructions,
                3);
  }
  return 0;
}

int MeasureSizes(Report* report, const std::filesystem::path& folder) {
  const auto size_of = [&](const char* name) {
    return SizeOfObject(folder / ("call_sites_" + std::string(name) + ".o"));
  };
  const auto base = size_of("1x1"), sites = size_of("1x9"), events = size_of("9x1"),
             plain = size_of("plain_1"), plains = size_of("plain_9");
  if (!base || !sites || !events || !plain || !plains) {
    return Fail("no object files of call sites in " + folder.string());
  }
  // Returns the size of one of the eight additional calls or events.
  const auto each = [](std::size_t more, std::size_t less) {
    return (static_cast<double>(more) - static_cast<double>(less)) / 8;
  };
  report->Add("code, a further call of an event, 8 fields", "bytes", each(sites->code, base->code),
              each(plains->code, plain->code));
  report->Add("code, a further event, and its call", "bytes", each(events->code, base->code),
              each(plains->code, plain->code));
  report->Add("read-only data, a further call", "bytes", each(sites->read_only, base->read_only),
              each(plains->read_only, plain->read_only));
  report->Add("read-only data, a further event", "bytes", each(events->read_only, base->read_only),
              Described8::kHeadSize);
  report->Add("unwind tables, a further call", "bytes", each(sites->unwind, base->unwind),
              each(plains->unwind, plain->unwind));
  report->Add("unwind tables, a further event", "bytes", each(events->unwind, base->unwind),
              each(plains->unwind, plain->unwind));
  return 0;
}

constexpr char kUsage[] =
    "usage: bench_provider [--json]\n"
    "Measures events and bare writes of the same bytes, and the size and machine code of calls of\n"
    "events. Needs user_events, root and objdump, and its build folder around it.\n"
    "example: ./run vm --icount -- build/tests/bench/eventheader/bench_provider\n"
    "exit status: 0 done, 1 something failed, or is not what it has to be, 2 wrong usage,\n"
    "             77 no user_events here\n";

}  // namespace

int main(int argc, char** argv) {
  const bool json = argc == 2 && std::strcmp(argv[1], "--json") == 0;
  if (argc > 1 && !json) {
    const bool help = std::strcmp(argv[1], "--help") == 0;
    std::fputs(kUsage, help ? stdout : stderr);
    return help ? 0 : 2;
  }
  const BareWrite bare;
  if (!bare.usable() || provider.status() != 0) {
    std::fprintf(stderr, "bench_provider: %s\n",
                 eh::RegistrationErrorText(provider.status() != 0 ? provider.status() : ENOENT));
    return 77;
  }
  if (!CountsInstructions()) {
    return Fail("the clock does not count instructions; run this program in ./run vm --icount");
  }

  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  Report report(json);
  int failures = MeasureDisabled(&report);
  if (failures == 0) failures = MeasureEnabled(&report, bare);
  EnableTracepoint(false);
  failures += CheckDisassembly(&report, program);
  failures += MeasureSizes(&report, program.parent_path());
  return failures == 0 ? 0 : 1;
}
