// Measures what the engine costs for each event. The engine is the code of a recorder between a
// perf ring and a sink. The benchmark itself fills the ring, which is in memory.
//
//   bench_engine [--json] [--instructions]
//
// The records are those that the kernel writes for an event, in batches that wake up a recorder.
// The engine reads them with its PerfRing, converts and writes them with its Distributor and
// Session, and ends intervals as a recording does. The floor is a recorder that does not interpret
// records, like perf. If the sink discards its data, the floor is a memcpy of the records. If the
// sink is a file, the floor is a write() of the records from the ring. For two sessions on the same
// tracepoint, the floor is one session.
#include <eventheader/dynamic_event.h>
#include <eventheader/eh.h>
#include <eventheader/testing/recording_transport.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/bench/measure.h"
#include "tests/support/collector/memory_ring.h"
#include "tests/support/collector/tracepoint_format.h"
#include "tools/collector/session/distributor.h"
#include "tools/collector/session/session_writer.h"

namespace {

using Bytes = std::vector<std::byte>;
using collector::MemoryRing;

constexpr std::size_t kRingSize = 1 << 20;
constexpr std::size_t kWatermark = kRingSize / 4;  // Fill level at which a recorder wakes up.
constexpr std::uint32_t kPid = 1000;
constexpr std::uint32_t kFirstTid = 4'000'000;  // Larger than the id of any running thread.

// The formats of the tracepoints, as in tracefs.
#define COMMON_FIELDS                                                            \
  "format:\n"                                                                    \
  "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"         \
  "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"         \
  "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n" \
  "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

struct Format {
  int id;
  const char* system;
  const char* event;
  std::string text;
};

const Format kGetppid = {7, "syscalls", "sys_enter_getppid",
                         "name: sys_enter_getppid\nID: 7\n" COMMON_FIELDS
                         "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n\n"
                         "print fmt: \"\"\n"};
const Format kSysEnter = {8, "raw_syscalls", "sys_enter",
                          "name: sys_enter\nID: 8\n" COMMON_FIELDS
                          "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n"
                          "\tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n\n"
                          "print fmt: \"\"\n"};
const Format kEventHeader = {9, "user_events", "Bench_Engine_L4K1",
                             collector::EventHeaderFormat(9, "Bench_Engine_L4K1")};

#undef COMMON_FIELDS

// Returns a record of the tracepoint: the common fields, then `body`.
Bytes Raw(const Format& format, std::span<const std::byte> body) {
  constexpr std::size_t kCommonFields = 8;
  Bytes raw(kCommonFields + body.size());
  MemoryRing::Set(&raw, 0, static_cast<std::uint16_t>(format.id));
  std::copy(body.begin(), body.end(), raw.begin() + kCommonFields);
  return raw;
}

// Makes the events of a case, with the library that services use.
class Service {
 public:
  Service() : provider_("Bench_Engine") {
    if (provider_.SetTransport(&transport_) != 0) bench::Fail("cannot set the transport");
    set_.emplace(provider_, eh::Level::kInformation, 1);
  }

  // Returns an event with 5 numbers and 3 strings.
  Bytes Eight(const std::string& name, const eh::ActivityId* activity) {
    event_.Reset(name);
    int value = 1;
    for (const char* field : {"number", "status", "port", "bytes", "count"}) {
      event_.AddField(field, value *= 20);
    }
    event_.AddField("path", std::string_view("/index.html"));
    event_.AddField("host", std::string_view("example.org"));
    event_.AddField("agent", std::string_view("curl/7"));
    return Written(activity);
  }

  // Returns an event with 15 numbers and 5 strings.
  Bytes Twenty(const eh::ActivityId* activity) {
    event_.Reset("Bench20");
    for (int i = 0; i < 15; ++i) event_.AddField(absl::StrCat("f", i), i);
    int i = 0;
    for (const char* text : {"one", "two", "three", "four", "five"}) {
      event_.AddField(absl::StrCat("s", i++), std::string_view(text));
    }
    return Written(activity);
  }

