// Processors of OpenTelemetry C++ that write log records and spans as events:
//
//     logger_provider->AddProcessor(std::make_unique<eh::OpenTelemetryLogs>());
//     tracer_provider->AddProcessor(std::make_unique<eh::OpenTelemetrySpans>());
//
// Each instrumentation scope becomes a provider. The provider has the name of the scope, cut to 200
// bytes, in which each byte other than an ASCII letter, a digit and '_' becomes '_'. If the name
// begins with a digit, a '_' is put before it. A scope without a name becomes the provider
// OpenTelemetry. If there are more than 200 scopes, the further ones share the provider
// OpenTelemetry_other_scopes.
//
// A log record becomes an event of one of the tracepoints PROVIDER_L1K1 to PROVIDER_L5K1. The name
// of the event is the event name of the record, or "Log" if the record has none. Severities 1 to 8
// become level 5 (verbose), 9 to 12 level 4, 13 to 16 level 3, 17 to 20 level 2, and 21 to 24 level
// 1 (critical error). A record without a severity gets level 4 (information). The event has these
// fields, then the attributes:
//
//   message            body of the record
//   severity           number of the severity; 0 if the record has none
//   event_id           only if it is not 0
//   trace_id, span_id  only if the record belongs to a span
//   trace_flags        only if they are not 0
//
// If there is no other processor, Logger::Enabled returns false while no collector records the
// level.
//
// A span becomes a start event and a stop event of the tracepoint PROVIDER_L4K2. Both have the name
// of the span, or "Span" if the span has none. They have these fields, then the attributes that the
// span has when the event is written:
//
//   trace_id, span_id
//   parent_span_id      only if the span has a parent
//   kind                server, client, producer, consumer or internal
//   status              only in the stop event: ok, error or unset
//   status_description  only in the stop event, if it is not empty
//
// The SDK passes the events and links of a span when the span ends. Each of them becomes an event
// before the stop event, with the fields `trace_id` and `span_id` of the span. An event of the span
// also has the field `time`, the time at which the program added it to the span. A link becomes an
// event "Link", which also has the fields `linked_trace_id` and `linked_span_id`.
//
// Attributes become fields of their types. If an event has more attributes than fit, the field
// `dropped_attributes` counts those that were left out.
//
// The id of a span's activity is its trace id, with each half combined with the span id by
// exclusive or. The events, links and log records of the span have the same activity. The related
// activity of a start event is the activity of the parent span. The related activity of a link is
// that of the linked span. A log record without a span has the activity of the thread
// (CurrentActivity).
//
// Each scope writes an event "Resource" before its first event. Its fields are the attributes of
// the resource. The scope writes it again before the first event that is at least kResourceEvery
// after the previous "Resource".
//
// Needs opentelemetry-cpp with LogRecordProcessor::Enabled (1.28 or newer). The library itself does
// not depend on it.
#ifndef EVENTHEADER_BRIDGES_OPENTELEMETRY_H_
#define EVENTHEADER_BRIDGES_OPENTELEMETRY_H_

#include "eventheader/internal/need_cxx20.h"

#ifdef EVENTHEADER_INTERNAL_CXX20

#if __has_include(<opentelemetry/sdk/logs/read_write_log_record.h>)

#include <opentelemetry/sdk/instrumentationscope/instrumentation_scope.h>
#include <opentelemetry/sdk/logs/processor.h>
#include <opentelemetry/sdk/logs/read_write_log_record.h>
#include <opentelemetry/sdk/resource/resource.h>
#include <opentelemetry/sdk/trace/processor.h>
#include <opentelemetry/sdk/trace/span_data.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "eventheader/activity.h"
#include "eventheader/bridges/log_sets.h"
#include "eventheader/dynamic_event.h"
#include "eventheader/provider.h"
#include "eventheader/wire.h"

