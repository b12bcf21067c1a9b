// Tests the lines that `nettrace dump` prints for events.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/nettrace/open_bytes.h"
#include "tests/support/nettrace/stream_builder.h"
#include "tools/trace/event_json.h"
#include "tools/trace/event_name.h"
#include "tools/trace/payload_json.h"

namespace trace {
namespace {

using nettrace::BlockKind;
using nettrace::Bytes;
using nettrace::TypeCode;

// Returns a line for each event of the stream.
std::string Dump(const Bytes& stream, bool json) {
  auto reader = nettrace::testing::OpenBytes(stream.span());
  PayloadJson payloads(json ? PayloadStyle::kForPrograms : PayloadStyle::kForPeople);
  std::string lines;
  while (reader->Next() != nettrace::Reader::Step::kEnd) {
    lines += json ? EventToJson(*reader, reader->event(), &payloads)
                  : EventToText(*reader, reader->event(), /*verbose=*/false, &payloads);
    lines += '\n';
  }
  return lines;
}

TEST(EventText, AlignedColumnsGrowUpToALimit) {
  nettrace::EventMetadata metadata;
  metadata.provider = "P";
  const nettrace::Labels labels;
  nettrace::ThreadInfo thread;
  nettrace::Event event;
  event.metadata = &metadata;
  event.labels = &labels;
  event.thread = &thread;
  event.processor = 0;
  PayloadJson payloads(PayloadStyle::kForPeople);
  EventTextWidths widths = {};
  const auto line = [&](std::string_view time, const std::string& name, std::uint64_t pid) {
    thread.name = name;
    thread.process_id = thread.thread_id = pid;
    std::string aligned = "before ";
    AppendAlignedEventText(time, event, /*verbose=*/false, &payloads, &widths, &aligned);
    return aligned;
  };
  metadata.name = "Event";
  const std::string rest = " P Event level=0 keywords=0x0 {}";
  EXPECT_EQ(line("T", "main", 7), "before T cpu 0 main 7/7" + rest);
  EXPECT_EQ(line("T", "worker", 12), "before T cpu 0 worker 12/12" + rest);
  EXPECT_EQ(line("T", "main", 7), "before T cpu 0 main   7/7  " + rest);
  // Characters of two columns, and control characters, which are replaced.
  EXPECT_EQ(line("T", "\u4e2d\u6587!", 7), "before T cpu 0 \u4e2d\u6587!  7/7  " + rest);
  EXPECT_EQ(line("T", "a\n", 7), "before T cpu 0 a\\u000a 7/7  " + rest);
  const std::string longest(100, 'x');
  EXPECT_EQ(line("T", longest, 7), "before T cpu 0 " + longest + " 7/7  " + rest);
  EXPECT_EQ(widths, (EventTextWidths{1, 6, 25, 6, 8, 21}));
  // Times since another event are aligned by their decimal points.
  EXPECT_EQ(line("+10.5", "b", 1).substr(7, 6), "+10.5 ");
  EXPECT_EQ(line("-1.5", "b", 1).substr(7, 6), " -1.5 ");
}

TEST(EventJson, LabelsWithOneKeyAreAnArray) {
  constexpr unsigned kLast = 0x80;
  const Bytes list = Bytes()
                         .U8(7)
                         .U8(3)
                         .U8(5)
                         .String("user")
                         .String("a")
                         .U8(5)
                         .String("OpCode")
                         .String("b")
                         .U8(6)
                         .String("user")
                         .Var(14)
                         .U8(5 | kLast)
                         .String("user")
                         .String("a");
  Bytes stream = nettrace::Start();
  stream.Append(nettrace::MetadataBlock({{}})).Append(nettrace::ThreadBlock({1}));
  stream.Append(nettrace::Block(BlockKind::kLabelList, Bytes().U32(1).U32(1).Append(list)));
  stream.Append(nettrace::EventBlock({{.label_list_id = 1}})).Append(nettrace::End());
  const std::string line = Dump(stream, /*json=*/true);
  EXPECT_NE(line.find(R"("labels":{"OpCode":[3,"b"],"user":["a","a",7]})"), std::string::npos)
      << line;
}

TEST(EventJson, ThreadInformationWithOneKeyIsAnArray) {
  Bytes thread = nettrace::ThreadRowBytes(1, 4242, 4243);
  for (const char* value : {"x", "y"}) thread.U8(4).String("k").String(value);
  Bytes stream = nettrace::Start();
  stream.Append(nettrace::MetadataBlock({{}}));
  stream.Append(nettrace::Block(BlockKind::kThread, Bytes().Row(thread)));
  stream.Append(nettrace::EventBlock({{}})).Append(nettrace::End());
  const std::string line = Dump(stream, /*json=*/true);
  EXPECT_NE(line.find(R"("threadInfo":{"k":["x","y"]})"), std::string::npos) << line;
}

TEST(EventJson, FieldsWithOneNameAreAnArray) {
  const auto field = [](const char* name) {
    return nettrace::FieldRow(name, Code(TypeCode::kByte));
  };
  const Bytes object =
      Code(TypeCode::kObject).U16(3).Append(field("x")).Append(field("y")).Append(field("x"));
  Bytes stream = nettrace::Start();
  stream.Append(nettrace::MetadataBlock(
      {{.fields = {field("a"), nettrace::FieldRow("a", Code(TypeCode::kArray).Append(object)),
                   field("b"), field("a"), field("c")}}}));
  stream.Append(nettrace::ThreadBlock({1}));
  stream.Append(nettrace::EventBlock({{.payload = Bytes().Raw("\1\2").U8(0).Raw("234567\x8\x9")}}));
  stream.Append(nettrace::End());
  constexpr char kPayload[] = R"("a":[1,[{"x":[50,52],"y":51},{"x":[53,55],"y":54}],9],"b":8,"c":)";
  const std::string line = Dump(stream, /*json=*/true);
  EXPECT_NE(line.find(absl::StrCat(R"("payload":{)", kPayload, R"(null},"error":)")),
            std::string::npos)
      << line;
  const std::string text = Dump(stream, /*json=*/false);
  EXPECT_NE(text.find(absl::StrCat("{", kPayload, "unreadable}")), std::string::npos) << text;
}

TEST(EventJson, TracepointFieldsWithOneNameAreAnArray) {
  const Bytes field = nettrace::FieldRow("vec", Code(TypeCode::kByte));
  Bytes stream = nettrace::Start();
  stream.Append(nettrace::MetadataBlock(
      {{.fields = {field, field},
        .optional = Bytes().U8(6).String("Tracepoint.Field.vec").String("hex")}}));
  stream.Append(nettrace::ThreadBlock({1}));
  stream.Append(nettrace::EventBlock({{.payload = Bytes().Raw("\3\4")}})).Append(nettrace::End());
  const std::string line = Dump(stream, /*json=*/true);
  EXPECT_NE(line.find(R"("payload":{"vec":["0x3",4]})"), std::string::npos) << line;
}

TEST(EventJson, RuntimeEventsWithoutANameHaveTheDocumentedOne) {
  Bytes stream = nettrace::Start();
  stream.Append(nettrace::MetadataBlock(
      {{.provider = "Microsoft-Windows-DotNETRuntime", .event_id = 1, .name = ""}}));
  stream.Append(nettrace::ThreadBlock({1})).Append(nettrace::EventBlock({{}}));
  stream.Append(nettrace::End());
  EXPECT_NE(Dump(stream, /*json=*/true).find(R"("name":"GC/Start")"), std::string::npos);
  EXPECT_NE(Dump(stream, /*json=*/false).find("Microsoft-Windows-DotNETRuntime GC/Start "),
            std::string::npos);
}

TEST(EventName, IsThatOfTheRowOrTheDocumentedOne) {
  const auto name = [](const char* provider, std::uint32_t id, const char* own = "") {
    nettrace::EventMetadata metadata;
    metadata.provider = provider;
    metadata.event_id = id;
    metadata.name = own;
    return std::string(EventName(metadata));
  };
  EXPECT_EQ(name("Microsoft-Windows-DotNETRuntime", 143), "Method/LoadVerbose");
  EXPECT_EQ(name("Microsoft-Windows-DotNETRuntime", 187), "Runtime/Start");
  EXPECT_EQ(name("Microsoft-Windows-DotNETRuntime", 296), "AssemblyLoader/KnownPathProbed");
  EXPECT_EQ(name("Microsoft-Windows-DotNETRuntimeRundown", 144), "Method/DCStopVerbose");
  EXPECT_EQ(name("Microsoft-Windows-DotNETRuntime", 39), "GC/DynamicEvent");
  EXPECT_EQ(name("Microsoft-Windows-DotNETRuntime", 301), "WaitHandleWait/Start");
  EXPECT_EQ(name("Microsoft-Windows-DotNETRuntime", 303), "AllocationSampling");
  EXPECT_EQ(name("Microsoft-Windows-DotNETRuntimeRundown", 300),
            "ExecutionCheckpointRundown/ExecutionCheckpointDCEnd");
  EXPECT_EQ(name("Microsoft-DotNETCore-SampleProfiler", 0), "Thread/Sample");
  EXPECT_EQ(name("Microsoft-Windows-DotNETRuntime", 24), "");
  EXPECT_EQ(name("Microsoft-Windows-DotNETRuntime", 65000), "");
  EXPECT_EQ(name("Microsoft-Windows-DotNETRuntime", 1, "Own"), "Own");
  EXPECT_EQ(name("Other", 1), "");
}

// Without a limit, the text of this file of less than 1 kB would take 600 MB.
TEST(EventJson, SmallFileOfEmptyObjectsHasASmallDump) {
  const Bytes objects =
      Code(TypeCode::kFixedLengthArray).Append(Code(TypeCode::kObject).U16(0)).U16(65535);
  Bytes stream = nettrace::Start();
  stream.Append(nettrace::MetadataBlock({{.fields = {nettrace::FieldRow("f", objects)}}}));
  stream.Append(nettrace::ThreadBlock({1}));
  std::vector<nettrace::EventFields> events(40);
  for (std::size_t i = 0; i < events.size(); ++i) {
    events[i].sequence = static_cast<std::uint32_t>(i + 1);
  }
  stream.Append(nettrace::EventBlock(events)).Append(nettrace::End());
  ASSERT_LT(stream.size(), 1000u);
  const std::string lines = Dump(stream, /*json=*/true);
  EXPECT_LT(lines.size(), 32'000u);
  EXPECT_NE(lines.find("more values without bytes"), std::string::npos);
  EXPECT_LT(Dump(stream, /*json=*/false).size(), 32'000u);
}

}  // namespace
}  // namespace trace
