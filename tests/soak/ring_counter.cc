// Counts the events of ring_writer.cc in the .nettrace files of a session, which may be compressed.
//   ring_counter FILE...
// Prints a JSON object on one line: {"threads": [[service, thread, shown, twice, next], ...],
// "lost"}. `shown` is the number of different events of the thread, `twice` the number of events
// that repeat an earlier event, `next` the number after the highest one. `lost` is the number of
// losses that the files show for all threads.
#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "nettrace/payload.h"
#include "nettrace/reader.h"
#include "nettrace/source.h"
#include "tools/trace/zstd_source.h"

namespace {

// This number and higher ones are an error in the file.
constexpr std::uint64_t kMaxNumber = std::uint64_t{1} << 32;

class NumberVisitor : public nettrace::PayloadVisitor {
 public:
  void OnUInt(std::uint64_t value) override {
    if (count < 3) numbers[count] = value;
    ++count;
  }
  std::uint64_t numbers[3] = {};
  std::size_t count = 0;
};

struct Thread {
  std::vector<bool> has;
  std::uint64_t shown = 0;
  std::uint64_t twice = 0;
};

class Counter {
 public:
  // Counts the events of a file. Returns false, and prints the error, if the file cannot be read to
  // its end.
  bool Read(const char* path) {
    auto source = nettrace::FdSource::Open(path);
    if (!source.ok()) return Complain(path, source.status());
    auto stream = trace::OpenCompressed(*std::move(source));
    if (!stream.ok()) return Complain(path, stream.status());
    auto reader = nettrace::Reader::Open(*std::move(stream));
    if (!reader.ok()) return Complain(path, reader.status());
    for (auto step = (*reader)->Next(); step != nettrace::Reader::Step::kEnd;
         step = (*reader)->Next()) {
      if (step == nettrace::Reader::Step::kEvent) Add((*reader)->event());
    }
    lost_ += (*reader)->stats().lost;
    return (*reader)->status().ok() || Complain(path, (*reader)->status());
  }

  void Print() const {
    const char* separator = "";
    std::printf("{\"threads\":[");
    for (const auto& [key, thread] : threads_) {
      std::printf("%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%zu]",
                  std::exchange(separator, ","), key.first, key.second, thread.shown, thread.twice,
                  thread.has.size());
    }
    std::printf("],\"lost\":%" PRIu64 "}\n", lost_);
  }

 private:
  static bool Complain(const char* path, const absl::Status& status) {
    std::fprintf(stderr, "%s: %s\n", path, status.ToString().c_str());
    return false;
  }

  void Add(const nettrace::Event& event) {
    if (event.metadata->provider != "Ring_Load") return;
    NumberVisitor visitor;
    const absl::Status status =
        nettrace::VisitPayload(event.metadata->fields, event.payload, &visitor);
    const std::uint64_t number = visitor.numbers[2];
    if (!status.ok() || visitor.count != 3 || number >= kMaxNumber) {
      std::fprintf(stderr, "an event has the wrong fields\n");
      return;
    }
    Thread& thread = threads_[{visitor.numbers[0], visitor.numbers[1]}];
    if (number >= thread.has.size()) thread.has.resize(number + 1);
    if (thread.has[number]) {
      ++thread.twice;
    } else {
      thread.has[number] = true;
      ++thread.shown;
    }
  }

  std::map<std::pair<std::uint64_t, std::uint64_t>, Thread> threads_;
  std::uint64_t lost_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Counter counter;
  bool is_read = true;
  for (int i = 1; i < argc; ++i) is_read = counter.Read(argv[i]) && is_read;
  counter.Print();
  return is_read ? 0 : 1;
}
