// What a message asks for is checked here, and carried out by the Service; out comes the message to
// reply with. Nothing of this knows of sockets.
#ifndef TOOLS_COLLECTOR_CONTROL_DISPATCHER_H_
#define TOOLS_COLLECTOR_CONTROL_DISPATCHER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/collector/base/unique_fd.h"
#include "tools/collector/control/service.h"

namespace collector {

enum class Access : std::uint8_t { kNone, kLook, kChange };

// The other end of a connection, as a request needs it.
class Caller {
 public:
  virtual ~Caller() = default;
  virtual Access access() const = 0;
  // Waits; false, early, if nobody waits for the reply any more.
  virtual bool Pause(absl::Duration time) = 0;
  // The socket, for a tail.
  virtual absl::StatusOr<UniqueFd> DuplicateSocket() = 0;
};

struct Reply {
  std::string message;         // with its NUL; "" if none is to be sent
  std::unique_ptr<Tail> tail;  // it writes to the socket from now on, and has sent its reply
  bool is_last = false;        // the connection is to be closed
  // What was asked for, for a journal: "Stop web"; "" if that was nothing that changes anything.
  std::string change;
  absl::Status status;  // what came of it
};

// Thread-safe.
class Dispatcher {
 public:
  // `version` is that of the daemon. `service` must outlive the Dispatcher.
  Dispatcher(Service* service, std::string version)
      : service_(service), version_(std::move(version)) {}

  // Carries out the request that `message` is, without its NUL.
  Reply Handle(std::string_view message, Caller* caller) const;

 private:
  Service* const service_;
  const std::string version_;
};

// The message, with its NUL, that says of a request that it failed.
std::string ErrorMessage(const absl::Status& status);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONTROL_DISPATCHER_H_
