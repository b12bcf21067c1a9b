// An EventHeader event as one JSON object (RFC 8259), always valid and always UTF-8, whatever the
// event's bytes are:
//
//   {"provider":"MyProvider","name":"Request","level":4,"opcode":1,
//    "activityId":"00112233-4455-6677-8899-aabbccddeeff","fields":{"path":"/","status":200}}
//
// opcode, id, version and tag are there unless 0, the others if the event has them. A field's name
// may occur twice in an event, and so in the object. The payload of an event without metadata is
// "data", in hexadecimal. Where decoding fails, what came before stands, and "error" says why.
//
//   unsigned, signed, pid, port  number (64 bits: more than a double holds)
//   hex                          "0x2a"
//   errno                        "ENOENT", a number if it has no name
//   time                         "2026-11-21T10:22:00Z"; seconds outside the years 0 to 9999
//   boolean                      true, false, a number if it is neither 0 nor 1
//   float                        number, or "NaN", "Infinity", "-Infinity"
//   hex bytes                    "00ff"
//   strings, xml, json           string; what is not well formed becomes U+FFFD
//   uuid, ip address             "00112233-4455-6677-8899-aabbccddeeff", "192.0.2.1", "2001:db8::1"
//   null of a nullable field     null
//   struct, array                object, array
//
// A format that does not suit its value is read as the encoding's own (ValueFormat).
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

// Writes `event` to `buffer`, without a terminator, and returns its size in bytes. If that is more
// than the buffer's, only the beginning was written. "provider" is left out if it is empty.
// Thread-safe; neither allocates nor throws.
std::size_t FormatEventJson(const EventView& event, std::string_view provider,
                            std::span<char> buffer) noexcept;

// Appends `event` to `text`, whose growth may allocate and so throw; then `text` is at most longer
// by bytes of no meaning. kMaxWork bounds the size: a hostile event of 8 KiB can become megabytes.
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
