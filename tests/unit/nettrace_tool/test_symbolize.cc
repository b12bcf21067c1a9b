// Tests the names of functions that are added to the stacks of a file.
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nettrace/format.h"
#include "nettrace/payload_encoder.h"
#include "nettrace/reader.h"
#include "nettrace/sink.h"
#include "nettrace/time_ordered_reader.h"
#include "nettrace/verifier.h"
#include "nettrace/writer.h"
#include "tests/support/elf_builder.h"
#include "tools/base/prompt_files.h"
#include "tools/base/read_file.h"
#include "tools/nettrace/symbolize/function_finder.h"
#include "tools/nettrace/symbolize/perf_map.h"
#include "tools/nettrace/symbolize/run.h"
#include "tools/nettrace/symbolize/stack_hits.h"
#include "tools/trace/code_events.h"
#include "tools/trace/code_map.h"

namespace tools::symbolize {
namespace {

using tests::ElfBuilder;
using tests::ElfContents;

constexpr char kBuildId[] = "\x01\x23\x45\x67";
// Address, size in bytes and id of the mapping of the program, which has the text of ElfContents.
constexpr std::uint64_t kBase = 0x555500000000;
constexpr std::uint64_t kSize = 0x1000;
constexpr std::uint64_t kMappingId = 7;

// Where the trace was recorded.
struct Origin {
  bool is_this_host = true;
  bool is_this_boot = true;
};

class SymbolizeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              absl::StrCat("symbolize-", getpid(), "-",
                           ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    std::filesystem::permissions(folder_, std::filesystem::perms(0755));
    program_ = folder_ / "program";
    contents_.build_id = kBuildId;
    contents_.symbols = {{"outer", 0x401010, 0x10}, {"_ZN4Shop3buyEi", 0x401020, 0x10}};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void WriteProgram() const { Write(program_, ElfBuilder(contents_).Build()); }
  static void Write(const std::filesystem::path& path, const std::string& bytes) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }

  // Returns a mapping of the program without a build id, with an address in it.
  HitMapping Hit(std::uint64_t id, absl::Time time, const std::string& path) const {
    HitMapping hit;
    hit.id = id;
    hit.first = kBase;
    hit.last = kBase + kSize - 1;
    hit.offset = ElfContents::kTextOffset;
    hit.time = time;
    hit.path = path;
    hit.addresses = {kBase + 0x24};
    return hit;
  }

  // Writes a trace with the stack {buy+4, return to outer+0x10, 0x10}. The mapping has
  // `build_id` and the path `path`, and `function` if it is not empty.
  void WriteTrace(std::string_view build_id, const std::string& path, const Origin& origin = {},
                  absl::Time time = absl::Now(), std::string_view function = "") {
    nettrace::TraceInfo info;
    info.sync_time = time;
    info.sync_ticks = 1000;
    info.ticks_per_second = 1'000'000'000;
    utsname system = {};
    uname(&system);
    const std::string boot = base::ReadFile("/proc/sys/kernel/random/boot_id", 64).value_or("");
    info.key_values = {
        {nettrace::kKeyHostName, origin.is_this_host ? system.nodename : "other"},
        {nettrace::kKeyBootId,
         origin.is_this_boot ? std::string(absl::StripAsciiWhitespace(boot)) : "other"}};
    auto sink = nettrace::FdSink::Create(Trace());
    ASSERT_TRUE(sink.ok()) << sink.status();
    auto writer = *nettrace::Writer::Create(*std::move(sink), info);
    nettrace::ThreadInfo thread;
    thread.process_id = 42;
    thread.thread_id = 42;
    row_.thread = row_.capture_thread = *writer->AddThread(thread);
    row_.timestamp = 1000;
    WriteCode(writer.get(), build_id, path, function);
    nettrace::EventMetadata metadata;
    metadata.provider = "Shop";
    metadata.event_id = 1;
    metadata.name = "Sale";
    row_.metadata_id = *writer->AddMetadata(metadata);
    row_.timestamp = 2000;
    const std::vector<std::uint64_t> stack = {kBase + 0x24, kBase + 0x20, 0x10};
    row_.stack_id = *writer->InternStack(stack);
    ASSERT_TRUE(writer->WriteEvent(row_, {}).ok());
    ASSERT_TRUE(writer->Finish().ok());
  }

