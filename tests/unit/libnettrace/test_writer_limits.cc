// Tests that the writer refuses what the format or TraceEvent cannot hold, and that a refusal
// leaves the stream unchanged.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "libnettrace-writer/core/byte_writer.h"
#include "libnettrace-writer/core/traceevent.h"
#include "libnettrace-writer/write/put_rows.h"
#include "nettrace/writer.h"
#include "tests/support/nettrace/open_bytes.h"
#include "tests/support/nettrace/writer_to_string.h"

namespace nettrace {
namespace {

using testing::WriterToString;

// A writer with metadata row 1 and threads 1 and 2.
struct WriterWithRows : WriterToString {
  explicit WriterWithRows(const WriterOptions& options = {}) : WriterToString(options) {
    EXPECT_TRUE(writer->AddMetadata(testing::SmallMetadata(1)).ok());
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(writer->AddThread({}).ok());
  }
  absl::Status Write(std::uint64_t time, std::size_t payload = 0, std::uint64_t thread = 1) {
    const std::vector<std::byte> bytes(payload);
    return writer->WriteEvent({.metadata_id = MetadataId{1},
                               .capture_thread = ThreadIndex{thread},
                               .thread = ThreadIndex{thread},
                               .timestamp = time},
                              bytes);
  }
};

WriterOptions Loose() {
  WriterOptions options;
  options.traceevent_compatible = false;
  return options;
}

bool Accepts(const EventMetadata& metadata, const WriterOptions& options = {}) {
  WriterToString out(options);
  const absl::Status status = out.writer->AddMetadata(metadata).status();
  EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status) || absl::IsOutOfRange(status));
  EXPECT_TRUE(out.writer->Flush().ok());
  EXPECT_EQ(status.ok(), !out.blocks().empty());
  return status.ok();
}

bool AcceptsType(const Type& type, const WriterOptions& options = {}) {
  return Accepts(testing::SmallMetadata(1, {{"f", type}}), options);
}

const Type kByte = Type::Simple(TypeCode::kByte);

TEST(WriterLimits, TimeBeforeTheLastEventOfTheCaptureThreadIsRefused) {
  WriterWithRows out;
  ASSERT_TRUE(out.Write(10).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(out.Write(9)));
  EXPECT_TRUE(out.Write(10).ok());
  EXPECT_TRUE(out.Write(9, 0, 2).ok());
  ASSERT_TRUE(out.writer->Flush().ok());
  EXPECT_TRUE(absl::IsInvalidArgument(out.Write(9)));
}

TEST(WriterLimits, TimeBeforeTheSequencePointIsRefused) {
  WriterWithRows out;
  ASSERT_TRUE(out.writer->WriteSequencePoint(10).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(out.Write(9)));
  EXPECT_TRUE(out.Write(10).ok());
}

TEST(WriterLimits, SequencePointBeforeAnEventIsRefused) {
  WriterWithRows out;
  ASSERT_TRUE(out.Write(10).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(out.writer->WriteSequencePoint(9)));
  ASSERT_TRUE(out.writer->Flush().ok());
  EXPECT_TRUE(absl::IsInvalidArgument(out.writer->WriteSequencePoint(9)));
  EXPECT_TRUE(out.writer->WriteSequencePoint(10).ok());
}

TEST(WriterLimits, TimesOfSequencePointsIncrease) {
  WriterWithRows out;
  ASSERT_TRUE(out.writer->WriteSequencePoint(10).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(out.writer->WriteSequencePoint(10)));
  EXPECT_TRUE(out.writer->WriteSequencePoint(11).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(out.writer->WriteSequencePoint(12, 4)));
}

TEST(WriterLimits, TimesThatTraceEventDoesNotShowAreRefused) {
  WriterWithRows out;
  const std::uint64_t most = internal::traceevent::kMaxEventTimestamp;
  EXPECT_EQ(most, (std::uint64_t{1} << 63) - 11);
  EXPECT_TRUE(absl::IsInvalidArgument(out.Write(most + 1)));
  ASSERT_TRUE(out.Write(most - 1).ok());
  ASSERT_TRUE(out.Write(most).ok());
  for (std::uint64_t over = 1; over <= 11; ++over) {
    EXPECT_TRUE(absl::IsInvalidArgument(out.Write(most + over)));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(out.Write(std::numeric_limits<std::uint64_t>::max())));
}

