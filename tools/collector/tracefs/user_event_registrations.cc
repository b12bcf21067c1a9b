#include "tools/collector/tracefs/user_event_registrations.h"

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "libeventheader/base/user_events.h"
#include "tools/base/descriptor_status.h"
#include "tools/base/status_macros.h"
#include "tools/collector/tracefs/tracefs.h"

namespace collector {

namespace user_events = eh::internal::user_events;

namespace {

// Describes the fields of the existing tracepoint of this name, or returns "other fields" if
// tracefs cannot be read.
std::string OtherDefinition(const std::string& name) {
  const auto tracefs = Tracefs::Find();
  if (!tracefs.ok()) return "other fields";
  const auto tracepoint = tracefs->ReadTracepoint("user_events", name);
  if (!tracepoint.ok()) return "other fields";
  const UserEventDefinition other = {name, FieldsOfFormat(tracepoint->format)};
  return other.fields.empty() ? "no fields" : absl::StrCat("the fields '", other.fields, "'");
}

}  // namespace

absl::Status UserEventRegistrations::Open(const std::string& what) {
  if (data_.valid()) return absl::OkStatus();
  const int fd = user_events::OpenData();
  if (fd < 0) {
    // If tracefs is not mounted or not readable, reports this, because it explains more than the
    // error of the file.
    if (const auto tracefs = Tracefs::Find(); !tracefs.ok()) {
      return absl::Status(tracefs.status().code(),
                          absl::StrCat(what, ": ", tracefs.status().message()));
    }
    const std::string call = absl::StrCat(what, ": opening user_events_data");
    switch (-fd) {
      case EACCES:
      case EPERM:
        return base::ErrnoStatus(-fd, call,
                                 "run as root, or add your user to group user_events, which may "
                                 "write to user_events_data");
      case EROFS:
        return base::ErrnoStatus(-fd, call,
                                 "tracefs is read-only for this process, e.g. because of "
                                 "ProtectKernelTunables=; see 'eventheader doctor'");
      case ENOENT:
        return base::ErrnoStatus(-fd, call,
                                 "this needs Linux 6.4 or newer with CONFIG_USER_EVENTS");
      default:
        return base::DescriptorStatus(-fd, call);
    }
  }
  data_ = base::UniqueFd(fd);
  return absl::OkStatus();
}

absl::Status UserEventRegistrations::Register(const std::string& name, bool persistent) {
  absl::StatusOr<UserEventDefinition> definition = EventHeaderDefinition(name);
  if (!definition.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("registering tracepoint: ", definition.status().message()));
  }
  return Register(*definition, persistent);
}

absl::Status UserEventRegistrations::Register(const UserEventDefinition& definition,
                                              bool persistent) {
  const std::string what = absl::StrCat("registering tracepoint ", definition.name);
  RETURN_IF_ERROR(Open(what));
  const std::string command = definition.Text();
  std::uint32_t write_index = 0;
  // The enable word is never read, so any number of events could share one of its bits. However,
  // the kernel permits each address and bit only once. Therefore the bit is unregistered at once;
  // the descriptor keeps the event.
  int error = user_events::Register(data_.get(), command.c_str(), enabled_.get(), 0,
                                    persistent ? user_events::kFlagPersist : 0, &write_index);
  if (error == 0) error = user_events::Unregister(data_.get(), enabled_.get(), 0);
  switch (error) {
    case 0:
      return absl::OkStatus();
    case EADDRINUSE:
      return absl::AlreadyExistsError(absl::StrCat(
          what, ": it exists with ", OtherDefinition(definition.name), " instead of '",
          definition.fields, "'; delete it with 'eventheader unregister ", definition.name,
          "', which shows its users if it is in use, or choose another name"));
    case EMFILE:
      return base::ErrnoStatus(
          error, what,
          "the limit of tracepoints is reached; raise the sysctl kernel.user_events_max");
    case EPERM:
      return base::ErrnoStatus(error, what,
                               "persistent tracepoints need CAP_PERFMON; run as root, or use "
                               "'eventheader register --hold', "
                               "which keeps the tracepoints until it ends");
    default:
      return base::ErrnoStatus(error, what);
  }
}

absl::Status UserEventRegistrations::Delete(const std::string& name) {
  const std::string what = absl::StrCat("unregistering tracepoint ", name);
  RETURN_IF_ERROR(Open(what));
  const int error = user_events::Delete(data_.get(), name.c_str());
  switch (error) {
    case 0:
      return absl::OkStatus();
    case EBUSY:
      return absl::FailedPreconditionError(absl::StrCat(what, ": it is in use"));
    case ENOENT:
      return absl::NotFoundError(absl::StrCat(
          what, ": there is no such tracepoint; 'eventheader list' shows those that exist"));
    case EPERM:
      return base::ErrnoStatus(error, what, "this needs CAP_PERFMON: run as root");
    default:
      return base::ErrnoStatus(error, what);
  }
}

}  // namespace collector