  void WriteCode(nettrace::Writer* writer, std::string_view build_id, const std::string& path,
                 std::string_view function) {
    const auto number = nettrace::Type::Simple(nettrace::TypeCode::kVarUInt);
    const auto text = nettrace::TypeFor<std::string_view>();
    row_.stack_id = nettrace::kNoStack;
    const auto write = [&](std::uint32_t id, const char* name, std::vector<nettrace::Field> fields,
                           const auto& put) {
      nettrace::EventMetadata metadata;
      metadata.provider = "Universal.System";
      metadata.event_id = id;
      metadata.name = name;
      metadata.opcode = 0;
      metadata.fields = std::move(fields);
      row_.metadata_id = *writer->AddMetadata(metadata);
      nettrace::PayloadEncoder payload(&metadata.fields);
      put(&payload);
      ASSERT_TRUE(writer->WriteEvent(row_, *payload.Finish()).ok());
    };
    const std::string json =
        build_id.empty() ? R"({"type":"build-id"})"
                         : absl::StrCat(R"({"type":"build-id","build_id":")",
                                        absl::BytesToHexString(std::string(build_id)), R"("})");
    write(5, "ProcessMappingMetadata",
          {{"Id", number}, {"SymbolMetadata", text}, {"VersionMetadata", text}},
          [&](auto* to) { to->UInt(3).Utf8(json).Utf8("{}"); });
    write(3, "ProcessMapping",
          {{"Id", number},
           {"StartAddress", number},
           {"EndAddress", number},
           {"FileOffset", number},
           {"FileName", text},
           {"MetadataId", number}},
          [&](auto* to) {
            to->UInt(mapping_id_)
                .UInt(kBase)
                .UInt(kBase + kSize - 1)
                .UInt(ElfContents::kTextOffset)
                .Utf8(path)
                .UInt(3);
          });
    if (function.empty()) return;
    write(4, "ProcessSymbol",
          {{"Id", number},
           {"MappingId", number},
           {"StartAddress", number},
           {"EndAddress", number},
           {"Name", text}},
          [&](auto* to) {
            to->UInt(9).UInt(kMappingId).UInt(kBase).UInt(kBase + kSize - 1).Utf8(function);
          });
  }

  std::string Trace() const { return folder_ / "trace.nettrace"; }
  Summary Symbolize(std::vector<std::string> debug_folders = {}) const {
    Options options;
    options.input = options.output = Trace();
    options.debug_folders = std::move(debug_folders);
    const absl::StatusOr<Summary> summary = symbolize::Run(options);
    EXPECT_TRUE(summary.ok()) << summary.status();
    return summary.ok() ? *summary : Summary();
  }
  // Returns the reason why functions of the only module are missing.
  std::string Reason() const {
    const Summary summary = Symbolize();
    EXPECT_EQ(summary.modules.size(), 1u);
    EXPECT_EQ(summary.bytes, 0u);
    return summary.modules.empty() ? "" : summary.modules[0].reason;
  }

  // Returns the frames of the event with a stack, and checks that the file is valid.
  std::string Frames() const {
    auto source = nettrace::FdSource::Open(Trace());
    EXPECT_TRUE(source.ok());
    nettrace::TimeOrderedReader reader(*nettrace::Reader::Open(*std::move(source)));
    trace::CodeMap code;
    std::string text;
    using Step = nettrace::TimeOrderedReader::Step;
    for (Step step = reader.Next(); step != Step::kEnd; step = reader.Next()) {
      if (step != Step::kEvent) continue;
      code.OnEvent(reader.event());
      const std::vector<std::uint64_t> stack = trace::StackAddresses(reader.event(), 8);
      for (std::size_t i = 0; i < stack.size(); ++i) {
        code.AppendCode(*reader.event().thread, stack[i], trace::IsReturnAddress(stack, i), &text);
        text += ' ';
      }
    }
    EXPECT_TRUE(reader.reader().status().ok());
    return text;
  }

  // Returns the SymbolMetadata of each mapped file that the trace describes.
  std::vector<std::string> Descriptions() const {
    auto reader = *nettrace::Reader::Open(*nettrace::FdSource::Open(Trace()));
    std::vector<std::string> found;
    using Step = nettrace::Reader::Step;
    for (Step step = reader->Next(); step != Step::kEnd; step = reader->Next()) {
      if (step != Step::kEvent) continue;
      const auto code = trace::ReadCodeEvent(reader->event());
      if (code && code->kind == trace::CodeEvent::Kind::kFile) found.push_back(code->json);
    }
    return found;
  }

  std::filesystem::path folder_;
  std::string program_;
  ElfContents contents_;
  nettrace::EventRow row_;
  std::uint64_t mapping_id_ = kMappingId;
};

