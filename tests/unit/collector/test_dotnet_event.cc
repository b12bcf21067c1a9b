// Tests the conversion of events of .NET: the layout of their records, the descriptions of events,
// and the rows and events that they become, including hostile records.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nettrace/reader.h"
#include "nettrace/writer.h"
#include "tests/support/bytes.h"
#include "tests/support/collector/sample_trace.h"
#include "tests/support/collector/tracepoint_format.h"
#include "tools/collector/convert/dotnet_event.h"
#include "tools/trace/dotnet_keys.h"

namespace collector {
namespace {

using namespace std::string_literals;
using nettrace::Type;
using nettrace::TypeCode;

// Format of the tracepoint that receives the events, as Linux 6.12 shows it.
constexpr char kFormat[] =
    "name: shop\nID: 7\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    "\tfield:u8 version;\toffset:8;\tsize:1;\tsigned:0;\n"
    "\tfield:u16 event_id;\toffset:9;\tsize:2;\tsigned:0;\n"
    "\tfield:__rel_loc u8 extension[];\toffset:11;\tsize:4;\tsigned:1;\n"
    "\tfield:__rel_loc u8 payload[];\toffset:15;\tsize:4;\tsigned:1;\n\n"
    "print fmt: \"\"\n";

template <typename T>
std::string Number(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string Utf16(const std::string& ascii) {
  std::string bytes;
  for (const char c : ascii + '\0') bytes += {c, '\0'};
  return bytes;
}

// Returns the description of an event, without fields and tags.
std::string Description(const std::string& provider, std::uint32_t id, const std::string& name,
                        std::uint64_t keywords = 0xF00000000000, std::uint32_t version = 0,
                        std::uint32_t level = 4) {
  return Utf16(provider) + Number(id) + Utf16(name) + Number(keywords) + Number(version) +
         Number(level);
}

// Describes WorkStart(int id) with Opcode=Start, as .NET 10 does.
std::string WorkStart() {
  return Description("Shop", 3, "WorkStart") + Number(1) + Number(9) + Utf16("id") + Number(1) +
         "\1\1"s;
}

std::string Label(char label, const std::string& data) { return label + data; }
std::string Metadata(const std::string& description) {
  return Label(1, Number(static_cast<std::uint32_t>(description.size())) + description);
}

// Returns the fields of a record.
std::string Fields(std::uint16_t id, const std::string& extension, const std::string& payload,
                   char version = 1) {
  const auto location = [](std::size_t offset, std::size_t size) {
    return Number(static_cast<std::uint32_t>(size << 16 | offset));
  };
  return version + Number(id) + location(4, extension.size()) +
         location(extension.size(), payload.size()) + extension + payload;
}

const char* Parse(const std::string& fields, DotnetEvent* event) {
  return ParseDotnetEvent(std::as_bytes(std::span(fields)), event);
}

TEST(DotnetEvent, PartsOfARecord) {
  const std::string record = Fields(
      300, Metadata(WorkStart()) + Label(2, std::string(16, 'a')) + Label(3, std::string(16, 'r')),
      "\5\0\0\0"s);
  DotnetEvent event;
  ASSERT_EQ(Parse(record, &event), nullptr);
  EXPECT_EQ(event.id, 300);
  EXPECT_EQ(event.metadata.size(), WorkStart().size());
  ASSERT_TRUE(event.activity_id && event.related_activity_id);
  EXPECT_EQ((*event.activity_id)[15], std::byte{'a'});
  EXPECT_EQ((*event.related_activity_id)[0], std::byte{'r'});
  EXPECT_EQ(event.payload.size(), 4u);
}

TEST(DotnetEvent, RejectsMalformedRecords) {
  DotnetEvent event;
  const std::string id(16, 'a');
  EXPECT_STREQ(Parse(Fields(3, "", "", 2), &event), "the version of the event is unknown");
  EXPECT_STREQ(Parse(Fields(3, Label(2, id) + Label(2, id), ""), &event),
               "the extension of the .NET event has two values with the same label");
  EXPECT_STREQ(Parse(Fields(3, Metadata("") + Metadata("x"), ""), &event),
               "the extension of the .NET event has two values with the same label");
  EXPECT_STREQ(Parse(Fields(3, Label(2, id.substr(1)), ""), &event),
               "the extension of the .NET event is cut short");
  EXPECT_STREQ(Parse(Fields(3, Label(1, "\xFF\xFF\xFF\xFFx"), ""), &event),
               "the extension of the .NET event is cut short");
  const std::string whole = Fields(3, Label(2, id), "1234");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(Parse(whole.substr(0, size), &event), nullptr) << size;
  }
  EXPECT_EQ(Parse(whole, &event), nullptr);
}

TEST(DotnetEvent, IgnoresTheExtensionFromAnUnknownLabelOn) {
  DotnetEvent event;
  ASSERT_EQ(Parse(Fields(3, Label(9, "abc") + Label(2, std::string(16, 'a')), "p"), &event),
            nullptr);
  EXPECT_FALSE(event.activity_id);
  EXPECT_EQ(event.payload.size(), 1u);
}

absl::StatusOr<nettrace::EventMetadata> Row(const std::string& description, std::uint16_t id) {
  return ParseDotnetMetadata(std::as_bytes(std::span(description)), id);
}

TEST(DotnetMetadata, EventOfAnEventSource) {
  const auto row = Row(WorkStart(), 3);
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->provider, "Shop");
  EXPECT_EQ(row->event_id, 3u);
  EXPECT_EQ(row->name, "WorkStart");
  EXPECT_EQ(row->opcode, 1);
  EXPECT_EQ(row->level, 4);
  EXPECT_EQ(row->version, 0);
  EXPECT_EQ(row->keywords, 0u) << "session keywords";
  EXPECT_FALSE(row->provider_guid);
  EXPECT_EQ(row->fields, (std::vector<nettrace::Field>{{"id", Type::Simple(TypeCode::kInt32)}}));
  EXPECT_EQ(row->key_values, (nettrace::KeyValues{{trace::kKeyDotnetEventId, "3"}}));
}

TEST(DotnetMetadata, EventOfTheRuntimeHasItsGuidAndNoName) {
  const auto row =
      Row(Description("Microsoft-Windows-DotNETRuntime", 202, "", 0x1, 1) + Number(0), 202);
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->name, "");
  EXPECT_EQ(row->opcode, 0);
  EXPECT_EQ(row->version, 1);
  EXPECT_EQ(row->keywords, 1u);
  ASSERT_TRUE(row->provider_guid);
  EXPECT_EQ((*row->provider_guid)[0], std::byte{0x23});
  EXPECT_EQ((*row->provider_guid)[15], std::byte{0xe4});
}

