// Tests the readable names of functions.
#include <gtest/gtest.h>

#include <string>

#include "tools/trace/function_name.h"

namespace trace {
namespace {

TEST(ReadableFunction, KeepsOtherNames) {
  for (const std::string name :
       {"", "main", "_start", "_Z", "_ZN", "_R", "int [shop] Shop::Compiled() [Tier0]"}) {
    EXPECT_EQ(ReadableFunction(name), name);
  }
}

TEST(ReadableFunction, ShowsNamesOfCpp) {
  EXPECT_EQ(ReadableFunction("_ZN4Shop3buyEi"), "Shop::buy()");
  EXPECT_EQ(ReadableFunction("_Z4saleIiEvT_"), "sale<>()");
}

TEST(ReadableFunction, ShowsNamesOfRust) {
  EXPECT_EQ(ReadableFunction("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"),
            "core::fmt::Formatter::pad");
  EXPECT_EQ(ReadableFunction(
                "_ZN47_$LT$shop..Sale$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE"),
            "<shop::Sale as core::fmt::Debug>::fmt");
  EXPECT_EQ(ReadableFunction("_RNvC4shop3buy"), "shop::buy");
}

TEST(ReadableFunction, BoundsHostileNames) {
  // Each argument has twice the size of the one before it.
  std::string doubles = "_Z1f";
  for (int i = 0; i < 60; ++i) doubles += "1AIS_S_E";
  EXPECT_LE(ReadableFunction(doubles).size(), 4096u);
  EXPECT_LE(ReadableFunction("_Z" + std::string(100000, 'P')).size(), 100002u);
  EXPECT_LE(ReadableFunction("_Z1f" + std::string(4000, 'N')).size(), 4096u);
  const std::string exact = "_RNvC1a4094" + std::string(4094, 'b');  // "a::", and 4094 bytes
  EXPECT_EQ(ReadableFunction(exact), exact);
}

}  // namespace
}  // namespace trace