namespace eh {

struct OpenTelemetryOptions {
  std::uint64_t log_keyword = 1;   // keyword of the event sets of log records
  std::uint64_t span_keyword = 2;  // keyword of the event set of spans
};

namespace internal {

inline std::string_view OtelView(opentelemetry::nostd::string_view text) noexcept {
  return {text.data(), text.size()};
}

// Returns the name of the provider of a scope: see the comment of this file.
inline std::string OtelProviderName(std::string_view scope) {
  // The name of a tracepoint also contains the level and the keyword.
  constexpr std::size_t kMaxName = 200;
  std::string name(scope.empty() ? std::string_view("OpenTelemetry") : scope.substr(0, kMaxName));
  for (char& c : name) {
    const bool is_valid =
        (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
    if (!is_valid) c = '_';
  }
  if (name[0] >= '0' && name[0] <= '9') name.insert(0, 1, '_');
  return name;
}

inline Level OtelLevel(opentelemetry::logs::Severity severity) noexcept {
  const auto number = static_cast<unsigned>(severity);
  if (number == 0) return Level::kInformation;
  if (number <= 8) return Level::kVerbose;
  if (number <= 12) return Level::kInformation;
  if (number <= 16) return Level::kWarning;
  return number <= 20 ? Level::kError : Level::kCriticalError;
}

// The provider of a scope, with an event set for each level from kFirst to kLast.
template <Level kFirst, Level kLast>
class OtelScope {
 public:
  OtelScope(std::string_view scope, std::uint64_t keyword)
      : scope_(scope), name_(OtelProviderName(scope)), provider_(name_) {
    for (int level = static_cast<int>(kFirst); level <= static_cast<int>(kLast); ++level) {
      sets_.push_back(std::make_unique<EventSet>(provider_, static_cast<Level>(level), keyword));
    }
  }
  const std::string& scope() const noexcept { return scope_; }
  ProviderBase& provider() noexcept { return provider_; }
  const EventSet& Set(Level level) const noexcept {
    return *sets_[static_cast<std::size_t>(level) - static_cast<std::size_t>(kFirst)];
  }
  bool enabled(Level level) const noexcept {
    return provider_.enabled() && Set(level).EnabledIn(provider_);
  }
  // Returns whether this thread must write the event "Resource" now. If so, the next "Resource" is
  // due at `now` + `interval`. Both are in ns; `now` is a time of std::chrono::steady_clock.
  bool TakeResourceTurn(std::int64_t now, std::int64_t interval) noexcept {
    std::int64_t due = resource_due_.load(std::memory_order_relaxed);
    return now >= due && resource_due_.compare_exchange_strong(due, now + interval);
  }

 private:
  const std::string scope_;
  const std::string name_;
  DynamicProvider provider_;
  std::vector<std::unique_ptr<EventSet>> sets_;
  std::atomic<std::int64_t> resource_due_ = 0;  // ns of std::chrono::steady_clock
};

// The scopes of a processor. Thread-safe.
template <typename Scope>
class OtelScopes {
 public:
  // Maximum number of scopes that have a separate provider, so that the number of tracepoints is
  // bounded.
  static constexpr std::size_t kMaxScopes = 200;

  explicit OtelScopes(std::uint64_t keyword) : keyword_(keyword) {}

  // Returns the scope with this name, and adds it if it is new. If there are already kMaxScopes,
  // returns the scope that all further names share. Throws if memory is exhausted.
  Scope& Find(std::string_view name) {
    Last& last = LastOfThread();
    if (last.owner == number_ && last.scope->scope() == name) return *last.scope;
    Scope& scope = Search(name);
    if (scope.scope() == name) last = {number_, &scope};
    return scope;
  }

 private:
  // The scope that a thread found last, and the number of the processor that it belongs to. A
  // number is never used again, so a new processor cannot get the scope of a deleted processor.
  struct Last {
    std::uint64_t owner = 0;
    Scope* scope = nullptr;
  };
  [[gnu::visibility("hidden")]] static Last& LastOfThread() noexcept {
    thread_local Last last;
    return last;
  }
  [[gnu::visibility("hidden")]] static std::uint64_t NextNumber() noexcept {
    static std::atomic<std::uint64_t> number = 0;
    return ++number;
  }

  Scope& Search(std::string_view name) {
    {
      const std::shared_lock lock(mutex_);
      if (const auto found = scopes_.find(name); found != scopes_.end()) return *found->second;
    }
    const std::lock_guard lock(mutex_);
    if (scopes_.size() >= kMaxScopes) name = "OpenTelemetry_other_scopes";
    std::unique_ptr<Scope>& scope = scopes_[std::string(name)];
    if (scope == nullptr) scope = std::make_unique<Scope>(name, keyword_);
    return *scope;
  }

  const std::uint64_t keyword_;
  const std::uint64_t number_ = NextNumber();
  std::shared_mutex mutex_;
  std::map<std::string, std::unique_ptr<Scope>, std::less<>> scopes_;  // by name of the scope
};

// Adds attributes to an event, up to kMaxFields and kMaxBytes. Counts the attributes that it leaves
// out.
class OtelFields {
 public:
  static constexpr std::size_t kMaxText = 1024;
  static constexpr std::size_t kMaxElements = 64;
  static constexpr std::size_t kMaxFields = 64;
  static constexpr std::size_t kMaxBytes = 3000;

  explicit OtelFields(DynamicEvent& event) noexcept : event_(event) {}

  template <typename Attributes>
  void AddAll(const Attributes& attributes) {
    for (const auto& [name, value] : attributes) {
      const LogName field(name.empty() ? std::string_view("attribute") : std::string_view(name));
      AddValue<kMaxText>(field.view(), value);
    }
    if (dropped_ != 0) event_.AddField("dropped_attributes", dropped_);
  }
  // Adds a value of any type that an attribute can have. Text is cut to kTextBytes.
  template <std::size_t kTextBytes, typename Value>
  void AddValue(std::string_view name, const Value& value) {
    opentelemetry::nostd::visit([&](const auto& known) { Add<kTextBytes>(name, known); }, value);
  }

 private:
  template <std::size_t kTextBytes, typename T>
  void Add(std::string_view name, const T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      Put(name, sizeof value, value);
    } else if constexpr (std::is_convertible_v<const T&, const char*>) {
      AddText<kTextBytes>(name, value == nullptr ? std::string_view() : std::string_view(value));
    } else if constexpr (std::is_same_v<T, std::string> ||
                         std::is_same_v<T, opentelemetry::nostd::string_view>) {
      AddText<kTextBytes>(name, {value.data(), value.size()});
    } else {
      AddElements(name, value);
    }
  }
  template <std::size_t kTextBytes>
  void AddText(std::string_view name, std::string_view text) {
    const Truncate<kTextBytes> cut(text);
    Put(name, cut.Limited().size() + 2, cut);
  }
  template <typename T>
  void AddElements(std::string_view name, const T& values) {
    using Element = std::remove_cvref_t<decltype(*values.begin())>;
    const std::size_t count = std::min<std::size_t>(values.size(), kMaxElements);
    if constexpr (std::is_same_v<T, std::vector<bool>> || std::is_same_v<Element, bool>) {
      std::array<bool, kMaxElements> copy{};
      std::copy_n(values.begin(), count, copy.begin());
      Put(name, count + 2, std::span<const bool>(copy.data(), count));
    } else if constexpr (std::is_arithmetic_v<Element>) {
      // An array of bytes is one value, so the limit of text applies to it.
      const std::size_t taken =
          sizeof(Element) == 1 ? std::min<std::size_t>(values.size(), kMaxText) : count;
      Put(name, taken * sizeof(Element) + 2, std::span<const Element>(values.data(), taken));
    } else {
      std::size_t size = 2;
      std::vector<std::string_view> texts;
      for (const auto& text : values) {
        if (texts.size() == count) break;
        texts.emplace_back(text.data(), text.size());
        size += text.size() + 2;
      }
      Put(name, size, texts);
    }
  }
  template <typename T>
  void Put(std::string_view name, std::size_t size, const T& value) {
    // The limits do not apply to the message, which is added first and was cut to kMaxMessage.
    constexpr std::size_t kDefinition = 3;
    size += name.size() + kDefinition;
    const bool is_message = fields_++ == 0 && name == kMessage;
    if (!is_message && (size > left_ || fields_ > kMaxFields)) {
      ++dropped_;
      return;
    }
    if (!is_message) left_ -= size;
    event_.AddField(name, value);
  }

 public:
  static constexpr std::string_view kMessage = "message";

 private:
  DynamicEvent& event_;
  std::size_t left_ = kMaxBytes;
  std::size_t fields_ = 0;
  std::uint32_t dropped_ = 0;
};

inline ActivityId OtelActivity(const opentelemetry::trace::TraceId& trace,
                               const opentelemetry::trace::SpanId& span) noexcept {
  ActivityId id;
  const auto trace_bytes = trace.Id();
  const auto span_bytes = span.Id();
  for (std::size_t i = 0; i < id.size(); ++i) {
    id[i] = static_cast<std::byte>(trace_bytes[i] ^ span_bytes[i % span_bytes.size()]);
  }
  return id;
}

template <typename Id>
void OtelAddId(DynamicEvent& event, std::string_view name, const Id& id) noexcept {
  char text[2 * Id::kSize];
  id.ToLowerBase16(text);
  event.AddField(name, std::string_view(text, sizeof text));
}

// Returns the thread's builder of events. LogSets::ThreadsEvent() states why it is thread-local,
// and why the function is hidden.
[[gnu::visibility("hidden")]] inline DynamicEvent& OtelEvent() noexcept {
  thread_local DynamicEvent event;
  return event;
}

// Minimum time between two events "Resource" of a scope.
inline constexpr std::chrono::seconds kResourceEvery{10};

template <typename Scope>
void OtelWriteResource(const opentelemetry::sdk::resource::Resource& resource, const EventSet& set,
                       Scope& scope) {
  using std::chrono::nanoseconds;
  const auto now =
      std::chrono::duration_cast<nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count();
  if (!scope.TakeResourceTurn(now, nanoseconds(kResourceEvery).count())) return;
  DynamicEvent& event = OtelEvent();
  event.Reset("Resource");
  OtelFields(event).AddAll(resource.GetAttributes());
  event.Write(set);
}

// The type of the first parameter of a function of a processor. This type differs between versions
// of OpenTelemetry C++.
template <typename Function>
struct OtelFirstArgument;
template <typename Result, typename Class, typename First, typename... Rest>
struct OtelFirstArgument<Result (Class::*)(First, Rest...) const noexcept> {
  using Type = First;
};

}  // namespace internal

// Writes log records. Thread-safe. Does not throw: a record for which memory is exhausted is not
// written.
class OpenTelemetryLogs final : public opentelemetry::sdk::logs::LogRecordProcessor {
 public:
  using Scope = internal::OtelScope<Level::kCriticalError, Level::kVerbose>;

