#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/collector/session/pattern_memory.h"

namespace collector {
namespace {

using Names = std::vector<std::string>;

std::string Name(const std::string& provider, std::size_t keyword) {
  return absl::StrCat(provider, "_L5K", absl::Hex(keyword));
}

TEST(PatternMemory, ReportsANewNameOnce) {
  PatternMemory memory;
  EXPECT_TRUE(memory.Meet("A_L5K1"));
  EXPECT_TRUE(memory.Meet("B_L5K1Gx"));
  EXPECT_FALSE(memory.Meet("A_L5K1"));
  EXPECT_FALSE(memory.Meet("not_eventheader"));
  EXPECT_FALSE(memory.Meet("A_L5K1\nB_L5K2"));
  EXPECT_EQ(memory.ListNames(), (Names{"B_L5K1Gx", "A_L5K1"}));
}

TEST(PatternMemory, ReadsBackItsText) {
  PatternMemory memory;
  memory.Meet("A_L5K1");
  memory.Meet("B_L5K1");
  memory.Meet("C_L5K1");
  memory.Use("A_L5K1");
  memory.Use("D_L5K1");  // No pattern has matched this name.
  PatternMemory other;
  EXPECT_EQ(other.Parse(memory.ToText()), 0u);
  EXPECT_EQ(other.ListNames(), (Names{"A_L5K1", "C_L5K1", "B_L5K1"}));
  EXPECT_EQ(other.ToText(), memory.ToText());
}

TEST(PatternMemory, LinesThatAreNoNamesAreCounted) {
  PatternMemory memory;
  const std::string nul("A_L5K\0", 6);
  EXPECT_EQ(memory.Parse("# a comment\n\nA_L5K1\nA_L5K1 used\nA_L5K2 unused\n../../etc\n" + nul +
                         "\nB_L5K1 used\n" + std::string(100'000, 'x')),
            5u);
  EXPECT_EQ(memory.ListNames(), (Names{"A_L5K1", "B_L5K1"}));
}

// Tracepoints that never had events are removed first, then those whose last event is oldest.
TEST(PatternMemory, KeepsUsedNamesLongest) {
  constexpr std::size_t kMax = 4;
  PatternMemory memory(kMax);
  for (const char* name : {"A_L5K1", "B_L5K1", "C_L5K1", "D_L5K1"}) EXPECT_TRUE(memory.Meet(name));
  memory.Use("A_L5K1");
  EXPECT_TRUE(memory.Meet("E_L5K1"));
  EXPECT_EQ(memory.ListNames(), (Names{"E_L5K1", "A_L5K1", "D_L5K1", "C_L5K1"}));
  for (const char* name : {"C_L5K1", "D_L5K1", "E_L5K1"}) memory.Use(name);
  EXPECT_TRUE(memory.Meet("F_L5K1"));
  EXPECT_EQ(memory.ListNames(), (Names{"F_L5K1", "E_L5K1", "D_L5K1", "C_L5K1"}));
  EXPECT_EQ(memory.Parse("G_L5K1\nH_L5K1\n"), 2u);
}

TEST(PatternMemory, EachProviderForgetsOnlyItsNames) {
  PatternMemory memory(64);
  constexpr std::size_t kShare = 64 / PatternMemory::kShares;
  EXPECT_TRUE(memory.Meet("Other_L5K1"));
  for (std::size_t i = 1; i <= 1000; ++i) EXPECT_TRUE(memory.Meet(Name("Junk", i)));
  Names expected;
  for (std::size_t i = 0; i < kShare; ++i) expected.push_back(Name("Junk", 1000 - i));
  expected.push_back("Other_L5K1");
  EXPECT_EQ(memory.ListNames(), expected);
  // Names that are read from a file are also limited to kShare for each provider.
  std::string text;
  for (std::size_t i = 1; i <= 10; ++i) text += Name("Junk", i) + "\n";
  PatternMemory loaded(64);
  EXPECT_EQ(loaded.Parse(text), 10 - kShare);
}

class PatternMemoryFile : public ::testing::Test {
 protected:
  PatternMemoryFile() {
    std::string folder = ::testing::TempDir() + "pattern-memory-XXXXXX";
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    path_ = folder + "/patterns";
  }
  ~PatternMemoryFile() override {
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }

  std::string folder_;
  std::string path_;
};

TEST_F(PatternMemoryFile, IsWrittenWhenSomethingHasChanged) {
  PatternMemory memory;
  ASSERT_EQ(*memory.Load(path_), 0u);
  ASSERT_TRUE(memory.Save(path_).ok());
  EXPECT_NE(access(path_.c_str(), F_OK), 0);
  memory.Meet("A_L5K1");
  ASSERT_TRUE(memory.Save(path_).ok());
  PatternMemory other;
  EXPECT_EQ(*other.Load(path_), 0u);
  EXPECT_EQ(other.ListNames(), (Names{"A_L5K1"}));
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_TRUE(memory.Save(path_).ok());
  EXPECT_NE(access(path_.c_str(), F_OK), 0);
}

TEST_F(PatternMemoryFile, WritesLaterAfterAFailure) {
  PatternMemory memory;
  memory.Meet("A_L5K1");
  const absl::Status saved = memory.Save(folder_ + "/missing/patterns");
  EXPECT_FALSE(saved.ok());
  EXPECT_NE(saved.message().find("/missing/patterns"), std::string::npos);
  ASSERT_TRUE(memory.Save(path_).ok());
  EXPECT_EQ(access(path_.c_str(), F_OK), 0);
}

TEST_F(PatternMemoryFile, RefusesOtherThanFilesAndReadsLongOnesInPart) {
  PatternMemory memory(4);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(memory.Load(path_).status()));
  ASSERT_EQ(unlink(path_.c_str()), 0);
  std::ofstream(path_) << "A_L5K1\n" << std::string(1 << 20, 'x') << "\nB_L5K1\n";
  EXPECT_EQ(*memory.Load(path_), 1u);
  EXPECT_EQ(memory.ListNames(), (Names{"A_L5K1"}));
}

}  // namespace
}  // namespace collector