 private:
  Bytes Written(const eh::ActivityId* id) {
    const eh::Activity activity = {id == nullptr ? eh::ActivityId() : *id};
    if (event_.Write(*set_, id == nullptr ? nullptr : &activity) != eh::WriteResult::kWritten) {
      bench::Fail("an event was not written");
    }
    return Raw(kEventHeader, transport_.Take().at(0).event);
  }

  eh::RecordingTransport transport_;
  eh::DynamicProvider provider_;
  std::optional<eh::EventSet> set_;
  eh::DynamicEvent event_;
};

// The records that the kernel writes: it writes the elements of `raws` in turns, for `threads`
// threads in turns.
struct Load {
  std::string name;
  const Format* format;
  std::vector<Bytes> raws;
  std::uint32_t threads = 1;
};

std::vector<Load> Loads() {
  Service service;
  Bytes sys_enter(56);
  std::vector<Bytes> kinds;
  kinds.reserve(64);
  for (int i = 0; i < 64; ++i) kinds.push_back(service.Eight(absl::StrCat("Kind", i), nullptr));
  // The events of a service that handles 64 requests at a time, each in a separate activity.
  std::vector<Bytes> eight_in_activities;
  std::vector<Bytes> twenty_in_activities;
  for (unsigned i = 0; i < 64; ++i) {
    eh::ActivityId id = {static_cast<std::byte>(i), std::byte{1}};
    eight_in_activities.push_back(service.Eight("Bench8", &id));
    twenty_in_activities.push_back(service.Twenty(&id));
  }
  const Bytes eight = service.Eight("Bench8", nullptr);
  const Bytes twenty = service.Twenty(nullptr);
  return {
      {"bare tracepoint", &kGetppid, {Raw(kGetppid, Bytes(8))}},
      {"raw_syscalls:sys_enter", &kSysEnter, {Raw(kSysEnter, sys_enter)}},
      {"8 fields, 3 strings", &kEventHeader, {eight}},
      {"8 fields, 3 strings, 64 activities", &kEventHeader, eight_in_activities},
      {"20 fields, 5 strings", &kEventHeader, {twenty}},
      {"20 fields, 5 strings, 64 activities", &kEventHeader, twenty_in_activities},
      {"8 fields, 64 kinds in turns", &kEventHeader, kinds},
      {"bare tracepoint, 1000 threads in turns", &kGetppid, {Raw(kGetppid, Bytes(8))}, 1000},
      {"8 fields, 1000 threads in turns", &kEventHeader, {eight}, 1000},
      {"8 fields, 1000 threads, 64 activities", &kEventHeader, eight_in_activities, 1000},
  };
}

// A ring. Fill() discards its contents and writes enough records to reach the watermark, as the
// kernel does before it wakes up a recorder.
class Kernel {
 public:
  explicit Kernel(const Load& load) : ring_(kRingSize) {
    std::size_t size = 0;
    const std::size_t least = std::max<std::size_t>(load.threads, load.raws.size());
    while (size < kWatermark || records_.size() < least) {
      const std::size_t i = records_.size();
      Bytes raw = load.raws[i % load.raws.size()];
      const auto tid = kFirstTid + static_cast<std::uint32_t>(i % load.threads);
      MemoryRing::Set(&raw, 4, tid);
      records_.push_back(MemoryRing::Sample(kPid, tid, 0, raw));
      size += records_.back().size();
    }
    size_ = size;
  }

  MemoryRing& ring() { return ring_; }
  std::size_t events() const { return records_.size(); }
  std::size_t bytes() const { return size_; }
  std::uint64_t now() const { return now_; }

  void Fill() {
    ring_.control()->data_tail = ring_.control()->data_head;
    for (Bytes& record : records_) {
      now_ += 700 + now_ % 601;
      MemoryRing::Set(&record, MemoryRing::kTimeOffset, now_);
      ring_.Put(record);
    }
  }

  // Returns the unread bytes in two parts, because they may continue at the start of the ring. The
  // second part is empty if they do not.
  std::array<std::span<const std::byte>, 2> Waiting() {
    const std::size_t offset = ring_.control()->data_tail & (kRingSize - 1);
    const std::size_t first = std::min(size_, kRingSize - offset);
    return {std::span(ring_.data() + offset, first), std::span(ring_.data(), size_ - first)};
  }

