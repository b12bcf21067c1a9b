// The files in golden/ are written by hand from the specification, one for each kind of block and
// row. The writer must make each of them byte for byte, and the reader and the verifier must accept
// it.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <set>

#include "libnettrace-writer/core/little_endian.h"
#include "nettrace/payload.h"
#include "nettrace/payload_encoder.h"
#include "nettrace/reader.h"
#include "nettrace/verifier.h"
#include "nettrace/writer.h"
#include "tests/support/nettrace/random_values.h"
#include "tests/support/nettrace/writer_to_string.h"
#include "tests/unit/libnettrace/annotated_bytes.h"
#include "tests/unit/libnettrace/trace_files.h"

namespace nettrace {
namespace {

using testing::Hex;
using testing::SixteenFrom;
using testing::Span;
using testing::WriterToString;
using Step = Reader::Step;

#define ASSERT_OK(expression) ASSERT_TRUE((expression).ok())

std::string GoldenBytes(const std::string& name) {
  return testing::Bytes(testing::TextOfFile(testing::GoldenFolder() / (name + ".txt")));
}

class WriterGolden : public ::testing::Test {
 protected:
  void Begin(const TraceInfo& info = {}) {
    out_ = std::make_unique<WriterToString>(WriterOptions(), info);
  }
  // Begins a stream with rows of metadata and of threads, numbered from 1.
  void BeginWithRows(std::uint32_t metadata, std::uint64_t threads, const TraceInfo& info = {}) {
    Begin(info);
    for (std::uint32_t id = 1; id <= metadata; ++id) {
      EXPECT_EQ(*writer().AddMetadata(testing::SmallMetadata(id)), MetadataId{id});
    }
    for (std::uint64_t id = 1; id <= threads; ++id)
      EXPECT_EQ(*writer().AddThread({}), ThreadIndex{id});
  }
  Writer& writer() { return *out_->writer; }

  absl::Status Write(std::uint64_t capture_thread, std::uint64_t thread, std::uint64_t time,
                     std::string_view payload = {}, std::uint32_t metadata_id = 1) {
    return writer().WriteEvent({.metadata_id = MetadataId{metadata_id},
                                .capture_thread = ThreadIndex{capture_thread},
                                .thread = ThreadIndex{thread},
                                .timestamp = time},
                               Span(payload));
  }

  // Ends the stream and compares it with the file of the test's name, in which Verify must find
  // nothing. From then on, reads that file.
  void ExpectGolden() {
    golden_ = GoldenBytes(::testing::UnitTest::GetInstance()->current_test_info()->name());
    EXPECT_TRUE(writer().Finish().ok());
    EXPECT_EQ(Hex(*out_->written), Hex(golden_));
    const auto report = Verify(std::make_unique<MemorySource>(Span(golden_)));
    ASSERT_TRUE(report.ok()) << report.status();
    for (const Finding& finding : report->findings) {
      EXPECT_EQ(finding.rule->severity, Severity::kHazard) << finding.explanation;
    }
    auto reader = Reader::Open(std::make_unique<MemorySource>(Span(golden_)));
    ASSERT_TRUE(reader.ok()) << reader.status();
    reader_ = *std::move(reader);
  }
  Reader& reader() { return *reader_; }

  // Expects that the next step returns this event.
  void ExpectEvent(std::uint64_t capture_thread, std::uint32_t number, std::uint64_t thread,
                   std::uint64_t time, std::string_view payload = {}) {
    ASSERT_EQ(reader().Next(), Step::kEvent) << reader().status();
    EXPECT_EQ(event().capture_thread_index, ThreadIndex{capture_thread});
    EXPECT_EQ(event().sequence_number, number);
    EXPECT_EQ(event().thread_index, ThreadIndex{thread});
    EXPECT_EQ(event().timestamp, time);
    EXPECT_EQ(Text(event().payload), payload);
  }
  void ExpectSequencePoint(std::uint64_t time, std::uint32_t flags) {
    ASSERT_EQ(reader().Next(), Step::kSequencePoint) << reader().status();
    EXPECT_EQ(reader().sequence_point().timestamp, time);
    EXPECT_EQ(reader().sequence_point().flags, flags);
  }
  void ExpectEnd() {
    EXPECT_EQ(reader().Next(), Step::kEnd);
    EXPECT_TRUE(reader().status().ok()) << reader().status();
  }
  const nettrace::Event& event() { return reader().event(); }
  std::vector<std::uint64_t> Frames(std::size_t size) {
    std::vector<std::uint64_t> frames;
    for (auto rest = event().stack; rest.size() >= size; rest = rest.subspan(size)) {
      std::uint64_t frame = 0;
      std::memcpy(&frame, rest.data(), size);
      frames.push_back(internal::LittleEndian(frame));
    }
    return frames;
  }
  static std::string Text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::string Json() {
    testing::JsonText json;
    EXPECT_TRUE(VisitPayload(event().metadata->fields, event().payload, &json).ok());
    return json.Finish();
  }

