// What a tracepoint of user_events is defined by: its name and its fields.
//
// In: definitions as people write them, in files and on command lines, and the kernel's `format`
// files, whose fields are anybody's. Out: the one form in which two definitions can be compared,
// which is the kernel's own in its file dynamic_events. Time and memory are linear in the text.
#ifndef TOOLS_COLLECTOR_TRACEFS_USER_EVENT_DEFINITION_H_
#define TOOLS_COLLECTOR_TRACEFS_USER_EVENT_DEFINITION_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "eventheader/wire.h"

namespace collector {

struct UserEventDefinition {
  std::string name;
  std::string fields = eh::kTracepointFields;  // "u32 a; char[8] b"; "": none

  // Whether events that are written to it are EventHeader events.
  bool IsEventHeader() const { return fields == eh::kTracepointFields; }
  // As it is registered.
  std::string Text() const { return fields.empty() ? name : name + ' ' + fields; }

  friend bool operator==(const UserEventDefinition&, const UserEventDefinition&) = default;
};

// Parses `Name type field; type field…`, or `Name;` for an event that has no fields. Types are the
// kernel's; C's form of an array (`char text[8]`) is taken for what it means, as the kernel would
// take `text[8]` for the name of one char. InvalidArgument says what is wrong and what would be
// right, also of a name of EventHeader's form that has other fields than EventHeader's.
absl::StatusOr<UserEventDefinition> ParseUserEventDefinition(std::string_view text);

// The definition of an EventHeader tracepoint. InvalidArgument if `name` is none of an EventHeader
// tracepoint.
absl::StatusOr<UserEventDefinition> EventHeaderDefinition(std::string_view name);

// The fields in the text of a tracepoint's `format` file, in the form of UserEventDefinition.
std::string FieldsOfFormat(std::string_view format);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_TRACEFS_USER_EVENT_DEFINITION_H_
