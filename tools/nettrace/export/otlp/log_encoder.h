// Encodes messages of OTLP, the protocol of OpenTelemetry, in protobuf and in JSON: LogRecord,
// Span, Resource, InstrumentationScope, and the requests ExportLogsServiceRequest and
// ExportTraceServiceRequest, which consist of them.
#ifndef TOOLS_NETTRACE_EXPORT_OTLP_LOG_ENCODER_H_
#define TOOLS_NETTRACE_EXPORT_OTLP_LOG_ENCODER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tools/trace/value_output.h"

namespace tools::otlp {

enum class Encoding : std::uint8_t { kProtobuf, kJson };

// The kinds of records in requests.
enum class Signal : std::uint8_t { kLogs, kSpans };

// The fields of a LogRecord that are not attributes.
struct RecordHead {
  std::uint64_t time = 0;      // ns since 1970; 0 if unknown
  std::uint64_t observed = 0;  // time at which the event was written, in ns since 1970
  std::uint8_t severity = 0;   // SeverityNumber; 0: unspecified
  std::string_view severity_text;
  std::string_view event_name;  // valid UTF-8
  std::optional<std::array<std::byte, 16>> trace_id;
  std::optional<std::uint64_t> span_id;
  std::uint32_t flags = 0;  // W3C trace flags
};

// A reference to a span that is not the parent.
struct SpanLink {
  std::array<std::byte, 16> trace_id = {};
  std::uint64_t span_id = 0;
};

// The fields of a Span that are not attributes. Its kind is SPAN_KIND_INTERNAL.
struct SpanHead {
  std::array<std::byte, 16> trace_id = {};
  std::uint64_t span_id = 0;
  std::optional<std::uint64_t> parent;
  std::string name;         // valid UTF-8
  std::uint64_t start = 0;  // ns since 1970
  std::uint64_t end = 0;
  std::vector<SpanLink> links;
};

// An attribute of a Span, as the encoder writes it.
struct EncodedAttribute {
  std::string key;
  std::string bytes;
};

// The records of a request that share a resource, by scope, in the order in which they were added.
struct ResourceGroup {
  struct Scope {
    std::string scope;    // an encoded InstrumentationScope
    std::string records;  // as LogEncoder::AppendRecord writes them
  };
  std::string resource;  // an encoded Resource
  std::vector<Scope> scopes;
  absl::flat_hash_map<std::string, std::size_t> places;  // indices in `scopes`, by Scope::scope
};

// Encodes one message at a time. The caller calls BeginRecord, BeginResource or BeginScope, then
// adds attributes, and finally calls Take. An attribute is a call of Attribute and then a value.
//
// After BeginFields, the members of a payload may follow as attributes (PayloadJson::PutMembers).
// The member named message, Message or _m becomes the body of the record. A member whose name is
// that of another attribute of this project (IsReserved) gets the prefix "field.". If several
// members share a name, their attribute is an array of their values. A null member is left out;
// null in an array is a value without content.
//
// Not thread-safe.
class LogEncoder : public trace::ValueOutput {
 public:
  static std::unique_ptr<LogEncoder> Create(Encoding encoding);

  virtual void BeginRecord(const RecordHead& head) = 0;
  virtual void BeginResource() = 0;
  virtual void BeginScope(std::string_view name) = 0;
  virtual void Attribute(std::string_view key) = 0;  // `key` is valid UTF-8
  virtual void BeginBody() = 0;                      // the next value becomes the body
  // The parameter states whether members of the payload may share names.
  virtual void BeginFields(bool repeats_names) = 0;
  virtual void EndFields() = 0;
  // Between BeginMerged and EndMerged, a call of Key precedes each value. If several keys are the
  // same, their attribute is an array of their values.
  virtual void BeginMerged() = 0;
  virtual void EndMerged() = 0;
  // Ends the message and returns it. The result is valid until another function is called.
  virtual std::string_view Take() = 0;

  // Begins the attributes of a Span. The caller adds them like those of a record, and calls
  // TakeAttributes. No member of a payload becomes a body.
  virtual void BeginAttributes() = 0;
  virtual std::vector<EncodedAttribute> TakeAttributes() = 0;
  // Returns an encoded Span. If several attributes have the same key, the Span has only the last
  // of them.
  virtual std::string_view EncodeSpan(const SpanHead& head,
                                      const std::vector<EncodedAttribute>& attributes) = 0;

  // Appends an encoded LogRecord or Span to ResourceGroup::Scope::records.
  virtual void AppendRecord(std::string_view record, std::string* records) const = 0;
  // Appends a part of another ResourceGroup::Scope::records: the bytes that one call of
  // AppendRecord has appended.
  virtual void CopyRecord(std::string_view appended, std::string* records) const = 0;
  // Appends an ExportLogsServiceRequest or ExportTraceServiceRequest. It is larger than its
  // records, scopes and resources by at most kFrameSize bytes, and by kFrameSize bytes more for
  // each record, scope and resource.
  virtual void AppendRequest(Signal signal, const std::vector<ResourceGroup>& groups,
                             std::string* out) const = 0;
  static constexpr std::size_t kFrameSize = 40;

  // Returns whether attributes that LogRequests writes may have this name.
  static bool IsReserved(std::string_view name);
};

}  // namespace tools::otlp

#endif  // TOOLS_NETTRACE_EXPORT_OTLP_LOG_ENCODER_H_