constexpr char kNamed[] = "program!Shop::buy()+0x4 program!outer+0x10 0x10 ";
constexpr char kUnnamed[] = "program+0x1024 program+0x1020 0x10 ";

TEST_F(SymbolizeTest, AddsTheFunctionsOfAFileWithTheBuildId) {
  WriteProgram();
  WriteTrace(kBuildId, program_);
  EXPECT_EQ(Frames(), kUnnamed);
  const Summary summary = Symbolize();
  EXPECT_EQ(Frames(), kNamed);
  ASSERT_EQ(summary.modules.size(), 1u);
  EXPECT_EQ(summary.modules[0].functions, 2u);
  EXPECT_EQ(summary.modules[0].named, 2u);
  EXPECT_EQ(summary.modules[0].reason, "");
  EXPECT_EQ(summary.bytes, std::filesystem::file_size(Trace()));
}

TEST_F(SymbolizeTest, WritesNothingTheSecondTime) {
  WriteProgram();
  WriteTrace(kBuildId, program_);
  EXPECT_EQ(Symbolize().Total().functions, 2u);
  const auto before = std::filesystem::last_write_time(Trace());
  const Summary again = Symbolize();
  EXPECT_TRUE(again.modules.empty());
  EXPECT_EQ(again.bytes, 0u);
  EXPECT_EQ(std::filesystem::last_write_time(Trace()), before);
}

TEST_F(SymbolizeTest, KeepsFunctionsOfTheFile) {
  WriteProgram();
  WriteTrace(kBuildId, program_, {}, absl::Now(), "known");
  EXPECT_TRUE(Symbolize().modules.empty());
  EXPECT_EQ(Frames(), "program!known+0x24 program!known+0x20 0x10 ");
}

TEST_F(SymbolizeTest, RefusesAFileWithAnotherBuildId) {
  contents_.build_id = "other";
  WriteProgram();
  WriteTrace(kBuildId, program_);
  EXPECT_EQ(Reason(), "the file has another build id");
  EXPECT_EQ(Frames(), kUnnamed);
}

TEST_F(SymbolizeTest, RefusesAFileThatHasChangedIfNoBuildIdIsKnown) {
  WriteProgram();
  WriteTrace("", program_, {}, absl::Now() - absl::Hours(1));
  EXPECT_NE(Reason().find("has changed since"), std::string::npos);
  WriteTrace("", program_, {}, absl::Now() + absl::Seconds(1));
  EXPECT_EQ(Symbolize().Total().functions, 2u);
  EXPECT_EQ(Frames(), kNamed);
}

TEST_F(SymbolizeTest, RefusesFilesOfAnotherHostIfNoBuildIdIsKnown) {
  WriteProgram();
  WriteTrace("", program_, {.is_this_host = false}, absl::Now() + absl::Seconds(1));
  EXPECT_NE(Reason().find("another host"), std::string::npos);
}

TEST_F(SymbolizeTest, RootRefusesPrivateFilesIfNoBuildIdIsKnown) {
  WriteProgram();
  std::filesystem::permissions(program_, std::filesystem::perms(0700));
  WriteTrace("", program_, {}, absl::Now() + absl::Seconds(1));
  if (geteuid() != 0) {
    EXPECT_EQ(Symbolize().Total().functions, 2u);
    return;
  }
  EXPECT_NE(Reason().find("not every user may read"), std::string::npos);
  WriteTrace(kBuildId, program_);
  EXPECT_EQ(Symbolize().Total().functions, 2u);
}

