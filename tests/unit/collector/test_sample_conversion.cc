// Tests SampleConverter and TraceWriter together: the events, rows, labels and losses in the file
// that samples become, including hostile and late samples.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "nettrace/payload.h"
#include "nettrace/reader.h"
#include "tests/support/bytes.h"
#include "tests/support/collector/sample_trace.h"
#include "tests/support/collector/tracepoint_format.h"

namespace collector {
namespace {

using namespace std::string_literals;

const std::string kFormat = EventHeaderFormat(7, "P_L4K2");

struct WrittenEvent {
  std::string name;
  std::string provider;
  nettrace::MetadataId metadata_id;
  std::uint32_t event_id;
  std::uint64_t timestamp;
  std::uint32_t cpu;
  std::uint8_t level;
  std::uint8_t opcode;
  nettrace::Labels labels;
  nettrace::ThreadInfo thread;
  std::string payload;
  std::vector<nettrace::Field> fields;
  std::size_t stack_bytes = 0;
};

// Number of new kinds of events that a process may write at once.
constexpr int kAtOnce = static_cast<int>(SchemaShares::Limits().process_pace.at_once);

class SampleConversionTest : public ::testing::Test {
 protected:
  SampleConversionTest() {
    auto writer = nettrace::Writer::Create(std::make_unique<tests::BytesSink>(&file_), {});
    EXPECT_TRUE(writer.ok()) << writer.status();
    writer_ = *std::move(writer);
    samples_ =
        std::make_unique<testing::SampleTrace>(writer_.get(), &tasks_, std::vector<int>{0, 5});
    const absl::Status added = samples_->AddTracepoint(7, "user_events", "P_L4K2", kFormat);
    EXPECT_TRUE(added.ok()) << added;
  }

  // Writes the event `bytes`, from its header on, as a sample of the CPU at index `cpu`.
  void Write(const std::string& bytes, std::uint64_t timestamp = 10, std::size_t cpu = 0,
             std::uint32_t tid = kSampleTid, std::uint32_t pid = kSamplePid,
             const std::vector<std::uint64_t>& stack = {}) {
    raw_ = "\x07\0\0\0\0\0\0\0"s + bytes;
    SampleRecord sample;
    sample.pid = pid;
    sample.tid = tid;
    sample.raw = std::as_bytes(std::span(raw_.data(), raw_.size()));
    sample.stack.emplace().entries = std::as_bytes(std::span(stack));
    const absl::Status written = samples_->Write(cpu, sample, timestamp);
    EXPECT_TRUE(written.ok()) << written;
  }

  // Renames the thread at `timestamp`.
  void Rename(std::string name, std::uint64_t timestamp) {
    name.resize(16);
    std::string bytes(48, '\0');
    const auto put = [&bytes](std::size_t at, auto value) {
      std::memcpy(bytes.data() + at, &value, sizeof value);
    };
    put(0, perf_event_header{PERF_RECORD_COMM, 0, 48});
    for (std::size_t at : {8, 32}) {
      put(at, kSamplePid);
      put(at + 4, kSampleTid);
    }
    bytes.replace(16, name.size(), name);
    put(40, timestamp);
    PerfRecord record;
    record.timestamp = timestamp;
    record.bytes = std::as_bytes(std::span(bytes.data(), bytes.size()));
    tasks_.Apply(record);
  }

  // Returns an event named `name` with the field definitions and the payload.
  static std::string Event(const std::string& name, const std::string& fields = "",
                           const std::string& payload = "", char opcode = 0, char level = 4,
                           int id = 0) {
    const std::string metadata = name + "\0"s + fields;
    std::string bytes = "\x07\0"s;
    bytes += static_cast<char>(id & 0xFF);
    bytes += static_cast<char>(id >> 8);
    bytes += "\0\0"s;
    bytes += opcode;
    bytes += level;
    bytes += static_cast<char>(metadata.size() & 0xFF);
    bytes += static_cast<char>(metadata.size() >> 8);
    return bytes + "\x01\0"s + metadata + payload;
  }

  std::vector<WrittenEvent> Finish(std::uint64_t timestamp = 1'000'000) {
    EXPECT_TRUE(samples_->WriteSequencePoint(timestamp).ok());
    EXPECT_TRUE(writer_->Finish().ok());
    auto reader = nettrace::Reader::Open(std::make_unique<nettrace::MemorySource>(file_));
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::vector<WrittenEvent> shown;
    for (auto step = (*reader)->Next(); step != nettrace::Reader::Step::kEnd;
         step = (*reader)->Next()) {
      if (step != nettrace::Reader::Step::kEvent) continue;
      const nettrace::Event& event = (*reader)->event();
      shown.push_back(
          {event.metadata->name, event.metadata->provider, event.metadata_id,
           event.metadata->event_id, event.timestamp, event.processor, event.level(),
           event.opcode(), *event.labels, *event.thread,
           std::string(reinterpret_cast<const char*>(event.payload.data()), event.payload.size()),
           event.metadata->fields, event.stack.size()});
    }
    EXPECT_TRUE((*reader)->status().ok()) << (*reader)->status();
    lost_ = (*reader)->stats().lost;
    return shown;
  }

