#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nettrace/payload_encoder.h"
#include "tools/collector/session/trigger.h"
#include "tools/collector/session/trigger_set.h"

namespace collector {
namespace {

using Comparison = Trigger::Comparison;
using Value = Trigger::Value;
using nettrace::Field;
using nettrace::MakeField;
using nettrace::Type;
using nettrace::TypeCode;

Trigger ParseGoodTrigger(const std::string& text) {
  const absl::StatusOr<Trigger> trigger = ParseTrigger(text);
  EXPECT_TRUE(trigger.ok()) << trigger.status();
  return trigger.ok() ? *trigger : Trigger();
}

TEST(ParseTrigger, ProviderEventAndLevel) {
  const Trigger trigger = ParseGoodTrigger("Shop:OrderFailed");
  EXPECT_EQ(trigger.text, "Shop:OrderFailed");
  EXPECT_EQ(trigger.provider, "Shop");
  EXPECT_EQ(trigger.event, "OrderFailed");
  EXPECT_EQ(trigger.max_level, 255);
  EXPECT_TRUE(trigger.where.empty());
  EXPECT_EQ(ParseGoodTrigger("Shop*:*:error").max_level, 2);
  EXPECT_EQ(ParseGoodTrigger(" a:b:3 ").max_level, 3);
}

TEST(ParseTrigger, ConditionsOfAllKinds) {
  const Trigger trigger = ParseGoodTrigger(
      R"(a:b where x == 1 and a.b.c != "t \"\\" and"a field".y<-0x10&&z >= 1.5 and ok == false)");
  ASSERT_EQ(trigger.where.size(), 5u);
  EXPECT_EQ(trigger.where[0].field, std::vector<std::string>{"x"});
  EXPECT_EQ(trigger.where[0].value, Value(std::int64_t{1}));
  EXPECT_EQ(trigger.where[1].field, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(trigger.where[1].comparison, Comparison::kNotEqual);
  EXPECT_EQ(trigger.where[1].value, Value(std::string("t \"\\")));
  EXPECT_EQ(trigger.where[2].field, (std::vector<std::string>{"a field", "y"}));
  EXPECT_EQ(trigger.where[2].comparison, Comparison::kLess);
  EXPECT_EQ(trigger.where[2].value, Value(std::int64_t{-16}));
  EXPECT_EQ(trigger.where[3].comparison, Comparison::kGreaterOrEqual);
  EXPECT_EQ(trigger.where[3].value, Value(1.5));
  EXPECT_EQ(trigger.where[4].value, Value(false));
}

TEST(ParseTrigger, NumbersUpToTheirLimits) {
  const auto value = [](const std::string& text) {
    return ParseGoodTrigger("a:b where x > " + text).where[0].value;
  };
  EXPECT_EQ(value("9223372036854775807"), Value(std::numeric_limits<std::int64_t>::max()));
  EXPECT_EQ(value("9223372036854775808"), Value(std::uint64_t{1} << 63));
  EXPECT_EQ(value("0xffffffffffffffff"), Value(~std::uint64_t{0}));
  EXPECT_EQ(value("-9223372036854775808"), Value(std::numeric_limits<std::int64_t>::min()));
  EXPECT_EQ(value("1e3"), Value(1000.0));
}

TEST(ParseTrigger, ErrorsHaveTheirColumn) {
  const struct {
    std::string text;
    int column;
    const char* why;
  } kCases[] = {
      {"", 1, "name of the provider is missing"},
      {":x", 1, "name of the provider is missing"},
      {"Shop", 5, "expected a colon"},
      {"Shop:", 6, "name of the event is missing"},
      {"Shop:x:loud", 8, "the level is not"},
      {"Shop:x:1:2", 9, "unexpected ':' after the level"},
      {"Shop:x when y == 1", 8, "'where' or the end"},
      {"Shop:x where", 13, "the name of a field"},
      {"Shop:x where y", 15, "== != < <= > >="},
      {"Shop:x where y = 1", 16, "== != < <= > >="},
      {"Shop:x where y ==", 18, "a number, true, false"},
      {"Shop:x where y == z", 19, "a number, true, false"},
      {"Shop:x where y == 1e", 19, "a number, true, false"},
      {"Shop:x where y == 0x10000000000000000", 19, "a number"},
      {"Shop:x where y == -9223372036854775809x", 19, "a number"},
      {"Shop:x where y == \"z", 19, "closing"},
      {"Shop:x where y == \"z\\n\"", 22, "invalid escape"},
      {"Shop:x where y < \"z\"", 16, "with == or !="},
      {"Shop:x where y == 1 or z == 2", 21, "'and' or the end"},
      {"Shop:x where y. == 1", 17, "the name of a field"},
      {std::string(5000, 'x'), 1, "longer than 4096"},
  };
  for (const auto& wrong : kCases) {
    const std::string message(ParseTrigger(wrong.text).status().message());
    EXPECT_NE(message.find("column " + std::to_string(wrong.column) + ": "), std::string::npos)
        << message;
    EXPECT_NE(message.find(wrong.why), std::string::npos) << message;
  }
  std::string many = "a:b where x == 1";
  for (int i = 0; i < 16; ++i) many += " and x == 1";
  EXPECT_FALSE(ParseTrigger(many).ok());
  std::string deep = "a:b where x";
  for (int i = 0; i < 16; ++i) deep += ".x";
  EXPECT_FALSE(ParseTrigger(deep + " == 1").ok());
}

// A kind of event, and a set of triggers that is evaluated for its events.
class TriggerSetTest : public ::testing::Test {
 protected:
  TriggerSetTest() {
    metadata_.provider = "Shop";
    metadata_.name = "Request";
    metadata_.level = 4;
  }

  void SetFields(std::vector<Field> fields) { metadata_.fields = std::move(fields); }
  nettrace::PayloadEncoder Encode() { return nettrace::PayloadEncoder(&metadata_.fields); }

  // Returns the index of the first of the triggers that fires for an event with this payload, or
  // -1.
  int FiredAt(const std::vector<std::string>& texts, std::span<const std::byte> payload) {
    int fired = -1;
    std::vector<Trigger> triggers;
    triggers.reserve(texts.size());
    for (const std::string& text : texts) triggers.push_back(ParseGoodTrigger(text));
    TriggerSet set(triggers, [&fired](std::size_t index, std::uint64_t timestamp) {
      EXPECT_EQ(timestamp, 1000u);
      EXPECT_EQ(fired, -1);
      fired = static_cast<int>(index);
    });
    Check(&set, Event(Slot(3, 1), 1000, payload));
    return fired;
  }
  bool Fires(const std::string& text, std::span<const std::byte> payload) {
    return FiredAt({text}, payload) == 0;
  }
  bool FiresWhere(const std::string& condition, std::span<const std::byte> payload) {
    return Fires("Shop:Request where " + condition, payload);
  }

  static ConvertedEvent Event(Slot form, std::uint64_t timestamp,
                              std::span<const std::byte> payload = {}) {
    ConvertedEvent event;
    event.kind.form = form;
    event.timestamp = timestamp;
    event.payload = payload;
    return event;
  }
  void Check(TriggerSet* set, const ConvertedEvent& event) {
    set->Check(event, [this] {
      ++asked_;
      return metadata_;
    });
  }

  nettrace::EventMetadata metadata_;
  int asked_ = 0;  // Number of requests for the metadata.
};

TEST_F(TriggerSetTest, NamesAreExactOrPatterns) {
  for (const char* text : {"Shop:Request", "Sh*:Re?uest", "*:*", "Shop:*:4", "Shop:Request:info"}) {
    EXPECT_TRUE(Fires(text, {})) << text;
  }
  for (const char* text : {"Shop2:Request", "shop:Request", "Shop:Reques", "Shop:*:3"}) {
    EXPECT_FALSE(Fires(text, {})) << text;
  }
  metadata_.level.reset();
  EXPECT_TRUE(Fires("Shop:*", {}));
  EXPECT_FALSE(Fires("Shop:*:5", {}));
}

TEST_F(TriggerSetTest, TheFirstThatMatchesFires) {
  EXPECT_EQ(FiredAt({"x:y", "Shop:*", "Shop:Request"}, {}), 1);
}

TEST_F(TriggerSetTest, IntegersAreComparedWithTheirSign) {
  SetFields(
      {MakeField<std::int32_t>("i"), MakeField<std::uint64_t>("u"), MakeField<std::uint8_t>("b")});
  nettrace::PayloadEncoder encoder = Encode();
  encoder.Int(-1).UInt(~std::uint64_t{0}).UInt(200);
  const auto payload = *encoder.Finish();
  for (const char* text :
       {"i == -1", "i < 0", "i <= -1", "i < 18446744073709551615", "i != 4294967295",
        "u > 9223372036854775807", "u == 0xffffffffffffffff", "u > -1", "b >= 200", "b < 200.5",
        "b != 201", "i < 0.5", "u > 1e3", "b == true", "i == -1 and b == 200"}) {
    EXPECT_TRUE(FiresWhere(text, payload)) << text;
  }
  for (const char* text :
       {"i > 0", "i == 4294967295", "u < 0", "u == -1", "b > 200", "b == \"200\"", "b != \"200\"",
        "i == -1 and b == 201", "missing == 1", "missing != 1", "u == 18446744073709551616.0"}) {
    EXPECT_FALSE(FiresWhere(text, payload)) << text;
  }
}

TEST_F(TriggerSetTest, FloatsAndBooleans) {
  SetFields({MakeField<float>("f"),
             MakeField<double>("d"),
             MakeField<bool>("t"),
             {"t32", Type::Simple(TypeCode::kBoolean32)}});
  nettrace::PayloadEncoder encoder = Encode();
  encoder.Single(0.1F).Double(-2.5).Bool(true).Bool(false);
  const auto payload = *encoder.Finish();
  for (const char* text : {"f == 0.1", "f > 0", "d == -2.5", "d < -2", "t == true", "t != false",
                           "t == 1", "t32 == false", "t32 == 0"}) {
    EXPECT_TRUE(FiresWhere(text, payload)) << text;
  }
  for (const char* text : {"f != 0.1", "d > 0", "t == false", "t32 == true", "t == 2"}) {
    EXPECT_FALSE(FiresWhere(text, payload)) << text;
  }
  nettrace::PayloadEncoder nan = Encode();
  nan.Single(std::numeric_limits<float>::quiet_NaN()).Double(0).Bool(false).Bool(false);
  const auto not_a_number = *nan.Finish();
  EXPECT_FALSE(FiresWhere("f == 0", not_a_number));
  EXPECT_FALSE(FiresWhere("f < 0", not_a_number));
}

TEST_F(TriggerSetTest, TextIsEqualInEitherEncoding) {
  SetFields({MakeField<std::string_view>("utf8"), MakeField<std::u16string_view>("utf16")});
  nettrace::PayloadEncoder encoder = Encode();
  encoder.Utf8("Käse \xF0\x9F\xA7\x80").Utf16(u"K\u00e4se \U0001F9C0");
  const auto payload = *encoder.Finish();
  for (const char* field : {"utf8", "utf16"}) {
    const std::string name = field;
    EXPECT_TRUE(FiresWhere(name + " == \"Käse \xF0\x9F\xA7\x80\"", payload)) << name;
    EXPECT_TRUE(FiresWhere(name + " != \"Käse\"", payload)) << name;
    EXPECT_FALSE(FiresWhere(name + " == \"Käse\"", payload)) << name;
    EXPECT_FALSE(FiresWhere(name + " == \"\"", payload)) << name;
    EXPECT_FALSE(FiresWhere(name + " == 0", payload)) << name;
  }
}

TEST_F(TriggerSetTest, FieldsOfStructsAndElementsOfArrays) {
  const Type item =
      Type::Object({MakeField<std::uint32_t>("price"), MakeField<std::string_view>("name")});
  SetFields({MakeField<std::uint32_t>("price"),
             {"item", item},
             {"items", Type::Array(item)},
             {"numbers", Type::Array(Type::Simple(TypeCode::kInt16))}});
  nettrace::PayloadEncoder encoder = Encode();
  encoder.UInt(1).BeginObject().UInt(2).Utf8("two").EndObject();
  encoder.BeginArray(2);
  encoder.BeginObject().UInt(3).Utf8("three").EndObject();
  encoder.BeginObject().UInt(4).Utf8("four").EndObject().EndArray();
  encoder.BeginArray(2).Int(-5).Int(6).EndArray();
  const auto payload = *encoder.Finish();
  for (const char* text :
       {"price == 1", "item.price == 2", "item.name == \"two\"", "items.price == 3",
        "items.price == 4", "items.name == \"four\"", "numbers == -5", "numbers == 6"}) {
    EXPECT_TRUE(FiresWhere(text, payload)) << text;
  }
  for (const char* text : {"price == 2", "item.price == 1", "items.price == 2", "numbers == 5",
                           "item == 2", "item.price.price == 2", "name == \"two\""}) {
    EXPECT_FALSE(FiresWhere(text, payload)) << text;
  }
}

TEST_F(TriggerSetTest, ReadsThePartOfAPayloadThatFitsItsFields) {
  SetFields({MakeField<std::uint32_t>("a"), MakeField<std::uint32_t>("b")});
  nettrace::PayloadEncoder encoder = Encode();
  encoder.UInt(1).UInt(2);
  const auto payload = *encoder.Finish();
  EXPECT_TRUE(FiresWhere("a == 1", payload.first(6)));
  EXPECT_FALSE(FiresWhere("b == 2", payload.first(6)));
  EXPECT_FALSE(FiresWhere("a == 1", {}));
}

TEST_F(TriggerSetTest, AFormIsDecidedOnce) {
  std::vector<std::uint64_t> fired;
  TriggerSet set(
      {ParseGoodTrigger("Shop:Request")},
      [&fired](std::size_t, std::uint64_t timestamp) { fired.push_back(timestamp); },
      absl::ZeroDuration());
  for (std::uint64_t i = 1; i < 4; ++i) Check(&set, Event(Slot(0, 1), i));
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(fired, (std::vector<std::uint64_t>{1, 2, 3}));
  // The slot with index 0 now belongs to another form, so the selector is evaluated again.
  metadata_.name = "Other";
  for (std::uint64_t i = 4; i < 7; ++i) Check(&set, Event(Slot(0, 2), i));
  EXPECT_EQ(asked_, 2);
  EXPECT_EQ(fired.size(), 3u);
}

TEST_F(TriggerSetTest, AStormFiresOnceInAPause) {
  std::vector<std::uint64_t> fired;
  TriggerSet set(
      {ParseGoodTrigger("Shop:Request")},
      [&fired](std::size_t, std::uint64_t timestamp) { fired.push_back(timestamp); },
      absl::Nanoseconds(100));
  for (std::uint64_t i = 1000; i < 1300; ++i) Check(&set, Event(Slot(0, 1), i));
  EXPECT_EQ(fired, (std::vector<std::uint64_t>{1000, 1100, 1200}));
}

TEST_F(TriggerSetTest, FormsThatComeAndGoTakeNoMoreMemory) {
  int fired = 0;
  TriggerSet set(
      {ParseGoodTrigger("Shop:Request")}, [&fired](std::size_t, std::uint64_t) { ++fired; },
      absl::ZeroDuration());
  constexpr int kForms = 3 * static_cast<int>(TriggerSet::kMaxPlans);
  for (int i = 0; i < kForms; ++i) {
    Check(&set, Event(Slot(static_cast<std::uint32_t>(i), 1), 1));
  }
  EXPECT_EQ(fired, kForms);
  EXPECT_EQ(asked_, kForms);
  Check(&set, Event(Slot(0, 1), 1));
  EXPECT_EQ(fired, kForms + 1);
  EXPECT_EQ(asked_, kForms + 1);
}

}  // namespace
}  // namespace collector
