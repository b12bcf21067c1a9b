// Tests two parts of `nettrace export --to fxt`: the records after its tables of texts and threads
// have no room left, and the arguments of events. tests/conformance reads whole files strictly.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <list>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nettrace/sink.h"
#include "tools/nettrace/export/fxt/arguments.h"
#include "tools/nettrace/export/fxt/fxt_exporter.h"

namespace tools::fxt {
namespace {

using Kind = Argument::Kind;

// Returns the arguments as "name=KTEXT". K is the kind: n for null, f and t for booleans, d for a
// number, " for a text.
std::vector<std::string> FieldsOf(std::string_view payload_json, std::vector<Argument> before = {},
                                  std::string_view prefix = "") {
  AppendFields(payload_json, prefix, &before);
  std::vector<std::string> fields;
  for (const Argument& argument : before) {
    constexpr std::string_view kKinds = "nftd\"";
    fields.push_back(argument.name + "=" + kKinds[static_cast<std::size_t>(argument.kind)] +
                     argument.text);
  }
  return fields;
}

TEST(FxtArguments, MembersAndElementsAreNamedByTheirParents) {
  using Fields = std::vector<std::string>;
  EXPECT_EQ(FieldsOf("{}"), Fields());
  EXPECT_EQ(FieldsOf(R"({"a":1,"b":null,"c":true,"d":false,"e":"x","f":-1.5e3})"),
            (Fields{"a=d1", "b=n", "c=t", "d=f", "e=\"x", "f=d-1.5e3"}));
  EXPECT_EQ(
      FieldsOf(R"({"s":{"m":1,"t":{"n":2}},"a":[3,[4,5],{"o":6}],"p":7})"),
      (Fields{"s.m=d1", "s.t.n=d2", "a[0]=d3", "a[1][0]=d4", "a[1][1]=d5", "a[2].o=d6", "p=d7"}));
  EXPECT_EQ(FieldsOf(R"({"s":{},"a":[],"b":[{},[]]})"),
            (Fields{"s=\"{}", "a=\"[]", "b[0]=\"{}", "b[1]=\"[]"}));
}

TEST(FxtArguments, FieldsWithoutRoomAreJson) {
  std::string payload = "{";
  for (int i = 1; i <= 15; ++i) absl::StrAppend(&payload, i == 1 ? "" : ",", "\"", i, "\":", i);
  std::vector<std::string> fields = FieldsOf(payload + "}");
  ASSERT_EQ(fields.size(), kMaxArguments);
  EXPECT_EQ(fields.back(), "15=d15");
  fields = FieldsOf(payload + R"(,"s":{"x":"y","z":[true,null,1.5]}})");
  ASSERT_EQ(fields.size(), kMaxArguments);
  EXPECT_EQ(fields[13], "14=d14");
  EXPECT_EQ(fields[14], R"(more="{"15":15,"s.x":"y","s.z[0]":true,"s.z[1]":null,"s.z[2]":1.5})");
  // Arguments before those of the fields are kept, and leave less room for the fields.
  fields = FieldsOf(payload + "}", {{"level", Kind::kNumber, "4"}});
  ASSERT_EQ(fields.size(), kMaxArguments);
  EXPECT_EQ(fields.front(), "level=d4");
  EXPECT_EQ(fields.back(), R"(more="{"14":14,"15":15})");
}

TEST(FxtArguments, FieldsHaveOtherNamesThanProperties) {
  using Fields = std::vector<std::string>;
  EXPECT_EQ(FieldsOf(R"({"level":1,"cpu":2})", {{"level", Kind::kNumber, "4"}}),
            (Fields{"level=d4", "payload.level=d1", "cpu=d2"}));
  EXPECT_EQ(
      FieldsOf(R"({"level":1,"a":{"b":2},"c":[]})", {{"stop.level", Kind::kNumber, "4"}}, "stop."),
      (Fields{"stop.level=d4", "stop.payload.level=d1", "stop.a.b=d2", "stop.c=\"[]"}));
}

TEST(FxtArguments, LongNamesAreCut) {
  const std::string name(2000, 'n');
  const std::vector<std::string> fields = FieldsOf("{\"" + name + "\":{\"m\":1}}");
  ASSERT_EQ(fields.size(), 1);
  EXPECT_EQ(fields[0], CutText(CutText(name, kMaxName) + ".m", kMaxName) + "=d1");
}

TEST(FxtArguments, TextIsCutBetweenCharacters) {
  EXPECT_EQ(CutText("abcdef", 6), "abcdef");
  EXPECT_EQ(CutText("abcdef", 5), "ab…");
  EXPECT_EQ(CutText("aééé", 6), "aé…");
  EXPECT_EQ(CutText("éééé", 6), "é…");
}

// Reads the records of strings and threads, and the events, whose references to strings and threads
// it resolves.
class Records {
 public:
  explicit Records(std::span<const std::byte> bytes) : bytes_(bytes) {
    for (std::size_t at = 0; at < bytes_.size() && !HasFailure(); at += Read(at)) {
    }
  }

  struct Event {
    std::string category;
    std::string name;
    std::pair<std::uint64_t, std::uint64_t> ids;
    std::uint64_t ticks;
  };
  const std::vector<Event>& events() const { return events_; }

 private:
  static bool HasFailure() { return ::testing::Test::HasFailure(); }

