// Tests the requests of `nettrace export --to otlp` and `otlp-json`. The bytes of protobuf are
// written by hand; tests/conformance reads both forms with another implementation.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nettrace/format.h"
#include "nettrace/sink.h"
#include "tests/support/bytes.h"
#include "tools/nettrace/export/otlp/log_encoder.h"
#include "tools/nettrace/export/otlp/log_requests.h"
#include "tools/nettrace/export/otlp/loss_details.h"
#include "tools/nettrace/export/otlp/otlp_exporter.h"
#include "tools/nettrace/export/otlp/span_window.h"
#include "tools/nettrace/export/otlp/trace_ids.h"
#include "tools/trace/account.h"
#include "tools/trace/eventheader_keys.h"
#include "tools/trace/payload_json.h"
#include "tools/trace/thread_keys.h"

namespace tools::otlp {
namespace {

using namespace std::string_literals;
using nettrace::Type;
using nettrace::TypeCode;

nettrace::Guid GuidOf(std::uint8_t last) {
  nettrace::Guid guid = {};
  guid.back() = std::byte{last};
  return guid;
}

TEST(LogEncoder, ProtobufHasTheNumbersOfTheSpecification) {
  const auto encoder = LogEncoder::Create(Encoding::kProtobuf);
  RecordHead head;
  head.time = 1;
  head.observed = 2;
  head.flags = 3;
  head.severity = 9;
  head.severity_text = "info";
  head.event_name = "E";
  head.span_id = 2;
  encoder->BeginRecord(head);
  encoder->Attribute("a");
  encoder->Whole(std::int64_t{-1});
  encoder->BeginBody();
  encoder->Text("b");
  EXPECT_EQ(encoder->Take(),
            "\x09\1\0\0\0\0\0\0\0"
            "\x10\x09"
            "\x1A\4info"
            "\x45\3\0\0\0"
            "\x52\x08\0\0\0\0\0\0\0\2"
            "\x59\2\0\0\0\0\0\0\0"
            "\x62\1E"
            "\x32\x10\x0A\1a\x12\x0B\x18\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"
            "\x2A\3\x0A\1b"s);
}

TEST(LogEncoder, ProtobufOfARequestNestsResourcesScopesAndRecords) {
  const auto encoder = LogEncoder::Create(Encoding::kProtobuf);
  std::vector<ResourceGroup> groups(1);
  groups[0].scopes.resize(1);
  encoder->BeginResource();
  encoder->Attribute("p");
  encoder->Bool(true);
  groups[0].resource = encoder->Take();
  encoder->BeginScope("S");
  groups[0].scopes[0].scope = encoder->Take();
  encoder->BeginRecord({});
  encoder->AppendRecord(encoder->Take(), &groups[0].scopes[0].records);
  encoder->AppendRecord("\x62\1E", &groups[0].scopes[0].records);
  std::string request;
  encoder->AppendRequest(Signal::kLogs, groups, &request);
  EXPECT_EQ(request,
            "\x0A\x19"
            "\x0A\x09\x0A\7\x0A\1p\x12\2\x10\1"
            "\x12\x0C\x0A\3\x0A\1S"
            "\x12\0"
            "\x12\3\x62\1E"s);
}

// Adds members to a record in JSON, and returns the record.
template <typename Put>
std::string WithFields(bool repeats_names, const Put& put) {
  const auto encoder = LogEncoder::Create(Encoding::kJson);
  encoder->BeginRecord({});
  encoder->BeginFields(repeats_names);
  put(encoder.get());
  encoder->EndFields();
  return std::string(encoder->Take());
}

TEST(LogEncoder, JsonHasTheNamesOfTheSpecification) {
  const auto encoder = LogEncoder::Create(Encoding::kJson);
  RecordHead head;
  head.time = 1'800'000'000'000'000'001;
  head.observed = 2;
  head.flags = 3;
  head.severity = 17;
  head.severity_text = "error";
  head.event_name = "a\"b";
  head.trace_id.emplace();
  head.trace_id->back() = std::byte{0xAB};
  head.span_id = 0xCD;
  encoder->BeginRecord(head);
  encoder->BeginBody();
  encoder->Double(0.5);
  EXPECT_EQ(encoder->Take(),
            R"({"timeUnixNano":"1800000000000000001","observedTimeUnixNano":"2",)"
            R"("severityNumber":17,"severityText":"error","eventName":"a\"b","flags":3,)"
            R"("traceId":"000000000000000000000000000000ab","spanId":"00000000000000cd",)"
            R"("attributes":[],"body":{"doubleValue":0.5}})");
}

TEST(LogEncoder, ValuesKeepTheirTypes) {
  EXPECT_EQ(WithFields(false,
                       [](LogEncoder* out) {
                         out->Key("u");
                         out->Whole(std::uint64_t{1} << 63);
                         out->Key("i");
                         out->Whole((std::uint64_t{1} << 63) - 1);
                         out->Key("b");
                         out->Bytes(std::as_bytes(std::span("\xFF", 1)));
                         out->Key("n");
                         out->Double(-std::numeric_limits<double>::infinity());
                         out->Key("s");
                         out->BeginObject(false);
                         out->Key("a");
                         out->BeginArray();
                         out->Bool(true);
                         out->Null();
                         out->EndArray();
                         out->EndObject(false);
                       }),
            R"({"attributes":[{"key":"u","value":{"stringValue":"9223372036854775808"}},)"
            R"({"key":"i","value":{"intValue":"9223372036854775807"}},)"
            R"({"key":"b","value":{"bytesValue":"/w=="}},)"
            R"({"key":"n","value":{"doubleValue":"-Infinity"}},)"
            R"({"key":"s","value":{"kvlistValue":{"values":[)"
            R"({"key":"a","value":{"arrayValue":{"values":[{"boolValue":true},{}]}}}]}}}]})");
}

TEST(LogEncoder, NullMembersAreLeftOut) {
  const auto put = [](LogEncoder* out) {
    out->Key("first");
    out->Null();
    out->Key("s");
    out->BeginObject(false);
    out->Key("inner");
    out->Null();
    out->EndObject(false);
    out->Key("last");
    out->Null();
  };
  EXPECT_EQ(WithFields(false, put),
            R"({"attributes":[{"key":"s","value":{"kvlistValue":{"values":[]}}}]})");
}

TEST(LogEncoder, MessageBecomesTheBody) {
  const auto put = [](LogEncoder* out) {
    out->Key("a");
    out->Whole(std::int64_t{1});
    out->Key("message");
    out->BeginArray();
    out->Text("x");
    out->EndArray();
    out->Key("Message");
    out->Text("y");
  };
  EXPECT_EQ(WithFields(false, put), R"({"attributes":[{"key":"a","value":{"intValue":"1"}},)"
                                    R"({"key":"Message","value":{"stringValue":"y"}}],)"
                                    R"("body":{"arrayValue":{"values":[{"stringValue":"x"}]}}})");
  EXPECT_EQ(WithFields(false,
                       [](LogEncoder* out) {
                         out->Key("message");
                         out->Null();
                         out->Key("b");
                         out->Bool(false);
                       }),
            R"({"attributes":[{"key":"b","value":{"boolValue":false}}]})");
}

TEST(LogEncoder, MembersOfOneNameBecomeAnArray) {
  const auto put = [](LogEncoder* out) {
    out->Key("a");
    out->Whole(std::int64_t{1});
    out->Key("b");
    out->Null();
    out->Key("a");
    out->BeginObject(true);
    out->Key("c");
    out->Text("x");
    out->Key("c");
    out->Null();
    out->EndObject(true);
    out->Key("d");
    out->Text("y");
  };
  EXPECT_EQ(WithFields(true, put),
            R"({"attributes":[{"key":"a","value":{"arrayValue":{"values":[{"intValue":"1"},)"
            R"({"kvlistValue":{"values":[{"key":"c","value":{"arrayValue":{"values":[)"
            R"({"stringValue":"x"},{}]}}}]}}]}}},{"key":"d","value":{"stringValue":"y"}}]})");
}

TEST(LogEncoder, FieldsDoNotTakeTheNamesOfOtherAttributes) {
  EXPECT_EQ(WithFields(false,
                       [](LogEncoder* out) {
                         out->Key("thread.id");
                         out->Bool(true);
                         out->Key("thread_id\xFF");
                         out->Bool(true);
                       }),
            "{\"attributes\":[{\"key\":\"field.thread.id\",\"value\":{\"boolValue\":true}},"
            "{\"key\":\"thread_id\xEF\xBF\xBD\",\"value\":{\"boolValue\":true}}]}");
}

TEST(LogEncoder, TextCannotChangeATerminalOrEndALine) {
  EXPECT_EQ(WithFields(false,
                       [](LogEncoder* out) {
                         out->Key("a");
                         out->Text("\n\x1B\xE2\x80\xAE");
                       }),
            R"({"attributes":[{"key":"a","value":{"stringValue":"\n\u001B\u202e"}}]})");
}

TEST(TraceIds, LabelsHavePrecedence) {
  nettrace::Labels labels;
  labels.activity_id = GuidOf(1);
  labels.trace_id.emplace();
  labels.trace_id->back() = std::byte{2};
  labels.span_id = 3;
  const SpanIds ids = TraceIds().IdsOf(labels);
  EXPECT_EQ(ids.trace_id, labels.trace_id);
  EXPECT_EQ(ids.span_id, 3U);
}

TEST(TraceIds, IdsOfZeroAreLeftOut) {
  nettrace::Labels labels;
  labels.activity_id.emplace();
  labels.trace_id.emplace();
  labels.span_id = 0;
  const SpanIds ids = TraceIds().IdsOf(labels);
  EXPECT_FALSE(ids.trace_id);
  EXPECT_FALSE(ids.span_id);
}

TEST(TraceIds, RelatedActivitiesShareTheTraceOfTheirRoot) {
  TraceIds ids;
  nettrace::Labels labels;
  labels.activity_id = GuidOf(1);
  const SpanIds root = ids.IdsOf(labels);
  EXPECT_EQ(root.trace_id, nettrace::GuidFromUuid(GuidOf(1)));
  labels.activity_id = GuidOf(2);
  labels.related_activity_id = GuidOf(1);
  const SpanIds child = ids.IdsOf(labels);
  labels.activity_id = GuidOf(3);
  labels.related_activity_id = GuidOf(2);
  ids.IdsOf(labels);
  labels.related_activity_id.reset();
  const SpanIds grandchild = ids.IdsOf(labels);
  EXPECT_EQ(child.trace_id, root.trace_id);
  EXPECT_EQ(grandchild.trace_id, root.trace_id);
  EXPECT_NE(child.span_id, root.span_id);
  EXPECT_NE(grandchild.span_id, child.span_id);
}

TEST(TraceIds, TheOldestRootsAreForgotten) {
  TraceIds ids;
  nettrace::Labels labels;
  const auto start = [&](std::uint64_t activity) {
    labels.activity_id.emplace();
    std::memcpy(labels.activity_id->data(), &activity, sizeof activity);
    labels.related_activity_id = GuidOf(1);
    ids.IdsOf(labels);
  };
  const auto is_known = [&](std::uint64_t activity) {
    labels.activity_id.emplace();
    std::memcpy(labels.activity_id->data(), &activity, sizeof activity);
    labels.related_activity_id.reset();
    return ids.IdsOf(labels).trace_id == nettrace::GuidFromUuid(GuidOf(1));
  };
  for (std::uint64_t i = 1; i <= TraceIds::kMaxActivities; ++i) start(i);
  EXPECT_TRUE(is_known(1));
  start(TraceIds::kMaxActivities + 1);
  EXPECT_FALSE(is_known(1));
  EXPECT_TRUE(is_known(2));
  EXPECT_TRUE(is_known(TraceIds::kMaxActivities + 1));
}

class LogRequestsTest : public ::testing::Test {
 protected:
  LogRequestsTest() {
    trace_.key_values = {{nettrace::kKeyHostName, "h0"}};
    metadata_.provider = "P";
    metadata_.name = "E";
    metadata_.fields = {{"text", Type::Array(Type::Simple(TypeCode::kUtf8CodeUnit))}};
    thread_.process_id = 7;
    Start({});
  }
  void Start(const RequestLimits& limits) {
    requests_ = std::make_unique<LogRequests>(Encoding::kJson, trace_, limits, Keep(&sent_));
  }
  RequestBatch::Send Keep(std::vector<std::string>* requests) {
    return [this, requests](const RequestBatch&, std::string_view request) {
      requests->emplace_back(request);
      return result_;
    };
  }
  // Makes spans of provider P.
  void StartSpans() {
    Start({});
    requests_->MakeSpans({.providers = {"P"}, .send = Keep(&spans_)}, {});
  }
  // Adds an event that starts or stops an activity.
  absl::Status AddActivity(std::uint8_t opcode, std::uint8_t activity, std::uint8_t related = 0,
                           std::string_view text = "") {
    labels_ = {};
    labels_.opcode = opcode;
    labels_.activity_id = GuidOf(activity);
    if (related != 0) labels_.related_activity_id = GuidOf(related);
    return Add(thread_, text);
  }
  absl::Status Add(const nettrace::ThreadInfo& thread, std::string_view text = "",
                   std::string_view process = "") {
    std::vector<std::byte> payload = tests::ToBytes(text);
    const std::size_t size = text.size();
    payload.insert(payload.begin(),
                   {static_cast<std::byte>(size), static_cast<std::byte>(size >> 8)});
    return AddPayload(thread, payload, process);
  }
  absl::Status AddPayload(const nettrace::ThreadInfo& thread, std::span<const std::byte> payload,
                          std::string_view process = "") {
    nettrace::Event event;
    event.metadata = &metadata_;
    event.thread = &thread;
    event.capture_thread = &capture_thread_;
    event.labels = &labels_;
    event.processor = nettrace::kNoProcessor;
    event.sequence_number = ++sequence_number_;
    event.payload = payload;
    exporting::ExportedEvent exported;
    exported.event = &event;
    exported.time = absl::FromUnixNanos(sequence_number_);
    exported.process = process;
    trace::PayloadJson payloads(trace::PayloadStyle::kForPrograms);
    exported.payloads = &payloads;
    return requests_->OnEvent(exported);
  }
  static std::size_t Count(std::string_view text, std::string_view part) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++count;
    return count;
  }

