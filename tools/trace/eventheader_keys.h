// Keys in the metadata rows of EventHeader events. They keep facts that the file format has no
// place for. The collector writes them, and programs that show traces read them.
//
//   EventHeader.Tracepoint  the tracepoint's name
//   EventHeader.Id          the event's id, decimal: the row's id may differ, see event_ids.h
//   EventHeader.Tag         the event's tag, 0x and hexadecimal; absent if it is 0
//   EventHeader.Group       the provider's group; absent if it has none
//   EventHeader.Attributes  the event's attributes as in its metadata; absent if it has none
//   EventHeader.Field.N     the definition of field N, if its type does not express all of it
//
// N is the position of the definition in the event's metadata, from 0. A struct has a position, and
// its members have the following ones. The value is `ENCODING FORMAT[ tag=0xHEX][ attr=ATTRIBUTES]`
// with the names of the EventHeader specification; a struct has no FORMAT. An example is "value32
// hex_int tag=0x12".
//
// The field types in the metadata row define how values are laid out in the file. Numbers,
// including ports, are in the file's byte order. A byte sequence (IsByteSequence) is stored as in
// the event. In an array of byte sequences, each is the member "Value" of an Object. A field of
// byte sequences always has a key EventHeader.Field.N, because readers could not distinguish it
// from an array of numbers or a struct otherwise.
//
// The type of a nullable field (IsNullable) depends on its values in the event:
//  - If no value is null and all have the same size, the type is that of these values.
//  - If all values are null, each is an empty text.
//  - If some values are null and the others have the same size, each value is an array, of one
//    element or, if it is null, of no elements.
//  - If sizes differ, values are byte sequences. Numbers in them are little-endian, except ports.
// A nullable field always has a key EventHeader.Field.N.
#ifndef TOOLS_TRACE_EVENTHEADER_KEYS_H_
#define TOOLS_TRACE_EVENTHEADER_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "eventheader/wire.h"
#include "libnettrace-writer/core/traceevent.h"

namespace trace {

inline constexpr char kKeyTracepoint[] = "EventHeader.Tracepoint";
inline constexpr std::string_view kKeyId = nettrace::internal::traceevent::kOwnIdKey;
inline constexpr char kKeyTag[] = "EventHeader.Tag";
inline constexpr char kKeyGroup[] = "EventHeader.Group";
inline constexpr char kKeyAttributes[] = "EventHeader.Attributes";
inline constexpr char kKeyField[] = "EventHeader.Field.";  // followed by N

// Holds the value of EventHeader.Field.N, the definition of a field.
struct FieldNote {
  eh::Encoding encoding = eh::Encoding::kInvalid;
  eh::Format format = eh::Format::kDefault;
  std::optional<std::uint16_t> tag;
  std::string attributes;
};
std::string FormatFieldNote(const FieldNote& note);
// Parses a value of EventHeader.Field.N. Returns nullopt if `text` is not valid.
std::optional<FieldNote> ParseFieldNote(std::string_view text);
// Returns N if `key` is EventHeader.Field.N with a decimal N below 2^32, else nullopt.
std::optional<std::size_t> ParseFieldKey(std::string_view key);

// Returns the `name=value` pairs of attributes in the form that event metadata contains. Pairs are
// separated by ';', and a ';' in a value is doubled. Text without '=' is a name without a value.
std::vector<std::pair<std::string, std::string>> ParseAttributes(std::string_view text);

// Returns whether the field is nullable: the encoding allows any number of bytes, but the format
// has a fixed size. A value of no bytes is then null. A value of another wrong size is shown in the
// default format of the encoding.
bool IsNullable(eh::Encoding encoding, eh::Format format);
// Returns whether the file stores values of the field as arrays of bytes. For a nullable field, the
// result is true, although the file does so only if the sizes of its values differ.
bool IsByteSequence(eh::Encoding encoding, eh::Format format);

}  // namespace trace

#endif  // TOOLS_TRACE_EVENTHEADER_KEYS_H_
