// Uses the macros like a C++17 program; the test compares the events with C++20's static ones.
#ifndef TESTS_UNIT_EVENTHEADER_MACROS_MACRO_USER_H_
#define TESTS_UNIT_EVENTHEADER_MACROS_MACRO_USER_H_

#include <netinet/in.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "c_macro_user.h"
#include "eventheader/formatted.h"
#include "eventheader/macros.h"

// Defined in a header, so that the sources in C++17 and in C++20 share one provider.
EVENTHEADER_DEFINE_PROVIDER_IN_GROUP(macro_provider, "Test_Macros", "mygroup");

enum class MacroColour : std::int16_t { kRed = -3 };

struct MacroPoint {
  std::int16_t x;
  std::uint32_t y;
};
struct MacroLine {
  std::string name;
  std::array<MacroPoint, 2> ends;
};
EVENTHEADER_DESCRIBE_STRUCT(MacroPoint, EVENTHEADER_MEMBER("x", x),
                            EVENTHEADER_MEMBER_TAGGED("y", y, eh::Format::kHexInt, 9));
EVENTHEADER_DESCRIBE_STRUCT(MacroLine, EVENTHEADER_MEMBER("name", name),
                            EVENTHEADER_MEMBER("ends", ends));

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
// Like the functions of c_macro_user.h.
void WriteValues(const CValues& v);
void WriteFormatsOf(const CValues& v);
void WriteRanges(const CValues& v);
void WriteStructs(const CValues& v);
bool Enabled();
// Writes fields of types that C does not have.
void WriteDescribed(const MacroPoint& point, const std::vector<MacroLine>& lines);
void WriteAddresses(const in_addr& ip4, const in6_addr& ip6, const eh::ActivityId& uuid,
                    std::chrono::system_clock::time_point time);
void WriteTemporaries();
// Uses the macros in a template and in an inline function.
void WriteFromTemplates();
// Uses the macros in branches without braces. If `first` is true, writes the first of two events.
void WriteOneOf(bool first);

#endif  // TESTS_UNIT_EVENTHEADER_MACROS_MACRO_USER_H_