  nettrace::TraceInfo trace_;
  nettrace::EventMetadata metadata_;
  nettrace::ThreadInfo thread_;
  nettrace::ThreadInfo capture_thread_;
  nettrace::Labels labels_;
  std::uint32_t sequence_number_ = 0;
  absl::Status result_;
  std::vector<std::string> sent_;
  std::vector<std::string> spans_;
  std::unique_ptr<LogRequests> requests_;
};

TEST_F(LogRequestsTest, NothingIsSentWithoutRecords) {
  EXPECT_TRUE(requests_->Flush().ok());
  EXPECT_TRUE(sent_.empty());
}

TEST_F(LogRequestsTest, RequestHasTheResourceTheScopeAndTheRecord) {
  thread_.thread_id = 8;
  thread_.name = "worker";
  thread_.key_values = {{trace::kExecutableKey, "/bin/shop"},
                        {trace::kUnitKey, "shop.service"},
                        {trace::kTransportKey, trace::kRingTransport}};
  metadata_.level = 4;
  metadata_.keywords = 2;
  metadata_.key_values = {{trace::kKeyGroup, "g"}, {trace::kKeyTag, "0x12"}};
  EXPECT_TRUE(Add(thread_, "hello").ok());
  EXPECT_TRUE(requests_->Flush().ok());
  ASSERT_EQ(sent_.size(), 1U);
  const std::size_t uid = sent_[0].find("\"log.record.uid\"");
  const std::size_t digits = sent_[0].find("stringValue\":\"", uid) + 14;
  EXPECT_EQ(sent_[0].substr(digits + 16, 5), ":1:1\"");
  sent_[0].erase(digits, 16);
  const auto text = [](const std::string& key, const std::string& value) {
    return R"({"key":")" + key + R"(","value":{"stringValue":")" + value + "\"}}";
  };
  const auto number = [](const std::string& key, const std::string& value) {
    return R"({"key":")" + key + R"(","value":{"intValue":")" + value + "\"}}";
  };
  EXPECT_EQ(sent_[0],
            R"({"resourceLogs":[{"resource":{"attributes":[)" + text("service.name", "shop") + "," +
                text("host.name", "h0") + "," + number("process.pid", "7") + "," +
                text("process.executable.name", "shop") + "," +
                text("process.executable.path", "/bin/shop") + "," +
                text("nettrace.unit", "shop.service") +
                R"(]},"scopeLogs":[{"scope":{"name":"P","attributes":[)" +
                text("eventheader.group", "g") + R"(]},"logRecords":[{"timeUnixNano":"1",)" +
                R"("observedTimeUnixNano":"1","severityNumber":9,"severityText":"info",)" +
                R"("eventName":"E","attributes":[)" + text("log.record.uid", ":1:1") + "," +
                number("thread.id", "8") + "," + text("thread.name", "worker") + "," +
                number("eventheader.keyword", "2") + "," + text("eventheader.tag", "0x12") + "," +
                text("nettrace.thread.Transport", "ring") + "," + text("text", "hello") +
                "]}]}]}]}");
}