 private:
  std::unique_ptr<WriterToString> out_;
  std::string golden_;
  std::unique_ptr<Reader> reader_;
};

TEST_F(WriterGolden, StreamHeaderAndTraceBlock) {
  TraceInfo info;
  info.sync_time =
      absl::FromCivil(absl::CivilSecond(2026, 11, 21, 10, 32, 54), absl::UTCTimeZone()) +
      absl::Microseconds(987654);
  info.sync_ticks = 0x0102030405060708;
  info.ticks_per_second = 1'000'000'000;
  info.pointer_size = 8;
  info.key_values = {{"key", "value"}, {"\xC3\xA9", ""}};
  Begin(info);
  ExpectGolden();
  EXPECT_EQ(reader().trace().sync_time, absl::FromUnixMillis(absl::ToUnixMillis(info.sync_time)));
  EXPECT_EQ(reader().trace().sync_ticks, info.sync_ticks);
  EXPECT_EQ(reader().trace().ticks_per_second, info.ticks_per_second);
  EXPECT_EQ(reader().trace().pointer_size, info.pointer_size);
  EXPECT_EQ(reader().trace().key_values, info.key_values);
  ExpectEnd();
}

TEST_F(WriterGolden, EndOfStreamHasNoContents) {
  Begin();
  ExpectGolden();
  ExpectEnd();
}

TEST_F(WriterGolden, MetadataRowWithEveryOptionalKind) {
  Begin();
  EventMetadata metadata = testing::SmallMetadata(300);
  metadata.opcode = 7;
  metadata.keywords = 0x8000000000000001;
  metadata.level = 4;
  metadata.version = 9;
  metadata.message_template = "t";
  metadata.description = "d";
  metadata.provider_guid = SixteenFrom(0x10);
  metadata.key_values = {{"k", "v"}};
  ASSERT_OK(writer().AddMetadata(metadata));
  ASSERT_OK(writer().AddThread({}));
  ASSERT_OK(Write(1, 1, 5));
  ExpectGolden();
  ExpectEvent(1, 1, 1, 5);
  EXPECT_EQ(*event().metadata, metadata);
  ExpectEnd();
}

TEST_F(WriterGolden, MetadataRowWithEveryScalarType) {
  Begin();
  EventMetadata metadata = testing::SmallMetadata(1);
  for (const int code : {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 17, 18, 20, 21, 23, 26}) {
    metadata.fields.push_back({"f", Type::Simple(static_cast<TypeCode>(code))});
  }
  ASSERT_OK(writer().AddMetadata(metadata));
  ASSERT_OK(writer().AddThread({}));
  Guid guid;
  for (unsigned i = 0; i < 16; ++i) guid[i] = static_cast<std::byte>(0x11 * i);
  PayloadEncoder payload(&metadata.fields);
  payload.Bool(true).UInt('b').Int(-2).UInt(3).Int(-4).UInt(5).Int(-6).UInt(7).Int(-8).UInt(9);
  payload.Single(1.5F).Double(2.5).GuidValue(guid).Utf16(u"hi").Int(-150).UInt(300).UInt('u');
  ASSERT_OK(Write(1, 1, 5, Text(*payload.Bool(true).Finish())));
  ExpectGolden();
  ASSERT_EQ(reader().Next(), Step::kEvent);
  EXPECT_EQ(*event().metadata, metadata);
  EXPECT_EQ(Json(),
            R"({"f":true,"f":"\u0062","f":-2,"f":3,"f":-4,"f":5,"f":-6,"f":7,"f":-8,"f":9,)"
            R"("f":1.5,"f":2.5,"f":"33221100-5544-7766-8899-aabbccddeeff","f":"\u0068\u0069",)"
            R"("f":-150,"f":300,"f":"u","f":true})");
  ExpectEnd();
}

TEST_F(WriterGolden, MetadataRowWithEveryNestedType) {
  Begin();
  const Type byte = Type::Simple(TypeCode::kByte);
  EventMetadata metadata = testing::SmallMetadata(1);
  metadata.fields = {
      {"a", Type::Array(byte)},
      {"f", Type::FixedLengthArray(byte, 3)},
      {"r", Type::RelLoc(byte)},
      {"d", Type::DataLoc(byte)},
      {"o", Type::Object({{"x", byte}, {"y", Type::Array(Type::Object({{"z", byte}}))}})},
  };
  ASSERT_OK(writer().AddMetadata(metadata));
  ASSERT_OK(writer().AddThread({}));
  PayloadEncoder payload(&metadata.fields);
  payload.BeginArray(2).UInt(10).UInt(11).EndArray();
  payload.BeginArray(3).UInt(20).UInt(21).UInt(22).EndArray();
  payload.Located(Span("\x1E\x1F")).Located(Span("\x21"));
  payload.BeginObject().UInt(40).BeginArray(2);
  for (const unsigned z : {50, 51}) payload.BeginObject().UInt(z).EndObject();
  ASSERT_OK(Write(1, 1, 5, Text(*payload.EndArray().EndObject().Finish())));
  ExpectGolden();
  ASSERT_EQ(reader().Next(), Step::kEvent);
  EXPECT_EQ(*event().metadata, metadata);
  EXPECT_EQ(Json(), R"({"a":[10,11],"f":[20,21,22],"r":[30,31],"d":[33],)"
                    R"("o":{"x":40,"y":[{"z":50},{"z":51}]}})");
  ExpectEnd();
}

TEST_F(WriterGolden, ThreadRowWithEveryOptionalKind) {
  BeginWithRows(1, 0);
  ThreadInfo thread;
  thread.name = "main";
  thread.process_id = 128;
  thread.thread_id = 0xFFFFFFFFFFFFFFFF;
  thread.key_values = {{"k", "v"}, {"l", ""}};
  EXPECT_EQ(*writer().AddThread(thread), ThreadIndex{1});
  ASSERT_OK(Write(1, 1, 5));
  ExpectGolden();
  ExpectEvent(1, 1, 1, 5);
  EXPECT_EQ(*event().thread, thread);
  ExpectEnd();
}

TEST_F(WriterGolden, LabelListsWithEveryKind) {
  BeginWithRows(1, 1);
  Labels all;
  all.activity_id = SixteenFrom(0x10);
  all.related_activity_id = SixteenFrom(0x20);
  all.trace_id = SixteenFrom(0x30);
  all.span_id = 0x0102030405060708;
  all.strings = {{"s", "t"}};
  all.integers = {{"i", -3}, {"j", 64}};
  all.opcode = 1;
  all.keywords = 2;
  all.level = 3;
  all.version = 4;
  Labels one;
  one.level = 5;
  EXPECT_EQ(*writer().InternLabels(all), LabelListId{1});
  EXPECT_EQ(*writer().InternLabels(one), LabelListId{2});
  EXPECT_EQ(*writer().InternLabels(all), LabelListId{1});
  EXPECT_EQ(*writer().InternLabels(Labels()), LabelListId{0});
  EventRow row = {.metadata_id = MetadataId{1},
                  .capture_thread = ThreadIndex{1},
                  .thread = ThreadIndex{1},
                  .timestamp = 5};
  for (const LabelListId id : {LabelListId{1}, LabelListId{2}}) {
    row.label_list_id = id;
    ASSERT_OK(writer().WriteEvent(row, {}));
    ++row.timestamp;
  }
  ExpectGolden();
  ExpectEvent(1, 1, 1, 5);
  EXPECT_EQ(*event().labels, all);
  ExpectEvent(1, 2, 1, 6);
  EXPECT_EQ(*event().labels, one);
  ExpectEnd();
}

TEST_F(WriterGolden, Stacks) {
  BeginWithRows(1, 1);
  const std::vector<std::uint64_t> two = {0x1122334455667788, 1};
  const std::vector<std::uint64_t> one = {2};
  EXPECT_EQ(*writer().InternStack(two), StackId{1});
  EXPECT_EQ(*writer().InternStack(one), StackId{2});
  EXPECT_EQ(*writer().InternStack(two), StackId{1});
  EXPECT_EQ(*writer().InternStack({}), StackId{0});
  EventRow row = {.metadata_id = MetadataId{1},
                  .capture_thread = ThreadIndex{1},
                  .thread = ThreadIndex{1},
                  .timestamp = 5};
  for (const StackId id : {StackId{1}, StackId{2}}) {
    row.stack_id = id;
    ASSERT_OK(writer().WriteEvent(row, {}));
    ++row.timestamp;
  }
  ExpectGolden();
  ExpectEvent(1, 1, 1, 5);
  EXPECT_EQ(Frames(8), two);
  ExpectEvent(1, 2, 1, 6);
  EXPECT_EQ(Frames(8), one);
  ExpectEnd();
}

TEST_F(WriterGolden, StacksOfFourBytePointers) {
  TraceInfo info;
  info.pointer_size = 4;
  BeginWithRows(1, 1, info);
  const std::vector<std::uint64_t> stack = {0x11223344, 1};
  EXPECT_EQ(*writer().InternStack(stack), StackId{1});
  ASSERT_OK(writer().WriteEvent({.metadata_id = MetadataId{1},
                                 .capture_thread = ThreadIndex{1},
                                 .thread = ThreadIndex{1},
                                 .timestamp = 5,
                                 .stack_id = StackId{1}},
                                {}));
  ExpectGolden();
  ExpectEvent(1, 1, 1, 5);
  EXPECT_EQ(Frames(4), stack);
  ExpectEnd();
}

TEST_F(WriterGolden, FirstEventOfABlockHasAllThatIsNotZero) {
  BeginWithRows(2, 2);
  ASSERT_OK(writer().WriteEvent({.metadata_id = MetadataId{2},
                                 .capture_thread = ThreadIndex{1},
                                 .thread = ThreadIndex{2},
                                 .processor = 200,
                                 .timestamp = 1000},
                                Span("abc")));
  ExpectGolden();
  ExpectEvent(1, 1, 2, 1000, "abc");
  EXPECT_EQ(event().metadata_id, MetadataId{2});
  EXPECT_EQ(event().processor, 200U);
  ExpectEnd();
}

TEST_F(WriterGolden, HeaderHasOnlyChangedValues) {
  BeginWithRows(2, 2);
  Labels labels;
  labels.level = 1;
  const std::vector<std::uint64_t> stack = {1};
  EventRow row = {.metadata_id = MetadataId{1},
                  .capture_thread = ThreadIndex{1},
                  .thread = ThreadIndex{1},
                  .timestamp = 5};
  ASSERT_OK(writer().WriteEvent(row, Span("a")));
  const auto next = [&](std::string_view payload) {
    ++row.timestamp;
    return writer().WriteEvent(row, Span(payload)).ok();
  };
  ASSERT_TRUE(next("b"));  // Only the time changes.
  row.metadata_id = MetadataId{2};
  ASSERT_TRUE(next("c"));
  row.processor = 3;
  ASSERT_TRUE(next("d"));
  row.thread = ThreadIndex{2};
  ASSERT_TRUE(next("e"));
  row.stack_id = *writer().InternStack(stack);
  ASSERT_TRUE(next("f"));
  row.label_list_id = *writer().InternLabels(labels);
  ASSERT_TRUE(next("g"));
  ASSERT_TRUE(next(""));  // The size of the payload changes.
  ASSERT_OK(writer().AddLost(ThreadIndex{1}, 300));
  ASSERT_TRUE(next(""));
  row.stack_id = kNoStack;
  row.label_list_id = kNoLabels;
  ASSERT_TRUE(next("hi"));
  ExpectGolden();
  ExpectEvent(1, 1, 1, 5, "a");
  ExpectEvent(1, 2, 1, 6, "b");
  EXPECT_EQ(event().metadata_id, MetadataId{1});
  ExpectEvent(1, 3, 1, 7, "c");
  EXPECT_EQ(event().metadata_id, MetadataId{2});
  EXPECT_EQ(event().processor, 0U);
  ExpectEvent(1, 4, 1, 8, "d");
  EXPECT_EQ(event().processor, 3U);
  ExpectEvent(1, 5, 2, 9, "e");
  EXPECT_TRUE(event().stack.empty());
  ExpectEvent(1, 6, 2, 10, "f");
  EXPECT_EQ(Frames(8), stack);
  EXPECT_TRUE(event().labels->empty());
  ExpectEvent(1, 7, 2, 11, "g");
  EXPECT_EQ(*event().labels, labels);
  ExpectEvent(1, 8, 2, 12, "");
  EXPECT_EQ(event().lost_before, 0U);
  ExpectEvent(1, 309, 2, 13, "");
  EXPECT_EQ(event().lost_before, 300U);
  ExpectEvent(1, 310, 2, 14, "hi");
  EXPECT_TRUE(event().stack.empty());
  EXPECT_TRUE(event().labels->empty());
  ExpectEnd();
}

TEST_F(WriterGolden, EachCaptureThreadHasASeparateBlock) {
  BeginWithRows(2, 2);
  ASSERT_OK(Write(2, 1, 1));
  ASSERT_OK(Write(1, 1, 2));
  ASSERT_OK(Write(2, 1, 3));
  ASSERT_OK(writer().Flush());
  ASSERT_OK(Write(2, 1, 4));  // Numbers continue across blocks.
  ExpectGolden();
  ExpectEvent(2, 1, 1, 1);
  ExpectEvent(2, 2, 1, 3);
  ExpectEvent(1, 1, 1, 2);
  ExpectEvent(2, 3, 1, 4);
  ExpectEnd();
}

TEST_F(WriterGolden, SequencePointListsTheLastNumbersOfCaptureThreads) {
  BeginWithRows(2, 2);
  ASSERT_OK(Write(2, 1, 7));
  ASSERT_OK(writer().AddLost(ThreadIndex{2}, 199));
  ASSERT_OK(writer().WriteSequencePoint(8));
  ASSERT_OK(writer().AddLost(ThreadIndex{1}, 1));
  ASSERT_OK(writer().WriteSequencePoint(9));
  ExpectGolden();
  ExpectEvent(2, 1, 1, 7);
  ExpectSequencePoint(8, 0);
  ASSERT_EQ(reader().sequence_point().losses.size(), 1U);
  EXPECT_EQ(reader().sequence_point().losses[0].thread_index, ThreadIndex{2});
  EXPECT_EQ(reader().sequence_point().losses[0].count, 199U);
  ExpectSequencePoint(9, 0);
  ASSERT_EQ(reader().sequence_point().losses.size(), 1U);
  EXPECT_EQ(reader().sequence_point().losses[0].thread_index, ThreadIndex{1});
  EXPECT_EQ(reader().sequence_point().losses[0].count, 1U);
  ExpectEnd();
}

TEST_F(WriterGolden, AfterAFlushOfThreadsNumbersBeginAgain) {
  BeginWithRows(2, 2);
  ASSERT_OK(Write(1, 1, 1));
  ASSERT_OK(writer().WriteSequencePoint(2, kSequencePointFlushThreads));
  EXPECT_TRUE(absl::IsInvalidArgument(Write(1, 1, 3)));
  ASSERT_EQ(*writer().AddThread({}), ThreadIndex{3});
  ASSERT_OK(Write(3, 3, 3));
  ExpectGolden();
  ExpectEvent(1, 1, 1, 1);
  ExpectSequencePoint(2, kSequencePointFlushThreads);
  ExpectEvent(3, 1, 3, 3);
  EXPECT_EQ(event().lost_before, 0U);
  ExpectEnd();
}

TEST_F(WriterGolden, AfterAFlushOfMetadataRowsAreDefinedAgain) {
  BeginWithRows(1, 1);
  ASSERT_OK(Write(1, 1, 1));
  ASSERT_OK(writer().WriteSequencePoint(2, kSequencePointFlushMetadata));
  EXPECT_TRUE(absl::IsInvalidArgument(Write(1, 1, 3)));
  ASSERT_EQ(*writer().AddMetadata(testing::SmallMetadata(1)), MetadataId{2});
  ASSERT_OK(Write(1, 1, 3, {}, 2));
  ExpectGolden();
  ExpectEvent(1, 1, 1, 1);
  ExpectSequencePoint(2, kSequencePointFlushMetadata);
  ExpectEvent(1, 2, 1, 3);
  EXPECT_EQ(event().metadata->name, "N");
  ExpectEnd();
}

TEST_F(WriterGolden, ASectionBeginsWithTheFirstIdsAndNumbers) {
  BeginWithRows(1, 1);
  ASSERT_OK(Write(1, 1, 1));
  ASSERT_OK(writer().StartSection(2));
  EXPECT_TRUE(absl::IsInvalidArgument(Write(1, 1, 3)));
  ASSERT_EQ(*writer().AddMetadata(testing::SmallMetadata(1)), MetadataId{1});
  ASSERT_EQ(*writer().AddThread({}), ThreadIndex{1});
  EXPECT_TRUE(absl::IsInvalidArgument(Write(1, 1, 1)));  // The time is before the section.
  ASSERT_OK(Write(1, 1, 3));
  ExpectGolden();
  ExpectEvent(1, 1, 1, 1);
  ExpectSequencePoint(2, kSequencePointFlushThreads | kSequencePointFlushMetadata);
  ExpectEvent(1, 1, 1, 3);
  EXPECT_EQ(event().lost_before, 0U);
  ExpectEnd();
}

TEST_F(WriterGolden, LabelsAndStacksBeginAgainAtASequencePoint) {
  BeginWithRows(1, 1);
  for (std::uint8_t i = 1; i <= 2; ++i) {
    Labels labels;
    labels.level = i;
    const std::vector<std::uint64_t> stack = {i};
    EXPECT_EQ(*writer().InternLabels(labels), LabelListId{1});
    EXPECT_EQ(*writer().InternStack(stack), StackId{1});
    ASSERT_OK(writer().WriteEvent({.metadata_id = MetadataId{1},
                                   .capture_thread = ThreadIndex{1},
                                   .thread = ThreadIndex{1},
                                   .timestamp = 2U * i - 1,
                                   .stack_id = StackId{1},
                                   .label_list_id = LabelListId{1}},
                                  {}));
    if (i == 1) {
      ASSERT_OK(writer().WriteSequencePoint(2));
    }
  }
  ExpectGolden();
  ExpectEvent(1, 1, 1, 1);
  EXPECT_EQ(event().level(), 1);
  EXPECT_EQ(Frames(8), std::vector<std::uint64_t>{1});
  ExpectSequencePoint(2, 0);
  ExpectEvent(1, 2, 1, 3);
  EXPECT_EQ(event().level(), 2);
  EXPECT_EQ(Frames(8), std::vector<std::uint64_t>{2});
  ExpectEnd();
}

TEST_F(WriterGolden, RemoveThreadFollowsTheEventsThatReferToIt) {
  BeginWithRows(2, 2);
  ASSERT_OK(Write(1, 2, 1));
  ASSERT_OK(writer().AddLost(ThreadIndex{2}, 300));
  ASSERT_OK(writer().RemoveThread(ThreadIndex{2}));
  ASSERT_OK(writer().WriteSequencePoint(2));
  ExpectGolden();
  ExpectEvent(1, 1, 2, 1);
  ASSERT_EQ(reader().Next(), Step::kRemovedThread);
  EXPECT_EQ(reader().removed_thread().thread_index, ThreadIndex{2});
  EXPECT_EQ(reader().removed_thread().lost, 300U);
  ExpectSequencePoint(2, 0);
  EXPECT_TRUE(reader().sequence_point().losses.empty());
  ExpectEnd();
}

TEST(GoldenFiles, EachHasATestOfItsName) {
  std::set<std::string> tests;
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const ::testing::TestSuite& suite = *all.GetTestSuite(i);
    if (std::string_view(suite.name()) != "WriterGolden") continue;
    for (int j = 0; j < suite.total_test_count(); ++j) tests.insert(suite.GetTestInfo(j)->name());
  }
  std::set<std::string> files;
  for (const auto& file : std::filesystem::directory_iterator(testing::GoldenFolder())) {
    files.insert(file.path().stem());
  }
  EXPECT_EQ(files, tests);
}

TEST(GoldenFiles, HaveEveryKindOfBlock) {
  std::set<int> kinds;
  for (const auto& file : std::filesystem::directory_iterator(testing::GoldenFolder())) {
    const std::string bytes = GoldenBytes(file.path().stem());
    auto reader = Reader::Open(std::make_unique<MemorySource>(Span(bytes)));
    ASSERT_TRUE(reader.ok());
    while ((*reader)->Next() != Step::kEnd) {
    }
    for (int kind = 0; kind < 256; ++kind) {
      if ((*reader)->stats().blocks[static_cast<std::size_t>(kind)] > 0) kinds.insert(kind);
    }
  }
  EXPECT_EQ(kinds, (std::set<int>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
}

}  // namespace
}  // namespace nettrace
