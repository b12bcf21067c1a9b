#include "tools/collector/tracefs/user_event_registrations.h"

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "eventheader/tracepoint_name.h"
#include "libeventheader/base/user_events.h"
#include "tools/collector/base/status_util.h"
#include "tools/collector/tracefs/tracefs.h"

namespace collector {

namespace user_events = eh::internal::user_events;

absl::Status UserEventRegistrations::Register(const std::string& name, bool persistent) {
  const std::string what = absl::StrCat("registering tracepoint ", name);
  if (!eh::ParseTracepointName(name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": not an EventHeader name; use Provider_L<level>K<keyword>[Options], up to ",
        eh::kMaxTracepointName,
        " characters, with lower-case hex numbers, e.g. MyCompany_MyService_L4K1"));
  }
  if (!data_.valid()) {
    const int fd = user_events::OpenData();
    if (fd < 0) {
      // Not mounted, or not readable: that says more than the file's absence.
      if (const auto tracefs = Tracefs::Find(); !tracefs.ok()) {
        return absl::Status(tracefs.status().code(),
                            absl::StrCat(what, ": ", tracefs.status().message()));
      }
      const bool permission = fd == -EACCES || fd == -EPERM;
      return ErrnoStatus(-fd, absl::StrCat(what, ": opening user_events_data"),
                         permission ? "run as root, or let your group write to user_events_data"
                                    : "this needs Linux 6.4 or newer with CONFIG_USER_EVENTS");
    }
    data_ = UniqueFd(fd);
  }
  char command[user_events::kMaxCommand];
  if (!user_events::FormatCommand(name, command)) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": the name is too long"));
  }
  std::uint32_t write_index = 0;
  // Many events may share one bit of a word that nobody reads, but the kernel wants each address
  // and bit to be used once: it is given back at once, and the descriptor keeps the event.
  int error = user_events::Register(data_.get(), command, enabled_.get(), 0,
                                    persistent ? user_events::kFlagPersist : 0, &write_index);
  if (error == 0) error = user_events::Unregister(data_.get(), enabled_.get(), 0);
  switch (error) {
    case 0:
      return absl::OkStatus();
    case EADDRINUSE:
      return absl::AlreadyExistsError(
          absl::StrCat(what,
                       ": another program has defined it with other fields; find it in "
                       "user_events_status and end it, or rename the provider"));
    case EMFILE:
      return ErrnoStatus(error, what, "raise kernel.user_events_max");
    case EPERM:
      return ErrnoStatus(error, what, "persistent tracepoints need CAP_PERFMON: run as root");
    default:
      return ErrnoStatus(error, what);
  }
}

}  // namespace collector
