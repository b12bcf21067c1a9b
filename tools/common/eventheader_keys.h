// The keys in the metadata rows of EventHeader events that keep what the file format has no place
// for. This is the contract between the recorder, which writes them, and the programs that read
// them.
//
//   EventHeader.Tracepoint  the tracepoint's name
//   EventHeader.Id          the event's id, decimal: the row's may be another, see event_ids.h
//   EventHeader.Tag         the event's tag, 0x and hexadecimal; not there if it is 0
//   EventHeader.Group       the provider's group; not there if it has none
//   EventHeader.Attributes  the event's attributes as they are in its metadata; not there without
//   EventHeader.Field.N     the definition of field N where the field's type does not say all of it
//
// N is the place of the definition in the event's metadata, from 0; a struct counts and so does
// each of its members, after it. The value is `ENCODING FORMAT[ tag=0xHEX][ attr=ATTRIBUTES]`, for
// a struct without FORMAT, in the names of the EventHeader specification: "value32 hex_int
// tag=0x12".
//
// The types of the fields, and with them the metadata row, say how a value is laid out in the file.
// Numbers are in the file's byte order, ports too. A byte sequence (IsByteSequence) is as the event
// had it; in an array, each is the member "Value" of an Object. A field of byte sequences always
// has its key: without one, nothing would tell it from an array of numbers, or from a struct.
//
// A nullable field (IsNullable) whose values in an event are all there and of one size is, in that
// event's row, a field of such values: "value32 hex_int". Where they are null it is an empty text;
// where some are, each is an array of no or one value; else they are byte sequences, in which
// numbers but ports are little-endian. Such a field always has its key.
#ifndef TOOLS_COMMON_EVENTHEADER_KEYS_H_
#define TOOLS_COMMON_EVENTHEADER_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "eventheader/wire.h"
#include "libnettrace-writer/core/traceevent.h"

namespace tools {

inline constexpr char kKeyTracepoint[] = "EventHeader.Tracepoint";
inline constexpr std::string_view kKeyId = nettrace::internal::traceevent::kOwnIdKey;
inline constexpr char kKeyTag[] = "EventHeader.Tag";
inline constexpr char kKeyGroup[] = "EventHeader.Group";
inline constexpr char kKeyAttributes[] = "EventHeader.Attributes";
inline constexpr char kKeyField[] = "EventHeader.Field.";  // + N

// A field's definition, the value of EventHeader.Field.N.
struct FieldNote {
  eh::Encoding encoding = eh::Encoding::kInvalid;
  eh::Format format = eh::Format::kDefault;
  std::optional<std::uint16_t> tag;
  std::string attributes;
};
std::string FormatFieldNote(const FieldNote& note);
// nullopt if `text` is not the value of such a key.
std::optional<FieldNote> ParseFieldNote(std::string_view text);
// N, if `key` is an EventHeader.Field.N.
std::optional<std::size_t> ParseFieldKey(std::string_view key);

// The `name=value` pairs of attributes, as they are in metadata: each but the first follows a ';',
// and the ';' in values are doubled. Text that has no '=' is a name without a value.
std::vector<std::pair<std::string, std::string>> ParseAttributes(std::string_view text);

// The values of the field have a fixed size, or are null: no bytes. A value of another size is
// shown in the encoding's own format.
bool IsNullable(eh::Encoding encoding, eh::Format format);
// The values of the field are in the file as arrays of bytes, nullable ones where their sizes are
// not alike.
bool IsByteSequence(eh::Encoding encoding, eh::Format format);

}  // namespace tools

#endif  // TOOLS_COMMON_EVENTHEADER_KEYS_H_
