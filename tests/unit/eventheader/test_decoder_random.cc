// Tests that random events, encoded by an encoder that is written from the specification alone,
// decode to the same values.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "eventheader/decoder.h"
#include "eventheader/json_formatter.h"
#include "tests/support/eventheader/event_bytes.h"
#include "tests/support/eventheader/json_check.h"
#include "tests/support/eventheader/random_event.h"

namespace eh {
namespace {

using testing::AsBytes;
using testing::IsValidJson;
using testing::RandomEvent;
using testing::RandomEventEncoder;
using testing::RandomEventMaker;
using testing::RandomField;
using testing::RandomValue;
using testing::UnitSize;

// A text form of an event, with one line for each item. The tests compare the text of the event
// that was encoded with the text of the decoded event.
class Transcript {
 public:
  void Begin(const std::string& name, const std::string& what) { text_ += name + what + "\n"; }
  void Value(const std::string& name, const std::vector<std::uint64_t>& units) {
    text_ += name + " =";
    for (const std::uint64_t unit : units) text_ += " " + std::to_string(unit);
    text_ += "\n";
  }
  void Definition(int encoding, int format, bool has_tag, int tag, int constant_length) {
    text_ += "  type " + std::to_string(encoding) + " " + std::to_string(format) +
             (has_tag ? " tag " + std::to_string(tag) : "") + " length " +
             std::to_string(constant_length) + "\n";
  }
  void End(const std::string& what) { text_ += what + "\n"; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void ExpectField(const RandomField& field, const RandomValue& value, Transcript* transcript);

void ExpectElement(const RandomField& field, const RandomValue& value, const std::string& name,
                   Transcript* transcript) {
  if (field.encoding != 1) {
    transcript->Value(name, value.units);
    return;
  }
  transcript->Begin(name, "{");
  for (std::size_t i = 0; i < field.members.size(); ++i) {
    ExpectField(field.members[i], value.parts[i], transcript);
  }
  transcript->End("}");
}

void ExpectField(const RandomField& field, const RandomValue& value, Transcript* transcript) {
  constexpr int kOwnFormat[] = {0, 0, 1, 1, 1, 1, 9, 11, 11, 11, 11, 11, 11, 9};
  int format = field.format != 0 ? field.format : kOwnFormat[field.encoding];
  if (field.encoding == 1) format = 0;
  transcript->Definition(field.encoding, format, field.tag.has_value(), field.tag.value_or(0),
                         field.constant_length.value_or(0));
  if (!field.constant_length && !field.variable_array) {
    ExpectElement(field, value, field.name, transcript);
    return;
  }
  transcript->Begin(field.name, "[" + std::to_string(value.parts.size()));
  for (const RandomValue& element : value.parts) ExpectElement(field, element, "", transcript);
  transcript->End("]");
}

std::string Expected(const RandomEvent& event) {
  Transcript transcript;
  for (std::size_t i = 0; i < event.fields.size(); ++i) {
    ExpectField(event.fields[i], event.values[i], &transcript);
  }
  return transcript.text();
}

std::string DecodedText(const EventView& event) {
  Transcript transcript;
  Decoder decoder(event);
  for (Item item; decoder.Next(&item);) {
    const FieldDefinition& field = *item.field;
    const std::string name = item.is_element ? "" : std::string(field.name);
    const bool ends = item.kind == ItemKind::kArrayEnd || item.kind == ItemKind::kStructEnd;
    if (!item.is_element && !ends) {
      transcript.Definition(static_cast<int>(field.encoding), static_cast<int>(field.format),
                            field.has_tag, field.tag, field.array_length);
    }
    switch (item.kind) {
      case ItemKind::kValue: {
        const auto unit = static_cast<std::size_t>(UnitSize(static_cast<int>(field.encoding)));
        EXPECT_EQ(item.bytes.size() % unit, 0u);
        std::vector<std::uint64_t> units;
        for (std::size_t at = 0; at + unit <= item.bytes.size(); at += unit) {
          units.push_back(ReadUnsigned(item.bytes.subspan(at, unit), event.little_endian));
        }
        transcript.Value(name, units);
        break;
      }
      case ItemKind::kArrayBegin:
        transcript.Begin(name, "[" + std::to_string(item.array_length));
        break;
      case ItemKind::kStructBegin:
        transcript.Begin(name, "{");
        break;
      case ItemKind::kArrayEnd:
        transcript.End("]");
        break;
      case ItemKind::kStructEnd:
        transcript.End("}");
        break;
    }
  }
  EXPECT_EQ(decoder.error(), ParseError::kNone) << ParseErrorText(decoder.error());
  EXPECT_TRUE(decoder.rest().empty());
  return transcript.text();
}

class RandomEvents : public ::testing::TestWithParam<bool> {};

TEST_P(RandomEvents, ComeBackAsTheyWere) {
  const bool little_endian = GetParam();
  std::size_t values = 0;
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    const RandomEvent random = RandomEventMaker(seed).Make();
    const std::string bytes = RandomEventEncoder(little_endian).Encode(random);
    EventView event;
    ASSERT_EQ(ParseEvent(AsBytes(bytes), &event), ParseError::kNone) << "seed " << seed;
    EXPECT_EQ(event.header.id, 0x1234);
    EXPECT_EQ(event.activity_id.empty(), !random.has_activity);
    ASSERT_EQ(DecodedText(event), Expected(random)) << "seed " << seed;
    std::string json;
    AppendEventJson(event, "P", &json);
    ASSERT_TRUE(IsValidJson(json)) << "seed " << seed << ": " << json;
    values += random.values.size();
  }
  EXPECT_GT(values, 3000u);  // The generator must make values.
}

// An event whose payload is cut anywhere must give a prefix of its items, then an error. Each cut
// event is a heap allocation of exactly its size, so that the sanitizer detects a read of one byte
// too many.
TEST_P(RandomEvents, CutAnywhereYieldAPrefix) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const RandomEvent random = RandomEventMaker(seed).Make();
    const std::string bytes = RandomEventEncoder(GetParam()).Encode(random);
    EventView whole;
    ASSERT_EQ(ParseEvent(AsBytes(bytes), &whole), ParseError::kNone);
    for (std::size_t size = bytes.size() - whole.data.size(); size < bytes.size(); ++size) {
      const std::vector<std::byte> cut(AsBytes(bytes).begin(),
                                       AsBytes(bytes).begin() + static_cast<std::ptrdiff_t>(size));
      EventView event;
      ASSERT_EQ(ParseEvent(cut, &event), ParseError::kNone);
      Decoder decoder(event);
      Decoder reference(whole);
      Item item;
      Item expected;
      while (decoder.Next(&item)) {
        ASSERT_TRUE(reference.Next(&expected));
        ASSERT_EQ(item.kind, expected.kind);
        ASSERT_EQ(item.bytes.size(), expected.bytes.size());
      }
      ASSERT_EQ(decoder.error(), ParseError::kTruncatedData) << "seed " << seed << " at " << size;
    }
  }
}

// An event with one to five changed bytes, whatever they then mean, must be decoded safely and give
// valid JSON.
TEST_P(RandomEvents, DamagedAreStillJson) {
  std::mt19937 random(1);
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    std::string bytes = RandomEventEncoder(GetParam()).Encode(RandomEventMaker(seed).Make());
    for (int i = 0; i < 5; ++i) {
      bytes[8 + random() % (bytes.size() - 8)] = static_cast<char>(random());
      EventView event;
      if (ParseEvent(AsBytes(bytes), &event) != ParseError::kNone) continue;
      std::string json;
      AppendEventJson(event, "", &json);
      ASSERT_TRUE(IsValidJson(json)) << "seed " << seed << ": " << json;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ByteOrders, RandomEvents, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Little" : "Big"; });

}  // namespace
}  // namespace eh
