#include "tools/collector/convert/dotnet_event.h"

#include <array>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "libnettrace-writer/core/byte_reader.h"
#include "libnettrace-writer/core/check_fields.h"
#include "libnettrace-writer/read/parse_rows.h"
#include "nettrace/payload.h"
#include "tools/base/status_macros.h"
#include "tools/trace/dotnet_keys.h"

namespace collector {
namespace {

using nettrace::Type;
using nettrace::TypeCode;
using nettrace::internal::ByteReader;

constexpr std::uint8_t kVersion = 1;

enum ExtensionLabel : std::uint8_t {
  kMetadata = 1,
  kActivityId = 2,
  kRelatedActivityId = 3,
};

constexpr char kTwice[] = "the extension of the .NET event has two values with the same label";
constexpr char kShort[] = "the extension of the .NET event is cut short";

// Keyword bits that EventSource sets in every event, as marks of its tracing sessions. They are
// cleared: filters by keyword accept an event without keywords, but would reject it with these
// bits.
constexpr std::uint64_t kSessionKeywords = std::uint64_t{0xF} << 44;

// Providers whose GUID is not derived from the name.
constexpr struct {
  std::string_view name;
  std::array<std::uint8_t, 16> uuid;
} kProviders[] = {
    {"Microsoft-Windows-DotNETRuntime",
     {0xe1, 0x3c, 0x0d, 0x23, 0xcc, 0xbc, 0x4e, 0x12, 0x93, 0x1b, 0xd9, 0xcc, 0x2e, 0xee, 0x27,
      0xe4}},
    {"Microsoft-Windows-DotNETRuntimeRundown",
     {0xa6, 0x69, 0x02, 0x1c, 0xc4, 0x50, 0x46, 0x09, 0xa0, 0x35, 0x5a, 0xf5, 0x9a, 0xf4, 0xdf,
      0x18}},
};

// Removes a location (an offset and a size, as in __rel_loc fields) from the start of `rest`.
// Returns the bytes that the location refers to; nullopt if they are not in `rest`.
std::optional<std::span<const std::byte>> TakeLocated(std::span<const std::byte>* rest) {
  std::uint32_t location = 0;  // in the byte order of the machine
  if (rest->size() < sizeof location) return std::nullopt;
  std::memcpy(&location, rest->data(), sizeof location);
  *rest = rest->subspan(sizeof location);
  const std::size_t offset = location & 0xFFFF;
  const std::size_t size = location >> 16;
  if (offset > rest->size() || size > rest->size() - offset) return std::nullopt;
  return rest->subspan(offset, size);
}

const char* ParseExtension(std::span<const std::byte> extension, DotnetEvent* event) {
  ByteReader reader(extension);
  while (!reader.empty()) {
    switch (reader.Number<std::uint8_t>()) {
      case kMetadata: {
        if (event->metadata.data() != nullptr) return kTwice;
        event->metadata = reader.Bytes(reader.Number<std::uint32_t>());
        break;
      }
      case kActivityId:
        if (event->activity_id) return kTwice;
        event->activity_id = reader.Id128();
        break;
      case kRelatedActivityId:
        if (event->related_activity_id) return kTwice;
        event->related_activity_id = reader.Id128();
        break;
      default:
        // A newer runtime may have added this kind of value. Its size is unknown, so the rest of
        // the extension is not read.
        return nullptr;
    }
    if (!reader.ok()) return kShort;
  }
  return nullptr;
}

// Replaces types that V6 files do not have by types of the same size.
void ReplaceTypes(Type* type) {
  if (type->code == TypeCode::kDateTime) *type = Type::Simple(TypeCode::kInt64);
  if (type->code == TypeCode::kDecimal) {
    *type = Type::FixedLengthArray(Type::Simple(TypeCode::kByte), 16);
  }
  for (Type& element : type->element) ReplaceTypes(&element);
  for (nettrace::Field& field : type->fields) ReplaceTypes(&field.type);
}

}  // namespace

bool AreDotnetFields(const std::vector<nettrace::Field>& fields) {
  const Type bytes = Type::Array(Type::Simple(TypeCode::kByte));
  return fields == std::vector<nettrace::Field>{{"version", Type::Simple(TypeCode::kByte)},
                                                {"event_id", Type::Simple(TypeCode::kUInt16)},
                                                {"extension", bytes},
                                                {"payload", bytes}};
}

const char* ParseDotnetEvent(std::span<const std::byte> fields, DotnetEvent* event) {
  *event = DotnetEvent();
  constexpr std::size_t kLocations = sizeof(std::uint8_t) + sizeof(event->id);
  if (fields.size() < kLocations) return "the record is cut short";
  if (fields[0] != std::byte{kVersion}) return "the version of the event is unknown";
  std::memcpy(&event->id, fields.data() + 1, sizeof event->id);
  fields = fields.subspan(kLocations);
  const auto extension = TakeLocated(&fields);
  const auto payload = extension ? TakeLocated(&fields) : std::nullopt;
  if (!payload) return "a field is outside of the record";
  event->payload = *payload;
  return ParseExtension(*extension, event);
}

absl::StatusOr<nettrace::EventMetadata> ParseDotnetMetadata(std::span<const std::byte> metadata,
                                                            std::uint16_t id) {
  // The parser expects the id of the row before the metadata. Events of .NET do not contain this
  // id, so zeros take its place.
  std::vector<std::byte> row(sizeof(std::uint32_t));
  row.insert(row.end(), metadata.begin(), metadata.end());
  nettrace::MetadataId ignored;
  nettrace::EventMetadata result;
  if (const char* error =
          nettrace::internal::ParseLegacyMetadataRow(ByteReader(row), &ignored, &result)) {
    return absl::InvalidArgumentError(error);
  }
  if (result.event_id != id) {
    return absl::InvalidArgumentError(
        "the metadata has an event id that differs from that of the event");
  }
  return ConvertDotnetMetadata(std::move(result));
}

absl::StatusOr<nettrace::EventMetadata> ConvertDotnetMetadata(nettrace::EventMetadata row) {
  row.keywords = row.keywords.value_or(0) & ~kSessionKeywords;
  // Sets the opcode, because TraceEvent would otherwise derive one from a name that ends in "start"
  // or "stop".
  if (!row.opcode) row.opcode = 0;
  for (nettrace::Field& field : row.fields) ReplaceTypes(&field.type);
  for (const auto& provider : kProviders) {
    if (provider.name == row.provider) {
      row.provider_guid =
          nettrace::GuidFromUuid(std::bit_cast<std::array<std::byte, 16>>(provider.uuid));
    }
  }
  // Readers know the names of the runtime's own events by their ids, so only other events without a
  // name get a name here.
  if (row.name.empty() && !row.provider_guid) row.name = absl::StrCat("Event", row.event_id);
  row.key_values = {{trace::kKeyDotnetEventId, absl::StrCat(row.event_id)}};
  RETURN_IF_ERROR(nettrace::internal::CheckFields(row.fields, /*traceevent_compatible=*/true));
  return row;
}

bool IsDotnetPayload(const std::vector<nettrace::Field>& fields,
                     std::span<const std::byte> payload) {
  class : public nettrace::PayloadVisitor {
  } ignore;
  return nettrace::VisitPayload(fields, payload, &ignore).ok();
}

}  // namespace collector
