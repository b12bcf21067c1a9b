// Tests notes on the fields of kernel tracepoints: their text, and their symbols.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tools/trace/tracepoint_symbol.h"

namespace trace {
namespace {

using ValueKind = TracepointValue::Kind;

// A test with the values that the notes of these tests use.
class SymbolTest : public ::testing::Test {
 protected:
  SymbolTest() {
    AddNumber("vec", 3);
    AddNumber("ret", static_cast<std::uint64_t>(-2));
    AddNumber("big", ~std::uint64_t{0}).is_unsigned = true;
    AddNumber("dev", 8 << 20 | 1);
    TracepointValue& address = Add("saddr");
    address.kind = ValueKind::kNumbers;
    address.elements = {127, 0, 0, 1};
    TracepointValue& name = Add("name");
    name.kind = ValueKind::kText;
    name.text = "eth0";
    labels_.strings = {{"Symbol.ip", "tcp_sendmsg+0x4a"}};
    values_.names = &names_;
    values_.labels = &labels_;
  }

  TracepointValue& Add(const std::string& name) {
    names_.emplace(name, values_.values.size());
    return values_.values.emplace_back();
  }
  TracepointValue& AddNumber(const std::string& name, std::uint64_t number) {
    TracepointValue& value = Add(name);
    value.kind = ValueKind::kNumber;
    value.number = number;
    value.element_size = 8;
    return value;
  }
  TracepointValue& AddBytes(const std::string& name, const std::string& bytes) {
    TracepointValue& value = Add(name);
    value.kind = ValueKind::kNumbers;
    for (const char c : bytes) value.elements.push_back(static_cast<unsigned char>(c));
    return value;
  }

  // Returns the symbol; "?" if the text is not a note, "" if it makes no symbol.
  std::string Symbol(const std::string& text) {
    const std::optional<TracepointNote> note = ParseTracepointNote(text);
    if (!note) return "?";
    EXPECT_EQ(FormatTracepointNote(*note), text);
    return FormatSymbol(*note, values_).value_or("");
  }