TEST_F(LogRequestsTest, LogRecordsOfOpenTelemetryReplacePartsOfTheEvent) {
  const Type text = Type::Array(Type::Simple(TypeCode::kUtf8CodeUnit));
  metadata_.level = 4;
  metadata_.fields = {{"__csver__", Type::Simple(TypeCode::kUInt16)},
                      {"PartA", Type::Object({{"time", text},
                                              {"ext_dt_traceId", text},
                                              {"ext_dt_spanId", text},
                                              {"ext_dt_traceFlags", Type::Simple(TypeCode::kByte)},
                                              {"ext_cloud_role", text},
                                              {"ext_cloud_roleInstance", text}})},
                      {"PartB", Type::Object({{"_typeName", text},
                                              {"severityNumber", Type::Simple(TypeCode::kByte)},
                                              {"body", text},
                                              {"name", text}})},
                      {"PartC", Type::Object({{"user", text}, {"message", text}, {"user", text}})}};
  const auto bytes = [](std::string_view value) {
    return std::string{static_cast<char>(value.size()), '\0'}.append(value);
  };
  const std::string payload = "\0\4"s + bytes("1970-01-01T00:00:00.000000009Z") +
                              bytes("0af7651916cd43dd8448eb211c80319c") +
                              bytes("b7ad6b7169203331") + '\1' + bytes("role") + bytes("role-1") +
                              bytes("Log") + '\x12' + bytes("text") + bytes("Name") + bytes("a") +
                              bytes("m") + bytes("b");
  EXPECT_TRUE(AddPayload(thread_, tests::ToBytes(payload)).ok());
  // A record without ext_cloud_role has a different resource: that of the thread.
  metadata_.fields.resize(1);
  requests_->OnRowsEnd();
  EXPECT_TRUE(AddPayload(thread_, tests::ToBytes("\0\4"s)).ok());
  EXPECT_TRUE(requests_->Flush().ok());
  ASSERT_EQ(sent_.size(), 1U);
  const std::string record = sent_[0].substr(sent_[0].find("\"logRecords\""));
  EXPECT_TRUE(record.starts_with(
      R"("logRecords":[{"timeUnixNano":"9","observedTimeUnixNano":"1","severityNumber":18,)"
      R"("eventName":"Name","flags":1,"traceId":"0af7651916cd43dd8448eb211c80319c",)"
      R"("spanId":"b7ad6b7169203331","attributes":[{"key":"log.record.uid",)"))
      << record;
  EXPECT_NE(record.find(R"({"key":"user","value":{"arrayValue":{"values":[{"stringValue":"a"},)"
                        R"({"stringValue":"b"}]}}},{"key":"message","value":{"stringValue":"m"}}],)"
                        R"("body":{"stringValue":"text"}}]}]})"),
            std::string::npos)
      << record;
  EXPECT_EQ(Count(sent_[0], R"({"key":"service.name","value":{"stringValue":"role"}})"), 1U);
  EXPECT_EQ(Count(sent_[0], R"({"key":"service.instance.id","value":{"stringValue":"role-1"}})"),
            1U);
  EXPECT_EQ(Count(sent_[0], "\"resource\":"), 2U);
  EXPECT_EQ(Count(sent_[0], R"({"key":"__csver__","value":{"intValue":"1024"}})"), 1U);
}

