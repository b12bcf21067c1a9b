// Tests the names of functions of C++ and Rust.
#include <gtest/gtest.h>

#include <string>

#include "tools/trace/function_name.h"

namespace trace {
namespace {

TEST(FunctionName, DemanglesWithoutArguments) {
  EXPECT_EQ(FunctionName("_ZN4shop5Order4SendEv"), "shop::Order::Send()");
  EXPECT_EQ(FunctionName("_ZNSt6vectorIiSaIiEE9push_backEOi"), "std::vector<>::push_back()");
  EXPECT_EQ(FunctionName("_ZN12_GLOBAL__N_14leafEv.cold"), "(anonymous namespace)::leaf()");
}

TEST(FunctionName, KeepsNamesThatAreNotMangled) {
  for (const char* const name : {"", "main", "_Z", "_Zwrong;", "_start", "[stack]", "a::b(int)"}) {
    EXPECT_EQ(FunctionName(name), name);
  }
}

TEST(FunctionName, RemovesTheHashOfRust) {
  EXPECT_EQ(FunctionName("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
  EXPECT_EQ(FunctionName("_ZN4core3fmt5write17h0123456789abcdeXE"),
            "core::fmt::write::h0123456789abcdeX");
}

TEST(FunctionName, NeedsLittleMemoryForSymbolsThatGrowWhenTheyAreDemangled) {
  // Each pair consists of two copies of the pair before it, so 500 of them have no usable text.
  std::string symbol = "_Z1fSt4pairIiiE";
  for (int i = 0; i < 500; ++i) symbol += "St4pairIS_S_E";
  EXPECT_LE(FunctionName(symbol).size(), symbol.size());
  EXPECT_LE(FunctionName("_Z" + std::string(4000, 'N')).size(), 4002u);
}

}  // namespace
}  // namespace trace