  std::vector<std::byte> file_;
  std::string raw_;
  TaskTracker tasks_;
  std::unique_ptr<nettrace::Writer> writer_;
  std::unique_ptr<testing::SampleTrace> samples_;
  std::uint64_t lost_ = 0;
};

TEST_F(SampleConversionTest, EventReadsBackUnchanged) {
  Write(Event("E", "n\0\x04"s, "\1\0\0\0"s), 11, 1);
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 1u);
  EXPECT_EQ(shown[0].provider, "P");
  EXPECT_EQ(shown[0].name, "E");
  EXPECT_EQ(shown[0].timestamp, 11u);
  EXPECT_EQ(shown[0].cpu, 5u);
  EXPECT_EQ(shown[0].level, 4);
  EXPECT_EQ(shown[0].thread.process_id, kSamplePid);
  EXPECT_EQ(shown[0].thread.thread_id, kSampleTid);
  EXPECT_EQ(shown[0].payload, "\1\0\0\0"s);
  EXPECT_TRUE(shown[0].labels.empty());
}

// A rename may be read before events that precede it, because the two come from different rings.
TEST_F(SampleConversionTest, EventFromBeforeItsThreadWasRenamedHasTheOldName) {
  Rename("first", 5);
  Rename("second", 20);
  Rename("third", 30);
  for (const std::uint64_t time : {10, 20, 29, 40}) Write(Event("A"), time);
  const auto shown = Finish();
  std::vector<std::string> names;
  names.reserve(shown.size());
  for (const WrittenEvent& event : shown) names.push_back(event.thread.name.value_or(""));
  EXPECT_EQ(names, (std::vector<std::string>{"first", "second", "second", "third"}));
}

TEST_F(SampleConversionTest, SchemasAreMadeOnceWithUniqueIds) {
  for (int i = 0; i < 3; ++i) {
    Write(Event("A"));
    Write(Event("B"));
    Write(Event("A", "n\0\x02"s, "x"));
  }
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 9u);
  EXPECT_EQ(writer_->stats().metadata, 3u);
  EXPECT_EQ(shown[0].metadata_id, shown[3].metadata_id);
  EXPECT_NE(shown[0].event_id, shown[1].event_id);
  EXPECT_NE(shown[0].event_id, shown[2].event_id);
  EXPECT_NE(shown[1].event_id, shown[2].event_id);
}

TEST_F(SampleConversionTest, RowHasTheIdOfTheEvent) {
  const auto with_id = [](int id, const std::string& name, const std::string& fields = "",
                          const std::string& payload = "",
                          char level = 4) { return Event(name, fields, payload, 0, level, id); };
  const std::string text = "s\0\x0A"s;
  Write(with_id(7, "A"));
  Write(with_id(7, "A", "", "", 3));
  Write(with_id(7, "B"));
  Write(with_id(8, "A"));
  Write(with_id(9, "T", text, "\2\0\xC3\xA9"s));
  Write(with_id(9, "T", text, "\1\0a"s));
  for (const int id : {65534, 65535}) Write(with_id(id, "A"));
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 8u);
  EXPECT_EQ(shown[0].event_id, 7u);
  EXPECT_EQ(shown[1].event_id, 7u);
  EXPECT_GT(shown[2].event_id, 8u);  // Event A already has the preferred id, 7.
  EXPECT_EQ(shown[3].event_id, 8u);
  EXPECT_GT(shown[4].event_id, 9u);  // The row for non-ASCII text has another id.
  EXPECT_EQ(shown[5].event_id, 9u);
  for (const std::size_t i : {6u, 7u}) {
    EXPECT_NE(shown[i].event_id, 7u);
    EXPECT_LT(shown[i].event_id, 65534u);
  }
}

// For tests that compare several recordings, each of which has its own file.
class Recording : public SampleConversionTest {
 public:
  // Returns the event ids of the events `names`.
  static std::map<std::string, std::uint32_t> IdsOf(const std::vector<std::string>& names) {
    Recording recording;
    for (const std::string& name : names) recording.Write(Event(name, "n\0\x04"s, "\1\0\0\0"s));
    std::map<std::string, std::uint32_t> ids;
    for (const WrittenEvent& event : recording.Finish()) ids[event.name] = event.event_id;
    return ids;
  }

 private:
  void TestBody() override {}
};

TEST(SampleConversionEventIds, AreTheSameInEveryRecording) {
  const auto ids = Recording::IdsOf({"A", "B", "C", "D"});
  const auto others = Recording::IdsOf({"D", "X", "C", "A", "Y"});
  for (const char* name : {"A", "C", "D"}) EXPECT_EQ(ids.at(name), others.at(name)) << name;
}

// TraceEvent treats providers that differ only in case as one provider.
TEST_F(SampleConversionTest, ProvidersThatDifferInCaseOnlyHaveNoIdInCommon) {
  std::string format = kFormat;
  format.replace(format.find("P_L4K2"), 6, "p_L4K2").replace(format.find("ID: 7"), 5, "ID: 8");
  ASSERT_TRUE(samples_->AddTracepoint(8, "user_events", "p_L4K2", format).ok());
  const auto write_other = [this](const std::string& bytes) {
    raw_ = "\x08\0\0\0\0\0\0\0"s + bytes;
    SampleRecord sample;
    sample.raw = std::as_bytes(std::span(raw_.data(), raw_.size()));
    ASSERT_TRUE(samples_->Write(0, sample, 10).ok());
  };
  Write(Event("A", "", "", 0, 4, 7));
  write_other(Event("B", "", "", 0, 4, 7));
  write_other(Event("A", "", "", 0, 4, 7));
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 3u);
  EXPECT_EQ(shown[0].event_id, 7u);
  EXPECT_NE(shown[1].event_id, 7u);
  EXPECT_NE(shown[2].event_id, 7u);
  EXPECT_NE(shown[2].event_id, shown[1].event_id);
}

