#include "tools/collector/tracefs/user_event_definition.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "eventheader/tracepoint_name.h"
#include "libeventheader/base/user_events.h"
#include "tools/base/status_macros.h"

namespace collector {
namespace {

// Maximum length of a tracepoint's name, in bytes. tracefs uses it as the name of a folder.
constexpr std::size_t kMaxName = 255;

constexpr std::array<absl::string_view, 14> kNumberTypes = {
    "s64",          "u64", "s32",  "u32",          "int",
    "unsigned int", "s16", "u16",  "short",        "unsigned short",
    "s8",           "u8",  "char", "unsigned char"};
// Types that the kernel supports as elements of arrays.
constexpr std::array<absl::string_view, 2> kArrayTypes = {"char", "unsigned char"};

bool IsNumberType(absl::string_view type) {
  return std::find(kNumberTypes.begin(), kNumberTypes.end(), type) != kNumberTypes.end();
}
bool IsArrayType(absl::string_view type) {
  return std::find(kArrayTypes.begin(), kArrayTypes.end(), type) != kArrayTypes.end();
}

bool IsIdentifier(absl::string_view name) {
  return eh::IsValidProviderName({name.data(), name.size()});
}

// Removes "[N]" from the end of `*text`, and returns the text between the brackets. If there are no
// brackets, returns a view whose data() is null.
absl::string_view TakeBrackets(absl::string_view* text) {
  const std::size_t open = text->find('[');
  if (open == absl::string_view::npos || !absl::EndsWith(*text, "]")) return {};
  const absl::string_view inside = text->substr(open + 1, text->size() - open - 2);
  *text = text->substr(0, open);
  return inside;
}

absl::Status WrongField(absl::string_view field, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("field '", field, "' ", why));
}

// Parses the words of "struct NAME field SIZE".
absl::StatusOr<std::string> StructField(absl::string_view field,
                                        const std::vector<absl::string_view>& words) {
  std::uint32_t size = 0;
  if (words.size() != 4 || !IsIdentifier(words[1]) || !IsIdentifier(words[2]) ||
      !absl::SimpleAtoi(words[3], &size) || size == 0) {
    return WrongField(
        field, "is not a valid struct; use 'struct NAME field SIZE', with the size in bytes");
  }
  return absl::StrCat("struct ", words[1], " ", words[2], " ", size);
}

// Parses the words of a type. As in C, the size of an array may be after the field's name; it is
// then in `brackets`.
absl::StatusOr<std::string> TypeOf(absl::string_view field, absl::string_view words,
                                   absl::string_view brackets) {
  absl::string_view base = words;
  const bool is_dynamic =
      absl::ConsumePrefix(&base, "__data_loc ") || absl::ConsumePrefix(&base, "__rel_loc ");
  absl::string_view element = base;
  const absl::string_view size_in_type = TakeBrackets(&element);
  const bool is_array = element.size() != base.size() || brackets.data() != nullptr;
  if (!IsNumberType(element)) {
    return WrongField(field,
                      "has an unknown type; the kernel accepts u8 to u64, s8 to s64, "
                      "char, short, int, unsigned …, char[N], __rel_loc char[] and struct");
  }
  if (is_array && !IsArrayType(element)) {
    return WrongField(field,
                      "has a type that the kernel does not accept in arrays; use char[N], "
                      "unsigned char[N] or 'struct NAME field SIZE'");
  }
  if (is_dynamic) {
    if (!is_array || !size_in_type.empty() || brackets.data() != nullptr) {
      return WrongField(field,
                        "must have a type that ends with [], without a size; "
                        "example: '__rel_loc char[] text'");
    }
    return std::string(words);
  }
  if (!is_array) return std::string(words);
  const absl::string_view size = brackets.data() == nullptr ? size_in_type : brackets;
  std::uint32_t count = 0;
  if (element.size() != base.size() && brackets.data() != nullptr) {
    return WrongField(field, "has two sizes; omit one");
  }
  if (!absl::SimpleAtoi(size, &count) || count == 0) {
    return WrongField(field, "has no valid size; example: char[8]");
  }
  return absl::StrCat(element, "[", count, "]");
}

// Parses one field, and returns it in the kernel's form.
absl::StatusOr<std::string> ParseField(absl::string_view field) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(field, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (words.size() < 2) return WrongField(field, "must be a type and a name; example: 'u32 count'");
  if (words.front() == "struct") return StructField(field, words);
  absl::string_view name = words.back();
  const absl::string_view brackets = TakeBrackets(&name);
  if (!IsIdentifier(name)) {
    return WrongField(field, "has an invalid name; use letters, digits and '_'");
  }
  const std::string type_words = absl::StrJoin(words.begin(), words.end() - 1, " ");
  ASSIGN_OR_RETURN(const std::string type, TypeOf(field, type_words, brackets));
  return absl::StrCat(type, " ", name);
}

absl::StatusOr<std::string> ParseFields(absl::string_view text) {
  std::string fields;
  absl::flat_hash_set<std::string> names;
  for (absl::string_view field : absl::StrSplit(text, ';')) {
    field = absl::StripAsciiWhitespace(field);
    if (field.empty()) continue;  // an empty part, such as that after the last semicolon
    ASSIGN_OR_RETURN(const std::string parsed, ParseField(field));
    std::vector<std::string> words = absl::StrSplit(parsed, ' ');
    if (!names.insert(words[words.size() - (words.front() == "struct" ? 2 : 1)]).second) {
      return WrongField(field, "has the same name as another field; use different names");
    }
    absl::StrAppend(&fields, fields.empty() ? "" : "; ", parsed);
  }
  return fields;
}

absl::Status CheckName(absl::string_view name) {
  if (!IsIdentifier(name) || name.size() > kMaxName) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", name, "' is not a valid tracepoint name; use letters, digits and '_', at most ",
        kMaxName, " characters"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<UserEventDefinition> EventHeaderDefinition(std::string_view name) {
  if (!eh::ParseTracepointName(name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", absl::string_view(name.data(), name.size()),
        "' is not an EventHeader name; use Provider_L<level>K<keyword>[Options], up to ",
        eh::kMaxTracepointName,
        " characters, with lower-case hex numbers, e.g. MyCompany_MyService_L4K1"));
  }
  return UserEventDefinition{std::string(name)};
}

absl::StatusOr<UserEventDefinition> ParseUserEventDefinition(std::string_view text) {
  const absl::string_view all =
      absl::StripAsciiWhitespace(absl::string_view(text.data(), text.size()));
  if (all.size() >= eh::internal::user_events::kMaxCommand) {
    return absl::InvalidArgumentError(absl::StrCat("the definition has ", all.size(),
                                                   " characters; the kernel accepts at most ",
                                                   eh::internal::user_events::kMaxCommand - 1));
  }
  const std::size_t end = std::min(all.find_first_of(" \t;"), all.size());
  UserEventDefinition definition;
  definition.name = std::string(all.substr(0, end));
  RETURN_IF_ERROR(CheckName(definition.name));
  absl::string_view rest = absl::StripAsciiWhitespace(all.substr(end));
  if (rest.empty()) return EventHeaderDefinition(definition.name);
  absl::StatusOr<std::string> fields = ParseFields(rest);
  if (!fields.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(definition.name, ": ", fields.status().message()));
  }
  definition.fields = *std::move(fields);
  if (eh::ParseTracepointName(definition.name) && !definition.IsEventHeader()) {
    return absl::InvalidArgumentError(absl::StrCat(
        definition.name,
        ": a name of this form is reserved for EventHeader tracepoints, which have the fields '",
        eh::kTracepointFields, "'; omit the fields, or choose another name"));
  }
  // The kernel's form may be longer than the text, because it has a blank after each semicolon.
  if (definition.Text().size() >= eh::internal::user_events::kMaxCommand) {
    return absl::InvalidArgumentError(
        absl::StrCat(definition.name, ": the definition has ", definition.Text().size(),
                     " characters, with a blank after each semicolon; the kernel accepts at most ",
                     eh::internal::user_events::kMaxCommand - 1));
  }
  return definition;
}

