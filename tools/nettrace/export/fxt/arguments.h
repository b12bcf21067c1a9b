// The fields of an event as the arguments of a Fuchsia record, which has room for few of them.
#ifndef TOOLS_NETTRACE_EXPORT_FXT_ARGUMENTS_H_
#define TOOLS_NETTRACE_EXPORT_FXT_ARGUMENTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tools::fxt {

// A record has at most so many.
inline constexpr std::size_t kMaxArguments = 15;
// The one that has what is beyond them, as JSON.
inline constexpr char kMore[] = "more";
// The bytes of text that all arguments of a record may have, and one argument's name.
inline constexpr std::size_t kMaxText = 30'000;
inline constexpr std::size_t kMaxName = 1000;

struct Argument {
  enum class Kind : std::uint8_t { kNull, kFalse, kTrue, kNumber, kText };
  std::string name;
  Kind kind = Kind::kNull;
  std::string text;  // digits, in JSON's form, of kNumber
};

// Appends the leaves of `payload_json`, which is an object of valid JSON, up to kMaxArguments: a
// struct's members are named `struct.member`, an array's elements `array[0]`, and one without any
// is the text {} or []. If there are more, the last argument is kMore, a JSON object of those left.
void AppendFields(std::string_view payload_json, std::vector<Argument>* arguments);

// `text`, or as much of it as fits into `size` bytes, at least 3, with "…" for the rest. The text
// must be UTF-8.
std::string CutText(std::string_view text, std::size_t size);

}  // namespace tools::fxt

#endif  // TOOLS_NETTRACE_EXPORT_FXT_ARGUMENTS_H_