TEST_F(SampleConversionTest, StacksLoseTheMarksOfTheirParts) {
  constexpr auto kKernel = static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL);
  constexpr auto kGuest = static_cast<std::uint64_t>(PERF_CONTEXT_GUEST);
  constexpr auto kUser = static_cast<std::uint64_t>(PERF_CONTEXT_USER);
  const auto write = [this](const std::vector<std::uint64_t>& stack) {
    Write(Event("E"), 10, 0, kSampleTid, kSamplePid, stack);
  };
  write({kKernel, 1, 2, kGuest, 3, kUser, 4});
  write({});
  write({kUser});
  write({kUser, 1, 2, 4});
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 4u);
  EXPECT_EQ(shown[0].stack_bytes, 24u);
  EXPECT_EQ(shown[1].stack_bytes, 0u);
  EXPECT_EQ(shown[2].stack_bytes, 0u);
  EXPECT_EQ(shown[3].stack_bytes, 24u);
}

TEST_F(SampleConversionTest, StacksWithoutTheirUserPartAreMarked) {
  samples_->AddUniversalEvent(kCpuTimeId, "cpu");
  const std::string raw(4, '\0');
  const std::vector<std::uint64_t> stack = {static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL), 1};
  SampleRecord sample;
  sample.pid = kSamplePid;
  sample.tid = kSampleTid;
  sample.raw = std::as_bytes(std::span(raw.data(), raw.size()));
  sample.stack.emplace().entries = std::as_bytes(std::span(stack));
  ASSERT_TRUE(samples_->Write(0, sample, 10).ok());
  sample.stack->lacks_user_frames = true;
  ASSERT_TRUE(samples_->Write(0, sample, 20).ok());
  sample.stack->entries = {};
  ASSERT_TRUE(samples_->Write(0, sample, 30).ok());
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 3u);
  using Label = std::pair<std::string, std::int64_t>;
  EXPECT_TRUE(shown[0].labels.integers.empty());
  EXPECT_EQ(shown[1].labels.integers, std::vector({Label("StackCut", 1)}));
  EXPECT_EQ(shown[1].stack_bytes, 8u);
  EXPECT_EQ(shown[2].labels.integers, std::vector({Label("StackCut", 0)}));
  EXPECT_EQ(shown[2].stack_bytes, 0u);
}

TEST_F(SampleConversionTest, SamplesOfCpuTimeAreEventsThatTraceEventKnows) {
  samples_->AddUniversalEvent(kCpuTimeId, "cpu");
  const std::string raw(4, '\0');
  const std::vector<std::uint64_t> stack = {static_cast<std::uint64_t>(PERF_CONTEXT_USER), 1, 2};
  SampleRecord sample;
  sample.pid = kSamplePid;
  sample.tid = kSampleTid;
  sample.raw = std::as_bytes(std::span(raw.data(), raw.size()));
  sample.stack.emplace().entries = std::as_bytes(std::span(stack));
  ASSERT_TRUE(samples_->Write(1, sample, 20).ok());
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 1u);
  EXPECT_EQ(shown[0].provider, "Universal.Events");
  EXPECT_EQ(shown[0].name, "cpu");
  EXPECT_EQ(shown[0].payload, "\1");
  EXPECT_EQ(shown[0].fields, (std::vector<nettrace::Field>{
                                 {"Value", nettrace::Type::Simple(nettrace::TypeCode::kVarUInt)}}));
  EXPECT_EQ(shown[0].thread.thread_id, kSampleTid);
  EXPECT_EQ(shown[0].cpu, 5u);
  EXPECT_EQ(shown[0].stack_bytes, 16u);
}

TEST_F(SampleConversionTest, ActivityIdsBecomeLabels) {
  const std::string ids = "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xAA\xBB\xCC\xDD\xEE\xFF"s;
  Write("\x07\0\0\0\0\0\0\x04\x20\0\x02\x80"s + ids + ids + "\x02\0\x01\0E\0"s);
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 1u);
  EXPECT_EQ(shown[0].name, "E");
  ASSERT_TRUE(shown[0].labels.activity_id.has_value());
  EXPECT_EQ(shown[0].labels.activity_id->at(0), std::byte{0x33});
  EXPECT_EQ(shown[0].labels.related_activity_id, shown[0].labels.activity_id);
}

TEST_F(SampleConversionTest, EachOpcodeHasASeparateRow) {
  for (int i = 0; i < 2; ++i) {
    Write(Event("Round", "", "", 1));
    Write(Event("Round", "", "", 2));
  }
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 4u);
  EXPECT_EQ(writer_->stats().metadata, 2u);
  EXPECT_NE(shown[0].event_id, shown[1].event_id);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    EXPECT_EQ(shown[i].opcode, 1 + i % 2);
    EXPECT_EQ(shown[i].metadata_id, shown[i % 2].metadata_id);
    EXPECT_TRUE(shown[i].labels.empty());
  }
}

TEST_F(SampleConversionTest, OpcodesCountAsKinds) {
  for (int i = 0; i < kAtOnce; ++i) {
    Write(Event("E" + std::to_string(i / 256), "", "", static_cast<char>(i % 256)));
  }
  EXPECT_EQ(samples_->stats().undecoded, 0u);
  Write(Event("E", "", "", 1));
  EXPECT_EQ(samples_->stats().undecoded, 1u);
}

TEST_F(SampleConversionTest, LevelThatIsNotTheTracepointsBecomesALabel) {
  Write(Event("E"));
  Write(Event("E", "", "", 0, 3));
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 2u);
  EXPECT_EQ(writer_->stats().metadata, 1u);
  EXPECT_TRUE(shown[0].labels.empty());
  EXPECT_EQ(shown[1].level, 3);
  EXPECT_EQ(shown[1].labels.level, 3);
}

