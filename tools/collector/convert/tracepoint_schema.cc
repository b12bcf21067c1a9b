#include "tools/collector/convert/tracepoint_schema.h"

#include <traceevent/event-parse.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace collector {
namespace {

using nettrace::Type;
using nettrace::TypeCode;

struct FreeTep {
  void operator()(tep_handle* tep) const { tep_free(tep); }
};

bool Has(const tep_format_field& field, unsigned long flag) { return (field.flags & flag) != 0; }

// Returns the type of one element of `size` bytes: an array of bytes if no number has that size.
Type ElementType(const tep_format_field& field, std::size_t size) {
  const std::string_view type = field.type;
  const bool is_signed = Has(field, TEP_FIELD_IS_SIGNED);
  if (Has(field, TEP_FIELD_IS_STRING)) return Type::Simple(TypeCode::kUtf8CodeUnit);
  switch (size) {
    case 1:
      if (type == "bool") return Type::Simple(TypeCode::kBoolean8);
      return Type::Simple(is_signed ? TypeCode::kSByte : TypeCode::kByte);
    case 2:
      return Type::Simple(is_signed ? TypeCode::kInt16 : TypeCode::kUInt16);
    case 4:
      return Type::Simple(is_signed ? TypeCode::kInt32 : TypeCode::kUInt32);
    case 8:
      return Type::Simple(is_signed ? TypeCode::kInt64 : TypeCode::kUInt64);
    default:
      return Type::FixedLengthArray(Type::Simple(TypeCode::kByte),
                                    static_cast<std::uint16_t>(size));
  }
}

Type FieldType(const tep_format_field& field) {
  const auto size = static_cast<std::size_t>(field.size);
  if (Has(field, TEP_FIELD_IS_DYNAMIC)) {
    // Elements that are no numbers of a known size become bytes.
    const std::size_t element = field.elementsize;
    const bool number = element == 1 || element == 2 || element == 4 || element == 8;
    Type type = ElementType(field, number ? element : 1);
    return Has(field, TEP_FIELD_IS_RELATIVE) ? Type::RelLoc(std::move(type))
                                             : Type::DataLoc(std::move(type));
  }
  if (Has(field, TEP_FIELD_IS_ARRAY) && field.arraylen > 0 && size % field.arraylen == 0) {
    Type type = ElementType(field, size / field.arraylen);
    if (type.code != TypeCode::kFixedLengthArray) {
      return Type::FixedLengthArray(std::move(type), static_cast<std::uint16_t>(field.arraylen));
    }
  }
  if (Has(field, TEP_FIELD_IS_ARRAY)) {
    return Type::FixedLengthArray(Type::Simple(TypeCode::kByte), static_cast<std::uint16_t>(size));
  }
  return ElementType(field, size);
}

}  // namespace

bool TracepointSchema::MakePayload(std::span<const std::byte> raw, std::vector<std::byte>* scratch,
                                   std::span<const std::byte>* payload) const {
  if (raw.size() < payload_offset + fixed_size) return false;
  *payload = raw.subspan(payload_offset);
  if (locations.empty()) {
    *payload = payload->first(fixed_size);  // what follows is padding
    return true;
  }
  scratch->assign(payload->begin(), payload->end());
  for (const Location& location : locations) {
    std::uint32_t value;
    std::memcpy(&value, scratch->data() + location.offset, sizeof value);
    const std::size_t size = value >> 16;
    std::size_t position = value & 0xFFFF;
    if (location.relative) {
      position += location.offset + sizeof value;
    } else {
      if (position < payload_offset && size != 0) return false;
      // Positions count from the record's start; in the file they count from the payload's.
      position = position < payload_offset ? 0 : position - payload_offset;
      value = static_cast<std::uint32_t>(size << 16 | position);
      std::memcpy(scratch->data() + location.offset, &value, sizeof value);
    }
    if (position + size > scratch->size()) return false;
  }
  *payload = *scratch;
  return true;
}

std::optional<std::uint32_t> TracepointSchema::ReadTid(std::span<const std::byte> raw) const {
  std::uint32_t tid = 0;
  if (!tid_offset || raw.size() < *tid_offset + sizeof tid) return std::nullopt;
  std::memcpy(&tid, raw.data() + *tid_offset, sizeof tid);
  return tid;
}

absl::StatusOr<TracepointSchema> ParseTracepointFormat(const std::string& system,
                                                       const std::string& event, int id,
                                                       const std::string& format) {
  const std::unique_ptr<tep_handle, FreeTep> tep(tep_alloc());
  if (tep == nullptr) return absl::ResourceExhaustedError("out of memory");
  tep_set_loglevel(TEP_LOG_NONE);
  // The kernel's print format is not needed here, and some of those texts do not parse.
  std::string text = format.substr(0, format.find("print fmt:"));
  text += "print fmt: \"\"\n";
  const tep_errno parsed = tep_parse_event(tep.get(), text.data(), text.size(), system.c_str());
  const tep_event* found = tep_find_event(tep.get(), id);
  if (parsed != 0 || found == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the format of tracepoint ", system, ":", event, " cannot be parsed"));
  }

  TracepointSchema schema;
  schema.metadata.provider = system;
  schema.metadata.name = event;
  // Without an opcode TraceEvent derives one from a name that ends in "start" or "stop".
  schema.metadata.opcode = 0;
  for (const tep_format_field* field = found->format.common_fields; field != nullptr;
       field = field->next) {
    schema.payload_offset =
        std::max(schema.payload_offset, static_cast<std::size_t>(field->offset + field->size));
    if (std::string_view(field->name) == "common_pid" && field->size == sizeof(std::uint32_t)) {
      schema.tid_offset = static_cast<std::size_t>(field->offset);
    }
  }
  const tep_format_field* first = found->format.fields;
  if (first != nullptr) {
    // Alignment may leave a gap after the common fields.
    schema.payload_offset =
        std::max(schema.payload_offset, static_cast<std::size_t>(first->offset));
    schema.first_field = first->name;
  }
  std::size_t position = schema.payload_offset;
  for (const tep_format_field* field = first; field != nullptr; field = field->next) {
    const auto offset = static_cast<std::size_t>(field->offset);
    if (offset < position || field->size <= 0 || field->size > 65535) {
      return absl::InvalidArgumentError(absl::StrCat("field ", field->name, " of tracepoint ",
                                                     system, ":", event,
                                                     " overlaps another or has no size"));
    }
    if (offset > position) {
      schema.metadata.fields.push_back(
          {absl::StrCat("__pad", position),
           Type::FixedLengthArray(Type::Simple(TypeCode::kByte),
                                  static_cast<std::uint16_t>(offset - position))});
    }
    if (Has(*field, TEP_FIELD_IS_DYNAMIC)) {
      schema.locations.push_back(
          {offset - schema.payload_offset, Has(*field, TEP_FIELD_IS_RELATIVE)});
    }
    schema.metadata.fields.push_back({field->name, FieldType(*field)});
    position = offset + static_cast<std::size_t>(field->size);
  }
  schema.fixed_size = position - schema.payload_offset;
  return schema;
}

}  // namespace collector