  explicit OpenTelemetryLogs(const OpenTelemetryOptions& options = {})
      : scopes_(options.log_keyword) {}

  // Returns the provider of a scope, which has the counts of events, the status and Retry(). Throws
  // if memory is exhausted.
  ProviderBase& FindProvider(std::string_view scope) { return scopes_.Find(scope).provider(); }

  std::unique_ptr<opentelemetry::sdk::logs::Recordable> MakeRecordable() noexcept override {
    return std::make_unique<opentelemetry::sdk::logs::ReadWriteLogRecord>();
  }
  void OnEmit(std::unique_ptr<opentelemetry::sdk::logs::Recordable>&& record) noexcept override {
    if (record == nullptr) return;
    try {
      // MakeRecordable() has created the record, so it has this type.
      Write(static_cast<const opentelemetry::sdk::logs::ReadWriteLogRecord&>(*record));
    } catch (...) {
    }
  }
  bool ForceFlush(std::chrono::microseconds /*timeout*/) noexcept override { return true; }
  bool Shutdown(std::chrono::microseconds /*timeout*/) noexcept override { return true; }

 protected:
  using Context = internal::OtelFirstArgument<
      decltype(&opentelemetry::sdk::logs::LogRecordProcessor::Enabled)>::Type;
  bool EnabledImplementation(
      Context /*context*/,
      const opentelemetry::sdk::instrumentationscope::InstrumentationScope& scope,
      opentelemetry::logs::Severity severity,
      opentelemetry::nostd::string_view /*event_name*/) const noexcept override {
    try {
      return scopes_.Find(scope.GetName()).enabled(internal::OtelLevel(severity));
    } catch (...) {
      return false;
    }
  }

