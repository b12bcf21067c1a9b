// Checks the request in a message, calls the Service to carry it out, and returns the message to
// reply with. This code does not read or write sockets.
#ifndef TOOLS_CONTROL_DISPATCHER_H_
#define TOOLS_CONTROL_DISPATCHER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/base/unique_fd.h"
#include "tools/control/service.h"

namespace control {

// Requests that a peer may make: none, those that change nothing, or all.
enum class Access : std::uint8_t { kNone, kLook, kChange };

// A connection that sends requests, as the dispatcher sees it. States which requests the peer may
// make, and gives two methods what they need from the connection: Wait pauses, and Tail writes to
// the socket. The server implements this interface. All functions are called on the connection's
// thread.
class Caller {
 public:
  virtual ~Caller() = default;
  virtual Access access() const = 0;
  // Blocks for `time`, and then returns true. Returns false at once if the peer closes the
  // connection or the server ends.
  virtual bool Pause(absl::Duration time) = 0;
  // Returns a duplicate of the connection's socket, to which the method Tail writes its stream of
  // events. Fails if this process has no free descriptor.
  virtual absl::StatusOr<base::UniqueFd> DuplicateSocket() = 0;
};

// Holds the result of a request: what the server must send to the peer, and what it logs.
struct Reply {
  std::string message;  // message to send, with its NUL; "": none
  // Set if the request Tail succeeds. The tail itself writes the reply, and then the events, to the
  // socket.
  std::unique_ptr<Tail> tail;
  bool is_last = false;  // whether the connection must be closed after this message
  // Text for the journal that names the request, e.g. "Stop web". Set if the request may change
  // something, even if it fails; "" for other requests.
  std::string change;
  // Result of the request. OK also if varlink itself defines the error in `message`, such as
  // MethodNotFound.
  absl::Status status;
};

// A dispatcher of requests to one Service. Thread-safe.
class Dispatcher {
 public:
  // `version` is the daemon's version. `service` must outlive the Dispatcher.
  Dispatcher(Service* service, std::string version)
      : service_(service), version_(std::move(version)) {}

  // Carries out the request in `message`, from which the caller must have removed the NUL.
  Reply Handle(std::string_view message, Caller* caller) const;

 private:
  Service* const service_;
  const std::string version_;
};

// Returns the message, with its NUL, that reports the failure of a request.
std::string ErrorMessage(const absl::Status& status);

}  // namespace control

#endif  // TOOLS_CONTROL_DISPATCHER_H_