TEST(DotnetMetadata, ReplacesTypesThatV6HasNotOrMisreads) {
  const auto row = Row(Description("Shop", 1, "E") + Number(2) + Number(16) + Utf16("when") +
                           Number(15) + Utf16("price"),
                       1);
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->fields[0].type, Type::Simple(TypeCode::kInt64));
  EXPECT_EQ(row->fields[1].type, Type::FixedLengthArray(Type::Simple(TypeCode::kByte), 16));
}

TEST(DotnetMetadata, RejectsWhatIsCutOrOfAnotherEvent) {
  EXPECT_FALSE(Row(WorkStart(), 4).ok());
  const std::string whole = Description("Shop", 3, "E") + Number(1) + Number(9) + Utf16("id");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(Row(whole.substr(0, size), 3).ok()) << size;
  }
  EXPECT_TRUE(Row(whole, 3).ok());
  EXPECT_FALSE(Row(Description("Shop", 3, "E") + Number(0x7FFFFFFF), 3).ok());
}

// Converts samples of the tracepoint 7, and reads the file.
class DotnetConversionTest : public ::testing::Test {
 protected:
  struct Shown {
    nettrace::EventMetadata metadata;
    nettrace::Labels labels;
    std::string payload;
  };

  DotnetConversionTest() {
    auto writer = nettrace::Writer::Create(std::make_unique<tests::BytesSink>(&file_), {});
    EXPECT_TRUE(writer.ok()) << writer.status();
    writer_ = *std::move(writer);
    samples_ = std::make_unique<testing::SampleTrace>(writer_.get(), &tasks_, std::vector<int>{0});
    EXPECT_TRUE(samples_->AddTracepoint(7, "user_events", "shop", kFormat).ok());
  }

  void Write(const std::string& fields, std::uint32_t pid = kSamplePid) {
    const std::string raw = Raw(fields);
    EXPECT_TRUE(samples_->Write(0, Sample(raw, pid), ++time_).ok());
  }
  void Learn(const std::string& fields, std::uint32_t pid = kSamplePid) {
    const std::string raw = Raw(fields);
    samples_->Learn(Sample(raw, pid), time_);
  }
  static std::string Raw(const std::string& fields) { return "\x07\0\0\0\0\0\0\0"s + fields; }
  static SampleRecord Sample(const std::string& raw, std::uint32_t pid) {
    SampleRecord sample;
    sample.pid = pid;
    sample.tid = kSampleTid;
    sample.raw = std::as_bytes(std::span(raw));
    return sample;
  }

  std::vector<Shown> Finish() {
    EXPECT_TRUE(samples_->WriteSequencePoint(1'000'000).ok());
    EXPECT_TRUE(writer_->Finish().ok());
    auto reader = nettrace::Reader::Open(std::make_unique<nettrace::MemorySource>(file_));
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::vector<Shown> shown;
    for (auto step = (*reader)->Next(); step != nettrace::Reader::Step::kEnd;
         step = (*reader)->Next()) {
      if (step != nettrace::Reader::Step::kEvent) continue;
      const nettrace::Event& event = (*reader)->event();
      shown.push_back(
          {*event.metadata, *event.labels,
           std::string(reinterpret_cast<const char*>(event.payload.data()), event.payload.size())});
    }
    EXPECT_TRUE((*reader)->status().ok()) << (*reader)->status();
    return shown;
  }

