// The definition of a user_events tracepoint: its name and its fields.
//
// Input: definitions that users write in files and on command lines, and the kernel's `format`
// files, whose fields any process may have defined. Output: a normalized form in which two
// definitions can be compared. This form is that of the kernel's file dynamic_events in tracefs.
// Time and memory are linear in the text.
#ifndef TOOLS_COLLECTOR_TRACEFS_USER_EVENT_DEFINITION_H_
#define TOOLS_COLLECTOR_TRACEFS_USER_EVENT_DEFINITION_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "eventheader/wire.h"

namespace collector {

struct UserEventDefinition {
  std::string name;
  std::string fields = eh::kTracepointFields;  // for example "u32 a; char[8] b"; "" for no fields

  // Returns whether the tracepoint's events are EventHeader events.
  bool IsEventHeader() const { return fields == eh::kTracepointFields; }
  // Returns the text with which the kernel registers the tracepoint.
  std::string Text() const { return fields.empty() ? name : name + ' ' + fields; }

  friend bool operator==(const UserEventDefinition&, const UserEventDefinition&) = default;
};

// Parses `Name type field; type field…`, or `Name;` for an event without fields. `Name` alone must
// be the name of an EventHeader tracepoint. Types are those of the kernel. An array in C syntax
// (`char text[8]`) is accepted as an array; the kernel would treat `text[8]` as the name of a char.
//
// The message of InvalidArgument says what is wrong and what to use instead. A name that has the
// form of an EventHeader name is an error if the fields are not those of EventHeader.
absl::StatusOr<UserEventDefinition> ParseUserEventDefinition(std::string_view text);

// Returns the definition of an EventHeader tracepoint. Fails with InvalidArgument if `name` is not
// the name of an EventHeader tracepoint.
absl::StatusOr<UserEventDefinition> EventHeaderDefinition(std::string_view name);

// Parses the text of a tracepoint's `format` file, and returns its fields, without the common
// fields, in the form of UserEventDefinition::fields.
std::string FieldsOfFormat(std::string_view format);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_TRACEFS_USER_EVENT_DEFINITION_H_
