// Tests which levels are errors, and the names of levels.
#include <gtest/gtest.h>

#include "tools/base/values.h"
#include "tools/trace/levels.h"

namespace trace {
namespace {

TEST(Levels, CriticalAndErrorAreErrors) {
  for (unsigned level = 0; level <= 255; ++level) {
    EXPECT_EQ(IsError(static_cast<std::uint8_t>(level)), level == 1 || level == 2) << level;
  }
}

TEST(Levels, OptionsAcceptTheNames) {
  for (unsigned level = 1; level <= 255; ++level) {
    const auto parsed = base::ParseLevel(LevelName(static_cast<std::uint8_t>(level)));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, level);
  }
  EXPECT_EQ(LevelName(0), "-");
}

}  // namespace
}  // namespace trace
