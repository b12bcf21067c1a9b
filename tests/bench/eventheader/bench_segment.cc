// Measures what a second segment (iovec) of an event would add to the cost of a system call,
// compared with the copy that it would save. The result is the reason why the library passes each
// event in one buffer, whatever its size.
//
//   bench_segment [--json]
//
// Runs on the machine itself and measures time: the C library chooses how many instructions a copy
// has, and their number says little about its cost. The call writes to a file in memory, because
// /dev/null does not read the data.
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "../measure.h"

namespace {

constexpr std::size_t kHead = 128;  // Header and metadata, always copied.
constexpr std::size_t kSteps = 2000;

class Segment {
 public:
  Segment(int file, std::size_t size)
      : file_(file), size_(size), field_(size), event_(kHead + size) {}
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  void Measure() { bench::Measure(bodies_, kSteps, 10); }
  void Report(const bench::Reporter& reporter) const {
    reporter.Report("a second segment of " + std::to_string(size_) + " bytes beside copying them",
                    "ns/event", bodies_[2].cost - bodies_[1].cost, bodies_[0].cost);
  }

 private:
  template <typename Step>
  static void Repeat(const Step& step) {
    for (std::size_t i = 0; i < kSteps; ++i) {
      step();
      asm volatile("" ::: "memory");
    }
  }
  void Copy() { std::memcpy(event_.data() + kHead, field_.data(), size_); }
  void WriteOne() const { Demand(pwrite(file_, event_.data(), event_.size(), 0)); }
  void WriteTwo() {
    const iovec segments[] = {{event_.data(), kHead}, {field_.data(), size_}};
    Demand(pwritev(file_, segments, 2, 0));
  }
  void Demand(ssize_t written) const {
    if (written != static_cast<ssize_t>(kHead + size_)) bench::Fail("a write to memory failed");
  }

  int file_;
  std::size_t size_;
  std::vector<std::byte> field_;
  std::vector<std::byte> event_;
  std::array<bench::Body, 3> bodies_ = {{{[this] { Repeat([this] { Copy(); }); }},
                                         {[this] { Repeat([this] { WriteOne(); }); }},
                                         {[this] { Repeat([this] { WriteTwo(); }); }}}};
};

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::ParseOptions(argc, argv);
  const bench::Reporter reporter("segment", options.json);
  const int file = memfd_create("bench", MFD_CLOEXEC);
  if (file < 0) bench::Fail(std::string("memfd_create: ") + std::strerror(errno));
  // The last size is close to the maximum that an event can have.
  for (const std::size_t size : {64, 1024, 4096, 8000}) {
    Segment segment(file, size);
    for (int pass = 0; pass < 10; ++pass) segment.Measure();
    segment.Report(reporter);
  }
  close(file);
  return 0;
}
