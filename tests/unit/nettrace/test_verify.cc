#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "nettrace/verifier.h"
#include "stream_builder.h"

namespace nettrace {
namespace {

VerifyReport ReportOn(const Bytes& stream, const VerifyOptions& options = {}) {
  auto report = Verify(std::make_unique<MemorySource>(stream.span()), options);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *std::move(report) : VerifyReport();
}

std::string Describe(const VerifyReport& report) {
  std::string text;
  for (const Finding& finding : report.findings) {
    text += std::string(finding.rule->name) + " at " + std::to_string(finding.offset) + ": " +
            finding.explanation + "\n";
  }
  return text;
}

TEST(Verify, AGoodStreamIsClean) {
  const VerifyReport report = ReportOn(GoodStream());
  EXPECT_EQ(Describe(report), "");
  EXPECT_EQ(report.errors + report.hazards, 0u);
  EXPECT_EQ(report.events, 5u);
  EXPECT_EQ(report.version, 6u);
}

struct Broken {
  const char* rule;
  Bytes stream;
};

// Trace, metadata 1 without fields, threads 1 and 2.
Bytes Prologue() { return Start().Append(MetadataBlock({{}})).Append(ThreadBlock({1, 2})); }
Bytes With(const Bytes& block) { return Prologue().Append(block).Append(End()); }
Bytes WithType(const Bytes& type) {
  return Start().Append(MetadataBlock({{.fields = {FieldRow("f", type)}}})).Append(End());
}
Bytes WithTrace(const Bytes& content) {
  return StreamHeader().Append(Block(BlockKind::kTrace, content)).Append(End());
}
Bytes WithPayload(const Bytes& type, const Bytes& payload) {
  return Start()
      .Append(MetadataBlock({{.fields = {FieldRow("f", type)}}}))
      .Append(ThreadBlock({1}))
      .Append(EventBlock({{.payload = payload}}))
      .Append(End());
}
Bytes Zeros(std::size_t count) { return Bytes().Raw(std::string(count, '\0')); }
Bytes TwoIntervals(std::uint64_t first, std::uint64_t event, std::uint64_t second) {
  return Prologue()
      .Append(SequencePointBlock(first))
      .Append(EventBlock({{.timestamp = event}}))
      .Append(SequencePointBlock(second))
      .Append(End());
}

// Each breaks its rule and no other one.
std::vector<Broken> AllBroken() {
  const Bytes good = GoodStream();
  Bytes cut;
  cut.Raw({reinterpret_cast<const char*>(good.span().data()), good.size() - 10});
  const Bytes one_event = EventBlock({{}});
  const auto code = [](TypeCode type) { return Code(type); };
  const Bytes array_of_int32 = code(TypeCode::kArray).Append(code(TypeCode::kInt32));
  const Bytes empty_object = code(TypeCode::kObject).U16(0);
  const Bytes removed = Block(BlockKind::kRemoveThread, Bytes().Var(5000000).Var(0));
  Bytes many_frames;
  many_frames.U32(1).U32(1).U32(8191 * 8).Append(Zeros(8191 * 8));
  Bytes uncompressed = EventHeader(2000, 2000, 0);
  uncompressed.U32(48).U32(1).U32(1).U64(1).U64(1).U32(0).U32(0).U64(2000).U32(0).U32(0);
  return {
      {"truncated", cut},
      {"no-end-of-stream", Prologue()},
      {"trace-first", StreamHeader().Append(ThreadBlock({1})).Append(End())},
      {"trace-once", With(Block(BlockKind::kTrace, TraceContent()))},
      {"trace-fields", WithTrace(TraceContent({.pointer_size = 5}))},
      {"trace-fields", WithTrace(TraceContent({.frequency = 0}))},
      {"trace-fields", WithTrace(TraceContent({.month = 13}))},
      {"trace-fields", WithTrace(Bytes().U16(2026))},
      {"block-end", With(Block(BlockKind::kLabelList, Bytes().U32(1).U32(0).U8(0)))},
      {"metadata-row", With(Block(BlockKind::kMetadata, Bytes().U16(0).Row(Bytes().Var(9))))},
      {"metadata-row", WithType(Bytes().U8(2))},
      {"metadata-row", Start().Append(MetadataBlock({{.optional = Bytes().U8(99)}})).Append(End())},
      {"metadata-redefined", With(MetadataBlock({{}}))},
      {"location-element",
       WithType(code(TypeCode::kDataLoc).Append(code(TypeCode::kNullTerminatedUtf16String)))},
      {"thread-row", With(Block(BlockKind::kThread, Bytes().Row(Bytes().Var(9).U8(77))))},
      {"thread-redefined", With(ThreadBlock({2}))},
      {"thread-removed", With(removed)},
      {"label-row", With(Block(BlockKind::kLabelList, Bytes().U32(1).U32(1).U8(0x80 | 50)))},
      {"label-first-index", With(LabelBlock(0))},
      {"label-redefined", With(LabelBlock(1).Append(LabelBlock(1)))},
      {"stack-row", With(Block(BlockKind::kStack, Bytes().U32(1).U32(1).U32(8)))},
      {"stack-redefined", With(StackBlock(1, {1}).Append(StackBlock(1, {2})))},
      {"stack-size", With(Block(BlockKind::kStack, Bytes().U32(1).U32(1).U32(3).U16(0).U8(0)))},
      {"event-block-header", With(Block(BlockKind::kEvent, Bytes().U16(12).U16(1).U64(0)))},
      {"event-block-empty", With(Block(BlockKind::kEvent, EventHeader(0, 0)))},
      {"event-row", With(Block(BlockKind::kEvent, EventHeader(0, 0).U8(0x80)))},
      {"block-timestamps", With(EventBlock({{}}, 1999, 2000))},
      {"block-timestamps", With(EventBlock({{}}, 2000, 2001))},
      {"metadata-defined", With(EventBlock({{.metadata_id = 9}}))},
      {"thread-defined", With(EventBlock({{.thread = 9}}))},
      {"thread-defined", With(EventBlock({{.capture_thread = 9}}))},
      {"labels-defined", With(EventBlock({{.label_list_id = 1}}))},
      {"labels-defined",
       With(
           LabelBlock(1).Append(SequencePointBlock(1)).Append(EventBlock({{.label_list_id = 1}})))},
      {"stack-defined", With(EventBlock({{.stack_id = 1}}))},
      {"stack-defined",
       With(
           StackBlock(1, {1}).Append(SequencePointBlock(1)).Append(EventBlock({{.stack_id = 1}})))},
      {"sequence-order", With(EventBlock({{.sequence = 2}, {.sequence = 2}}))},
      {"capture-thread-order", With(EventBlock({{}, {.sequence = 2, .timestamp = 1999}}))},
      {"sorted-flag", With(EventBlock({{.sorted = true}})
                               .Append(EventBlock({{.capture_thread = 2, .timestamp = 1999}})))},
      {"after-sequence-point", TwoIntervals(2000, 1999, 2001)},
      {"before-sequence-point", TwoIntervals(2000, 2002, 2001)},
      {"payload", WithPayload(code(TypeCode::kInt32), Bytes().U16(0))},
      {"sequence-point-row", With(Block(BlockKind::kSequencePoint, Bytes().U64(1)))},
      {"sequence-point-row", With(Block(BlockKind::kSequencePoint, Bytes().U64(1).U32(0).U32(3)))},
      {"sequence-point-order", With(SequencePointBlock(2).Append(SequencePointBlock(1)))},
      {"sequence-point-thread", With(SequencePointBlock(1, 0, {{9, 0}}))},
      {"sequence-point-number",
       With(EventBlock({{.sequence = 2}}).Append(SequencePointBlock(2000, 0, {{1, 1}})))},
      {"damaged-legacy", Bytes().Raw("Nettrace").U32(20).Raw("!FastSerialization.1").U8(5)},
      {"unknown-block", With(Block(static_cast<BlockKind>(9), Bytes()))},
      {"trailing-bytes", GoodStream().U8(0)},
      {"end-of-stream-content", Prologue().Append(Block(BlockKind::kEndOfStream, Bytes().U32(0)))},
      {"event-id-range", Start().Append(MetadataBlock({{.event_id = 0}})).Append(End())},
      {"event-id-range", Start().Append(MetadataBlock({{.event_id = 65535}})).Append(End())},
      {"event-id-unique", With(MetadataBlock({{.id = 2, .name = "Other"}}))},
      {"type-misread", WithType(code(TypeCode::kDateTime))},
      {"type-misread", WithType(code(TypeCode::kDecimal))},
      {"array-of-arrays", WithType(code(TypeCode::kArray).Append(array_of_int32))},
      {"array-of-empty-objects", WithType(code(TypeCode::kArray).Append(empty_object))},
      {"fixed-array-count",
       WithType(code(TypeCode::kFixedLengthArray).Append(code(TypeCode::kByte)).U16(0))},
      {"fixed-array-count",
       WithType(code(TypeCode::kFixedLengthArray).Append(code(TypeCode::kByte)).U16(65515))},
      {"start-stop-opcode", Start().Append(MetadataBlock({{.name = "Restart"}})).Append(End())},
      {"capture-thread-change", With(EventBlock({{}, {.capture_thread = 2}}))},
      {"uncompressed-rows", With(Block(BlockKind::kEvent, uncompressed))},
      {"payload-size", With(EventBlock({{.payload = Zeros(65536)}}))},
      {"array-count", WithPayload(code(TypeCode::kArray).Append(code(TypeCode::kByte)),
                                  Bytes().U16(32768).Append(Zeros(32768)))},
      {"array-count", WithPayload(code(TypeCode::kArray).Append(code(TypeCode::kUtf8CodeUnit)),
                                  Bytes().U16(32768).Append(Zeros(32768)))},
      {"stack-frames", With(Block(BlockKind::kStack, many_frames))},
      {"processor-number", With(EventBlock({{.processor = 256}}))},
      {"remove-thread-index", With(Block(BlockKind::kRemoveThread, Bytes().Var(1).Var(0)))},
  };
}

TEST(Verify, EachRuleFindsTheStreamThatBreaksJustIt) {
  for (const Broken& broken : AllBroken()) {
    const VerifyReport report = ReportOn(broken.stream);
    EXPECT_FALSE(report.findings.empty()) << broken.rule << " was not found";
    for (const Finding& finding : report.findings) {
      EXPECT_STREQ(finding.rule->name, broken.rule) << Describe(report);
      EXPECT_LE(finding.offset, broken.stream.size());
      EXPECT_FALSE(finding.explanation.empty());
    }
  }
}

TEST(Verify, EveryRuleHasAStreamThatBreaksIt) {
  std::set<std::string> tried = {"table-size"};  // by a test of its own
  for (const Broken& broken : AllBroken()) tried.insert(broken.rule);
  for (const Rule& rule : VerifyRules()) EXPECT_TRUE(tried.contains(rule.name)) << rule.name;
}

TEST(Verify, TheDocumentationHasEveryRuleAsItIs) {
  std::ifstream file(RULES_DOCUMENT);
  std::vector<std::string> documented;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| `")) documented.push_back(line);
  }
  std::vector<std::string> rules;
  for (const Rule& rule : VerifyRules()) {
    rules.push_back("| `" + std::string(rule.name) + "` | " +
                    (rule.severity == Severity::kError ? "error" : "hazard") + " | " +
                    rule.section + " | " + rule.summary + " |");
  }
  EXPECT_EQ(documented, rules);
}

TEST(Verify, TheTablesAreBounded) {
  Bytes threads;
  for (unsigned i = 1; i < 1000; ++i) threads.Row(Bytes().Var(i));
  const VerifyReport report = ReportOn(
      Start().Append(Block(BlockKind::kThread, threads)).Append(End()), {.max_table_bytes = 10000});
  ASSERT_EQ(report.findings.size(), 1u) << Describe(report);
  EXPECT_STREQ(report.findings[0].rule->name, "table-size");
}

TEST(Verify, ManyFindingsOfOneRuleAreCountedAndNotAllKept) {
  std::vector<EventFields> events(100);
  for (std::uint32_t i = 0; i < 100; ++i) {
    events[i].sequence = i + 1;
    events[i].stack_id = 5;
  }
  const VerifyReport report = ReportOn(With(EventBlock(events)), {.max_findings_per_rule = 3});
  EXPECT_EQ(report.findings.size(), 3u);
  EXPECT_EQ(report.errors, 100u);
}

TEST(Verify, EveryCutOfAGoodStreamIsFound) {
  const Bytes good = GoodStream();
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    auto report = Verify(std::make_unique<MemorySource>(good.span().first(cut)));
    ASSERT_TRUE(report.ok()) << "cut at " << cut;
    ASSERT_EQ(report->errors, 1u) << "cut at " << cut << "\n" << Describe(*report);
    const std::string rule = report->findings[0].rule->name;
    EXPECT_TRUE(rule == "truncated" || rule == "no-end-of-stream") << rule;
  }
}

TEST(Verify, AnotherKindOfFileIsRefused) {
  const Bytes file = Bytes().Raw("PERFILE2 is not a trace of ours");
  EXPECT_EQ(Verify(std::make_unique<MemorySource>(file.span())).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace nettrace
