// Measures the cost of writing and reading an event, compared with a memcpy of the same payloads in
// the same run.
//
//   bench_nettrace_cost [--json] [--instructions]
//
// PayloadCopier (streams.h) is the floor for both. The stream is written to memory and read from
// there.
#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/bench/measure.h"
#include "tests/bench/nettrace/streams.h"

namespace {

using bench::Interned;
using bench::Stream;
using bench::StreamWriter;

// A stream to read: its tables (metadata and thread rows), a sequence point, and its events.
class Recording {
 public:
  Recording(const Stream& stream, std::size_t events) : events_(events) {
    const auto keep = [this](std::span<const std::byte> block, std::size_t* taken) {
      bytes_.insert(bytes_.end(), block.begin(), block.end());
      *taken = block.size();
      return absl::OkStatus();
    };
    StreamWriter writer(stream, std::make_unique<nettrace::CallbackSink>(keep));
    writer.WriteSequencePoint();
    tables_size_ = bytes_.size();
    writer.Write(events);
    bench::Check(writer.writer().Finish());
  }

  double bytes_per_event() const {
    return static_cast<double>(bytes_.size() - tables_size_) / static_cast<double>(events_);
  }
  // Reads the tables; ReadEvents then reads the events.
  void ReadTables() {
    reader_.emplace(std::make_unique<nettrace::MemorySource>(bytes_));
    reader_->SkipToSequencePoint();
  }
  void ReadEvents() { reader_->ReadToEnd(events_); }

 private:
  std::uint64_t events_;
  std::vector<std::byte> bytes_;
  std::size_t tables_size_ = 0;
  std::optional<bench::StreamReader> reader_;
};

// Returns a number of events with which all data stays in the second-level cache. If metadata rows
// take turns, there are enough events to use many rows.
std::size_t CountEvents(const Stream& stream) {
  constexpr std::size_t kMost = 1 << 14;
  constexpr std::size_t kBytes = 1 << 19;
  if (stream.metadata_rows > 1) return kMost;
  return std::min(kMost, kBytes / std::max<std::size_t>(stream.payload_size, 1));
}

// One stream that is copied, written and read.
class Case {
 public:
  explicit Case(const Stream& stream)
      : name_(stream.Name()),
        payload_size_(stream.payload_size),
        events_(CountEvents(stream)),
        copier_(stream.payload_size, std::make_unique<bench::NullSink>()),
        writer_(stream, std::make_unique<bench::NullSink>()),
        recording_(stream, events_) {}
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  void Measure(int rounds) { bench::Measure(bodies_, events_, rounds); }

  double copy() const { return bodies_[0].cost; }
  double write() const { return bodies_[1].cost; }
  double read() const { return bodies_[2].cost; }

  void Report(const bench::Reporter& reporter, bool instructions) const {
    const char* const unit = instructions ? "instructions/event" : "ns/event";
    reporter.Report("write, " + name_, unit, write(), copy());
    reporter.Report("read, " + name_, unit, read(), copy());
    reporter.Report("read beside write, " + name_, unit, read(), write());
    if (instructions) return;
    reporter.Report("write, " + name_, "events/s", 1e9 / write(), 1e9 / copy());
    reporter.Report("read, " + name_, "events/s", 1e9 / read(), 1e9 / copy());
    reporter.Report("size, " + name_, "bytes/event", recording_.bytes_per_event(),
                    static_cast<double>(payload_size_));
  }

 private:
  std::string name_;
  std::size_t payload_size_;
  std::size_t events_;
  bench::PayloadCopier copier_;
  StreamWriter writer_;
  Recording recording_;
  std::array<bench::Body, 3> bodies_ = {
      {{[this] { copier_.Copy(events_); }},
       {[this] { writer_.Write(events_); }},
       {[this] { recording_.ReadEvents(); }, [this] { recording_.ReadTables(); }}}};
};

// The events use all rows in turns. No event has the row of the event before it, so even with 2
// rows each event must state its row.
constexpr std::size_t kMetadataRows[] = {2, 10, 1000, 100'000};

std::vector<Stream> Streams() {
  std::vector<Stream> streams;
  for (const std::size_t payload_size : {0, 16, 64, 512}) {
    for (const std::size_t threads : {1, 64}) {
      for (const Interned interned : {Interned::kNone, Interned::kMany}) {
        streams.push_back({.payload_size = payload_size,
                           .threads = threads,
                           .labels = interned,
                           .stacks = interned});
      }
    }
  }
  for (const Interned interned : {Interned::kOne, Interned::kMany}) {
    streams.push_back({.labels = interned});
    streams.push_back({.stacks = interned});
  }
  for (const std::size_t rows : kMetadataRows) streams.push_back({.metadata_rows = rows});
  return streams;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::ParseOptions(argc, argv);
  const bench::Reporter reporter(options.instructions ? "nettrace instructions" : "nettrace cost",
                                 options.json);
  std::vector<std::unique_ptr<Case>> cases;
  for (const Stream& stream : Streams()) cases.push_back(std::make_unique<Case>(stream));
  // All cases run in many passes, because the machine may be busy for several seconds at a time.
  for (int pass = 0; pass < (options.instructions ? 1 : 25); ++pass) {
    for (const auto& each : cases) each->Measure(options.instructions ? 3 : 10);
  }
  for (const auto& each : cases) each->Report(reporter, options.instructions);

  const char* const unit = options.instructions ? "instructions/event" : "ns/event";
  const std::size_t first = cases.size() - std::size(kMetadataRows);
  for (std::size_t i = 1; i < std::size(kMetadataRows); ++i) {
    const std::string name = std::to_string(kMetadataRows[i]) + " metadata rows beside 2";
    reporter.Report("write, " + name, unit, cases[first + i]->write(), cases[first]->write());
    reporter.Report("read, " + name, unit, cases[first + i]->read(), cases[first]->read());
  }
  return 0;
}
