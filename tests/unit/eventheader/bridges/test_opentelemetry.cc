#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "eventheader/bridges/opentelemetry.h"
#include "eventheader/decoder.h"
#include "eventheader/json_formatter.h"
#include "eventheader/testing/recording_transport.h"

namespace eh {
namespace {

namespace otel = opentelemetry;
using Lines = std::vector<std::string>;
using Scope = otel::sdk::instrumentationscope::InstrumentationScope;

constexpr std::array<std::uint8_t, 16> kTrace = {0x5b, 0x8e, 0xff, 0xf7, 0x98, 0x03, 0x81, 0x03,
                                                 0xd2, 0x69, 0xb6, 0x33, 0x81, 0x3f, 0xc6, 0x0c};
constexpr std::array<std::uint8_t, 8> kSpan = {0xee, 0xe1, 0x9b, 0x7e, 0xc3, 0xc1, 0xb1, 0x74};
constexpr std::array<std::uint8_t, 8> kParent = {1, 2, 3, 4, 5, 6, 7, 8};
constexpr char kIds[] =
    R"("trace_id":"5b8efff798038103d269b633813fc60c","span_id":"eee19b7ec3c1b174")";
// The activity id is the trace id with each half XORed with the id of the span. The related id is
// the trace id with each half XORed with the id of the parent span.
constexpr char kActivity[] = R"("activityId":"b56f6489-5bc2-3077-3c88-2d4d42fe7778",)";
constexpr char kParentActivity[] = R"("relatedActivityId":"5a8cfcf3-9d05-860b-d36b-b5378439c104",)";

// A processor with a recording transport in place of the kernel.
template <typename Processor>
class Bridge {
 public:
  explicit Bridge(const char* scope) : scope_(scope) {
    processor_.FindProvider(scope).SetTransport(&transport_);
  }
  ~Bridge() { processor_.FindProvider(scope_).SetTransport(nullptr); }

  Processor& processor() { return processor_; }
  RecordingTransport& transport() { return transport_; }
  // Returns the events since the previous call: the name of the tracepoint, and the event in JSON.
  Lines Take() {
    Lines lines;
    for (const RecordingTransport::Record& record : transport_.Take()) {
      EventView event;
      EXPECT_EQ(ParseEvent(record.event, &event), ParseError::kNone);
      std::string line = record.tracepoint + " ";
      AppendEventJson(event, "", &line);
      lines.push_back(std::move(line));
    }
    return lines;
  }

 private:
  const std::string scope_;
  RecordingTransport transport_;
  Processor processor_;
};

class OpenTelemetryTest : public ::testing::Test {
 protected:
  std::unique_ptr<otel::sdk::logs::ReadWriteLogRecord> Log(int severity) {
    auto record = std::make_unique<otel::sdk::logs::ReadWriteLogRecord>();
    record->SetSeverity(static_cast<otel::logs::Severity>(severity));
    record->SetBody("m");
    record->SetInstrumentationScope(*scope_);
    record->SetResource(resource_);
    return record;
  }
  std::unique_ptr<otel::sdk::trace::SpanData> Span() {
    auto span = std::make_unique<otel::sdk::trace::SpanData>();
    span->SetIdentity(Context(kSpan), otel::trace::SpanId(kParent));
    span->SetName("GET /");
    span->SetSpanKind(otel::trace::SpanKind::kServer);
    span->SetInstrumentationScope(*scope_);
    span->SetResource(resource_);
    return span;
  }
  static otel::trace::SpanContext Context(const std::array<std::uint8_t, 8>& span) {
    return {otel::trace::TraceId(kTrace), otel::trace::SpanId(span), otel::trace::TraceFlags(1),
            false};
  }
  // Writes a record with an attribute. Returns the fields after the severity.
  template <typename T>
  std::string Attribute(Bridge<OpenTelemetryLogs>* bridge, const T& value) {
    auto record = Log(9);
    record->SetAttribute("a;b", value);
    bridge->processor().OnEmit(std::move(record));
    const std::string line = bridge->Take().at(0);
    return line.substr(line.find(R"("severity":9)") + 12);
  }

