// Registers tracepoints of user_events before the service that writes to them has run.
#ifndef TOOLS_COLLECTOR_TRACEFS_USER_EVENT_REGISTRATIONS_H_
#define TOOLS_COLLECTOR_TRACEFS_USER_EVENT_REGISTRATIONS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/tracefs/user_event_definition.h"

namespace collector {

// Registers tracepoints, and holds the registrations until it is destroyed. Persistent
// registrations remain after that. Not thread-safe.
class UserEventRegistrations {
 public:
  // Registers `name` (`Provider_LxKy`), which may be registered already. Fails with InvalidArgument
  // if the name is invalid, with NotFound if the kernel has no user_events or tracefs is not
  // mounted, with PermissionDenied if this process lacks the permission, and with AlreadyExists if
  // the tracepoint exists with other fields. Other errors are those of the kernel, for example if
  // its limit of tracepoints is reached.
  absl::Status Register(const std::string& name, bool persistent);
  // Registers any definition, with the same errors as Register(name) except those of the name. An
  // existing tracepoint stays unchanged, persistent or not. The message of AlreadyExists contains
  // the existing definition if it can be read.
  absl::Status Register(const UserEventDefinition& definition, bool persistent);
  // Deletes a persistent tracepoint. Fails with FailedPrecondition while a process uses it, with
  // NotFound if it does not exist, and with PermissionDenied if this process lacks the permission.
  absl::Status Delete(const std::string& name);

 private:
  // Opens user_events_data if it is not open. Error messages begin with `what`.
  absl::Status Open(const std::string& what);

  base::UniqueFd data_;
  // Enable word that the kernel requires for a registration. It is never read.
  std::unique_ptr<std::uint64_t> enabled_ = std::make_unique<std::uint64_t>(0);
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_TRACEFS_USER_EVENT_REGISTRATIONS_H_
