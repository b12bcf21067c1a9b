// Reads EventHeader events, in either byte order: ParseEvent its header and extensions,
// MetadataReader the definitions of its fields, Decoder the fields' values, one by one.
// Input is hostile: nothing is read outside the event, the work is bounded by kMaxWork whatever the
// bytes say, and nothing allocates or throws. Views point into the input and live as long as it
// does. A Decoder belongs to one thread at a time; different ones are independent.
//
//   eh::EventView event;
//   if (ParseEvent(bytes, &event) != ParseError::kNone) ...
//   eh::Decoder decoder(event);
//   eh::Item item;
//   while (decoder.Next(&item)) ...
//   if (decoder.error() != ParseError::kNone) ...
#ifndef EVENTHEADER_DECODER_H_
#define EVENTHEADER_DECODER_H_

#include "eventheader/internal/need_cxx20.h"

#ifdef EVENTHEADER_INTERNAL_CXX20

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "eventheader/wire.h"

namespace eh {

enum class ParseError : std::uint8_t {
  kNone = 0,
  kTruncatedHeader,     // fewer than 8 bytes
  kBadFlags,            // a flag bit that is not defined
  kBadLevel,            // level 0
  kTruncatedExtension,  // an extension reaches beyond the event
  kBadActivityId,       // an activity id extension that is neither 16 nor 32 bytes
  kDuplicateExtension,  // a second metadata or activity id extension
  kTruncatedMetadata,   // the metadata ends within a name or a field definition
  kBadEncoding,         // encoding 0 or unknown, or both array flags
  kBadStruct,           // a struct with no or too many fields
  kZeroLengthArray,     // a constant array of no elements
  kNestingTooDeep,      // more than kMaxStructNesting structs in one another
  kTooManyFields,       // more than kMaxFields field definitions
  kTruncatedData,       // the payload ends within a field (decoder)
  kTooMuchWork,         // more than kMaxWork to decode (decoder)
};
// Returns a short text for people, e.g. "a field encoding is not valid".
const char* ParseErrorText(ParseError error) noexcept;

struct EventView {
  Header header;  // id and tag in the host's byte order
  bool little_endian;
  bool pointer64;
  std::span<const std::byte> metadata;     // empty if the event carries none
  std::span<const std::byte> activity_id;  // 16 bytes, or empty
  std::span<const std::byte> related_id;   // 16 bytes, or empty
  std::span<const std::byte> data;         // the payload; padding may follow it
};

// Reads header and extensions from `bytes` (the event from its header on, without the tracepoint's
// common fields).
[[nodiscard]] ParseError ParseEvent(std::span<const std::byte> bytes, EventView* view) noexcept;

struct FieldDefinition {
  std::string_view name;        // without attributes
  std::string_view attributes;  // what follows the first ';', still escaped; "" if none
  Encoding encoding;
  Arity arity;
  Format format;  // kDefault replaced by the encoding's own; kDefault for structs
  bool has_tag;
  std::uint16_t tag;
  std::uint16_t array_length;  // kConstantArray: 1..65535, else 0
  std::uint8_t struct_fields;  // kStruct: 1..127, else 0
  std::uint8_t depth;          // 0 for top-level fields
};

// Walks the field definitions of an event's metadata, in order, structs before their members.
class MetadataReader {
 public:
  // A reader without definitions.
  MetadataReader() noexcept = default;
  MetadataReader(std::span<const std::byte> metadata, bool little_endian) noexcept;

  std::string_view event_name() const noexcept { return name_; }
  std::string_view event_attributes() const noexcept { return attributes_; }

  // True and the next definition; false at the end or at an error, see error(). A struct that
  // announces more members than follow has those that follow, and none is kTruncatedMetadata.
  bool Next(FieldDefinition* field) noexcept;
  ParseError error() const noexcept { return error_; }
  bool at_end() const noexcept { return rest_.empty(); }
  // Once Next has returned false: whether every struct had as many members as it announces.
  bool structs_are_whole() const noexcept { return depth_ == 0; }

 private:
  std::span<const std::byte> rest_;
  std::string_view name_;
  std::string_view attributes_;
  bool little_endian_ = true;
  ParseError error_ = ParseError::kNone;
  int fields_ = 0;
  int depth_ = 0;
  std::uint8_t remaining_[kMaxStructNesting] = {};  // members still to come, per open struct
};

// Maximum cost of decoding one event: every item is 1, every definition without values (in an array
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
  bool is_element;             // of the innermost array that is open
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
  // Payload not yet decoded; at the end, what follows the last field (padding).
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
  bool NextInStruct(OpenStruct* open, Item* item) noexcept;
  bool NextElement(Item* item) noexcept;
  bool BeginStruct(Item* item) noexcept;
  bool ReadValue(Encoding encoding, std::span<const std::byte>* bytes) noexcept;
  bool ReadLength(const FieldDefinition& field, std::uint16_t* length) noexcept;
  bool SkipMembers(int count) noexcept;

  std::span<const std::byte> data_;
  bool little_endian_;
  bool has_metadata_;
  ParseError error_ = ParseError::kNone;
  bool in_array_ = false;       // an array of values is open
  std::uint16_t elements_ = 0;  // of that array, still to come
  int depth_ = 0;
  std::size_t work_ = 0;
  MetadataReader reader_;
  FieldDefinition field_{};
  OpenStruct open_[kMaxStructNesting];
};

// Reads a number of 1, 2, 4 or 8 `bytes`; 0 for any other size.
std::uint64_t ReadUnsigned(std::span<const std::byte> bytes, bool little_endian) noexcept;
std::int64_t ReadSigned(std::span<const std::byte> bytes, bool little_endian) noexcept;

// Returns the format by which a value of `size` bytes is to be read: the field's where it suits the
// encoding and the size, else the encoding's own; kDefault for the null of a nullable field, which
// has a format of fixed size and an encoding that counts bytes. kIpAddressObsolete becomes
// kIpAddress.
Format ValueFormat(Encoding encoding, Format format, std::size_t size) noexcept;

}  // namespace eh

#endif  // EVENTHEADER_INTERNAL_CXX20
#endif  // EVENTHEADER_DECODER_H_
