// Tracepoints of user_events that are registered before the service that writes to them has run.
#ifndef TOOLS_COLLECTOR_TRACEFS_USER_EVENT_REGISTRATIONS_H_
#define TOOLS_COLLECTOR_TRACEFS_USER_EVENT_REGISTRATIONS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "tools/collector/base/unique_fd.h"
#include "tools/collector/tracefs/user_event_definition.h"

namespace collector {

// Holds its registrations until it is destroyed; persistent ones stay. Not thread-safe.
class UserEventRegistrations {
 public:
  // Registers `name` (`Provider_LxKy`); it may be registered already. Errors:
  // InvalidArgument for the name, NotFound for a kernel without user_events, PermissionDenied,
  // AlreadyExists when somebody has defined it with other fields.
  absl::Status Register(const std::string& name, bool persistent);
  // The same for any definition. A tracepoint that is there already stays as it is, persistent or
  // not. The message of AlreadyExists has the definition that is there, if it can be read.
  absl::Status Register(const UserEventDefinition& definition, bool persistent);
  // Deletes a persistent tracepoint. Errors: FailedPrecondition while anybody uses it, NotFound,
  // PermissionDenied.
  absl::Status Delete(const std::string& name);

 private:
  // Opens user_events_data, once. `what` begins the message.
  absl::Status Open(const std::string& what);

  UniqueFd data_;
  // The kernel sets a bit of it while an event is enabled; nobody reads it here.
  std::unique_ptr<std::uint64_t> enabled_ = std::make_unique<std::uint64_t>(0);
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_TRACEFS_USER_EVENT_REGISTRATIONS_H_
