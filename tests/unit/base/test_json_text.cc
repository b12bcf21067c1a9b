// Tests the text of numbers in JSON.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tools/base/json_text.h"

namespace base {
namespace {

template <typename Float>
std::string FloatText(Float value) {
  rapidjson::StringBuffer buffer;
  JsonWriter json(buffer);
  PutFloat(&json, value);
  return std::string(buffer.GetString(), buffer.GetSize());
}

TEST(JsonText, FloatsHaveAPointOrAnExponent) {
  EXPECT_EQ(FloatText(0.0), "0.0");
  EXPECT_EQ(FloatText(-0.0), "-0.0");
  EXPECT_EQ(FloatText(3.0), "3.0");
  EXPECT_EQ(FloatText(-1.5), "-1.5");
  EXPECT_EQ(FloatText(0.1f), "0.1");
  EXPECT_EQ(FloatText(1e300), "1e+300");
  EXPECT_EQ(FloatText(std::numeric_limits<double>::denorm_min()), "5e-324");
  EXPECT_EQ(FloatText(std::nan("")), "\"NaN\"");
  EXPECT_EQ(FloatText(-std::numeric_limits<float>::infinity()), "\"-Infinity\"");
}

TEST(JsonText, FloatsHaveAtMost18DigitsBeforeAndAfterThePoint) {
  EXPECT_EQ(FloatText(0.30000000000000004), "0.30000000000000004");
  EXPECT_EQ(FloatText(0.012345678901234567), "0.012345678901234567");
  EXPECT_EQ(FloatText(-0.00043478892597299243), "-4.3478892597299243e-04");
  EXPECT_EQ(FloatText(123456789012345680.0), "123456789012345680.0");
  EXPECT_EQ(FloatText(-134232496969208774656.0), "-1.3423249696920877e+20");
  for (const double value : {0.00043478892597299243, -134232496969208774656.0, 1.0 / 3, 1e18}) {
    EXPECT_EQ(std::stod(FloatText(value)), value);
  }
}

}  // namespace
}  // namespace base
