// Tests the objects of `nettrace export --to json`. tests/conformance reads whole files with
// Python.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nettrace/sink.h"
#include "nettrace/writer.h"
#include "tools/nettrace/export/json/trace_event_exporter.h"

namespace tools::json {
namespace {

class TraceEventTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto sink = std::make_unique<nettrace::MemorySink>();
    const nettrace::MemorySink* const memory = sink.get();
    nettrace::TraceInfo info;
    info.sync_time = absl::FromUnixSeconds(1'800'000'000);
    info.sync_ticks = 1'000'000'000;
    auto writer = nettrace::Writer::Create(std::move(sink), info);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Finish().ok());
    auto reader = nettrace::Reader::Open(std::make_unique<nettrace::MemorySource>(
        std::vector<std::byte>(memory->bytes().begin(), memory->bytes().end())));
    ASSERT_TRUE(reader.ok());
    reader_ = *std::move(reader);
    Start(Profile::kPlain);
    metadata_.provider = "P";
    thread_.process_id = 7;
    thread_.thread_id = 8;
  }

  void Start(Profile profile) {
    exporter_ = std::make_unique<TraceEventExporter>(*reader_, profile, &sink_);
  }

  void Add(const char* name, std::uint8_t opcode, std::uint64_t ticks) {
    metadata_.name = name;
    metadata_.opcode = opcode;
    nettrace::Event event;
    event.metadata = &metadata_;
    event.thread = event.capture_thread = &thread_;
    event.labels = &labels_;
    event.processor = nettrace::kNoProcessor;
    exporting::ExportedEvent exported;
    exported.event = &event;
    exported.time = reader_->TimeOf(ticks);
    exported.process = process_;
    exported.payloads = &payloads_;
    ASSERT_TRUE(exporter_->OnEvent(exported).ok());
  }
  // Returns everything that was written, without the beginning and the end of the JSON.
  std::string Finish() {
    EXPECT_TRUE(exporter_->Finish().ok());
    const auto bytes = sink_.bytes();
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::string begin = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
    const std::string end =
        "],\"otherData\":{\"clockStart\":\"2027-01-15T07:59:59.000000000Z\"}}\n";
    EXPECT_TRUE(text.starts_with(begin)) << text;
    EXPECT_TRUE(text.ends_with(end)) << text;
    return text.substr(begin.size(), text.size() - begin.size() - end.size());
  }

  std::unique_ptr<nettrace::Reader> reader_;
  trace::PayloadJson payloads_{trace::PayloadStyle::kForPrograms};
  nettrace::MemorySink sink_;
  std::unique_ptr<TraceEventExporter> exporter_;
  nettrace::EventMetadata metadata_;
  nettrace::ThreadInfo thread_;
  nettrace::Labels labels_;
  std::string process_;
};

TEST_F(TraceEventTest, TraceWithoutEventsIsComplete) { EXPECT_EQ(Finish(), ""); }

TEST_F(TraceEventTest, NamesComeOnceAndAgainWhereTheyChange) {
  process_ = "/bin/a";
  thread_.name = "one";
  Add("E", 0, 1);
  Add("E", 0, 1002);
  thread_.name = "two";
  Add("E", 0, 3);
  const std::string event =
      R"(,"pid":7,"tid":8,"s":"t","cat":"P","args":{"payload":{},"level":0,"keywords":"0x0"}})";
  EXPECT_EQ(
      Finish(),
      "\n"
      R"({"name":"process_name","ph":"M","ts":0.000,"pid":7,"tid":0,"args":{"name":"/bin/a"}},)"
      "\n"
      R"({"name":"thread_name","ph":"M","ts":0.000,"pid":7,"tid":8,"args":{"name":"one"}},)"
      "\n"
      R"({"name":"E","ph":"i","ts":0.001)" +
          event + ",\n" + R"({"name":"E","ph":"i","ts":1.002)" + event + ",\n" +
          R"({"name":"thread_name","ph":"M","ts":0.000,"pid":7,"tid":8,"args":{"name":"two"}},)" +
          "\n" + R"({"name":"E","ph":"i","ts":0.003)" + event + "\n");
}

