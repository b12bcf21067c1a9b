// Passes any records of a perf ring to DeferredStacks, which joins samples with the user parts of
// their stacks. Checks the size of each joined stack, and that every sample whose user part was
// deferred is joined or counted as missing it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "tools/collector/perf/deferred_stacks.h"

namespace {

void Require(bool promise) {
  if (!promise) std::abort();
}

// Calls `use(record)` for each record in the input, up to the first one whose size is wrong.
template <typename Use>
void ForEachRecord(std::span<const std::byte> input, const Use& use) {
  while (input.size() >= sizeof(perf_event_header)) {
    const std::size_t size = collector::LoadHeader(input).size;
    if (size < sizeof(perf_event_header) || size % 8 != 0 || size > input.size()) return;
    collector::PerfRecord record;
    record.bytes = input.first(size);
    if (collector::ParseTimestamp(record.bytes, &record.timestamp)) use(record);
    input = input.subspan(size);
  }
}

bool EndsWithMark(std::span<const std::byte> stack) {
  return stack.size() >= 16 && collector::internal::Load<std::uint64_t>(stack, stack.size() - 16) ==
                                   collector::kDeferredMark;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::span<const std::byte> input = std::as_bytes(std::span(bytes, size));
  collector::DeferredStacks stacks;
  for (const std::uint64_t now : {std::uint64_t{1000}, ~std::uint64_t{0}}) {
    const std::uint64_t ready =
        stacks.Collect(now, [input](const auto& look) { ForEachRecord(input, look); });
    Require(ready <= now);
    ForEachRecord(input, [&](const collector::PerfRecord& record) {
      collector::SampleRecord sample;
      if (!collector::ParseSample(record, &sample)) return;
      const std::uint64_t missing = stacks.missing();
      collector::SampleRecord joined = sample;
      stacks.Join(&joined);
      Require(joined.stack.has_value() == sample.stack.has_value());
      if (!sample.stack) return;
      const std::span<const std::byte> before = sample.stack->entries;
      const std::span<const std::byte> after = joined.stack->entries;
      const bool lacks_user_frames = joined.stack->lacks_user_frames;
      Require(after.size() % 8 == 0);
      Require(lacks_user_frames == (stacks.missing() == missing + 1));
      if (!EndsWithMark(before)) {
        Require(after.data() == before.data() && !lacks_user_frames);
        return;
      }
      // kDeferredMark and the cookie, of 8 bytes each, are removed if the user part is missing.
      // Else PERF_CONTEXT_USER and at least one frame replace them.
      Require(lacks_user_frames ? after.size() == before.size() - 16
                                : after.size() >= before.size());
    });
  }
  return 0;
}
