#include "libnettrace-writer/core/traceevent.h"

#include <locale.h>
#include <wctype.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "libeventheader/base/utf.h"
#include "libnettrace-writer/core/sha1.h"
#include "libnettrace-writer/core/utf.h"

namespace nettrace::internal::traceevent {
namespace {

// The namespace UUID. .NET derives the GUID of an EventSource from it and the EventSource's name.
constexpr std::array<std::uint8_t, 16> kEventSources = {
    0x48, 0x2C, 0x2D, 0xB2, 0xC3, 0x90, 0x47, 0xC8, 0x87, 0xF8, 0x1A, 0x15, 0xBF, 0xC1, 0x30, 0xFB};

// Converts `c` to upper case by Unicode, regardless of the program's locale. Uses the C library's
// locale C.UTF-8; if the machine does not have it, converts only ASCII letters.
char32_t ToUpper(char32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c;
  static const locale_t kUnicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return kUnicode == nullptr ? c
                             : static_cast<char32_t>(towupper_l(static_cast<wint_t>(c), kUnicode));
}

bool IsRefusedType(const Type& type) {
  if (type.code == TypeCode::kObject) return IsRefused(type.fields);
  if (!IsArray(type)) return false;
  const Type& element = type.element.front();
  return (IsLocation(type) && !FixedSize(element)) ||
         (IsMisreadFixedArray(type) && type.count > 0) || IsRefusedType(element);
}

// An event that TraceLog knows, with the fields that TraceLog expects.
struct KnownEvent {
  std::string_view name;
  std::vector<Field> fields;
};

// Returns the events of kUniversalSystem. The index of an event is its EventId.
const std::vector<KnownEvent>& SystemEvents() {
  static const auto* const kEvents = [] {
    const Type number = Type::Simple(TypeCode::kVarUInt);
    const Type text = Type::Array(Type::Simple(TypeCode::kUtf8CodeUnit));
    const std::vector<Field> process = {
        {"NamespaceId", number}, {"Name", text}, {"NamespaceName", text}};
    return new std::vector<KnownEvent>{
        {"ExistingProcess", process},
        {"ProcessCreate", process},
        {"ProcessExit", {}},
        {"ProcessMapping",
         {{"Id", number},
          {"StartAddress", number},
          {"EndAddress", number},
          {"FileOffset", number},
          {"FileName", text},
          {"MetadataId", number}}},
        {"ProcessSymbol",
         {{"Id", number},
          {"MappingId", number},
          {"StartAddress", number},
          {"EndAddress", number},
          {"Name", text}}},
        {"ProcessMappingMetadata",
         {{"Id", number}, {"SymbolMetadata", text}, {"VersionMetadata", text}}},
    };
  }();
  return *kEvents;
}

bool IsOfProvider(const EventMetadata& row, std::string_view provider) {
  EventMetadata same;
  same.provider = std::string(provider);
  return ProviderGuid(row) == ProviderGuid(same);
}

// Returns whether `field` equals the known field, or declares one code unit where the known field
// is text.
bool IsDeclared(const Field& field, const Field& known) {
  return field == known ||
         (field.name == known.name && IsArray(known.type) &&
          field.type.code == known.type.element.front().code && !IsArray(field.type));
}

}  // namespace

const std::vector<Field>& FieldsOfPayload(const EventMetadata& row) {
  if (row.event_id >= SystemEvents().size() || row.provider != kUniversalSystem) return row.fields;
  const KnownEvent& known = SystemEvents()[row.event_id];
  const bool is_known =
      row.name == known.name && std::equal(row.fields.begin(), row.fields.end(),
                                           known.fields.begin(), known.fields.end(), IsDeclared);
  return is_known ? known.fields : row.fields;
}

bool IsMisreadKnownEvent(const EventMetadata& row) {
  if (row.event_id < SystemEvents().size() && IsOfProvider(row, kUniversalSystem)) {
    const KnownEvent& known = SystemEvents()[row.event_id];
    return row.provider != kUniversalSystem || row.name != known.name || row.fields != known.fields;
  }
  if ((row.name == "cpu" || row.name == "cswitch") && IsOfProvider(row, kUniversalEvents)) {
    return row.provider != kUniversalEvents ||
           row.fields != std::vector<Field>{{"Value", Type::Simple(TypeCode::kVarUInt)}};
  }
  return false;
}

Guid ProviderGuid(const EventMetadata& row) {
  if (row.provider_guid) return *row.provider_guid;
  const std::span<const std::byte> sources = std::as_bytes(std::span(kEventSources));
  std::vector<std::byte> hashed(sources.begin(), sources.end());
  std::span<const std::byte> name = std::as_bytes(std::span(row.provider));
  while (!name.empty()) {
    AppendAsUtf16(ToUpper(eh::internal::ReplaceMalformed(eh::internal::DecodeUtf8(&name))),
                  &hashed);
  }
  // The hash input is big-endian UTF-16.
  for (std::size_t i = kEventSources.size(); i < hashed.size(); i += 2) {
    std::swap(hashed[i], hashed[i + 1]);
  }
  const std::array<std::byte, 20> hash = Sha1(hashed);
  Guid guid;
  std::copy_n(hash.begin(), guid.size(), guid.begin());
  guid[7] = (guid[7] & std::byte{0x0F}) | std::byte{0x50};  // GUID version 5: derived from a name
  return guid;
}

bool IsRefused(const std::vector<Field>& fields) {
  return std::any_of(fields.begin(), fields.end(),
                     [](const Field& field) { return IsRefusedType(field.type); });
}

}  // namespace nettrace::internal::traceevent
