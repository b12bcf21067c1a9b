// Tests log records of OpenTelemetry. The events have the fields that the exporters of
// OpenTelemetry for C++, Rust and .NET write, and are made with DynamicEvent and the conversion of
// the collector.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "eventheader/decoder.h"
#include "eventheader/dynamic_event.h"
#include "eventheader/testing/recording_transport.h"
#include "eventheader/tracepoint_name.h"
#include "tools/base/text.h"
#include "tools/collector/convert/event_schema.h"
#include "tools/trace/common_schema.h"
#include "tools/trace/event_json.h"
#include "tools/trace/payload_json.h"

namespace trace {
namespace {

using eh::DynamicEvent;
using eh::Format;

constexpr std::string_view kTraceId = "0af7651916cd43dd8448eb211c80319c";
constexpr std::string_view kSpanId = "b7ad6b7169203331";

using AddFields = std::function<void(DynamicEvent&)>;

// Adds a struct with the `count` members that `add` adds.
void AddStruct(DynamicEvent& event, std::string_view name, unsigned count, const AddFields& add) {
  const std::size_t where = event.StartStruct(name);
  add(event);
  event.SetStructFields(where, count);
}

void AddVersion(DynamicEvent& event) { event.AddField("__csver__", std::uint16_t{0x400}); }

// Adds PartB with its required member and the `count` members that `add` adds.
void AddPartB(DynamicEvent& event, unsigned count, const AddFields& add) {
  AddStruct(event, "PartB", count + 1, [&](DynamicEvent& part) {
    part.AddField("_typeName", std::string_view("Log"));
    add(part);
  });
}

// An event that was written with these fields and converted by the collector.
class WrittenEvent {
 public:
  explicit WrittenEvent(const AddFields& add) {
    eh::RecordingTransport transport;
    eh::DynamicProvider provider("opentelemetry_logs");
    provider.SetTransport(&transport);
    {
      const eh::EventSet set(provider, eh::Level::kInformation, 1);
      DynamicEvent event;
      event.Reset("Log");
      add(event);
      EXPECT_EQ(event.Write(set), eh::WriteResult::kWritten);
    }
    const std::vector<eh::RecordingTransport::Record> records = transport.Take();
    if (records.size() != 1) return;
    eh::EventView view;
    EXPECT_EQ(eh::ParseEvent(records[0].event, &view), eh::ParseError::kNone);
    const std::string& name = records[0].tracepoint;
    auto schema = collector::CompileEventSchema(view, *eh::ParseTracepointName(name), name, {});
    if (!schema.ok()) return;
    EXPECT_EQ(schema->program.Run(view.data, &payload_).result,
              collector::PayloadProgram::Result::kOk);
    metadata_ = std::move(schema->metadata);
    event_.metadata = &metadata_;
    event_.payload = payload_;
    event_.thread = event_.capture_thread = &thread_;
    event_.labels = &labels_;
    event_.processor = 0;
  }
  WrittenEvent(const WrittenEvent&) = delete;
  WrittenEvent& operator=(const WrittenEvent&) = delete;

  std::optional<LogRecord> Read(PayloadStyle style = PayloadStyle::kForPrograms) const {
    PayloadJson payloads(style);
    return ReadLogRecord(event_, &payloads);
  }
  std::string Attributes() const {
    PayloadJson payloads(PayloadStyle::kForPrograms);
    JsonValueOutput out(ValueStyle::kForPrograms, payloads.StartJson());
    out.BeginObject(true);
    PutLogAttributes(event_, &payloads, &out);
    out.EndObject(true);
    return std::string(payloads.json());
  }
  // Returns the part of the line of `nettrace dump` that depends on the payload.
  std::string Line(PayloadStyle style = PayloadStyle::kForPeople) const {
    PayloadJson payloads(style);
    std::string line;
    AppendEventText("T", event_, /*verbose=*/false, &payloads, &line);
    constexpr std::string_view kBefore =
        "T cpu 0 ? ?/? opentelemetry_logs Log level=4 keywords=0x1 ";
    EXPECT_EQ(line.substr(0, kBefore.size()), kBefore);
    return line.substr(kBefore.size());
  }