TEST_F(LogRequestsTest, EqualPidsOfSeveralHostsAreSeveralResources) {
  nettrace::ThreadInfo first = thread_;
  first.key_values = {{nettrace::kKeyHostName, "h1"}};
  nettrace::ThreadInfo second = thread_;
  second.key_values = {{nettrace::kKeyHostName, "h2"}};
  for (const auto* thread : {&first, &second, &first}) EXPECT_TRUE(Add(*thread).ok());
  EXPECT_TRUE(requests_->Flush().ok());
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(Count(sent_[0], "\"resource\":"), 2U);
  EXPECT_LT(sent_[0].find("\"h1\""), sent_[0].find("\"h2\""));
  EXPECT_LT(sent_[0].find(":3:3\""), sent_[0].find("\"h2\""));
}

TEST_F(LogRequestsTest, ThreadsOfOneProcessShareItsResource) {
  nettrace::ThreadInfo other = thread_;
  other.thread_id = 9;
  EXPECT_TRUE(Add(thread_, "", "/bin/a").ok());
  EXPECT_TRUE(Add(other, "", "/bin/a").ok());
  EXPECT_TRUE(Add(other, "", "/bin/b").ok());
  EXPECT_TRUE(requests_->Flush().ok());
  EXPECT_EQ(Count(sent_[0], "\"resource\":"), 2U) << sent_[0];
  EXPECT_EQ(Count(sent_[0], "\"logRecords\":"), 2U);
}

