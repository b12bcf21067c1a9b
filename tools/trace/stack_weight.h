// The weights of events: the numbers that events add to the sums of their stacks.
#ifndef TOOLS_TRACE_STACK_WEIGHT_H_
#define TOOLS_TRACE_STACK_WEIGHT_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "nettrace/reader.h"

namespace trace {

// Field of an off-CPU event (IsOffCpu) with the time that the thread had no CPU, in ns.
inline constexpr std::string_view kOffCpuField = "Value";

// Returns whether the event is a sample of CPU time.
bool IsCpuSample(const nettrace::EventMetadata& metadata);
// Returns whether the event describes a time in which a thread had no CPU.
bool IsOffCpu(const nettrace::EventMetadata& metadata);
// Returns whether the event has the label kStackCutLabel: its stack may lack frames.
bool IsStackCut(const nettrace::Event& event);
// Returns the number in a top-level field of the event; nullopt if the field has no number, a
// negative number, or a float of 2^63 or more.
std::optional<std::uint64_t> NumberIn(const nettrace::Event& event, std::string_view field);
// Returns the weight of the event. For an off-CPU event (IsOffCpu), it is the time without a CPU in
// ns, or nullopt if the event does not state it. For any other event, it is 1.
std::optional<std::uint64_t> StackWeight(const nettrace::Event& event);

}  // namespace trace

#endif  // TOOLS_TRACE_STACK_WEIGHT_H_
