// The EventHeader wire format as numbers and structs, without functions.
// Source: the EventHeader specification. The numeric values are the same in all implementations.
// All C++ code that reads or writes EventHeader bytes uses the definitions of this file.
// eventheader_c.h has the constants for C.
#ifndef EVENTHEADER_WIRE_H_
#define EVENTHEADER_WIRE_H_

#include "eventheader/internal/need_cxx17.h"

#ifdef EVENTHEADER_INTERNAL_CXX17

#include <cstddef>
#include <cstdint>

namespace eh {

// Severity of an event, 1..255. 0 is invalid; 6..255 are legal and have no defined meaning.
enum class Level : std::uint8_t {
  kInvalid = 0,
  kCriticalError = 1,
  kError = 2,
  kWarning = 3,
  kInformation = 4,
  kVerbose = 5,
};

enum class Opcode : std::uint8_t {
  kInfo = 0,
  kActivityStart = 1,
  kActivityStop = 2,
  kCollectionStart = 3,
  kCollectionStop = 4,
  kExtension = 5,
  kReply = 6,
  kResume = 7,
  kSuspend = 8,
  kSend = 9,
  kReceive = 0xF0,
};

// Bits of wire::Header::flags. An event with any other bit is malformed.
inline constexpr std::uint8_t kFlagPointer64 = 0x01;
inline constexpr std::uint8_t kFlagLittleEndian = 0x02;
inline constexpr std::uint8_t kFlagExtension = 0x04;

// The structs of the format have a separate namespace. In namespace eh, they would hide structs of
// users with the same names where a user specializes eh::StructOf.
namespace wire {

// The first 8 bytes of every event.
struct Header {
  std::uint8_t flags;
  std::uint8_t version;
  std::uint16_t id;
  std::uint16_t tag;
  std::uint8_t opcode;
  std::uint8_t level;
};
static_assert(sizeof(Header) == 8);

// Precedes `size` bytes of extension data, without padding.
struct ExtensionHeader {
  std::uint16_t size;
  std::uint16_t kind;
};
static_assert(sizeof(ExtensionHeader) == 4);

}  // namespace wire

inline constexpr std::uint16_t kExtensionKindMask = 0x7FFF;
inline constexpr std::uint16_t kExtensionMetadata = 1;
inline constexpr std::uint16_t kExtensionActivityId = 2;  // 16 bytes, or 32 with the related id
inline constexpr std::uint16_t kExtensionChain = 0x8000;  // another extension follows this one

// The base type of a field. The size of a value in the payload depends on the encoding, but not on
// the format.
enum class Encoding : std::uint8_t {
  kInvalid = 0,
  kStruct = 1,  // the format byte is the number of members, 1..127
  kValue8 = 2,
  kValue16 = 3,
  kValue32 = 4,
  kValue64 = 5,
  kValue128 = 6,
  kZStringChar8 = 7,
  kZStringChar16 = 8,
  kZStringChar32 = 9,
  kStringLength16Char8 = 10,  // text after a u16 count of code units
  kStringLength16Char16 = 11,
  kStringLength16Char32 = 12,
  kBinaryLength16Char8 = 13,
};

inline constexpr std::uint8_t kEncodingMask = 0x1F;
// Flag in the encoding byte of a constant array, whose number of elements (u16) is in the metadata.
inline constexpr std::uint8_t kEncodingConstantArray = 0x20;
// Flag in the encoding byte of a variable array, whose number of elements (u16) is in the payload.
inline constexpr std::uint8_t kEncodingVariableArray = 0x40;
// Flag in the encoding byte: a format byte follows.
inline constexpr std::uint8_t kEncodingHasFormat = 0x80;

// Number of values of a field: one, a constant in the definition, or a count in the payload.
enum class Arity : std::uint8_t { kScalar, kConstantArray, kVariableArray };

// How readers interpret the bytes of a field.
enum class Format : std::uint8_t {
  kDefault = 0,
  kUnsignedInt = 1,
  kSignedInt = 2,
  kHexInt = 3,
  kErrno = 4,
  kPid = 5,
  kTime = 6,  // seconds since 1970
  kBoolean = 7,
  kFloat = 8,
  kHexBytes = 9,
  kString8 = 10,  // Latin-1
  kStringUtf = 11,
  kStringUtfBom = 12,
  kStringXml = 13,
  kStringJson = 14,
  kUuid = 15,               // RFC 4122 byte order
  kPort = 16,               // network byte order
  kIpAddress = 17,          // 4 or 16 bytes
  kIpAddressObsolete = 18,  // read as kIpAddress, never written
};

inline constexpr std::uint8_t kFormatMask = 0x7F;
// Flag in the format byte: a u16 tag follows.
inline constexpr std::uint8_t kFormatHasTag = 0x80;

// Maximum length of a tracepoint name, in bytes, without its terminator.
inline constexpr std::size_t kMaxTracepointName = 255;
// Maximum size of an event in bytes: header, extensions and data. The kernel's perf path drops
// larger events although the write succeeds.
inline constexpr std::size_t kMaxEventSize = 8184;
// Maximum number of members of a struct, because the format byte has 7 bits for this number.
inline constexpr int kMaxStructFields = 127;
// Limits of this library, which bound the work of decoders: number of field definitions of an
// event, including the members of structs, and depth of nested structs.
inline constexpr int kMaxFields = 1024;
inline constexpr int kMaxStructNesting = 8;
// The exact fields that every EventHeader tracepoint is registered with.
inline constexpr char kTracepointFields[] =
    "u8 eventheader_flags; u8 version; u16 id; u16 tag; u8 opcode; u8 level";
static_assert(sizeof(kTracepointFields) == 70 + 1);

}  // namespace eh

#endif  // EVENTHEADER_INTERNAL_CXX17
#endif  // EVENTHEADER_WIRE_H_