TEST_F(SymbolizeTest, ReportsFilesThatCannotBeUsed) {
  WriteTrace(kBuildId, program_);
  EXPECT_EQ(Reason(), "the file does not exist");
  Write(program_, "no ELF file");
  EXPECT_EQ(Reason(), "the file cannot be used: not a program or shared object");
  WriteTrace(kBuildId, "[vsyscall]");
  EXPECT_EQ(Reason(), "the code has no file");
  contents_.symbols.clear();
  contents_.exports = {{"shown", 0x401800, 0x10}};
  WriteProgram();
  WriteTrace(kBuildId, program_);
  const Summary summary = Symbolize();
  EXPECT_NE(summary.modules.at(0).reason.find("install its debug symbols"), std::string::npos);
}

TEST_F(SymbolizeTest, DescribesFilesForOtherPrograms) {
  contents_.debug_link = "a \"b\".debug";
  WriteProgram();
  WriteTrace(kBuildId, program_);
  Symbolize();
  const std::vector<std::string> first = {
      R"({"type":"build-id","build_id":"01234567"})",
      R"({"type":"ELF","build_id":"01234567","p_vaddr":"0x401000","p_offset":"0x1000",)"
      R"("debug_link":"a \"b\".debug"})"};
  EXPECT_EQ(Descriptions(), first);
  Symbolize();
  EXPECT_EQ(Descriptions(), first);
}

TEST_F(SymbolizeTest, DescribesFilesWithoutFunctionsOnce) {
  contents_.symbols.clear();
  WriteProgram();
  WriteTrace(kBuildId, program_);
  EXPECT_NE(Symbolize().bytes, 0u);
  EXPECT_EQ(Descriptions().size(), 2u);
  EXPECT_EQ(Symbolize().bytes, 0u);
}

TEST_F(SymbolizeTest, DescribesOnlyFilesWithTheBuildId) {
  contents_.build_id = "other";
  WriteProgram();
  WriteTrace(kBuildId, program_);
  Symbolize();
  EXPECT_EQ(Descriptions().size(), 1u);
}

TEST_F(SymbolizeTest, AddsTheBuildIdOfAFileThatIsTheMappedOne) {
  WriteProgram();
  std::filesystem::permissions(program_, std::filesystem::perms(0755));
  WriteTrace("", program_, {}, absl::Now() + absl::Seconds(1));
  Symbolize();
  const std::vector<std::string> first = {
      R"({"type":"build-id"})",
      R"({"type":"ELF","build_id":"01234567","p_vaddr":"0x401000","p_offset":"0x1000"})"};
  EXPECT_EQ(Descriptions(), first);
  EXPECT_EQ(Symbolize().bytes, 0u);
}

TEST_F(SymbolizeTest, AddsNoBuildIdOfACopyThatMayBeOfAnotherFile) {
  const std::filesystem::path copies = folder_ / "copies";
  Write(copies / "program", ElfBuilder(contents_).Build());
  WriteTrace("", program_, {.is_this_host = false}, absl::Now() + absl::Seconds(1));
  EXPECT_EQ(Symbolize({copies}).Total().functions, 2u);
  EXPECT_EQ(Descriptions().size(), 1u);
}

TEST_F(SymbolizeTest, DescribesMappingsThatBeginBeforeTheirSegment) {
  // A mapping begins at a page boundary, but its segment may begin within a page.
  contents_.text_address = 0x401000 + 0xbb0;
  WriteProgram();
  FunctionFinder finder({.is_same_host = true}, {});
  HitMapping hit = Hit(1, absl::Now(), "");
  hit.path = program_;
  hit.offset = 0;
  hit.addresses = {kBase + 0x1024};
  hit.last = kBase + 0x1fff;
  hit.metadata_id = 3;
  hit.file.build_id = kBuildId;
  finder.Find(std::vector{hit});
  EXPECT_TRUE(finder.descriptions().empty()) << "the segment is not congruent to its offset";
  contents_.text_address = 0x401000;
  WriteProgram();
  finder.Find(std::vector{hit});
  ASSERT_EQ(finder.descriptions().size(), 1u);
  EXPECT_EQ(finder.descriptions().at(3).address, 0x400000u);
  EXPECT_EQ(finder.descriptions().at(3).offset, 0u);
}

