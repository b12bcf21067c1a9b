// Lists the tracepoints of services that pass their events through rings in user space. The kernel
// does not know these tracepoints. The services connect to nettraced, so this code asks nettraced
// for them.
//
// The input is the daemon's reply, with names that any service may choose. `list` and `watch` show
// the result; `doctor` asks for the refused services.
#ifndef TOOLS_EVENTHEADER_RING_TRACEPOINTS_H_
#define TOOLS_EVENTHEADER_RING_TRACEPOINTS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/control/client.h"
#include "tools/control/service.h"
#include "tools/eventheader/tracepoints.h"

namespace tools {

// Returns the services' tracepoints with names that match one of the patterns (MatchesAny), sorted
// by name. Each name occurs once, with the number of services that have registered it.
// `used_by` has "nettraced:SESSION" for each session that has enabled the tracepoint.
std::vector<Tracepoint> RingTracepoints(const control::ServicesStatus& services,
                                        const std::vector<std::string>& patterns);

// Asks the daemon for its services. Keeps the connection between calls.
class ServicesClient {
 public:
  // `socket` is the path of the daemon's control socket.
  explicit ServicesClient(std::string socket) : socket_(std::move(socket)) {}

  // Fails like ControlClient::Connect(), ControlClient::Call() and control::ParseServices(). After
  // a failed Call(), the next List() connects again.
  absl::StatusOr<control::ServicesStatus> List();

 private:
  const std::string socket_;
  std::optional<control::ControlClient> client_;
};

// Returns the error for the case that neither the kernel nor the daemon reports tracepoints. Its
// code is that of the kernel's error, and its message has both messages.
absl::Status NeitherAnswers(const absl::Status& of_kernel, const absl::Status& of_daemon);

}  // namespace tools

#endif  // TOOLS_EVENTHEADER_RING_TRACEPOINTS_H_
