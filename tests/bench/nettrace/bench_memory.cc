// The memory that writing and reading take, by the length of the stream: one thread's events of 64
// bytes, written and read back as they come. The floor: the process's peak at a million events.
//
//   bench_nettrace_memory [--json]
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/measure.h"
#include "tests/bench/nettrace/streams.h"

namespace {

constexpr std::size_t kBatch = 1'000'000;  // events between sequence points

double PeakMemoryMiB() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// The bytes that a Writer writes while they are read.
class WriterSource : public nettrace::Source {
 public:
  WriterSource(std::uint64_t events, const bench::Reporter& reporter)
      : events_(events), reporter_(reporter) {}

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
  // Writes a thousand events, and now and then a sequence point.
  void WriteMore() {
    const std::uint64_t written = stream_.writer().stats().events;
    if (written == events_) {
      bench::Check(stream_.writer().Finish());
      finished_ = true;
    } else {
      stream_.Write(1000);
      if ((written + 1000) % kBatch == 0) {
        stream_.WriteSequencePoint();
        Report(written + 1000);
      }
    }
  }

  void Report(std::uint64_t events) {
    if (events != 1'000'000 && events != 10'000'000 && events != 100'000'000) return;
    if (first_ == 0) first_ = PeakMemoryMiB();
    reporter_.Report(std::to_string(events / 1'000'000) + " million events written and read", "MiB",
                     PeakMemoryMiB(), first_);
  }

  absl::Status Take(std::span<const std::byte> bytes, std::size_t* taken) {
    pending_.insert(pending_.end(), bytes.begin(), bytes.end());
    *taken = bytes.size();
    return absl::OkStatus();
  }

  std::uint64_t events_;
  const bench::Reporter& reporter_;
  std::vector<std::byte> pending_;
  std::size_t next_ = 0;
  bool finished_ = false;
  double first_ = 0;
  bench::StreamWriter stream_{{},
                              std::make_unique<nettrace::CallbackSink>(
                                  [this](auto bytes, auto* taken) { return Take(bytes, taken); })};
};

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::ParseOptions(argc, argv);
  const bench::Reporter reporter("nettrace memory", options.json);
  constexpr std::uint64_t kEvents = 100'000'000;
  bench::StreamReader(std::make_unique<WriterSource>(kEvents, reporter)).ReadToEnd(kEvents);
  return 0;
}