  const std::unique_ptr<Scope> scope_{Scope::Create("my.company-shop").release()};
  const otel::sdk::resource::Resource resource_ =
      otel::sdk::resource::Resource::Create({{"service.name", "shop"}});
};

TEST_F(OpenTelemetryTest, SeveritiesAreLevels) {
  Bridge<OpenTelemetryLogs> bridge("my.company-shop");
  constexpr std::pair<int, int> kLevels[] = {{1, 5},  {8, 5},  {9, 4},  {12, 4}, {13, 3},
                                             {16, 3}, {17, 2}, {20, 2}, {21, 1}, {24, 1}};
  bridge.processor().OnEmit(Log(9));
  const Lines first = bridge.Take();
  ASSERT_EQ(first.size(), 2U);
  EXPECT_TRUE(first[0].starts_with(R"(my_company_shop_L4K1 {"name":"Resource","level":4)"));
  EXPECT_NE(first[0].find(R"("service.name":"shop")"), std::string::npos) << first[0];
  for (const auto& [severity, level] : kLevels) {
    bridge.processor().OnEmit(Log(severity));
    EXPECT_EQ(bridge.Take(),
              Lines{"my_company_shop_L" + std::to_string(level) + R"(K1 {"name":"Log","level":)" +
                    std::to_string(level) + R"(,"fields":{"message":"m","severity":)" +
                    std::to_string(severity) + "}}"});
  }
}

TEST_F(OpenTelemetryTest, LogsOfASpanBelongToItsActivity) {
  Bridge<OpenTelemetryLogs> bridge("my.company-shop");
  auto record = Log(17);
  record->SetEventId(7, "PaymentFailed");
  record->SetTraceId(otel::trace::TraceId(kTrace));
  record->SetSpanId(otel::trace::SpanId(kSpan));
  record->SetTraceFlags(otel::trace::TraceFlags(1));
  record->SetAttribute("amount", 0.5);
  bridge.processor().OnEmit(std::move(record));
  EXPECT_EQ(bridge.Take().at(1),
            std::string(R"(my_company_shop_L2K1 {"name":"PaymentFailed","level":2,)") + kActivity +
                R"("fields":{"message":"m","severity":17,"event_id":7,)" + kIds +
                R"(,"trace_flags":1,"amount":0.5}})");
}

TEST_F(OpenTelemetryTest, AttributesHaveTheirTypes) {
  Bridge<OpenTelemetryLogs> bridge("my.company-shop");
  bridge.processor().OnEmit(Log(9));
  bridge.Take();
  const std::int64_t integers[] = {-1, 2};
  const otel::nostd::string_view texts[] = {"a", "b"};
  const bool bits[] = {true, false};
  EXPECT_EQ(Attribute(&bridge, true), R"(,"a_b":true}})");
  EXPECT_EQ(Attribute(&bridge, std::int32_t{-7}), R"(,"a_b":-7}})");
  EXPECT_EQ(Attribute(&bridge, ~std::uint64_t{0}), R"(,"a_b":18446744073709551615}})");
  EXPECT_EQ(Attribute(&bridge, otel::nostd::string_view("text")), R"(,"a_b":"text"}})");
  EXPECT_EQ(Attribute(&bridge, otel::nostd::span<const std::int64_t>(integers)),
            R"(,"a_b":[-1,2]}})");
  EXPECT_EQ(Attribute(&bridge, otel::nostd::span<const bool>(bits)), R"(,"a_b":[true,false]}})");
  EXPECT_EQ(Attribute(&bridge, otel::nostd::span<const otel::nostd::string_view>(texts)),
            R"(,"a_b":["a","b"]}})");
  const std::string large(5000, 'x');
  EXPECT_EQ(Attribute(&bridge, large.c_str()), R"(,"a_b":")" + std::string(1024, 'x') + R"("}})");
}

TEST_F(OpenTelemetryTest, CountsAttributesForWhichThereIsNoRoom) {
  Bridge<OpenTelemetryLogs> bridge("my.company-shop");
  auto record = Log(9);
  const std::string large(5000, 'x');
  record->SetBody(large.c_str());
  for (int i = 0; i < 6; ++i) record->SetAttribute("a" + std::to_string(i), large.c_str());
  bridge.processor().OnEmit(std::move(record));
  const std::string line = bridge.Take().at(1);
  EXPECT_NE(line.find(R"({"message":")" + std::string(4096, 'x') + '"'), std::string::npos);
  EXPECT_TRUE(line.ends_with(R"("dropped_attributes":4}})")) << line;
}

TEST_F(OpenTelemetryTest, IsEnabledOnlyForRecordedLevels) {
  Bridge<OpenTelemetryLogs> bridge("my.company-shop");
  const otel::context::Context context;
  const auto enabled = [&](int severity) {
    return bridge.processor().Enabled(context, *scope_,
                                      static_cast<otel::logs::Severity>(severity));
  };
  EXPECT_TRUE(enabled(9));
  bridge.transport().SetEnabled(false, "my_company_shop_L4K1");
  EXPECT_FALSE(enabled(9));
  EXPECT_TRUE(enabled(17));
  bridge.processor().OnEmit(Log(9));
  EXPECT_EQ(bridge.Take(), Lines{});
}

TEST_F(OpenTelemetryTest, SpansAreStartsAndStops) {
  Bridge<OpenTelemetrySpans> bridge("my.company-shop");
  auto span = Span();
  span->SetAttribute("port", std::int32_t{80});
  bridge.processor().OnStart(*span, Context(kParent));
  Lines lines = bridge.Take();
  ASSERT_EQ(lines.size(), 2U);
  const std::string start = std::string(R"("fields":{)") + kIds +
                            R"(,"parent_span_id":"0102030405060708","kind":"server")";
  EXPECT_EQ(lines[1], R"(my_company_shop_L4K2 {"name":"GET /","level":4,"opcode":1,)" +
                          std::string(kActivity) + kParentActivity + start + R"(,"port":80}})");
  using std::chrono::seconds;
  span->AddEvent("cached", otel::common::SystemTimestamp(
                               std::chrono::system_clock::time_point(seconds(1'700'000'000))));
  span->AddLink(Context(kParent));
  span->SetStatus(otel::trace::StatusCode::kError, "timed out");
  bridge.processor().OnEnd(std::move(span));
  lines = bridge.Take();
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], std::string(R"(my_company_shop_L4K2 {"name":"cached","level":4,)") +
                          kActivity + R"("fields":{"time":"2023-11-14T22:13:20Z",)" + kIds + "}}");
  EXPECT_EQ(lines[1], std::string(R"(my_company_shop_L4K2 {"name":"Link","level":4,)") + kActivity +
                          kParentActivity + R"("fields":{)" + kIds +
                          R"(,"linked_trace_id":"5b8efff798038103d269b633813fc60c",)" +
                          R"("linked_span_id":"0102030405060708"}})");
  EXPECT_EQ(lines[2], R"(my_company_shop_L4K2 {"name":"GET /","level":4,"opcode":2,)" +
                          std::string(kActivity) + start +
                          R"(,"status":"error","status_description":"timed out","port":80}})");
}

TEST_F(OpenTelemetryTest, AScopeOfAnyNameIsAProvider) {
  OpenTelemetryLogs logs;
  for (const std::string& name : {std::string(), std::string("1.a/b c"), std::string(5000, 'x')}) {
    EXPECT_NE(logs.FindProvider(name).status(), EINVAL) << name;
  }
}

TEST_F(OpenTelemetryTest, FurtherScopesShareAProvider) {
  OpenTelemetryLogs logs;
  const auto find = [&logs](int i) { return &logs.FindProvider("s" + std::to_string(i)); };
  for (int i = 0; i < 200; ++i) EXPECT_EQ(find(i), find(i));
  EXPECT_NE(find(198), find(199));
  EXPECT_EQ(find(200), find(201));
}

}  // namespace
}  // namespace eh