TEST(WriterLimits, TimesOver63BitsAreRefused) {
  WriterWithRows out(Loose());
  const std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_TRUE(absl::IsInvalidArgument(out.Write(most + 1)));
  ASSERT_TRUE(out.Write(most - 1).ok());
  ASSERT_TRUE(out.Write(most).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(out.Write(most + 1)));
  EXPECT_TRUE(absl::IsInvalidArgument(out.Write(std::numeric_limits<std::uint64_t>::max())));
}

TEST(WriterLimits, RefusesUndefinedReferences) {
  WriterWithRows out;
  const EventRow good = {.metadata_id = MetadataId{1},
                         .capture_thread = ThreadIndex{1},
                         .thread = ThreadIndex{1},
                         .timestamp = 1};
  const auto refused = [&](auto change) {
    EventRow row = good;
    change(&row);
    return absl::IsInvalidArgument(out.writer->WriteEvent(row, {}));
  };
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(refused([](EventRow* row) { row->metadata_id = MetadataId{0}; }));
    EXPECT_TRUE(refused([](EventRow* row) { row->metadata_id = MetadataId{2}; }));
    EXPECT_TRUE(refused([](EventRow* row) { row->capture_thread = ThreadIndex{3}; }));
    EXPECT_TRUE(refused([](EventRow* row) { row->thread = ThreadIndex{3}; }));
    EXPECT_TRUE(refused([](EventRow* row) { row->thread = ThreadIndex{0}; }));
    EXPECT_TRUE(refused([](EventRow* row) { row->stack_id = StackId{1}; }));
    EXPECT_TRUE(refused([](EventRow* row) { row->label_list_id = LabelListId{1}; }));
    ASSERT_TRUE(out.writer->WriteEvent(good, {}).ok());  // Accepted again within a block.
  }
  EXPECT_EQ(out.writer->stats().events, 2U);
}

TEST(WriterLimits, StacksAndLabelsEndWithTheirInterval) {
  WriterWithRows out;
  const std::vector<std::uint64_t> stack = {1};
  Labels labels;
  labels.level = 1;
  EventRow row = {.metadata_id = MetadataId{1},
                  .capture_thread = ThreadIndex{1},
                  .thread = ThreadIndex{1},
                  .timestamp = 1};
  row.stack_id = *out.writer->InternStack(stack);
  ASSERT_TRUE(out.writer->WriteEvent(row, {}).ok());
  ASSERT_TRUE(out.writer->WriteSequencePoint(1).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(out.writer->WriteEvent(row, {})));
  row.stack_id = StackId{0};
  row.label_list_id = *out.writer->InternLabels(labels);
  ASSERT_TRUE(out.writer->WriteEvent(row, {}).ok());
  ASSERT_TRUE(out.writer->WriteSequencePoint(2).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(out.writer->WriteEvent(row, {})));
}

TEST(WriterLimits, MetadataEndsWithAFlushOfIt) {
  WriterWithRows out;
  ASSERT_TRUE(out.writer->WriteSequencePoint(1, kSequencePointFlushMetadata).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(out.Write(2)));
  EXPECT_EQ(*out.writer->AddMetadata(testing::SmallMetadata(1)), MetadataId{2});
}

