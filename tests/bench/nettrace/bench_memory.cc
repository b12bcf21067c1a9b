// Measures how memory use for writing and reading depends on the length of the stream. Events of 64
// bytes are written and immediately read back: first events of one thread, then of four threads in
// one interval, sorted by time. The floor is the process's peak after a million events.
//
//   bench_nettrace_memory [--json]
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nettrace/time_ordered_reader.h"
#include "tests/bench/measure.h"
#include "tests/bench/nettrace/streams.h"

namespace {

constexpr std::uint64_t kBatch = 1'000'000;  // Number of events between sequence points.

double PeakMemoryMiB() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// A source of the bytes that a Writer writes while they are read.
class WriterSource : public nettrace::Source {
 public:
  // Writes a sequence point after each `interval` events. `at_point` is called with the number of
  // events before each sequence point.
  WriterSource(std::uint64_t events, std::uint64_t interval, const bench::Stream& stream,
               std::function<void(std::uint64_t)> at_point)
      : events_(events),
        interval_(interval),
        at_point_(std::move(at_point)),
        stream_(stream, std::make_unique<nettrace::CallbackSink>(
                            [this](auto bytes, auto* taken) { return Take(bytes, taken); })) {}

  absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) override {
    while (next_ == pending_.size()) {
      pending_.clear();
      next_ = 0;
      if (finished_) return std::size_t{0};
      WriteMore();
    }
    const std::size_t size = std::min(buffer.size(), pending_.size() - next_);
    std::memcpy(buffer.data(), pending_.data() + next_, size);
    next_ += size;
    return size;
  }

 private:
  // Writes a thousand events, and a sequence point if an interval is over.
  void WriteMore() {
    const std::uint64_t written = stream_.writer().stats().events;
    if (written == events_) {
      bench::Check(stream_.writer().Finish());
      finished_ = true;
    } else {
      stream_.Write(1000);
      if ((written + 1000) % interval_ == 0) {
        stream_.WriteSequencePoint();
        at_point_(written + 1000);
      }
    }
  }

  absl::Status Take(std::span<const std::byte> bytes, std::size_t* taken) {
    pending_.insert(pending_.end(), bytes.begin(), bytes.end());
    *taken = bytes.size();
    return absl::OkStatus();
  }

  const std::uint64_t events_;
  const std::uint64_t interval_;
  const std::function<void(std::uint64_t)> at_point_;
  std::vector<std::byte> pending_;
  std::size_t next_ = 0;
  bool finished_ = false;
  bench::StreamWriter stream_;
};

void SortOneInterval(std::uint64_t events) {
  nettrace::TimeOrderedReader reader(
      bench::Check(nettrace::Reader::Open(std::make_unique<WriterSource>(
          events, events, bench::Stream{.threads = 4}, [](std::uint64_t) {}))));
  std::uint64_t time = 0;
  std::uint64_t seen = 0;
  while (reader.Next() == nettrace::Reader::Step::kEvent) {
    if (reader.event().timestamp < time) bench::Fail("the events are not in the order of time");
    time = reader.event().timestamp;
    ++seen;
  }
  if (seen != events) bench::Fail("not all events were sorted");
}

std::string Millions(std::uint64_t events, const char* what) {
  return std::to_string(events / 1'000'000) + " million events " + what;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::ParseOptions(argc, argv);
  const bench::Reporter reporter("nettrace memory", options.json);
  constexpr std::uint64_t kEvents = 100'000'000;
  double floor = 0;
  const auto report = [&](std::uint64_t events) {
    if (events != 1'000'000 && events != 10'000'000 && events != kEvents) return;
    if (floor == 0) floor = PeakMemoryMiB();
    reporter.Report(Millions(events, "written and read"), "MiB", PeakMemoryMiB(), floor);
  };
  bench::StreamReader(std::make_unique<WriterSource>(kEvents, kBatch, bench::Stream(), report))
      .ReadToEnd(kEvents);
  floor = 0;
  for (const std::uint64_t events : {1'000'000, 10'000'000}) {
    SortOneInterval(events);
    if (floor == 0) floor = PeakMemoryMiB();
    reporter.Report(Millions(events, "of one interval sorted"), "MiB", PeakMemoryMiB(), floor);
  }
  return 0;
}