 private:
  void Write(const opentelemetry::sdk::logs::ReadWriteLogRecord& record) const {
    Scope& scope = scopes_.Find(record.GetInstrumentationScope().GetName());
    const Level level = internal::OtelLevel(record.GetSeverity());
    if (!scope.enabled(level)) return;
    const EventSet& set = scope.Set(level);
    internal::OtelWriteResource(record.GetResource(), set, scope);
    DynamicEvent& event = internal::OtelEvent();
    const std::string_view name = internal::OtelView(record.GetEventName());
    event.Reset(LogName(name.empty() ? std::string_view("Log") : name).view());
    internal::OtelFields fields(event);
    fields.AddValue<kMaxMessage>(internal::OtelFields::kMessage, record.GetBody());
    event.AddField("severity", static_cast<std::uint8_t>(record.GetSeverity()));
    if (record.GetEventId() != 0) event.AddField("event_id", record.GetEventId());
    const bool has_span = record.GetSpanId().IsValid();
    if (record.GetTraceId().IsValid()) internal::OtelAddId(event, "trace_id", record.GetTraceId());
    if (has_span) internal::OtelAddId(event, "span_id", record.GetSpanId());
    if (const std::uint8_t flags = record.GetTraceFlags().flags(); flags != 0) {
      event.AddField("trace_flags", flags);
    }
    fields.AddAll(record.GetAttributes());
    if (has_span) {
      const Activity activity{internal::OtelActivity(record.GetTraceId(), record.GetSpanId())};
      event.Write(set, &activity);
    } else if (const auto& current = CurrentActivity(); current.has_value()) {
      const Activity activity{*current};
      event.Write(set, &activity);
    } else {
      event.Write(set);
    }
  }

