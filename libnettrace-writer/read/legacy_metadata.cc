// Parses the rows of V4 and V5 metadata blocks.
#include <string>

#include "libnettrace-writer/core/utf.h"
#include "libnettrace-writer/read/parse_rows.h"

namespace nettrace::internal {
namespace {

constexpr std::uint8_t kTagOpcode = 1;
constexpr std::uint8_t kTagV2Params = 2;
// Maximum bytes of a row. This is a limit of this library; the format has none.
constexpr std::size_t kMaxLegacyRowSize = std::size_t{1} << 20;
constexpr char kRowTooLong[] =
    "a metadata row has more than 1048576 bytes, the limit of this reader";
static_assert(kMaxLegacyRowSize == 1'048'576);

// Reads NUL-terminated UTF-16.
std::string Utf16Z(ByteReader* reader) {
  ByteReader scan = *reader;
  std::size_t units = 0;
  while (scan.Number<std::uint16_t>() != 0) ++units;
  std::string text;
  if (!scan.ok()) {
    reader->Fail();
    return text;
  }
  AppendUtf16AsUtf8(reader->Bytes(2 * units), &text);
  reader->Bytes(2);
  return text;
}

enum class Params { kV1, kV2 };

const char* ParseFields(ByteReader* reader, Params params, int depth, std::vector<Field>* fields);

const char* ParseType(ByteReader* reader, Params params, int depth, Type* type) {
  if (depth > kMaxTypeDepth) return kTypesTooDeep;
  const auto code = reader->Number<std::int32_t>();
  if (!reader->ok()) return "a metadata row is cut short";
  const auto last = static_cast<std::int32_t>(
      params == Params::kV2 ? TypeCode::kArray : TypeCode::kNullTerminatedUtf16String);
  if (code < 1 || code == 2 || code > last) {
    return "a type code is unknown";
  }
  type->code = static_cast<TypeCode>(code);
  if (type->code == TypeCode::kArray) {
    return ParseType(reader, params, depth + 1, &type->element.emplace_back());
  }
  if (type->code == TypeCode::kObject) {
    return ParseFields(reader, params, depth + 1, &type->fields);
  }
  return nullptr;
}

// Parses the fields of an event or object. A kV1 field consists of type and name. A kV2 field
// consists of its size (including the size itself), name, type and padding.
const char* ParseFields(ByteReader* reader, Params params, int depth, std::vector<Field>* fields) {
  const auto count = reader->Number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && reader->ok(); ++i) {
    if (params == Params::kV1) {
      Field& field = fields->emplace_back();
      if (const char* error = ParseType(reader, params, depth, &field.type)) return error;
      field.name = Utf16Z(reader);
      continue;
    }
    const auto size = reader->Number<std::uint32_t>();
    if (size < sizeof(size)) return "a metadata row is cut short";
    ByteReader description(reader->Bytes(size - sizeof(size)));
    if (!reader->ok()) return "a metadata row is cut short";
    Field& field = fields->emplace_back();
    field.name = Utf16Z(&description);
    if (const char* error = ParseType(&description, params, depth, &field.type)) return error;
    if (!description.ok()) return "a metadata row is cut short";
  }
  return reader->ok() ? nullptr : "a metadata row is cut short";
}

const char* ParseTags(ByteReader* reader, EventMetadata* metadata) {
  while (reader->ok() && reader->size() > 0) {
    const auto size = reader->Number<std::uint32_t>();
    const auto kind = reader->Number<std::uint8_t>();
    ByteReader tag(reader->Bytes(size));
    if (!reader->ok()) return "a metadata row is cut short";
    if (kind == kTagOpcode) metadata->opcode = tag.Number<std::uint8_t>();
    if (kind == kTagV2Params) {
      metadata->fields.clear();
      if (const char* error = ParseFields(&tag, Params::kV2, 1, &metadata->fields)) return error;
    }
    if (!tag.ok()) return "a metadata row is cut short";
  }
  return reader->ok() ? nullptr : "a metadata row is cut short";
}

}  // namespace

const char* ParseLegacyMetadataRow(ByteReader row, MetadataId* id, EventMetadata* metadata) {
  if (row.size() > kMaxLegacyRowSize) return kRowTooLong;
  *id = MetadataId{row.Number<std::uint32_t>()};
  metadata->provider = Utf16Z(&row);
  metadata->event_id = row.Number<std::uint32_t>();
  metadata->name = Utf16Z(&row);
  metadata->keywords = row.Number<std::uint64_t>();
  metadata->version = static_cast<std::uint8_t>(row.Number<std::uint32_t>());
  metadata->level = static_cast<std::uint8_t>(row.Number<std::uint32_t>());
  if (!row.ok()) return "a metadata row is cut short";
  if (const char* error = ParseFields(&row, Params::kV1, 1, &metadata->fields)) return error;
  return ParseTags(&row, metadata);
}

}  // namespace nettrace::internal
