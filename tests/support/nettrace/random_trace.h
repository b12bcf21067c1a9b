// Writes random traces and keeps what it wrote: schemas, values, threads, labels and stacks,
// removed threads, flushes, losses, sizes of blocks and intervals.
#ifndef TESTS_SUPPORT_NETTRACE_RANDOM_TRACE_H_
#define TESTS_SUPPORT_NETTRACE_RANDOM_TRACE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nettrace/writer.h"
#include "tests/support/nettrace/random_schema.h"
#include "tests/support/nettrace/writer_to_string.h"

namespace nettrace::testing {

// An event as it was passed to the writer.
struct WrittenEvent {
  EventRow row;
  EventMetadata metadata;
  ThreadInfo thread;
  ThreadInfo capture_thread;
  Labels labels;
  std::vector<std::uint64_t> stack;
  std::vector<std::byte> payload;
  // Values of the payload as JSON. nullopt if the payload is random bytes, which may not fit its
  // fields.
  std::optional<std::string> json;
};

// A random trace. With RandomFor::kTraceEvent, TraceEvent can read the trace, all payloads match
// their fields, and no two events have the same time.
class RandomTrace {
 public:
  RandomTrace(unsigned seed, RandomFor whom);

  // Writes the trace to its end. Each step writes a few events, and sometimes, before them,
  // something else, such as a loss or the end of an interval.
  void Write(int steps);

  // Returns the first error of the writer. The trace is valid, so an error is a fault of the
  // writer.
  const absl::Status& status() const { return status_; }
  // Events of each capture thread, in order.
  const std::map<ThreadIndex, std::deque<WrittenEvent>>& events() const { return events_; }
  // Lost events that a reader can detect.
  std::uint64_t lost() const { return lost_; }
  const TraceInfo& info() const { return info_; }
  const std::string& bytes() const { return *out_->written; }
  const Writer::Stats& stats() const { return out_->writer->stats(); }

 private:
  Writer& writer() { return *out_->writer; }
  // Keeps the first failure; returns whether `status` is OK.
  bool Check(const absl::Status& status);
  void Step();
  EventMetadata NewMetadata();
  void AddMetadata();
  void AddThread();
  void RemoveThread();
  void SequencePoint();
  void AddLost();
  void WriteEvents();
  void Vary(WrittenEvent* event);

  Randomly random_;
  absl::Status status_;
  TraceInfo info_;
  std::unique_ptr<WriterToString> out_;
  std::map<ThreadIndex, std::deque<WrittenEvent>> events_;
  std::uint64_t lost_ = 0;
  std::vector<EventMetadata> schemas_;            // all rows, including flushed ones
  std::map<MetadataId, EventMetadata> metadata_;  // rows that are defined, by id
  std::map<ThreadIndex, ThreadInfo> threads_;
  std::map<ThreadIndex, std::uint64_t> pending_lost_;
  std::uint64_t now_ = 0;
};

}  // namespace nettrace::testing

#endif  // TESTS_SUPPORT_NETTRACE_RANDOM_TRACE_H_
