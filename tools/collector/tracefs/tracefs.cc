#include "tools/collector/tracefs/tracefs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tools/base/read_file.h"
#include "tools/base/status_macros.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/tracefs/tracefs_mount.h"

namespace collector {
namespace {

// Maximum size of a file of tracefs, in bytes. The largest file, user_events_status, has a line for
// each tracepoint.
constexpr std::size_t kMaxFile = std::size_t{64} << 20;
constexpr char kPermissionRemedy[] =
    "run as root, or grant CAP_PERFMON and CAP_DAC_READ_SEARCH; members of group tracing can use "
    "the sessions of nettraced instead (nettrace ctl)";

// Returns whether the file exists. Uses stat, because access(2) checks the real user, who may lack
// rights that the process's capabilities give.
bool Exists(const std::string& path) {
  struct stat facts;
  return stat(path.c_str(), &facts) == 0;
}

// Returns the names of the folders in the folder `path`; none if it does not exist.
std::vector<std::string> Folders(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->is_directory(error)) names.push_back(entry->path().filename().string());
  }
  return names;
}

}  // namespace

absl::StatusOr<Tracefs> Tracefs::Find() {
  const char* path = collector_tracefs_mount();
  if (path == nullptr) {
    return absl::NotFoundError(
        "tracefs is not mounted; mount it with 'mount -t tracefs tracefs /sys/kernel/tracing'");
  }
  Tracefs tracefs((std::string(path)));
  // Opens the folder instead of calling access(2), which checks the rights of the real user.
  const base::UniqueFd events(
      open((tracefs.directory_ + "/events").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!events.valid()) {
    return base::ErrnoStatus(errno, absl::StrCat("tracefs at ", path, " is not readable"),
                             kPermissionRemedy);
  }
  return tracefs;
}

bool Tracefs::HasUserEvents() const {
  return Exists(directory_ + "/user_events_data") || errno == EACCES;
}

absl::StatusOr<std::string> Tracefs::ReadFile(const std::string& path) const {
  const base::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    const int error = errno;
    return base::ErrnoStatus(error, path,
                             error == EACCES ? kPermissionRemedy
                             : error == EMFILE
                                 ? "raise the limit of open files (ulimit -Hn, or LimitNOFILE= in "
                                   "the unit of nettraced)"
                                 : "");
  }
  return base::ReadOpenFile(fd.get(), kMaxFile, path);
}

absl::StatusOr<std::size_t> Tracefs::ForEachUserEvent(
    const std::function<void(const UserEvent&)>& found) const {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(directory_ + "/user_events_status"));
  return collector::ForEachUserEvent(text, found, [this](std::string_view name) {
    const absl::string_view event(name.data(), name.size());
    const std::string events = directory_ + "/events/";
    return Exists(absl::StrCat(events, "user_events/", event, "/id")) ||
           Exists(absl::StrCat(events, "user_events_multi/", event, "/id"));
  });
}

std::vector<Tracefs::Name> Tracefs::Tracepoints() const {
  std::vector<Name> names;
  const std::string events = directory_ + "/events";
  for (const std::string& system : Folders(events)) {
    for (std::string& event : Folders(absl::StrCat(events, "/", system))) {
      names.push_back({system, std::move(event)});
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string Tracefs::MadeTracepoints() const {
  std::string all;
  for (const char* name : {"/kprobe_events", "/uprobe_events", "/synthetic_events"}) {
    // Ignores a file that this kernel does not have or this process may not read.
    if (absl::StatusOr<std::string> text = ReadFile(directory_ + name); text.ok()) all += *text;
  }
  return all;
}

bool Tracefs::CanBeEnabled(const Name& name) const {
  const std::string path = absl::StrCat(directory_, "/events/", name.system, "/", name.event);
  return Exists(path + "/enable");
}

absl::StatusOr<Tracefs::Tracepoint> Tracefs::ReadTracepoint(const std::string& system,
                                                            const std::string& event) const {
  if (!IsFolderName(system) || !IsFolderName(event)) {
    return absl::InvalidArgumentError(
        absl::StrCat("tracepoint ", system, ":", event,
                     " has a name that tracefs cannot show, because the name is empty, '.' or "
                     "'..', or contains '/'"));
  }
  const std::string path = absl::StrCat(directory_, "/events/", system, "/", event);
  absl::StatusOr<std::string> id = ReadFile(path + "/id");
  if (!id.ok()) {
    if (!absl::IsNotFound(id.status())) return id.status();
    if (!Exists(absl::StrCat(directory_, "/events/", system))) {
      return absl::NotFoundError(absl::StrCat(
          "tracepoint ", system, ":", event, " does not exist, because the kernel has no system \"",
          system, "\" of tracepoints; if this is the provider of a service, write a level after ",
          "the colon: critical, error, warning, info, verbose or *"));
    }
    return absl::NotFoundError(absl::StrCat("tracepoint ", system, ":", event,
                                            " does not exist; see ", directory_,
                                            "/available_events for those that do"));
  }
  Tracepoint tracepoint;
  if (!absl::SimpleAtoi(*id, &tracepoint.id)) {
    return absl::InternalError(absl::StrCat(path, "/id is not a number"));
  }
  ASSIGN_OR_RETURN(tracepoint.format, ReadFile(path + "/format"));
  return tracepoint;
}

}  // namespace collector
