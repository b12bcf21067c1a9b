#include <gtest/gtest.h>

#include "tools/collector/identity/kernel_symbols.h"

namespace collector {
namespace {

constexpr char kText[] =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 t local_name\n"
    "ffffffff81000000 T global_name\n"
    "0000000000001000 A percpu_thing\n"
    "ffffffffa0000100 t module_function\t[module]\n"
    "ffffffff81000200 W weak\n"
    "ffffffff82000000 D\n"
    "zz T nothing\n"
    "\n"
    "ffffffff81000300 t last";

TEST(KernelSymbols, AddressIsInTheSymbolBeforeIt) {
  const KernelSymbols symbols = KernelSymbols::Parse(kText);
  EXPECT_EQ(symbols.Find(0xFFFFFFFF810001FF, true), "global_name+0x1ff");
  EXPECT_EQ(symbols.Find(0xFFFFFFFF810001FF, false), "global_name");
  EXPECT_EQ(symbols.Find(0xFFFFFFFF81000200, true), "weak");
  EXPECT_EQ(symbols.Find(0xFFFFFFFF81000301, true), "last+0x1");
  EXPECT_EQ(symbols.Find(0xFFFFFFFFA0000104, true), "module_function+0x4");
}

TEST(KernelSymbols, RangeEndsBeforeTheNextSymbol) {
  const KernelSymbols symbols = KernelSymbols::Parse(kText);
  const auto range = symbols.FindRange(0xFFFFFFFF810001FF);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, 0xFFFFFFFF81000000u);
  EXPECT_EQ(range->last, 0xFFFFFFFF810001FFu);
  EXPECT_EQ(range->name, "global_name");
  const auto last = symbols.FindRange(0xFFFFFFFFA0000100);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->last, 0xFFFFFFFFA01000FFu);
  EXPECT_FALSE(symbols.FindRange(0x1000));
}

TEST(KernelSymbols, RangeEndsAtTheLastAddress) {
  const KernelSymbols symbols = KernelSymbols::Parse("fffffffffffff000 T top\n");
  const auto range = symbols.FindRange(0xFFFFFFFFFFFFF010);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->last, 0xFFFFFFFFFFFFFFFFu);
}

TEST(KernelSymbols, AddressInNoSymbolHasNoName) {
  const KernelSymbols symbols = KernelSymbols::Parse(kText);
  EXPECT_EQ(symbols.Find(0, true), "");
  EXPECT_EQ(symbols.Find(0x1000, true), "");
  EXPECT_EQ(symbols.Find(0xFFFFFFFF80FFFFFF, true), "");
  EXPECT_EQ(symbols.Find(0xFFFFFFFF90000000, true), "");
  EXPECT_EQ(symbols.Find(~std::uint64_t{0}, true), "");
}

TEST(KernelSymbols, IgnoresHiddenAddresses) {
  const KernelSymbols symbols =
      KernelSymbols::Parse("0000000000000000 T _stext\n0000000000000000 t other\n");
  EXPECT_TRUE(symbols.empty());
  EXPECT_EQ(symbols.Find(0xFFFFFFFF81000000, true), "");
}

}  // namespace
}  // namespace collector