TEST_F(SymbolizeTest, DoesNotDescribeAFileThatIsMappedInDifferentWays) {
  WriteProgram();
  FunctionFinder finder({.is_same_host = true}, {});
  HitMapping first = Hit(1, absl::Now(), "");
  first.path = program_;
  first.metadata_id = 3;
  first.file.build_id = kBuildId;
  HitMapping second = first;
  second.id = 2;
  second.offset += 0x1000;
  contents_.text_size = 0x2000;
  WriteProgram();
  finder.Find(std::vector{first, second});
  EXPECT_TRUE(finder.descriptions().empty());
}

TEST_F(SymbolizeTest, UsesDebugInformationByBuildIdWithoutTheFile) {
  const std::string digits = absl::BytesToHexString(kBuildId);
  Write(folder_ / "debug/.build-id" / digits.substr(0, 2) / (digits.substr(2) + ".debug"),
        ElfBuilder(contents_).Build());
  WriteTrace(kBuildId, program_);
  EXPECT_EQ(Symbolize({folder_ / "debug"}).Total().functions, 2u);
  EXPECT_EQ(Frames(), kNamed);
}

TEST_F(SymbolizeTest, UsesCopiesInFoldersOfTheUser) {
  Write(folder_ / "copies" / "program", ElfBuilder(contents_).Build());
  WriteTrace(kBuildId, "/nowhere/program", {.is_this_host = false});
  EXPECT_EQ(Symbolize({folder_ / "copies"}).Total().functions, 2u);
  EXPECT_EQ(Frames(), kNamed);
}

TEST_F(SymbolizeTest, RefusesAFileThatHasChangedSinceAnyMapping) {
  WriteProgram();
  FunctionFinder finder({.is_same_host = true}, {});
  const std::vector<HitMapping> hits = {Hit(1, absl::Now() + absl::Hours(1), program_),
                                        Hit(2, absl::Now() - absl::Hours(1), program_)};
  finder.Find(hits);
  EXPECT_TRUE(finder.functions().empty());
}

TEST_F(SymbolizeTest, RefusesAFileIfTheProcessHasMappedAnotherOne) {
  WriteProgram();
  HitMapping hit = Hit(1, absl::Now() + absl::Hours(1), program_);
  hit.pid = static_cast<std::uint64_t>(getpid());
  // A mapping of this process: "7f12a0-7f12b0 r-xp".
  std::ifstream maps("/proc/self/maps");
  char dash = 0;
  ASSERT_TRUE(maps >> std::hex >> hit.first >> dash >> hit.last);
  --hit.last;
  hit.addresses = {hit.first + 0x24};
  struct stat facts = {};
  if (stat(absl::StrFormat("/proc/self/map_files/%x-%x", hit.first, hit.last + 1).c_str(),
           &facts) != 0) {
    GTEST_SKIP() << "needs CAP_CHECKPOINT_RESTORE to see the files of mappings";
  }
  FunctionFinder finder({.is_same_host = true, .is_same_boot = true}, {});
  finder.Find(std::vector<HitMapping>{hit});
  EXPECT_TRUE(finder.functions().empty());
  EXPECT_NE(finder.modules().at(0).reason.find("has mapped another file"), std::string::npos);
}

TEST_F(SymbolizeTest, PathsDoNotLeadOutOfTheFoldersOfTheUser) {
  WriteProgram();
  std::filesystem::create_directories(folder_ / "copies");
  FunctionFinder finder({}, {folder_ / "copies"});
  const std::vector<HitMapping> hits = {Hit(1, absl::Now(), "/../program")};
  finder.Find(hits);
  EXPECT_TRUE(finder.functions().empty());
}

TEST_F(SymbolizeTest, FunctionsEndWithTheirMapping) {
  contents_.symbols = {{"huge", 0x1000, 0xf000000000000000}};
  WriteProgram();
  FunctionFinder finder({.is_same_host = true}, {});
  const std::vector<HitMapping> hits = {Hit(1, absl::Now() + absl::Hours(1), program_)};
  finder.Find(hits);
  ASSERT_EQ(finder.functions().at(1).size(), 1u);
  EXPECT_EQ(finder.functions().at(1)[0].first, kBase);
  EXPECT_EQ(finder.functions().at(1)[0].last, kBase + kSize - 1);
}

