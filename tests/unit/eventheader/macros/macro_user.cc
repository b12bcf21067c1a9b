#include "macro_user.h"

#if __cplusplus >= 202002L
#error "this file is to be compiled as C++17"
#endif

using eh::Format;
using eh::Level;

void WriteNothing() { EVENTHEADER_EVENT(macro_provider, "Nothing", Level::kError, 0x2a); }

void WriteNumbers(bool b, std::int8_t i8, std::uint16_t u16, std::int32_t i32, std::uint64_t u64,
                  float f, double d, MacroColour colour, const void* pointer) {
  EVENTHEADER_EVENT(macro_provider, "Numbers", 4, 1, EVENTHEADER_FIELD("b", b),
                    EVENTHEADER_FIELD("i8", i8), EVENTHEADER_FIELD("u16", u16),
                    EVENTHEADER_FIELD("i32", i32), EVENTHEADER_FIELD("u64", u64),
                    EVENTHEADER_FIELD("f", f), EVENTHEADER_FIELD("d", d),
                    EVENTHEADER_FIELD("colour", colour), EVENTHEADER_FIELD("pointer", pointer),
                    EVENTHEADER_FIELD("null", nullptr), EVENTHEADER_FIELD("byte", std::byte{7}));
}

void WriteCharacters(char c, char16_t c16, char32_t c32, wchar_t wide) {
  EVENTHEADER_EVENT(macro_provider, "Characters", 4, 1, EVENTHEADER_FIELD("c", c),
                    EVENTHEADER_FIELD("c16", c16), EVENTHEADER_FIELD("c32", c32),
                    EVENTHEADER_FIELD("wide", wide));
}

void WriteText(const std::string& text, std::string_view view, const char* c_string,
               const std::u16string& text16, const wchar_t* wide) {
  char buffer[4] = {'f', 'u', 'l', 'l'};
  EVENTHEADER_EVENT(macro_provider, "Text", 4, 1, EVENTHEADER_FIELD("text", text),
                    EVENTHEADER_FIELD("view", view), EVENTHEADER_FIELD("c", c_string),
                    EVENTHEADER_FIELD("text16", text16), EVENTHEADER_FIELD("wide", wide),
                    EVENTHEADER_FIELD("literal", "literal"), EVENTHEADER_FIELD("full", buffer));
}

void WriteFormats(std::uint32_t number, std::string_view json, int error) {
  EVENTHEADER_EVENT(macro_provider, "Formats", 4, 1,
                    EVENTHEADER_FIELD_AS("number", number, Format::kHexInt),
                    EVENTHEADER_FIELD_AS("json", json, Format::kStringJson),
                    EVENTHEADER_FIELD_AS("error", error, Format::kErrno));
}

void WriteArrays(const std::vector<std::uint16_t>& numbers, const std::array<double, 2>& doubles,
                 const std::vector<std::string>& texts, const int* pointer, std::size_t count) {
  EVENTHEADER_EVENT(macro_provider, "Arrays", 4, 1, EVENTHEADER_FIELD("numbers", numbers),
                    EVENTHEADER_FIELD("doubles", doubles), EVENTHEADER_FIELD("texts", texts),
                    EVENTHEADER_ARRAY("ints", pointer, count));
}

void WriteBinary(const void* data, std::size_t size) {
  EVENTHEADER_EVENT(macro_provider, "Binary", 4, 1, EVENTHEADER_BINARY("data", data, size));
}

void WriteOthers(const std::optional<int>& number, const std::vector<bool>& bools,
                 const std::vector<std::byte>& bytes, const int (&ints)[2], eh::Port port) {
  EVENTHEADER_EVENT(macro_provider, "Others", 4, 1, EVENTHEADER_FIELD("number", number),
                    EVENTHEADER_FIELD("bools", bools), EVENTHEADER_FIELD("bytes", bytes),
                    EVENTHEADER_FIELD("ints", ints), EVENTHEADER_FIELD("port", port));
}

