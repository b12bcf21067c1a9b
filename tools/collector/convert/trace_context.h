// Finds W3C trace contexts in the fields of EventHeader events, and sets the TraceId and SpanId
// labels.
#ifndef TOOLS_COLLECTOR_CONVERT_TRACE_CONTEXT_H_
#define TOOLS_COLLECTOR_CONVERT_TRACE_CONTEXT_H_

#include "eventheader/decoder.h"
#include "nettrace/schema.h"

namespace collector {

// Returns whether the event's metadata names a field that may hold a trace or span id. The names
// are `trace_id` and `span_id` in the event itself, and `ext_dt_traceId` and `ext_dt_spanId` in a
// struct. OpenTelemetry's exporters write the latter in the struct `PartA`, but the name of the
// struct is not checked.
bool NamesTraceContext(const eh::EventView& event);

// Sets the TraceId and SpanId labels from the fields that NamesTraceContext() describes, but reads
// fields in a struct only if the struct is named `PartA`. Accepts hexadecimal digits (a string or
// an array of characters) and bytes (binary or value128; value64 for a span). The label of a span
// id is the number that the digits represent. Ignores values of other forms, and ids that are 0.
void LiftTraceContext(const eh::EventView& event, nettrace::Labels* labels);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_TRACE_CONTEXT_H_