TEST_F(LogRequestsTest, RequestsHaveAtMostTheirRecords) {
  Start({.records = 2});
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Add(thread_).ok());
  EXPECT_EQ(sent_.size(), 2U);
  EXPECT_TRUE(requests_->Flush().ok());
  ASSERT_EQ(sent_.size(), 3U);
  EXPECT_EQ(Count(sent_[0], "timeUnixNano"), 2U);
  EXPECT_EQ(Count(sent_[2], "timeUnixNano"), 1U);
  EXPECT_EQ(Count(sent_[2], "process.pid"), 1U);
}

TEST_F(LogRequestsTest, RequestsHaveAtMostTheirBytes) {
  constexpr std::size_t kMost = 3000;
  Start({.bytes = kMost});
  for (std::size_t i = 0; i < 200; ++i) {
    nettrace::ThreadInfo thread = thread_;
    thread.process_id = i % 3;
    metadata_.provider = "P" + std::to_string(i % 2);
    requests_->OnRowsEnd();
    EXPECT_TRUE(Add(thread, std::string(i * 7 % 300, 'x')).ok());
  }
  EXPECT_TRUE(requests_->Flush().ok());
  std::size_t records = 0;
  for (const std::string& request : sent_) {
    EXPECT_LE(request.size(), kMost);
    if (&request != &sent_.back()) {
      EXPECT_GT(request.size(), kMost / 2);
    }
    records += Count(request, "eventName");
  }
  EXPECT_EQ(records, 200U);
}

TEST_F(LogRequestsTest, ARecordOfMoreBytesIsARequestByItself) {
  Start({.bytes = 1000});
  EXPECT_TRUE(Add(thread_).ok());
  EXPECT_TRUE(Add(thread_, std::string(2000, 'x')).ok());
  EXPECT_TRUE(Add(thread_).ok());
  EXPECT_TRUE(requests_->Flush().ok());
  ASSERT_EQ(sent_.size(), 3U);
  for (const std::string& request : sent_) EXPECT_EQ(Count(request, "eventName"), 1U);
}

TEST_F(LogRequestsTest, SkippedRecordsDoNotChangeLaterOnes) {
  const auto send = [this](std::uint64_t skipped) {
    Start({});
    requests_->logs().SkipRecords(skipped);
    sequence_number_ = 0;
    labels_.related_activity_id.reset();
    for (std::uint8_t i = 0; i < 3; ++i) {
      // Each activity is related to the one before, so the trace id of the last event is the first
      // activity.
      if (i != 0) labels_.related_activity_id = GuidOf(i);
      labels_.activity_id = GuidOf(static_cast<std::uint8_t>(i + 1));
      EXPECT_TRUE(Add(thread_).ok());
    }
    EXPECT_TRUE(requests_->Flush().ok());
  };
  send(0);
  send(2);
  send(3);
  ASSERT_EQ(sent_.size(), 2U);  // nothing is sent if all records are skipped
  EXPECT_EQ(Count(sent_[1], "eventName"), 1U);
  const std::string last = sent_[0].substr(sent_[0].rfind("{\"timeUnixNano"));
  EXPECT_NE(sent_[1].find(last), std::string::npos);
}

TEST_F(LogRequestsTest, PartsHaveTheRecordsInTheOrderOfTheEvents) {
  std::vector<std::string> parts;
  requests_ =
      std::make_unique<LogRequests>(Encoding::kJson, trace_, RequestLimits(),
                                    [&](const RequestBatch& batch, std::string_view request) {
                                      EXPECT_EQ(batch.records(), 4U);
                                      for (std::size_t first = 0; first < 4; first += 3) {
                                        batch.AppendPart(first, 3, &parts.emplace_back());
                                      }
                                      std::string all;
                                      batch.AppendPart(0, 4, &all);
                                      EXPECT_EQ(all, request);
                                      return absl::OkStatus();
                                    });
  nettrace::ThreadInfo other = thread_;
  other.process_id = 8;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Add(i % 2 == 0 ? thread_ : other).ok());
  EXPECT_TRUE(requests_->Flush().ok());
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(Count(parts[0], "process.pid"), 2U);
  EXPECT_EQ(Count(parts[0], "eventName"), 3U);
  EXPECT_EQ(Count(parts[1], "process.pid"), 1U);
  EXPECT_EQ(Count(parts[1], "eventName"), 1U);
  EXPECT_NE(parts[1].find(":4\""), std::string::npos);
}

TEST_F(LogRequestsTest, ErrorOfTheReceiverIsReturned) {
  Start({.records = 1});
  result_ = absl::UnavailableError("away");
  EXPECT_TRUE(Add(thread_).ok());
  EXPECT_EQ(Add(thread_), result_);
}

TEST_F(LogRequestsTest, LossIsARecordOfItsHost) {
  capture_thread_.name = "CPU 3";
  trace::Loss loss;
  loss.capture_thread = &capture_thread_;
  loss.count = 5;
  loss.time = absl::FromUnixNanos(10);
  EXPECT_TRUE(requests_->OnLoss(loss).ok());
  EXPECT_TRUE(requests_->Flush().ok());
  ASSERT_EQ(sent_.size(), 1U);
  for (const char* const part :
       {R"({"resource":{"attributes":[{"key":"host.name","value":{"stringValue":"h0"}}]},)",
        R"("scope":{"name":"nettrace",)", R"("severityNumber":13,"severityText":"warning")",
        R"("eventName":"LostEvents")", R"({"key":"count","value":{"intValue":"5"}})",
        R"({"key":"nettrace.capture_thread","value":{"stringValue":"CPU 3"}})",
        R"("body":{"stringValue":"5 events lost"})", R"("timeUnixNano":"10")"}) {
    EXPECT_EQ(Count(sent_[0], part), 1U) << part << "\n" << sent_[0];
  }
}

