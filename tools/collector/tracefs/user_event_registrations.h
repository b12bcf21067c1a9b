// EventHeader tracepoints that are registered before the service that writes to them has run.
#ifndef TOOLS_COLLECTOR_TRACEFS_USER_EVENT_REGISTRATIONS_H_
#define TOOLS_COLLECTOR_TRACEFS_USER_EVENT_REGISTRATIONS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "tools/collector/base/unique_fd.h"

namespace collector {

// Holds its registrations until it is destroyed; persistent ones stay. Not thread-safe.
class UserEventRegistrations {
 public:
  // Registers `name` (`Provider_LxKy`); it may be registered already. Errors:
  // InvalidArgument for the name, NotFound for a kernel without user_events, PermissionDenied,
  // AlreadyExists when somebody has defined it with other fields.
  absl::Status Register(const std::string& name, bool persistent);

 private:
  UniqueFd data_;
  // The kernel sets a bit of it while an event is enabled; nobody reads it here.
  std::unique_ptr<std::uint64_t> enabled_ = std::make_unique<std::uint64_t>(0);
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_TRACEFS_USER_EVENT_REGISTRATIONS_H_