std::string FieldsOfFormat(std::string_view format) {
  std::string fields;
  for (absl::string_view line :
       absl::StrSplit(absl::string_view(format.data(), format.size()), '\n')) {
    // A line with a field is, for example, "\tfield:u32 a;\toffset:8;\tsize:4;\tsigned:0;".
    if (!absl::ConsumePrefix(&line, "\tfield:")) continue;
    const std::size_t end = line.find(";\toffset:");
    const std::size_t at = line.find(";\tsize:");
    if (end == absl::string_view::npos || at == absl::string_view::npos) continue;
    absl::string_view size = line.substr(at + std::string_view(";\tsize:").size());
    size = size.substr(0, size.find(';'));
    const absl::string_view field = line.substr(0, end);
    const std::size_t blank = std::min(field.rfind(' '), field.size());
    const absl::string_view type = field.substr(0, blank);
    absl::string_view name = field.substr(std::min(blank + 1, field.size()));
    if (absl::StartsWith(name, "common_")) continue;
    absl::StrAppend(&fields, fields.empty() ? "" : "; ", type);
    // The kernel shows the type char[8] as "char NAME[N]" with size 8. N is ignored, because the
    // kernel does not initialize it for fields of user_events: it is missing, or any number.
    const std::size_t bracket = name.find('[');
    if (bracket != absl::string_view::npos && absl::EndsWith(name, "]")) {
      name = name.substr(0, bracket);
      absl::StrAppend(&fields, "[", absl::StartsWith(type, "__") ? "" : size, "]");
    }
    absl::StrAppend(&fields, " ", name);
    if (absl::StartsWith(type, "struct ")) absl::StrAppend(&fields, " ", size);
  }
  return fields;
}

}  // namespace collector
