// Reads EventHeader events in either byte order. ParseEvent() reads the header and extensions of an
// event. MetadataReader reads the definitions of its fields, and Decoder reads their values, one by
// one. ReadUnsigned(), ReadSigned() and ValueFormat() interpret the bytes of a value.
// The input may be hostile: nothing outside the event is read, kMaxWork bounds the work of a
// Decoder, and nothing allocates or throws. Views point into the input, which must outlive them.
// A Decoder may be used by one thread at a time; different Decoders are independent.
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
  kTruncatedMetadata,   // the metadata ends within a definition, or before a struct's first member
  kBadEncoding,         // encoding 0 or unknown, or both array flags
  kBadStruct,           // a struct with no fields
  kZeroLengthArray,     // a constant array of no elements
  kNestingTooDeep,      // more than kMaxStructNesting structs in one another
  kTooManyFields,       // more than kMaxFields field definitions
  kTruncatedData,       // the payload ends within a field; only from Decoder
  kTooMuchWork,         // decoding would take more than kMaxWork; only from Decoder
};
// Returns a short description of the error, e.g. "a field encoding is not valid".
const char* ParseErrorText(ParseError error) noexcept;

struct EventView {
  wire::Header header;  // id and tag in the host's byte order
  bool little_endian;
  bool pointer64;
  std::span<const std::byte> metadata;     // empty if the event has no metadata
  std::span<const std::byte> activity_id;  // 16 bytes, or empty
  std::span<const std::byte> related_id;   // 16 bytes, or empty
  std::span<const std::byte> data;         // the payload and the padding that may follow it
};

// Reads the header and extensions from `bytes`. The first byte must be that of the event's header:
// the caller removes the common fields of the tracepoint. After an error, `*view` has only the
// parts that are before the error.
[[nodiscard]] ParseError ParseEvent(std::span<const std::byte> bytes, EventView* view) noexcept;

struct FieldDefinition {
  std::string_view name;        // without attributes
  std::string_view attributes;  // text after the first ';', in which each ';' of a value is doubled
  Encoding encoding;
  Arity arity;
  Format format;  // never kDefault except for structs: the encoding's default format replaces it
  bool has_tag;
  std::uint16_t tag;
  std::uint16_t array_length;  // kConstantArray: 1..65535, else 0
  std::uint8_t struct_fields;  // kStruct: 1..127, else 0
  std::uint8_t depth;          // 0 for top-level fields
};

// Reads the field definitions of an event's metadata, in order. A struct comes before its members.
class MetadataReader {
 public:
  // Creates a reader without definitions.
  MetadataReader() noexcept = default;
  MetadataReader(std::span<const std::byte> metadata, bool little_endian) noexcept;

  std::string_view event_name() const noexcept { return name_; }
  std::string_view event_attributes() const noexcept { return attributes_; }

  // Stores the next definition and returns true. Returns false at the end or after an error: see
  // error(). If a struct announces more members than definitions follow, all definitions that
  // follow are its members. If no definition follows a struct, the error is kTruncatedMetadata.
  bool Next(FieldDefinition* field) noexcept;
  ParseError error() const noexcept { return error_; }
  bool at_end() const noexcept { return rest_.empty(); }
  // Returns whether every struct had as many members as it announced. Valid after Next() has
  // returned false without an error.
  bool structs_are_whole() const noexcept { return depth_ == 0; }

 private:
  std::span<const std::byte> rest_;
  std::string_view name_;
  std::string_view attributes_;
  bool little_endian_ = true;
  ParseError error_ = ParseError::kNone;
  int fields_ = 0;
  int depth_ = 0;
  std::uint8_t remaining_[kMaxStructNesting] = {};  // members that still follow, per open struct
};

// Maximum cost of decoding one event. Each item costs 1. Each time that the decoder reads the
// definition of a field, every 16 bytes of its name and attributes cost 1. If an array of structs
// has 0 elements, each definition of a member costs 1 more. An event that the kernel accepts
// exceeds the maximum only if it was made to be expensive.
inline constexpr std::size_t kMaxWork = std::size_t{1} << 16;

enum class ItemKind : std::uint8_t {
  kValue,       // the value of a field or of an array element
  kArrayBegin,  // the elements follow: values or structs
  kArrayEnd,
  kStructBegin,  // the members follow; the struct is a field or an array element
  kStructEnd,
};

struct Item {
  ItemKind kind;
  bool is_element;             // true for an element of the innermost open array
  std::uint16_t array_length;  // for kArrayBegin: number of elements; else 0
  // Definition of the field that the item is a part of. Valid until the next call of
  // Decoder::Next().
  const FieldDefinition* field;
  // The value in the event's byte order, without length prefix or terminator, if `kind` is kValue.
  // Empty for other kinds.
  std::span<const std::byte> bytes;
};

class Decoder {
 public:
  // Creates a decoder. An event without metadata has no items.
  explicit Decoder(const EventView& event) noexcept;

  std::string_view event_name() const noexcept { return reader_.event_name(); }
  std::string_view event_attributes() const noexcept { return reader_.event_attributes(); }

  // Stores the next item and returns true. Returns false at the end or after an error: see error().
  // Each kArrayBegin and kStructBegin is followed by its kArrayEnd or kStructEnd, unless there is
  // an error.
  bool Next(Item* item) noexcept;
  ParseError error() const noexcept { return error_; }
  // Returns the payload that is not decoded yet. After the last field, this is the padding.
  std::span<const std::byte> rest() const noexcept { return data_; }

 private:
  struct OpenStruct {
    FieldDefinition field;
    MetadataReader members;  // reads from the definition of the first member
    std::uint16_t elements;  // elements that still follow
    std::uint8_t remaining;  // members that still follow in this element
    bool inside;             // true while an element is open
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
  std::uint16_t elements_ = 0;  // elements of that array that still follow
  int depth_ = 0;
  std::size_t work_ = 0;
  MetadataReader reader_;
  FieldDefinition field_{};
  OpenStruct open_[kMaxStructNesting];
};

// Return `bytes` as a number; 0 unless there are 1, 2, 4 or 8 bytes.
std::uint64_t ReadUnsigned(std::span<const std::byte> bytes, bool little_endian) noexcept;
std::int64_t ReadSigned(std::span<const std::byte> bytes, bool little_endian) noexcept;

// Returns the format for reading a value of `size` bytes. This is `format` if it suits the encoding
// and the size, else the encoding's default format. With kStringLength16Char8 and
// kBinaryLength16Char8, which begin with a count of bytes, a value of 0 bytes is null if the format
// has a fixed size. Returns kDefault for null, and kIpAddress for kIpAddressObsolete.
Format ValueFormat(Encoding encoding, Format format, std::size_t size) noexcept;

}  // namespace eh

#endif  // EVENTHEADER_INTERNAL_CXX20
#endif  // EVENTHEADER_DECODER_H_