TEST_F(TraceEventTest, EqualIdsOfSeveralHostsAreDifferentProcesses) {
  process_ = "/bin/a";
  for (const char* const host : {"web1", "web2", "web1"}) {
    thread_.key_values = {{std::string(nettrace::kKeyHostName), host}};
    Add("E", 0, 1'000'000'000);
  }
  const std::string text = Finish();
  for (const char* const part :
       {R"("pid":7,"tid":0,"args":{"name":"/bin/a on web1"}})",
        R"("pid":4194311,"tid":0,"args":{"name":"/bin/a on web2"}})", R"("pid":7,"tid":8,"s":"t")",
        R"("pid":4194311,"tid":4194312,"s":"t")"}) {
    const std::size_t place = text.find(part);
    EXPECT_NE(place, std::string::npos) << part << text;
    const bool occurs_twice = text.find(part, place + 1) != std::string::npos;
    EXPECT_EQ(occurs_twice, std::string_view(part) == R"("pid":7,"tid":8,"s":"t")") << part << text;
  }
}

TEST_F(TraceEventTest, EndOfASliceHasTheNameAndCategoryOfItsBeginning) {
  Add("NoActivity", 1, 1);
  labels_.activity_id.emplace();
  Add("Outer", 1, 2);
  Add("Inner", 1, 3);
  Add("InnerDone", 2, 4);
  metadata_.provider = "Q";
  Add("OuterDone", 2, 5);
  Add("NeverBegun", 2, 6);
  const std::string text = Finish();
  const auto has = [&text](const std::string& part) { return text.find(part) != text.npos; };
  EXPECT_TRUE(has(R"({"name":"NoActivity","ph":"i")")) << text;
  EXPECT_TRUE(has(R"({"name":"Outer","ph":"b","ts":0.002)")) << text;
  EXPECT_TRUE(has(R"({"name":"Inner","ph":"b","ts":0.003)")) << text;
  EXPECT_TRUE(has(R"({"name":"Inner","ph":"e","ts":0.004)")) << text;
  EXPECT_TRUE(has(R"({"name":"Outer","ph":"e","ts":0.005,"pid":7,"tid":8,)"
                  R"("id":"00000000-0000-0000-0000-000000000000","cat":"P",)"
                  R"("args":{"stop":{"event":"OuterDone","provider":"Q","payload":{},)"))
      << text;
  // This stop is an instant event, because readers drop the end of a slice that never began.
  EXPECT_TRUE(has(R"({"name":"NeverBegun","ph":"i","ts":0.006,"pid":7,"tid":8,"s":"t",)"
                  R"("cat":"Q","args":{"payload":{},)"))
      << text;
}

TEST_F(TraceEventTest, ForSpeedscopeActivitiesThatEndedAreCallsOfTheThreadThatBeganThem) {
  Start(Profile::kSpeedscope);
  Add("NoActivity", 1, 1);
  labels_.activity_id.emplace();
  Add("Outer", 1, 2);
  Add("Inner", 1, 3);
  Add("Plain", 0, 3);
  thread_.thread_id = 9;
  Add("InnerDone", 2, 1004);
  Add("OuterDone", 2, 1005);
  Add("NeverBegun", 2, 1006);
  Add("NeverDone", 1, 1007);
  EXPECT_EQ(Finish(),
            "\n"
            R"({"name":"Inner","ph":"X","ts":0.003,"pid":7,"tid":8,"dur":1.001,"cat":"P"},)"
            "\n"
            R"({"name":"Outer","ph":"X","ts":0.002,"pid":7,"tid":8,"dur":1.003,"cat":"P"})"
            "\n");
}

TEST_F(TraceEventTest, TimeBeforeTheClockBeganIsANumber) {
  trace::Loss loss;
  loss.capture_thread = &thread_;
  loss.time = reader_->TimeOf(0) - absl::Nanoseconds(1005);
  ASSERT_TRUE(exporter_->OnLoss(loss).ok());
  EXPECT_NE(Finish().find(R"("ts":-1.005,)"), std::string::npos);
}

TEST_F(TraceEventTest, LossesAreAnInstantAndACounter) {
  thread_.name = "CPU 1";
  trace::Loss loss;
  loss.capture_thread = &thread_;
  loss.time = reader_->TimeOf(5);
  for (const std::uint64_t count : {3, 4}) {
    loss.count = count;
    ASSERT_TRUE(exporter_->OnLoss(loss).ok());
  }
  const std::string text = Finish();
  EXPECT_NE(text.find(R"({"name":"lost events","ph":"i","ts":0.005,"pid":0,"tid":0,"s":"g",)"
                      R"("args":{"count":4,"thread":"CPU 1"}})"),
            text.npos)
      << text;
  EXPECT_NE(text.find(R"({"name":"lost events","ph":"C","ts":0.005,"pid":0,"tid":0,)"
                      R"("args":{"events":7}})"),
            text.npos)
      << text;
}

}  // namespace
}  // namespace tools::json
