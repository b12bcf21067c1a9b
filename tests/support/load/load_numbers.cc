// Prints which of load_service's numbered events are in .nettrace files. Each file is a JSON object
// on one line: {"file", "complete", "findings", "events", "lost", "numbered", "returns", "first",
// "last", "twice", "numbers": [[pid, thread, tracepoint, from, to], ...]}.
//
// `numbers` are inclusive ranges in order. The numbers count the events of one thread and
// tracepoint from 0, so that a gap is a missing event. Without --calls, every third event of a
// thread goes to the same tracepoint. Each tracepoint has separate numbers, because the recording
// of one may begin a moment earlier than that of another. `twice` is the number of duplicate
// events. `first` and `last` are the times of the first and last numbered event, in ticks, or null.
// `returns` counts the ends of the calls of load_service --calls, which have no number. `findings`
// is the number of findings of nettrace verify --strict. Of a file that is cut, only the intact
// part is counted. With --pid, only events of this process are numbered.
#include <algorithm>
#include <cinttypes>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/payload.h"
#include "nettrace/reader.h"
#include "nettrace/source.h"
#include "nettrace/verifier.h"
#include "tools/trace/zstd_source.h"

namespace {

constexpr unsigned kNumberBits = 20;  // With --calls.
constexpr unsigned kTracepoints = 3;  // Without --calls.
constexpr std::string_view kCall = "sched_rr_get_interval";

// Reads the fields that identify an event.
class NumberVisitor : public nettrace::PayloadVisitor {
 public:
  std::optional<std::uint64_t> thread;
  std::optional<std::uint64_t> number;
  // First argument of the call.
  std::optional<std::uint64_t> argument;

  void OnName(std::string_view name) override { name_ = name; }
  void OnInt(std::int64_t value) override { OnUInt(static_cast<std::uint64_t>(value)); }
  void OnUInt(std::uint64_t value) override {
    if (name_ == "thread") thread = value;
    if (name_ == "number") number = value;
    if ((name_ == "pid" || name_ == "args") && !argument) argument = value;
  }

 private:
  std::string_view name_;
};

struct Writer {
  std::uint64_t pid = 0;
  std::uint64_t thread = 0;
  std::uint64_t tracepoint = 0;
  friend auto operator<=>(const Writer&, const Writer&) = default;
};

struct Range {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};

class FileNumbers {
 public:
  explicit FileNumbers(std::optional<std::uint64_t> pid) : pid_(pid) {}

  void Add(const nettrace::Event& event) {
    const nettrace::EventMetadata& metadata = *event.metadata;
    const std::uint64_t pid = event.thread->process_id.value_or(0);
    if (pid_ && pid != *pid_) return;
    if (metadata.provider == "syscalls" && metadata.name.starts_with("sys_exit_") &&
        metadata.name.ends_with(kCall)) {
      ++returns_;
      return;
    }
    const bool is_call = metadata.provider == "syscalls" || metadata.provider == "raw_syscalls";
    if (!is_call && metadata.provider != "Load") return;
    NumberVisitor visitor;
    const absl::Status status = nettrace::VisitPayload(metadata.fields, event.payload, &visitor);
    if (!status.ok()) return;
    if (is_call && visitor.argument) {
      const std::uint64_t argument = *visitor.argument;
      Add({pid, (argument >> kNumberBits) - 1, 0}, argument & ((1U << kNumberBits) - 1), event);
    } else if (visitor.thread && visitor.number) {
      Add({pid, *visitor.thread, *visitor.number % kTracepoints}, *visitor.number / kTracepoints,
          event);
    }
  }

  void Print(const std::string& file, std::uint64_t findings,
             const nettrace::Reader::Stats& stats) {
    Merge();
    std::printf("{\"file\":\"%s\",\"complete\":%s,\"findings\":%" PRIu64 ",\"events\":%" PRIu64
                ",\"lost\":%" PRIu64 ",\"numbered\":%" PRIu64 ",\"returns\":%" PRIu64 ",",
                file.c_str(), stats.complete ? "true" : "false", findings, stats.events, stats.lost,
                numbered_, returns_);
    PrintTime("first", first_);
    PrintTime("last", last_);
    std::printf("\"twice\":%" PRIu64 ",\"numbers\":[", twice_);
    const char* separator = "";
    for (const auto& [writer, ranges] : ranges_) {
      for (const Range& range : ranges) {
        std::printf("%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", separator,
                    writer.pid, writer.thread, writer.tracepoint, range.from, range.to);
        separator = ",";
      }
    }
    std::printf("]}\n");
  }

