// The classes of events in a CTF trace. Converts metadata rows to classes, and encodes payloads and
// contexts for them.
//
// The types of the file become these types of CTF:
//
//   type                     CTF
//   Boolean                  boolean of one byte; an enumeration in CTF 1.8
//   integers                 integers of the same size; a VarInt has 64 bits
//   integers with names      integers with these names; hexadecimal if the tracepoint's format
//                            prints them so
//   Single, Double           floating-point numbers
//   Guid, DateTime, Decimal  text, as `nettrace dump` shows them
//   text of all kinds        UTF-8; U+FFFD replaces invalid units, and U+2400 replaces NUL, which
//                            ends a text in CTF. In CTF 1.8, U+200B (invisible) replaces an empty
//                            text, because babeltrace2 2.0.4 would show the text of an earlier
//                            event instead
//   Object                   struct
//   arrays                   an array that follows its length, or an array of fixed length. An
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

// The readers for which the trace is written.
enum class Profile : std::uint8_t {
  kPlain,
  kLttng,  // like a trace of LTTng-UST, for which Trace Compass has views
};

// Returns the class of the events of a metadata row. Without `with_fields`, returns the class of
// the events whose payload does not match the row's fields. This class has two fields: `error`, a
// text, and `payload`, the bytes.
EventClass EventClassOf(const nettrace::EventMetadata& metadata, bool with_fields);

// Returns the struct that every event has in addition to its payload. If the file does not contain
// a value, the id of a process or thread is -1, and a text is "-".
FieldClass ContextOf(Profile profile);

// Encodes contexts and payloads in the form of ContextOf and EventClassOf.
class EventEncoder {
 public:
  // `pointer_size` is the size of the addresses in the trace's stacks, in bytes.
  constexpr EventEncoder(Version version, Profile profile, std::int32_t pointer_size)
      : version_(version), profile_(profile), pointer_size_(pointer_size) {}

  // Appends the context. `process` is the name of the event's process; "" if it is unknown.
  void PutContext(const nettrace::Event& event, std::string_view process,
                  nettrace::internal::ByteWriter* out) const;
  // Appends the payload. Appends nothing and fails if the payload does not match its fields.
  absl::Status PutPayload(const nettrace::Event& event, nettrace::internal::ByteWriter* out) const;
  // Appends `error` and the bytes of a payload that PutPayload() has refused. The class of such an
  // event has no fields of the row.
  void PutUnfitPayload(const nettrace::Event& event, std::string_view error,
                       nettrace::internal::ByteWriter* out) const;

 private:
  const Version version_;
  const Profile profile_;
  const std::int32_t pointer_size_;
};

}  // namespace tools::ctf

#endif  // TOOLS_NETTRACE_EXPORT_CTF_EVENT_CLASS_H_