TEST_F(SampleConversionTest, TextBeyondAsciiComesAsUtf16) {
  const std::string fields = "s\0\x0A"s;
  Write(Event("E", fields, "\1\0a"s));
  Write(Event("E", fields, "\2\0\xC3\xA9"s));
  Write(Event("E", fields, "\1\0\xC3"s));
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 3u);
  EXPECT_EQ(shown[0].payload, "\1\0a"s);
  EXPECT_EQ(shown[1].payload, "\1\0\xE9\0"s);
  EXPECT_EQ(shown[2].payload, "\1\0\xFD\xFF"s);
  EXPECT_NE(shown[1].event_id, shown[0].event_id);
  EXPECT_EQ(shown[2].event_id, shown[1].event_id);
}

TEST_F(SampleConversionTest, NullableFieldsHaveARowForEachTypeOfValues) {
  const std::string fields = "n\0\x8D\x02"s;
  for (int i = 0; i < 2; ++i) {
    Write(Event("E", fields, "\4\0\xFB\xFF\xFF\xFF"s));
    Write(Event("E", fields, "\0\0"s));
  }
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 4u);
  EXPECT_EQ(writer_->stats().metadata, 2u);
  for (const std::size_t i : {0u, 2u}) {
    EXPECT_EQ(shown[i].fields[0].type, nettrace::Type::Simple(nettrace::TypeCode::kInt32));
    EXPECT_EQ(shown[i].payload, "\xFB\xFF\xFF\xFF"s);
    EXPECT_EQ(shown[i + 1].payload, "\0\0"s);
    EXPECT_EQ(shown[i].metadata_id, shown[i % 2].metadata_id);
  }
}

// Each event has a different combination of null fields. After kMaxForms combinations, the rows of
// new combinations do not distinguish which fields are null.
TEST_F(SampleConversionTest, FormsOfOneSchemaAreBounded) {
  std::string fields;
  constexpr int kFields = 12;
  for (int i = 0; i < kFields; ++i) fields += "n\0\x8D\x01"s;
  for (int event = 0; event < 1 << kFields; ++event) {
    std::string payload;
    for (int i = 0; i < kFields; ++i) {
      payload += (event >> i & 1) == 0 ? "\0\0"s : "\1\0\7"s;
    }
    Write(Event("E", fields, payload));
  }
  // In these events, no field is null, but the sizes of the values change.
  for (int event = 0; event < 1 << kFields; ++event) {
    std::string payload;
    for (int i = 0; i < kFields; ++i) payload += (event >> i & 1) == 0 ? "\2\0ab"s : "\3\0abc"s;
    Write(Event("E", fields, payload));
  }
  EXPECT_EQ(samples_->stats().undecoded, 0u);
  EXPECT_LE(writer_->stats().metadata, 2 * SampleConverter::kMaxForms + 2);
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 2u << kFields);
  EXPECT_EQ(shown.back().payload.substr(0, 5), "\3\0abc"s);
}

TEST_F(SampleConversionTest, MalformedEventsAreKeptAsBytes) {
  const std::string bad[] = {
      "",                                     // no header
      "\x07\0\0"s,                            // a part of a header
      "\x08\0\0\0\0\0\0\x04"s,                // an undefined flag
      "\x03\0\0\0\0\0\0\x04"s,                // no metadata
      "\x07\0\0\0\0\0\0\x04\xFF\xFF\x01\0"s,  // an extension beyond the end
      Event("E", "n\0\x1F"s),                 // an unknown encoding
      Event("E", "n\0\x04"s, "\1\0\0"s),      // payload cut short
      Event("E", "n"),                        // metadata cut short
  };
  for (const std::string& bytes : bad) Write(bytes);
  EXPECT_EQ(samples_->stats().undecoded, std::size(bad));
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), std::size(bad));
  for (std::size_t i = 0; i < shown.size(); ++i) {
    EXPECT_EQ(shown[i].name, SampleConverter::kUndecoded);
    EXPECT_EQ(shown[i].provider, "P");
    EXPECT_TRUE(shown[i].payload.ends_with(bad[i]));
  }
}

// Payloads of this size do not fit in the records of current kernels.
TEST_F(SampleConversionTest, PayloadsThatReadersDoNotTakeAreUndecoded) {
  const std::size_t length = 40'000;
  const std::string count = {static_cast<char>(length & 0xFF), static_cast<char>(length >> 8)};
  Write(Event("Ascii", "s\0\x0A"s, count + std::string(length, 'x')));
  Write(Event("Latin1", "s\0\x8A\x08"s, count + std::string(length, '\xE9')));
  Write(Event("Numbers", "n\0\x42"s, "\xFF\xFF"s + std::string(65535, '\1')));
  Write(Event("Swapped", "n\0\x43"s, "\x00\x7F"s + std::string(65024, '\1')));
  const std::vector<WrittenEvent> shown = Finish();
  ASSERT_EQ(shown.size(), 4u);
  EXPECT_EQ(shown[0].name, "Ascii");
  EXPECT_EQ(shown[1].name, SampleConverter::kUndecoded);
  EXPECT_EQ(shown[2].name, SampleConverter::kUndecoded);
  EXPECT_EQ(shown[3].name, "Swapped");
  EXPECT_EQ(samples_->stats().undecoded, 2u);
}

// In a metadata row, the notes about a field (a key and a value) take more space than the field's
// definition in the event.
TEST_F(SampleConversionTest, EventWhoseRowIsLongerThanAFileCanHoldIsUndecoded) {
  std::string fields;
  constexpr std::size_t kFields = 1000;
  for (std::size_t i = 0; i < kFields; ++i) fields += "\0\x8B\x8A\xFF\xFF"s;
  ASSERT_LT(fields.size(), 8192u);  // Maximum size of an event in the kernel.
  for (int i = 0; i < 2; ++i) Write(Event("E", fields, std::string(2 * kFields, '\0')));
  Write(Event("Fine"));
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 3u);
  EXPECT_EQ(shown[0].name, SampleConverter::kUndecoded);
  EXPECT_EQ(shown[1].name, SampleConverter::kUndecoded);
  EXPECT_EQ(shown[2].name, "Fine");
}

