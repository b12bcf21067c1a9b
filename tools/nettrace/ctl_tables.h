// The texts in which `nettrace ctl` shows sessions and services to users.
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

// The following functions, except FormatAge, return text that ends with a line feed. They escape
// control characters in text from outside of the program (base::Printable).

// Returns a heading, and a line with the name, kind and state of each session. If there are none,
// returns a line that says so.
std::string ListText(std::span<const control::SessionStatus> sessions);
// Returns a heading, and a line for each session, of at most `width` characters. If there are none,
// returns a line that says so.
std::string StatusTable(std::span<const control::SessionStatus> sessions, absl::Time now,
                        std::size_t width);
// Returns the details of a session. Only the largest losses are listed.
std::string StatusDetails(const control::SessionStatus& session, absl::Time now);

// Returns a heading, and a line for each service with a ring in user space, of at most `width`
// characters. If no service is connected, returns a line with the socket to which services connect,
// or with the reason why services cannot connect. A line for each user and process whose
// connections were refused follows.
std::string ServicesTable(const control::ServicesStatus& services, absl::Time now,
                          std::size_t width);
// Returns the details of a service.
std::string ServiceDetails(const control::ServiceStatus& service, absl::Time now);

// Formats a duration in its two largest units: "3m 05s", "2h 07m", "4d 03h". Below a minute, it has
// only seconds, "12s"; a negative duration is "0s".
std::string FormatAge(absl::Duration age);

}  // namespace tools

#endif  // TOOLS_NETTRACE_CTL_TABLES_H_
