// Tests what `nettrace import --from ctf` reads from metadata and streams, byte by byte.
// tests/conformance has traces of other writers.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nettrace/reader.h"
#include "nettrace/sink.h"
#include "tests/support/bytes.h"
#include "tests/unit/nettrace_tool/event_text.h"
#include "tools/nettrace/import/byte_file.h"
#include "tools/nettrace/import/ctf/bit_reader.h"
#include "tools/nettrace/import/ctf/ctf_importer.h"
#include "tools/nettrace/import/ctf/layout.h"
#include "tools/nettrace/import/ctf/metadata_text.h"
#include "tools/nettrace/import/ctf/tsdl_parser.h"
#include "tools/trace/event_json.h"

namespace tools::importing::ctf {
namespace {

using namespace std::string_literals;

std::string Error(const std::string& tsdl) {
  const absl::StatusOr<Metadata> metadata = ParseTsdl(tsdl);
  if (!metadata.ok()) return std::string(metadata.status().message());
  return std::string(MakeLayout(*metadata).status().message());
}

TEST(TsdlParser, DeclarationsAreRead) {
  const absl::StatusOr<Metadata> metadata = ParseTsdl(R"(/* CTF 1.8 */
    // A comment.
    typealias integer { size = 27; align = 1; signed = false; map = clock.mono.value; } := u27_t;
    typealias integer { size = 8; encoding = UTF8; base = 0x10; } := unsigned char;
    trace { major = 1; minor = 8; byte_order = be; uuid = "2a6422d0-6cee-11e0-8c08-cb07d7b3a564"; };
    env { host = "a\"b\x41\n"; number = -5; };
    clock { name = mono; freq = 1000; offset_s = 0x10; offset = 7; };
    struct s { unsigned char a[3], *b; };
  )");
  EXPECT_EQ(metadata.status().message(), "line 8: found '*' instead of a name");
  const absl::StatusOr<Metadata> good = ParseTsdl(
      "typealias integer { size = 27; align = 1; } := u27_t;"
      "typealias integer { size = 8; encoding = UTF8; } := unsigned char;"
      "trace { byte_order = be; uuid = \"2a6422d0-6cee-11e0-8c08-cb07d7b3a564\"; };"
      "env { host = \"a\\\"b\\x41\\n\"; number = -5; };"
      "clock { name = mono; freq = 1000; offset_s = 0x10; offset = -7; };"
      "struct s { unsigned char a[3], b[2][4]; } align(32);"
      "event { id = 3; name = \"p:e\"; loglevel = 4; model.emf.uri = \"x\"; fields := struct s; "
      "};");
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ(good->byte_order, ByteOrder::kBig);
  ASSERT_TRUE(good->uuid);
  EXPECT_EQ((*good->uuid)[15], std::byte{0x64});
  ASSERT_EQ(good->environment.size(), 2U);
  EXPECT_EQ(good->environment[0].second, "a\"bA\n");
  EXPECT_EQ(good->environment[1].second, "-5");
  ASSERT_EQ(good->clocks.size(), 1U);
  EXPECT_EQ(good->clocks[0].frequency, 1000U);
  EXPECT_EQ(good->clocks[0].offset_seconds, 16);
  EXPECT_EQ(good->clocks[0].offset, -7);
  ASSERT_EQ(good->events.size(), 1U);
  EXPECT_EQ(good->events[0].name, "p:e");
  const Type& fields = *good->events[0].fields;
  EXPECT_EQ(fields.align, 32U);
  ASSERT_EQ(fields.members.size(), 2U);
  EXPECT_EQ(fields.members[0].type->count, 3U);
  EXPECT_EQ(fields.members[1].type->count, 2U) << "an array of 2 arrays of 4";
  EXPECT_EQ(fields.members[1].type->element->count, 4U);
  EXPECT_TRUE(fields.members[0].type->element->is_text);
}

TEST(TsdlParser, ErrorsHaveTheirLine) {
  EXPECT_EQ(Error("\n\nnothing { };"),
            "line 3: 'nothing' is not a declaration; use e.g. trace, env, clock, stream or event");
  EXPECT_EQ(Error("/* no end"), "line 1: a comment has no '*/' at its end");
  EXPECT_EQ(Error("env { a = \"b\n\"; };"),
            "line 1: a string literal has no closing quote on its line");
  EXPECT_EQ(Error("env { a = 99999999999999999999; };"),
            "line 1: a number does not fit into 64 bits");
  EXPECT_EQ(Error("event { fields := struct { none x; }; };"),
            "line 1: the type 'none' is not declared");
  EXPECT_EQ(Error("typealias integer { size = 65; } := i;"),
            "line 1: an integer of 65 bits; 1 to 64 bits are supported");
  EXPECT_EQ(Error("typealias integer { size = 8; align = 3; } := i;"),
            "line 1: align 3 is not a power of 2 up to 1048576");
  EXPECT_EQ(
      Error("typealias floating_point { exp_dig = 5; mant_dig = 11; } := half;"),
      "line 1: a floating_point has exp_dig = 5 and mant_dig = 11; supported are 8 and 24, and 11 "
      "and 53");
  EXPECT_EQ(Error("trace { minor = 9; };"), "line 1: only CTF 1.8 can be read, not minor = 9");
  EXPECT_EQ(Error("clock { freq = 0; };"), "line 1: the clock's freq is 0; it must be at least 1");
  EXPECT_EQ(Error("stream { id = 1; };\nstream { id = 1; };"),
            "line 2: stream 1 is declared twice");
  EXPECT_EQ(Error("stream { };\nevent { stream_id = 4; };"), "line 2: stream 4 is not declared");
  EXPECT_EQ(Error("event {"), "line 1: a block has no '}' at its end");
  EXPECT_EQ(Error("@"), "line 1: unexpected byte 0x40");
}

TEST(TsdlParser, ReferencesMustBeToIntegersBefore) {
  const std::string u8 = "typealias integer { size = 8; signed = false; } := u8;";
  EXPECT_EQ(Error(u8 + "event { fields := struct { u8 x[n]; u8 n; }; };"),
            "line 1: 'n', a length or a variant's tag, is not declared before its use");
  EXPECT_EQ(Error(u8 + "event { fields := struct { string n; u8 x[n]; }; };"),
            "line 1: 'n', a length or a variant's tag, is not an integer");
  EXPECT_EQ(Error(u8 + "event { fields := struct { u8 n; variant <n> { u8 a; } v; }; };"),
            "line 1: the tag of a variant is not an enum");
  EXPECT_EQ(Error(u8 + "event { fields := struct { struct { u8 n; } s; u8 x[s.n]; }; };"), "");
  EXPECT_EQ(Error(u8 + "stream { event.context := struct { u8 n; }; };"
                       "event { fields := struct { u8 x[stream.event.context.n]; }; };"),
            "");
}

TEST(TsdlParser, DepthAndSizeAreBounded) {
  std::string deep = "event { fields := ";
  for (int i = 0; i < 100'000; ++i) deep += "struct { ";
  EXPECT_EQ(Error(deep), "line 1: types are nested more than 64 levels deep");
  std::string doubling = "typealias integer { size = 8; } := u8; struct s0 { u8 a; };";
  for (int i = 1; i < 40; ++i) {
    const std::string before = "struct s" + std::to_string(i - 1);
    absl::StrAppend(&doubling, "struct s", i, " { ", before, " a; ", before, " b; };");
  }
  doubling += "event { fields := struct s39; };";
  EXPECT_NE(Error(doubling).find("more than 1048576 fields"), std::string::npos) << Error(doubling);
}

TEST(MetadataText, Ctf2IsNamed) {
  EXPECT_TRUE(
      absl::IsUnimplemented(MetadataText("\x1E{\"type\":\"preamble\",\"version\":2}\n").status()));
}

TEST(MetadataText, PacketsOfBothByteOrders) {
  const std::string uuid(16, 'u');
  const std::string little =
      "\x57\x1D\xD1\x75" + uuid + "\0\0\0\0"s + "\x40\x01\0\0"s + "\x50\x01\0\0"s + "\0\0\0\1\x08"s;
  EXPECT_EQ(MetadataText(little + "abcXX").value_or(""), "abc");
  EXPECT_EQ(MetadataText(little + "abcXX" + little + "defXX").value_or(""), "abcdef");
  const std::string big =
      "\x75\xD1\x1D\x57" + uuid + "\0\0\0\0"s + "\0\0\x01\x40"s + "\0\0\x01\x50"s + "\0\0\0\1\x08"s;
  EXPECT_EQ(MetadataText(big + "abcXX").value_or(""), "abc");
  EXPECT_EQ(MetadataText(little + "abcX").status().message(), "at byte 0: a packet is cut");
  EXPECT_EQ(MetadataText(little + "abcXX" + little.substr(0, 20)).status().message(),
            "at byte 42: a packet is cut");
  EXPECT_EQ(MetadataText("/* CTF 1.8 */").value_or(""), "/* CTF 1.8 */");
}

TEST(BitReader, IntegersOfAnySize) {
  MemoryFile file(tests::ToBytes("\xD6\x34\x12\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x80"));
  BitReader little(&file);
  little.Begin(0, 96);
  EXPECT_EQ(little.Read(3, false), 6U);
  EXPECT_EQ(little.Read(13, false), 0x34D6U >> 3);
  EXPECT_EQ(little.Read(4, false), 2U);
  EXPECT_EQ(little.Read(64, false), 0xFFFF'FFFF'FFFF'FFF1U);
  BitReader big(&file);
  big.Begin(0, 96);
  EXPECT_EQ(big.Read(3, true), 6U);
  EXPECT_EQ(big.Read(13, true), 0x1634U);
  EXPECT_EQ(big.Read(12, true), 0x12FU);
  EXPECT_EQ(big.Read(64, true), 0xFFFF'FFFF'FFFF'FFF8U);
  EXPECT_EQ(big.Read(4, true), 0U);
  EXPECT_TRUE(big.ok());
  EXPECT_EQ(big.Read(1, true), 0U);
  EXPECT_FALSE(big.ok()) << "the packet has ended";
}

struct Imported {
  std::vector<std::string> events;  // From dump --json, beginning with the key "time".
  std::uint64_t lost = 0;
  std::vector<std::string> damages;
};

Imported Import(const std::string& metadata, const std::vector<std::string>& streams) {
  CtfImporter importer;
  std::vector<NamedFile> files;
  files.reserve(streams.size());
  for (const std::string& stream : streams) {
    files.push_back(
        {"s" + std::to_string(files.size()), std::make_unique<MemoryFile>(tests::ToBytes(stream))});
  }
  const absl::Status added = importer.AddTrace(metadata, std::move(files));
  EXPECT_TRUE(added.ok()) << added;
  std::vector<std::byte> bytes;
  if (!added.ok()) return {};
  const absl::Status ran = importer.Run(std::make_unique<tests::BytesSink>(&bytes));
  EXPECT_TRUE(ran.ok()) << ran;
  Imported imported;
  auto reader = nettrace::Reader::Open(std::make_unique<nettrace::MemorySource>(bytes));
  EXPECT_TRUE(reader.ok()) << reader.status();
  if (!reader.ok()) return imported;
  trace::PayloadJson payloads(trace::PayloadStyle::kForPrograms);
  using Step = nettrace::Reader::Step;
  for (Step step = (*reader)->Next(); step != Step::kEnd; step = (*reader)->Next()) {
    if (step == Step::kSequencePoint) payloads.ForgetRows();
    if (step != Step::kEvent) continue;
    const std::string json = trace::EventToJson(**reader, (*reader)->event(), &payloads);
    imported.events.push_back(json.substr(json.find("\"time\"")));
  }
  EXPECT_TRUE((*reader)->status().ok()) << (*reader)->status();
  imported.lost = (*reader)->stats().lost;
  for (const absl::Status& damage : importer.damages()) {
    imported.damages.emplace_back(damage.message());
  }
  return imported;
}

constexpr char kSimple[] = R"(/* CTF 1.8 */
  typealias integer { size = 8; align = 8; signed = false; } := u8;
  typealias integer { size = 16; align = 8; signed = false; } := u16;
  typealias integer { size = 32; align = 8; signed = false; } := u32;
  typealias integer { size = 64; align = 8; signed = false; } := u64;
  trace { major = 1; minor = 8; byte_order = be; packet.header := struct { u32 magic; }; };
  clock { name = c; freq = 1000; offset_s = 1000000000; };
  typealias integer { size = 8; align = 8; map = clock.c.value; } := time8;
  stream {
    packet.context := struct { u16 content_size; u16 packet_size; u16 timestamp_begin;
      u16 events_discarded; u8 packet_seq_num; u8 cpu_id; };
    event.header := struct { u8 id; time8 timestamp; };
    event.context := struct { u8 _vpid; u8 _vtid; string _procname; u8 weight; };
  };
)";

// Returns a packet of CPU 3 in the layout of kSimple. The parameters are the time at which it
// begins, the number of events discarded up to its end, its number, its events, and the bytes of
// padding.
std::string Packet(std::uint16_t begin, std::uint16_t discarded, std::uint8_t number,
                   const std::string& events, std::size_t padding = 0) {
  const auto be16 = [](std::size_t value) {
    return std::string{static_cast<char>(value >> 8), static_cast<char>(value)};
  };
  const std::size_t content = 4 + 10 + events.size();
  return "\xC1\xFC\x1F\xC1" + be16(content * 8) + be16((content + padding) * 8) + be16(begin) +
         be16(discarded) + std::string{static_cast<char>(number), 3} + events +
         std::string(padding, 'p');
}

TEST(CtfImport, ThreadsClocksLevelsAndContexts) {
  const std::string metadata = kSimple + R"(event { id = 1; name = "prov:name"; loglevel = 4;
    fields := struct { u16 _a; u8 _n; u16 _s[_n]; string _t; }; };)"s;
  const std::string who = "\x05\x06me\0\x09"s;
  const std::string fields = "\x12\x34\x02\0\1\0\2hi\0"s;
  // The 8 bits of the clock wrap between the events.
  const Imported imported =
      Import(metadata, {Packet(0x1F0, 0, 0, "\1\xF5" + who + fields + "\1\x03" + who + fields, 2)});
  EXPECT_EQ(imported.damages, std::vector<std::string>());
  ASSERT_EQ(imported.events.size(), 2U);
  const std::string& event = imported.events[0];
  EXPECT_EQ(tests::ValueOf(event, "time"), "\"2001-09-09T01:46:40.501000000Z\"");
  EXPECT_EQ(tests::ValueOf(imported.events[1], "time"), "\"2001-09-09T01:46:40.515000000Z\"");
  EXPECT_EQ(tests::ValueOf(event, "provider"), "\"prov\"");
  EXPECT_EQ(tests::ValueOf(event, "name"), "\"name\"");
  EXPECT_EQ(tests::ValueOf(event, "level"), "3");
  EXPECT_EQ(tests::ValueOf(event, "pid"), "5");
  EXPECT_EQ(tests::ValueOf(event, "tid"), "6");
  EXPECT_EQ(tests::ValueOf(event, "thread"), "\"me\"");
  EXPECT_EQ(tests::ValueOf(event, "cpu"), "3");
  EXPECT_EQ(tests::PayloadOf(event), R"({"a":4660,"n":2,"s":[1,2],"t":"hi","context.weight":9})");
}

TEST(CtfImport, CountsLossesByTheCounter) {
  const std::string metadata = kSimple + "event { id = 1; name = e; };"s;
  const std::string who = "\x05\x06\0\x09"s;
  const Imported imported =
      Import(metadata, {Packet(1, 4, 0, "\1\1" + who) + Packet(2, 4, 1, "\1\2" + who) +
                        Packet(3, 7, 2, "") + Packet(4, 9, 3, "\1\4" + who)});
  EXPECT_EQ(imported.events.size(), 3U);
  EXPECT_EQ(imported.lost, 9U);
  // A stream whose beginning is missing.
  EXPECT_EQ(Import(metadata, {Packet(1, 4, 5, "\1\1" + who) + Packet(2, 6, 6, "")}).lost, 2U);
}

TEST(CtfImport, StreamsAreMergedByTime) {
  const std::string metadata =
      kSimple + "event { id = 1; name = e; fields := struct { u8 x; }; };"s;
  const std::string who = "\x05\x06\0\x09"s;
  const Imported imported =
      Import(metadata, {Packet(0, 0, 0, "\1\1" + who + "a" + "\1\5" + who + "b"), "",
                        Packet(0, 0, 0, "\1\2" + who + "c" + "\1\7" + who + "d")});
  std::string order;
  for (const std::string& event : imported.events) {
    order += static_cast<char>(std::stoi(tests::ValueOf(tests::PayloadOf(event), "x")));
  }
  EXPECT_EQ(order, "acbd");
}

TEST(CtfImport, ReadsUndamagedPackets) {
  const std::string metadata = kSimple + "event { id = 1; name = e; };"s;
  const std::string event = "\1\1\x05\x06\0\x09"s;
  const std::string good = Packet(1, 0, 0, event);
  // If an id is not declared, the import continues with the next packet.
  Imported imported = Import(metadata, {Packet(1, 0, 0, event + "\2\2") + Packet(2, 0, 1, event)});
  EXPECT_EQ(imported.events.size(), 2U);
  EXPECT_EQ(imported.damages,
            std::vector{"s0: at byte 20: the metadata declares no event with id 2 for this "
                        "stream; check that the metadata belongs to this trace"s});
  // Cuts at every byte: only whole packets may yield events, and each cut except the one between
  // the packets must be reported.
  for (std::size_t size = 0; size < 2 * good.size(); ++size) {
    imported = Import(metadata, {(good + good).substr(0, size)});
    EXPECT_EQ(imported.events.size(), size / good.size()) << size;
    EXPECT_EQ(imported.damages.empty(), size % good.size() == 0) << size;
  }
  imported = Import(metadata, {"\xC1\xFC\x1F\xC2" + good.substr(4)});
  EXPECT_EQ(imported.damages,
            std::vector{"s0: at byte 0: the magic number of the packet is wrong"s});
  // Byte 5 is the low byte of the content's size, byte 7 that of the packet's; both are in bits.
  const struct {
    std::size_t byte;
    char value;
    const char* damage;
  } kWrongSizes[] = {
      {7, '\xA1', "the packet has 161 bits, which are not whole bytes"},
      {5, '\xA8', "the content of the packet has 168 bits, more than the packet, which has 160"},
      {5, '\x08',
       "the content of the packet has 8 bits, fewer than the header of the packet, which has 112"},
  };
  for (const auto& [byte, value, damage] : kWrongSizes) {
    std::string wrong = good;
    wrong[byte] = value;
    imported = Import(metadata, {wrong});
    EXPECT_EQ(imported.damages, std::vector{"s0: at byte 0: "s + damage});
  }
}

constexpr char kLttngHeader[] = R"(
  typealias integer { size = 5; align = 1; signed = false; } := uint5_t;
  typealias integer { size = 27; align = 1; signed = false; map = clock.c.value; } := uint27_t;
  typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
  typealias integer { size = 64; align = 8; signed = false; map = clock.c.value; } := uint64_t;
  struct event_header_compact {
    enum : uint5_t { compact = 0 ... 30, extended = 31 } id;
    variant <id> {
      struct { uint27_t timestamp; } compact;
      struct { uint32_t id; uint64_t timestamp; } extended;
    } v;
  } align(8);
  trace { major = 1; minor = 8; byte_order = le; };
  env { domain = "kernel"; };
  clock { name = "c"; freq = 1000000000; };
  stream { event.header := struct event_header_compact; };
)";

TEST(CtfImport, CompactEventHeadersOfLttng) {
  const std::string metadata = kLttngHeader + "event { id = 2; name = two; };"s +
                               "event { id = 77; name = \"seventy:seven\"; };";
  // A compact header with id 2 and time 0x100, an extended one with id 77 and time 0x200, and a
  // compact one with id 2 and time 0xFF.
  const Imported imported =
      Import(metadata, {"\x02\x20\0\0"s + "\x1F\x4D\0\0\0\0\2\0\0\0\0\0\0"s + "\xE2\x1F\0\0"s});
  EXPECT_EQ(imported.damages, std::vector<std::string>());
  ASSERT_EQ(imported.events.size(), 3U);
  EXPECT_EQ(tests::ValueOf(imported.events[0], "time"), "\"1970-01-01T00:00:00.000000256Z\"");
  EXPECT_EQ(tests::ValueOf(imported.events[0], "provider"), "\"kernel\"");
  EXPECT_EQ(tests::ValueOf(imported.events[1], "time"), "\"1970-01-01T00:00:00.000000512Z\"");
  EXPECT_EQ(tests::ValueOf(imported.events[1], "name"), "\"seven\"");
  // 0xFF is less than 0x200, so the 27 bits of the clock have wrapped.
  EXPECT_EQ(tests::ValueOf(imported.events[2], "time"), "\"1970-01-01T00:00:00.134217983Z\"");
}

TEST(CtfImport, VariantsEnumsAndFloats) {
  const std::string metadata = R"(
    typealias integer { size = 8; signed = true; } := i8;
    typealias integer { size = 8; encoding = UTF8; } := char;
    trace { byte_order = le; };
    event { name = "p:v"; fields := struct {
      enum : i8 { NUMBER = -1, "TEXT" = 1, REST = 2 ... 9 } tag;
      variant <tag> { i8 NUMBER; string TEXT; struct { i8 x; } REST; } v;
      floating_point { exp_dig = 8; mant_dig = 24; align = 8; } f;
      char name[4];
      struct { enum : i8 { A = 0, B = 1 } t; variant <t> { i8 A; i8 B[2]; } w; } list[2];
    }; };)";
  const std::string rest = "\0\0\xC0\x3F"s + "ab\0z"s + "\0\5"s + "\1\6\7"s;
  const Imported imported =
      Import(metadata, {"\xFF\x07" + rest + "\1ok\0"s + rest + "\5\x08" + rest});
  EXPECT_EQ(imported.damages, std::vector<std::string>());
  ASSERT_EQ(imported.events.size(), 3U);
  const std::string end = R"("f":1.5,"name":"ab","list":[{"t":0,"w":{"A":[5],"B":[]}},)"
                          R"({"t":1,"w":{"A":[],"B":[{"value":[6,7]}]}}]})";
  EXPECT_EQ(tests::PayloadOf(imported.events[0]), R"({"tag":-1,"v":7,)" + end);
  EXPECT_EQ(tests::PayloadOf(imported.events[1]), R"({"tag":1,"v":"ok",)" + end);
  EXPECT_EQ(tests::PayloadOf(imported.events[2]), R"({"tag":5,"v":{"x":8},)" + end);
  EXPECT_EQ(Import(metadata, {"\x0A"}).damages,
            std::vector{"s0: at byte 0: the tag of a variant selects none of its options"s});
}

TEST(CtfImport, HostileLengthsEnd) {
  const std::string metadata = R"(
    typealias integer { size = 64; signed = false; } := u64;
    event { name = "p:e"; fields := struct { u64 n; struct { } x[n]; u64 m; u64 y[m]; }; };)";
  EXPECT_EQ(
      Import(metadata, {std::string(8, '\xFF') + std::string(24, '\1')}).damages,
      std::vector{
          "s0: at byte 0: the arrays of an event have more than 1048576 elements of size 0"s});
  EXPECT_EQ(Import(metadata, {std::string(8, '\0') + std::string(24, '\1')}).damages,
            std::vector{"s0: at byte 0: an array extends past the end of its packet"s});
  EXPECT_EQ(Import("event { name = e; };", {"x"}).damages,
            std::vector{"s0: at byte 0: an event has the size 0"s});
}

}  // namespace
}  // namespace tools::importing::ctf