  std::uint64_t Word(std::size_t at) const {
    std::uint64_t word = 0;
    EXPECT_LE(at + sizeof word, bytes_.size());
    if (!HasFailure()) std::memcpy(&word, &bytes_[at], sizeof word);
    return word;
  }
  // Reads a record; returns its size.
  std::size_t Read(std::size_t at) {
    const std::uint64_t head = Word(at);
    const std::size_t size = (head >> 4 & 0xFFF) * 8;
    EXPECT_GT(size, 0);
    switch (static_cast<RecordType>(head & 0xF)) {
      case RecordType::kString:
        strings_[head >> 16 & 0x7FFF].assign(reinterpret_cast<const char*>(&bytes_[at + 8]),
                                             head >> 32 & 0x7FFF);
        break;
      case RecordType::kThread:
        threads_[head >> 16 & 0xFF] = {Word(at + 8), Word(at + 16)};
        break;
      case RecordType::kEvent:
        EXPECT_TRUE(strings_.contains(head >> 32 & 0xFFFF));
        EXPECT_TRUE(strings_.contains(head >> 48));
        EXPECT_TRUE(threads_.contains(head >> 24 & 0xFF));
        events_.push_back({strings_[head >> 32 & 0xFFFF], strings_[head >> 48],
                           threads_[head >> 24 & 0xFF], Word(at + 8)});
        break;
      default:
        break;
    }
    return size;
  }

  const std::span<const std::byte> bytes_;
  std::map<std::uint64_t, std::string> strings_;
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> threads_;
  std::vector<Event> events_;
};

class FxtTest : public ::testing::Test {
 protected:
  FxtTest() {
    event_.thread = event_.capture_thread = &thread_;
    event_.labels = &labels_;
    event_.processor = nettrace::kNoProcessor;
  }

  void Add(const std::string& name, std::uint64_t tid, absl::Time time) {
    nettrace::EventMetadata& metadata = rows_.emplace_back();
    metadata.provider = "P";
    metadata.name = name;
    metadata.fields = fields_;
    event_.metadata = &metadata;
    thread_.process_id = 7;
    thread_.thread_id = tid;
    exporting::ExportedEvent exported;
    exported.event = &event_;
    exported.time = time;
    exported.payloads = &payloads_;
    ASSERT_TRUE(exporter_.OnEvent(exported).ok());
  }

  nettrace::MemorySink sink_;
  FxtExporter exporter_{&sink_};
  trace::PayloadJson payloads_{trace::PayloadStyle::kForPrograms};
  std::list<nettrace::EventMetadata> rows_;  // one for each event
  std::vector<nettrace::Field> fields_;      // fields of the next event
  nettrace::ThreadInfo thread_;
  nettrace::Labels labels_;
  nettrace::Event event_;
};

TEST_F(FxtTest, FullTablesStartAgain) {
  // More than twice the number of texts that the table holds. 300 threads take turns.
  constexpr int kEvents = 70'000;
  const auto name = [](int i) { return "event " + std::to_string(i); };
  for (int i = 0; i < kEvents; ++i) {
    Add(name(i), static_cast<std::uint64_t>(i % 300 + 1), absl::FromUnixNanos(i));
  }
  ASSERT_TRUE(exporter_.Finish().ok());
  const Records records(sink_.bytes());
  ASSERT_EQ(records.events().size(), kEvents);
  for (int i = 0; i < kEvents; ++i) {
    const Records::Event& event = records.events()[static_cast<std::size_t>(i)];
    ASSERT_EQ(event.category, "P");
    ASSERT_EQ(event.name, name(i));
    ASSERT_EQ(event.ids, std::pair(std::uint64_t{7}, static_cast<std::uint64_t>(i % 300 + 1)));
    ASSERT_EQ(event.ticks, static_cast<std::uint64_t>(i));
  }
  EXPECT_EQ(exporter_.Remark(), "");
}

TEST_F(FxtTest, LongTextsLeaveRoomForTheOthers) {
  constexpr std::uint16_t kLength = 20'000;
  std::string payload;
  for (const char* const name : {"a", "b"}) {
    fields_.push_back(
        {name, nettrace::Type::Array(nettrace::Type::Simple(nettrace::TypeCode::kUtf8CodeUnit))});
    payload += {static_cast<char>(kLength % 256), static_cast<char>(kLength / 256)};
    payload.append(kLength, 'x');
  }
  event_.payload = std::as_bytes(std::span(payload));
  Add("Long", 1, absl::FromUnixNanos(1));
  ASSERT_TRUE(exporter_.Finish().ok());
  ASSERT_EQ(Records(sink_.bytes()).events().size(), 1);
  EXPECT_EQ(exporter_.Remark(), "shortened 2 texts, because the size of an fxt record is limited");
}

TEST_F(FxtTest, TimeBefore1970IsItsBeginning) {
  Add("Early", 1, absl::FromUnixNanos(-1));
  Add("Earliest", 1, absl::InfinitePast());
  ASSERT_TRUE(exporter_.Finish().ok());
  const Records records(sink_.bytes());
  ASSERT_EQ(records.events().size(), 2);
  for (const Records::Event& event : records.events()) EXPECT_EQ(event.ticks, 0);
}

}  // namespace
}  // namespace tools::fxt
