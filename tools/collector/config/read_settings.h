// Reads the daemon's settings from its files.
//
// In: TOML, from directories of files or as one text. Out: settings that agree with each other, or
// all that is wrong with them, with file, line, column and a remedy for each.
#ifndef TOOLS_COLLECTOR_CONFIG_READ_SETTINGS_H_
#define TOOLS_COLLECTOR_CONFIG_READ_SETTINGS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/collector/config/settings.h"

namespace collector {

// In the order of their precedence.
inline const std::vector<std::string> kSettingsDirectories = {"/etc/nettraced",
                                                              "/usr/lib/nettraced"};

// Reads all files NAME.toml of the directories, in the order of their names. Of files of one name,
// that of the first directory hides the others; one that is empty or a link to /dev/null hides them
// and says nothing. A directory that is not there has no files. What several files say of the
// daemon itself is as the last one says; sessions are in one file each.
//
// The message of InvalidArgument has a line for each error, "FILE:LINE:COLUMN: ...", up to a
// number.
absl::StatusOr<DaemonSettings> ReadSettings(
    const std::vector<std::string>& directories = kSettingsDirectories);

// Reads one text; `name` stands for its file in messages.
absl::StatusOr<DaemonSettings> ParseSettings(std::string_view text, const std::string& name);

// Reads the sessions of a text that is not to say anything of the daemon, and has at least one.
absl::StatusOr<std::vector<SessionSettings>> ParseSessions(std::string_view text,
                                                           const std::string& name);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONFIG_READ_SETTINGS_H_
