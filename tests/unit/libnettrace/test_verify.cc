#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "nettrace/reader.h"
#include "nettrace/verifier.h"
#include "tests/support/nettrace/stream_builder.h"
#include "tests/support/source_root.h"
#include "tests/unit/libnettrace/annotated_bytes.h"
#include "tests/unit/libnettrace/trace_files.h"

namespace nettrace {
namespace {

VerifyReport ReportOn(std::span<const std::byte> stream, const VerifyOptions& options = {}) {
  auto report = Verify(std::make_unique<MemorySource>(stream), options);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *std::move(report) : VerifyReport();
}

std::string DescribeFindings(const VerifyReport& report) {
  std::string text;
  for (const Finding& finding : report.findings) {
    text += std::string(finding.rule->name) + " at " + std::to_string(finding.offset) + ": " +
            finding.explanation + "\n";
  }
  return text;
}

TEST(Verify, AGoodStreamIsClean) {
  const VerifyReport report = ReportOn(GoodStream().span());
  EXPECT_EQ(DescribeFindings(report), "");
  EXPECT_EQ(report.errors + report.hazards, 0u);
  EXPECT_EQ(report.events, 5u);
  EXPECT_EQ(report.version, 6u);
}

// broken/RULE.txt, or RULE.way.txt if there are several ways to break the rule, is a file that
// breaks only RULE. Its line "# finds: RULE at OFFSET" has the expected finding. The files are
// written by hand from the specification, like those of golden/.
struct Broken {
  std::string rule;
  std::string finds;
  std::string bytes;
};

std::vector<Broken> AllBroken() {
  std::vector<Broken> all;
  for (const auto& entry : std::filesystem::directory_iterator(testing::BrokenFolder())) {
    const std::string name = entry.path().filename();
    const std::string text = testing::TextOfFile(entry.path());
    std::string finds;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      constexpr std::string_view kFinds = "# finds: ";
      if (line.starts_with(kFinds)) finds += line.substr(kFinds.size()) + "\n";
    }
    all.push_back({name.substr(0, name.find('.')), finds, testing::Bytes(text)});
  }
  return all;
}

TEST(Verify, EachBrokenFileBreaksTheRuleOfItsNameAndNoOther) {
  for (const Broken& file : AllBroken()) {
    // The only file with tables above this limit is table-size.txt.
    const VerifyReport report =
        ReportOn(std::as_bytes(std::span(file.bytes)), {.max_table_bytes = 100'000});
    EXPECT_EQ(DescribeFindings(report), file.finds);
    EXPECT_FALSE(report.findings.empty()) << file.rule;
    for (const Finding& finding : report.findings) EXPECT_EQ(finding.rule->name, file.rule);
  }
}

// Returns rows of many fields, which take 25 times their size in memory.
Bytes RowsOfManyFields(int rows) {
  constexpr int kFields = 1000;
  Bytes stream = Start();
  Bytes content;
  content.U16(0);
  for (int id = 1; id <= rows; ++id) {
    Bytes row;
    row.Var(static_cast<unsigned>(id)).String("P").Var(static_cast<unsigned>(id)).String("N");
    row.U16(kFields);
    for (int i = 0; i < kFields; ++i) {
      row.Row(Bytes().String("").U8(static_cast<unsigned>(TypeCode::kInt32)));
    }
    content.Row(row.U16(0));
  }
  return stream.Append(Block(BlockKind::kMetadata, content));
}

TEST(Verify, MemoryIsBoundedAsTheReadersIs) {
  constexpr std::size_t kMaxBytes = 1 << 20;
  for (const int rows : {5, 50}) {
    const Bytes stream = RowsOfManyFields(rows);
    const VerifyReport report = ReportOn(stream.span(), {.max_table_bytes = kMaxBytes});
    ReaderOptions options;
    options.max_table_bytes = kMaxBytes;
    auto reader = Reader::Open(std::make_unique<MemorySource>(stream.span()), options);
    ASSERT_TRUE(reader.ok());
    while ((*reader)->Next() != Reader::Step::kEnd) {
    }
    const bool refused =
        (*reader)->status().message().find("tables would hold") != absl::string_view::npos;
    EXPECT_EQ(refused, rows == 50) << (*reader)->status();
    ASSERT_FALSE(report.findings.empty());
    EXPECT_EQ(report.findings.back().rule->name == std::string_view("table-size"), refused);
  }
}

TEST(Verify, EveryRuleHasAFileThatBreaksIt) {
  std::set<std::string> broken;
  for (const Broken& file : AllBroken()) broken.insert(file.rule);
  std::set<std::string> rules;
  for (const Rule& rule : VerifyRules()) rules.insert(rule.name);
  EXPECT_EQ(broken, rules);
}

TEST(Verify, DocumentationHasEveryRule) {
  std::ifstream file(tests::SourcePath("docs/format/verify-rules.md"));
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

TEST(Verify, ManyFindingsOfOneRuleAreCountedAndNotAllKept) {
  std::vector<EventFields> events(100);
  for (std::uint32_t i = 0; i < 100; ++i) {
    events[i].sequence = i + 1;
    events[i].stack_id = 5;
  }
  const Bytes stream = Start()
                           .Append(MetadataBlock({{}}))
                           .Append(ThreadBlock({1}))
                           .Append(EventBlock(events))
                           .Append(End());
  const VerifyReport report = ReportOn(stream.span(), {.max_findings_per_rule = 3});
  EXPECT_EQ(report.findings.size(), 3u);
  EXPECT_EQ(report.errors, 100u);
}

TEST(Verify, EveryCutOfAGoodStreamIsFound) {
  const Bytes good = GoodStream();
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    auto report = Verify(std::make_unique<MemorySource>(good.span().first(cut)));
    ASSERT_TRUE(report.ok()) << "cut at " << cut;
    ASSERT_EQ(report->errors, 1u) << "cut at " << cut << "\n" << DescribeFindings(*report);
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
