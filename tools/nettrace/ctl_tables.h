// The tables in which `nettrace ctl` shows sessions to users.
#ifndef TOOLS_NETTRACE_CTL_TABLES_H_
#define TOOLS_NETTRACE_CTL_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "absl/time/time.h"
#include "tools/control/service.h"

namespace tools {

// A width that cuts no line, for output that is not a terminal.
inline constexpr std::size_t kAnyWidth = std::numeric_limits<std::size_t>::max();

// The following functions, except FormatAge, return text that ends with a line feed. They pass text
// from outside of the program through base::Printable.

// Returns the name, kind and state of each session, in columns.
std::string ListText(std::span<const control::SessionStatus> sessions);
// Returns a line for each session, of at most `width` characters.
std::string StatusTable(std::span<const control::SessionStatus> sessions, absl::Time now,
                        std::size_t width);
// Returns all details of a session.
std::string StatusDetails(const control::SessionStatus& session, absl::Time now);

// Returns a line for each service with a ring in user space, of at most `width` characters, and the
// latest refused connections. Returns the reason if services cannot connect.
std::string ServicesTable(const control::ServicesStatus& services, absl::Time now,
                          std::size_t width);
// Returns all details of a service.
std::string ServiceDetails(const control::ServiceStatus& service, absl::Time now);

// Formats a time in its two largest units: "12s", "3m 05s", "2h 07m", "4d 03h".
std::string FormatAge(absl::Duration age);

}  // namespace tools

#endif  // TOOLS_NETTRACE_CTL_TABLES_H_