TEST_F(SampleConversionTest, InventedNamesAffectOnlyTheirProcess) {
  Write(Event("Real"));
  for (int i = 1; i < kAtOnce + 100; ++i) Write(Event("E" + std::to_string(i)));
  EXPECT_EQ(samples_->stats().undecoded, 100u);
  // Both events use the same tracepoint. The first is of a known kind, and the second is from
  // another process.
  Write(Event("Real"));
  Write(Event("Fine"), 10, 0, kSampleTid + 1, kSamplePid + 1);
  EXPECT_EQ(samples_->stats().undecoded, 100u);
  // After some time, new kinds are accepted again.
  Write(Event("Late"), 1'000'000'000);
  EXPECT_EQ(samples_->stats().undecoded, 100u);
  const auto shown = Finish(2'000'000'000);
  ASSERT_EQ(shown.size(), kAtOnce + 103u);
  EXPECT_EQ(shown[kAtOnce + 100].name, "Real");
  EXPECT_EQ(shown[kAtOnce + 101].name, "Fine");
  EXPECT_EQ(shown.back().name, "Late");
}

// Converts many kinds of events. The rate of new kinds is not limited, but only 512 schemas are
// kept at a time.
class ManyKinds : public SampleConversionTest {
 protected:
  ManyKinds() {
    constexpr double kAny = 1e18;
    SchemaShares::Limits limits;
    limits.process = limits.provider = limits.user = limits.sum = {512, std::size_t{4} << 20};
    limits.process_pace = limits.user_pace = {kAny, kAny};
    nettrace::WriterOptions options;
    options.max_metadata = TraceWriter::kMaxMetadata;
    file_.clear();
    writer_ = *nettrace::Writer::Create(std::make_unique<tests::BytesSink>(&file_), {}, options);
    samples_ =
        std::make_unique<testing::SampleTrace>(writer_.get(), &tasks_, std::vector<int>{0}, limits);
    EXPECT_TRUE(samples_->AddTracepoint(7, "user_events", "P_L4K2", kFormat).ok());
  }

  void CloseFullInterval(std::uint64_t timestamp) {
    if (!samples_->interval_is_full()) return;
    EXPECT_TRUE(samples_->WriteSequencePoint(timestamp).ok());
    ++intervals_;
  }

  int intervals_ = 0;
};

TEST_F(ManyKinds, DecodesKindsThatAreUsedAgain) {
  const std::string fields = "n\0\x8A\x03"s;  // its values have two forms (ValueForms)
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 2000; ++i) {
      Write(Event("E" + std::to_string(i), fields, i % 2 == 0 ? "\0\0"s : "\4\0abcd"s));
    }
  }
  EXPECT_EQ(samples_->stats().undecoded, 0u);
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 6000u);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    EXPECT_EQ(shown[i].name, "E" + std::to_string(i % 2000));
    EXPECT_EQ(shown[i].event_id, shown[i % 2000].event_id);
  }
}

TEST_F(ManyKinds, KindInUseHasOneRowUntilRowsAreFlushed) {
  for (int i = 0; i < 10'000; ++i) {
    Write(Event("E" + std::to_string(i)));
    for (const char* kind : {"A", "B"}) Write(Event(kind));
  }
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 30'000u);
  std::set<nettrace::MetadataId> rows;
  for (std::size_t i = 1; i < shown.size(); i += 3) rows.insert(shown[i].metadata_id);
  EXPECT_LE(rows.size(), 2u);
}

TEST_F(ManyKinds, EventIdsDoNotRunOut) {
  constexpr int kKinds = 100'000;
  std::uint64_t time = 10;
  for (int i = 0; i < kKinds; ++i) {
    Write(Event("E" + std::to_string(i)), ++time);
    if (i % 1000 == 0) Write(Event("Real", "", "", 0, 4, 5), ++time);
    CloseFullInterval(++time);
  }
  EXPECT_EQ(samples_->stats().undecoded, 0u);
  EXPECT_GE(intervals_, 3);
  const auto shown = Finish(time + 1);
  ASSERT_EQ(shown.size(), kKinds * 1001u / 1000);
  for (const WrittenEvent& event : shown) {
    // The event Real occurs regularly, so that no other event gets its id.
    EXPECT_EQ(event.name == "Real", event.event_id == 5);
  }
}

