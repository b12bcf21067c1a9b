// The event streams that the benchmarks write and read.
#ifndef TESTS_BENCH_NETTRACE_STREAMS_H_
#define TESTS_BENCH_NETTRACE_STREAMS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nettrace/reader.h"
#include "nettrace/writer.h"

namespace bench {

// Number of different label lists or stacks in a stream; events use them in turns.
enum class Interned { kNone, kOne, kMany };

struct Stream {
  std::size_t payload_size = 64;
  std::size_t threads = 1;
  Interned labels = Interned::kNone;
  Interned stacks = Interned::kNone;
  std::size_t metadata_rows = 1;

  std::string Name() const;
};

// Accepts all data and discards it.
class NullSink : public nettrace::Sink {
 public:
  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override {
    *taken = bytes.size();
    return absl::OkStatus();
  }
};

// Memory that begins at a cache line, so that its address does not change the speed of a run.
class CacheLines {
 public:
  explicit CacheLines(std::size_t size) : lines_(size / sizeof(Line) + 1) {}
  std::byte* data() { return lines_.data()->bytes; }
  const std::byte* data() const { return lines_.data()->bytes; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64] = {};
  };
  std::vector<Line> lines_;
};

// Payloads one after another, as in a ring.
class Payloads {
 public:
  explicit Payloads(std::size_t size) : size_(size), bytes_(kCount * (size + 1)) {}
  std::span<const std::byte> operator[](std::size_t i) const {
    return {bytes_.data() + i % kCount * size_, size_};
  }

 private:
  static constexpr std::size_t kCount = 64;
  std::size_t size_;
  CacheLines bytes_;
};

// The minimum cost of writing: copies payloads one after another into a block as large as those of
// nettrace::Writer, and writes each full block to the sink.
class PayloadCopier {
 public:
  PayloadCopier(std::size_t payload_size, std::unique_ptr<nettrace::Sink> sink);
  void Copy(std::size_t events);

 private:
  Payloads payloads_;
  std::unique_ptr<nettrace::Sink> sink_;
  std::size_t size_;
  CacheLines block_;
  std::byte* next_;
};

// Writes the events of a stream. Labels and stacks are looked up for each event.
class StreamWriter {
 public:
  StreamWriter(const Stream& stream, std::unique_ptr<nettrace::Sink> sink);
  void Write(std::size_t events);
  // Writes a sequence point just after the last event.
  void WriteSequencePoint();
  nettrace::Writer& writer() { return *writer_; }

 private:
  Stream stream_;
  Payloads payloads_;
  std::vector<nettrace::Labels> labels_;
  std::vector<std::vector<std::uint64_t>> stacks_;
  std::unique_ptr<nettrace::Writer> writer_;
  std::uint64_t events_ = 0;
  std::uint64_t now_ = 0;
};

// Reads a stream to its end, every payload to its last byte.
class StreamReader {
 public:
  explicit StreamReader(std::unique_ptr<nettrace::Source> source);
  // Reads up to the next sequence point, which must exist.
  void SkipToSequencePoint();
  // Fails unless the whole stream has this many events.
  void ReadToEnd(std::uint64_t events);

 private:
  std::unique_ptr<nettrace::Reader> reader_;
};

}  // namespace bench

#endif  // TESTS_BENCH_NETTRACE_STREAMS_H_
