// Each block and row kind, byte for byte as the specification has it; written down by hand.
#include <gtest/gtest.h>

#include "nettrace/writer.h"
#include "writer_testing.h"

namespace nettrace {
namespace {

using testing::Bytes;
using testing::Hex;
using testing::SixteenFrom;
using testing::Span;
using testing::WriterToString;

#define ASSERT_OK(expression) ASSERT_TRUE((expression).ok())

std::string Golden(std::string_view text) { return Hex(Bytes(text)); }

EventMetadata Event(std::uint32_t id) {
  EventMetadata metadata;
  metadata.provider = "P";
  metadata.event_id = id;
  metadata.name = "N";
  return metadata;
}

// The metadata and thread blocks that most of the tests below begin with: rows 1 and 2, threads
// 1, 2.
constexpr char kTwoRows[] =
    "1A 00 00 03  00 00"
    "  0A 00  01  01 'P'  01  01 'N'  00 00  00 00"
    "  0A 00  02  01 'P'  02  01 'N'  00 00  00 00";
constexpr char kTwoThreads[] = "06 00 00 06  01 00 01  01 00 02";

struct WriterWithRows : WriterToString {
  explicit WriterWithRows(const WriterOptions& options = {}) : WriterToString(options) {
    for (const std::uint32_t id : {1, 2}) EXPECT_EQ(*writer->AddMetadata(Event(id)), id);
    for (const std::uint64_t index : {1, 2}) EXPECT_EQ(*writer->AddThread({}), index);
  }
};

std::string GoldenWithRows(std::string_view rest) {
  return Golden(std::string(kTwoRows) + kTwoThreads + std::string(rest));
}

TEST(WriterGolden, StreamHeaderAndTraceBlock) {
  TraceInfo info;
  info.sync_time =
      absl::FromCivil(absl::CivilSecond(2026, 11, 21, 10, 32, 54), absl::UTCTimeZone()) +
      absl::Microseconds(987654);
  info.sync_ticks = 0x0102030405060708;
  info.ticks_per_second = 1'000'000'000;
  info.pointer_size = 8;
  info.key_values = {{"key", "value"}, {"\xC3\xA9", ""}};
  const WriterToString out({}, info);
  EXPECT_EQ(Hex(*out.written),
            Golden("'Nettrace'  00 00 00 00  06 00 00 00  00 00 00 00"
                   "36 00 00 01"
                   "  EA 07  0B 00  06 00  15 00  0A 00  20 00  36 00  DB 03"  // a Saturday
                   "  08 07 06 05 04 03 02 01   00 CA 9A 3B 00 00 00 00  08 00 00 00  02 00 00 00"
                   "  03 'key' 05 'value'  02 C3 A9  00"));
}

TEST(WriterGolden, EndOfStreamHasNoContents) {
  const WriterToString out;
  ASSERT_OK(out.writer->Finish());
  EXPECT_EQ(out.blocks(), Golden("00 00 00 00"));
}

TEST(WriterGolden, MetadataRowWithEveryOptionalKind) {
  const WriterToString out;
  EventMetadata metadata = Event(300);
  metadata.opcode = 7;
  metadata.keywords = 0x8000000000000001;
  metadata.level = 4;
  metadata.version = 9;
  metadata.message_template = "t";
  metadata.description = "d";
  metadata.provider_guid = SixteenFrom(0x10);
  metadata.key_values = {{"k", "v"}};
  ASSERT_OK(out.writer->AddMetadata(metadata));
  ASSERT_OK(out.writer->Flush());
  EXPECT_EQ(out.blocks(),
            Golden("3A 00 00 03  00 00  36 00  01  01 'P'  AC 02  01 'N'  00 00  2B 00"
                   "  01 07"
                   "  03 01 00 00 00 00 00 00 80"
                   "  04 01 't'"
                   "  05 01 'd'"
                   "  06 01 'k' 01 'v'"
                   "  07 10 11 12 13 14 15 16 17 18 19 1A 1B 1C 1D 1E 1F"
                   "  08 04"
                   "  09 09"));
}

TEST(WriterGolden, MetadataRowWithEveryScalarType) {
  const WriterToString out;
  EventMetadata metadata = Event(1);
  for (const int code : {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 17, 18, 20, 21, 23, 26}) {
    metadata.fields.push_back({"f", Type::Simple(static_cast<TypeCode>(code))});
  }
  ASSERT_OK(out.writer->AddMetadata(metadata));
  ASSERT_OK(out.writer->Flush());
  EXPECT_EQ(out.blocks(),
            Golden("68 00 00 03  00 00  64 00  01  01 'P'  01  01 'N'  12 00"
                   "  03 00 01 'f' 03  03 00 01 'f' 04  03 00 01 'f' 05  03 00 01 'f' 06"
                   "  03 00 01 'f' 07  03 00 01 'f' 08  03 00 01 'f' 09  03 00 01 'f' 0A"
                   "  03 00 01 'f' 0B  03 00 01 'f' 0C  03 00 01 'f' 0D  03 00 01 'f' 0E"
                   "  03 00 01 'f' 11  03 00 01 'f' 12  03 00 01 'f' 14  03 00 01 'f' 15"
                   "  03 00 01 'f' 17  03 00 01 'f' 1A"
                   "  00 00"));
}

TEST(WriterGolden, MetadataRowWithEveryNestedType) {
  const WriterToString out;
  const Type byte = Type::Simple(TypeCode::kByte);
  EventMetadata metadata = Event(1);
  metadata.fields = {
      {"a", Type::Array(byte)},
      {"f", Type::FixedLengthArray(byte, 0x0102)},
      {"r", Type::RelLoc(byte)},
      {"d", Type::DataLoc(byte)},
      {"o", Type::Object({{"x", byte}, {"y", Type::Array(Type::Object({{"z", byte}}))}})},
  };
  ASSERT_OK(out.writer->AddMetadata(metadata));
  ASSERT_OK(out.writer->Flush());
  EXPECT_EQ(out.blocks(), Golden("41 00 00 03  00 00  3D 00  01  01 'P'  01  01 'N'  05 00"
                                 "  04 00 01 'a' 13 06"
                                 "  06 00 01 'f' 16 06 02 01"
                                 "  04 00 01 'r' 18 06"
                                 "  04 00 01 'd' 19 06"
                                 "  17 00 01 'o' 01  02 00"
                                 "    03 00 01 'x' 06"
                                 "    0B 00 01 'y' 13 01  01 00"
                                 "      03 00 01 'z' 06"
                                 "  00 00"));
}

TEST(WriterGolden, ThreadRowWithEveryOptionalKind) {
  const WriterToString out;
  ThreadInfo thread;
  thread.name = "main";
  thread.process_id = 128;
  thread.thread_id = 0xFFFFFFFFFFFFFFFF;
  thread.key_values = {{"k", "v"}, {"l", ""}};
  EXPECT_EQ(*out.writer->AddThread(thread), 1U);
  ASSERT_OK(out.writer->Flush());
  EXPECT_EQ(out.blocks(),
            Golden("20 00 00 06  1E 00  01  01 04 'main'  02 80 01"
                   "  03 FF FF FF FF FF FF FF FF FF 01  04 01 'k' 01 'v'  04 01 'l' 00"));
}

TEST(WriterGolden, LabelListsWithEveryKind) {
  WriterToString out;
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
  EXPECT_EQ(*out.writer->InternLabels(all), 1U);
  EXPECT_EQ(*out.writer->InternLabels(one), 2U);
  EXPECT_EQ(*out.writer->InternLabels(all), 1U);
  EXPECT_EQ(*out.writer->InternLabels(Labels()), 0U);
  ASSERT_OK(out.writer->Flush());
  EXPECT_EQ(out.blocks(), Golden("63 00 00 08  01 00 00 00  02 00 00 00"
                                 "  01 10 11 12 13 14 15 16 17 18 19 1A 1B 1C 1D 1E 1F"
                                 "  02 20 21 22 23 24 25 26 27 28 29 2A 2B 2C 2D 2E 2F"
                                 "  03 30 31 32 33 34 35 36 37 38 39 3A 3B 3C 3D 3E 3F"
                                 "  04 08 07 06 05 04 03 02 01"
                                 "  05 01 's' 01 't'"
                                 "  06 01 'i' 05"
                                 "  06 01 'j' 80 01"
                                 "  07 01"
                                 "  08 02 00 00 00 00 00 00 00"
                                 "  09 03"
                                 "  8A 04"
                                 "  89 05"));
}

TEST(WriterGolden, Stacks) {
  WriterToString out;
  const std::vector<std::uint64_t> two = {0x1122334455667788, 1};
  const std::vector<std::uint64_t> one = {2};
  EXPECT_EQ(*out.writer->InternStack(two), 1U);
  EXPECT_EQ(*out.writer->InternStack(one), 2U);
  EXPECT_EQ(*out.writer->InternStack(two), 1U);
  EXPECT_EQ(*out.writer->InternStack({}), 0U);
  ASSERT_OK(out.writer->Flush());
  EXPECT_EQ(out.blocks(), Golden("28 00 00 05  01 00 00 00  02 00 00 00"
                                 "  10 00 00 00  88 77 66 55 44 33 22 11  01 00 00 00 00 00 00 00"
                                 "  08 00 00 00  02 00 00 00 00 00 00 00"));
}

TEST(WriterGolden, StacksOfFourBytePointers) {
  TraceInfo info;
  info.pointer_size = 4;
  WriterToString out({}, info);
  const std::vector<std::uint64_t> stack = {0x11223344, 1};
  EXPECT_EQ(*out.writer->InternStack(stack), 1U);
  ASSERT_OK(out.writer->Flush());
  EXPECT_EQ(out.blocks(), Golden("14 00 00 05  01 00 00 00  01 00 00 00"
                                 "  08 00 00 00  44 33 22 11  01 00 00 00"));
}

TEST(WriterGolden, FirstEventOfABlockHasAllThatIsNotZero) {
  WriterWithRows out;
  ASSERT_OK(out.writer->WriteEvent(
      {.metadata_id = 2, .capture_thread = 1, .thread = 2, .processor = 200, .timestamp = 1000},
      Span("abc")));
  ASSERT_OK(out.writer->Flush());
  EXPECT_EQ(out.blocks(), GoldenWithRows("21 00 00 02  14 00  01 00"
                                         "  E8 03 00 00 00 00 00 00  E8 03 00 00 00 00 00 00"
                                         "  87  02  00 01 C8 01  02  E8 07  03  'abc'"));
}

TEST(WriterGolden, OnlyWhatChangedIsInAHeader) {
  WriterWithRows out;
  Labels labels;
  labels.level = 1;
  const std::vector<std::uint64_t> stack = {1};
  EventRow row = {.metadata_id = 1, .capture_thread = 1, .thread = 1, .timestamp = 5};
  ASSERT_OK(out.writer->WriteEvent(row, Span("a")));
  const auto next = [&](std::string_view payload) {
    ++row.timestamp;
    return out.writer->WriteEvent(row, Span(payload)).ok();
  };
  ASSERT_TRUE(next("b"));  // nothing
  row.metadata_id = 2;
  ASSERT_TRUE(next("c"));
  row.processor = 3;
  ASSERT_TRUE(next("d"));
  row.thread = 2;
  ASSERT_TRUE(next("e"));
  row.stack_id = *out.writer->InternStack(stack);
  ASSERT_TRUE(next("f"));
  row.label_list_id = *out.writer->InternLabels(labels);
  ASSERT_TRUE(next("g"));
  ASSERT_TRUE(next(""));  // payload size
  ASSERT_OK(out.writer->AddLost(1, 300));
  ASSERT_TRUE(next(""));
  row.stack_id = row.label_list_id = 0;
  ASSERT_TRUE(next("hi"));
  ASSERT_OK(out.writer->Flush());
  EXPECT_EQ(
      out.blocks(),
      GoldenWithRows("0A 00 00 08  01 00 00 00  01 00 00 00  89 01"
                     "14 00 00 05  01 00 00 00  01 00 00 00  08 00 00 00  01 00 00 00 00 00 00 00"
                     "46 00 00 02  14 00  01 00"
                     "  05 00 00 00 00 00 00 00  0E 00 00 00 00 00 00 00"
                     "  87  01  00 01 00  01  05  01  'a'"
                     "  00  01  'b'"
                     "  01  02  01  'c'"
                     "  02  00 01 03  01  'd'"
                     "  04  02  01  'e'"
                     "  08  01  01  'f'"
                     "  10  01  01  'g'"
                     "  80  01  00"
                     "  02  AC 02 01 03  01"
                     "  98  00  01  00  02  'hi'"));
}

TEST(WriterGolden, EachCaptureThreadHasABlockOfItsOwn) {
  WriterWithRows out;
  const auto write = [&](std::uint64_t capture, std::uint64_t time) {
    return out.writer
        ->WriteEvent({.metadata_id = 1, .capture_thread = capture, .thread = 1, .timestamp = time},
                     {})
        .ok();
  };
  ASSERT_TRUE(write(2, 1));
  ASSERT_TRUE(write(1, 2));
  ASSERT_TRUE(write(2, 3));
  ASSERT_OK(out.writer->Flush());
  ASSERT_TRUE(write(2, 4));  // numbers go on over blocks
  ASSERT_OK(out.writer->Flush());
  EXPECT_EQ(out.blocks(), GoldenWithRows("1D 00 00 02  14 00  01 00"
                                         "  01 00 00 00 00 00 00 00  03 00 00 00 00 00 00 00"
                                         "  07  01  00 02 00  01  01"
                                         "  00  02"
                                         "1B 00 00 02  14 00  01 00"
                                         "  02 00 00 00 00 00 00 00  02 00 00 00 00 00 00 00"
                                         "  07  01  00 01 00  01  02"
                                         "1B 00 00 02  14 00  01 00"
                                         "  04 00 00 00 00 00 00 00  04 00 00 00 00 00 00 00"
                                         "  07  01  02 02 00  01  04"));
}

TEST(WriterGolden, SequencePointListsTheLastNumbersOfCaptureThreads) {
  WriterWithRows out;
  ASSERT_OK(out.writer->WriteEvent(
      {.metadata_id = 1, .capture_thread = 2, .thread = 1, .timestamp = 7}, {}));
  ASSERT_OK(out.writer->AddLost(2, 199));
  ASSERT_OK(out.writer->WriteSequencePoint(8));
  ASSERT_OK(out.writer->AddLost(1, 1));
  ASSERT_OK(out.writer->WriteSequencePoint(9));
  EXPECT_EQ(
      out.blocks(),
      GoldenWithRows("1B 00 00 02  14 00  01 00"
                     "  07 00 00 00 00 00 00 00  07 00 00 00 00 00 00 00"
                     "  07  01  00 02 00  01  07"
                     "13 00 00 04  08 00 00 00 00 00 00 00  00 00 00 00  01 00 00 00  02 C8 01"
                     "15 00 00 04  09 00 00 00 00 00 00 00  00 00 00 00  02 00 00 00"
                     "  01 01  02 C8 01"));
}

TEST(WriterGolden, AfterAFlushOfThreadsNumbersBeginAgain) {
  WriterWithRows out;
  const auto write = [&](std::uint64_t thread, std::uint64_t time) {
    return out.writer->WriteEvent(
        {.metadata_id = 1, .capture_thread = thread, .thread = thread, .timestamp = time}, {});
  };
  ASSERT_OK(write(1, 1));
  ASSERT_OK(out.writer->WriteSequencePoint(2, kSequencePointFlushThreads));
  EXPECT_TRUE(absl::IsInvalidArgument(write(1, 3)));
  ASSERT_EQ(*out.writer->AddThread({}), 3U);
  ASSERT_OK(write(3, 3));
  ASSERT_OK(out.writer->Flush());
  EXPECT_EQ(out.blocks(),
            GoldenWithRows("1B 00 00 02  14 00  01 00"
                           "  01 00 00 00 00 00 00 00  01 00 00 00 00 00 00 00"
                           "  07  01  00 01 00  01  01"
                           "12 00 00 04  02 00 00 00 00 00 00 00  01 00 00 00  01 00 00 00  01 01"
                           "03 00 00 06  01 00 03"
                           "1B 00 00 02  14 00  01 00"
                           "  03 00 00 00 00 00 00 00  03 00 00 00 00 00 00 00"
                           "  07  01  00 03 00  03  03"));
}

TEST(WriterGolden, RemoveThreadFollowsTheEventsThatReferToIt) {
  WriterWithRows out;
  ASSERT_OK(out.writer->WriteEvent(
      {.metadata_id = 1, .capture_thread = 1, .thread = 2, .timestamp = 1}, {}));
  ASSERT_OK(out.writer->AddLost(2, 300));
  ASSERT_OK(out.writer->RemoveThread(2));
  ASSERT_OK(out.writer->WriteSequencePoint(2));
  EXPECT_EQ(
      out.blocks(),
      GoldenWithRows("1B 00 00 02  14 00  01 00"
                     "  01 00 00 00 00 00 00 00  01 00 00 00 00 00 00 00"
                     "  07  01  00 01 00  02  01"
                     "03 00 00 07  02 AC 02"
                     "12 00 00 04  02 00 00 00 00 00 00 00  00 00 00 00  01 00 00 00  01 01"));
}

}  // namespace
}  // namespace nettrace