  mutable internal::OtelScopes<Scope> scopes_;
};

// Writes spans. Thread-safe. Does not throw: an event for which memory is exhausted is not written.
class OpenTelemetrySpans final : public opentelemetry::sdk::trace::SpanProcessor {
 public:
  using Scope = internal::OtelScope<Level::kInformation, Level::kInformation>;

  explicit OpenTelemetrySpans(const OpenTelemetryOptions& options = {})
      : scopes_(options.span_keyword) {}

  // Returns the provider of a scope, which has the counts of events, the status and Retry(). Throws
  // if memory is exhausted.
  ProviderBase& FindProvider(std::string_view scope) { return scopes_.Find(scope).provider(); }

  std::unique_ptr<opentelemetry::sdk::trace::Recordable> MakeRecordable() noexcept override {
    return std::make_unique<Span>();
  }
  void OnStart(opentelemetry::sdk::trace::Recordable& span,
               const opentelemetry::trace::SpanContext& /*parent*/) noexcept override {
    try {
      // MakeRecordable() has created `span`, so it has this type.
      Write(static_cast<const Span&>(span), Opcode::kActivityStart);
    } catch (...) {
    }
  }
  void OnEnd(std::unique_ptr<opentelemetry::sdk::trace::Recordable>&& span) noexcept override {
    if (span == nullptr) return;
    try {
      Write(static_cast<const Span&>(*span), Opcode::kActivityStop);
    } catch (...) {
    }
  }
  bool ForceFlush(std::chrono::microseconds /*timeout*/) noexcept override { return true; }
  bool Shutdown(std::chrono::microseconds /*timeout*/) noexcept override { return true; }

 private:
  using Span = opentelemetry::sdk::trace::SpanData;