TEST_F(LogRequestsTest, LossHasTheDetailsOfTheAccount) {
  capture_thread_.name = "CPU 3";
  trace::Loss loss;
  loss.capture_thread = &capture_thread_;
  loss.count = 7;
  loss.time = absl::FromUnixNanos(10);
  EXPECT_TRUE(requests_->OnLoss(loss).ok());
  trace::AccountEvent lost = {.kind = trace::AccountEvent::Kind::kEventsLost,
                              .cpu = 3,
                              .count = 4,
                              .tracepoint = "user_events:A_L4K1",
                              .since = 1'000'000'000,
                              .until = 2'000'000'000};
  const auto add = [&] {
    nettrace::EventMetadata metadata = trace::AccountMetadata(lost.kind);
    const auto payload = trace::AccountPayload(lost);
    ASSERT_TRUE(payload.ok());
    nettrace::Labels labels;
    nettrace::Event event;
    event.metadata = &metadata;
    event.thread = event.capture_thread = &capture_thread_;
    event.labels = &labels;
    event.processor = nettrace::kNoProcessor;
    event.payload = *payload;
    requests_->OnOtherEvent(event);
  };
  add();
  lost.cpu = 2;  // another CPU
  add();
  EXPECT_TRUE(requests_->Flush().ok());
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(Count(sent_[0], R"("eventName":"LostEvents")"), 2U) << sent_[0];
  for (const char* const part :
       {R"({"key":"count","value":{"intValue":"4"}})",
        R"({"key":"count","value":{"intValue":"3"}})",
        R"({"key":"nettrace.lost_since","value":{"stringValue":"1970-01-01T00:00:01.000000000Z"}})",
        R"({"key":"nettrace.lost_until","value":{"stringValue":"1970-01-01T00:00:02.000000000Z"}})",
        R"({"key":"nettrace.lost_tracepoint","value":{"stringValue":"user_events:A_L4K1"}})"}) {
    EXPECT_EQ(Count(sent_[0], part), 1U) << part << "\n" << sent_[0];
  }
}

TEST_F(LogRequestsTest, DeletedEventsAreARecordOfTheHost) {
  EXPECT_TRUE(requests_
                  ->OnDeletedEvents({.time = absl::FromUnixNanos(10),
                                     .text = "gone",
                                     .name = "/s-{time}.nettrace",
                                     .count = 9,
                                     .sections = 2,
                                     .id = "4"})
                  .ok());
  EXPECT_TRUE(requests_->Flush().ok());
  ASSERT_EQ(sent_.size(), 1U);
  for (const char* const part :
       {R"("eventName":"LostEvents")", R"({"key":"count","value":{"intValue":"9"}})",
        R"({"key":"nettrace.lost_sections","value":{"intValue":"2"}})",
        R"({"key":"nettrace.lost_name","value":{"stringValue":"/s-{time}.nettrace"}})",
        R"(:10:deleted4"}})", R"("body":{"stringValue":"gone"})"}) {
    EXPECT_EQ(Count(sent_[0], part), 1U) << part << "\n" << sent_[0];
  }
}

TEST(LossDetails, AccountAfterTheLossIsUsedUp) {
  LossDetails details;
  EXPECT_EQ(details.Take("h", "CPU 1", 5).count, 5U);
  trace::AccountEvent event = {
      .kind = trace::AccountEvent::Kind::kEventsLost, .cpu = 1, .count = 7, .tracepoint = "s:e"};
  details.Add(event, "h");
  EXPECT_EQ(details.Take("other", "CPU 1", 2).tracepoint, "");
  LossDetail taken = details.Take("h", "CPU 1", 10);
  EXPECT_EQ(taken.count, 2U);
  EXPECT_EQ(taken.tracepoint, "s:e");
  taken = details.Take("h", "CPU 1", 8);
  EXPECT_EQ(taken.count, 8U);
  EXPECT_EQ(taken.tracepoint, "");
}

TEST(LossDetails, RingHasTheNameOfItsThread) {
  LossDetails details;
  details.Add({.kind = trace::AccountEvent::Kind::kEventsDropped,
               .cpu = trace::kRingCpu,
               .count = 1,
               .tracepoint = "ring:1/2",
               .reason = "full"},
              "h");
  EXPECT_EQ(details.Take("h", "ring:1/2", 1).reason, "full");
}

TEST(LossDetails, MemoryIsBounded) {
  LossDetails details;
  trace::AccountEvent event = {.kind = trace::AccountEvent::Kind::kEventsLost, .count = 1};
  for (std::size_t i = 0; i < 2 * LossDetails::kMaxDetails; ++i) details.Add(event, "h");
  std::size_t known = 0;
  event.tracepoint = "s:e";
  for (std::size_t i = 0; i < 2 * LossDetails::kMaxPlaces + 1; ++i) {
    event.cpu = static_cast<std::uint32_t>(i);
    details.Add(event, "h");
  }
  for (std::uint32_t cpu = 0; cpu < 2 * LossDetails::kMaxPlaces + 1; ++cpu) {
    known += details.Take("h", "CPU " + std::to_string(cpu), 1).tracepoint.empty() ? 0 : 1;
  }
  EXPECT_LE(known, LossDetails::kMaxDetails);
}

TEST_F(LogRequestsTest, LabelsOfOneNameBecomeAnArray) {
  labels_.strings = {{"a", "x"}, {"b", ""}};
  labels_.integers = {{"a", 1}};
  EXPECT_TRUE(Add(thread_).ok());
  EXPECT_TRUE(requests_->Flush().ok());
  for (const char* const part :
       {R"({"key":"nettrace.label.a","value":{"arrayValue":{"values":[{"stringValue":"x"},)"
        R"({"intValue":"1"}]}}})",
        R"({"key":"nettrace.label.b","value":{"stringValue":""}})"}) {
    EXPECT_EQ(Count(sent_[0], part), 1U) << part << "\n" << sent_[0];
  }
}

