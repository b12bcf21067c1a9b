// The outer layers of an EventHeader event: header, extensions and the field definitions in its
// metadata. The decoder (decoder.h) builds on it; the collector compiles its schemas from it.
// Input is hostile: every function is bounds-checked, does work linear in its input, and neither
// allocates nor throws. Views point into the input and live as long as it does.
#ifndef EVENTHEADER_PARSE_H_
#define EVENTHEADER_PARSE_H_

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
// A short text for people, e.g. "field encoding is not valid".
const char* ParseErrorText(ParseError error) noexcept;

inline constexpr int kMaxStructNesting = 8;
inline constexpr int kMaxFields = 1024;

struct EventView {
  Header header;  // id and tag in the host's byte order
  bool little_endian;
  bool pointer64;
  std::span<const std::byte> metadata;     // empty if the event carries none
  std::span<const std::byte> activity_id;  // 16 bytes, or empty
  std::span<const std::byte> related_id;   // 16 bytes, or empty
  std::span<const std::byte> data;         // the payload; may have padding behind it
};

// Reads header and extensions from `bytes` (the event from its header on, without the tracepoint's
// common fields).
[[nodiscard]] ParseError ParseEvent(std::span<const std::byte> bytes, EventView* view) noexcept;

enum class Arity : std::uint8_t { kScalar, kConstantArray, kVariableArray };

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
  // Has no definitions.
  MetadataReader() noexcept = default;
  MetadataReader(std::span<const std::byte> metadata, bool little_endian) noexcept;

  std::string_view event_name() const noexcept { return name_; }
  std::string_view event_attributes() const noexcept { return attributes_; }

  // True and the next definition; false at the end or at an error, see error(). The metadata's end
  // within a struct's members is kTruncatedMetadata.
  bool Next(FieldDefinition* field) noexcept;
  ParseError error() const noexcept { return error_; }

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

// Size of one element of the fixed-size encodings in bytes; 0 for all others.
constexpr std::size_t FixedSize(Encoding encoding) noexcept {
  switch (encoding) {
    case Encoding::kValue8:
      return 1;
    case Encoding::kValue16:
      return 2;
    case Encoding::kValue32:
      return 4;
    case Encoding::kValue64:
      return 8;
    case Encoding::kValue128:
      return 16;
    default:
      return 0;
  }
}

// The format of a field that gives none; kDefault for structs.
constexpr Format DefaultFormat(Encoding encoding) noexcept {
  switch (encoding) {
    case Encoding::kValue8:
    case Encoding::kValue16:
    case Encoding::kValue32:
    case Encoding::kValue64:
      return Format::kUnsignedInt;
    case Encoding::kValue128:
    case Encoding::kBinaryLength16Char8:
      return Format::kHexBytes;
    case Encoding::kStruct:
    case Encoding::kInvalid:
      return Format::kDefault;
    default:
      return Format::kStringUtf;
  }
}

}  // namespace eh

#endif  // EVENTHEADER_PARSE_H_
