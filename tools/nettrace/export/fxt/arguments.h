// Converts the fields of an event to the arguments of a Fuchsia record, which has at most 15
// arguments.
#ifndef TOOLS_NETTRACE_EXPORT_FXT_ARGUMENTS_H_
#define TOOLS_NETTRACE_EXPORT_FXT_ARGUMENTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tools::fxt {

// Maximum number of arguments of a record.
inline constexpr std::size_t kMaxArguments = 15;
// Name of the argument that holds the remaining fields, as JSON.
inline constexpr char kMore[] = "more";
// Maximum number of bytes of text in all arguments of a record, and in the name of one argument.
inline constexpr std::size_t kMaxText = 30'000;
inline constexpr std::size_t kMaxName = 1000;

struct Argument {
  enum class Kind : std::uint8_t { kNull, kFalse, kTrue, kNumber, kText };
  std::string name;
  Kind kind = Kind::kNull;
  std::string text;  // the text of kText, or the number of kNumber in JSON syntax
};

// Appends the leaves of `payload_json`, which must be a valid JSON object, up to a total of
// kMaxArguments. The members of a struct are named `struct.member`, and the elements of an array
// `array[0]`. An empty struct or array becomes the text {} or []. If there are more leaves, the
// last argument is kMore, a JSON object of the remaining ones. Leaves after about kMaxText bytes of
// this JSON are dropped. All names begin with `prefix`. Perfetto shows only one of several
// arguments with the same name, so a leaf with the name of an argument that `arguments` already had
// is named `payload.leaf`.
void AppendFields(std::string_view payload_json, std::string_view prefix,
                  std::vector<Argument>* arguments);

// Returns `text`, which must be UTF-8. If it is longer than `size` bytes (at least 3), it is cut to
// fit and ends with "…".
std::string CutText(std::string_view text, std::size_t size);

}  // namespace tools::fxt

#endif  // TOOLS_NETTRACE_EXPORT_FXT_ARGUMENTS_H_
