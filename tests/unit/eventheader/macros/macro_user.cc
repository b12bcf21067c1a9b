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