// Within one interval, the test writes more kinds of events than a file has room for rows.
TEST_F(ManyKinds, RowsWithoutRoomAreOfEventsThatAreNotDecoded) {
  for (int i = 0; i < 60'000; ++i) Write(Event("E" + std::to_string(i)));
  EXPECT_GT(samples_->stats().undecoded, 10'000u);
  EXPECT_LE(writer_->stats().metadata, TraceWriter::kMaxMetadata);
  const std::uint64_t undecoded = samples_->stats().undecoded;
  CloseFullInterval(20);
  for (int i = 0; i < 10'000; ++i) Write(Event("F" + std::to_string(i)), 30);
  EXPECT_EQ(samples_->stats().undecoded, undecoded);
  EXPECT_EQ(Finish().size(), 70'000u);
}

// If there is no room for rows, events are lost, but starts and ends of processes are still
// recorded.
TEST_F(ManyKinds, ProcessEventsHaveRoomAlways) {
  for (int i = 0; i < 40'000; ++i) Write(Event("E" + std::to_string(i)));
  constexpr int kTracepoints = 5000;
  for (int id = 100; id < 100 + kTracepoints; ++id) {
    std::string format = kFormat;
    const std::string name = "P" + std::to_string(id) + "_L4K2";
    format.replace(format.find("P_L4K2"), 6, name);
    format.replace(format.find("ID: 7"), 5, "ID: " + std::to_string(id));
    ASSERT_TRUE(samples_->AddTracepoint(id, "user_events", name, format).ok());
    raw_ = std::string{static_cast<char>(id & 0xFF), static_cast<char>(id >> 8)} + "\0\0\0\0\0\0"s;
    SampleRecord sample;
    sample.raw = std::as_bytes(std::span(raw_.data(), raw_.size()));
    ASSERT_TRUE(samples_->Write(0, sample, 10).ok());
  }
  EXPECT_GT(writer_->stats().lost, 0u);
  EXPECT_TRUE(
      samples_
          ->WriteProcessEvent({ProcessEvent::Kind::kCreated, kSamplePid, kSamplePid, 20, "p", 1})
          .ok());
  const std::size_t shown = Finish().size();
  EXPECT_EQ(shown + lost_, 40'000u + kTracepoints + 1);
}

TEST_F(SampleConversionTest, LateEventKeepsItsTimeInALabel) {
  Write(Event("E"), 10, 0);
  ASSERT_TRUE(samples_->WriteSequencePoint(20).ok());
  Write(Event("E"), 15, 1);
  Write(Event("E"), 30, 1);
  Write(Event("E"), 29, 1);
  EXPECT_EQ(samples_->stats().late, 2u);
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 4u);
  EXPECT_EQ(shown[1].timestamp, 20u);
  const std::vector<std::pair<std::string, std::int64_t>> label = {{TraceWriter::kLateLabel, 15}};
  EXPECT_EQ(shown[1].labels.integers, label);
  EXPECT_EQ(shown[3].timestamp, 30u);
}

TEST_F(SampleConversionTest, CountsLossesAtTheirPlace) {
  Write(Event("E"), 10, 0);
  ASSERT_TRUE(samples_->AddLost(0, 3).ok());
  Write(Event("E"), 11, 0);
  ASSERT_TRUE(samples_->AddLost(1, 4).ok());
  const auto shown = Finish();
  EXPECT_EQ(shown.size(), 2u);
  EXPECT_EQ(lost_, 7u);
}

// A gap of this size does not fit in 32 bits.
TEST_F(SampleConversionTest, LossesBeyondTheLargestGapAreCounted) {
  constexpr std::uint64_t kMany = 5'000'000'000;
  Write(Event("E"), 10, 0);
  ASSERT_TRUE(samples_->AddLost(0, kMany).ok());
  ASSERT_TRUE(samples_->AddLost(0, kMany).ok());
  Write(Event("E"), 11, 0);
  ASSERT_TRUE(samples_->WriteSequencePoint(20).ok());
  Write(Event("E"), 21, 0);
  ASSERT_TRUE(samples_->AddLost(0, kMany).ok());
  const auto shown = Finish();
  EXPECT_EQ(shown.size(), 3u);
  EXPECT_EQ(lost_, 3 * kMany);
}

TEST_F(SampleConversionTest, SampleOfAnUnknownTracepointIsCountedAsLost) {
  raw_ = "\x63\0\0\0\0\0\0\0"s;
  SampleRecord sample;
  sample.raw = std::as_bytes(std::span(raw_.data(), raw_.size()));
  ASSERT_TRUE(samples_->Write(0, sample, 1).ok());
  EXPECT_TRUE(Finish().empty());
  EXPECT_EQ(lost_, 1u);
}

TEST_F(SampleConversionTest, ManyThreadsAreFlushedAndTheNumbersStayRight) {
  constexpr std::uint32_t kThreads = 70'000;
  for (std::uint32_t i = 0; i < kThreads; ++i) Write(Event("E"), 10, 0, kSampleTid + i);
  ASSERT_TRUE(samples_->WriteSequencePoint(20).ok());
  EXPECT_EQ(samples_->thread_rows(), 0u);
  ASSERT_TRUE(samples_->AddLost(0, 2).ok());
  for (std::uint32_t i = 0; i < 10; ++i) Write(Event("E"), 30, 0, kSampleTid + i);
  const auto shown = Finish();
  EXPECT_EQ(shown.size(), kThreads + 10);
  EXPECT_EQ(shown.back().thread.thread_id, kSampleTid + 9);
  EXPECT_EQ(lost_, 2u);
}

// The converter first compares a sample with the schema that it used last. This comparison must
// include everything that distinguishes schemas.
TEST_F(SampleConversionTest, SchemasThatDifferInOneByteOfTheHeaderTakeTurns) {
  const std::string event = Event("E", "n\0\x02"s, "x");
  std::vector<std::string> events = {event};
  for (const std::size_t at : {1, 2, 3, 4, 5, 6}) {  // version, id, tag, opcode
    events.push_back(event);
    events.back()[at] = '\x01';
  }
  for (int turn = 0; turn < 3; ++turn) {
    for (const std::string& each : events) Write(each);
  }
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 3 * events.size());
  for (std::size_t i = 0; i < shown.size(); ++i) {
    EXPECT_EQ(shown[i].metadata_id, shown[i % events.size()].metadata_id) << i;
    EXPECT_EQ(shown[i].opcode, i % events.size() == 6 ? 1 : 0) << i;
    for (std::size_t j = 0; j < i % events.size(); ++j) {
      EXPECT_NE(shown[i].metadata_id, shown[j].metadata_id);
    }
  }
}

TEST_F(SampleConversionTest, ManySchemasWithTheSameEndsTakeTurns) {
  constexpr std::size_t kKinds = 1000;
  const auto name = [](std::size_t i) { return "TheSameStart" + std::to_string(i) + "TheSameEnd"; };
  for (int turn = 0; turn < 3; ++turn) {
    for (std::size_t i = 0; i < kKinds; ++i) {
      Write(Event(name(i), "n\0\x02"s, std::string(1, static_cast<char>(i))));
    }
  }
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 3 * kKinds);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    ASSERT_EQ(shown[i].name, name(i % kKinds));
    ASSERT_EQ(shown[i].payload, std::string(1, static_cast<char>(i % kKinds)));
  }
}

TEST_F(SampleConversionTest, LabelsOfOneEventAreNotThoseOfTheNext) {
  Write(Event("A", "", "", 0, 5));  // Another level than the tracepoint.
  Write(Event("A"), 20);
  Write(Event("A"), 15);  // earlier than the event before it
  Write(Event("A"), 30);
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 4u);
  EXPECT_EQ(shown[0].level, 5);
  EXPECT_TRUE(shown[1].labels.empty());
  EXPECT_EQ(shown[2].labels.integers.size(), 1u);
  EXPECT_TRUE(shown[3].labels.empty());
}

TEST_F(SampleConversionTest, EventsThatBeginLikeTheOneBeforeAreReadByTheirOwnBytes) {
  const std::string event = Event("Name", "n\0\x02"s, "x");
  const std::size_t end = event.size() - 1;  // of the metadata
  std::string others[] = {
      event.substr(0, end - 1),                                             // metadata cut short
      event.substr(0, 11),                                                  // no metadata
      event.substr(0, end),                                                 // no payload
      Event("Name", "n\0\x02"s, "x", 0, 3),                                 // another level
      Event("Nane", "n\0\x02"s, "x"),                                       // another name
      Event("Name", "m\0\x02"s, "x"),                                       // another field
      event.substr(0, end) + "\x10\0\x02\0"s + std::string(16, 'a') + "y",  // an activity
      std::string(end, '\0') + "x",                                         // nothing but zeros
  };
  others[6][11] = '\x80';  // Another extension follows the metadata.
  for (const std::string& other : others) {
    for (const char payload : {'1', '2'}) Write(event.substr(0, end) + payload);
    Write(other);
  }
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 3 * std::size(others));
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (i % 3 == 2) continue;
    EXPECT_EQ(shown[i].name, "Name");
    EXPECT_EQ(shown[i].payload, i % 3 == 0 ? "1" : "2");
    EXPECT_EQ(shown[i].metadata_id, shown[0].metadata_id);
    EXPECT_TRUE(shown[i].labels.empty());
  }
  for (const std::size_t i : {0, 1, 2, 7}) {
    EXPECT_EQ(shown[3 * i + 2].name, SampleConverter::kUndecoded) << i;
    EXPECT_TRUE(shown[3 * i + 2].payload.ends_with(others[i]));
  }
  EXPECT_EQ(shown[3 * 3 + 2].level, 3);
  EXPECT_EQ(shown[3 * 4 + 2].name, "Nane");
  EXPECT_EQ(shown[3 * 5 + 2].fields.at(0).name, "m");
  EXPECT_TRUE(shown[3 * 6 + 2].labels.activity_id.has_value());
  EXPECT_EQ(shown[3 * 6 + 2].payload, "y");
}