  absl::flat_hash_map<std::string, std::size_t> names_;
  nettrace::Labels labels_;
  TracepointValues values_;
};

TEST_F(SymbolTest, SymbolIsTheTextOfTheNumber) {
  EXPECT_EQ(Symbol(R"(symbol(vec,0="HI",3="NET_RX"))"), "NET_RX");
  EXPECT_EQ(Symbol(R"(symbol(ret,-2="gone"))"), "gone");
  EXPECT_EQ(Symbol(R"(symbol(vec,0="HI"))"), "0x3");
  EXPECT_EQ(Symbol(R"(hex symbol(big,-1="all"))"), "all");
}

TEST_F(SymbolTest, FlagsAreTheTextsOfTheirBitsAndTheRest) {
  EXPECT_EQ(Symbol(R"(flags(vec,"|",1="A",2="B"))"), "A|B");
  EXPECT_EQ(Symbol(R"(flags(vec,"|",3="BOTH",1="A"))"), "BOTH");
  EXPECT_EQ(Symbol(R"(flags(vec," ",2="B"))"), "B 0x1");
  EXPECT_EQ(Symbol(R"(flags((vec&4),"|",4="C"))"), "");
  AddNumber("small", static_cast<std::uint64_t>(-1)).element_size = 2;
  EXPECT_EQ(Symbol(R"(flags(small,"|",1="A"))"), "A|0xfffe");
  EXPECT_EQ(Symbol(R"(symbol(small,65535="all"))"), "all");
  EXPECT_EQ(Symbol(R"(symbol(small,-1="all"))"), "all");
}

TEST_F(SymbolTest, PiecesStandOneAfterAnother) {
  EXPECT_EQ(Symbol(R"((dev>>20) "," (dev&1048575u))"), "8,1");
  EXPECT_EQ(Symbol(R"("w=" hex(vec,4) " " oct(dev) " " char(65))"), "w=0003 040000001 A");
  EXPECT_EQ(Symbol(R"((vec?"yes":"no") ((vec&4)?"+":""))"), "yes");
  EXPECT_EQ(Symbol(R"~((vec?" (coalesced)":""))~"), "(coalesced)");
  EXPECT_EQ(Symbol(R"((vec?" ":"x"))"), "");
}

TEST_F(SymbolTest, OperatorsHaveTheMeaningOfC) {
  EXPECT_EQ(Symbol("(ret<0)"), "1");
  EXPECT_EQ(Symbol("(big<0)"), "0");
  EXPECT_EQ(Symbol("(ret>>1)"), "-1");
  EXPECT_EQ(Symbol("(big>>60)"), "15");
  EXPECT_EQ(Symbol("(-ret)"), "2");
  EXPECT_EQ(Symbol("(!vec)"), "0");
  EXPECT_EQ(Symbol("u8((~vec))"), "252");
  EXPECT_EQ(Symbol("s32(4294967295)"), "-1");
  EXPECT_EQ(Symbol("(vec--5)"), "8");
  EXPECT_EQ(Symbol("((vec==3)&&(ret!=0))"), "1");
  EXPECT_EQ(Symbol("saddr[3]"), "1");
}

TEST_F(SymbolTest, MinusBeforeAConstantIsAnOperatorOrASign) {
  EXPECT_EQ(Symbol("(-5)"), "-5");
  EXPECT_EQ(Symbol("(-0)"), "0");
  EXPECT_EQ(Symbol("(--5)"), "5");
  EXPECT_EQ(Symbol("((-5u)+6)"), "1");
  EXPECT_EQ(Symbol("((-5)+vec)"), "-2");
  EXPECT_EQ(Symbol("(-5+vec)"), "-2");
  EXPECT_EQ(Symbol("(-5?vec:ret)"), "3");
  EXPECT_EQ(Symbol("(-5u+vec)"), "?");
}

TEST_F(SymbolTest, NothingTraps) {
  EXPECT_EQ(Symbol("(vec/0)"), "");
  EXPECT_EQ(Symbol("(-9223372036854775808/-1)"), "");
  EXPECT_EQ(Symbol("(vec%0)"), "");
  EXPECT_EQ(Symbol("(1<<64)"), "");
  EXPECT_EQ(Symbol("(1<<-1)"), "");
  EXPECT_EQ(Symbol("(1>>4294967295)"), "");
  EXPECT_EQ(Symbol("(--9223372036854775808)"), "-9223372036854775808");
}

TEST_F(SymbolTest, BytesAreAddresses) {
  AddBytes("v6", std::string("\xFE\x80", 2) + std::string(13, '\0') + "\1");
  AddBytes("mapped", std::string(10, '\0') + "\xFF\xFF\x7F" + std::string(2, '\0') + "\1");
  AddBytes("compatible", std::string(12, '\0') + std::string("im\0\0", 4));
  AddBytes("in", std::string("\2\0\x1F\x90\x7F\0\0\1", 8));
  AddBytes("in6", std::string("\x0A\0\0\x50\0\0\0\0", 8) + std::string(15, '\0') + "\1");
  EXPECT_EQ(Symbol("ipv4(saddr)"), "127.0.0.1");
  EXPECT_EQ(Symbol("ipv6(v6)"), "fe80::1");
  EXPECT_EQ(Symbol("ipv6(mapped)"), "::ffff:127.0.0.1");
  EXPECT_EQ(Symbol("ipv6(compatible)"), "::696d:0") << "as perf and the kernel have it";
  EXPECT_EQ(Symbol("ipv6(saddr)"), "");
  EXPECT_EQ(Symbol("sockaddr(in)"), "127.0.0.1:8080");
  EXPECT_EQ(Symbol("sockaddr(in6)"), "[::1]:80");
  EXPECT_EQ(Symbol("sockaddr(saddr)"), "");
  EXPECT_EQ(Symbol(R"(bytes(saddr,2,":"))"), "7f:00");
  EXPECT_EQ(Symbol(R"(bytes(saddr,99,""))"), "7f000001");
  EXPECT_EQ(Symbol("array(saddr,2)"), "{0x7f,0x0}");
  EXPECT_EQ(Symbol("size(saddr)"), "4");
}

TEST_F(SymbolTest, UuidsAreInEitherOrder) {
  std::string bytes;
  for (int i = 0; i < 16; ++i) bytes += static_cast<char>(0x11 * i);
  AddBytes("uuid", bytes);
  EXPECT_EQ(Symbol("uuid(uuid)"), "00112233-4455-6677-8899-aabbccddeeff");
  EXPECT_EQ(Symbol("guid(uuid)"), "33221100-5544-7766-8899-aabbccddeeff");
}

TEST_F(SymbolTest, MasksAreRanges) {
  TracepointValue& mask = AddBytes("mask", "");
  mask.element_size = 8;
  mask.elements = {0x8000000000000107, 1};
  EXPECT_EQ(Symbol("cpus(mask)"), "0-2,8,63-64");
}

TEST_F(SymbolTest, SymbolsOfTheKernelAreLabels) {
  AddNumber("ip", 0xFFFFFFFF81000000);
  EXPECT_EQ(Symbol("hex kernel(ip)"), "tcp_sendmsg+0x4a");
  EXPECT_EQ(Symbol("kernel(vec)"), "");
}

TEST_F(SymbolTest, MissingFieldsMakeNoSymbol) {
  EXPECT_EQ(Symbol("absent"), "");
  EXPECT_EQ(Symbol("saddr[4]"), "");
  EXPECT_EQ(Symbol("nothing(vec)"), "");
  EXPECT_EQ(Symbol("(name+1)"), "");
  EXPECT_EQ(Symbol("(absent?\"a\":\"b\")"), "");
  EXPECT_EQ(Symbol("name"), "eth0");
}

TEST_F(SymbolTest, RefusesInvalidNotes) {
  for (const char* text : {"",
                           "hex ",
                           "hexx(",
                           "symbol(",
                           "symbol(vec",
                           "symbol(vec,1=)",
                           "symbol(1=\"a\")",
                           "symbol(vec,1=\"a)",
                           "(vec",
                           "(vec+)",
                           "(vec?1)",
                           "(vec?1:2",
                           "vec[",
                           "vec[-1",
                           "vec[-1]",
                           "-0",
                           "vec[x]",
                           "\"",
                           "\"\\n\"",
                           "1x",
                           "9223372036854775808",
                           "99999999999999999999u",
                           "-5u",
                           "symbol(vec,1=\"a\",vec)",
                           "vec  vec",
                           "vec ",
                           "(vec=1)",
                           "a b c("}) {
    EXPECT_EQ(Symbol(text), "?") << text;
  }
}

TEST_F(SymbolTest, DepthAndNumberOfPiecesAreBounded) {
  std::string deep = "vec";
  for (int i = 1; i < kMaxNoteDepth; ++i) deep = absl::StrCat("(!", deep, ")");
  EXPECT_NE(Symbol(deep), "?");
  EXPECT_EQ(Symbol("(!" + deep + ")"), "?");
  EXPECT_EQ(Symbol(std::string(100'000, '(')), "?");
  std::string wide = "vec";
  for (std::size_t i = 1; i < kMaxNotePieces; ++i) wide += " vec";
  EXPECT_EQ(Symbol(wide).substr(0, 4), "3333");
  EXPECT_LE(Symbol(wide).size(), 4096u);
  EXPECT_EQ(Symbol(wide + " vec"), "?");
}

TEST_F(SymbolTest, ArraysOfOneSymbolAreBounded) {
  AddBytes("long", std::string(2000, '\1'));
  std::string note = R"(bytes(long,1,""))";
  for (int i = 0; i < 100; ++i) note += R"( bytes(long,1,""))";
  EXPECT_EQ(Symbol(note), "");
}

TEST(TracepointKey, NameIsTheRest) {
  EXPECT_EQ(ParseTracepointKey("Tracepoint.Field.saddr"), "saddr");
  EXPECT_EQ(ParseTracepointKey("Tracepoint.Fields"), std::nullopt);
}

}  // namespace
}  // namespace trace
