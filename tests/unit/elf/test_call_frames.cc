#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <vector>

#include "tools/elf/call_frames.h"
#include "tools/elf/elf_file.h"

namespace elf {
namespace {

using Kind = FrameRule::Kind;

constexpr std::uint64_t kTable = 0x5000;  // address of the table
constexpr std::uint64_t kStart = 0x4000;  // address of the function
constexpr std::uint32_t kLength = 0x100;  // size of the function
constexpr std::size_t kEnough = 1000;

std::vector<std::byte> Bytes(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

void Append32(std::uint32_t value, std::vector<std::byte>* bytes) {
  for (int i = 0; i < 4; ++i) bytes->push_back(static_cast<std::byte>(value >> (8 * i)));
}

// Returns a table with one CIE as compilers write it for x86-64, and one FDE with `program`.
std::vector<std::byte> Table(std::vector<std::byte> program) {
  // Version 1, "zR", factors 1 and -8, return address 16, one byte of data: addresses of 4 bytes
  // that are relative to their place. The frame begins at rsp+8, and the return address is at -8.
  const std::vector<std::byte> common =
      Bytes({1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0});
  std::vector<std::byte> table;
  Append32(static_cast<std::uint32_t>(common.size() + 4), &table);
  Append32(0, &table);
  table.insert(table.end(), common.begin(), common.end());
  Append32(static_cast<std::uint32_t>(program.size() + 13), &table);
  Append32(static_cast<std::uint32_t>(table.size()), &table);  // distance to the CIE
  Append32(static_cast<std::uint32_t>(kStart - (kTable + table.size())), &table);
  Append32(kLength, &table);
  table.push_back(std::byte{0});  // no augmentation data
  table.insert(table.end(), program.begin(), program.end());
  Append32(0, &table);
  return table;
}

std::optional<FrameRules> Find(const CallFrames& frames, std::uint64_t offset,
                               std::size_t budget = kEnough) {
  return frames.Find(kStart + offset, &budget);
}

TEST(CallFrames, FollowsTheInstructionsUpToAnAddress) {
  // push rbp after 1 byte; mov rbp, rsp after 3 more; at the end, pop rbp.
  const CallFrames frames = CallFrames::Parse(
      Table(Bytes({0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x02, 0x80, 0xc6, 0x0c, 7, 8})), kTable);
  ASSERT_EQ(frames.size(), 1U);
  const auto first = Find(frames, 0);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->cfa_register, 7U);
  EXPECT_EQ(first->cfa_offset, 8);
  EXPECT_EQ(first->registers[16].kind, Kind::kOffset);
  EXPECT_EQ(first->registers[16].offset, -8);
  EXPECT_EQ(first->registers[6].kind, Kind::kSame);
  EXPECT_EQ(first->return_register, 16U);
  const auto pushed = Find(frames, 1);
  ASSERT_TRUE(pushed);
  EXPECT_EQ(pushed->cfa_offset, 16);
  EXPECT_EQ(pushed->registers[6].offset, -16);
  const auto body = Find(frames, 4);
  ASSERT_TRUE(body);
  EXPECT_EQ(body->cfa_register, 6U);
  EXPECT_EQ(body->cfa_offset, 16);
  const auto end = Find(frames, kLength - 1);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->cfa_register, 7U);
  EXPECT_EQ(end->registers[6].kind, Kind::kSame);
}

TEST(CallFrames, HasNoRulesOutsideOfFunctions) {
  const CallFrames frames = CallFrames::Parse(Table(Bytes({0})), kTable);
  std::size_t budget = kEnough;
  EXPECT_FALSE(frames.Find(kStart - 1, &budget));
  EXPECT_FALSE(frames.Find(kStart + kLength, &budget));
  EXPECT_EQ(budget, kEnough);
}

TEST(CallFrames, RestoresRememberedRules) {
  const CallFrames frames =
      CallFrames::Parse(Table(Bytes({0x0a, 0x41, 0x0e, 32, 0x41, 0x0b})), kTable);
  EXPECT_EQ(Find(frames, 1)->cfa_offset, 32);
  EXPECT_EQ(Find(frames, 2)->cfa_offset, 8);
}

TEST(CallFrames, RejectsMalformedInstructions) {
  EXPECT_FALSE(Find(CallFrames::Parse(Table(Bytes({0x0b})), kTable), 0));        // no saved rules
  EXPECT_FALSE(Find(CallFrames::Parse(Table(Bytes({0x3f})), kTable), 0));        // unknown opcode
  EXPECT_FALSE(Find(CallFrames::Parse(Table(Bytes({0x0f, 0x7f})), kTable), 0));  // a cut block
  EXPECT_FALSE(Find(CallFrames::Parse(Table(Bytes({0x0e, 0x80})), kTable), 0));  // a cut number
  std::vector<std::byte> states(CallFrames::kMaxStates + 1, std::byte{0x0a});
  EXPECT_FALSE(Find(CallFrames::Parse(Table(states), kTable), 0));
}

TEST(CallFrames, IgnoresRulesOfOtherRegisters) {
  // DW_CFA_offset_extended: register 2^28 - 1 is saved at the CFA - 8.
  const CallFrames frames =
      CallFrames::Parse(Table(Bytes({0x05, 0xff, 0xff, 0xff, 0x7f, 1})), kTable);
  EXPECT_TRUE(Find(frames, 0));
}

TEST(CallFrames, StopsWhenTheBudgetIsUsedUp) {
  const CallFrames frames =
      CallFrames::Parse(Table(std::vector<std::byte>(64, std::byte{0})), kTable);
  EXPECT_TRUE(Find(frames, 0, 100));
  EXPECT_FALSE(Find(frames, 0, 20));
}

TEST(CallFrames, KeepsTheEntriesBeforeAMalformedOne) {
  std::vector<std::byte> table = Table(Bytes({0}));
  table.resize(table.size() - 4);
  Append32(0x7fffffff, &table);
  EXPECT_EQ(CallFrames::Parse(table, kTable).size(), 1U);
  for (std::size_t size = 0; size < table.size(); ++size) {
    const std::vector<std::byte> cut(table.begin(),
                                     table.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_LE(CallFrames::Parse(cut, kTable).size(), 1U);
  }
}

TEST(CallFrames, AreReadFromAProgram) {
  const auto file = ElfFile::Open("/proc/self/exe");
  ASSERT_TRUE(file.ok());
  EXPECT_GT(file->ReadCallFrames().size(), 100U);
}

std::optional<std::uint64_t> Evaluate(std::initializer_list<int> expression,
                                      std::optional<std::uint64_t> start = std::nullopt,
                                      std::size_t budget = kEnough) {
  const std::vector<std::byte> bytes = Bytes(expression);
  return EvaluateExpression(
      bytes, start,
      [](std::uint64_t number) -> std::optional<std::uint64_t> {
        return number == 7 || number == 16 ? std::optional(number * 0x100 + 0xb) : std::nullopt;
      },
      [](std::uint64_t address) -> std::optional<std::uint64_t> {
        return address == 0x70b + 160 ? std::optional<std::uint64_t>(42) : std::nullopt;
      },
      &budget);
}

TEST(EvaluateExpression, ComputesTheFramesOfLinkersAndSignals) {
  // The CFA in a procedure linkage table: rsp + 8 + (((rip & 15) >= 11) << 3).
  EXPECT_EQ(Evaluate({0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}), 0x70b + 8 + 8);
  // The CFA in the frame of a signal: the caller's stack pointer, which is stored at rsp + 160.
  EXPECT_EQ(Evaluate({0x77, 0xa0, 1, 0x06}), 42U);
  EXPECT_EQ(Evaluate({0x23, 5}, 10), 15U);
}

TEST(EvaluateExpression, RejectsWhatItCannotCompute) {
  EXPECT_FALSE(Evaluate({}));
  EXPECT_FALSE(Evaluate({0x22}));                       // no operands
  EXPECT_FALSE(Evaluate({0x71, 0}));                    // the register is not known
  EXPECT_FALSE(Evaluate({0x30, 0x06}));                 // the memory is not known
  EXPECT_FALSE(Evaluate({0x0e, 1}));                    // a cut operand
  EXPECT_FALSE(Evaluate({0xff}, 1));                    // unknown opcode
  EXPECT_FALSE(Evaluate({0x2f, 0xfd, 0xff}, 1));        // an endless loop
  EXPECT_FALSE(Evaluate({0x2f, 0x10, 0x00}, 1));        // a jump past the end
  EXPECT_FALSE(Evaluate({0x12, 0x2f, 0xfc, 0xff}, 1));  // too many values
}

}  // namespace
}  // namespace elf