TEST_F(SymbolizeTest, ReportsThatALimitEndedTheSearch) {
  // The limit for 4096 addresses is 2^20 + 64 * 4096 pairs of a function and an address in it.
  constexpr std::uint64_t kPairs = (1 << 20) + 64 * kSize;
  HitMapping hit = Hit(1, absl::Now() + absl::Hours(1), "");
  hit.path = program_;
  hit.addresses.clear();
  for (std::uint64_t i = 0; i < kSize; ++i) hit.addresses.push_back(kBase + i);
  const auto find = [&](std::uint64_t pairs) {
    contents_.symbols.clear();
    while (pairs != 0) {
      const std::uint64_t size = std::min(pairs, kSize - 1);
      contents_.symbols.push_back({"overlapping", 0x401000, size});
      pairs -= size;
    }
    contents_.symbols.push_back({"last", 0x401000 + kSize - 1, 1});
    WriteProgram();
    FunctionFinder finder({.is_same_host = true}, {});
    finder.Find(std::vector{hit});
    return finder.modules().at(0);
  };
  const ModuleResult below = find(kPairs - 1);
  EXPECT_EQ(below.named, kSize);
  EXPECT_EQ(below.reason, "");
  const ModuleResult above = find(kPairs);
  EXPECT_EQ(above.named, kSize - 1);
  EXPECT_NE(above.reason.find("reach a limit"), std::string::npos) << above.reason;
}

TEST_F(SymbolizeTest, ReportsThatALimitEndedTheSearchInAPerfMap) {
  const std::vector<std::uint64_t> addresses = {0x1000, 0x2000};
  const auto find = [&addresses](std::size_t names) {
    PerfMapLookup lookup(addresses);
    const std::string line = absl::StrCat("1000 10 ", std::string(elf::kMaxName, 'n'), "\n");
    for (std::size_t i = 0; i < names; ++i) lookup.AddText(line);
    lookup.AddText("2000 10 last\n");
    return lookup.Finish();
  };
  constexpr std::size_t kNames = elf::Functions::kMaxNameBytes / elf::kMaxName;
  const elf::Functions below = find(kNames - 1);
  EXPECT_FALSE(below.is_limited);
  EXPECT_NE(below.of_address[1], elf::Functions::kNone);
  const elf::Functions above = find(kNames);
  EXPECT_TRUE(above.is_limited);
  EXPECT_EQ(above.of_address[1], elf::Functions::kNone);
}

TEST_F(SymbolizeTest, ProcessesOfTwoHostsHaveTheirOwnMappings) {
  auto sink = nettrace::FdSink::Create(Trace());
  ASSERT_TRUE(sink.ok()) << sink.status();
  auto writer = *nettrace::Writer::Create(*std::move(sink), {});
  std::vector<nettrace::ThreadIndex> threads;
  for (const char* const host : {"a", "b"}) {
    nettrace::ThreadInfo thread;
    thread.process_id = 42;
    thread.key_values = {{nettrace::kKeyHostName, host}};
    threads.push_back(*writer->AddThread(thread));
    row_.thread = row_.capture_thread = threads.back();
    row_.timestamp = 1000;
    WriteCode(writer.get(), "", host, "");
    ++mapping_id_;
  }
  nettrace::EventMetadata metadata;
  metadata.provider = "Shop";
  metadata.name = "Sale";
  row_.metadata_id = *writer->AddMetadata(metadata);
  row_.timestamp = 2000;
  row_.stack_id = *writer->InternStack(std::vector<std::uint64_t>{kBase + 0x24});
  for (const nettrace::ThreadIndex thread : threads) {
    row_.thread = row_.capture_thread = thread;
    ASSERT_TRUE(writer->WriteEvent(row_, {}).ok());
  }
  ASSERT_TRUE(writer->Finish().ok());

  nettrace::TimeOrderedReader reader(*nettrace::Reader::Open(*nettrace::FdSource::Open(Trace())));
  StackHits hits;
  using Step = nettrace::TimeOrderedReader::Step;
  for (Step step = reader.Next(); step != Step::kEnd; step = reader.Next()) {
    if (step == Step::kEvent) hits.OnEvent(reader.reader(), reader.event());
  }
  ASSERT_TRUE(reader.reader().status().ok()) << reader.reader().status();
  const std::vector<HitMapping> found = hits.Finish();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].path, "a");
  EXPECT_EQ(found[1].path, "b");
}

