#include "tools/trace/eventheader_keys.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "eventheader/internal/field_rules.h"

namespace trace {
namespace {

using eh::Encoding;
using eh::Format;

// A format that has no name is written as this text and the number of the format.
constexpr char kUnnamedFormat[] = "format";

std::string FormatName(Format format) {
  const eh::internal::FormatFacts* const facts = eh::internal::FactsOf(format);
  if (facts != nullptr) return facts->name;
  return absl::StrCat(kUnnamedFormat, static_cast<unsigned>(format));
}

std::optional<Encoding> ParseEncoding(absl::string_view name) {
  for (const eh::internal::EncodingFacts& facts : eh::internal::kEncodings) {
    if (facts.encoding != Encoding::kInvalid && name == facts.name) return facts.encoding;
  }
  return std::nullopt;
}

std::optional<Format> ParseFormat(absl::string_view name) {
  for (const eh::internal::FormatFacts& facts : eh::internal::kFormats) {
    if (name == facts.name) return facts.format;
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
  std::string text = eh::internal::FactsOf(note.encoding).name;
  if (note.encoding != Encoding::kStruct) absl::StrAppend(&text, " ", FormatName(note.format));
  if (note.tag) absl::StrAppendFormat(&text, " tag=0x%x", *note.tag);
  if (!note.attributes.empty()) absl::StrAppend(&text, " attr=", note.attributes);
  return text;
}

std::optional<FieldNote> ParseFieldNote(std::string_view value) {
  absl::string_view text(value.data(), value.size());
  FieldNote note;
  const std::optional<Encoding> encoding = ParseEncoding(TakeWord(&text));
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
  if (!absl::ConsumePrefix(&text, kKeyField) || !absl::c_all_of(text, absl::ascii_isdigit) ||
      !absl::SimpleAtoi(text, &index)) {
    return std::nullopt;
  }
  return index;
}

bool IsNullable(Encoding encoding, Format format) {
  const Format shown = eh::internal::ShownFormat(encoding, format);
  return eh::internal::CountsBytes(encoding) &&
         eh::internal::FactsOf(shown)->kind == eh::internal::FormatKind::kFixedSize;
}

std::vector<std::pair<std::string, std::string>> ParseAttributes(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> attributes;
  while (!text.empty()) {
    auto& [name, value] = attributes.emplace_back();
    const std::size_t name_size = std::min(text.find_first_of(";="), text.size());
    name = text.substr(0, name_size);
    text.remove_prefix(name_size);
    if (text.starts_with('=')) {
      text.remove_prefix(1);
      while (!text.empty() && (text[0] != ';' || text.starts_with(";;"))) {
        value += text[0];
        text.remove_prefix(text[0] == ';' ? 2 : 1);
      }
    }
    if (!text.empty()) text.remove_prefix(1);
  }
  return attributes;
}

bool IsByteSequence(Encoding encoding, Format format) {
  format = eh::internal::ShownFormat(encoding, format);
  if (eh::internal::CodeUnitSize(encoding) != 0) {
    return eh::internal::FactsOf(format)->kind != eh::internal::FormatKind::kText;
  }
  return format == Format::kHexBytes || format == Format::kIpAddress;
}

}  // namespace trace