TEST(WriterLimits, ARemovedThreadIsNotReferredToAgain) {
  WriterWithRows out;
  const EventRow row = {.metadata_id = MetadataId{1},
                        .capture_thread = ThreadIndex{1},
                        .thread = ThreadIndex{2},
                        .timestamp = 1};
  ASSERT_TRUE(out.writer->WriteEvent(row, {}).ok());
  ASSERT_TRUE(out.writer->RemoveThread(ThreadIndex{2}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(out.writer->WriteEvent(row, {})));
  EXPECT_TRUE(absl::IsInvalidArgument(out.writer->RemoveThread(ThreadIndex{2})));
  EXPECT_EQ(*out.writer->AddThread({}), ThreadIndex{3});
}

TEST(WriterLimits, RemovingAThreadNeedsIndicesThatAreNoOsThreadIds) {
  WriterToString low;
  ThreadInfo thread;
  thread.thread_id = 4'194'304;
  EXPECT_TRUE(absl::IsFailedPrecondition(low.writer->RemoveThread(*low.writer->AddThread(thread))));
  WriterOptions options;
  options.first_thread_index = ThreadIndex{4'194'305};
  WriterToString high(options);
  EXPECT_TRUE(high.writer->RemoveThread(*high.writer->AddThread(thread)).ok());
  WriterToString loose(Loose());
  EXPECT_TRUE(loose.writer->RemoveThread(*loose.writer->AddThread(thread)).ok());
}

TEST(WriterLimits, PayloadsThatTraceLogHasNoRoomForAreRefused) {
  WriterWithRows out;
  EXPECT_TRUE(out.Write(1, internal::traceevent::kMaxPayloadSize).ok());
  EXPECT_TRUE(absl::IsOutOfRange(out.Write(1, internal::traceevent::kMaxPayloadSize + 1)));
  WriterWithRows loose(Loose());
  EXPECT_TRUE(loose.Write(1, internal::traceevent::kMaxPayloadSize + 1).ok());
  EXPECT_TRUE(loose.Write(1, kMaxBlockSize - 100).ok());
  EXPECT_TRUE(absl::IsOutOfRange(loose.Write(1, kMaxBlockSize)));
  EXPECT_TRUE(loose.writer->Finish().ok());
}

TEST(WriterLimits, StacksAreBounded) {
  WriterToString out;
  std::vector<std::uint64_t> stack(internal::traceevent::kMaxStackFrames);
  EXPECT_TRUE(out.writer->InternStack(stack).ok());
  stack.resize(internal::traceevent::kMaxStackFrames + 1);
  EXPECT_TRUE(absl::IsOutOfRange(out.writer->InternStack(stack).status()));
  WriterToString loose(Loose());
  EXPECT_TRUE(loose.writer->InternStack(stack).ok());
  stack.resize(kMaxBlockSize / 8);
  EXPECT_TRUE(absl::IsOutOfRange(loose.writer->InternStack(stack).status()));
}

// Returns a label list whose row has `size` bytes.
Labels LabelsOfSize(std::size_t size) {
  Labels labels;
  labels.strings = {{"k", ""}};
  internal::ByteWriter row;
  internal::PutLabelList(labels, &row);
  const std::size_t rest = size - row.size();
  // The length of "" takes 1 byte, and a length of 2^21 or more takes 4.
  labels.strings[0].second.assign(rest - 3, 'x');
  row.Clear();
  internal::PutLabelList(labels, &row);
  EXPECT_EQ(row.size(), size);
  return labels;
}

TEST(WriterLimits, LargestRowFillsABlock) {
  // A block of label lists begins with the first id and the count.
  constexpr std::size_t kMax = kMaxBlockSize - 2 * sizeof(std::uint32_t);
  WriterOptions options = Loose();
  WriterWithRows out(options);
  const auto id = out.writer->InternLabels(LabelsOfSize(kMax));
  ASSERT_TRUE(id.ok()) << id.status();
  const auto refused = out.writer->InternLabels(LabelsOfSize(kMax + 1));
  EXPECT_EQ(refused.status(),
            absl::OutOfRangeError(absl::StrCat(
                "a row of ", kMax + 1, " bytes; a block holds at most ", kMax, " bytes of rows")));
  EXPECT_TRUE(out.writer->InternLabels(LabelsOfSize(5'000'000)).ok());
  EXPECT_TRUE(out.writer
                  ->WriteEvent({.metadata_id = MetadataId{1},
                                .capture_thread = ThreadIndex{1},
                                .thread = ThreadIndex{1},
                                .timestamp = 1,
                                .label_list_id = *id},
                               {})
                  .ok());
  ASSERT_TRUE(out.writer->Finish().ok());
  const auto reader = testing::OpenBytes(testing::Span(*out.written));
  ASSERT_EQ(reader->Next(), Reader::Step::kEvent) << reader->status();
  EXPECT_EQ(reader->event().labels->strings, LabelsOfSize(kMax).strings);
}

TEST(WriterLimits, RefusesAFrameThatIsNotAPointer) {
  TraceInfo info;
  info.pointer_size = 4;
  WriterToString out({}, info);
  const std::vector<std::uint64_t> stack = {std::uint64_t{1} << 32};
  EXPECT_TRUE(absl::IsInvalidArgument(out.writer->InternStack(stack).status()));
}

TEST(WriterLimits, RowsOver16BitsAreRefused) {
  EventMetadata metadata = testing::SmallMetadata(1);
  metadata.name.assign(65535 - 10, 'x');  // The length of the name takes 3 bytes.
  EXPECT_FALSE(Accepts(metadata));
  metadata.name.resize(65535 - 10 - 3 + 1 + 1);
  EXPECT_TRUE(Accepts(metadata));
  WriterToString out;
  ThreadInfo thread;
  thread.name = std::string(65535, 'x');
  EXPECT_TRUE(absl::IsOutOfRange(out.writer->AddThread(thread).status()));
  metadata = testing::SmallMetadata(1);
  metadata.description = std::string(65535, 'x');
  EXPECT_FALSE(Accepts(metadata));
  EXPECT_FALSE(Accepts(testing::SmallMetadata(1, {{std::string(65535, 'x'), kByte}})));
  EXPECT_FALSE(Accepts(testing::SmallMetadata(1, std::vector<Field>(65536, {"", kByte}))));
}

TEST(WriterLimits, RefusesEventIdsThatTraceEventCannotUse) {
  EXPECT_TRUE(Accepts(testing::SmallMetadata(0)));
  EXPECT_TRUE(Accepts(testing::SmallMetadata(internal::traceevent::kMaxEventId)));
  EXPECT_FALSE(Accepts(testing::SmallMetadata(internal::traceevent::kMaxEventId + 1)));
  EXPECT_FALSE(Accepts(testing::SmallMetadata(65536)));
  EXPECT_TRUE(Accepts(testing::SmallMetadata(65536), Loose()));
}

// Returns whether the writer accepts both `first` and a row that `change` makes of it, with the
// same provider and id.
bool AcceptsBoth(const EventMetadata& first, const std::function<void(EventMetadata*)>& change,
                 const WriterOptions& options = {}) {
  WriterToString out(options);
  EventMetadata second = first;
  change(&second);
  EXPECT_TRUE(out.writer->AddMetadata(first).ok());
  const bool accepted = out.writer->AddMetadata(second).ok();
  WriterToString flushed(options);
  EXPECT_TRUE(flushed.writer->AddMetadata(first).ok());
  EXPECT_TRUE(flushed.writer->WriteSequencePoint(1, kSequencePointFlushMetadata).ok());
  EXPECT_EQ(flushed.writer->AddMetadata(second).ok(), accepted);
  return accepted;
}

TEST(WriterLimits, RowsOfOneIdAgreeInNameFieldsAndOpcode) {
  const EventMetadata row = testing::SmallMetadata(1, {{"x", kByte}});
  EXPECT_TRUE(AcceptsBoth(row, [](EventMetadata*) {}));
  EXPECT_TRUE(AcceptsBoth(row, [](EventMetadata* other) {
    other->level = 3;
    other->version = 2;
    other->keywords = 7;
    other->message_template = "m";
    other->key_values = {{"key", "value"}};
    other->opcode = 0;  // 0 is the same as no opcode, unless the name ends in Start or Stop.
  }));
  const std::function<void(EventMetadata*)> clashes[] = {
      [](EventMetadata* other) { other->name = "O"; },
      [](EventMetadata* other) { other->fields.clear(); },
      [](EventMetadata* other) { other->fields[0].name = "y"; },
      [](EventMetadata* other) { other->fields[0].type.code = TypeCode::kSByte; },
      [](EventMetadata* other) { other->opcode = 1; },
      [](EventMetadata* other) { other->provider = "p"; },
  };
  for (const auto& clash : clashes) {
    EXPECT_FALSE(AcceptsBoth(row, clash));
    EXPECT_TRUE(AcceptsBoth(row, clash, Loose()));
  }
  EXPECT_TRUE(AcceptsBoth(row, [](EventMetadata* other) {
    other->event_id = 2;
    other->name = "O";
  }));
  EXPECT_TRUE(AcceptsBoth(row, [](EventMetadata* other) {
    other->provider = "Q";
    other->name = "O";
  }));
}

TEST(WriterLimits, ProvidersAreIdentifiedByGuid) {
  EventMetadata row = testing::SmallMetadata(1);
  const auto other_of = [](const Guid& guid) {
    return [guid](EventMetadata* other) {
      other->provider = "Q";
      other->provider_guid = guid;
    };
  };
  const Guid made_of_name = internal::traceevent::ProviderGuid(row);
  EXPECT_FALSE(AcceptsBoth(row, other_of(made_of_name)));
  EXPECT_TRUE(AcceptsBoth(row, other_of(Guid{})));
  row.provider_guid = Guid{std::byte{7}};
  EXPECT_FALSE(AcceptsBoth(row, other_of(*row.provider_guid)));
  EXPECT_TRUE(AcceptsBoth(row, other_of(made_of_name)));
}

TEST(WriterLimits, EventsIdentifiedByNameHaveOneIdEach) {
  EventMetadata cpu = testing::SmallMetadata(1);
  cpu.provider = "Universal.Events";
  cpu.name = "cpu";
  const auto other_id = [](EventMetadata* other) { other->event_id = 2; };
  EXPECT_FALSE(AcceptsBoth(cpu, other_id));
  EXPECT_TRUE(AcceptsBoth(cpu, [](EventMetadata* other) { other->version = 2; }));
  EXPECT_TRUE(AcceptsBoth(cpu, [](EventMetadata* other) {
    other->name = "cswitch";
    other->event_id = 2;
  }));
  EXPECT_TRUE(AcceptsBoth(testing::SmallMetadata(1), other_id));
}

TEST(WriterLimits, IdsFromBeforeFlushesAreRememberedInBoundedMemory) {
  WriterOptions options;
  options.max_metadata = 2;
  WriterToString out(options);
  const auto adds = [&out](std::uint32_t id, const char* name) {
    EventMetadata row = testing::SmallMetadata(id);
    row.name = name;
    return out.writer->AddMetadata(row).ok();
  };
  std::uint64_t time = 0;
  const auto flush = [&] {
    EXPECT_TRUE(out.writer->WriteSequencePoint(++time, kSequencePointFlushMetadata).ok());
  };
  EXPECT_TRUE(adds(1, "A"));
  flush();
  EXPECT_TRUE(adds(2, "A"));
  flush();
  EXPECT_FALSE(adds(1, "B"));
  EXPECT_FALSE(adds(2, "B"));
  EXPECT_TRUE(adds(3, "A"));
  // The writer can remember only two ids (max_metadata). This flush would exceed that number, so
  // the writer forgets the ids from before the previous flush: 1 and 2.
  flush();
  EXPECT_TRUE(adds(1, "B"));
  EXPECT_FALSE(adds(3, "B"));
}

TEST(WriterLimits, TypesAreWhole) {
  Type type = Type::Simple(TypeCode::kArray);
  EXPECT_FALSE(AcceptsType(type));
  type.element = {kByte, kByte};
  EXPECT_FALSE(AcceptsType(type));
  type = kByte;
  type.element = {kByte};
  EXPECT_FALSE(AcceptsType(type));
  type = kByte;
  type.fields = {{"x", kByte}};
  EXPECT_FALSE(AcceptsType(type));
  for (const int code : {0, 2, 15, 27, 255}) {
    EXPECT_FALSE(AcceptsType(Type::Simple(static_cast<TypeCode>(code)), Loose())) << code;
  }
}

TEST(WriterLimits, NestingOfTypesIsBounded) {
  Type type = kByte;
  for (int depth = 1; depth < kMaxTypeDepth; ++depth) type = Type::Object({{"o", type}});
  EXPECT_TRUE(AcceptsType(type));
  EXPECT_FALSE(AcceptsType(Type::Object({{"o", type}})));
}

TEST(WriterLimits, LocatedArraysHaveElementsOfFixedSize) {
  EXPECT_TRUE(AcceptsType(Type::RelLoc(Type::Object({{"x", kByte}}))));
  EXPECT_TRUE(AcceptsType(Type::DataLoc(Type::FixedLengthArray(kByte, 4)), Loose()));
  EXPECT_TRUE(AcceptsType(Type::DataLoc(Type::RelLoc(kByte)), Loose()));
  for (const TypeCode code :
       {TypeCode::kVarInt, TypeCode::kVarUInt, TypeCode::kNullTerminatedUtf16String}) {
    EXPECT_FALSE(AcceptsType(Type::RelLoc(Type::Simple(code)), Loose()));
    EXPECT_FALSE(AcceptsType(Type::DataLoc(Type::Object({{"x", Type::Simple(code)}})), Loose()));
  }
  EXPECT_FALSE(AcceptsType(Type::DataLoc(Type::Array(kByte)), Loose()));
}

TEST(WriterLimits, ArraysThatTheReferenceReaderMisreadsAreRefused) {
  const Type nested = Type::Array(Type::Array(kByte));
  EXPECT_FALSE(AcceptsType(nested));
  EXPECT_TRUE(AcceptsType(nested, Loose()));
  EXPECT_TRUE(AcceptsType(Type::Array(Type::Array(Type::Simple(TypeCode::kUtf16CodeUnit)))));
  EXPECT_TRUE(AcceptsType(Type::Array(Type::Object({{"x", Type::Array(kByte)}}))));
  EXPECT_FALSE(AcceptsType(Type::Array(Type::Object({}))));
  EXPECT_TRUE(AcceptsType(Type::Object({})));
  EXPECT_FALSE(AcceptsType(Type::FixedLengthArray(kByte, 0)));
  EXPECT_TRUE(AcceptsType(Type::FixedLengthArray(kByte, 65514)));
  EXPECT_FALSE(AcceptsType(Type::FixedLengthArray(kByte, 65515)));
  EXPECT_TRUE(AcceptsType(Type::FixedLengthArray(kByte, 65515), Loose()));
}

TEST(WriterLimits, ADateTimeIsRefusedForTheReferenceReaderOnly) {
  const Type date_time = Type::Simple(TypeCode::kDateTime);
  for (const Type& type :
       {date_time, Type::FixedLengthArray(date_time, 2), Type::DataLoc(date_time)}) {
    EXPECT_FALSE(AcceptsType(type));
    EXPECT_TRUE(AcceptsType(type, Loose()));
  }
  EXPECT_FALSE(AcceptsType(Type::Simple(TypeCode::kDecimal), Loose()));
}

TEST(WriterLimits, RequiresAnOpcodeThatTheReferenceReaderWouldGuess) {
  EventMetadata metadata = testing::SmallMetadata(1);
  for (const char* name : {"RequestStart", "Restart", "STOP"}) {
    metadata.name = name;
    metadata.opcode.reset();
    EXPECT_FALSE(Accepts(metadata)) << name;
    EXPECT_TRUE(Accepts(metadata, Loose())) << name;
    metadata.opcode = 0;
    EXPECT_TRUE(Accepts(metadata)) << name;
  }
}

TEST(WriterLimits, TraceInfoIsChecked) {
  const auto refused = [](auto change) {
    TraceInfo info;
    change(&info);
    return absl::IsInvalidArgument(Writer::Create(std::make_unique<MemorySink>(), info).status());
  };
  EXPECT_TRUE(refused([](TraceInfo* info) { info->pointer_size = 16; }));
  EXPECT_TRUE(refused([](TraceInfo* info) { info->ticks_per_second = 0; }));
  EXPECT_TRUE(refused([](TraceInfo* info) { info->sync_time = absl::InfiniteFuture(); }));
  EXPECT_TRUE(refused([](TraceInfo* info) { info->sync_time = absl::InfinitePast(); }));
}

TEST(WriterLimits, CachesAreBoundedAndASequencePointMakesRoom) {
  WriterOptions options;
  options.max_labels = options.max_stacks = options.max_threads = options.max_metadata = 1;
  WriterToString out(options);
  const auto fill = [&](std::uint8_t with) {
    Labels labels;
    labels.level = with;
    const std::vector<std::uint64_t> stack = {with};
    return std::vector<bool>{out.writer->InternLabels(labels).ok(),
                             out.writer->InternStack(stack).ok(), out.writer->AddThread({}).ok(),
                             out.writer->AddMetadata(testing::SmallMetadata(with)).ok()};
  };
  EXPECT_EQ(fill(1), (std::vector<bool>{true, true, true, true}));
  EXPECT_EQ(fill(2), (std::vector<bool>{false, false, false, false}));
  ASSERT_TRUE(out.writer->WriteSequencePoint(1, 3).ok());
  EXPECT_EQ(fill(2), (std::vector<bool>{true, true, true, true}));
}

TEST(WriterLimits, CachesAreBoundedInBytes) {
  WriterOptions options;
  options.max_stack_bytes = 2 * 12;
  WriterToString out(options);
  for (const std::uint64_t frame : {1, 2, 3}) {
    const absl::Status status = out.writer->InternStack(std::vector{frame}).status();
    EXPECT_EQ(absl::IsResourceExhausted(status), frame == 3);
  }
}

TEST(WriterLimits, IntervalsAreBounded) {
  WriterOptions options;
  options.max_interval_events = 2;
  WriterWithRows out(options);
  EXPECT_TRUE(out.Write(1).ok());
  EXPECT_TRUE(out.Write(1).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(out.Write(1)));
  ASSERT_TRUE(out.writer->WriteSequencePoint(2).ok());
  EXPECT_TRUE(out.Write(2).ok());

  options = {};
  options.max_interval_bytes = 1000;
  options.event_block_size = 100;
  WriterWithRows bytes(options);
  int accepted = 0;
  while (bytes.Write(1, 50).ok()) ++accepted;
  EXPECT_GE(accepted, 1000 / 70);
  EXPECT_LE(accepted, 1000 / 50 + 2);
  ASSERT_TRUE(bytes.writer->WriteSequencePoint(2).ok());
  EXPECT_TRUE(bytes.Write(2, 50).ok());
}

TEST(WriterLimits, BuffersOfManyCaptureThreadsAreBounded) {
  WriterOptions options;
  options.max_buffer_bytes = 64 << 10;
  WriterToString out(options);
  ASSERT_TRUE(out.writer->AddMetadata(testing::SmallMetadata(1)).ok());
  const std::vector<std::byte> payload(100);
  for (int i = 0; i < 1000; ++i) {
    const ThreadIndex thread = *out.writer->AddThread({});
    ASSERT_TRUE(
        out.writer
            ->WriteEvent({.metadata_id = MetadataId{1}, .capture_thread = thread, .thread = thread},
                         payload)
            .ok());
    EXPECT_LE(out.writer->stats().events - out.writer->stats().events_written, 16U);
  }
}

TEST(WriterLimits, RefusesAGapThatReadersTreatAsAStepBack) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
  WriterWithRows out;
  EXPECT_TRUE(absl::IsOutOfRange(out.writer->AddLost(ThreadIndex{1}, kMost + 1)));
  EXPECT_TRUE(out.writer->AddLost(ThreadIndex{1}, kMost).ok());
  EXPECT_TRUE(absl::IsOutOfRange(out.writer->AddLost(ThreadIndex{1}, 1)));
  ASSERT_TRUE(out.writer->WriteSequencePoint(1).ok());
  EXPECT_TRUE(out.writer->AddLost(ThreadIndex{1}, 1).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(out.writer->AddLost(ThreadIndex{9}, 1)));
  EXPECT_EQ(out.writer->stats().lost, kMost + 1);
}

TEST(WriterLimits, NothingIsWrittenAfterTheEnd) {
  WriterWithRows out;
  ASSERT_TRUE(out.Write(1).ok());
  ASSERT_TRUE(out.writer->Finish().ok());
  const std::string end = *out.written;
  EXPECT_TRUE(absl::IsFailedPrecondition(out.Write(1)));
  EXPECT_TRUE(
      absl::IsFailedPrecondition(out.writer->AddMetadata(testing::SmallMetadata(2)).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(out.writer->AddThread({}).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(out.writer->WriteSequencePoint(2)));
  EXPECT_TRUE(absl::IsFailedPrecondition(out.writer->Flush()));
  EXPECT_TRUE(absl::IsFailedPrecondition(out.writer->Finish()));
  EXPECT_EQ(*out.written, end);
}

}  // namespace
}  // namespace nettrace
