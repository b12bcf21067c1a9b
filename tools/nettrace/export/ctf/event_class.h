// The classes of events in a CTF trace. Converts metadata rows to classes, and encodes payloads and
// contexts for them.
//
// The types of the file become these types of CTF:
//
//   type                     CTF
//   Boolean                  boolean of one byte; an enumeration in CTF 1.8
//   integers                 integers of the same size; a VarInt has 64 bits
//   integers with names      integers with these names; hexadecimal if the tracepoint says so
//   Single, Double           floating-point numbers
//   Guid, DateTime, Decimal  text, as `nettrace dump` shows them
//   text of all kinds        UTF-8; U+FFFD replaces invalid units, and U+2400 replaces NUL, which
//                            ends a text in CTF. In CTF 1.8, U+200B (invisible) replaces an empty
//                            text, because babeltrace2 2.0.4 shows the text of an earlier event
//                            for it
//   Object                   struct
//   arrays                   an array after its length, or an array of fixed length. An array in an
//                            array is the member `value` of a struct
#ifndef TOOLS_NETTRACE_EXPORT_CTF_EVENT_CLASS_H_
#define TOOLS_NETTRACE_EXPORT_CTF_EVENT_CLASS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "libnettrace-writer/core/byte_writer.h"
#include "nettrace/reader.h"
#include "nettrace/schema.h"
#include "tools/nettrace/export/ctf/field_class.h"
#include "tools/nettrace/export/ctf/trace_class.h"

namespace tools::ctf {

// The form of the trace.
enum class Profile : std::uint8_t {
  kPlain,
  kLttng,  // like a trace of LTTng-UST, for which Trace Compass has views
};

// Returns the class of this row's events. Without `with_fields`, the class has two fields: `error`,
// a text, and `payload`, the bytes that do not match the row's fields.
EventClass EventClassOf(const nettrace::EventMetadata& metadata, bool with_fields);

// Returns the struct that every event has in addition to its payload. A number is -1 and a text is
// "-" if the file does not contain the value.
FieldClass ContextOf(Profile profile);

// Encodes contexts and payloads for these classes.
class EventEncoder {
 public:
  // `pointer_size` is the trace's, in bytes.
  constexpr EventEncoder(Version version, Profile profile, std::int32_t pointer_size)
      : version_(version), profile_(profile), pointer_size_(pointer_size) {}

  void PutContext(const nettrace::Event& event, std::string_view process,
                  nettrace::internal::ByteWriter* out) const;
  // Appends the payload. Appends nothing and fails if the payload does not match its fields.
  absl::Status PutPayload(const nettrace::Event& event, nettrace::internal::ByteWriter* out) const;
  // Appends the payload for a class without the row's fields.
  void PutUnfitPayload(const nettrace::Event& event, std::string_view error,
                       nettrace::internal::ByteWriter* out) const;

 private:
  const Version version_;
  const Profile profile_;
  const std::int32_t pointer_size_;
};

}  // namespace tools::ctf

#endif  // TOOLS_NETTRACE_EXPORT_CTF_EVENT_CLASS_H_
