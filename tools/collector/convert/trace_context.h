// W3C trace contexts in the fields of EventHeader events, for the TraceId and SpanId labels.
#ifndef TOOLS_COLLECTOR_CONVERT_TRACE_CONTEXT_H_
#define TOOLS_COLLECTOR_CONVERT_TRACE_CONTEXT_H_

#include "eventheader/decoder.h"
#include "nettrace/schema.h"

namespace collector {

// Whether the event's metadata names a field that may hold a trace or span id: `trace_id` or
// `span_id` of the event itself, `ext_dt_traceId` or `ext_dt_spanId` of a struct `PartA`, as
// OpenTelemetry's exporters have them.
bool NamesTraceContext(const eh::EventView& event);

// Sets the labels from such fields: hexadecimal digits (a string or an array of characters), or the
// bytes (binary or value128; value64 for a span). A span id's label is the number that the digits
// are. A value of another form, or all zeros, is no id and sets nothing.
void LiftTraceContext(const eh::EventView& event, nettrace::Labels* labels);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_TRACE_CONTEXT_H_
