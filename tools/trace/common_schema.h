// Finds log records of OpenTelemetry in events, and splits them into their parts. OpenTelemetry's
// exporters to user_events write a record as an event in Common Schema 4.0. The event has these
// fields, in any order, and no others:
//
//   __csver__   the number 0x400
//   PartA       optional struct: time, ext_dt_traceId, ext_dt_spanId, ext_dt_traceFlags,
//               ext_cloud_role and ext_cloud_roleInstance. Nested structs stand for such
//               names: a member traceId of a struct ext_dt stands for ext_dt_traceId.
//   PartB       struct: _typeName with the text "Log"; optional: name, body, severityNumber,
//               severityText
//   PartC       optional struct: the attributes
//
// An event that has one of these members twice or with another type is not a log record, but an
// ordinary event. The same holds for a severity above 24, and for a time or id that cannot be read.
#ifndef TOOLS_TRACE_COMMON_SCHEMA_H_
#define TOOLS_TRACE_COMMON_SCHEMA_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "nettrace/reader.h"
#include "tools/trace/payload_json.h"
#include "tools/trace/value_output.h"

namespace trace {

// The parts of a log record that are not its body or attributes. Texts are valid UTF-8, and empty
// if the record does not have them.
struct LogRecord {
  std::optional<absl::Time> time;
  std::optional<std::array<std::byte, 16>> trace_id;  // not zero
  std::optional<std::uint64_t> span_id;               // not zero
  std::uint32_t trace_flags = 0;
  std::uint8_t severity = 0;  // SeverityNumber of OpenTelemetry, at most 24; 0: unspecified
  std::string severity_text;
  std::string name;  // name of the event in OpenTelemetry
  bool has_body = false;
  std::string service;           // name of the service: PartA.ext_cloud_role
  std::string service_instance;  // PartA.ext_cloud_roleInstance
};

// Returns whether the fields of a metadata row are those of Common Schema. Only the values of an
// event decide whether the event is a log record. PayloadJson stores the result in RowNotes.
bool HasCommonSchema(const nettrace::EventMetadata& metadata);

// Returns the log record that the event contains. Returns nullopt for other events, and always if
// `payloads` shows raw values.
std::optional<LogRecord> ReadLogRecord(const nettrace::Event& event, PayloadJson* payloads);

// The following two functions pass parts of an event to `out`, and call BeginObject and EndObject
// with `repeats_names` = true. ReadLogRecord must have returned a record for the event.
//
// Passes the body, a value without a key. Passes nothing if the record has no body.
void PutLogBody(const nettrace::Event& event, PayloadJson* payloads, ValueOutput* out);
// Passes the attributes, each after its key, and the members of PartA and PartB that LogRecord does
// not have: PartB.eventId with the key eventId, others with keys such as "PartA.name". Several of
// them may have the same key.
void PutLogAttributes(const nettrace::Event& event, PayloadJson* payloads, ValueOutput* out);

// Returns the short name of a SeverityNumber, such as "INFO" or "WARN2"; the digits of a number
// without a name.
std::string SeverityName(std::uint8_t severity);

}  // namespace trace

#endif  // TOOLS_TRACE_COMMON_SCHEMA_H_
