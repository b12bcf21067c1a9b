// Tests which fields become TraceId and SpanId labels, and which do not.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

#include "eventheader/activity.h"
#include "eventheader/decoder.h"
#include "eventheader/eh.h"
#include "eventheader/testing/recording_transport.h"
#include "tools/collector/convert/trace_context.h"

namespace collector {
namespace {

using namespace std::string_literals;

constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kSpan[] = "00f067aa0ba902b7";
constexpr std::uint64_t kSpanNumber = 0x00f067aa0ba902b7;

constexpr char kValue64 = 5;
constexpr char kString = 10;
constexpr char kBinary = 13;
constexpr char kChars = 2 | 0x20;  // A constant array of value8.

class TraceContextTest : public ::testing::Test {
 protected:
  // Returns the labels of an event "E" with these definitions and this payload.
  static nettrace::Labels Lift(const std::string& fields, const std::string& payload,
                               bool little_endian = true) {
    const std::string metadata = "E\0"s + fields;
    const auto bytes = [](const std::string& text) {
      return std::as_bytes(std::span(text.data(), text.size()));
    };
    eh::EventView event{};
    event.little_endian = little_endian;
    event.metadata = bytes(metadata);
    event.data = bytes(payload);
    nettrace::Labels labels;
    if (NamesTraceContext(event)) LiftTraceContext(event, &labels);
    return labels;
  }

  static std::string Definition(const std::string& name, char encoding) {
    return name + '\0' + encoding;
  }
  static std::string Text(const std::string& text) {
    return static_cast<char>(text.size()) + "\0"s + text;
  }
  static std::string TraceOf(const nettrace::Labels& labels) {
    if (!labels.trace_id) return "";
    eh::TraceContext context;
    context.trace_id = *labels.trace_id;
    const auto text = context.TraceIdText();
    return {text.begin(), text.end()};
  }
};

TEST_F(TraceContextTest, DigitsOfStringsAreLifted) {
  const auto labels = Lift(
      Definition("n", kString) + Definition("trace_id", kString) + Definition("span_id", kString),
      Text("x") + Text(kTrace) + Text(kSpan));
  EXPECT_EQ(TraceOf(labels), kTrace);
  EXPECT_EQ(labels.span_id, kSpanNumber);
}

TEST_F(TraceContextTest, ArraysOfCharactersAreLifted) {
  const auto labels =
      Lift(Definition("trace_id", kChars) + "\x20\0"s + Definition("span_id", kChars) + "\x10\0"s,
           kTrace + std::string(kSpan));
  EXPECT_EQ(TraceOf(labels), kTrace);
  EXPECT_EQ(labels.span_id, kSpanNumber);
}

TEST_F(TraceContextTest, BytesAndNumbersAreLifted) {
  const std::string bytes = "\x00\xf0\x67\xaa\x0b\xa9\x02\xb7"s;
  const auto labels = Lift(Definition("span_id", kBinary) + Definition("trace_id", kBinary),
                           Text(bytes) + Text(bytes + bytes));
  EXPECT_EQ(labels.span_id, kSpanNumber);
  EXPECT_EQ(TraceOf(labels), std::string(kSpan) + kSpan);
  EXPECT_EQ(Lift(Definition("span_id", kValue64), bytes, false).span_id, kSpanNumber);
  EXPECT_EQ(Lift(Definition("span_id", kValue64), {bytes.rbegin(), bytes.rend()}).span_id,
            kSpanNumber);
}

TEST_F(TraceContextTest, OpenTelemetrysPartAIsLifted) {
  const std::string part_a = "PartA\0\x81\x02"s + Definition("ext_dt_traceId", kString) +
                             Definition("ext_dt_spanId", kString);
  const auto labels = Lift(part_a, Text(kTrace) + Text(kSpan));
  EXPECT_EQ(TraceOf(labels), kTrace);
  EXPECT_EQ(labels.span_id, kSpanNumber);
}

TEST_F(TraceContextTest, DoesNotLiftInvalidIds) {
  const std::string definition = Definition("trace_id", kString);
  for (const std::string& text :
       {""s, "4bf9"s, std::string(32, '0'), std::string(32, 'g'), kTrace + "0"s}) {
    EXPECT_TRUE(Lift(definition, Text(text)).empty()) << text;
  }
}

TEST_F(TraceContextTest, DoesNotLiftFromOtherFields) {
  const std::string definition = Definition("trace_id", kString);
  // A field of PartA in another struct.
  EXPECT_TRUE(
      Lift("Part\0\x81\x01"s + Definition("ext_dt_traceId", kString), Text(kTrace)).empty());
  // In a struct, even in PartA, "trace_id" is not the name of a trace id.
  EXPECT_TRUE(Lift("PartA\0\x81\x01"s + definition, Text(kTrace)).empty());
  // An array that is too long, and an event that ends in the value.
  EXPECT_TRUE(
      Lift(Definition("trace_id", kChars) + "\x40\0"s, kTrace + std::string(kTrace)).empty());
  EXPECT_TRUE(Lift(definition, "\x20\0abc"s).empty());
}

inline constinit eh::Provider trace_context_provider("Trace_Context");
constexpr eh::Event<trace_context_provider, "Request", eh::Traits{},
                    eh::Field<"trace_id", std::array<char, 32>>,
                    eh::Field<"span_id", std::array<char, 16>>>
    request;

TEST_F(TraceContextTest, LiftsIdsThatTheLibraryWrites) {
  eh::RecordingTransport transport;
  trace_context_provider.SetTransport(&transport);
  const auto context = eh::TraceContext::Parse("00-"s + kTrace + "-" + kSpan + "-01");
  ASSERT_TRUE(context.has_value());
  request.Write(context->TraceIdText(), context->SpanIdText());
  const auto records = transport.Take();
  trace_context_provider.SetTransport(nullptr);
  ASSERT_EQ(records.size(), 1u);
  eh::EventView event;
  ASSERT_EQ(eh::ParseEvent(records[0].event, &event), eh::ParseError::kNone);
  ASSERT_TRUE(NamesTraceContext(event));
  nettrace::Labels labels;
  LiftTraceContext(event, &labels);
  EXPECT_EQ(TraceOf(labels), kTrace);
  EXPECT_EQ(labels.span_id, kSpanNumber);
}

}  // namespace
}  // namespace collector
