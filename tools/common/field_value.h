// The values of EventHeader fields as their formats say, in JSON.
//
//   format                    JSON
//   unsigned_int, signed_int,
//   pid, port                 a number; for programs beyond +-2^53 a string of its digits
//   hex_int                   "0x1f"
//   errno                     a number; for people "2 (ENOENT)"
//   time                      "2026-11-21T10:22:00Z"; outside the years 0 to 9999 a number
//   boolean                   true or false; a number if it is neither 1 nor 0 and comes as one:
//                             those of 1 and 4 bytes have types of their own in files
//   float                     a number; "NaN", "Infinity", "-Infinity"
//   hex_bytes                 "00ff17"
//   uuid                      "00112233-4455-6677-8899-aabbccddeeff"
//   ip_address                "127.0.0.1", "fe80::1"
//   string8, string_utf       of an integer: the character
//
// A format that does not suit the value, by the specification, is replaced by the encoding's
// default. A nullable value of no bytes is null; one of another size than its format has is text or
// hex_bytes, as its encoding's default is. A sequence that is not as long as its encoding
// says is shown as hex_bytes.
#ifndef TOOLS_COMMON_FIELD_VALUE_H_
#define TOOLS_COMMON_FIELD_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "eventheader/wire.h"
#include "tools/common/json_text.h"

namespace tools {

enum class ValueStyle {
  kForPrograms,  // numbers are JSON's where programs read them exactly; see PutInteger
  kForPeople,    // errnos have their names, too, and all numbers are digits without quotes
};

// Writes a whole number.
void PutWholeNumber(std::uint64_t value, ValueStyle style, JsonWriter* json);
void PutWholeNumber(std::int64_t value, ValueStyle style, JsonWriter* json);

// The name of an errno, e.g. "ENOENT"; null if the number has none.
const char* ErrnoName(std::uint64_t value);

// Writes the value of a field of fixed size: its bytes, zero- or sign-extended.
void PutFieldNumber(eh::Encoding encoding, eh::Format format, std::uint64_t value, ValueStyle style,
                    JsonWriter* json);

// Writes a value that is a sequence of bytes (IsByteSequence): numbers in it are little-endian, but
// ports are big-endian.
void PutFieldBytes(eh::Encoding encoding, eh::Format format, std::span<const std::byte> bytes,
                   ValueStyle style, JsonWriter* json);

}  // namespace tools

#endif  // TOOLS_COMMON_FIELD_VALUE_H_