TEST_F(SymbolizeTest, WritesAFunctionOnceAroundAnotherOne) {
  contents_.symbols = {{"outer", 0x401010, 0x20}, {"inner", 0x401018, 0x8}};
  WriteProgram();
  WriteTrace(kBuildId, program_);
  EXPECT_EQ(Symbolize().Total().functions, 2u);
  EXPECT_EQ(Frames(), "program!outer+0x14 program!inner+0x8 0x10 ");
  EXPECT_TRUE(Symbolize().modules.empty());
}

// Returns a mapping of the vdso of this process, with an address in each 16 bytes. Without a vdso,
// it has no addresses.
HitMapping HitOfVdso() {
  HitMapping hit;
  hit.id = 1;
  hit.path = "[vdso]";
  if (getauxval(AT_SYSINFO_EHDR) == 0) return hit;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    char dash = 0;
    if (line.ends_with(hit.path))
      std::istringstream(line) >> std::hex >> hit.first >> dash >> hit.last;
  }
  for (std::uint64_t address = hit.first; address < hit.last; address += 16) {
    hit.addresses.push_back(address);
  }
  hit.last -= hit.last == 0 ? 0 : 1;
  return hit;
}

TEST_F(SymbolizeTest, NamesFunctionsOfTheVdso) {
  const HitMapping hit = HitOfVdso();
  if (hit.addresses.empty()) GTEST_SKIP() << "the kernel maps no vdso";
  FunctionFinder finder({.is_same_host = true, .is_same_boot = true}, {});
  finder.Find(std::vector<HitMapping>{hit});
  const std::vector<elf::Function>& functions = finder.functions().at(1);
  EXPECT_TRUE(std::any_of(functions.begin(), functions.end(), [](const elf::Function& function) {
    return function.name.find("clock_gettime") != std::string::npos;
  }));
  EXPECT_EQ(finder.modules().at(0).source, "[vdso]");
}

TEST_F(SymbolizeTest, RefusesTheVdsoOfAnotherKernelOrSize) {
  HitMapping hit = HitOfVdso();
  if (hit.addresses.empty()) GTEST_SKIP() << "the kernel maps no vdso";
  FunctionFinder after_restart({.is_same_host = true}, {});
  after_restart.Find(std::vector<HitMapping>{hit});
  EXPECT_TRUE(after_restart.functions().empty());
  hit.last += 4096;
  FunctionFinder finder({.is_same_host = true, .is_same_boot = true}, {});
  finder.Find(std::vector<HitMapping>{hit});
  EXPECT_TRUE(finder.functions().empty());
  EXPECT_EQ(finder.modules().at(0).reason, "the process has another vdso than this program");
}

TEST_F(SymbolizeTest, ReadsPerfMapsOfContainersOnlyFromTheirUser) {
  if (syscall(SYS_openat2, -1, nullptr, nullptr, 0) < 0 && errno == ENOSYS) {
    GTEST_SKIP() << "the kernel, or qemu, has no openat2";
  }
  // This process stands for a process in a container. The id that it has in the container is above
  // those of real processes.
  const auto pid = static_cast<std::uint64_t>(getpid());
  const ContainedProcess process = {pid, 4'000'000'000 + pid, geteuid(), ""};
  const std::string path = absl::StrCat("/tmp/perf-", process.own_pid, ".map");
  Write(path, "1000 10 f\n");
  const std::vector<std::uint64_t> addresses = {0x1000};
  base::PromptFiles prompt_files;
  EXPECT_TRUE(ReadPerfMapOf(process, addresses).ok());
  EXPECT_TRUE(ReadPerfMapOf(process, addresses, &prompt_files).ok());
  ContainedProcess of_other = process;
  of_other.user = process.user + 1;
  EXPECT_TRUE(absl::IsPermissionDenied(ReadPerfMapOf(of_other, addresses).status()));
  std::filesystem::rename(path, folder_ / "map");
  std::filesystem::create_symlink(folder_ / "map", path);
  EXPECT_FALSE(ReadPerfMapOf(process, addresses).ok());
  EXPECT_FALSE(ReadPerfMapOf(process, addresses, &prompt_files).ok());
  std::filesystem::remove(path);
  EXPECT_FALSE(FindContainedProcess(process.pid, absl::Now()));
  EXPECT_FALSE(FindContainedProcess(process.pid, absl::Now(), &prompt_files));
  EXPECT_FALSE(FindContainedProcess(0, absl::Now()));
}

TEST_F(SymbolizeTest, UsesPerfMapsOnlyOfThisBoot) {
  WriteTrace("", "//anon", {.is_this_boot = false});
  EXPECT_NE(Reason().find("the perf map may be of another process"), std::string::npos);
}

TEST_F(SymbolizeTest, FailsForADamagedFile) {
  WriteProgram();
  WriteTrace(kBuildId, program_);
  std::filesystem::resize_file(Trace(), std::filesystem::file_size(Trace()) - 4);
  Options options;
  options.input = options.output = Trace();
  const absl::Status status = symbolize::Run(options).status();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("trace.nettrace"), std::string::npos) << status;
}

