// Uses the macros as a C++17 program does; the test compares the events with C++20's static ones.
#ifndef TESTS_UNIT_EVENTHEADER_MACROS_MACRO_USER_H_
#define TESTS_UNIT_EVENTHEADER_MACROS_MACRO_USER_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "eventheader/formatted.h"
#include "eventheader/macros.h"

// Defined in a header, hence one provider for both languages.
EVENTHEADER_DEFINE_PROVIDER_IN_GROUP(macro_provider, "Test_Macros", "mygroup");

enum class MacroColour : std::int16_t { kRed = -3 };

void WriteNothing();
void WriteNumbers(bool b, std::int8_t i8, std::uint16_t u16, std::int32_t i32, std::uint64_t u64,
                  float f, double d, MacroColour colour, const void* pointer);
void WriteCharacters(char c, char16_t c16, char32_t c32, wchar_t wide);
void WriteText(const std::string& text, std::string_view view, const char* c_string,
               const std::u16string& text16, const wchar_t* wide);
void WriteFormats(std::uint32_t number, std::string_view json, int error);
void WriteArrays(const std::vector<std::uint16_t>& numbers, const std::array<double, 2>& doubles,
                 const std::vector<std::string>& texts, const int* pointer, std::size_t count);
void WriteBinary(const void* data, std::size_t size);
void WriteOthers(const std::optional<int>& number, const std::vector<bool>& bools,
                 const std::vector<std::byte>& bytes, const int (&ints)[2], eh::Port port);
void WriteActivity(const eh::ActivityId& id, const eh::ActivityId& related);
void WriteCosts(int* evaluated);
// Uses the macros in a template and in an inline function.
void WriteFromTemplates();
// Uses the macros in branches without braces; true: the first of two.
void WriteOneOf(bool first);

#endif  // TESTS_UNIT_EVENTHEADER_MACROS_MACRO_USER_H_