void WriteValues(const CValues& v) {
  EVENTHEADER_EVENT(macro_provider, "Values", 4, 1, EVENTHEADER_FIELD("b", v.b),
                    EVENTHEADER_FIELD("c", v.c), EVENTHEADER_FIELD("i8", v.i8),
                    EVENTHEADER_FIELD("u8", v.u8), EVENTHEADER_FIELD("i16", v.i16),
                    EVENTHEADER_FIELD("text", v.text), EVENTHEADER_FIELD("u16", v.u16),
                    EVENTHEADER_FIELD("i32", v.i32), EVENTHEADER_FIELD("u32", v.u32),
                    EVENTHEADER_FIELD("i64", v.i64), EVENTHEADER_FIELD("u64", v.u64),
                    EVENTHEADER_FIELD("longest", v.longest), EVENTHEADER_FIELD("f", v.f),
                    EVENTHEADER_FIELD("d", v.d), EVENTHEADER_FIELD("pointer", v.pointer),
                    EVENTHEADER_FIELD("literal", "literal"), EVENTHEADER_FIELD("last", 17));
}

void WriteFormatsOf(const CValues& v) {
  EVENTHEADER_EVENT(
      macro_provider, "Formats", 4, 1, EVENTHEADER_FIELD_AS("8u", v.u8, Format::kUnsignedInt),
      EVENTHEADER_FIELD_AS("8s", v.u8, Format::kSignedInt),
      EVENTHEADER_FIELD_AS("8x", v.u8, Format::kHexInt),
      EVENTHEADER_FIELD_AS("8b", v.u8, Format::kBoolean),
      EVENTHEADER_FIELD_AS("8h", v.u8, Format::kHexBytes),
      EVENTHEADER_FIELD_AS("8c", v.u8, Format::kString8),
      EVENTHEADER_FIELD_AS("16b", v.u16, Format::kBoolean),
      EVENTHEADER_FIELD_AS("16c", v.u16, Format::kStringUtf),
      EVENTHEADER_FIELD_AS("16p", v.u16, Format::kPort),
      EVENTHEADER_FIELD_AS("32e", v.i32, Format::kErrno),
      EVENTHEADER_FIELD_AS("32i", v.i32, Format::kPid),
      EVENTHEADER_FIELD_AS("32t", v.i32, Format::kTime),
      EVENTHEADER_FIELD_AS("32b", v.i32, Format::kBoolean),
      EVENTHEADER_FIELD_AS("32f", v.u32, Format::kFloat),
      EVENTHEADER_FIELD_AS("32c", v.u32, Format::kStringUtf),
      EVENTHEADER_FIELD_AS("32a", v.u32, Format::kIpAddress),
      EVENTHEADER_FIELD_AS("64t", v.i64, Format::kTime),
      EVENTHEADER_FIELD_AS("64f", v.u64, Format::kFloat),
      EVENTHEADER_FIELD_AS("64x", v.u64, Format::kHexInt), EVENTHEADER_UUID("uuid", v.bytes16),
      EVENTHEADER_IP4("ip4", v.bytes16), EVENTHEADER_IP6("ip6", v.bytes16),
      EVENTHEADER_FIELD_AS("json", v.text, Format::kStringJson),
      EVENTHEADER_FIELD_AS("latin", v.text, Format::kString8),
      EVENTHEADER_FIELD_TAGGED("tagged", v.i32, Format::kDefault, 0x1234),
      EVENTHEADER_FIELD_TAGGED("both", v.i32, Format::kHexInt, 7),
      EVENTHEADER_FIELD_TAGGED("plain", v.u32, Format::kDefault, 8));
}

