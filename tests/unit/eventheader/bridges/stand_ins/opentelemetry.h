// The parts of the interface of OpenTelemetry C++ that this library's bridge for it uses, so that
// the mapping can be tested where the package is not installed. Names and types are those of the
// SDK; texts have the SDK's own type string_view, as in builds of the SDK for older standards.
#ifndef TESTS_UNIT_EVENTHEADER_BRIDGES_STAND_INS_OPENTELEMETRY_H_
#define TESTS_UNIT_EVENTHEADER_BRIDGES_STAND_INS_OPENTELEMETRY_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace opentelemetry {

namespace nostd {
class string_view {
 public:
  string_view() = default;
  // Implicit conversions, as in the SDK, so that callers can pass other types of text.
  // NOLINTBEGIN(google-explicit-constructor)
  string_view(const char* text) : data_(text), size_(std::strlen(text)) {}
  string_view(const char* text, std::size_t size) : data_(text), size_(size) {}
  string_view(const std::string& text) : data_(text.data()), size_(text.size()) {}
  // NOLINTEND(google-explicit-constructor)
  const char* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  const char* data_ = "";
  std::size_t size_ = 0;
};
using std::span;
using std::variant;
using std::visit;
}  // namespace nostd

namespace context {
class Context {};
}  // namespace context

namespace common {
class SystemTimestamp {
 public:
  SystemTimestamp() = default;
  explicit SystemTimestamp(std::chrono::system_clock::time_point time) : time_(time) {}
  // NOLINTNEXTLINE(google-explicit-constructor): as in the SDK
  operator std::chrono::system_clock::time_point() const noexcept { return time_; }

 private:
  std::chrono::system_clock::time_point time_;
};
using AttributeValue =
    nostd::variant<bool, std::int32_t, std::int64_t, std::uint32_t, double, const char*,
                   nostd::string_view, nostd::span<const bool>, nostd::span<const std::int32_t>,
                   nostd::span<const std::int64_t>, nostd::span<const std::uint32_t>,
                   nostd::span<const double>, nostd::span<const nostd::string_view>, std::uint64_t,
                   nostd::span<const std::uint64_t>, nostd::span<const std::uint8_t>>;
}  // namespace common

namespace logs {
enum class Severity : std::uint8_t { kInvalid = 0, kTrace = 1 };
}  // namespace logs

namespace trace {
template <int kBytes>
class Id {
 public:
  static constexpr int kSize = kBytes;
  Id() = default;
  explicit Id(nostd::span<const std::uint8_t, kBytes> bytes) {
    std::memcpy(bytes_.data(), bytes.data(), kBytes);
  }
  nostd::span<const std::uint8_t, kBytes> Id_() const { return bytes_; }
  bool IsValid() const {
    for (const std::uint8_t byte : bytes_) {
      if (byte != 0) return true;
    }
    return false;
  }
  void ToLowerBase16(nostd::span<char, 2 * kBytes> out) const {
    for (std::size_t i = 0; i < kBytes; ++i) {
      out[2 * i] = "0123456789abcdef"[bytes_[i] >> 4];
      out[2 * i + 1] = "0123456789abcdef"[bytes_[i] & 15];
    }
  }

 private:
  std::array<std::uint8_t, kBytes> bytes_ = {};
};
struct TraceId : Id<16> {
  using trace::Id<16>::Id;
  nostd::span<const std::uint8_t, 16> Id() const { return Id_(); }
};
struct SpanId : Id<8> {
  using trace::Id<8>::Id;
  nostd::span<const std::uint8_t, 8> Id() const { return Id_(); }
};
class TraceFlags {
 public:
  TraceFlags() = default;
  explicit TraceFlags(std::uint8_t flags) : flags_(flags) {}
  std::uint8_t flags() const { return flags_; }

 private:
  std::uint8_t flags_ = 0;
};
class SpanContext {
 public:
  SpanContext(TraceId trace, SpanId span, TraceFlags flags, bool /*is_remote*/)
      : trace_(trace), span_(span), flags_(flags) {}
  const TraceId& trace_id() const { return trace_; }
  const SpanId& span_id() const { return span_; }

 private:
  TraceId trace_;
  SpanId span_;
  TraceFlags flags_;
};
enum class SpanKind { kInternal, kServer, kClient, kProducer, kConsumer };
enum class StatusCode { kUnset, kOk, kError };
}  // namespace trace

