#include "tools/common/eventheader_keys.h"

#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace tools {
namespace {

using eh::Encoding;
using eh::Format;

// By their numbers.
constexpr std::string_view kEncodingNames[] = {"invalid",
                                               "struct",
                                               "value8",
                                               "value16",
                                               "value32",
                                               "value64",
                                               "value128",
                                               "zstring_char8",
                                               "zstring_char16",
                                               "zstring_char32",
                                               "string_length16_char8",
                                               "string_length16_char16",
                                               "string_length16_char32",
                                               "binary_length16_char8"};
constexpr std::string_view kFormatNames[] = {"default",
                                             "unsigned_int",
                                             "signed_int",
                                             "hex_int",
                                             "errno",
                                             "pid",
                                             "time",
                                             "boolean",
                                             "float",
                                             "hex_bytes",
                                             "string8",
                                             "string_utf",
                                             "string_utf_bom",
                                             "string_xml",
                                             "string_json",
                                             "uuid",
                                             "port",
                                             "ip_address",
                                             "ip_address_obsolete"};
// A format without a name is this and its number.
constexpr char kUnnamedFormat[] = "format";

std::string FormatName(Format format) {
  const auto number = static_cast<std::size_t>(format);
  if (number < std::size(kFormatNames)) return std::string(kFormatNames[number]);
  return absl::StrCat(kUnnamedFormat, number);
}

std::optional<Encoding> ParseEncoding(std::string_view name) {
  for (std::size_t i = 1; i < std::size(kEncodingNames); ++i) {
    if (kEncodingNames[i] == name) return static_cast<Encoding>(i);
  }
  return std::nullopt;
}

std::optional<Format> ParseFormat(absl::string_view name) {
  for (std::size_t i = 0; i < std::size(kFormatNames); ++i) {
    if (kFormatNames[i] == std::string_view(name.data(), name.size()))
      return static_cast<Format>(i);
  }
  std::uint32_t number = 0;
  if (!absl::ConsumePrefix(&name, kUnnamedFormat) || !absl::SimpleAtoi(name, &number) ||
      number > 0x7F) {
    return std::nullopt;
  }
  return static_cast<Format>(number);
}

// Removes the first word of `*text` and the space after it, and returns the word.
absl::string_view TakeWord(absl::string_view* text) {
  const absl::string_view word = text->substr(0, text->find(' '));
  text->remove_prefix(word.size());
  absl::ConsumePrefix(text, " ");
  return word;
}

}  // namespace

std::string FormatFieldNote(const FieldNote& note) {
  std::string text(kEncodingNames[static_cast<std::size_t>(note.encoding)]);
  if (note.encoding != Encoding::kStruct) absl::StrAppend(&text, " ", FormatName(note.format));
  if (note.tag) absl::StrAppendFormat(&text, " tag=0x%x", *note.tag);
  if (!note.attributes.empty()) absl::StrAppend(&text, " attr=", note.attributes);
  return text;
}

std::optional<FieldNote> ParseFieldNote(std::string_view value) {
  absl::string_view text(value.data(), value.size());
  FieldNote note;
  const absl::string_view encoding_name = TakeWord(&text);
  const std::optional<Encoding> encoding =
      ParseEncoding({encoding_name.data(), encoding_name.size()});
  if (!encoding) return std::nullopt;
  note.encoding = *encoding;
  if (note.encoding != Encoding::kStruct) {
    const std::optional<Format> format = ParseFormat(TakeWord(&text));
    if (!format) return std::nullopt;
    note.format = *format;
  }
  if (absl::ConsumePrefix(&text, "tag=")) {
    std::uint32_t tag = 0;
    if (!absl::SimpleHexAtoi(TakeWord(&text), &tag) || tag > 0xFFFF) return std::nullopt;
    note.tag = static_cast<std::uint16_t>(tag);
  }
  if (absl::ConsumePrefix(&text, "attr=")) {
    note.attributes = std::string(text);
  } else if (!text.empty()) {
    return std::nullopt;
  }
  return note;
}

std::optional<std::size_t> ParseFieldKey(std::string_view key) {
  absl::string_view text(key.data(), key.size());
  std::uint32_t index = 0;
  if (!absl::ConsumePrefix(&text, kKeyField) || !absl::SimpleAtoi(text, &index)) {
    return std::nullopt;
  }
  return index;
}

bool IsByteSequence(Encoding encoding, Format format) {
  if (encoding >= Encoding::kZStringChar8) {
    return format < Format::kString8 || format > Format::kStringJson;
  }
  if (encoding == Encoding::kValue128) return format != Format::kUuid;
  return encoding >= Encoding::kValue8 &&
         (format == Format::kHexBytes || format == Format::kIpAddress ||
          format == Format::kIpAddressObsolete);
}

std::size_t UnitSize(Encoding encoding) {
  switch (encoding) {
    case Encoding::kZStringChar16:
    case Encoding::kStringLength16Char16:
      return 2;
    case Encoding::kZStringChar32:
    case Encoding::kStringLength16Char32:
      return 4;
    default:
      return 1;
  }
}

}  // namespace tools
