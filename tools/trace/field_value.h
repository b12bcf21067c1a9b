// Writes the values of EventHeader fields as JSON, as their formats define.
//
//   format                    JSON
//   unsigned_int, signed_int,
//   pid, port                 a number; with kForPrograms, a string of its digits beyond +-2^53
//   hex_int                   "0x1f"
//   errno                     a number; with kForPeople, "2 (ENOENT)"
//   time                      "2026-11-21T10:22:00Z"; outside the years 0 to 9999 a number
//   boolean                   true or false; a number if its value is neither 1 nor 0. A Boolean of
//                             1 or 4 bytes is never a number: files have boolean types for these
//   float                     a number; "NaN", "Infinity", "-Infinity"
//   hex_bytes                 "00ff17"
//   uuid                      "00112233-4455-6677-8899-aabbccddeeff"
//   ip_address                "127.0.0.1", "fe80::1"
//   string8, string_utf       if the field is an integer, the character with this number
//
// If the specification does not allow a format for the value, the default format of the encoding is
// used. A nullable value of no bytes is null. A nullable value whose size does not fit its format
// is shown in the default format of its encoding, which is text or hex_bytes. A sequence whose
// length does not fit its encoding is shown as hex_bytes.
#ifndef TOOLS_TRACE_FIELD_VALUE_H_
#define TOOLS_TRACE_FIELD_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "eventheader/wire.h"
#include "tools/base/json_text.h"

namespace trace {

enum class ValueStyle {
  kForPrograms,  // JSON numbers only where programs read them exactly; see base::PutInteger
  kForPeople,    // errnos with their names; all numbers are digits without quotes
};

void PutWholeNumber(std::uint64_t value, ValueStyle style, base::JsonWriter* json);
void PutWholeNumber(std::int64_t value, ValueStyle style, base::JsonWriter* json);

// Writes null for a value that cannot be read. With kForPeople, writes the word unreadable without
// quotes.
void PutUnreadable(ValueStyle style, base::JsonWriter* json);

// Returns the name of an errno, e.g. "ENOENT", or null if the number has none.
const char* ErrnoName(std::uint64_t value);

// The following two functions write a value to JsonValueOutput or ValueOutput
// (tools/trace/value_output.h).
//
// Writes the value of a field of fixed size. `value` contains the bytes of the field, zero- or
// sign-extended.
template <typename Output>
void PutFieldNumber(eh::Encoding encoding, eh::Format format, std::uint64_t value, Output* out);

// Writes a value that is a sequence of bytes (IsByteSequence). Numbers in it are little-endian,
// except that ports are big-endian.
template <typename Output>
void PutFieldBytes(eh::Encoding encoding, eh::Format format, std::span<const std::byte> bytes,
                   Output* out);

}  // namespace trace

#endif  // TOOLS_TRACE_FIELD_VALUE_H_
