// Tests what `nettrace import --from fxt` reads from records, byte by byte.
#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nettrace/reader.h"
#include "nettrace/sink.h"
#include "nettrace/source.h"
#include "nettrace/time_ordered_reader.h"
#include "tests/support/bytes.h"
#include "tests/unit/nettrace_tool/event_text.h"
#include "tools/nettrace/import/fxt/fxt_importer.h"
#include "tools/nettrace/import/fxt/fxt_reader.h"
#include "tools/trace/event_json.h"

namespace tools::importing::fxt {
namespace {

// Builds an FXT archive of words and of padded texts, in either byte order.
class Archive {
 public:
  explicit Archive(bool is_big = false) : is_big_(is_big) { Word(0x0016547846040010); }

  Archive& Word(std::uint64_t word) {
    for (unsigned i = 0; i < 8; ++i) {
      bytes_ += static_cast<char>(word >> (8 * (is_big_ ? 7 - i : i)));
    }
    return *this;
  }
  Archive& Stream(const std::string& text) {
    bytes_ += text;
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    return *this;
  }
  // `head` is everything except type and size.
  Archive& Record(std::uint64_t type, std::uint64_t words, std::uint64_t head) {
    return Word(type | words << 4 | head << 16);
  }
  Archive& String(std::uint64_t index, const std::string& text) {
    return Record(2, 1 + (text.size() + 7) / 8, index | text.size() << 16).Stream(text);
  }
  Archive& Provider(const std::string& name) {
    return Record(0, 1 + (name.size() + 7) / 8, 1 | 7 << 4 | name.size() << 36).Stream(name);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  bool is_big_;
  std::string bytes_;
};

struct Imported {
  std::vector<std::string> events;  // From dump --json, beginning with the key "time".
  std::uint64_t lost = 0;
  std::uint64_t skipped = 0;
  std::vector<std::string> damages;
};

Imported Import(const std::string& archive) {
  auto reader =
      FxtReader::Open(std::make_unique<nettrace::MemorySource>(std::as_bytes(std::span(archive))));
  Imported imported;
  if (!reader.ok()) {
    imported.damages.emplace_back(reader.status().message());
    return imported;
  }
  FxtImporter importer(*std::move(reader));
  std::vector<std::byte> bytes;
  const absl::Status ran = importer.Run(std::make_unique<tests::BytesSink>(&bytes));
  EXPECT_TRUE(ran.ok()) << ran;
  imported.skipped = importer.skipped();
  for (const absl::Status& damage : importer.damages()) {
    imported.damages.emplace_back(damage.message());
  }
  auto opened = nettrace::Reader::Open(std::make_unique<nettrace::MemorySource>(bytes));
  EXPECT_TRUE(opened.ok()) << opened.status();
  if (!opened.ok()) return imported;
  nettrace::TimeOrderedReader steps(*std::move(opened));
  trace::PayloadJson payloads(trace::PayloadStyle::kForPrograms);
  using Step = nettrace::Reader::Step;
  for (Step step = steps.Next(); step != Step::kEnd; step = steps.Next()) {
    if (step != Step::kEvent) continue;
    const std::string json = trace::EventToJson(steps.reader(), steps.event(), &payloads);
    imported.events.push_back(json.substr(json.find("\"time\"")));
  }
  EXPECT_TRUE(steps.reader().status().ok()) << steps.reader().status();
  imported.lost = steps.reader().stats().lost;
  return imported;
}

// Returns the head of an event on thread 1, with category 1 and name 2.
std::uint64_t EventHead(std::uint64_t type, std::uint64_t arguments) {
  return type | arguments << 4 | 1 << 8 | 1 << 16 | std::uint64_t{2} << 32;
}

Archive Prologue(bool is_big = false) {
  Archive archive(is_big);
  archive.Provider("other").Record(1, 2, 0).Word(1000);
  archive.String(1, "category").String(2, "name").String(3, "a");
  return archive.Record(3, 3, 1).Word(10).Word(11);
}

TEST(FxtImport, ArgumentsOfAllTypesInBothByteOrders) {
  for (const bool is_big : {false, true}) {
    Archive archive = Prologue(is_big);
    archive.Record(4, 19, EventHead(0, 10)).Word(1500);
    archive.Word(0 | 1 << 4 | 3 << 16);
    archive.Word(1 | 1 << 4 | 3 << 16 | std::uint64_t{0xFFFFFFFE} << 32);
    archive.Word(2 | 1 << 4 | 3 << 16 | std::uint64_t{0xFFFFFFFE} << 32);
    archive.Word(3 | 2 << 4 | 3 << 16).Word(~std::uint64_t{0});
    archive.Word(4 | 2 << 4 | 3 << 16).Word(5);
    archive.Word(5 | 2 << 4 | 3 << 16).Word(std::bit_cast<std::uint64_t>(1.5));
    archive.Word(6 | 2 << 4 | 3 << 16 | std::uint64_t{0x8005} << 32).Stream("hello");
    archive.Word(7 | 2 << 4 | 3 << 16).Word(0x1000);
    archive.Word(8 | 3 << 4 | std::uint64_t{0x8004} << 16).Stream("koid").Word(77);
    archive.Word(9 | 1 << 4 | 3 << 16 | std::uint64_t{1} << 32);
    const Imported imported = Import(archive.bytes());
    EXPECT_EQ(imported.damages, std::vector<std::string>());
    ASSERT_EQ(imported.events.size(), 1U);
    const std::string& event = imported.events[0];
    EXPECT_EQ(tests::ValueOf(event, "time"), "\"1970-01-01T00:00:01.500000000Z\"");
    EXPECT_EQ(tests::ValueOf(event, "provider"), "\"category\"");
    EXPECT_EQ(tests::ValueOf(event, "name"), "\"name\"");
    EXPECT_EQ(tests::ValueOf(event, "pid"), "10");
    EXPECT_EQ(tests::ValueOf(event, "tid"), "11");
    EXPECT_EQ(tests::PayloadOf(event),
              R"({"a":["",-2,4294967294,-1,5,1.5,"hello",4096,true],"koid":77})");
  }
}

TEST(FxtImport, EventsOfAllTypes) {
  Archive archive = Prologue();
  for (std::uint64_t type = 0; type <= 11; ++type) {
    const bool has_number = type != 0 && type != 2 && type != 3;
    archive.Record(4, has_number ? 3 : 2, EventHead(type, 0)).Word(type);
    if (has_number) archive.Word(40 + type);
  }
  const Imported imported = Import(archive.bytes());
  EXPECT_EQ(imported.damages, std::vector<std::string>());
  EXPECT_EQ(imported.skipped, 1U) << "there is no type 11";
  const std::vector<std::string> payloads = {"{}",
                                             R"({"counter.id":41})",
                                             "{}",
                                             "{}",
                                             R"({"duration.end":44})",
                                             R"({"async.id":45})",
                                             R"({"async.id":46})",
                                             R"({"async.id":47})",
                                             R"({"flow.id":48})",
                                             R"({"flow.id":49})",
                                             R"({"flow.id":50})"};
  const std::vector<std::string> opcodes = {"0", "0", "1", "2", "0", "1", "0", "2", "0", "0", "0"};
  ASSERT_EQ(imported.events.size(), payloads.size());
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    EXPECT_EQ(tests::PayloadOf(imported.events[i]), payloads[i]);
    EXPECT_EQ(tests::ValueOf(imported.events[i], "opcode"), opcodes[i]) << i;
  }
}

TEST(FxtImport, OtherRecords) {
  Archive archive = Prologue();
  // The names of a process and of its thread.
  archive.Record(7, 3, 1 | std::uint64_t{0x8004} << 8).Word(10).Stream("proc");
  archive.Record(7, 6, 2 | std::uint64_t{0x8004} << 8 | std::uint64_t{1} << 24)
      .Word(11)
      .Stream("thrd")
      .Word(8 | 3 << 4 | std::uint64_t{0x8007} << 16)
      .Stream("process")
      .Word(10);
  // A log record of thread 1, and a context switch on CPU 3 from it to a thread with inline ids.
  archive.Record(9, 3, 2 | 1 << 16).Word(5).Stream("hi");
  archive.Record(8, 4, 3 | 2 << 8 | 1 << 12).Word(6).Word(20).Word(21);
  // Bulk data, an unknown record, a large one, and a buffer that was full.
  archive.Record(5, 2, 1).Word(1).Record(12, 1, 0);
  archive.Word(15 | 3 << 4).Word(1).Word(2);
  archive.Record(0, 1, 3 | 7 << 4);
  archive.Record(4, 2, EventHead(0, 0)).Word(7);
  const Imported imported = Import(archive.bytes());
  EXPECT_EQ(imported.damages, std::vector<std::string>());
  EXPECT_EQ(imported.skipped, 3U);
  ASSERT_EQ(imported.events.size(), 4U);
  EXPECT_EQ(tests::ValueOf(imported.events[0], "name"), "\"ExistingProcess\"");
  EXPECT_EQ(tests::ValueOf(imported.events[0], "Name"), "\"proc\"");
  EXPECT_EQ(tests::ValueOf(imported.events[1], "name"), "\"Log\"");
  EXPECT_EQ(tests::ValueOf(imported.events[1], "thread"), "\"thrd\"");
  EXPECT_EQ(tests::PayloadOf(imported.events[1]), R"({"message":"hi"})");
  EXPECT_EQ(tests::ValueOf(imported.events[2], "name"), "\"ContextSwitch\"");
  EXPECT_EQ(tests::ValueOf(imported.events[2], "cpu"), "3");
  EXPECT_EQ(tests::ValueOf(imported.events[2], "outgoing.thread"), "11");
  EXPECT_EQ(tests::ValueOf(imported.events[2], "incoming.thread"), "21");
}

TEST(FxtImport, TimesMayGoBack) {
  Archive archive = Prologue();
  // The thread id is as large as a thread index that the file may use, and the writer refuses to
  // remove a thread with such an id. So the importer must not give this id to the thread that it
  // removes when times go back.
  archive.Record(3, 3, 1).Word(10).Word(0xFFFFFFFF);
  for (const std::uint64_t time : {50, 10, 30, 20, 40}) {
    archive.Record(4, 2, EventHead(0, 0)).Word(time);
  }
  const Imported imported = Import(archive.bytes());
  ASSERT_EQ(imported.events.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(tests::ValueOf(imported.events[i], "time"),
              "\"1970-01-01T00:00:00.0" + std::to_string(i + 1) + "0000000Z\"");
  }
  EXPECT_EQ(imported.lost, 0U);
}

TEST(FxtImport, RestoresValuesOfOwnExports) {
  Archive archive;
  archive.Provider("nettrace").String(1, "category").String(2, "name").String(3, "level");
  archive.String(4, "keywords").String(5, "cpu").String(6, "x").String(7, "lost events");
  archive.String(8, "count").String(9, "NetTrace.Arrows").Record(3, 3, 1).Word(10).Word(11);
  archive.Record(4, 8, EventHead(0, 5)).Word(1);
  archive.Word(2 | 1 << 4 | 3 << 16 | std::uint64_t{4} << 32);
  archive.Word(6 | 2 << 4 | 4 << 16 | std::uint64_t{0x8004} << 32).Stream("0x1f");
  archive.Word(2 | 1 << 4 | 5 << 16 | std::uint64_t{2} << 32);
  archive.Word(2 | 1 << 4 | 6 << 16 | std::uint64_t{7} << 32);
  archive.Word(2 | 1 << 4 | 3 << 16 | std::uint64_t{9} << 32);
  // A loss, its counter, and an arrow.
  archive.Record(4, 3, 1 << 4 | 1 << 8 | 7 << 16 | std::uint64_t{7} << 32).Word(2);
  archive.Word(2 | 1 << 4 | 8 << 16 | std::uint64_t{5} << 32);
  archive.Record(4, 3, 1 | 1 << 8 | 7 << 16 | std::uint64_t{7} << 32).Word(2).Word(0);
  archive.Record(4, 3, 8 | 1 << 8 | 9 << 16 | std::uint64_t{2} << 32).Word(2).Word(1);
  const Imported imported = Import(archive.bytes());
  EXPECT_EQ(imported.damages, std::vector<std::string>());
  EXPECT_EQ(imported.lost, 5U);
  ASSERT_EQ(imported.events.size(), 1U);
  EXPECT_EQ(tests::ValueOf(imported.events[0], "level"), "4");
  EXPECT_EQ(tests::ValueOf(imported.events[0], "keywords"), "\"0x1f\"");
  EXPECT_EQ(tests::ValueOf(imported.events[0], "cpu"), "2");
  EXPECT_EQ(tests::PayloadOf(imported.events[0]), R"({"x":7,"level":9})");
}

TEST(FxtImport, DamageHasItsOffset) {
  EXPECT_EQ(Import("").damages,
            std::vector<std::string>{"not a Fuchsia trace: the file has fewer than 8 bytes"});
  EXPECT_EQ(Import("0123456789").damages,
            std::vector<std::string>{"not a Fuchsia trace: the magic number is wrong; name a file "
                                     "in the Fuchsia trace format"});
  const std::string prologue = Prologue().bytes();
  const std::string at = "at byte " + std::to_string(prologue.size()) + ": ";
  const auto damage = [&](Archive archive) {
    archive.Record(4, 2, EventHead(0, 0)).Word(1);
    const Imported imported = Import(archive.bytes());
    EXPECT_EQ(imported.events.size(), 1U) << "the next record is read";
    return imported.damages;
  };
  using Texts = std::vector<std::string>;
  Archive unknown = Prologue();
  unknown.Record(4, 2, 1 << 8 | 99 << 16).Word(1);
  EXPECT_EQ(damage(unknown), Texts{at + "no earlier record defines string 99"});
  Archive few = Prologue();
  few.Record(4, 1, EventHead(0, 0));
  EXPECT_EQ(damage(few), Texts{at + "the record is too short for its contents"});
  Archive argument = Prologue();
  argument.Record(4, 3, EventHead(0, 1)).Word(1).Word(1 | 9 << 4 | 3 << 16);
  EXPECT_EQ(damage(argument), Texts{at + "an argument extends past the end of its record"});
  Archive section = Prologue();
  section.Record(0, 1, 2 | 99 << 4);
  // The strings and threads of Prologue() belong to another provider.
  section.Record(2, 2, 1 | 1 << 16).Stream("c").String(2, "n");
  EXPECT_EQ(damage(section), Texts{at + "provider 99 is used before it is declared"});
  Archive ticks = Prologue();
  ticks.Record(1, 2, 0).Word(0);
  EXPECT_EQ(damage(ticks),
            Texts{at + "invalid rate of 0 ticks a second; it must be from 1 to 2^63 - 1"});
  Archive none = Prologue();
  none.Word(4);
  EXPECT_EQ(Import(none.bytes()).damages,
            Texts{at + "a record has the size 0; the rest of the file is skipped"});
}

TEST(FxtImport, ReadsRecordsBeforeACut) {
  Archive archive = Prologue();
  const std::size_t begin = archive.bytes().size();
  archive.Record(4, 2, EventHead(0, 0)).Word(1).Record(4, 2, EventHead(0, 0)).Word(2);
  for (std::size_t size = begin; size <= archive.bytes().size(); ++size) {
    const Imported imported = Import(archive.bytes().substr(0, size));
    EXPECT_EQ(imported.events.size(), (size - begin) / 16) << size;
    EXPECT_EQ(imported.damages.empty(), (size - begin) % 16 == 0) << size;
  }
}

}  // namespace
}  // namespace tools::importing::fxt