void WriteRanges(const CValues& v) {
  EVENTHEADER_EVENT(
      macro_provider, "Ranges", 4, 1, EVENTHEADER_STRING("string", v.text, 2),
      EVENTHEADER_STRING("string16", reinterpret_cast<const char16_t*>(v.text16), v.text16_size),
      EVENTHEADER_STRING_AS("xml", v.text, 3, Format::kStringXml), EVENTHEADER_ZSTRING("z", v.text),
      EVENTHEADER_ZSTRING_AS("zj", v.text, Format::kStringJson), EVENTHEADER_FIELD("between", v.u8),
      EVENTHEADER_BINARY("binary", v.bytes16, 5),
      EVENTHEADER_BINARY_AS("uuid", v.bytes16, 16, Format::kUuid),
      EVENTHEADER_ARRAY("array", v.numbers, v.number_count),
      EVENTHEADER_ARRAY_AS("hex", v.numbers, v.number_count, Format::kHexInt),
      EVENTHEADER_CONSTANT_ARRAY("constant", v.numbers, 3),
      EVENTHEADER_CONSTANT_ARRAY_AS("pids", v.numbers, 2, Format::kPid));
}

void WriteStructs(const CValues& v) {
  EVENTHEADER_EVENT(macro_provider, "Structs", 4, 1, EVENTHEADER_STRUCT("outer", 3),
                    EVENTHEADER_FIELD("a", v.i32), EVENTHEADER_STRUCT("inner", 1),
                    EVENTHEADER_FIELD("b", v.text), EVENTHEADER_FIELD("c", v.u16),
                    EVENTHEADER_FIELD("after", v.d));
}

bool Enabled() { return EVENTHEADER_ENABLED(macro_provider, Level::kWarning, 0x100); }

void WriteDescribed(const MacroPoint& point, const std::vector<MacroLine>& lines) {
  EVENTHEADER_EVENT(macro_provider, "Described", 4, 1, EVENTHEADER_FIELD("point", point),
                    EVENTHEADER_FIELD("lines", lines));
}

void WriteAddresses(const in_addr& ip4, const in6_addr& ip6, const eh::ActivityId& uuid,
                    std::chrono::system_clock::time_point time) {
  EVENTHEADER_EVENT(macro_provider, "Addresses", 4, 1, EVENTHEADER_FIELD("ip4", ip4),
                    EVENTHEADER_IP4("ip4 again", ip4), EVENTHEADER_IP6("ip6", ip6),
                    EVENTHEADER_UUID("uuid", uuid), EVENTHEADER_FIELD("time", time));
}

// The temporaries of a field's value must live until the value is copied.
void WriteTemporaries() {
  const auto make = [](char c) { return std::string(40, c); };
  EVENTHEADER_EVENT(macro_provider, "Temporaries", 4, 1, EVENTHEADER_FIELD("a", make('a').c_str()),
                    EVENTHEADER_FIELD("b", std::string_view(make('b'))),
                    EVENTHEADER_FIELD("c", [] { return 17; }()));
}

void WriteActivity(const eh::ActivityId& id, const eh::ActivityId& related) {
  EVENTHEADER_EVENT(macro_provider, "Alone", 4, 1, EVENTHEADER_ACTIVITY(id));
  EVENTHEADER_EVENT(macro_provider, "Started", Level::kVerbose, 1,
                    EVENTHEADER_OPCODE(eh::Opcode::kActivityStart), EVENTHEADER_ID(0x1234, 5),
                    EVENTHEADER_TAG(0x6789), EVENTHEADER_FIELD("n", 17),
                    EVENTHEADER_ACTIVITY(id, &related));
}

void WriteCosts(int* evaluated) {
  EVENTHEADER_EVENT(macro_provider, "Costs", 4, 1, EVENTHEADER_FIELD("evaluated", ++*evaluated));
}

namespace {

template <typename T>
void WriteFromTemplate(const T& value) {
  EVENTHEADER_EVENT(macro_provider, "FromTemplate", 4, sizeof(T), EVENTHEADER_FIELD("f", value));
}

inline void WriteInline() { EVENTHEADER_EVENT(macro_provider, "FromInline", 4, 1); }

}  // namespace

void WriteFromTemplates() {
  WriteFromTemplate(std::int16_t{-1});
  WriteFromTemplate(1.0F);
  WriteInline();
}

void WriteOneOf(bool first) {
  if (first)
    EVENTHEADER_EVENT(macro_provider, "First", 4, 1);
  else
    EVENTHEADER_EVENT(macro_provider, "Second", 4, 1);
}
