// The classes of a CTF trace's events: what a metadata row becomes, and the bytes of payloads and
// contexts that go with it.
//
// Values are as their types in the file say:
//
//   type                     CTF
//   Boolean                  boolean of a byte; an enumeration in CTF 1.8
//   integers                 integers of the same size; a VarInt has 64 bits
//   integers with names      integers with these; in hexadecimal where the tracepoint has them so
//   Single, Double           floating-point numbers
//   Guid, DateTime, Decimal  text, as `nettrace dump` shows them
//   text of all sorts        text in UTF-8, with U+FFFD for what is not valid and U+2400 for NUL,
//                            which ends a text in CTF. In CTF 1.8 it is U+200B, which is not seen,
//                            where it is empty: babeltrace2 2.0.4 shows an earlier event's text
//                            there
//   Object                   struct
//   arrays                   an array after its length, an array where the length is fixed; each
//                            array in an array is the member `value` of a struct
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

// How the trace presents itself.
enum class Profile : std::uint8_t {
  kPlain,
  kLttng,  // as one of LTTng-UST, which Trace Compass has views for
};

// The class of the events of this row. Without `with_fields` their fields are error, a text, and
// payload, the bytes that do not fit the row's fields.
EventClass EventClassOf(const nettrace::EventMetadata& metadata, bool with_fields);

// The struct that every event has beside its payload. What the file does not say is -1 as a number
// and "-" as a text.
FieldClass ContextOf(Profile profile);

// Appends contexts and payloads, by these classes.
class EventEncoder {
 public:
  // `pointer_size` of the trace, in bytes.
  constexpr EventEncoder(Version version, Profile profile, std::int32_t pointer_size)
      : version_(version), profile_(profile), pointer_size_(pointer_size) {}

  void PutContext(const nettrace::Event& event, std::string_view process,
                  nettrace::internal::ByteWriter* out) const;
  // If the payload does not fit its fields, nothing is appended.
  absl::Status PutPayload(const nettrace::Event& event, nettrace::internal::ByteWriter* out) const;
  // For the class without its fields.
  void PutUnfitPayload(const nettrace::Event& event, std::string_view error,
                       nettrace::internal::ByteWriter* out) const;

 private:
  const Version version_;
  const Profile profile_;
  const std::int32_t pointer_size_;
};

}  // namespace tools::ctf

#endif  // TOOLS_NETTRACE_EXPORT_CTF_EVENT_CLASS_H_
