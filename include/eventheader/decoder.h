// Pull decoder: the values of an EventHeader event, one by one, in either byte order.
// Input is hostile: nothing is read outside the event, the work is bounded by kMaxWork whatever the
// bytes say, and nothing allocates or throws. Views live as long as the event's bytes do. A Decoder
// belongs to one thread at a time; different ones are independent.
//
//   eh::EventView event;
//   if (ParseEvent(bytes, &event) != ParseError::kNone) ...
//   eh::Decoder decoder(event);
//   eh::Item item;
//   while (decoder.Next(&item)) ...
//   if (decoder.error() != ParseError::kNone) ...
#ifndef EVENTHEADER_DECODER_H_
#define EVENTHEADER_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "eventheader/parse.h"

namespace eh {

// What decoding one event may cost: every item is 1, every definition without values (in an array
// of no structs) is 1 and every 16 bytes of field name read are 1. Well above what any event that
// the kernel lets through needs, unless it was made to cost.
inline constexpr std::size_t kMaxWork = std::size_t{1} << 16;

enum class ItemKind : std::uint8_t {
  kValue,       // a field, or an element of an array
  kArrayBegin,  // its elements follow: values or structs
  kArrayEnd,
  kStructBegin,  // its members follow; a field, or an element of an array
  kStructEnd,
};

struct Item {
  ItemKind kind;
  bool is_element;             // of the array that was begun last and not yet ended
  std::uint16_t array_length;  // kArrayBegin: elements that follow
  // The definition of the field that the item is (part of); valid until the next call of Next.
  const FieldDefinition* field;
  // kValue: the value in the event's byte order, without length prefix or terminator.
  std::span<const std::byte> bytes;
};

class Decoder {
 public:
  // An event without metadata has no items.
  explicit Decoder(const EventView& event) noexcept;

  std::string_view event_name() const noexcept { return reader_.event_name(); }
  std::string_view event_attributes() const noexcept { return reader_.event_attributes(); }

  // True and the next item; false at the end or at an error, see error(). Every Begin that was
  // returned has its End unless there was an error.
  bool Next(Item* item) noexcept;
  ParseError error() const noexcept { return error_; }
  // Payload not yet decoded; at the end, what is behind the last field (padding).
  std::span<const std::byte> rest() const noexcept { return data_; }

 private:
  struct OpenStruct {
    FieldDefinition field;
    MetadataReader members;  // where its members' definitions begin
    std::uint16_t elements;  // still to come
    std::uint8_t remaining;  // members still to come in this element
    bool inside;             // an element is open
  };

  bool Fail(ParseError error) noexcept;
  bool NextDefinition(FieldDefinition* field) noexcept;
  bool NextField(Item* item) noexcept;
  bool NextOfStruct(OpenStruct* open, Item* item) noexcept;
  bool NextElement(Item* item) noexcept;
  bool BeginStruct(Item* item) noexcept;
  bool TakeValue(Encoding encoding, std::span<const std::byte>* bytes) noexcept;
  bool TakeLength(const FieldDefinition& field, std::uint16_t* length) noexcept;
  bool SkipMembers(int count) noexcept;

  std::span<const std::byte> data_;
  bool little_endian_;
  bool has_metadata_;
  ParseError error_ = ParseError::kNone;
  bool in_array_ = false;       // of values
  std::uint16_t elements_ = 0;  // still to come in it
  int depth_ = 0;
  std::size_t work_ = 0;
  MetadataReader reader_;
  FieldDefinition field_{};
  OpenStruct open_[kMaxStructNesting];
};

// The value of 1, 2, 4 or 8 `bytes`; 0 for any other size.
std::uint64_t ReadUnsigned(std::span<const std::byte> bytes, bool little_endian) noexcept;
std::int64_t ReadSigned(std::span<const std::byte> bytes, bool little_endian) noexcept;

// How a value of `size` bytes is to be read: the field's format where it suits the encoding and the
// size, else the encoding's own; kDefault for the null of a nullable field, which is one with a
// format of fixed size and an encoding that counts bytes. kIpAddressObsolete becomes kIpAddress.
Format ValueFormat(Encoding encoding, Format format, std::size_t size) noexcept;

}  // namespace eh

#endif  // EVENTHEADER_DECODER_H_