  std::vector<std::byte> file_;
  TaskTracker tasks_;
  std::unique_ptr<nettrace::Writer> writer_;
  std::unique_ptr<testing::SampleTrace> samples_;
  std::uint64_t time_ = 10;
};

TEST_F(DotnetConversionTest, LaterEventsHaveTheRowOfTheFirst) {
  Write(Fields(3, Metadata(WorkStart()) + Label(2, std::string(16, 'a')), Number(5)));
  Write(Fields(3, "", Number(6)));
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 2u);
  EXPECT_EQ(shown[0].metadata.name, "WorkStart");
  EXPECT_EQ(shown[0].metadata, shown[1].metadata);
  EXPECT_EQ(shown[1].payload, Number(6));
  ASSERT_TRUE(shown[0].labels.activity_id);
  EXPECT_EQ((*shown[0].labels.activity_id)[0], std::byte{'a'});
  EXPECT_TRUE(shown[1].labels.empty());
}

TEST_F(DotnetConversionTest, EventWithoutItsDescriptionIsUndecoded) {
  Write(Fields(3, Metadata(WorkStart()), Number(5)), 100);
  Write(Fields(3, "", Number(6)), 101);
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 2u);
  EXPECT_EQ(shown[1].metadata.name, SampleConverter::kUndecoded);
  EXPECT_NE(shown[1].payload.find("describes this kind of event"), std::string::npos);
  EXPECT_EQ(samples_->stats().undecoded, 1u);
}

// The first event of a kind has the description of the kind. It may be converted after later events
// of the kind, because the rings of CPUs are drained one after the other.
TEST_F(DotnetConversionTest, DescriptionIsLearnedFromASampleThatWaits) {
  const std::string first = Fields(3, Metadata(WorkStart()), Number(5));
  Learn(first);
  Learn("");
  Learn(Fields(4, "", ""));
  Write(Fields(3, "", Number(6)));
  Write(first);
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 2u);
  EXPECT_EQ(shown[0].metadata.name, "WorkStart");
  EXPECT_EQ(shown[0].metadata, shown[1].metadata);
}

TEST_F(DotnetConversionTest, ProcessesMayHaveDifferentEventsWithOneId) {
  const std::string other =
      Description("Shop", 3, "Other") + Number(1) + Number(18) + Utf16("text");
  Write(Fields(3, Metadata(WorkStart()), Number(5)), 100);
  Write(Fields(3, Metadata(other), Utf16("x")), 101);
  Write(Fields(3, "", Number(6)), 100);
  Write(Fields(3, "", Utf16("y")), 101);
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 4u);
  EXPECT_EQ(shown[2].metadata.name, "WorkStart");
  EXPECT_EQ(shown[2].metadata.event_id, 3u);
  EXPECT_EQ(shown[3].metadata.name, "Other");
  EXPECT_NE(shown[3].metadata.event_id, 3u);
  EXPECT_EQ(shown[3].metadata.key_values, (nettrace::KeyValues{{trace::kKeyDotnetEventId, "3"}}));
}

TEST_F(DotnetConversionTest, NewDescriptionReplacesThatOfAFormerProcess) {
  Write(Fields(3, Metadata(WorkStart()), Number(5)));
  Write(Fields(3, Metadata(Description("Shop", 3, "New") + Number(0)), ""));
  Write(Fields(3, "", ""));
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 3u);
  EXPECT_EQ(shown[2].metadata.name, "New");
}

TEST_F(DotnetConversionTest, HostileRecordsAreUndecoded) {
  Write("");
  Write(Fields(3, Metadata("?"), ""));
  Write(Fields(3, Metadata(WorkStart()), "\5"));
  Write(Fields(3, "", std::string(60000, 'x'), 9));
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), 4u);
  for (const Shown& event : shown) EXPECT_EQ(event.metadata.name, SampleConverter::kUndecoded);
}

TEST_F(DotnetConversionTest, ProcessThatInventsEventsIsLimited) {
  constexpr int kEvents = 6000;
  for (int i = 0; i < kEvents; ++i) {
    const auto id = static_cast<std::uint16_t>(i);
    Write(Fields(id, Metadata(Description("Shop", id, "E") + Number(0)), ""));
  }
  Write(Fields(1, Metadata(Description("Shop", 1, "E") + Number(0)), ""), 101);
  const auto shown = Finish();
  ASSERT_EQ(shown.size(), kEvents + 1u);
  EXPECT_GT(samples_->stats().undecoded, 1000u);
  EXPECT_EQ(shown.back().metadata.name, "E") << "another process";
}

}  // namespace
}  // namespace collector
