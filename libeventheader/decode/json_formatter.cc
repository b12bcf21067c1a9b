#include "eventheader/json_formatter.h"

#include <arpa/inet.h>

#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>

#include "eventheader/decoder.h"
#include "eventheader/internal/field_rules.h"
#include "libeventheader/base/hex.h"
#include "libeventheader/decode/json_writer.h"

namespace eh {
namespace internal {
namespace {

using Bytes = std::span<const std::byte>;

void WriteHexInt(std::uint64_t value, JsonWriter* json) noexcept {
  char text[2 + 16] = {'0', 'x'};
  const auto end = std::to_chars(text + 2, std::end(text), value, 16).ptr;
  json->String({text, static_cast<std::size_t>(end - text)});
}

void WriteErrno(std::int64_t value, JsonWriter* json) noexcept {
  const char* name = value == 0 ? nullptr : strerrorname_np(static_cast<int>(value));
  if (name != nullptr) {
    json->String(name);
  } else {
    json->Number(value);
  }
}

// Writes a time as in 2026-11-21T10:22:00Z, or as a number of seconds if the year is not 0 to 9999.
void WriteTime(std::int64_t seconds, JsonWriter* json) noexcept {
  constexpr std::int64_t kYear0 = -62'167'219'200;
  constexpr std::int64_t kYear10000 = 253'402'300'800;
  if (seconds < kYear0 || seconds >= kYear10000) {
    json->Number(seconds);
    return;
  }
  const std::chrono::sys_seconds time{std::chrono::seconds(seconds)};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  char text[sizeof("2026-11-21T10:22:00Z")];
  const auto put = [](char* at, int digits, auto value) {
    auto rest = static_cast<unsigned>(value);
    for (; digits > 0; rest /= 10) at[--digits] = static_cast<char>('0' + rest % 10);
  };
  std::memcpy(text, "0000-00-00T00:00:00Z", sizeof(text));
  put(text, 4, static_cast<int>(date.year()));
  put(text + 5, 2, static_cast<unsigned>(date.month()));
  put(text + 8, 2, static_cast<unsigned>(date.day()));
  put(text + 11, 2, clock.hours().count());
  put(text + 14, 2, clock.minutes().count());
  put(text + 17, 2, clock.seconds().count());
  json->String({text, sizeof(text) - 1});
}

void WriteBoolean(std::uint64_t value, JsonWriter* json) noexcept {
  if (value > 1) {
    json->Number(value);
  } else {
    json->Literal(value == 1 ? "true" : "false");
  }
}

template <typename Float>
void WriteFloat(Float value, JsonWriter* json) noexcept {
  if (std::isfinite(value)) {
    json->Number(value);
  } else if (std::isnan(value)) {
    json->String("NaN");
  } else {
    json->String(value > 0 ? "Infinity" : "-Infinity");
  }
}

void WriteUuid(Bytes bytes, JsonWriter* json) noexcept {
  char text[36];
  char* out = text;
  for (std::size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) *out++ = '-';
    out = PutHex(out, bytes.subspan(i, 1));
  }
  json->String({text, sizeof(text)});
}

void WriteIpAddress(Bytes bytes, JsonWriter* json) noexcept {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(bytes.size() == 4 ? AF_INET : AF_INET6, bytes.data(), text, sizeof(text));
  json->String(text);
}

// Returns the UTF encoding whose code units have `size` bytes.
TextEncoding UtfOf(std::size_t size) noexcept {
  return size == 1 ? TextEncoding::kUtf8 : size == 2 ? TextEncoding::kUtf16 : TextEncoding::kUtf32;
}

// Returns the bytes of a code unit of a string, or of a single character.
std::size_t CodeUnitOf(Encoding encoding) noexcept {
  const EncodingFacts& facts = FactsOf(encoding);
  return facts.fixed_size != 0 ? facts.fixed_size : facts.code_unit_size;
}

void WriteText(const FieldDefinition& field, Bytes bytes, Format format, bool little_endian,
               JsonWriter* json) noexcept {
  const TextEncoding encoding =
      format == Format::kString8 ? TextEncoding::kLatin1 : UtfOf(CodeUnitOf(field.encoding));
  TextReader text(bytes, encoding, little_endian);
  if (HasByteOrderMark(format)) text.TakeByteOrderMark();
  json->Text(text);
}

void WriteValue(const Item& item, bool little_endian, JsonWriter* json) noexcept {
  const Bytes bytes = item.bytes;
  const Format format = ValueFormat(item.field->encoding, item.field->format, bytes.size());
  switch (format) {
    case Format::kDefault:
      return json->Literal("null");
    case Format::kUnsignedInt:
      return json->Number(ReadUnsigned(bytes, little_endian));
    case Format::kSignedInt:
    case Format::kPid:
      return json->Number(ReadSigned(bytes, little_endian));
    case Format::kHexInt:
      return WriteHexInt(ReadUnsigned(bytes, little_endian), json);
    case Format::kErrno:
      return WriteErrno(ReadSigned(bytes, little_endian), json);
    case Format::kTime:
      return WriteTime(ReadSigned(bytes, little_endian), json);
    case Format::kBoolean:
      return WriteBoolean(ReadUnsigned(bytes, little_endian), json);
    case Format::kFloat: {
      const std::uint64_t bits = ReadUnsigned(bytes, little_endian);
      if (bytes.size() == 8) return WriteFloat(std::bit_cast<double>(bits), json);
      return WriteFloat(std::bit_cast<float>(static_cast<std::uint32_t>(bits)), json);
    }
    case Format::kUuid:
      return WriteUuid(bytes, json);
    case Format::kPort:
      return json->Number(ReadUnsigned(bytes, /*little_endian=*/false));
    case Format::kIpAddress:
    case Format::kIpAddressObsolete:
      return WriteIpAddress(bytes, json);
    case Format::kHexBytes:
      return json->Hex(bytes);
    case Format::kString8:
    case Format::kStringUtf:
    case Format::kStringUtfBom:
    case Format::kStringXml:
    case Format::kStringJson:
      return WriteText(*item.field, bytes, format, little_endian, json);
  }
}

bool IsCharacter(const FieldDefinition& field) noexcept {
  return FixedSize(field.encoding) != 0 &&
         FactsOf(ShownFormat(field.encoding, field.format))->kind == FormatKind::kText;
}

// Writes the elements of an array of characters as one text. The caller has read the item
// kArrayBegin. Text in an array of constant length ends at its first NUL.
void WriteCharacters(const FieldDefinition& field, bool little_endian, Decoder* decoder,
                     JsonWriter* json) noexcept {
  constexpr std::byte kNul[4] = {};
  const FieldDefinition of_array = field;
  Bytes text;  // the elements are contiguous
  bool ended = false;
  for (Item item; decoder->Next(&item) && item.kind != ItemKind::kArrayEnd;) {
    const std::size_t unit = item.bytes.size();
    ended = ended || (of_array.arity == Arity::kConstantArray &&
                      std::memcmp(item.bytes.data(), kNul, unit) == 0);
    if (!ended) text = text.empty() ? item.bytes : Bytes(text.data(), text.size() + unit);
  }
  WriteText(of_array, text, ShownFormat(of_array.encoding, of_array.format), little_endian, json);
}

// Writes the members of the object "fields". After an error, closes all arrays and objects that are
// still open.
void WriteFields(Decoder* decoder, bool little_endian, JsonWriter* json) noexcept {
  // Each level of nested structs opens at most an array and a struct. The innermost level may also
  // open an array of values.
  bool open_is_array[2 * kMaxStructNesting + 1];
  int open = 0;
  for (Item item; decoder->Next(&item);) {
    const bool ends = item.kind == ItemKind::kArrayEnd || item.kind == ItemKind::kStructEnd;
    if (!ends && !item.is_element) json->Key(item.field->name);
    switch (item.kind) {
      case ItemKind::kValue:
        WriteValue(item, little_endian, json);
        break;
      case ItemKind::kArrayBegin:
        if (IsCharacter(*item.field)) {
          WriteCharacters(*item.field, little_endian, decoder, json);
          break;
        }
        open_is_array[open++] = true;
        json->BeginArray();
        break;
      case ItemKind::kStructBegin:
        open_is_array[open++] = false;
        json->BeginObject();
        break;
      case ItemKind::kArrayEnd:
        --open;
        json->EndArray();
        break;
      case ItemKind::kStructEnd:
        --open;
        json->EndObject();
        break;
    }
  }
  while (open > 0) {
    if (open_is_array[--open]) {
      json->EndArray();
    } else {
      json->EndObject();
    }
  }
}

void WriteUnlessZero(std::string_view key, unsigned value, JsonWriter* json) noexcept {
  if (value == 0) return;
  json->Key(key);
  json->Number(value);
}

void WriteId(std::string_view key, Bytes id, JsonWriter* json) noexcept {
  if (id.size() != 16) return;
  json->Key(key);
  WriteUuid(id, json);
}

void WriteEvent(const EventView& event, std::string_view provider, JsonWriter* json) noexcept {
  Decoder decoder(event);
  const bool described = !event.metadata.empty();
  json->BeginObject();
  if (!provider.empty()) {
    json->Key("provider");
    json->String(provider);
  }
  if (described) {
    json->Key("name");
    json->String(decoder.event_name());
  }
  json->Key("level");
  json->Number(unsigned{event.header.level});
  WriteUnlessZero("opcode", event.header.opcode, json);
  WriteUnlessZero("id", event.header.id, json);
  WriteUnlessZero("version", event.header.version, json);
  WriteUnlessZero("tag", event.header.tag, json);
  WriteId("activityId", event.activity_id, json);
  WriteId("relatedActivityId", event.related_id, json);
  if (described) {
    json->Key("fields");
    json->BeginObject();
    WriteFields(&decoder, event.little_endian, json);
    json->EndObject();
  } else if (!event.data.empty()) {
    json->Key("data");
    json->Hex(event.data);
  }
  if (decoder.error() != ParseError::kNone) {
    json->Key("error");
    json->String(ParseErrorText(decoder.error()));
  }
  json->EndObject();
}

}  // namespace
}  // namespace internal

std::size_t FormatEventJson(const EventView& event, std::string_view provider,
                            std::span<char> buffer) noexcept {
  internal::JsonWriter json(buffer);
  internal::WriteEvent(event, provider, &json);
  return json.size();
}

}  // namespace eh