 private:
  MemoryRing ring_;
  std::vector<Bytes> records_;
  std::size_t size_ = 0;
  std::uint64_t now_ = 1'000'000'000;
};

// A file without a name in the current folder.
class File {
 public:
  File() : fd_(open(".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600)) {
    if (fd_ < 0) bench::Fail("cannot make a file in the current folder");
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { close(fd_); }

  int fd() const { return fd_; }
  // Returns another descriptor of the file; both share the file position.
  int Duplicate() const { return fcntl(fd_, F_DUPFD_CLOEXEC, 0); }
  // Truncates the file once it is large. Until then, each write needs new pages that are not in the
  // processor's caches, as in a recording.
  void EmptyIfLarge() {
    constexpr off_t kLarge = 64 << 20;
    if (lseek(fd_, 0, SEEK_CUR) < kLarge) return;
    if (ftruncate(fd_, 0) != 0 || lseek(fd_, 0, SEEK_SET) != 0) bench::Fail("cannot empty a file");
  }

 private:
  int fd_;
};

class NullSink : public nettrace::Sink {
 public:
  explicit NullSink(std::uint64_t* bytes) : bytes_(bytes) {}
  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override {
    *taken = bytes.size();
    *bytes_ += bytes.size();
    return absl::OkStatus();
  }

 private:
  std::uint64_t* bytes_;
};

// Everything between a ring and the sinks of several sessions, which all select the tracepoint.
class Engine {
 public:
  Engine(Kernel* kernel, const Format& format, std::vector<std::unique_ptr<nettrace::Sink>> sinks)
      : kernel_(kernel), ring_(kernel->ring().reader()), distributor_(&tasks_) {
    distributor_.AddCpu(0);
    bench::Check(distributor_.AddTracepoint(format.id, format.system, format.event, format.text));
    for (std::unique_ptr<nettrace::Sink>& sink : sinks) {
      collector::SessionWriter& session = *sessions_.emplace_back(
          std::make_unique<collector::SessionWriter>(collector::SessionOptions()));
      bench::Check(session.Open([&sink] { return std::move(sink); }, {}));
      distributor_.Begin(&session, kernel->now());
      distributor_.Give(format.id, &session);
    }
  }

  void Drain() {
    const std::uint64_t now = kernel_->now();
    collector::SampleRecord sample;
    ring_.Drain(now, [&](const collector::PerfRecord& record) {
      if (ParseSample(record, &sample)) distributor_.Write(0, sample, record.timestamp);
    });
    events_ += kernel_->events();
    for (const auto& session : sessions_) {
      if (session->IsIntervalOver(now)) session->EndInterval(now);
    }
  }

  // Fails unless all records were written and decoded.
  void CheckAll() const {
    if (ring_.corrupt() != 0) bench::Fail("the engine did not read every event");
    for (const auto& session : sessions_) {
      const collector::SessionSummary summary = session->Summarize();
      bench::Check(summary.status);
      if (summary.events != events_ || summary.undecoded != 0 || summary.late != 0) {
        bench::Fail("the engine did not convert every event");
      }
    }
  }
  double events() const { return static_cast<double>(events_); }

 private:
  Kernel* kernel_;
  collector::PerfRing ring_;
  collector::TaskTracker tasks_;
  collector::Distributor distributor_;
  std::vector<std::unique_ptr<collector::SessionWriter>> sessions_;
  std::uint64_t events_ = 0;
};

class Case {
 public:
  explicit Case(const Load& load)
      : name_(load.name),
        kernel_(load),
        copy_(kernel_.bytes()),
        to_nothing_(&kernel_, *load.format, NullSinks({&bytes_})),
        to_file_(&kernel_, *load.format, FileSinks({&file_})),
        to_nothing_twice_(&kernel_, *load.format, NullSinks({&other_bytes_, &other_bytes_})),
        to_files_(&kernel_, *load.format, FileSinks({&first_file_, &second_file_})) {}
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  void Measure(int rounds, const bench::InstructionCounter& counter) {
    bench::Measure(bodies_, kernel_.events(), rounds, &counter);
  }

  void Report(const bench::Reporter& reporter, bool instructions, bool counted) const {
    for (const Engine* engine : {&to_nothing_, &to_file_, &to_nothing_twice_, &to_files_}) {
      engine->CheckAll();
    }
    const struct {
      const char* name;
      const bench::Body& engine;
      const bench::Body& floor;
    } kResults[] = {{"null sink, ", bodies_[1], bodies_[0]},
                    {"file, ", bodies_[3], bodies_[2]},
                    // The floor is one session.
                    {"two sessions, null sinks, ", bodies_[4], bodies_[1]},
                    {"two sessions, files, ", bodies_[5], bodies_[3]}};
    for (const auto& result : kResults) {
      reporter.Report(result.name + name_, instructions ? "instructions/event" : "ns/event",
                      result.engine.cost, result.floor.cost);
      if (!counted) continue;
      reporter.Report(result.name + name_, "instructions/event", result.engine.instructions,
                      result.floor.instructions);
    }
    reporter.Report("size, " + name_, "bytes/event",
                    static_cast<double>(bytes_) / to_nothing_.events(),
                    static_cast<double>(kernel_.bytes()) / static_cast<double>(kernel_.events()));
  }

 private:
  using Sinks = std::vector<std::unique_ptr<nettrace::Sink>>;

  static Sinks NullSinks(const std::vector<std::uint64_t*>& bytes) {
    Sinks sinks;
    for (std::uint64_t* each : bytes) sinks.push_back(std::make_unique<NullSink>(each));
    return sinks;
  }
  static Sinks FileSinks(const std::vector<File*>& files) {
    Sinks sinks;
    for (File* file : files) {
      sinks.push_back(std::make_unique<nettrace::FdSink>(file->Duplicate(), "file"));
    }
    return sinks;
  }

  void Copy() {
    std::byte* out = copy_.data();
    for (std::span<const std::byte> part : kernel_.Waiting()) {
      if (!part.empty()) std::memcpy(out, part.data(), part.size());
      out += part.size();
    }
    asm volatile("" : : "r"(copy_.data()) : "memory");
  }

  void WriteRecords() {
    for (std::span<const std::byte> part : kernel_.Waiting()) {
      while (!part.empty()) {
        const ssize_t written = write(file_.fd(), part.data(), part.size());
        if (written <= 0) bench::Fail("cannot write to a file");
        part = part.subspan(static_cast<std::size_t>(written));
      }
    }
  }

  void Refill() { kernel_.Fill(); }
  void RefillAndMakeRoom() {
    kernel_.Fill();
    for (File* file : {&file_, &first_file_, &second_file_}) file->EmptyIfLarge();
  }

  std::string name_;
  Kernel kernel_;
  Bytes copy_;
  File file_;
  File first_file_;
  File second_file_;
  std::uint64_t bytes_ = 0;
  std::uint64_t other_bytes_ = 0;
  Engine to_nothing_;
  Engine to_file_;
  Engine to_nothing_twice_;
  Engine to_files_;
  std::array<bench::Body, 6> bodies_ = {
      {{[this] { Copy(); }, [this] { Refill(); }},
       {[this] { to_nothing_.Drain(); }, [this] { Refill(); }},
       {[this] { WriteRecords(); }, [this] { RefillAndMakeRoom(); }},
       {[this] { to_file_.Drain(); }, [this] { RefillAndMakeRoom(); }},
       {[this] { to_nothing_twice_.Drain(); }, [this] { Refill(); }},
       {[this] { to_files_.Drain(); }, [this] { RefillAndMakeRoom(); }}}};
};

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::ParseOptions(argc, argv);
  const bench::Reporter reporter(options.instructions ? "engine instructions" : "engine",
                                 options.json);
  const bench::InstructionCounter counter;
  std::vector<std::unique_ptr<Case>> cases;
  for (const Load& load : Loads()) cases.push_back(std::make_unique<Case>(load));
  // All cases run in many passes, because the machine may be busy for several seconds at a time.
  for (int pass = 0; pass < (options.instructions ? 1 : 25); ++pass) {
    for (const auto& each : cases) each->Measure(options.instructions ? 3 : 10, counter);
  }
  const bool counted = counter.valid() && !options.instructions;
  for (const auto& each : cases) each->Report(reporter, options.instructions, counted);
  return 0;
}