TEST_F(SymbolizeTest, ReadsPerfMaps) {
  const std::string path = folder_ / "perf.map";
  Write(path,
        "1000 10 int [shop] Shop::First() [Tier0]\n"
        "no line\n"
        "zz 10 hex\n"
        "2000 0 empty\n"
        "2000 ffffffffffffffff wraps\n"
        "2000 10\n"
        "3000 10 old\r\n"
        "1008 20 second\n"
        "4000 10 " +
            std::string(100000, 'n') +
            "\n"
            "5000 8 last without an end");
  const std::vector<std::uint64_t> addresses = {0xfff,  0x1000, 0x1008, 0x1027,
                                                0x2000, 0x3000, 0x4000, 0x5007};
  const auto found = ReadPerfMap(path, addresses);
  ASSERT_TRUE(found.ok()) << found.status();
  std::vector<std::string> names;
  for (const std::uint32_t index : found->of_address) {
    names.push_back(index == elf::Functions::kNone ? "-" : found->functions[index].name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{
                       "-", "int [shop] Shop::First() [Tier0]", "second", "second", "-", "old\r",
                       std::string(elf::kMaxName, 'n'), "last without an end"}));
}

TEST_F(SymbolizeTest, RefusesPerfMapsWithOtherNames) {
  const std::string path = folder_ / "perf.map";
  Write(path, "1000 10 f\n");
  const std::vector<std::uint64_t> addresses = {0x1000};
  base::PromptFiles prompt_files;
  EXPECT_TRUE(ReadPerfMap(path, addresses).ok());
  EXPECT_TRUE(ReadPerfMap(path, addresses, &prompt_files).ok());
  std::filesystem::create_symlink(path, folder_ / "link");
  EXPECT_FALSE(ReadPerfMap(folder_ / "link", addresses).ok());
  EXPECT_FALSE(ReadPerfMap(folder_ / "link", addresses, &prompt_files).ok());
  std::filesystem::create_hard_link(path, folder_ / "hard");
  EXPECT_FALSE(ReadPerfMap(path, addresses).ok());
  EXPECT_FALSE(ReadPerfMap(folder_, addresses).ok());
}

TEST(SymbolMetadata, IsReadInAllItsForms) {
  const MappedFile hex =
      ParseSymbolMetadata(R"({"type":"ELF","build_id":"01AB","p_vaddr":"0x2000"})");
  EXPECT_EQ(hex.build_id, "\x01\xab");
  EXPECT_EQ(hex.address, 0x2000u);
  EXPECT_EQ(ParseSymbolMetadata(R"({"p_vaddr":"8192"})").address, 0x2000u);
  EXPECT_EQ(ParseSymbolMetadata(R"({"p_vaddr":8192})").address, 0x2000u);
  for (const std::string json :
       {"", "[]", "{", R"({"build_id":7,"p_vaddr":-1})", R"({"build_id":"abc","p_vaddr":"x"})",
        R"({"build_id":"zz","p_vaddr":[]})"}) {
    const MappedFile file = ParseSymbolMetadata(json);
    EXPECT_EQ(file.build_id, "") << json;
    EXPECT_EQ(file.address, std::nullopt) << json;
  }
  EXPECT_EQ(ParseSymbolMetadata(std::string(1 << 20, '[')).build_id, "");
}

}  // namespace
}  // namespace tools::symbolize
