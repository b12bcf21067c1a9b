// Tests the parts of `nettrace ship` without a network: how replies are judged, which
// requests are repeated, and which position is stored. tests/programs tests the whole program.
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "tools/nettrace/export/otlp/log_requests.h"
#include "tools/nettrace/ship/answer.h"
#include "tools/nettrace/ship/compressor.h"
#include "tools/nettrace/ship/delivery.h"
#include "tools/nettrace/ship/destination.h"
#include "tools/nettrace/ship/position.h"
#include "tools/nettrace/ship/spool.h"
#include "tools/trace/payload_json.h"

namespace tools::ship {
namespace {

using namespace std::string_literals;

TEST(LogsUrl, AddsThePathOfLogs) {
  EXPECT_EQ(*LogsUrl("http://host:4318"), "http://host:4318/v1/logs");
  EXPECT_EQ(*LogsUrl("https://host/"), "https://host/v1/logs");
  EXPECT_EQ(*LogsUrl("https://[::1]:1/otlp/v1/logs"), "https://[::1]:1/otlp/v1/logs");
}

TEST(LogsUrl, RefusesOtherProtocolsAndCredentials) {
  for (const char* const url :
       {"", "host:4318", "file:///etc/passwd", "http://", "http:///v1", "http://:4318",
        "http://a@host", "http://a:b@host/v1/logs", "http://host/?key=1", "http://host#a",
        "http://ho st/", "http://host/\n", "http://host/\xC3\xA4"}) {
    EXPECT_EQ(LogsUrl(url).status().code(), absl::StatusCode::kInvalidArgument) << url;
  }
}

TEST(TracesUrl, ReplacesThePathOfLogs) {
  EXPECT_EQ(*ReceiverUrl("http://host:4318", otlp::Signal::kSpans), "http://host:4318/v1/traces");
  EXPECT_EQ(*TracesUrl(*LogsUrl("http://host:4318")), "http://host:4318/v1/traces");
  EXPECT_EQ(*TracesUrl("https://host/otlp/v1/logs"), "https://host/otlp/v1/traces");
  EXPECT_EQ(TracesUrl("https://host/here").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Headers, AreLines) {
  const auto headers = ParseHeaders("A: b\r\n\n  # comment: x\nX-Key:c d \nLast: e");
  ASSERT_TRUE(headers.ok()) << headers.status();
  EXPECT_EQ(*headers, (std::vector<std::string>{"A: b", "X-Key:c d", "Last: e"}));
  EXPECT_TRUE(ParseHeaders("")->empty());
}

TEST(Headers, RefuseLinesThatAreNoneWithoutShowingThem) {
  for (const auto& text :
       {"A: b\nsecret"s, "A: b\n: secret"s, "A: b\nA b: secret"s, "A: b\nA:"s, "A: b\nA:\r secret"s,
        "A: b\nA: secret\x01"s, "A: b\ncontent-type: secret"s, "A: b\nA: secret\rB: c"s,
        "A: b\nA: secret\0"s}) {
    const absl::Status status = ParseHeaders(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_NE(status.message().find("line 2: "), absl::string_view::npos);
    EXPECT_EQ(status.message().find("secret"), absl::string_view::npos);
  }
}

HttpReply Reply(int status, std::string body = "") {
  HttpReply reply;
  reply.status = status;
  reply.body = std::move(body);
  return reply;
}

TEST(Judge, FollowsTheSpecification) {
  for (const int status : {429, 502, 503, 504}) {
    EXPECT_EQ(Judge(Reply(status), 1).verdict, Verdict::kRetry) << status;
  }
  for (const int status : {301, 307, 401, 403, 404, 405, 407}) {
    EXPECT_EQ(Judge(Reply(status), 1).verdict, Verdict::kUnreachable) << status;
  }
  for (const int status : {400, 402, 415, 422, 500, 501, 505}) {
    EXPECT_EQ(Judge(Reply(status), 1).verdict, Verdict::kRefused) << status;
  }
  EXPECT_EQ(Judge(Reply(413), 1).verdict, Verdict::kTooLarge);
  EXPECT_EQ(Judge(Reply(200), 1).verdict, Verdict::kAccepted);
  EXPECT_EQ(Judge(Reply(202), 1).verdict, Verdict::kAccepted);
}

TEST(Judge, ErrorsOfTheConnectionAreRetried) {
  HttpReply reply;
  reply.error = "refused";
  EXPECT_EQ(Judge(reply, 1).verdict, Verdict::kRetry);
  EXPECT_EQ(Judge(reply, 1).message, "refused");
  reply.is_setup_error = true;
  EXPECT_EQ(Judge(reply, 1).verdict, Verdict::kUnreachable);
}

TEST(Judge, ReadsPartialSuccess) {
  const Answer protobuf = Judge(Reply(200, "\x0A\x06\x08\x02\x12\x02no"s), 10);
  EXPECT_EQ(protobuf.rejected, 2U);
  EXPECT_EQ(protobuf.message, "no");
  const Answer json = Judge(
      Reply(200, R"({"partialSuccess":{"rejectedLogRecords":"3","errorMessage":"why"}})"), 10);
  EXPECT_EQ(json.rejected, 3U);
  EXPECT_EQ(json.message, "why");
  EXPECT_EQ(Judge(Reply(200, R"({"partialSuccess":{"rejectedLogRecords":4}})"), 10).rejected, 4U);
  EXPECT_EQ(Judge(Reply(200, R"({"partialSuccess":{"rejectedSpans":"4"}})"), 10).rejected, 4U);
  // The reply rejects 255 records, more than the request had.
  EXPECT_EQ(Judge(Reply(200, "\x0A\x03\x08\xFF\x01"s), 10).rejected, 10U);
}

TEST(Judge, IgnoresBodiesThatCannotBeRead) {
  for (const std::string& body :
       {"\x0A"s, "\x0A\x7F"s, "\x0A\x02\x08"s, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s,
        "\x0F\x0F"s, "{"s, "{}"s, "{\"partialSuccess\":7}"s, "text"s,
        "{\"a\":"s + std::string(1'000'000, '[')}) {
    const Answer answer = Judge(Reply(200, body), 10);
    EXPECT_EQ(answer.verdict, Verdict::kAccepted);
    EXPECT_EQ(answer.rejected, 0U);
    EXPECT_EQ(Judge(Reply(400, body), 10).verdict, Verdict::kRefused);
  }
}

TEST(Judge, ShowsTheReceiversReason) {
  EXPECT_EQ(Judge(Reply(400,
                        "\x08\x03\x12\x03"
                        "bad"s),
                  1)
                .message,
            "the receiver answered 400 (bad)");
  EXPECT_EQ(Judge(Reply(400, R"({"code":3,"message":"bad"})"), 1).message,
            "the receiver answered 400 (bad)");
  EXPECT_EQ(Judge(Reply(400, "plain"), 1).message, "the receiver answered 400 (plain)");
  EXPECT_LT(Judge(Reply(400, std::string(5000, 'x')), 1).message.size(), 300U);
}

TEST(RetryWait, DoublesUpToAMinute) {
  RetryWait wait(absl::Seconds(1), 7);
  for (double expected = 1; expected < 200; expected *= 2) {
    const absl::Duration next = wait.Next(absl::ZeroDuration());
    EXPECT_GE(next, absl::Seconds(std::min(expected, 60.0) * 0.8));
    EXPECT_LE(next, absl::Seconds(std::min(expected, 60.0) * 1.2));
  }
  wait.Reset();
  EXPECT_LE(wait.Next(absl::ZeroDuration()), absl::Seconds(1.2));
}

TEST(RetryWait, IsAtLeastWhatTheReceiverAsksForAndAtMostAnHour) {
  RetryWait wait(absl::Seconds(1), 7);
  for (int i = 0; i < 20; ++i) {
    EXPECT_GE(wait.Next(absl::Seconds(100)), absl::Seconds(100));
    EXPECT_LE(wait.Next(absl::Hours(1000)), absl::Minutes(66));
  }
}

TEST(Compressor, GzipCompressesSeveralTexts) {
  Compressor gzip(Compression::kGzip);
  for (const std::string& text : {std::string(), std::string(1'000'000, 'x'), "abc"s}) {
    const auto compressed = gzip.Compress(text);
    ASSERT_TRUE(compressed.ok());
    std::string out(*compressed);
    std::string back(text.size() + 1, '\0');
    z_stream stream = {};
    ASSERT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
    stream.next_in = reinterpret_cast<unsigned char*>(out.data());
    stream.avail_in = static_cast<unsigned>(out.size());
    stream.next_out = reinterpret_cast<unsigned char*>(back.data());
    stream.avail_out = static_cast<unsigned>(back.size());
    EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
    EXPECT_EQ(stream.total_out, text.size());
    EXPECT_EQ(back.substr(0, text.size()), text);
    inflateEnd(&stream);
  }
}

TEST(Compressor, ZstdCompressesSeveralTexts) {
  Compressor zstd(Compression::kZstd);
  for (const std::string& text : {std::string(), std::string(1'000'000, 'x'), "abc"s}) {
    const auto compressed = zstd.Compress(text);
    ASSERT_TRUE(compressed.ok());
    // Receivers refuse frames that state no size of their contents, or a size above a limit.
    EXPECT_EQ(ZSTD_getFrameContentSize(compressed->data(), compressed->size()), text.size());
    std::string back(text.size(), '\0');
    EXPECT_EQ(ZSTD_decompress(back.data(), back.size(), compressed->data(), compressed->size()),
              text.size());
    EXPECT_EQ(back, text);
  }
}

TEST(Compressor, NoneReturnsTheText) {
  Compressor none(Compression::kNone);
  EXPECT_EQ(*none.Compress("abc"), "abc");
}

// Delivers requests of numbered records to a fake receiver, which answers with `replies_`.
class DeliveryTest : public ::testing::Test {
 protected:
  DeliveryTest() {
    metadata_.provider = "P";
    metadata_.name = "E";
    threads_[0].process_id = 1;
    threads_[1].process_id = 2;
    options_.name = "R";
    options_.compression = Compression::kNone;
  }
  Delivery::Actions Actions() {
    return {.post =
                [this](std::string_view body) {
                  bodies_.emplace_back(body);
                  HttpReply reply = Reply(200);
                  if (body.size() > max_body_) return Reply(413);
                  if (bodies_.size() <= replies_.size()) reply = replies_[bodies_.size() - 1];
                  return reply;
                },
            .renew =
                [this] {
                  ++renewals_;
                  return absl::OkStatus();
                },
            .wait =
                [this](absl::Duration duration) {
                  waits_.push_back(duration);
                  now_ += duration;
                  return !stopped_;
                },
            .done =
                [this](std::size_t records, std::uint64_t events) {
                  EXPECT_EQ(events, records);
                  done_.push_back(records);
                  return absl::OkStatus();
                },
            .report = [this](const std::string& text) { reports_.push_back(text); },
            .now = [this] { return now_; }};
  }
  // Delivers a request of `records` records.
  absl::Status Deliver(int records) {
    delivery_ = std::make_unique<Delivery>(options_, Actions());
    otlp::LogRequests requests(otlp::Encoding::kJson, trace_, {},
                               [&](const otlp::RequestBatch& batch, std::string_view whole) {
                                 return delivery_->Deliver(batch, whole);
                               });
    trace::PayloadJson payloads(trace::PayloadStyle::kForPrograms);
    for (int i = 0; i < records; ++i) {
      nettrace::Event event;
      nettrace::ThreadInfo& thread = threads_[i % 2];
      event.metadata = &metadata_;
      event.thread = event.capture_thread = &thread;
      event.labels = &labels_;
      event.processor = nettrace::kNoProcessor;
      event.sequence_number = static_cast<std::uint32_t>(1000 + i);
      exporting::ExportedEvent exported;
      exported.event = &event;
      exported.time = absl::FromUnixNanos(i);
      exported.payloads = &payloads;
      EXPECT_TRUE(requests.OnEvent(exported).ok());
    }
    return requests.Flush();
  }
  // Returns which of the first 100 records the body has.
  static std::vector<int> RecordsIn(const std::string& body) {
    std::vector<int> records;
    for (int i = 0; i < 100; ++i) {
      if (body.find(":" + std::to_string(1000 + i) + "\"") != body.npos) records.push_back(i);
    }
    return records;
  }

  nettrace::TraceInfo trace_;
  nettrace::EventMetadata metadata_;
  nettrace::ThreadInfo threads_[2];
  nettrace::Labels labels_;
  DeliveryOptions options_;
  std::vector<HttpReply> replies_;  // replies to the first requests; others get 200
  std::size_t max_body_ = 1'000'000;
  bool stopped_ = false;
  std::unique_ptr<Delivery> delivery_;
  std::vector<std::string> bodies_;
  std::vector<absl::Duration> waits_;
  std::vector<std::size_t> done_;
  std::vector<std::string> reports_;
  int renewals_ = 0;
  absl::Duration now_;
};

TEST_F(DeliveryTest, SendsARequestOnce) {
  EXPECT_TRUE(Deliver(3).ok());
  ASSERT_EQ(bodies_.size(), 1U);
  EXPECT_EQ(RecordsIn(bodies_[0]), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(done_, (std::vector<std::size_t>{3}));
  EXPECT_EQ(delivery_->counts().accepted, 3U);
  EXPECT_TRUE(reports_.empty());
}

TEST_F(DeliveryTest, RepeatsTheSameRequest) {
  replies_ = {Reply(503), HttpReply(), Reply(429)};
  replies_[2].retry_after = absl::Seconds(500);
  EXPECT_TRUE(Deliver(3).ok());
  ASSERT_EQ(bodies_.size(), 4U);
  for (const std::string& body : bodies_) EXPECT_EQ(body, bodies_[0]);
  ASSERT_EQ(waits_.size(), 3U);
  EXPECT_GE(waits_[2], absl::Seconds(500));
  EXPECT_EQ(delivery_->counts().retries, 3U);
  EXPECT_EQ(renewals_, 3);
  EXPECT_EQ(done_.size(), 1U);
  EXPECT_EQ(reports_.size(), 4U);  // three reasons, and that the receiver answers again
}

TEST_F(DeliveryTest, ReportsAReasonOnce) {
  replies_.assign(20, Reply(503));
  EXPECT_TRUE(Deliver(1).ok());
  EXPECT_EQ(waits_.size(), 20U);
  EXPECT_EQ(reports_.size(), 2U);
}

TEST_F(DeliveryTest, UnreachableReceiverIsTriedOnceAMinute) {
  replies_.assign(2, Reply(401));
  EXPECT_TRUE(Deliver(1).ok());
  ASSERT_EQ(waits_.size(), 2U);
  EXPECT_GE(waits_[0], absl::Minutes(1));
  EXPECT_EQ(delivery_->counts().refused, 0U);
}

TEST_F(DeliveryTest, UnreachableReceiverIsAnErrorIfTheOptionsSaySo) {
  options_.fails_if_unreachable = true;
  replies_ = {Reply(401)};
  EXPECT_EQ(Deliver(1).code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(done_.empty());
}

TEST_F(DeliveryTest, GivesUpAfterTheTime) {
  options_.give_up = absl::Minutes(10);
  replies_.assign(1000, Reply(503));
  EXPECT_EQ(Deliver(1).code(), absl::StatusCode::kUnavailable);
  EXPECT_LE(now_, absl::Minutes(10));
  EXPECT_GE(now_, absl::Minutes(8));
}

TEST_F(DeliveryTest, StopsWhenAsked) {
  stopped_ = true;
  replies_ = {Reply(503)};
  EXPECT_EQ(Deliver(1).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(bodies_.size(), 1U);
}

TEST_F(DeliveryTest, HalvesRequestsInTheOrderOfTheEvents) {
  max_body_ = 1500;
  EXPECT_TRUE(Deliver(50).ok());
  std::vector<int> arrived;
  std::size_t too_large = 0;
  for (const std::string& body : bodies_) {
    if (body.size() > max_body_) {
      ++too_large;
      continue;
    }
    const std::vector<int> records = RecordsIn(body);
    arrived.insert(arrived.end(), records.begin(), records.end());
  }
  std::vector<int> all(50);
  for (int i = 0; i < 50; ++i) all[i] = i;
  EXPECT_EQ(arrived, all);
  EXPECT_LE(too_large, 8U);  // Later parts have the accepted size from the start.
  EXPECT_EQ(delivery_->counts().accepted, 50U);
  EXPECT_EQ(delivery_->counts().refused, 0U);
}

TEST_F(DeliveryTest, RecordThatIsTooLargeAloneIsRefused) {
  max_body_ = 1;
  EXPECT_TRUE(Deliver(4).ok());
  EXPECT_EQ(delivery_->counts().refused, 4U);
  EXPECT_EQ(done_, (std::vector<std::size_t>{1, 1, 1, 1}));
}

TEST_F(DeliveryTest, RefusedRequestIsCounted) {
  replies_ = {Reply(400, "no\x1b")};
  EXPECT_TRUE(Deliver(4).ok());
  EXPECT_EQ(bodies_.size(), 1U);
  EXPECT_EQ(delivery_->counts().refused, 4U);
  ASSERT_EQ(reports_.size(), 1U);
  EXPECT_EQ(reports_[0], "R: refused 4 records: the receiver answered 400");
}

TEST_F(DeliveryTest, PartialSuccessIsCounted) {
  replies_ = {Reply(200, "\x0A\x02\x08\x03"s)};
  EXPECT_TRUE(Deliver(4).ok());
  EXPECT_EQ(delivery_->counts().rejected, 3U);
  EXPECT_EQ(delivery_->counts().accepted, 1U);
  EXPECT_EQ(reports_.size(), 1U);
}

Position ExamplePosition() {
  Position position;
  position.files["/a \"b\".nettrace"] = {1'764'000'000'123'456'789, 17, 20, 3, false};
  position.files["/c"] = {-5, 0, 0, 0, true};
  position.sections["/s-{time}.nettrace"] = {3, ~std::uint64_t{0}};
  position.deleted = {{"/d", 3, 1}, {"/e", -3, 7}};
  position.totals = {1, 2, 3, 4, 5, 6, 7, 8};
  return position;
}

TEST(Position, TextReadsBack) {
  for (const Position& position : {Position(), ExamplePosition()}) {
    const auto read = Position::FromText(position.ToText());
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, position);
  }
}

TEST(Position, EveryCutTextIsRefused) {
  const std::string text = ExamplePosition().ToText();
  for (std::size_t size = 0; size + 1 < text.size(); ++size) {
    EXPECT_FALSE(Position::FromText(text.substr(0, size)).ok()) << size;
  }
}

TEST(Position, WrongTypesAreRefused) {
  for (const char* const text :
       {"1", "[]", R"({"version":1})", R"({"version":1,"files":{},"sections":[],"totals":{}})",
        R"({"version":1,"files":[1],"sections":[],"totals":{}})",
        R"({"version":1,"files":[],"sections":[],"deleted":1,"totals":{}})",
        R"({"version":1,"files":[],"sections":[],"deleted":[],"totals":{"accepted":-1}})"}) {
    EXPECT_EQ(Position::FromText(text).status().code(), absl::StatusCode::kDataLoss) << text;
  }
}

TEST(Position, SentEventsOfADeletedFileAreNotMissing) {
  Position position = ExamplePosition();
  position.sections["/s-{time}.nettrace"].events = 100;
  position.Delete("/a \"b\".nettrace", "/s-{time}.nettrace");
  EXPECT_EQ(position.sections["/s-{time}.nettrace"].events, 120U);
  EXPECT_FALSE(position.files.contains("/a \"b\".nettrace"));
  ASSERT_EQ(position.deleted.size(), 3U);
  EXPECT_EQ(position.deleted.back().path, "/a \"b\".nettrace");
  EXPECT_EQ(position.totals.lost_files, 5U);
}

TEST(Position, DeletedFilesAreCountedBeyondTheLimit) {
  Position position;
  constexpr std::size_t kFiles = Position::kMaxDeleted + 5;
  for (std::size_t i = 0; i < kFiles; ++i) {
    const std::string path = "/" + std::to_string(i);
    position.files[path] = {};
    position.Delete(path, "");
  }
  EXPECT_EQ(position.deleted.size(), Position::kMaxDeleted);
  std::uint64_t files = 0;
  for (const DeletedFile& file : position.deleted) files += file.files;
  EXPECT_EQ(files, kFiles);
  EXPECT_EQ(position.deleted.back().path, "/" + std::to_string(kFiles - 1));
}

TEST(NameTime, IsFoundInNamesOfTheDaemon) {
  const NameTime time =
      FindNameTime("/d/20200101T000000.000000Z/s-20261126T120000.000001Z.nettrace");
  EXPECT_EQ(time.time, "20261126T120000.000001Z");
  EXPECT_EQ(time.series, "/d/20200101T000000.000000Z/s-{time}.nettrace");
  EXPECT_EQ(FindNameTime("/d/s-20261126T120000Z.nettrace").series, "");
  EXPECT_EQ(FindNameTime("").series, "");
}

}  // namespace
}  // namespace tools::ship