namespace sdk {

namespace common {
using OwnedAttributeValue =
    nostd::variant<bool, std::int32_t, std::uint32_t, std::int64_t, double, std::string,
                   std::vector<bool>, std::vector<std::int32_t>, std::vector<std::uint32_t>,
                   std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>,
                   std::uint64_t, std::vector<std::uint64_t>, std::vector<std::uint8_t>>;
struct Owner {
  OwnedAttributeValue operator()(const char* text) const { return std::string(text); }
  OwnedAttributeValue operator()(nostd::string_view text) const {
    return std::string(text.data(), text.size());
  }
  OwnedAttributeValue operator()(nostd::span<const nostd::string_view> texts) const {
    std::vector<std::string> result;
    for (const nostd::string_view text : texts) result.emplace_back(text.data(), text.size());
    return result;
  }
  template <typename T>
  OwnedAttributeValue operator()(nostd::span<const T> values) const {
    return std::vector<T>(values.begin(), values.end());
  }
  template <typename T>
  OwnedAttributeValue operator()(T value) const {
    return value;
  }
};
class AttributeMap : public std::unordered_map<std::string, OwnedAttributeValue> {
 public:
  AttributeMap() = default;
  AttributeMap(
      std::initializer_list<std::pair<nostd::string_view, opentelemetry::common::AttributeValue>>
          attributes) {
    for (const auto& [name, value] : attributes) Set(name, value);
  }
  void Set(nostd::string_view name, const opentelemetry::common::AttributeValue& value) {
    (*this)[std::string(name.data(), name.size())] = nostd::visit(Owner(), value);
  }
};
}  // namespace common

namespace resource {
class Resource {
 public:
  static Resource Create(const common::AttributeMap& attributes) {
    Resource resource;
    resource.attributes_ = attributes;
    return resource;
  }
  const common::AttributeMap& GetAttributes() const { return attributes_; }

 private:
  common::AttributeMap attributes_;
};
}  // namespace resource

namespace instrumentationscope {
class InstrumentationScope {
 public:
  static std::unique_ptr<InstrumentationScope> Create(nostd::string_view name) {
    auto scope = std::make_unique<InstrumentationScope>();
    scope->name_ = std::string(name.data(), name.size());
    return scope;
  }
  const std::string& GetName() const { return name_; }

 private:
  std::string name_;
};
}  // namespace instrumentationscope

namespace logs {
class Recordable {
 public:
  virtual ~Recordable() = default;
};
class ReadWriteLogRecord final : public Recordable {
 public:
  using Severity = opentelemetry::logs::Severity;
  using Value = opentelemetry::common::AttributeValue;
  void SetSeverity(Severity severity) { severity_ = severity; }
  void SetBody(const Value& body) { body_ = nostd::visit(common::Owner(), body); }
  void SetEventId(std::int64_t id, nostd::string_view name) {
    id_ = id;
    name_ = std::string(name.data(), name.size());
  }
  void SetTraceId(const trace::TraceId& id) { trace_ = id; }
  void SetSpanId(const trace::SpanId& id) { span_ = id; }
  void SetTraceFlags(const trace::TraceFlags& flags) { flags_ = flags; }
  void SetAttribute(nostd::string_view name, const Value& value) { attributes_.Set(name, value); }
  void SetResource(const resource::Resource& resource) { resource_ = &resource; }
  void SetInstrumentationScope(const instrumentationscope::InstrumentationScope& scope) {
    scope_ = &scope;
  }
  Severity GetSeverity() const { return severity_; }
  const common::OwnedAttributeValue& GetBody() const { return body_; }
  std::int64_t GetEventId() const { return id_; }
  nostd::string_view GetEventName() const { return name_; }
  const trace::TraceId& GetTraceId() const { return trace_; }
  const trace::SpanId& GetSpanId() const { return span_; }
  const trace::TraceFlags& GetTraceFlags() const { return flags_; }
  const std::unordered_map<std::string, common::OwnedAttributeValue>& GetAttributes() const {
    return attributes_;
  }
  const resource::Resource& GetResource() const { return *resource_; }
  const instrumentationscope::InstrumentationScope& GetInstrumentationScope() const {
    return *scope_;
  }

 private:
  Severity severity_ = Severity::kInvalid;
  common::OwnedAttributeValue body_;
  std::int64_t id_ = 0;
  std::string name_;
  trace::TraceId trace_;
  trace::SpanId span_;
  trace::TraceFlags flags_;
  common::AttributeMap attributes_;
  const resource::Resource* resource_ = nullptr;
  const instrumentationscope::InstrumentationScope* scope_ = nullptr;
};
class LogRecordProcessor {
 public:
  virtual ~LogRecordProcessor() = default;
  virtual std::unique_ptr<Recordable> MakeRecordable() noexcept = 0;
  virtual void OnEmit(std::unique_ptr<Recordable>&& record) noexcept = 0;
  bool Enabled(const context::Context& context,
               const instrumentationscope::InstrumentationScope& scope,
               opentelemetry::logs::Severity severity,
               nostd::string_view event_name = {}) const noexcept {
    return EnabledImplementation(context, scope, severity, event_name);
  }
  virtual bool ForceFlush(
      std::chrono::microseconds timeout = std::chrono::microseconds::max()) noexcept = 0;
  virtual bool Shutdown(
      std::chrono::microseconds timeout = std::chrono::microseconds::max()) noexcept = 0;

