// Copies what can be read of hostile streams; the copy must be whole, without errors, and have the
// same events.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "libnettrace-writer/merge/copier.h"
#include "nettrace/reader.h"
#include "nettrace/time_ordered_reader.h"
#include "nettrace/verifier.h"
#include "nettrace/writer.h"

namespace {

// Gives what was written to who owns the vector.
class VectorSink : public nettrace::Sink {
 public:
  explicit VectorSink(std::vector<std::byte>* to) : to_(to) {}
  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override {
    to_->insert(to_->end(), bytes.begin(), bytes.end());
    *taken = bytes.size();
    return absl::OkStatus();
  }

 private:
  std::vector<std::byte>* to_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using Step = nettrace::Reader::Step;
  const auto bytes = std::as_bytes(std::span(data, size));
  auto opened = nettrace::Reader::Open(std::make_unique<nettrace::MemorySource>(bytes),
                                       {.max_table_bytes = std::size_t{16} << 20});
  if (!opened.ok()) return 0;
  nettrace::TimeOrderedReader reader(*std::move(opened));
  std::vector<std::byte> copy;
  const nettrace::TraceInfo clock = reader.reader().trace();
  auto writer = nettrace::Writer::Create(std::make_unique<VectorSink>(&copy), clock,
                                         nettrace::internal::CopyWriterOptions());
  if (!writer.ok()) return 0;
  nettrace::internal::MetadataCopies metadata(writer->get());
  nettrace::internal::Copier copier(&reader.reader(), clock, writer->get(), &metadata);
  absl::Status status;
  for (Step step = reader.Next(); status.ok() && step != Step::kEnd; step = reader.Next()) {
    if (step == Step::kEvent) status = copier.CopyEvent(reader.event());
    if (step == Step::kRemovedThread) status = copier.CopyRemovedThread(reader.removed_thread());
    if (step == Step::kSequencePoint) status = copier.CopySequencePoint(reader.sequence_point());
  }
  // What the format can hold but a row of the writer cannot: a refusal, not a crash.
  if (!status.ok() || !(*writer)->Finish().ok()) return 0;
  const auto report = nettrace::Verify(std::make_unique<nettrace::MemorySource>(copy));
  if (!report.ok() || report->events != copier.stats().events) __builtin_trap();
  for (const nettrace::Finding& finding : report->findings) {
    const std::string_view rule = finding.rule->name;
    // These are faults of the payloads and types themselves, which are copied as they are.
    const bool own = rule == "payload" || rule == "location-element" || rule == "trace-fields" ||
                     rule == "stack-size";
    if (finding.rule->severity == nettrace::Severity::kError && !own) __builtin_trap();
  }
  return 0;
}