TEST_F(SampleConversionTest, EventsThatDifferInABitFromTheOneBeforeAreReadByTheirOwnBytes) {
  const std::string event = Event("Name", "n\0\x02"s, "x");
  const std::string other = Event("Other", "n\0\x02"s, "x");
  const std::size_t bits = (event.size() - 1) * 8;  // of all bytes before the payload
  for (std::size_t bit = 0; bit < bits; ++bit) {
    std::string changed = event;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
    for (const std::string& before : {event, other}) {
      Write(before);
      Write(changed);
    }
  }
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 4 * bits);
  for (std::size_t bit = 0; bit < bits; ++bit) {
    SCOPED_TRACE(bit);
    const WrittenEvent& after_event = shown[4 * bit + 1];
    const WrittenEvent& after_other = shown[4 * bit + 3];
    EXPECT_EQ(shown[4 * bit].name, "Name");
    EXPECT_EQ(shown[4 * bit + 2].name, "Other");
    EXPECT_EQ(after_event.metadata_id, after_other.metadata_id);
    EXPECT_EQ(after_event.name, after_other.name);
    EXPECT_EQ(after_event.payload, after_other.payload);
    EXPECT_EQ(after_event.level, after_other.level);
  }
}

// Returns an event in an activity, with a related id if `related` is not 0.
std::string InActivity(char activity, char related, char level = 4) {
  std::string event = "\x07\0\0\0\0\0\0"s + level;
  const std::string ids =
      std::string(16, activity) + (related == 0 ? "" : std::string(16, related));
  event += static_cast<char>(ids.size());
  event += "\0\x02\x80"s + ids;
  return event + "\x02\0\x01\0"s + "E\0"s;
}

TEST_F(SampleConversionTest, AlternatingActivitiesBelongToTheirEvents) {
  struct Ids {
    char activity, related, level;
  };
  const std::vector<Ids> events = {{1, 0, 4}, {2, 0, 4}, {1, 2, 4}, {1, 1, 4},
                                   {1, 2, 5}, {2, 1, 4}, {2, 0, 4}};
  std::uint64_t time = 10;
  for (int interval = 0; interval < 3; ++interval) {
    // Each interval begins at another entry of `events`, and so with another label list.
    for (std::size_t i = 0; i < 2 * events.size(); ++i) {
      const Ids& ids = events[(i + static_cast<std::size_t>(interval)) % events.size()];
      Write(InActivity(ids.activity, ids.related, ids.level), ++time);
    }
    ASSERT_TRUE(samples_->WriteSequencePoint(++time).ok());
  }
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 6 * events.size());
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const std::size_t interval = i / (2 * events.size());
    const Ids& ids = events[(i % (2 * events.size()) + interval) % events.size()];
    nettrace::Guid activity;
    activity.fill(static_cast<std::byte>(ids.activity));
    EXPECT_EQ(shown[i].labels.activity_id, activity) << i;
    EXPECT_EQ(shown[i].labels.related_activity_id.has_value(), ids.related != 0) << i;
    if (ids.related != 0) {
      EXPECT_EQ((*shown[i].labels.related_activity_id)[0], static_cast<std::byte>(ids.related));
    }
    EXPECT_EQ(shown[i].level, ids.level) << i;
  }
}

