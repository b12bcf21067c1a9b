// Formats an EventHeader event as one JSON object (RFC 8259). The output is valid JSON and valid
// UTF-8 for any input:
//
//   {"provider":"MyProvider","name":"Request","level":4,"opcode":1,
//    "activityId":"00112233-4455-6677-8899-aabbccddeeff","fields":{"path":"/","status":200}}
//
// The keys opcode, id, version and tag are omitted if they are 0. The other keys are omitted if the
// event does not have them. If two fields of an event have the same name, the key occurs twice. An
// event without metadata has no "fields"; its payload, unless it is empty, is in "data" in
// hexadecimal. If decoding fails, the object contains everything before the error, and "error"
// describes the error.
// The format of a value determines how the value appears:
//
//   unsigned, signed, pid, port  number of up to 64 bits, which a double cannot always hold
//   hex                          "0x2a"
//   errno                        "ENOENT", or a number if the errno has no name
//   time                         "2026-11-21T10:22:00Z", or seconds if the year is not 0 to 9999
//   boolean                      true, false, or a number if it is neither 0 nor 1
//   float                        number, or "NaN", "Infinity", "-Infinity"
//   hex bytes                    "00ff"
//   strings, xml, json           string; U+FFFD replaces what is not well formed
//   uuid, ip address             "00112233-4455-6677-8899-aabbccddeeff", "192.0.2.1", "2001:db8::1"
//   null of a nullable field     null
//   struct, array                object, array
//   array of characters          string; from an array of constant length, up to its first NUL
//
// If a format does not suit its value, the default format of the encoding is used (ValueFormat).
#ifndef EVENTHEADER_JSON_FORMATTER_H_
#define EVENTHEADER_JSON_FORMATTER_H_

#include "eventheader/internal/need_cxx20.h"

#ifdef EVENTHEADER_INTERNAL_CXX20

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "eventheader/decoder.h"

namespace eh {

// Writes `event` to `buffer`, without a terminator, and returns the full size in bytes. If the size
// exceeds the buffer's, only the beginning was written. "provider" is omitted if it is empty.
// Thread-safe; neither allocates nor throws.
std::size_t FormatEventJson(const EventView& event, std::string_view provider,
                            std::span<char> buffer) noexcept;

// Appends `event` to `text`. May throw if `text` cannot grow; `text` may then end with meaningless
// bytes. kMaxWork bounds the size: a hostile event of 8 KiB can grow to megabytes.
inline void AppendEventJson(const EventView& event, std::string_view provider, std::string* text) {
  const std::size_t before = text->size();
  std::size_t room = 1024;
  for (;;) {
    text->resize(before + room);
    const std::size_t size = FormatEventJson(event, provider, {text->data() + before, room});
    if (size <= room) {
      text->resize(before + size);
      return;
    }
    room = size;
  }
}

}  // namespace eh

#endif  // EVENTHEADER_INTERNAL_CXX20
#endif  // EVENTHEADER_JSON_FORMATTER_H_
