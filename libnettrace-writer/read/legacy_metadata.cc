// The rows of V4/V5 metadata blocks.
#include <string>

#include "core/utf.h"
#include "read/parse_rows.h"

namespace nettrace {
namespace {

constexpr std::uint8_t kTagOpcode = 1;
constexpr std::uint8_t kTagV2Params = 2;
constexpr std::size_t kMaxLegacyRowSize = std::size_t{1} << 20;  // ours: the format has no limit

// UTF-16 with a terminator.
std::string Utf16Z(Cursor* cursor) {
  Cursor scan = *cursor;
  std::size_t units = 0;
  while (scan.Number<std::uint16_t>() != 0) ++units;
  std::string text;
  if (!scan.ok()) {
    cursor->Fail();
    return text;
  }
  AppendUtf16AsUtf8(cursor->Bytes(2 * units), &text);
  cursor->Bytes(2);
  return text;
}

enum class Params { kV1, kV2 };

const char* ParseFields(Cursor* cursor, Params params, int depth, std::vector<Field>* fields);

const char* ParseType(Cursor* cursor, Params params, int depth, Type* type) {
  if (depth > kMaxTypeDepth) {
    return "types are nested too deep";
  }
  const auto code = cursor->Number<std::int32_t>();
  if (!cursor->ok()) return "a metadata row is cut short";
  const auto last = static_cast<std::int32_t>(
      params == Params::kV2 ? TypeCode::kArray : TypeCode::kNullTerminatedUtf16String);
  if (code < 1 || code == 2 || code > last) {
    return "a type code is unknown";
  }
  type->code = static_cast<TypeCode>(code);
  if (type->code == TypeCode::kArray) {
    return ParseType(cursor, params, depth + 1, &type->element.emplace_back());
  }
  if (type->code == TypeCode::kObject) {
    return ParseFields(cursor, params, depth + 1, &type->fields);
  }
  return nullptr;
}

// V1: type, name. V2: size (itself included), name, type, padding.
const char* ParseFields(Cursor* cursor, Params params, int depth, std::vector<Field>* fields) {
  const auto count = cursor->Number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && cursor->ok(); ++i) {
    if (params == Params::kV1) {
      Field& field = fields->emplace_back();
      if (const char* error = ParseType(cursor, params, depth, &field.type)) return error;
      field.name = Utf16Z(cursor);
      continue;
    }
    const auto size = cursor->Number<std::uint32_t>();
    if (size < sizeof(size)) return "a metadata row is cut short";
    Cursor description(cursor->Bytes(size - sizeof(size)));
    if (!cursor->ok()) return "a metadata row is cut short";
    Field& field = fields->emplace_back();
    field.name = Utf16Z(&description);
    if (const char* error = ParseType(&description, params, depth, &field.type)) return error;
    if (!description.ok()) return "a metadata row is cut short";
  }
  return cursor->ok() ? nullptr : "a metadata row is cut short";
}

const char* ParseTags(Cursor* cursor, EventMetadata* metadata) {
  while (cursor->ok() && cursor->size() > 0) {
    const auto size = cursor->Number<std::uint32_t>();
    const auto kind = cursor->Number<std::uint8_t>();
    Cursor tag(cursor->Bytes(size));
    if (!cursor->ok()) return "a metadata row is cut short";
    if (kind == kTagOpcode) metadata->opcode = tag.Number<std::uint8_t>();
    if (kind == kTagV2Params) {
      metadata->fields.clear();
      if (const char* error = ParseFields(&tag, Params::kV2, 1, &metadata->fields)) return error;
    }
    if (!tag.ok()) return "a metadata row is cut short";
  }
  return cursor->ok() ? nullptr : "a metadata row is cut short";
}

}  // namespace

const char* ParseLegacyMetadataRow(Cursor row, std::uint32_t* id, EventMetadata* metadata) {
  if (row.size() > kMaxLegacyRowSize) return "a metadata row is too large";
  *id = row.Number<std::uint32_t>();
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

}  // namespace nettrace