TEST_F(LogRequestsTest, UidsDifferByCaptureThreadAndAreTheSameAgain) {
  const auto uid = [this] {
    EXPECT_TRUE(requests_->Flush().ok());
    const std::size_t begin = sent_.back().find("log.record.uid");
    return sent_.back().substr(begin, sent_.back().find('}', begin) - begin);
  };
  capture_thread_.name = "CPU 1";
  EXPECT_TRUE(Add(thread_).ok());
  const std::string first = uid();
  requests_->OnRowsEnd();
  capture_thread_.name = "CPU 2";
  sequence_number_ = 0;
  EXPECT_TRUE(Add(thread_).ok());
  EXPECT_NE(uid(), first);
  requests_->OnRowsEnd();
  capture_thread_.name = "CPU 1";
  sequence_number_ = 0;
  EXPECT_TRUE(Add(thread_).ok());
  EXPECT_EQ(uid(), first);
}

TEST_F(LogRequestsTest, PayloadThatDoesNotFitIsAnErrorAttribute) {
  metadata_.fields.push_back({"missing", Type::Simple(TypeCode::kInt32)});
  EXPECT_TRUE(Add(thread_, "x").ok());
  EXPECT_TRUE(requests_->Flush().ok());
  EXPECT_EQ(Count(sent_[0], "nettrace.error"), 1U) << sent_[0];
  EXPECT_EQ(Count(sent_[0], R"({"key":"text","value":{"stringValue":"x"}})"), 1U) << sent_[0];
}

TEST_F(LogRequestsTest, StartAndStopAreASpan) {
  StartSpans();
  metadata_.name = "RequestStart";
  EXPECT_TRUE(AddActivity(1, 5, 0, "first").ok());
  metadata_.name = "RequestStop";
  EXPECT_TRUE(AddActivity(2, 5, 0, "last").ok());
  EXPECT_TRUE(requests_->Finish().ok());
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(Count(sent_[0], "eventName"), 2U);
  EXPECT_EQ(Count(sent_[0], "incomplete"), 0U);
  ASSERT_EQ(spans_.size(), 1U);
  const std::string& span = spans_[0];
  EXPECT_TRUE(span.starts_with(R"({"resourceSpans":[{"resource":{"attributes":[)")) << span;
  for (const char* const part :
       {R"("scopeSpans":[{"scope":{"name":"P")", R"("spans":[{"traceId":")",
        R"("name":"Request","kind":1,"startTimeUnixNano":"1","endTimeUnixNano":"2","attributes":[)",
        R"({"key":"text","value":{"stringValue":"last"}})",
        R"({"key":"eventheader.opcode","value":{"intValue":"2"}})", R"("links":[])"}) {
    EXPECT_EQ(Count(span, part), 1U) << part << "\n" << span;
  }
  // If the start and the stop have the same attribute, the span has only that of the stop.
  EXPECT_EQ(Count(span, "\"text\""), 1U) << span;
  EXPECT_EQ(Count(span, "log.record.uid"), 0U);
  // The records have the ids of the span.
  const std::string span_id = span.substr(span.find("\"spanId\""), 26);
  EXPECT_EQ(Count(sent_[0], span_id), 2U) << span_id << sent_[0];
}

TEST_F(LogRequestsTest, OpenRelatedActivityIsTheParent) {
  StartSpans();
  EXPECT_TRUE(AddActivity(1, 5).ok());
  EXPECT_TRUE(AddActivity(1, 6, 5).ok());
  EXPECT_TRUE(AddActivity(2, 6).ok());
  EXPECT_TRUE(AddActivity(2, 5).ok());
  EXPECT_TRUE(AddActivity(1, 7, 5).ok());  // 5 is not open any more
  EXPECT_TRUE(AddActivity(1, 7).ok());     // starts within the open activity 7
  EXPECT_TRUE(AddActivity(2, 7).ok());
  EXPECT_TRUE(AddActivity(2, 7).ok());
  EXPECT_TRUE(requests_->Finish().ok());
  ASSERT_EQ(spans_.size(), 1U);
  EXPECT_EQ(Count(spans_[0], "parentSpanId"), 2U) << spans_[0];
  EXPECT_EQ(Count(spans_[0], R"("links":[{"traceId")"), 1U) << spans_[0];
  EXPECT_EQ(requests_->incomplete_spans(), 0U);
}

TEST_F(LogRequestsTest, ActivitiesWithoutAnEndAreMarked) {
  StartSpans();
  EXPECT_TRUE(AddActivity(2, 1).ok());
  EXPECT_TRUE(AddActivity(1, 2).ok());
  EXPECT_TRUE(requests_->Finish().ok());
  constexpr char kMark[] = R"({"key":"nettrace.span.incomplete","value":{"boolValue":true}})";
  EXPECT_EQ(Count(sent_[0], kMark), 1U) << sent_[0];
  ASSERT_EQ(spans_.size(), 1U);
  EXPECT_EQ(Count(spans_[0], kMark), 1U) << spans_[0];
  EXPECT_EQ(Count(spans_[0], R"("startTimeUnixNano":"2","endTimeUnixNano":"2")"), 1U);
  EXPECT_EQ(requests_->incomplete_spans(), 2U);
}

