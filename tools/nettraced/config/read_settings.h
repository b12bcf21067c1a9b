// Reads the daemon's settings from directories of TOML files, or from one text.
//
// The result is a consistent set of settings, and the errors of the files or the text. An error has
// a remedy, the file, and the line and column unless it applies to the whole file.
#ifndef TOOLS_NETTRACED_CONFIG_READ_SETTINGS_H_
#define TOOLS_NETTRACED_CONFIG_READ_SETTINGS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/nettraced/config/settings.h"

namespace nettraced {

// Directories of settings. A file in the first directory hides a file of the same name in the
// second.
inline const std::vector<std::string> kSettingsDirectories = {"/etc/nettraced",
                                                              "/usr/lib/nettraced"};

// Reads all files NAME.toml of the directories, in the order of their names. An element of
// `directories` may also be the path of a file. If several directories have a file of the same
// name, only the file of the first directory is read. An empty file or a link to /dev/null thus
// hides a file in a later directory. A missing directory counts as empty, but a missing path that
// ends with .toml is an error. If several files set an option of the daemon itself, the last file
// wins. Each session must be in only one file.
//
// `state_directory` replaces the state directory in the files, unless it is "".
//
// A file with an error is ignored, with all of its sessions and options of the daemon;
// DaemonSettings::errors has the errors. Fails with InvalidArgument if a directory cannot be read,
// or if there are too many files or sessions. Messages have a line "FILE:LINE:COLUMN: ..." for each
// error, up to a limit.
absl::StatusOr<DaemonSettings> ReadSettings(
    const std::vector<std::string>& directories = kSettingsDirectories,
    const std::string& state_directory = "");

// Reads the settings in `text`. Messages give `name` as the name of the file. Fails with
// InvalidArgument if the text is wrong.
absl::StatusOr<DaemonSettings> ParseSettings(std::string_view text, const std::string& name);

// Reads the sessions of a text. Fails with InvalidArgument if the text is wrong, has no session, or
// sets options of the daemon. `state_directory` is the daemon's; "" stands for the default.
absl::StatusOr<std::vector<SessionSettings>> ParseSessions(std::string_view text,
                                                           const std::string& name,
                                                           const std::string& state_directory = "");

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_CONFIG_READ_SETTINGS_H_
