// Converts samples for one trace, with a converter and a trace writer, as a capture with one
// session does.
#ifndef TESTS_SUPPORT_COLLECTOR_SAMPLE_TRACE_H_
#define TESTS_SUPPORT_COLLECTOR_SAMPLE_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/collector/convert/sample_converter.h"
#include "tools/collector/convert/trace_writer.h"
#include "tools/collector/identity/task_tracker.h"
#include "tools/collector/perf/perf_records.h"

namespace collector::testing {

// A trace to which samples are written.
class SampleTrace {
 public:
  // `writer` and `tasks` must outlive this object. `cpus` are the numbers of the CPUs that samples
  // come from.
  SampleTrace(nettrace::Writer* writer, TaskTracker* tasks, const std::vector<int>& cpus,
              const SchemaShares::Limits& limits = {})
      : tasks_(tasks), converter_(tasks, limits), trace_(writer, tasks, /*start=*/0) {
    for (const int number : cpus) trace_.AddCpu(number);
  }

  absl::Status AddTracepoint(int id, const std::string& system, const std::string& event,
                             const std::string& format) {
    return converter_.AddTracepoint(id, system, event, format);
  }

  void AddUniversalEvent(int id, const std::string& name) {
    converter_.AddUniversalEvent(id, name);
  }

  // Writes a sample of the CPU at index `cpu` of `cpus`. A sample of an unknown tracepoint counts
  // as lost.
  absl::Status Write(std::size_t cpu, const SampleRecord& sample, std::uint64_t timestamp) {
    std::uint16_t id = 0;
    if (!ParseTracepointId(sample.raw, &id) || !converter_.Knows(id)) return AddLost(cpu, 1);
    return trace_.Write(cpu, converter_.Convert(id, sample, timestamp));
  }
  // Reads the description of a kind of .NET event from a sample that is passed to Write later.
  void Learn(const SampleRecord& sample, std::uint64_t timestamp) {
    std::uint16_t id = 0;
    if (ParseTracepointId(sample.raw, &id)) converter_.Learn(id, sample, timestamp);
  }
  absl::Status WriteProcessEvent(const ProcessEvent& event) {
    return trace_.WriteProcessEvent(event, tasks_->Find(event.pid, event.pid, event.timestamp));
  }
  absl::Status AddLost(std::size_t cpu, std::uint64_t count) { return trace_.AddLost(cpu, count); }
  absl::Status WriteSequencePoint(std::uint64_t timestamp) {
    if (absl::Status status = trace_.WriteSequencePoint(timestamp); !status.ok()) return status;
    tasks_->DropEnded(dropped_);
    dropped_ = timestamp;
    return absl::OkStatus();
  }

  bool interval_is_full() const { return trace_.interval_is_full(); }
  std::size_t thread_rows() const { return trace_.thread_rows(); }
  TraceWriter::Stats stats() const { return trace_.stats(); }

 private:
  TaskTracker* tasks_;
  SampleConverter converter_;
  TraceWriter trace_;
  std::uint64_t dropped_ = 0;
};

}  // namespace collector::testing

#endif  // TESTS_SUPPORT_COLLECTOR_SAMPLE_TRACE_H_