TEST_F(LogRequestsTest, OnlyChosenProvidersHaveSpans) {
  StartSpans();
  metadata_.provider = "Q";
  EXPECT_TRUE(AddActivity(1, 2).ok());
  EXPECT_TRUE(AddActivity(2, 2).ok());
  EXPECT_TRUE(AddActivity(2, 3).ok());
  EXPECT_TRUE(requests_->Finish().ok());
  EXPECT_TRUE(spans_.empty());
  EXPECT_EQ(requests_->incomplete_spans(), 0U);
}

TEST_F(LogRequestsTest, SkippedSpansDoNotChangeLaterOnes) {
  const auto send = [this](std::uint64_t skipped) {
    StartSpans();
    requests_->spans()->SkipRecords(skipped);
    sequence_number_ = 0;
    for (std::uint8_t i = 1; i < 4; ++i) EXPECT_TRUE(AddActivity(1, i, i - 1).ok());
    for (std::uint8_t i = 3; i > 1; --i) EXPECT_TRUE(AddActivity(2, i).ok());
    EXPECT_TRUE(requests_->Finish().ok());
  };
  send(0);
  send(2);
  send(3);
  ASSERT_EQ(spans_.size(), 2U);
  EXPECT_EQ(Count(spans_[0], "\"kind\""), 3U);
  EXPECT_EQ(Count(spans_[1], "\"kind\""), 1U);
  const std::string last = spans_[0].substr(spans_[0].rfind("{\"traceId"));
  EXPECT_NE(spans_[1].find(last), std::string::npos);
}

OpenSpan SpanOf(std::uint64_t number, std::size_t bytes = 0) {
  OpenSpan span;
  span.provider = "P";
  std::memcpy(span.activity.data(), &number, sizeof number);
  span.head.start = number;
  span.attributes.push_back({"a", std::string(bytes, 'x')});
  return span;
}

TEST(SpanWindow, OldestAreRemovedBeyondTheLimit) {
  SpanWindow window;
  for (std::uint64_t i = 0; i < SpanWindow::kMaxOpen; ++i) {
    EXPECT_TRUE(window.Add(SpanOf(i)).empty());
  }
  const std::vector<OpenSpan> removed = window.Add(SpanOf(SpanWindow::kMaxOpen));
  ASSERT_EQ(removed.size(), 1U);
  EXPECT_EQ(removed[0].head.start, 0U);
  EXPECT_FALSE(window.Take(SpanOf(0).activity, "P"));
  EXPECT_EQ(window.Take(SpanOf(2).activity, "P")->head.start, 2U);
  EXPECT_EQ(window.TakeOldest()->head.start, 1U);
  EXPECT_EQ(window.TakeOldest()->head.start, 3U);
}

TEST(SpanWindow, BytesAreLimited) {
  SpanWindow window;
  std::size_t removed = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    removed += window.Add(SpanOf(i, SpanWindow::kMaxBytes / 10)).size();
  }
  EXPECT_EQ(removed, 91U);
  EXPECT_EQ(window.Add(SpanOf(1, SpanWindow::kMaxBytes)).size(), 10U);  // does not fit at all
  EXPECT_FALSE(window.TakeOldest());
}

TEST(SpanWindow, LatestOfTheProviderIsTaken) {
  SpanWindow window;
  for (std::uint64_t i = 1; i < 4; ++i) {
    OpenSpan span = SpanOf(7);
    span.head.start = i;
    if (i == 3) span.provider = "Q";
    window.Add(std::move(span));
  }
  EXPECT_EQ(window.Find(SpanOf(7).activity)->head.start, 3U);
  EXPECT_EQ(window.Take(SpanOf(7).activity, "P")->head.start, 2U);
  EXPECT_EQ(window.Take(SpanOf(7).activity, "P")->head.start, 1U);
  EXPECT_FALSE(window.Take(SpanOf(7).activity, "P"));
  EXPECT_EQ(window.Take(SpanOf(7).activity, "Q")->head.start, 3U);
  EXPECT_EQ(window.Find(SpanOf(7).activity), nullptr);
}

TEST(SpanName, HasNoStart) {
  EXPECT_EQ(SpanName("RequestStart"), "Request");
  EXPECT_EQ(SpanName("Request/Start"), "Request");
  EXPECT_EQ(SpanName("request_begin"), "request");
  EXPECT_EQ(SpanName("Start"), "Start");
  EXPECT_EQ(SpanName("Request"), "Request");
}

TEST(OtlpExporter, RequestsFollowTheirLengthOrAreLines) {
  nettrace::TraceInfo trace;
  nettrace::ThreadInfo thread;
  trace::Loss loss;
  loss.capture_thread = &thread;
  loss.count = 1;
  loss.time = absl::FromUnixNanos(1);
  for (const Encoding encoding : {Encoding::kProtobuf, Encoding::kJson}) {
    nettrace::MemorySink sink;
    OtlpExporter exporter({.encoding = encoding}, trace, &sink, {.records = 1});
    EXPECT_TRUE(exporter.OnLoss(loss).ok());
    EXPECT_TRUE(exporter.OnLoss(loss).ok());
    EXPECT_TRUE(exporter.Finish().ok());
    const std::string text(reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size());
    const std::string half = text.substr(0, text.size() / 2);
    EXPECT_EQ(text, half + half);
    if (encoding == Encoding::kJson) {
      EXPECT_TRUE(half.starts_with("{\"resourceLogs\":[{") && half.ends_with("]}\n")) << half;
    } else {
      const std::string length = {'\0', '\0', static_cast<char>((half.size() - 4) >> 8),
                                  static_cast<char>(half.size() - 4)};
      EXPECT_EQ(half.substr(0, 4), length);
    }
  }
}

}  // namespace
}  // namespace tools::otlp