  void Write(const Span& span, Opcode opcode) {
    Scope& scope = scopes_.Find(span.GetInstrumentationScope().GetName());
    if (!scope.enabled(Level::kInformation)) return;
    const EventSet& set = scope.Set(Level::kInformation);
    internal::OtelWriteResource(span.GetResource(), set, scope);
    Activity activity{internal::OtelActivity(span.GetTraceId(), span.GetSpanId())};
    const bool is_stop = opcode == Opcode::kActivityStop;
    if (is_stop) WriteParts(span, set, activity);
    DynamicEvent& event = internal::OtelEvent();
    event.Reset(LogName(Name(span)).view());
    event.SetOpcode(opcode);
    internal::OtelAddId(event, "trace_id", span.GetTraceId());
    internal::OtelAddId(event, "span_id", span.GetSpanId());
    const bool has_parent = span.GetParentSpanId().IsValid();
    if (has_parent) internal::OtelAddId(event, "parent_span_id", span.GetParentSpanId());
    event.AddField("kind", KindName(span.GetSpanKind()));
    if (is_stop) AddStatus(span, event);
    internal::OtelFields(event).AddAll(span.GetAttributes());
    ActivityId related;
    if (has_parent && !is_stop) {
      related = internal::OtelActivity(span.GetTraceId(), span.GetParentSpanId());
      activity.related = &related;
    }
    event.Write(set, &activity);
  }

  // Writes the events and links of a span.
  static void WriteParts(const Span& span, const EventSet& set, const Activity& activity) {
    DynamicEvent& event = internal::OtelEvent();
    for (const auto& part : span.GetEvents()) {
      const std::string name = part.GetName();
      event.Reset(
          LogName(name.empty() ? std::string_view("Event") : std::string_view(name)).view());
      event.AddField("time",
                     static_cast<std::chrono::system_clock::time_point>(part.GetTimestamp()));
      AddSpan(span, event);
      internal::OtelFields(event).AddAll(part.GetAttributes());
      event.Write(set, &activity);
    }
    for (const auto& link : span.GetLinks()) {
      const auto& other = link.GetSpanContext();
      event.Reset("Link");
      AddSpan(span, event);
      internal::OtelAddId(event, "linked_trace_id", other.trace_id());
      internal::OtelAddId(event, "linked_span_id", other.span_id());
      internal::OtelFields(event).AddAll(link.GetAttributes());
      const ActivityId related = internal::OtelActivity(other.trace_id(), other.span_id());
      const Activity linked{activity.id, &related};
      event.Write(set, &linked);
    }
  }
  static void AddSpan(const Span& span, DynamicEvent& event) noexcept {
    internal::OtelAddId(event, "trace_id", span.GetTraceId());
    internal::OtelAddId(event, "span_id", span.GetSpanId());
  }
  static void AddStatus(const Span& span, DynamicEvent& event) noexcept {
    using opentelemetry::trace::StatusCode;
    const StatusCode status = span.GetStatus();
    event.AddField("status", std::string_view(status == StatusCode::kOk      ? "ok"
                                              : status == StatusCode::kError ? "error"
                                                                             : "unset"));
    const std::string_view description = internal::OtelView(span.GetDescription());
    if (!description.empty()) {
      event.AddField("status_description", Truncate<internal::OtelFields::kMaxText>(description));
    }
  }
  static std::string_view Name(const Span& span) noexcept {
    const std::string_view name = internal::OtelView(span.GetName());
    return name.empty() ? std::string_view("Span") : name;
  }
  static std::string_view KindName(opentelemetry::trace::SpanKind kind) noexcept {
    using opentelemetry::trace::SpanKind;
    switch (kind) {
      case SpanKind::kServer:
        return "server";
      case SpanKind::kClient:
        return "client";
      case SpanKind::kProducer:
        return "producer";
      case SpanKind::kConsumer:
        return "consumer";
      default:
        return "internal";
    }
  }

  internal::OtelScopes<Scope> scopes_;
};

}  // namespace eh

#else
#error "eventheader/bridges/opentelemetry.h needs the headers of the SDK of opentelemetry-cpp"
#endif

#endif  // EVENTHEADER_INTERNAL_CXX20
#endif  // EVENTHEADER_BRIDGES_OPENTELEMETRY_H_
