// Tests the names of code at the addresses of stacks.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/nettrace/open_bytes.h"
#include "tests/support/nettrace/stream_builder.h"
#include "tools/trace/code_map.h"
#include "tools/trace/event_json.h"
#include "tools/trace/payload_json.h"

namespace trace {
namespace {

using nettrace::Bytes;
using nettrace::TypeCode;

constexpr std::uint64_t kPid = 4242;  // pid of the threads of ThreadBlock

Bytes Text(std::string_view text) {
  return Bytes().U16(static_cast<unsigned>(text.size())).Raw(text);
}
Bytes Mapping(std::uint64_t id, std::uint64_t first, std::uint64_t last, std::uint64_t offset,
              std::string_view path, std::uint64_t metadata = 0) {
  return Bytes().Var(id).Var(first).Var(last).Var(offset).Append(Text(path)).Var(metadata);
}
Bytes Metadata(std::uint64_t id, std::string_view json) {
  return Bytes().Var(id).Append(Text(json)).Append(Text(""));
}
Bytes Function(std::uint64_t mapping, std::uint64_t first, std::uint64_t last,
               std::string_view name) {
  return Bytes().Var(1).Var(mapping).Var(first).Var(last).Append(Text(name));
}

enum Row : std::uint32_t { kMapping = 1, kFunction, kExit, kOther, kMetadata };

struct SystemEvent {
  Row row;
  Bytes payload;
};

Bytes TextType() { return Code(TypeCode::kArray).Append(Code(TypeCode::kUtf8CodeUnit)); }

// Returns a stream of the events, one tick apart. `text_type` is the declared type of text.
Bytes Stream(const std::vector<SystemEvent>& events, const Bytes& stacks = {},
             const Bytes& text_type = TextType()) {
  const auto number = [](const char* name) {
    return nettrace::FieldRow(name, Code(TypeCode::kVarUInt));
  };
  const auto text = [&](const char* name) { return nettrace::FieldRow(name, text_type); };
  Bytes stream = nettrace::Start();
  stream.Append(
      nettrace::MetadataBlock({{kMapping,
                                "Universal.System",
                                3,
                                "ProcessMapping",
                                {number("Id"), number("StartAddress"), number("EndAddress"),
                                 number("FileOffset"), text("FileName"), number("MetadataId")}},
                               {kFunction,
                                "Universal.System",
                                4,
                                "ProcessSymbol",
                                {number("Id"), number("MappingId"), number("StartAddress"),
                                 number("EndAddress"), text("Name")}},
                               {kExit, "Universal.System", 2, "ProcessExit"},
                               {kOther, "Shop", 7, "Sale"},
                               {kMetadata,
                                "Universal.System",
                                5,
                                "ProcessMappingMetadata",
                                {number("Id"), text("SymbolMetadata"), text("VersionMetadata")}}}));
  stream.Append(nettrace::ThreadBlock({1})).Append(stacks);
  std::uint32_t sequence = 0;
  std::vector<nettrace::EventFields> rows;
  rows.reserve(events.size());
  for (const SystemEvent& event : events) {
    rows.push_back({.metadata_id = event.row,
                    .sequence = ++sequence,
                    .stack_id = event.row == kOther ? 1u : 0u,
                    .timestamp = 2000 + sequence,
                    .payload = event.payload});
  }
  return stream.Append(nettrace::EventBlock(rows)).Append(nettrace::End());
}

CodeMap MapAfter(const std::vector<SystemEvent>& events, const Bytes& text_type = TextType()) {
  const Bytes stream = Stream(events, {}, text_type);
  const auto reader = nettrace::testing::OpenBytes(stream.span());
  CodeMap code;
  while (reader->Next() != nettrace::Reader::Step::kEnd) code.OnEvent(reader->event());
  return code;
}

std::string CodeAt(const CodeMap& code, std::uint64_t address, bool is_return = false,
                   std::uint64_t pid = kPid) {
  nettrace::ThreadInfo thread;
  thread.process_id = pid;
  std::string text;
  code.AppendCode(thread, address, is_return, &text);
  return text;
}

TEST(CodeMap, NamesFunctionsModulesAndUnknownCode) {
  const CodeMap code = MapAfter({{kMapping, Mapping(7, 0x1000, 0x1fff, 0x400, "/usr/lib/libc.so")},
                                 {kFunction, Function(7, 0x1100, 0x11ff, "read")}});
  EXPECT_EQ(CodeAt(code, 0x1100), "libc.so!read+0x0");
  EXPECT_EQ(CodeAt(code, 0x11ff), "libc.so!read+0xff");
  EXPECT_EQ(CodeAt(code, 0x1200), "libc.so+0x600");
  EXPECT_EQ(CodeAt(code, 0x1fff), "libc.so+0x13ff");
  EXPECT_EQ(CodeAt(code, 0x2000), "0x2000");
  EXPECT_EQ(CodeAt(code, 0xfff), "0xfff");
  EXPECT_EQ(CodeAt(code, 0x1100, false, kPid + 1), "0x1100");
}

TEST(CodeMap, ReadsTextThatIsDeclaredAsOneCodeUnit) {
  const CodeMap code = MapAfter({{kMapping, Mapping(7, 0x1000, 0x1fff, 0x400, "/usr/lib/libc.so")},
                                 {kFunction, Function(7, 0x1100, 0x11ff, "read")}},
                                Code(TypeCode::kUtf8CodeUnit));
  EXPECT_EQ(CodeAt(code, 0x1100), "libc.so!read+0x0");
}

TEST(CodeMap, FindsAFunctionBehindOneThatLiesInIt) {
  const CodeMap code = MapAfter({{kMapping, Mapping(1, 0x1000, 0x1fff, 0, "a")},
                                 {kFunction, Function(1, 0x1100, 0x11ff, "outer")},
                                 {kFunction, Function(1, 0x1120, 0x112f, "inner")}});
  EXPECT_EQ(CodeAt(code, 0x1110), "a!outer+0x10");
  EXPECT_EQ(CodeAt(code, 0x1121), "a!inner+0x1");
  EXPECT_EQ(CodeAt(code, 0x1130), "a!outer+0x30");
}

TEST(CodeMap, LooksUpTheCallOfAReturnAddress) {
  const CodeMap code = MapAfter({{kMapping, Mapping(7, 0x1000, 0x1fff, 0, "a")},
                                 {kFunction, Function(7, 0x1100, 0x11ff, "first")},
                                 {kFunction, Function(7, 0x1200, 0x12ff, "second")}});
  EXPECT_EQ(CodeAt(code, 0x1200, true), "a!first+0x100");
  EXPECT_EQ(CodeAt(code, 0x1200, false), "a!second+0x0");
  EXPECT_EQ(CodeAt(code, 0x2000, true), "a+0x1000");
  EXPECT_EQ(CodeAt(code, 0, true), "0x0");
}

TEST(CodeMap, ALaterMappingReplacesPartOfAnEarlierOne) {
  const CodeMap code = MapAfter({{kMapping, Mapping(1, 0x1000, 0x4fff, 0, "old")},
                                 {kMapping, Mapping(2, 0x2000, 0x2fff, 0x700, "new")}});
  EXPECT_EQ(CodeAt(code, 0x1fff), "old+0xfff");
  EXPECT_EQ(CodeAt(code, 0x2000), "new+0x700");
  EXPECT_EQ(CodeAt(code, 0x3000), "old+0x2000");
}

TEST(CodeMap, ForgetsTheMappingsOfAProcessThatExits) {
  const CodeMap code = MapAfter({{kMapping, Mapping(1, 0x1000, 0x1fff, 0, "old")}, {kExit, {}}});
  EXPECT_EQ(CodeAt(code, 0x1000), "0x1000");
}

TEST(CodeMap, KeepsTheFunctionsOfAMappingThatALaterProcessShares) {
  const CodeMap code = MapAfter({{kMapping, Mapping(1, 0x1000, 0x1fff, 0, "vmlinux")},
                                 {kFunction, Function(1, 0x1100, 0x11ff, "kfunc")},
                                 {kExit, {}},
                                 {kMapping, Mapping(1, 0x1000, 0x1fff, 0, "vmlinux")}});
  EXPECT_EQ(CodeAt(code, 0x1100), "vmlinux!kfunc+0x0");
}

TEST(CodeMap, IgnoresRangesThatEndBeforeTheyBeginAndFunctionsWithoutMapping) {
  const CodeMap code = MapAfter({{kMapping, Mapping(1, 0x2000, 0x1000, 0, "wrong")},
                                 {kFunction, Function(9, 0x1000, 0x1fff, "none")},
                                 {kMapping, Mapping(2, 0, ~std::uint64_t{0}, 0, "all")}});
  EXPECT_EQ(CodeAt(code, 0x1800), "all+0x1800");
  EXPECT_EQ(CodeAt(code, ~std::uint64_t{0}), "all+0xffffffffffffffff");
}

TEST(CodeMap, KnowsTheBuildIdOfAFile) {
  const CodeMap code =
      MapAfter({{kMetadata, Metadata(3, R"({"type":"ELF","build_id":"b1ed","p_vaddr":"0x0"})")},
                {kMetadata, Metadata(4, R"({"build_id":7})")},
                {kMetadata, Metadata(5, "[")},
                {kMapping, Mapping(1, 0x1000, 0x1fff, 0x200, "/lib/a", 3)},
                {kMapping, Mapping(2, 0x2000, 0x2fff, 0, "/lib/b", 4)},
                {kMapping, Mapping(3, 0x3000, 0x3fff, 0, "/lib/c", 5)}});
  nettrace::ThreadInfo thread;
  thread.process_id = kPid;
  const CodeMap::Code found = code.Find(thread, 0x1010, false);
  EXPECT_EQ(found.build_id, "b1ed");
  EXPECT_EQ(found.path, "/lib/a");
  EXPECT_EQ(0x1010 - found.mapping_start + found.file_offset, 0x210u);
  EXPECT_EQ(code.Find(thread, 0x2010, false).build_id, "");
  EXPECT_EQ(code.Find(thread, 0x3010, false).build_id, "");
  EXPECT_FALSE(code.Find(thread, 0x4010, false).is_known);
}

TEST(CodeMap, ProcessesOfOtherHostsHaveOtherCode) {
  const CodeMap code = MapAfter({{kMapping, Mapping(1, 0x1000, 0x1fff, 0, "a")}});
  nettrace::ThreadInfo thread;
  thread.process_id = kPid;
  EXPECT_NE(code.VersionOf(thread), 0u);
  thread.key_values.emplace_back(nettrace::kKeyHostName, "other");
  EXPECT_FALSE(code.Find(thread, 0x1000, false).is_known);
  EXPECT_EQ(code.VersionOf(thread), 0u);
}

TEST(CodeMap, AMappingChangesTheVersionOfItsProcess) {
  const auto version_after = [](int mappings) {
    std::vector<SystemEvent> events = {{kExit, {}}};
    for (int i = 0; i < mappings; ++i)
      events.push_back({kMapping, Mapping(1, 0x1000, 0x1fff, 0, "a")});
    nettrace::ThreadInfo thread;
    thread.process_id = kPid;
    return MapAfter(events).VersionOf(thread);
  };
  EXPECT_EQ(version_after(0), 0u);
  EXPECT_NE(version_after(1), version_after(2));
}

TEST(CodeMap, DumpShowsTheFramesOfAStack) {
  const Bytes stream = Stream({{kMapping, Mapping(1, 0x1000, 0x1fff, 0, "/bin/a\x1b[2J")},
                               {kFunction, Function(1, 0x1100, 0x11ff, "main")},
                               {kOther, {}}},
                              nettrace::StackBlock(1, {0x1100, 0x1200, 0x5000}));
  const auto reader = nettrace::testing::OpenBytes(stream.span());
  CodeMap code;
  PayloadJson payloads(PayloadStyle::kForPrograms);
  std::string text;
  std::string json;
  while (reader->Next() != nettrace::Reader::Step::kEnd) {
    code.OnEvent(reader->event());
    if (reader->event().stack.empty()) continue;
    AppendStackText(*reader, reader->event(), code, &text);
    nettrace::Event cut = reader->event();
    nettrace::Labels labels;
    labels.integers = {{kStackCutLabel, 3}};
    cut.labels = &labels;
    AppendStackText(*reader, cut, code, &text);
    AppendEventJson(*reader, reader->event(), &payloads, &json, &code);
  }
  const std::string frames = R"(
    a\u001b[2J!main+0x0
    a\u001b[2J!main+0x100
    0x5000)";
  EXPECT_EQ(text, absl::StrCat(frames, frames, "\n    ... callers may be missing"));
  EXPECT_NE(json.find(absl::StrCat(R"("stack":["0x1100","0x1200","0x5000"],)",
                                   R"("frames":["a\u001B[2J!main+0x0",)",
                                   R"("a\u001B[2J!main+0x100","0x5000"])")),
            std::string::npos)
      << json;
}

TEST(IsReturnAddress, HoldsForCallersOnly) {
  constexpr std::uint64_t kKernel = 0xffffffff81000000;
  const std::vector<std::uint64_t> stack = {kKernel, kKernel + 1, 0x1000, 0x2000};
  EXPECT_FALSE(IsReturnAddress(stack, 0));
  EXPECT_TRUE(IsReturnAddress(stack, 1));
  EXPECT_FALSE(IsReturnAddress(stack, 2));
  EXPECT_TRUE(IsReturnAddress(stack, 3));
}

}  // namespace
}  // namespace trace
