// Converts the report of a capture about its services into the form of the control socket.
#ifndef TOOLS_NETTRACED_SERVICES_REPORT_H_
#define TOOLS_NETTRACED_SERVICES_REPORT_H_

#include "tools/collector/session/ring_report.h"
#include "tools/control/service.h"

namespace nettraced {

// Names of the reasons in control::ServiceStatus::losses.
inline constexpr char kLostRingFull[] = "ringFull";
inline constexpr char kLostSignalHandler[] = "signalHandler";
inline constexpr char kLostTooManyThreads[] = "tooManyThreads";

control::ServicesStatus ToServicesStatus(const collector::RingReport& report);

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_SERVICES_REPORT_H_
