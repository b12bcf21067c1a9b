// Finds W3C trace contexts in the fields of EventHeader events, and sets the TraceId and SpanId
// labels.
#ifndef TOOLS_COLLECTOR_CONVERT_TRACE_CONTEXT_H_
#define TOOLS_COLLECTOR_CONVERT_TRACE_CONTEXT_H_

#include "eventheader/decoder.h"
#include "nettrace/schema.h"

namespace collector {

// Returns whether the event's metadata names a field that may hold a trace or span id. These are
// `trace_id` or `span_id` of the event itself, and `ext_dt_traceId` or `ext_dt_spanId` of a struct,
// which OpenTelemetry's exporters write in the struct `PartA`. Does not check the name of the
// struct.
bool NamesTraceContext(const eh::EventView& event);

// Sets the TraceId and SpanId labels from the fields that NamesTraceContext describes. Accepts
// hexadecimal digits (a string or an array of characters) and bytes (binary or value128; value64
// for a span). The label of a span id is the number that the digits represent. Ignores values of
// other forms or with zeros only.
void LiftTraceContext(const eh::EventView& event, nettrace::Labels* labels);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_TRACE_CONTEXT_H_