 private:
  static void PrintTime(const char* name, const std::optional<std::uint64_t>& time) {
    std::printf("\"%s\":%s,", name, time ? std::to_string(*time).c_str() : "null");
  }

  void Add(const Writer& writer, std::uint64_t number, const nettrace::Event& event) {
    ++numbered_;
    first_ = std::min(first_.value_or(event.timestamp), event.timestamp);
    last_ = std::max(last_.value_or(event.timestamp), event.timestamp);
    std::vector<Range>& ranges = ranges_[writer];
    if (!ranges.empty() && ranges.back().to + 1 == number) {
      ++ranges.back().to;
    } else {
      ranges.push_back({number, number});
    }
  }

  // Sorts the ranges of each writer, and counts the numbers that are in more than one range.
  void Merge() {
    for (auto& [writer, ranges] : ranges_) {
      absl::c_sort(ranges, [](const Range& a, const Range& b) { return a.from < b.from; });
      std::vector<Range> merged;
      for (const Range& range : ranges) {
        if (merged.empty() || range.from > merged.back().to + 1) {
          merged.push_back(range);
          continue;
        }
        Range& before = merged.back();
        if (range.from <= before.to) twice_ += std::min(range.to, before.to) - range.from + 1;
        before.to = std::max(before.to, range.to);
      }
      ranges = std::move(merged);
    }
  }

  const std::optional<std::uint64_t> pid_;
  std::map<Writer, std::vector<Range>> ranges_;
  std::uint64_t numbered_ = 0;
  std::uint64_t returns_ = 0;
  std::uint64_t twice_ = 0;
  std::optional<std::uint64_t> first_;
  std::optional<std::uint64_t> last_;
};

absl::StatusOr<std::unique_ptr<nettrace::Source>> OpenFile(const std::string& path) {
  auto file = nettrace::FdSource::Open(path);
  if (!file.ok()) return file.status();
  return trace::OpenCompressed(*std::move(file));
}

absl::Status PrintFile(const std::string& path, std::optional<std::uint64_t> pid) {
  auto source = OpenFile(path);
  if (!source.ok()) return source.status();
  const auto report = nettrace::Verify(*std::move(source));
  if (!report.ok()) return report.status();
  source = OpenFile(path);
  if (!source.ok()) return source.status();
  auto opened = nettrace::Reader::Open(*std::move(source));
  if (!opened.ok()) return opened.status();
  nettrace::Reader& reader = **opened;
  FileNumbers numbers(pid);
  using Step = nettrace::Reader::Step;
  for (Step step = reader.Next(); step != Step::kEnd; step = reader.Next()) {
    if (step == Step::kEvent) numbers.Add(reader.event());
  }
  numbers.Print(path, report->errors + report->hazards, reader.stats());
  // A file that is cut is not an error here, because "complete" reports it.
  return absl::IsDataLoss(reader.status()) ? absl::OkStatus() : reader.status();
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> arguments = std::span(argv, static_cast<std::size_t>(argc)).subspan(1);
  const bool has_pid = arguments.size() > 1 && std::string_view(arguments[0]) == "--pid";
  const std::span<char*> files = arguments.subspan(has_pid ? 2 : 0);
  if (files.empty() || files[0][0] == '-') {
    std::fprintf(stderr, "usage: load_numbers [--pid PID] FILE...\n");
    return 2;
  }
  std::optional<std::uint64_t> pid;
  if (has_pid) pid = std::strtoull(arguments[1], nullptr, 10);
  for (const char* file : files) {
    if (const absl::Status status = PrintFile(file, pid); !status.ok()) {
      std::fprintf(stderr, "load_numbers: %s: %s\n", file, status.ToString().c_str());
      return 1;
    }
  }
  return 0;
}