 private:
  nettrace::EventMetadata metadata_;
  std::vector<std::byte> payload_;
  nettrace::ThreadInfo thread_;
  nettrace::Labels labels_;
  nettrace::Event event_;
};

// The fields that the exporter for C++ writes.
void AddCppFields(DynamicEvent& event) {
  event.AddField("__csver__", std::uint16_t{0x400}, Format::kHexInt);
  AddPartB(event, 3, [](DynamicEvent& part) {
    part.AddField("severityNumber", std::uint16_t{10});
    part.AddField("severityText", std::string_view("INFO2"));
    part.AddField("body", std::string_view("Order \"7\" accepted\n"));
  });
  AddStruct(event, "PartC", 2, [](DynamicEvent& part) {
    part.AddField("order", std::int64_t{7});
    part.AddField("price", 1.5);
  });
}

// The fields that the exporter for Rust writes: the body precedes the severity, and the ids are
// members of a struct.
void AddRustFields(DynamicEvent& event) {
  event.AddField("__csver__", std::int32_t{0x400}, Format::kUnsignedInt);
  AddStruct(event, "PartA", 3, [](DynamicEvent& part) {
    part.AddField("time", std::string_view("2026-11-21T10:00:00.123456789+00:00"));
    AddStruct(part, "ext_dt", 2, [](DynamicEvent& ids) {
      ids.AddField("traceId", kTraceId);
      ids.AddField("spanId", kSpanId);
    });
    AddStruct(part, "ext_cloud", 2, [](DynamicEvent& cloud) {
      cloud.AddField("role", std::string_view("shop"));
      cloud.AddField("roleInstance", std::string_view("shop-3"));
    });
  });
  AddStruct(event, "PartC", 3, [](DynamicEvent& part) {
    part.AddField("user", std::string_view("ann"));
    part.AddField("paid", true);
    part.AddField("user", std::string_view("bob"));
  });
  AddPartB(event, 5, [](DynamicEvent& part) {
    part.AddField("body", std::int64_t{-5});
    part.AddField("severityNumber", std::int16_t{17});
    part.AddField("severityText", std::string_view("ERROR"));
    part.AddField("eventId", std::int64_t{33});
    part.AddField("name", std::string_view("PaymentFailed"));
  });
}

// The fields that the exporter for .NET writes.
void AddDotnetFields(DynamicEvent& event) {
  AddVersion(event);
  AddStruct(event, "PartA", 5, [](DynamicEvent& part) {
    part.AddField("name", std::string_view("Log"));
    part.AddField("time", std::int64_t{1795255200}, Format::kTime);
    part.AddField("ext_dt_traceId", kTraceId);
    part.AddField("ext_dt_spanId", kSpanId);
    part.AddField("ext_dt_traceFlags", std::uint8_t{1});
  });
  AddPartB(event, 2, [](DynamicEvent& part) {
    part.AddField("severityNumber", std::uint8_t{13});
    part.AddField("name", std::string_view("Shop.Orders"));
  });
}

TEST(CommonSchema, ReadsTheFieldsOfTheExporterForCpp) {
  const WrittenEvent event(AddCppFields);
  const std::optional<LogRecord> record = event.Read();
  ASSERT_TRUE(record);
  EXPECT_EQ(record->severity, 10);
  EXPECT_EQ(record->severity_text, "INFO2");
  EXPECT_EQ(record->name, "");
  EXPECT_TRUE(record->has_body);
  EXPECT_FALSE(record->time);
  EXPECT_FALSE(record->trace_id);
  EXPECT_FALSE(record->span_id);
  EXPECT_EQ(event.Attributes(), R"({"order":7,"price":1.5})");
  EXPECT_EQ(event.Line(),
            R"(severity=INFO2 body="Order \"7\" accepted\n" {"order":7,"price":1.5})");
}

TEST(CommonSchema, ReadsTheFieldsOfTheExporterForRust) {
  const WrittenEvent event(AddRustFields);
  const std::optional<LogRecord> record = event.Read();
  ASSERT_TRUE(record);
  EXPECT_EQ(record->severity, 17);
  EXPECT_EQ(record->severity_text, "ERROR");
  EXPECT_EQ(record->name, "PaymentFailed");
  ASSERT_TRUE(record->time);
  EXPECT_EQ(base::FormatUtc(*record->time), "2026-11-21T10:00:00.123456789Z");
  ASSERT_TRUE(record->trace_id);
  EXPECT_EQ(base::FormatHex(*record->trace_id), kTraceId);
  EXPECT_EQ(record->span_id, 0xB7AD6B7169203331);
  EXPECT_EQ(record->service, "shop");
  EXPECT_EQ(record->service_instance, "shop-3");
  EXPECT_EQ(event.Attributes(), R"({"user":["ann","bob"],"paid":true,"eventId":33})");
  EXPECT_EQ(event.Line(),
            "severity=ERROR name=PaymentFailed trace=0af7651916cd43dd8448eb211c80319c "
            R"(span=b7ad6b7169203331 body=-5 {"user":["ann","bob"],"paid":true,"eventId":33})");
}

TEST(CommonSchema, ReadsTheFieldsOfTheExporterForDotnet) {
  const WrittenEvent event(AddDotnetFields);
  const std::optional<LogRecord> record = event.Read();
  ASSERT_TRUE(record);
  EXPECT_EQ(record->severity, 13);
  EXPECT_EQ(record->severity_text, "");
  EXPECT_EQ(record->name, "Shop.Orders");
  EXPECT_EQ(record->time, absl::FromUnixSeconds(1795255200));
  EXPECT_EQ(record->trace_flags, 1U);
  EXPECT_EQ(record->span_id, 0xB7AD6B7169203331);
  EXPECT_FALSE(record->has_body);
  EXPECT_EQ(event.Attributes(), R"({"PartA.name":"Log"})");
  EXPECT_EQ(event.Line(),
            "severity=WARN name=Shop.Orders trace=0af7651916cd43dd8448eb211c80319c "
            R"(span=b7ad6b7169203331 {"PartA.name":"Log"})");
}

TEST(CommonSchema, RawValuesAreShownAsTheyAreStored) {
  const WrittenEvent event(AddDotnetFields);
  EXPECT_FALSE(event.Read(PayloadStyle::kRaw));
  EXPECT_FALSE(event.Read(PayloadStyle::kRawForPeople));
  EXPECT_EQ(event.Line(PayloadStyle::kRawForPeople).substr(0, 18), R"({"__csver__":1024,)");
}

TEST(CommonSchema, MembersMayBeMissingOrEmpty) {
  const WrittenEvent least([](DynamicEvent& event) {
    AddVersion(event);
    AddPartB(event, 0, [](DynamicEvent&) {});
  });
  EXPECT_EQ(least.Line(), "severity=0");
  const WrittenEvent empty([](DynamicEvent& event) {
    AddVersion(event);
    AddStruct(event, "PartA", 2, [](DynamicEvent& part) {
      part.AddField("ext_dt_traceId", std::string_view(""));
      part.AddField("ext_dt_spanId", std::string_view("0000000000000000"));
    });
    AddPartB(event, 3, [](DynamicEvent& part) {
      part.AddField("severityText", std::string_view("a b"));
      part.AddField("name", std::string_view("x=y"));
      part.AddField("body", std::string_view(""));
    });
  });
  EXPECT_EQ(empty.Line(), R"(severity="a b" name="x=y" body="")");
}

TEST(CommonSchema, BodiesAndAttributesKeepTheirStructure) {
  const WrittenEvent nested([](DynamicEvent& event) {
    AddVersion(event);
    AddStruct(event, "PartA", 1, [](DynamicEvent& part) {
      AddStruct(part, "ext_os", 1,
                [](DynamicEvent& system) { system.AddField("name", std::string_view("Linux")); });
    });
    AddPartB(event, 1, [](DynamicEvent& part) {
      AddStruct(part, "body", 2, [](DynamicEvent& body) {
        body.AddField("a", std::vector<std::int32_t>{1, 2});
        body.AddField("a", std::string_view("x"));
      });
    });
    AddStruct(event, "PartC", 2, [](DynamicEvent& part) {
      AddStruct(part, "s", 1, [](DynamicEvent& inner) {
        AddStruct(inner, "PartB", 1, [](DynamicEvent& last) { last.AddField("body", 1); });
      });
      part.AddField("n", std::vector<std::int32_t>{3});
    });
  });
  EXPECT_EQ(nested.Line(), R"(severity=0 body={"a":[[1,2],"x"]} )"
                           R"({"PartA.ext_os_name":"Linux","s":{"PartB":{"body":1}},"n":[3]})");
}

// Each case is an event that is no log record, so its fields are shown as they are.
TEST(CommonSchema, OtherEventsAreNoLogRecords) {
  const auto nothing = [](DynamicEvent&) {};
  const auto with_part_b = [](unsigned count, const AddFields& add) {
    return [count, add](DynamicEvent& event) {
      AddVersion(event);
      AddPartB(event, count, add);
    };
  };
  const auto with_part_a = [&](std::string_view name, const auto& value) {
    return [&nothing, name, value](DynamicEvent& event) {
      AddVersion(event);
      AddStruct(event, "PartA", 1, [&](DynamicEvent& part) { part.AddField(name, value); });
      AddPartB(event, 0, nothing);
    };
  };
  const std::vector<std::pair<const char*, AddFields>> cases = {
      {"another version",
       [&](DynamicEvent& event) {
         event.AddField("__csver__", std::uint16_t{0x401});
         AddPartB(event, 0, nothing);
       }},
      {"version of another type",
       [&](DynamicEvent& event) {
         event.AddField("__csver__", std::string_view("1024"));
         AddPartB(event, 0, nothing);
       }},
      {"no version", [&](DynamicEvent& event) { AddPartB(event, 0, nothing); }},
      {"no PartB",
       [](DynamicEvent& event) {
         AddVersion(event);
         AddStruct(event, "PartC", 1, [](DynamicEvent& part) { part.AddField("a", 1); });
       }},
      {"PartB is not a struct",
       [](DynamicEvent& event) {
         AddVersion(event);
         event.AddField("PartB", 1);
       }},
      {"PartB twice",
       [&](DynamicEvent& event) {
         AddVersion(event);
         AddPartB(event, 0, nothing);
         AddStruct(event, "PartB", 1, [](DynamicEvent& part) { part.AddField("a", 1); });
       }},
      {"another field",
       [&](DynamicEvent& event) {
         AddVersion(event);
         AddPartB(event, 0, nothing);
         event.AddField("extra", 1);
       }},
      {"no type name",
       [](DynamicEvent& event) {
         AddVersion(event);
         AddStruct(event, "PartB", 1, [](DynamicEvent& part) { part.AddField("body", 1); });
       }},
      {"another type name",
       [](DynamicEvent& event) {
         AddVersion(event);
         AddStruct(event, "PartB", 1, [](DynamicEvent& part) {
           part.AddField("_typeName", std::string_view("Span"));
         });
       }},
      {"severity as text",
       with_part_b(
           1, [](DynamicEvent& part) { part.AddField("severityNumber", std::string_view("9")); })},
      {"severity that is too large",
       with_part_b(1, [](DynamicEvent& part) { part.AddField("severityNumber", 25); })},
      {"negative severity",
       with_part_b(1, [](DynamicEvent& part) { part.AddField("severityNumber", -247); })},
      {"text of the severity as a number",
       with_part_b(1, [](DynamicEvent& part) { part.AddField("severityText", 9); })},
      {"name as a number", with_part_b(1, [](DynamicEvent& part) { part.AddField("name", 9); })},
      {"two bodies", with_part_b(2,
                                 [](DynamicEvent& part) {
                                   part.AddField("body", 1);
                                   part.AddField("body", 2);
                                 })},
      {"short trace id", with_part_a("ext_dt_traceId", kSpanId)},
      {"trace id with another character",
       with_part_a("ext_dt_traceId", std::string_view("0af7651916cd43dd8448eb211c80319g"))},
      {"trace id as a GUID",
       with_part_a("ext_dt_traceId", std::string_view("0af76519-16cd-43dd-8448-eb211c80319c"))},
      {"long span id", with_part_a("ext_dt_spanId", kTraceId)},
      {"span id as a number", with_part_a("ext_dt_spanId", 5)},
      {"time as a number", with_part_a("time", std::int64_t{5})},
      {"time that is no time", with_part_a("time", std::string_view("yesterday"))},
      {"ids twice",
       [&](DynamicEvent& event) {
         AddVersion(event);
         AddStruct(event, "PartA", 2, [](DynamicEvent& part) {
           part.AddField("ext_dt_spanId", kSpanId);
           AddStruct(part, "ext_dt", 1, [](DynamicEvent& ids) { ids.AddField("spanId", kSpanId); });
         });
         AddPartB(event, 0, nothing);
       }},
  };
  for (const auto& [name, add] : cases) {
    const WrittenEvent event(add);
    EXPECT_FALSE(event.Read()) << name;
    EXPECT_TRUE(event.Line().starts_with('{')) << name;
  }
}

TEST(CommonSchema, SeveritiesHaveTheShortNamesOfOpenTelemetry) {
  EXPECT_EQ(SeverityName(0), "0");
  EXPECT_EQ(SeverityName(1), "TRACE");
  EXPECT_EQ(SeverityName(8), "DEBUG4");
  EXPECT_EQ(SeverityName(9), "INFO");
  EXPECT_EQ(SeverityName(14), "WARN2");
  EXPECT_EQ(SeverityName(19), "ERROR3");
  EXPECT_EQ(SeverityName(24), "FATAL4");
  EXPECT_EQ(SeverityName(25), "25");
}

}  // namespace
}  // namespace trace
