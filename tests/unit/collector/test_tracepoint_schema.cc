#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "tools/collector/convert/print_format.h"
#include "tools/collector/convert/tracepoint_schema.h"

namespace collector {
namespace {

using namespace std::string_literals;
using nettrace::Type;
using nettrace::TypeCode;

constexpr char kCommon[] =
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

std::string Format(const std::string& fields, const std::string& print) {
  return "name: test\nID: 77\nformat:\n" + std::string(kCommon) + fields + "\nprint fmt: " + print +
         "\n";
}

TracepointSchema ParseGoodFormat(const std::string& fields,
                                 const std::string& print = "\"%d\", __unknown_function(REC->x)",
                                 std::endian order = std::endian::little) {
  absl::StatusOr<TracepointSchema> schema =
      ParseTracepointFormat("sys", "test", 77, Format(fields, print), order);
  EXPECT_TRUE(schema.ok()) << schema.status();
  return schema.ok() ? *schema : TracepointSchema();
}

std::map<std::string, std::string> NotesOf(const TracepointSchema& schema) {
  return {schema.metadata.key_values.begin(), schema.metadata.key_values.end()};
}

Type Array(TypeCode code) { return Type::Array(Type::Simple(code)); }
Type Fixed(TypeCode code, std::uint16_t count) {
  return Type::FixedLengthArray(Type::Simple(code), count);
}

// Returns the types of the fields, by name.
std::map<std::string, Type> TypesOf(const nettrace::EventMetadata& metadata) {
  std::map<std::string, Type> types;
  for (const nettrace::Field& field : metadata.fields) types.emplace(field.name, field.type);
  return types;
}

// Returns a record: 8 bytes of common fields, then `fields`.
std::vector<std::byte> TracepointRecord(const std::string& fields) {
  const std::string text = "\x4D\0\0\0\1\0\0\0"s + fields;
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

struct Converted {
  bool fits = false;
  bool non_ascii = false;
  std::string payload;
};

Converted Convert(const TracepointSchema& schema, const std::vector<std::byte>& record,
                  TextForm form = TextForm::kBytes) {
  std::vector<std::byte> out;
  std::span<const std::byte> payload;
  const RecordProgram::Outcome outcome = schema.program.Run(record, form, &out, &payload);
  Converted converted{outcome.fits, outcome.non_ascii, ""};
  if (outcome.fits) {
    converted.payload = {reinterpret_cast<const char*>(payload.data()), payload.size()};
  }
  return converted;
}

TEST(TracepointFormat, NumbersKeepSizeAndSign) {
  const TracepointSchema schema = ParseGoodFormat(
      "\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n"
      "\tfield:u8 b;\toffset:12;\tsize:1;\tsigned:0;\n"
      "\tfield:bool c;\toffset:13;\tsize:1;\tsigned:0;\n"
      "\tfield:s8 d;\toffset:14;\tsize:1;\tsigned:1;\n"
      "\tfield:char e;\toffset:15;\tsize:1;\tsigned:0;\n"
      "\tfield:void * f;\toffset:16;\tsize:8;\tsigned:0;\n"
      "\tfield:umode_t g;\toffset:24;\tsize:2;\tsigned:0;\n"
      "\tfield:enum zone_type h;\toffset:28;\tsize:4;\tsigned:0;\n"
      "\tfield:s64 i;\toffset:32;\tsize:8;\tsigned:1;\n");
  EXPECT_EQ(schema.payload_offset, 8u);
  EXPECT_EQ(schema.first_field, "a");
  const std::vector<nettrace::Field> expected = {
      {"a", Type::Simple(TypeCode::kInt32)},    {"b", Type::Simple(TypeCode::kByte)},
      {"c", Type::Simple(TypeCode::kBoolean8)}, {"d", Type::Simple(TypeCode::kSByte)},
      {"e", Type::Simple(TypeCode::kByte)},     {"f", Type::Simple(TypeCode::kUInt64)},
      {"g", Type::Simple(TypeCode::kUInt16)},   {"h", Type::Simple(TypeCode::kUInt32)},
      {"i", Type::Simple(TypeCode::kInt64)}};
  EXPECT_EQ(schema.metadata.fields, expected);
}

TEST(TracepointFormat, OnlyCharIsText) {
  const TracepointSchema schema = ParseGoodFormat(
      "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
      "\tfield:const char name[4];\toffset:24;\tsize:4;\tsigned:0;\n"
      "\tfield:__u8 saddr[4];\toffset:28;\tsize:4;\tsigned:0;\n"
      "\tfield:u8 fsid[16];\toffset:32;\tsize:16;\tsigned:0;\n"
      "\tfield:unsigned char mac[6];\toffset:48;\tsize:6;\tsigned:0;\n"
      "\tfield:s8 levels[2];\toffset:54;\tsize:2;\tsigned:1;\n"
      "\tfield:__data_loc char[] text;\toffset:56;\tsize:4;\tsigned:0;\n"
      "\tfield:__data_loc u8[] buf;\toffset:60;\tsize:4;\tsigned:0;\n"
      "\tfield:__rel_loc unsigned char[] rel;\toffset:64;\tsize:4;\tsigned:0;\n"
      "\tfield:__rel_loc char[] rel_text;\toffset:68;\tsize:4;\tsigned:0;\n");
  const std::vector<nettrace::Field> expected = {
      {"comm", Array(TypeCode::kUtf8CodeUnit)}, {"name", Array(TypeCode::kUtf8CodeUnit)},
      {"saddr", Fixed(TypeCode::kByte, 4)},     {"fsid", Fixed(TypeCode::kByte, 16)},
      {"mac", Fixed(TypeCode::kByte, 6)},       {"levels", Fixed(TypeCode::kSByte, 2)},
      {"text", Array(TypeCode::kUtf8CodeUnit)}, {"buf", Array(TypeCode::kByte)},
      {"rel", Array(TypeCode::kByte)},          {"rel_text", Array(TypeCode::kUtf8CodeUnit)}};
  EXPECT_EQ(schema.metadata.fields, expected);
}

// Linux 6.12 reports every array of variable size of a user_events tracepoint as signed.
TEST(TracepointFormat, ElementsOfUnsignedTypesAreUnsigned) {
  const TracepointSchema schema = ParseGoodFormat(
      "\tfield:__rel_loc u8 a[];\toffset:8;\tsize:4;\tsigned:1;\n"
      "\tfield:__rel_loc unsigned short b[];\toffset:12;\tsize:4;\tsigned:1;\n"
      "\tfield:__rel_loc s8 c[];\toffset:16;\tsize:4;\tsigned:1;\n"
      "\tfield:__rel_loc unsigned char d[];\toffset:20;\tsize:4;\tsigned:1;\n");
  const std::vector<nettrace::Field> expected = {{"a", Array(TypeCode::kByte)},
                                                 {"b", Array(TypeCode::kUInt16)},
                                                 {"c", Array(TypeCode::kSByte)},
                                                 {"d", Array(TypeCode::kByte)}};
  EXPECT_EQ(schema.metadata.fields, expected);
}

TEST(TracepointFormat, TidIsWhereTheFormatSays) {
  const TracepointSchema schema =
      ParseGoodFormat("\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n");
  const char raw[] = "\x4D\0\0\0\x07\1\0\0\0\0\0";
  EXPECT_EQ(schema.ReadTid(std::as_bytes(std::span(raw))), 263u);
  EXPECT_EQ(schema.ReadTid(std::as_bytes(std::span(raw, 7))), std::nullopt);
  EXPECT_EQ(TracepointSchema().ReadTid(std::as_bytes(std::span(raw))), std::nullopt);
}

TEST(TracepointFormat, ArraysKeepTheirElements) {
  const TracepointSchema schema = ParseGoodFormat(
      "\tfield:unsigned long args[6];\toffset:8;\tsize:48;\tsigned:0;\n"
      "\tfield:long sysctl_mem[3];\toffset:56;\tsize:24;\tsigned:1;\n"
      "\tfield:__data_loc u64[] dma_addrs;\toffset:80;\tsize:4;\tsigned:0;\n"
      "\tfield:__data_loc unsigned int[] lengths;\toffset:84;\tsize:4;\tsigned:0;\n"
      "\tfield:__data_loc s16[] shorts;\toffset:88;\tsize:4;\tsigned:1;\n"
      "\tfield:__data_loc struct any[] other;\toffset:92;\tsize:4;\tsigned:0;\n"
      "\tfield:__data_loc cpumask_t cpumask;\toffset:96;\tsize:4;\tsigned:0;\n"
      "\tfield:struct timespec ts;\toffset:104;\tsize:16;\tsigned:0;\n");
  const std::vector<nettrace::Field> expected = {
      {"args", Fixed(TypeCode::kUInt64, 6)},
      {"sysctl_mem", Fixed(TypeCode::kInt64, 3)},
      {"dma_addrs", Array(TypeCode::kUInt64)},
      {"lengths", Array(TypeCode::kUInt32)},
      {"shorts", Array(TypeCode::kInt16)},
      {"other", Array(TypeCode::kByte)},
      {"cpumask", Array(sizeof(long) == 8 ? TypeCode::kUInt64 : TypeCode::kUInt32)},
      {"ts", Fixed(TypeCode::kByte, 16)}};
  EXPECT_EQ(schema.metadata.fields, expected);
}

TEST(TracepointFormat, SignIsThatOfTheFieldThoughPrintFmtNamesFlags) {
  const TracepointSchema schema =
      ParseGoodFormat("\tfield:long prev_state;\toffset:8;\tsize:8;\tsigned:1;\n",
                      "\"%s\", __print_flags(REC->prev_state, \"|\", { 0x1, \"S\" })");
  EXPECT_EQ(schema.metadata.fields[0].type, Type::Simple(TypeCode::kInt64));
}

TEST(TracepointFormat, CharThatIsPrintedAsBytesIsBytes) {
  const TracepointSchema schema = ParseGoodFormat(
      "\tfield:char sec_type[16];\toffset:8;\tsize:16;\tsigned:0;\n"
      "\tfield:char raw[4];\toffset:24;\tsize:4;\tsigned:0;\n",
      R"("%pU %s", REC->sec_type, __print_hex(REC->raw, 4))");
  const auto types = TypesOf(schema.metadata);
  EXPECT_EQ(types.at("sec_type"), Fixed(TypeCode::kByte, 16));
  EXPECT_EQ(types.at("raw"), Fixed(TypeCode::kByte, 4));
  const auto notes = NotesOf(schema);
  EXPECT_EQ(notes.at("Tracepoint.Field.sec_type"), "uuid(sec_type)");
  EXPECT_EQ(notes.at("Tracepoint.Field.raw"), R"(bytes(raw,4," "))");
}

TEST(TracepointFormat, FieldsWithoutTextInOneRunAreNotCopied) {
  const TracepointSchema schema = ParseGoodFormat(
      "\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n"
      "\tfield:__u8 b[4];\toffset:12;\tsize:4;\tsigned:0;\n");
  EXPECT_TRUE(schema.program.identity());
  const std::vector<std::byte> record = TracepointRecord("\1\0\0\0\2\3\0\5tail"s);
  const Converted converted = Convert(schema, record);
  EXPECT_TRUE(converted.fits);
  EXPECT_EQ(converted.payload, "\1\0\0\0\2\3\0\5"s);
}

TEST(TracepointFormat, PayloadLeavesOutGapsAndBytesAfterText) {
  const TracepointSchema schema = ParseGoodFormat(
      "\tfield:u8 a;\toffset:8;\tsize:1;\tsigned:0;\n"
      "\tfield:int b;\toffset:12;\tsize:4;\tsigned:1;\n"
      "\tfield:char comm[8];\toffset:16;\tsize:8;\tsigned:0;\n"
      "\tfield:u8 c;\toffset:24;\tsize:1;\tsigned:0;\n");
  EXPECT_EQ(schema.metadata.fields.size(), 4u);
  const Converted converted = Convert(schema, TracepointRecord("\1GAP\2\0\0\0ab\0LEFT!\4PADDING"s));
  EXPECT_TRUE(converted.fits);
  EXPECT_FALSE(converted.non_ascii);
  EXPECT_EQ(converted.payload, "\1\2\0\0\0\2\0ab\4"s);
}

TEST(TracepointFormat, TextThatIsNotAsciiHasAFormInUtf16) {
  const TracepointSchema schema = ParseGoodFormat(
      "\tfield:char comm[8];\toffset:8;\tsize:8;\tsigned:0;\n"
      "\tfield:int x;\toffset:16;\tsize:4;\tsigned:1;\n");
  const std::vector<std::byte> record = TracepointRecord("w\xC3\xB6rk\0\0\0\7\0\0\0"s);
  EXPECT_TRUE(Convert(schema, record).non_ascii);
  EXPECT_EQ(Convert(schema, record, TextForm::kUtf16).payload, "\4\0w\0\xF6\0r\0k\0\7\0\0\0"s);
  const auto types = TypesOf(schema.MetadataFor(TextForm::kUtf16));
  EXPECT_EQ(types.at("comm"), Array(TypeCode::kUtf16CodeUnit));
  EXPECT_EQ(types.at("x"), Type::Simple(TypeCode::kInt32));
}

TEST(TracepointFormat, TextCutWithinACharacterEndsInOneReplacement) {
  const TracepointSchema schema =
      ParseGoodFormat("\tfield:char comm[4];\toffset:8;\tsize:4;\tsigned:0;\n");
  EXPECT_EQ(Convert(schema, TracepointRecord("ab\xE2\x82"s), TextForm::kUtf16).payload,
            "\3\0a\0b\0\xFD\xFF"s);
}

TEST(TracepointFormat, NumbersOfABigEndianMachineAreTurned) {
  const TracepointSchema schema = ParseGoodFormat(
      "\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n"
      "\tfield:__u8 b[4];\toffset:12;\tsize:4;\tsigned:0;\n"
      "\tfield:u16 c[2];\toffset:16;\tsize:4;\tsigned:0;\n"
      "\tfield:__data_loc u16[] d;\toffset:20;\tsize:4;\tsigned:0;\n",
      "\"\"", std::endian::big);
  const Converted converted =
      Convert(schema, TracepointRecord("\0\0\0\1\1\2\3\4\0\1\0\2\0\4\0\x18\0\5\0\6"s));
  EXPECT_TRUE(converted.fits);
  EXPECT_EQ(converted.payload, "\1\0\0\0\1\2\3\4\1\0\2\0\2\0\5\0\6\0"s);
}

class LocationTest : public ::testing::Test {
 protected:
  LocationTest()
      : schema_(ParseGoodFormat("\tfield:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;\n"
                                "\tfield:int x;\toffset:12;\tsize:4;\tsigned:1;\n"
                                "\tfield:__rel_loc u8[] bytes;\toffset:16;\tsize:4;\tsigned:0;\n")),
        record_(TracepointRecord("\0\0\0\0\7\0\0\0\0\0\0\0abc\0\1\2\3\4"s)) {}
  void SetLocation(std::size_t field, std::uint32_t position, std::uint32_t size) {
    const std::uint32_t value = size << 16 | position;
    std::memcpy(record_.data() + field, &value, 4);
  }

  TracepointSchema schema_;
  std::vector<std::byte> record_;
};

TEST_F(LocationTest, PayloadHasTheBytesInTheRecord) {
  SetLocation(8, 20, 4);
  SetLocation(16, 4, 3);
  const Converted converted = Convert(schema_, record_);
  EXPECT_TRUE(converted.fits);
  EXPECT_EQ(converted.payload, "\3\0abc\7\0\0\0\3\0\1\2\3"s);
}

TEST_F(LocationTest, OutsideTheRecordIsRefused) {
  for (const auto& [position, size] : {std::pair(20u, 9u), {0xFFFFu, 1u}, {28u, 1u}}) {
    SetLocation(8, position, size);
    EXPECT_FALSE(Convert(schema_, record_).fits) << position;
  }
  SetLocation(8, 0, 0);
  SetLocation(16, 8, 1);
  EXPECT_FALSE(Convert(schema_, record_).fits);
  SetLocation(16, 0xFFFF, 0xFFFF);
  EXPECT_FALSE(Convert(schema_, record_).fits);
}

TEST_F(LocationTest, AcceptsEmptyDataAtAnyLocation) {
  SetLocation(8, 0xFFFF, 0);
  const Converted converted = Convert(schema_, record_);
  EXPECT_TRUE(converted.fits);
  EXPECT_EQ(converted.payload, "\0\0\7\0\0\0\0\0"s);
}

TEST_F(LocationTest, ShortRecordIsRefused) {
  record_.resize(19);
  EXPECT_FALSE(Convert(schema_, record_).fits);
}

TEST(TracepointFormat, FieldsThatOverlapCannotMakeALargePayload) {
  std::string fields;
  std::string values;
  for (int i = 0; i < 100; ++i) {
    const std::string number = std::to_string(i);
    fields += "\tfield:__data_loc u8[] f" + number + ";\toffset:" + std::to_string(8 + 4 * i) +
              ";\tsize:4;\tsigned:0;\n";
    values += "\0\0\xFF\x7F"s;
  }
  const TracepointSchema schema = ParseGoodFormat(fields);
  std::vector<std::byte> record = TracepointRecord(values);
  record.resize(40000);
  std::vector<std::byte> out;
  std::span<const std::byte> payload;
  EXPECT_FALSE(schema.program.Run(record, TextForm::kBytes, &out, &payload).fits);
  EXPECT_LT(out.size(), 3u * 65536);
}

TEST(TracepointNotes, SymbolsFlagsAndHexMatchPrintFmt) {
  const TracepointSchema schema = ParseGoodFormat(
      "\tfield:unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;\n"
      "\tfield:unsigned long call_site;\toffset:16;\tsize:8;\tsigned:0;\n"
      "\tfield:const void * ptr;\toffset:24;\tsize:8;\tsigned:0;\n"
      "\tfield:unsigned long gfp_flags;\toffset:32;\tsize:8;\tsigned:0;\n"
      "\tfield:dev_t dev;\toffset:40;\tsize:4;\tsigned:0;\n"
      "\tfield:umode_t mode;\toffset:44;\tsize:2;\tsigned:0;\n"
      "\tfield:int node;\toffset:48;\tsize:4;\tsigned:1;\n"
      "\tfield:__u32 mark;\toffset:52;\tsize:4;\tsigned:0;\n",
      R"X("vec=%u [action=%s] call_site=%pS ptr=%p gfp_flags=%s dev %d,%d mode 0%o node=%d mark=%#x",)X"
      R"X( REC->vec, __print_symbolic(REC->vec, { 0, "HI" }, { 3, "NET_RX" }),)X"
      R"X( (void *)REC->call_site, REC->ptr, (REC->gfp_flags) ? __print_flags(REC->gfp_flags, "|",)X"
      R"X( {( unsigned long)(( gfp_t)((1UL) << (10))), "A"}, { 0x40, "B" }) : "none",)X"
      R"X( ((unsigned int) ((REC->dev) >> 20)), ((unsigned int) ((REC->dev) & ((1U << 20) - 1))),)X"
      R"X( REC->mode, REC->node, REC->mark)X");
  const std::map<std::string, std::string> expected = {
      {"Tracepoint.Field.vec", R"(symbol(vec,0="HI",3="NET_RX"))"},
      {"Tracepoint.Field.call_site", "hex kernel(call_site)"},
      {"Tracepoint.Field.ptr", "hex"},
      {"Tracepoint.Field.gfp_flags",
       R"(hex (gfp_flags?flags(gfp_flags,"|",1024="A",64="B"):"none"))"},
      {"Tracepoint.Field.dev", R"(u32((dev>>20)) "," u32((dev&1048575u)))"},
      {"Tracepoint.Field.mode", "oct(mode)"},
      {"Tracepoint.Field.mark", "hex"}};
  EXPECT_EQ(NotesOf(schema), expected);
  ASSERT_EQ(schema.kernel_addresses.size(), 1u);
  EXPECT_EQ(schema.kernel_addresses[0].field, "call_site");
  EXPECT_EQ(schema.kernel_addresses[0].offset, 16u);
  EXPECT_TRUE(schema.kernel_addresses[0].with_offset);
}

TEST(TracepointNotes, AddressesOfNetworksAreNamed) {
  const TracepointSchema schema = ParseGoodFormat(
      "\tfield:__u8 a[4];\toffset:8;\tsize:4;\tsigned:0;\n"
      "\tfield:__u8 b[16];\toffset:12;\tsize:16;\tsigned:0;\n"
      "\tfield:__u8 c[28];\toffset:28;\tsize:28;\tsigned:0;\n"
      "\tfield:u8 d[16];\toffset:56;\tsize:16;\tsigned:0;\n"
      "\tfield:unsigned char e[6];\toffset:72;\tsize:6;\tsigned:0;\n",
      R"("%pI4 %pI6c src=%pISpc %pU %pM", REC->a, REC->b, REC->c, REC->d, REC->e)");
  const std::map<std::string, std::string> expected = {{"Tracepoint.Field.a", "ipv4(a)"},
                                                       {"Tracepoint.Field.b", "ipv6(b)"},
                                                       {"Tracepoint.Field.c", "sockaddr(c)"},
                                                       {"Tracepoint.Field.d", "uuid(d)"},
                                                       {"Tracepoint.Field.e", R"(bytes(e,6,":"))"}};
  EXPECT_EQ(NotesOf(schema), expected);
}

TEST(TracepointNotes, TextOfSeveralPartsStaysTogether) {
  const TracepointSchema schema = ParseGoodFormat(
      "\tfield:long state;\toffset:8;\tsize:8;\tsigned:1;\n",
      R"X("prev_state=%s%s", (REC->state & 0xff) ? __print_flags(REC->state & 0xff, "|",)X"
      R"X( { 0x1, "S" }) : "R", REC->state & 0x100 ? "+" : "")X");
  EXPECT_EQ(NotesOf(schema).at("Tracepoint.Field.state"),
            R"(hex ((state&255)?flags((state&255),"|",1="S"):"R") ((state&256)?"+":""))");
}

TEST(TracepointNotes, DerivedNumbersHaveTheirPrintedNames) {
  const TracepointSchema schema = ParseGoodFormat(
      "\tfield:unsigned long index;\toffset:8;\tsize:8;\tsigned:0;\n"
      "\tfield:dev_t s_dev;\toffset:16;\tsize:4;\tsigned:0;\n"
      "\tfield:unsigned long pfn;\toffset:24;\tsize:8;\tsigned:0;\n"
      "\tfield:int ret;\toffset:32;\tsize:4;\tsigned:1;\n"
      "\tfield:int flags;\toffset:36;\tsize:4;\tsigned:1;\n",
      R"X("ofs=%lu dev 0x%x:0x%x pfn=0x%lx len=%d", REC->index << 12, REC->s_dev >> 20,)X"
      R"X( REC->s_dev & 0xfffff, REC->pfn != -1UL ? REC->pfn : 0, (REC->flags & 2) ? 0 : (REC->ret + 1))X");
  const std::map<std::string, std::string> expected = {
      {"Tracepoint.Field.index", R"("ofs=" (index<<12))"},
      {"Tracepoint.Field.s_dev", R"("0x" hex((s_dev>>20)) ":" "0x" hex((s_dev&1048575)))"},
      {"Tracepoint.Field.pfn", "hex"},
      {"Tracepoint.Field.ret", R"("len=" ((flags&2)?0:(ret+1)))"}};
  EXPECT_EQ(NotesOf(schema), expected);
}

TEST(TracepointNotes, SeveralValuesOfAFieldHaveTheirNames) {
  const TracepointSchema schema = ParseGoodFormat(
      "\tfield:unsigned long gfp_flags;\toffset:8;\tsize:8;\tsigned:0;\n"
      "\tfield:int node;\toffset:16;\tsize:4;\tsigned:1;\n"
      "\tfield:unsigned int flags;\toffset:20;\tsize:4;\tsigned:0;\n",
      R"X("gfp_flags=%s node=%d accounted=%s cpu=%u idx=%u flags=%s",)X"
      R"X( __print_flags(REC->gfp_flags, "|", { 0x40, "B" }), REC->node,)X"
      R"X( (1 && (REC->gfp_flags & 0x40)) ? "true" : "false", REC->flags & 0x3FFFF,)X"
      R"X( REC->flags >> 22, __print_flags(REC->flags & 0x80000, "|", { 0x80000, "D" }))X");
  const auto notes = NotesOf(schema);
  EXPECT_EQ(notes.at("Tracepoint.Field.gfp_flags"),
            R"(hex "gfp_flags=" flags(gfp_flags,"|",64="B") " " "accounted=" )"
            R"(((1&&(gfp_flags&64))?"true":"false"))");
  EXPECT_EQ(notes.at("Tracepoint.Field.flags"),
            R"(hex "cpu=" (flags&262143) " " "idx=" (flags>>22) " " "flags=" )"
            R"(flags((flags&524288),"|",524288="D"))");
}

TEST(TracepointNotes, LargestAreLeftOutUntilTheyFit) {
  std::string fields;
  std::string format;
  std::string arguments;
  for (int i = 0; i < 4; ++i) {
    const std::string name = "f" + std::to_string(i);
    fields += "\tfield:int " + name + ";\toffset:" + std::to_string(8 + 4 * i) +
              ";\tsize:4;\tsigned:1;\n";
    format += "%s ";
    arguments += ", __print_symbolic(REC->" + name;
    for (int value = 0; value < 600 + 100 * i; ++value) {
      arguments += ", { " + std::to_string(value) + ", \"NAME_OF_" + std::to_string(value) + "\" }";
    }
    arguments += ")";
  }
  const auto notes = NotesOf(ParseGoodFormat(fields, "\"" + format + "\"" + arguments));
  std::size_t size = 0;
  for (const auto& [key, value] : notes) size += key.size() + value.size();
  EXPECT_LE(size, kMaxNotes);
  EXPECT_TRUE(notes.contains("Tracepoint.Field.f0"));
  EXPECT_FALSE(notes.contains("Tracepoint.Field.f3"));
}

TEST(TracepointNotes, InvalidPrintFmtLosesNoField) {
  const TracepointSchema schema = ParseGoodFormat(
      "\tfield:void * p;\toffset:8;\tsize:8;\tsigned:0;\n", "\"%d %(\", __bad((((REC->p, {{{");
  EXPECT_EQ(schema.metadata.fields.size(), 1u);
  EXPECT_EQ(NotesOf(schema).at("Tracepoint.Field.p"), "hex");
}

TEST(TracepointNotes, IgnoresNotesOfOtherProcesses) {
  const std::string format =
      Format("\tfield:int x;\toffset:8;\tsize:4;\tsigned:1;\n", "\"%x\", REC->x");
  EXPECT_EQ(NotesOf(*ParseTracepointFormat("sys", "test", 77, format)).size(), 1u);
  EXPECT_TRUE(NotesOf(*ParseTracepointFormat("user_events", "test", 77, format)).empty());
}

// Returns the format that the kernel shows for a definition that a process may have registered.
std::string UserFormat(const std::string& declaration, const std::string& size = "1") {
  return Format("\tfield:" + declaration + ";\toffset:8;\tsize:" + size + ";\tsigned:0;\n",
                "\"x=%u\", REC->x");
}

TEST(TracepointFormat, AcceptsWordsAndBracketsOfOtherProcesses) {
  for (const char* declaration :
       {"u32 x", "char x[]", "struct some_name x", "struct some_name * x", "unsigned char x[20]",
        "__data_loc char[] x", "__rel_loc u8[] x", "__rel_loc char x[]", "struct some_name x[]"}) {
    const auto schema =
        ParseTracepointFormat("user_events", "test", 77, UserFormat(declaration, "4"));
    ASSERT_TRUE(schema.ok()) << declaration << ": " << schema.status();
    EXPECT_EQ(schema->first_field, "x") << declaration;
  }
}

// libtraceevent crashes at some of these formats, and leaks memory at others.
TEST(TracepointFormat, RefusesAnythingElseOfOtherProcesses) {
  for (const char* declaration : {"u8 x[",
                                  "u8 x]",
                                  "u8 [",
                                  "u8 x[[1]]",
                                  "char[] x",
                                  "u8 x[1][2]",
                                  "__data_loc char[] x y",
                                  "__rel_loc char[4]x",
                                  "u8 x]1[",
                                  "__data_loc u8[ x",
                                  "u8 x\"",
                                  "u8 x\"y\"",
                                  "u8 x'",
                                  "u8 x\\",
                                  "u8 x\ny",
                                  "u8 x\n\tprint\tfmt:",
                                  "struct print fmt:",
                                  "u8 \xC3\xA9",
                                  "u8 x\x01",
                                  "u8 x(",
                                  "u8 REC->x",
                                  "u8 x{",
                                  "",
                                  " ",
                                  "[4]",
                                  "* x",
                                  "u8 x[*]",
                                  "struct LOCAL_PR_FMT x"}) {
    const auto schema = ParseTracepointFormat("user_events", "test", 77, UserFormat(declaration));
    EXPECT_TRUE(absl::IsInvalidArgument(schema.status())) << declaration;
    EXPECT_NE(schema.status().message().find("user_events:test"), std::string::npos);
  }
  const auto is_refused = [](const std::string& format, const std::string& event = "test") {
    return absl::IsInvalidArgument(
        ParseTracepointFormat("user_events", event, 77, format).status());
  };
  EXPECT_FALSE(is_refused(UserFormat("u8 x")));
  EXPECT_TRUE(is_refused(UserFormat("struct a x", "65529")));
  EXPECT_TRUE(is_refused(UserFormat("struct a x", "-1")));
  EXPECT_TRUE(is_refused(UserFormat("struct a x", "99999999999999999999")));
  EXPECT_TRUE(is_refused(UserFormat("u8 " + std::string(2000, 'x'))));
  std::string many;
  for (int i = 0; i < 2000; ++i) many += "\tfield:u8 x;\toffset:8;\tsize:1;\tsigned:0;\n";
  EXPECT_TRUE(is_refused(Format(many, "\"\"")));
  // The name or the id is that of another tracepoint, or the name has characters that would change
  // how the format is parsed.
  EXPECT_TRUE(is_refused(UserFormat("u8 x"), "other"));
  EXPECT_TRUE(is_refused("name: a\nID: 77\nformat:\n\nprint fmt: \"\"\n", "a\nID: 77"));
  EXPECT_TRUE(is_refused("name: a\"\nID: 77\nformat:\n\nprint fmt: \"\"\n", "a\""));
  EXPECT_TRUE(is_refused("name: test\nID: 78\nformat:\n\nprint fmt: \"\"\n"));
}

TEST(TracepointFormat, GarbageIsAnError) {
  EXPECT_FALSE(ParseTracepointFormat("s", "e", 1, "").ok());
  EXPECT_FALSE(ParseTracepointFormat("s", "e", 1, "name: x\nID: 2\nformat:\n").ok());
  const auto refused = [](const std::string& fields) {
    return !ParseTracepointFormat("s", "e", 77, Format(fields, "\"\"")).ok();
  };
  EXPECT_TRUE(refused("\tfield:int a;\toffset:8;\tsize:0;\tsigned:1;\n"));
  EXPECT_TRUE(
      refused("\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n"
              "\tfield int b;\toffset:12;\tsize:4;\tsigned:1;\n"));
  EXPECT_TRUE(refused("\tfield:int a;\toffset:4294967288;\tsize:4;\tsigned:1;\n"));
  EXPECT_TRUE(refused("\tfield:char a[70000];\toffset:8;\tsize:70000;\tsigned:0;\n"));
  EXPECT_TRUE(refused("\tfield:__data_loc char[] a;\toffset:8;\tsize:2;\tsigned:0;\n"));
  EXPECT_TRUE(
      refused("\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n"
              "\tfield:int b;\toffset:10;\tsize:4;\tsigned:1;\n"));
}

}  // namespace
}  // namespace collector
