// What `nettrace ctl` shows of sessions to people.
#ifndef TOOLS_NETTRACE_CTL_TABLES_H_
#define TOOLS_NETTRACE_CTL_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "absl/time/time.h"
#include "tools/collector/control/service.h"

namespace tools {

// For output that is no terminal.
inline constexpr std::size_t kAnyWidth = std::numeric_limits<std::size_t>::max();

// All three end with a line feed; what is not the program's own is Printable.

// Name, kind and state of each session, in columns.
std::string ListText(std::span<const collector::SessionStatus> sessions);
// A line for each session, of at most `width` characters.
std::string StatusTable(std::span<const collector::SessionStatus> sessions, absl::Time now,
                        std::size_t width);
// All that is known of a session.
std::string StatusDetails(const collector::SessionStatus& session, absl::Time now);

// In the largest unit in which it is at least 1: "17 B", "1.5 KB" (of 1024 bytes), "234 MB".
std::string FormatBytes(std::uint64_t bytes);
// In its two largest units: "12s", "3m 05s", "2h 07m", "4d 03h".
std::string FormatAge(absl::Duration age);

}  // namespace tools

#endif  // TOOLS_NETTRACE_CTL_TABLES_H_
