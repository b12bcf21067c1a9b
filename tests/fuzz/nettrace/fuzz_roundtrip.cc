// Merges hostile streams, one at a time. The copy must have all events, except those that the
// merger counts as not kept. It must have no errors, except those that are copied with payloads,
// types, stacks and the Trace block.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "nettrace/merger.h"
#include "nettrace/reader.h"
#include "nettrace/verifier.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  auto opened = nettrace::Reader::Open(std::make_unique<nettrace::MemorySource>(bytes),
                                       {.max_table_bytes = std::size_t{16} << 20});
  if (!opened.ok()) return 0;
  nettrace::Merger merger;
  merger.AddInput(*std::move(opened));
  std::vector<std::byte> copy;
  const auto keep = [&copy](std::span<const std::byte> block, std::size_t* taken) {
    copy.insert(copy.end(), block.begin(), block.end());
    *taken = block.size();
    return absl::OkStatus();
  };
  // A stream can have rows that the writer refuses. That must be an error, not a crash.
  if (!merger.Run(std::make_unique<nettrace::CallbackSink>(keep)).ok()) return 0;
  const auto report = nettrace::Verify(std::make_unique<nettrace::MemorySource>(copy));
  if (!report.ok() || report->events != merger.stats().events) __builtin_trap();
  if (report->events + merger.not_as_it_was(0).not_kept != merger.input(0).stats().events)
    __builtin_trap();
  for (const nettrace::Finding& finding : report->findings) {
    const std::string_view rule = finding.rule->name;
    // Payloads, types, stacks and the Trace block's fields are copied with their faults.
    const bool own = rule == "payload" || rule == "location-element" || rule == "trace-fields" ||
                     rule == "stack-size";
    if (finding.rule->severity == nettrace::Severity::kError && !own) __builtin_trap();
  }
  return 0;
}
