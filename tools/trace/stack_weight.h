// The numbers that events add to the sums of their stacks.
#ifndef TOOLS_TRACE_STACK_WEIGHT_H_
#define TOOLS_TRACE_STACK_WEIGHT_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "nettrace/reader.h"

namespace trace {

// Field of a time without a CPU that has its length in ns.
inline constexpr std::string_view kOffCpuField = "Value";

// Returns whether the event is a sample of a CPU.
bool IsCpuSample(const nettrace::EventMetadata& metadata);
// Returns whether the event is a time in which a thread had no CPU.
bool IsOffCpu(const nettrace::EventMetadata& metadata);
// Returns whether the stack of the event ends because it has as many frames as were recorded.
bool IsStackCut(const nettrace::Event& event);
// Returns the number in a top-level field of the event; nullopt if there is none, or it is
// negative.
std::optional<std::uint64_t> NumberIn(const nettrace::Event& event, std::string_view field);
// Returns the length of a time without a CPU in ns, and 1 for any other event; nullopt if the event
// has no length.
std::optional<std::uint64_t> StackWeight(const nettrace::Event& event);

}  // namespace trace

#endif  // TOOLS_TRACE_STACK_WEIGHT_H_