constexpr char kRename[] =
    "name: task_rename\nID: 9\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    "\tfield:char comm[8];\toffset:8;\tsize:8;\tsigned:0;\n"
    "\tfield:__data_loc char[] path;\toffset:16;\tsize:4;\tsigned:0;\n\n"
    "print fmt: \"%s\", REC->comm\n";

TEST_F(SampleConversionTest, KernelTextThatIsNotAsciiHasARowInUtf16) {
  ASSERT_TRUE(samples_->AddTracepoint(9, "task", "task_rename", kRename).ok());
  const auto write = [&](const std::string& comm, const std::string& path) {
    raw_ = "\x09\0\0\0\0\0\0\0"s + comm + std::string(8 - comm.size(), '\0') + "\x14\0"s;
    raw_ += static_cast<char>(path.size());
    raw_ += '\0' + path;
    SampleRecord sample;
    sample.pid = kSamplePid;
    sample.tid = kSampleTid;
    sample.raw = std::as_bytes(std::span(raw_.data(), raw_.size()));
    EXPECT_TRUE(samples_->Write(0, sample, 10).ok());
  };
  write("plain", "/a");
  write("w\xC3\xB6rk", "/b");
  write("cut\xE2\x82", "/c");
  write("plain", "/d");
  const std::vector<WrittenEvent> shown = Finish();
  ASSERT_EQ(shown.size(), 4u);
  EXPECT_EQ(shown[0].payload, "\5\0plain\2\0/a"s);
  EXPECT_EQ(shown[1].payload, "\4\0w\0\xF6\0r\0k\0\2\0/\0b\0"s);
  EXPECT_EQ(shown[2].payload, "\4\0c\0u\0t\0\xFD\xFF\2\0/\0c\0"s);
  EXPECT_EQ(shown[3].metadata_id, shown[0].metadata_id);
  EXPECT_EQ(shown[2].metadata_id, shown[1].metadata_id);
  EXPECT_NE(shown[1].event_id, shown[0].event_id);
  for (const WrittenEvent& event : shown) EXPECT_EQ(event.name, "task_rename");
  const auto text = [](nettrace::TypeCode unit) {
    return nettrace::Type::Array(nettrace::Type::Simple(unit));
  };
  EXPECT_EQ(shown[0].fields[0].type, text(nettrace::TypeCode::kUtf8CodeUnit));
  EXPECT_EQ(shown[1].fields[0].type, text(nettrace::TypeCode::kUtf16CodeUnit));
}

// The ids of process events are fixed: no tracepoint may get one of them.
TEST_F(SampleConversionTest, ProcessEventsKeepTheirIdsForAnyTracepointName) {
  // An EventHeader event keeps its own id, which could be that of a process event. No service can
  // have the provider of process events, because its name is not valid.
  std::string format = kFormat;
  const std::string name = "Universal.System_L4K2";
  format.replace(format.find("P_L4K2"), 6, name).replace(format.find("ID: 7"), 5, "ID: 1");
  EXPECT_FALSE(samples_->AddTracepoint(1, "user_events", name, format).ok());
  format = kRename;
  format.replace(format.find("ID: 9"), 5, "ID: 2");
  ASSERT_TRUE(samples_->AddTracepoint(2, "Universal.System", "task_rename", format).ok());
  raw_ = "\x02\0\0\0\0\0\0\0name\0\0\0\0\x14\0\1\0a"s;
  SampleRecord sample;
  sample.raw = std::as_bytes(std::span(raw_.data(), raw_.size()));
  ASSERT_TRUE(samples_->Write(0, sample, 10).ok());
  using Kind = ProcessEvent::Kind;
  for (const Kind kind : {Kind::kExists, Kind::kCreated, Kind::kExited}) {
    const absl::Status written =
        samples_->WriteProcessEvent({kind, kSamplePid, kSamplePid, 20, "p", 1});
    EXPECT_TRUE(written.ok()) << written;
  }
  std::map<std::string, std::uint32_t> ids;
  for (const WrittenEvent& event : Finish()) ids[event.name] = event.event_id;
  ASSERT_EQ(ids.size(), 4u);
  EXPECT_EQ(ids["ExistingProcess"], 0u);
  EXPECT_EQ(ids["ProcessCreate"], 1u);
  EXPECT_EQ(ids["ProcessExit"], 2u);
}

TEST_F(SampleConversionTest, KernelRecordThatDoesNotFitIsWrittenAsItsBytes) {
  ASSERT_TRUE(samples_->AddTracepoint(9, "task", "task_rename", kRename).ok());
  raw_ = "\x09\0\0\0\0\0\0\0name\0\0\0\0\x14\0\x09\0abc"s;
  SampleRecord sample;
  sample.raw = std::as_bytes(std::span(raw_.data(), raw_.size()));
  EXPECT_TRUE(samples_->Write(0, sample, 10).ok());
  const std::vector<WrittenEvent> shown = Finish();
  ASSERT_EQ(shown.size(), 1u);
  EXPECT_EQ(shown[0].name, SampleConverter::kUndecoded);
  EXPECT_EQ(samples_->stats().undecoded, 1u);
}

}  // namespace
}  // namespace collector
