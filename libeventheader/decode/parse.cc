#include "eventheader/decoder.h"
#include "eventheader/internal/field_rules.h"
#include "libeventheader/decode/byte_reader.h"

namespace eh {

const char* ParseErrorText(ParseError error) noexcept {
  switch (error) {
    case ParseError::kNone:
      return "no error";
    case ParseError::kTruncatedHeader:
      return "the event is shorter than its header";
    case ParseError::kBadFlags:
      return "the header has an undefined flag";
    case ParseError::kBadLevel:
      return "the level is 0";
    case ParseError::kTruncatedExtension:
      return "a header extension reaches beyond the event";
    case ParseError::kBadActivityId:
      return "the activity id is neither 16 nor 32 bytes long";
    case ParseError::kDuplicateExtension:
      return "a header extension occurs twice";
    case ParseError::kTruncatedMetadata:
      return "the metadata ends within a definition or a struct";
    case ParseError::kBadEncoding:
      return "a field encoding is not valid";
    case ParseError::kBadStruct:
      return "a struct has no fields";
    case ParseError::kZeroLengthArray:
      return "a constant array has no elements";
    case ParseError::kNestingTooDeep:
      static_assert(kMaxStructNesting == 8);
      return "structs are nested more than 8 deep";
    case ParseError::kTooManyFields:
      static_assert(kMaxFields == 1024);
      return "there are more than 1024 fields";
    case ParseError::kTruncatedData:
      return "the payload ends within a field";
    case ParseError::kTooMuchWork:
      static_assert(kMaxWork == 65536);
      return "decoding would take more than 65536 steps";
  }
  return "unknown error";
}

ParseError ParseEvent(std::span<const std::byte> bytes, EventView* view) noexcept {
  *view = EventView{};
  if (bytes.size() < sizeof(wire::Header)) return ParseError::kTruncatedHeader;
  const auto flags = static_cast<std::uint8_t>(bytes[0]);
  if ((flags & ~(kFlagPointer64 | kFlagLittleEndian | kFlagExtension)) != 0) {
    return ParseError::kBadFlags;
  }
  view->little_endian = (flags & kFlagLittleEndian) != 0;
  view->pointer64 = (flags & kFlagPointer64) != 0;
  internal::ByteReader reader(bytes, view->little_endian);
  wire::Header& header = view->header;
  if (!reader.U8(&header.flags) || !reader.U8(&header.version) || !reader.U16(&header.id) ||
      !reader.U16(&header.tag) || !reader.U8(&header.opcode) || !reader.U8(&header.level)) {
    return ParseError::kTruncatedHeader;
  }
  if (header.level == 0) return ParseError::kBadLevel;

  bool has_metadata = false;
  for (bool more = (flags & kFlagExtension) != 0; more;) {
    std::uint16_t size = 0;
    std::uint16_t kind = 0;
    std::span<const std::byte> data;
    if (!reader.U16(&size) || !reader.U16(&kind) || !reader.Bytes(size, &data)) {
      return ParseError::kTruncatedExtension;
    }
    more = (kind & kExtensionChain) != 0;
    switch (kind & kExtensionKindMask) {
      case kExtensionMetadata:
        if (has_metadata) return ParseError::kDuplicateExtension;
        has_metadata = true;
        view->metadata = data;
        break;
      case kExtensionActivityId:
        if (!view->activity_id.empty()) return ParseError::kDuplicateExtension;
        if (size != 16 && size != 32) return ParseError::kBadActivityId;
        view->activity_id = data.first(16);
        view->related_id = data.subspan(16);
        break;
      default:
        break;  // ignores extensions of unknown kinds
    }
  }
  view->data = reader.rest();
  return ParseError::kNone;
}

MetadataReader::MetadataReader(std::span<const std::byte> metadata, bool little_endian) noexcept
    : little_endian_(little_endian) {
  internal::ByteReader reader(metadata, little_endian);
  if (!reader.Name(&name_, &attributes_)) {
    error_ = ParseError::kTruncatedMetadata;
    return;
  }
  rest_ = reader.rest();
}

bool MetadataReader::Next(FieldDefinition* field) noexcept {
  if (error_ != ParseError::kNone) return false;
  const auto fail = [this](ParseError error) {
    error_ = error;
    return false;
  };
  while (depth_ > 0 && remaining_[depth_ - 1] == 0) --depth_;
  if (rest_.empty()) return false;
  if (++fields_ > kMaxFields) return fail(ParseError::kTooManyFields);

  *field = FieldDefinition{};
  internal::ByteReader reader(rest_, little_endian_);
  std::uint8_t encoding = 0;
  std::uint8_t format = 0;
  if (!reader.Name(&field->name, &field->attributes) || !reader.U8(&encoding)) {
    return fail(ParseError::kTruncatedMetadata);
  }
  if ((encoding & kEncodingHasFormat) != 0 && !reader.U8(&format)) {
    return fail(ParseError::kTruncatedMetadata);
  }
  field->has_tag = (format & kFormatHasTag) != 0;
  if (field->has_tag && !reader.U16(&field->tag)) return fail(ParseError::kTruncatedMetadata);
  const bool constant = (encoding & kEncodingConstantArray) != 0;
  const bool variable = (encoding & kEncodingVariableArray) != 0;
  if (constant && variable) return fail(ParseError::kBadEncoding);
  if (constant) {
    if (!reader.U16(&field->array_length)) return fail(ParseError::kTruncatedMetadata);
    if (field->array_length == 0) return fail(ParseError::kZeroLengthArray);
    field->arity = Arity::kConstantArray;
  } else if (variable) {
    field->arity = Arity::kVariableArray;
  }
  rest_ = reader.rest();

  field->encoding = static_cast<Encoding>(encoding & kEncodingMask);
  if (!internal::IsEncoding(field->encoding)) return fail(ParseError::kBadEncoding);
  field->depth = static_cast<std::uint8_t>(depth_);
  if (depth_ > 0) --remaining_[depth_ - 1];
  format &= kFormatMask;
  if (field->encoding == Encoding::kStruct) {
    if (format == 0) return fail(ParseError::kBadStruct);
    if (depth_ == kMaxStructNesting) return fail(ParseError::kNestingTooDeep);
    if (rest_.empty()) return fail(ParseError::kTruncatedMetadata);
    field->struct_fields = format;
    remaining_[depth_++] = format;
  } else {
    field->format = static_cast<Format>(format);
    if (field->format == Format::kDefault) field->format = internal::DefaultFormat(field->encoding);
  }
  return true;
}

}  // namespace eh