 protected:
  virtual bool EnabledImplementation(const context::Context&,
                                     const instrumentationscope::InstrumentationScope&,
                                     opentelemetry::logs::Severity,
                                     nostd::string_view) const noexcept {
    return true;
  }
};
}  // namespace logs

namespace trace {
class Recordable {
 public:
  virtual ~Recordable() = default;
};
class SpanDataEvent {
 public:
  SpanDataEvent(std::string name, opentelemetry::common::SystemTimestamp time)
      : name_(std::move(name)), time_(time) {}
  std::string GetName() const { return name_; }
  opentelemetry::common::SystemTimestamp GetTimestamp() const { return time_; }
  const std::unordered_map<std::string, common::OwnedAttributeValue>& GetAttributes() const {
    return attributes_;
  }

 private:
  std::string name_;
  opentelemetry::common::SystemTimestamp time_;
  common::AttributeMap attributes_;
};
class SpanDataLink {
 public:
  explicit SpanDataLink(opentelemetry::trace::SpanContext context) : context_(context) {}
  const opentelemetry::trace::SpanContext& GetSpanContext() const { return context_; }
  const std::unordered_map<std::string, common::OwnedAttributeValue>& GetAttributes() const {
    return attributes_;
  }

 private:
  opentelemetry::trace::SpanContext context_;
  common::AttributeMap attributes_;
};
class SpanData final : public Recordable {
 public:
  using Value = opentelemetry::common::AttributeValue;
  void SetIdentity(const opentelemetry::trace::SpanContext& context,
                   opentelemetry::trace::SpanId parent) {
    trace_ = context.trace_id();
    span_ = context.span_id();
    parent_ = parent;
  }
  void SetName(nostd::string_view name) { name_ = std::string(name.data(), name.size()); }
  void SetAttribute(nostd::string_view name, const Value& value) { attributes_.Set(name, value); }
  void SetSpanKind(opentelemetry::trace::SpanKind kind) { kind_ = kind; }
  void SetStatus(opentelemetry::trace::StatusCode status, nostd::string_view description) {
    status_ = status;
    description_ = std::string(description.data(), description.size());
  }
  void AddEvent(nostd::string_view name, opentelemetry::common::SystemTimestamp time) {
    events_.emplace_back(std::string(name.data(), name.size()), time);
  }
  void AddLink(const opentelemetry::trace::SpanContext& context) { links_.emplace_back(context); }
  void SetResource(const resource::Resource& resource) { resource_ = &resource; }
  void SetInstrumentationScope(const instrumentationscope::InstrumentationScope& scope) {
    scope_ = &scope;
  }
  opentelemetry::trace::TraceId GetTraceId() const { return trace_; }
  opentelemetry::trace::SpanId GetSpanId() const { return span_; }
  opentelemetry::trace::SpanId GetParentSpanId() const { return parent_; }
  nostd::string_view GetName() const { return name_; }
  opentelemetry::trace::SpanKind GetSpanKind() const { return kind_; }
  opentelemetry::trace::StatusCode GetStatus() const { return status_; }
  nostd::string_view GetDescription() const { return description_; }
  const std::unordered_map<std::string, common::OwnedAttributeValue>& GetAttributes() const {
    return attributes_;
  }
  const std::vector<SpanDataEvent>& GetEvents() const { return events_; }
  const std::vector<SpanDataLink>& GetLinks() const { return links_; }
  const resource::Resource& GetResource() const { return *resource_; }
  const instrumentationscope::InstrumentationScope& GetInstrumentationScope() const {
    return *scope_;
  }

 private:
  opentelemetry::trace::TraceId trace_;
  opentelemetry::trace::SpanId span_;
  opentelemetry::trace::SpanId parent_;
  std::string name_;
  opentelemetry::trace::SpanKind kind_ = opentelemetry::trace::SpanKind::kInternal;
  opentelemetry::trace::StatusCode status_ = opentelemetry::trace::StatusCode::kUnset;
  std::string description_;
  common::AttributeMap attributes_;
  std::vector<SpanDataEvent> events_;
  std::vector<SpanDataLink> links_;
  const resource::Resource* resource_ = nullptr;
  const instrumentationscope::InstrumentationScope* scope_ = nullptr;
};
class SpanProcessor {
 public:
  virtual ~SpanProcessor() = default;
  virtual std::unique_ptr<Recordable> MakeRecordable() noexcept = 0;
  virtual void OnStart(Recordable& span,
                       const opentelemetry::trace::SpanContext& parent) noexcept = 0;
  virtual void OnEnd(std::unique_ptr<Recordable>&& span) noexcept = 0;
  virtual bool ForceFlush(
      std::chrono::microseconds timeout = std::chrono::microseconds::max()) noexcept = 0;
  virtual bool Shutdown(
      std::chrono::microseconds timeout = std::chrono::microseconds::max()) noexcept = 0;
};
}  // namespace trace

}  // namespace sdk
}  // namespace opentelemetry

#endif  // TESTS_UNIT_EVENTHEADER_BRIDGES_STAND_INS_OPENTELEMETRY_H_
