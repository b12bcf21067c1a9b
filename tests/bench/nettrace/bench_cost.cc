// What writing and reading an event costs, beside a memcpy of the same payloads in the same run.
//
//   bench_nettrace_cost [--json] [--instructions]
//
// The floor of both is PayloadCopier (streams.h). What is read is what was written, from memory.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure.h"
#include "streams.h"

namespace {

using bench::Interned;
using bench::Stream;
using bench::StreamWriter;

// A stream to read: its tables, a sequence point, its events.
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
  // Tables and events are to be read one after the other.
  void ReadTables() {
    reader_.emplace(std::make_unique<Source>(bytes_, tables_size_));
    reader_->SkipToSequencePoint();
  }
  void ReadEvents() { reader_->ReadToEnd(events_); }

 private:
  // Reads nothing of the events together with the tables.
  class Source : public nettrace::Source {
   public:
    Source(std::span<const std::byte> bytes, std::size_t tables_size)
        : tables_(bytes.first(tables_size)), events_(bytes.subspan(tables_size)) {}
    absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) override {
      const absl::StatusOr<std::size_t> read = tables_.Read(buffer);
      return read.ok() && *read == 0 ? events_.Read(buffer) : read;
    }

   private:
    nettrace::MemorySource tables_;
    nettrace::MemorySource events_;
  };

  std::uint64_t events_;
  std::vector<std::byte> bytes_;
  std::size_t tables_size_ = 0;
  std::optional<bench::StreamReader> reader_;
};

struct Costs {
  double copy = 0;
  double write = 0;
  double read = 0;
};

class Bench {
 public:
  explicit Bench(const bench::Options& options)
      : options_(options),
        reporter_(options.instructions ? "nettrace instructions" : "nettrace cost", options.json) {}

  Costs Run(const Stream& stream) {
    // So many that they stay in the caches, as what is copied and written does.
    const std::size_t events =
        std::min<std::size_t>(1 << 14, (1 << 20) / std::max<std::size_t>(stream.payload_size, 1));
    bench::PayloadCopier copier(stream.payload_size, std::make_unique<bench::NullSink>());
    StreamWriter writer(stream, std::make_unique<bench::NullSink>());
    Recording recording(stream, events);
    const std::vector<bench::Body> bodies = {
        {[&] { copier.Copy(events); }},
        {[&] { writer.Write(events); }},
        {[&] { recording.ReadEvents(); }, [&] { recording.ReadTables(); }}};
    const std::vector<double> least = bench::LeastCosts(bodies, events, Rounds());
    const Costs costs = {least[0], least[1], least[2]};

    const std::string name = stream.Name();
    const char* const unit = Unit();
    reporter_.Report("write, " + name, unit, costs.write, costs.copy);
    reporter_.Report("read, " + name, unit, costs.read, costs.copy);
    reporter_.Report("read beside write, " + name, unit, costs.read, costs.write);
    if (!options_.instructions) {
      reporter_.Report("write, " + name, "events/s", 1e9 / costs.write, 1e9 / costs.copy);
      reporter_.Report("read, " + name, "events/s", 1e9 / costs.read, 1e9 / costs.copy);
      reporter_.Report("size, " + name, "bytes/event", recording.bytes_per_event(),
                       static_cast<double>(stream.payload_size));
    }
    return costs;
  }

  // The same with more and more metadata rows, all in use.
  void RunMetadata() {
    Costs first;
    for (const std::size_t rows : {2, 10, 1000, 100'000}) {
      const Costs costs = Run({.metadata_rows = rows});
      if (first.write == 0) first = costs;
      const std::string name = std::to_string(rows) + " metadata rows beside 2";
      reporter_.Report("write, " + name, Unit(), costs.write, first.write);
      reporter_.Report("read, " + name, Unit(), costs.read, first.read);
    }
  }

 private:
  const char* Unit() const { return options_.instructions ? "instructions/event" : "ns/event"; }
  int Rounds() const { return options_.instructions ? 3 : 200; }

  bench::Options options_;
  bench::Reporter reporter_;
};

}  // namespace

int main(int argc, char** argv) {
  Bench bench(bench::ParseOptions(argc, argv));
  for (const std::size_t payload_size : {0, 16, 64, 512}) {
    for (const std::size_t threads : {1, 64}) {
      for (const Interned interned : {Interned::kNone, Interned::kMany}) {
        bench.Run({.payload_size = payload_size,
                   .threads = threads,
                   .labels = interned,
                   .stacks = interned});
      }
    }
  }
  for (const Interned interned : {Interned::kOne, Interned::kMany}) {
    bench.Run({.labels = interned});
    bench.Run({.stacks = interned});
  }
  bench.RunMetadata();
  return 0;
}
