#include "eventheader/decoder.h"

#include <cstring>

#include "eventheader/internal/field_rules.h"
#include "libeventheader/decode/byte_reader.h"

namespace eh {
namespace {

using internal::ByteReader;

// Reads the bytes before the first zero code unit, and also removes that unit. Returns false if
// there is no zero code unit.
bool ReadZeroTerminated(std::size_t unit, ByteReader* reader,
                        std::span<const std::byte>* bytes) noexcept {
  constexpr std::byte kZero[4] = {};
  const std::span<const std::byte> rest = reader->rest();
  std::size_t size = 0;
  if (unit == 1) {
    const void* end = rest.empty() ? nullptr : std::memchr(rest.data(), 0, rest.size());
    if (end == nullptr) return false;
    size = static_cast<std::size_t>(static_cast<const std::byte*>(end) - rest.data());
  } else {
    for (;; size += unit) {
      if (rest.size() - size < unit) return false;
      if (std::memcmp(rest.data() + size, kZero, unit) == 0) break;
    }
  }
  std::span<const std::byte> terminator;
  return reader->Bytes(size, bytes) && reader->Bytes(unit, &terminator);
}

bool ReadCounted(std::size_t unit, ByteReader* reader, std::span<const std::byte>* bytes) noexcept {
  std::uint16_t count = 0;
  return reader->U16(&count) && reader->Bytes(count * unit, bytes);
}

}  // namespace

Decoder::Decoder(const EventView& event) noexcept
    : data_(event.data),
      little_endian_(event.little_endian),
      has_metadata_(!event.metadata.empty()),
      reader_(event.metadata, event.little_endian) {
  if (has_metadata_) error_ = reader_.error();
}

bool Decoder::Next(Item* item) noexcept {
  if (error_ != ParseError::kNone || !has_metadata_) return false;
  if (++work_ > kMaxWork) return Fail(ParseError::kTooMuchWork);
  *item = Item{};
  if (in_array_) return NextElement(item);
  if (depth_ > 0) return NextInStruct(&open_[depth_ - 1], item);
  return NextField(item);
}

bool Decoder::Fail(ParseError error) noexcept {
  error_ = error;
  return false;
}

bool Decoder::NextDefinition(FieldDefinition* field) noexcept {
  if (!reader_.Next(field)) {
    error_ = reader_.error();
    return false;
  }
  // Counts the names of members once for each element of an array of structs, because decoding an
  // element reads them again.
  work_ += (field->name.size() + field->attributes.size()) / 16;
  return work_ <= kMaxWork || Fail(ParseError::kTooMuchWork);
}

bool Decoder::NextField(Item* item) noexcept {
  if (!NextDefinition(&field_)) return false;
  if (field_.encoding == Encoding::kStruct) return BeginStruct(item);
  item->field = &field_;
  if (field_.arity == Arity::kScalar) return ReadValue(field_.encoding, &item->bytes);
  if (!ReadLength(field_, &elements_)) return false;
  in_array_ = true;
  item->kind = ItemKind::kArrayBegin;
  item->array_length = elements_;
  return true;
}

bool Decoder::NextElement(Item* item) noexcept {
  item->field = &field_;
  if (elements_ == 0) {
    in_array_ = false;
    item->kind = ItemKind::kArrayEnd;
    return true;
  }
  --elements_;
  item->is_element = true;
  return ReadValue(field_.encoding, &item->bytes);
}

bool Decoder::BeginStruct(Item* item) noexcept {
  // The index cannot overflow: the MetadataReader has refused deeper nesting.
  OpenStruct& open = open_[depth_++];
  open.field = field_;
  open.members = reader_;
  open.elements = 1;
  open.inside = false;
  if (open.field.arity == Arity::kScalar) return NextInStruct(&open, item);
  if (!ReadLength(open.field, &open.elements)) return false;
  if (open.elements == 0 && !SkipMembers(open.field.struct_fields)) return false;
  item->kind = ItemKind::kArrayBegin;
  item->array_length = open.elements;
  item->field = &open.field;
  return true;
}

bool Decoder::NextInStruct(OpenStruct* open, Item* item) noexcept {
  if (open->inside && open->remaining > 0 && !reader_.at_end()) {
    --open->remaining;
    return NextField(item);
  }
  const bool is_array = open->field.arity != Arity::kScalar;
  item->field = &open->field;
  if (open->inside) {
    open->inside = false;
    if (!is_array) --depth_;
    item->kind = ItemKind::kStructEnd;
    item->is_element = is_array;
  } else if (open->elements > 0) {
    --open->elements;
    open->inside = true;
    open->remaining = open->field.struct_fields;
    reader_ = open->members;
    item->kind = ItemKind::kStructBegin;
    item->is_element = is_array;
  } else {
    --depth_;
    item->kind = ItemKind::kArrayEnd;
  }
  return true;
}

bool Decoder::ReadValue(Encoding encoding, std::span<const std::byte>* bytes) noexcept {
  ByteReader reader(data_, little_endian_);
  const internal::EncodingFacts& facts = internal::FactsOf(encoding);
  const bool is_read = facts.code_unit_size == 0 ? reader.Bytes(facts.fixed_size, bytes)
                       : internal::IsZeroTerminated(encoding)
                           ? ReadZeroTerminated(facts.code_unit_size, &reader, bytes)
                           : ReadCounted(facts.code_unit_size, &reader, bytes);
  if (!is_read) return Fail(ParseError::kTruncatedData);
  data_ = reader.rest();
  return true;
}

bool Decoder::ReadLength(const FieldDefinition& field, std::uint16_t* length) noexcept {
  if (field.arity == Arity::kConstantArray) {
    *length = field.array_length;
    return true;
  }
  ByteReader reader(data_, little_endian_);
  if (!reader.U16(length)) return Fail(ParseError::kTruncatedData);
  data_ = reader.rest();
  return true;
}

// Skips the definitions of the `count` members of an array of structs that has 0 elements, and the
// definitions of the members' members. The payload has no values for these definitions.
bool Decoder::SkipMembers(int count) noexcept {
  for (FieldDefinition member; count > 0 && !reader_.at_end(); --count) {
    ++work_;
    if (!NextDefinition(&member)) return false;
    count += member.struct_fields;
  }
  return true;
}

std::uint64_t ReadUnsigned(std::span<const std::byte> bytes, bool little_endian) noexcept {
  const std::size_t size = bytes.size();
  if (size != 1 && size != 2 && size != 4 && size != 8) return 0;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::byte next = bytes[little_endian ? size - 1 - i : i];
    value = value << 8 | static_cast<std::uint64_t>(next);
  }
  return value;
}

std::int64_t ReadSigned(std::span<const std::byte> bytes, bool little_endian) noexcept {
  const std::uint64_t value = ReadUnsigned(bytes, little_endian);
  switch (bytes.size()) {
    case 1:
      return static_cast<std::int8_t>(value);
    case 2:
      return static_cast<std::int16_t>(value);
    case 4:
      return static_cast<std::int32_t>(value);
    default:
      return static_cast<std::int64_t>(value);
  }
}

Format ValueFormat(Encoding encoding, Format format, std::size_t size) noexcept {
  using internal::FormatKind;
  const Format shown = internal::ShownFormat(encoding, format);
  const internal::FormatFacts* const facts = internal::FactsOf(shown);
  if (!internal::CountsBytes(encoding) || facts->kind != FormatKind::kFixedSize) return shown;
  if (size == 0) return Format::kDefault;
  return internal::IsFormatOf(internal::ValueEncoding(size), shown)
             ? shown
             : internal::DefaultFormat(encoding);
}

}  // namespace eh
