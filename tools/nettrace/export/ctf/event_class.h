// The classes of a CTF trace's events: what a metadata row becomes in TSDL, and the bytes of
// payloads and contexts that go with it.
//
// Values are as their types in the file say:
//
//   type                     TSDL
//   Boolean                  enum : uint8_t { "false" = 0, "true" = 1 }
//   integers                 integers of the same size; a VarInt has 64 bits
//   integers with names      enum; in hexadecimal where the tracepoint has them so
//   Single, Double           floating_point
//   Guid, DateTime, Decimal  string, as `nettrace dump` shows them
//   text of all sorts        string in UTF-8, with U+FFFD for what is not valid, U+2400 for NUL,
//                            which ends a string in CTF, and U+200B, which is not seen, where it is
//                            empty: babeltrace2 2.0.4 shows an earlier event's text there
//   Object                   struct
//   arrays                   a sequence after its length, an array where the length is fixed; each
//                            array in an array is the member _value of a struct
//
// All fields are packed: none is aligned to more than a byte.
#ifndef TOOLS_NETTRACE_EXPORT_CTF_EVENT_CLASS_H_
#define TOOLS_NETTRACE_EXPORT_CTF_EVENT_CLASS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "libnettrace-writer/core/byte_writer.h"
#include "nettrace/reader.h"
#include "nettrace/schema.h"

namespace tools::ctf {

// How the trace presents itself.
enum class Profile : std::uint8_t {
  kPlain,
  kLttng,  // as one of LTTng-UST, which Trace Compass has views for
};

// The aliases of types that all other declarations use.
std::string DeclareTypes();

// name, loglevel and fields of the events of this row, for an event block. Without `with_fields`
// their fields are _error, a text, and _payload, the bytes that do not fit the row's fields.
std::string DeclareClass(const nettrace::EventMetadata& metadata, bool with_fields);

// Appends the payload, by the fields that DeclareClass gives. If it does not fit its fields,
// nothing is appended.
absl::Status PutPayload(const nettrace::Event& event, nettrace::internal::ByteWriter* out);
// Appends it for the class without its fields.
void PutUnfitPayload(const nettrace::Event& event, std::string_view error,
                     nettrace::internal::ByteWriter* out);

// The struct that every event has beside its payload. What the file does not say is -1 as a number
// and "-" as a text.
std::string DeclareContext(Profile profile);
void PutContext(const nettrace::Event& event, std::string_view process, Profile profile,
                std::int32_t pointer_size, nettrace::internal::ByteWriter* out);

}  // namespace tools::ctf

#endif  // TOOLS_NETTRACE_EXPORT_CTF_EVENT_CLASS_H_
